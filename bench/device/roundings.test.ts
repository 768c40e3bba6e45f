import { expect, it } from "vitest";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { Rng } from "../../src/support/rng.ts";
import { resultRoundings, softmaxRoundings } from "./roundings.ts";

const rounded = (v: number): number => decodeFloat("bf16", encodeFloat("bf16", v));

it("a softmax of a long row that rounds once an operator is within its roundings, and not within four", () => {
  const rng = new Rng(1);
  const x = Float64Array.from({ length: 131_072 }, () => rounded(rng.normal()));
  const total = (v: Float64Array): number => v.reduce((a, b) => a + b);
  const exact = x.map((v) => Math.exp(v));
  const whole = total(exact);
  const want = exact.map((v) => v / whole);
  const largest = x.reduce((a, b) => Math.max(a, b));
  const powers = x.map((v) => rounded(Math.exp(rounded(v - largest))));
  const sum = rounded(total(powers));
  const found = powers.map((v) => rounded(v / sum));
  const allowed = softmaxRoundings(x);
  const off = (i: number, roundings: number): number =>
    Math.abs(found[i]! - want[i]!) / (want[i]! * roundings * 2 ** -8);
  const worst = (of: (i: number) => number): number =>
    x.reduce((most, _, i) => Math.max(most, off(i, of(i))), 0);
  expect(worst((i) => allowed[i]!)).toBeLessThan(1);
  expect(worst(() => resultRoundings)).toBeGreaterThan(1);
});
