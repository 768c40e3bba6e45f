import { expect, test } from "vitest";
import { roundNumber } from "../../semantics/scalar-meaning.ts";
import { Rng } from "../../support/rng.ts";
import { PtxCode } from "./ptx-code.ts";
import { inverseOf, roughInverseOf } from "./shared-division.ts";

const { fround } = Math;
/** Exact here but for double rounding, which random operands do not meet. */
const fma = (a: number, b: number, c: number): number => fround(a * b + c);

/** What the text computes; `off`: units in the last place by which the reciprocal of the instruction is off. */
function quotient(x: number, divisor: number, off: number): number {
  const exact = fround(1 / divisor);
  const first = fround(exact * (1 + off * 2 ** -23));
  const reciprocal = fma(fma(-divisor, first, 1), first, first);
  const near = fround(x * reciprocal);
  return fma(-reciprocal, fma(divisor, near, -x), near);
}

test("a shared reciprocal gives the quotients that division rounds to", () => {
  const rng = new Rng(5);
  const any = (most: number): number => {
    const size = fround((1 + rng.uniform()) * 2 ** rng.integer(-most, most - 1));
    return rng.integer(0, 1) === 0 ? size : -size;
  };
  for (let i = 0; i < 200_000; i++) {
    const [x, divisor] = [any(60), Math.abs(any(60))];
    const found = quotient(x, divisor, rng.integer(-1, 1));
    if (found !== fround(x / divisor)) expect([x, divisor, found]).toEqual(fround(x / divisor));
  }
  for (const zero of [0, -0]) expect(quotient(zero, 3, 0)).toBe(zero);
  // Subnormal dividends: as near as the spacing of their quotients.
  for (const x of [2 ** -149, 3 * 2 ** -140, 2 ** -127 + 2 ** -149]) {
    for (const divisor of [3, fround(0.7), fround(2 ** -59 * 1.3), fround(2 ** 59 * 1.7)]) {
      const off = Math.abs(quotient(x, divisor, 1) - fround(x / divisor));
      expect(off).toBeLessThanOrEqual(Math.max(2 ** -149, (2 ** -23 * x) / divisor));
    }
  }
});

test("what could overflow on the way is divided by the instruction", () => {
  const code = new PtxCode();
  const { divide } = inverseOf(code, new Array(4).fill("%r99"));
  const quotients = divide(["%r90", "%r91", "%r92", "%r93"]);
  const text = code.toString();
  expect(new Set(quotients).size).toBe(4);
  expect(text.match(/div\.rn\.f32/g)).toHaveLength(4);
  expect(text.match(/rcp\.approx/g)).toHaveLength(1);
  expect(text.match(/abs\.f32/g)).toHaveLength(4);
});

test("quotients of bf16 are those that division rounds to, at the ends of the range too", () => {
  const rng = new Rng(6);
  const [fewest, most] = [-133, 127];
  const narrow = (least: number): number => {
    const size = (128 + rng.integer(0, 127)) * 2 ** (rng.integer(least, most) - 7);
    return roundNumber("bf16", rng.integer(0, 1) === 0 ? size : -size);
  };
  for (let i = 0; i < 200_000; i++) {
    const [x, divisor] = [narrow(fewest), narrow(fewest)];
    const scale = Math.abs(divisor) < 2 ** -120 ? 2 ** 64 : 1;
    const exact = fround(1 / fround(divisor * scale));
    const reciprocal = fround(exact * (1 + rng.integer(-1, 1) * 2 ** -23));
    const found = roundNumber("bf16", fround(fround(x * scale) * reciprocal));
    const want = roundNumber("bf16", fround(x / divisor));
    // Where the result is subnormal the rounding in f32 may be another one before.
    const off = Math.abs(found - want);
    if (found !== want && !(off <= 2 ** -133)) expect([x, divisor, found]).toEqual(want);
  }
  const code = new PtxCode();
  roughInverseOf(code, ["%r8", "%r9", "%r8", "%r9"]).divide(["%r1", "%r2", "%r3", "%r4"]);
  expect(code.toString().match(/rcp\.approx/g)).toHaveLength(2);
});
