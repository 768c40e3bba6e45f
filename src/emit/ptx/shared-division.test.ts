import { expect, test } from "vitest";
import { Rng } from "../../support/rng.ts";
import { PtxCode } from "./ptx-code.ts";
import { divideAll, inverseOf } from "./shared-division.ts";

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
  const quotients = divideAll(
    code,
    ["%r90", "%r91", "%r92", "%r93"],
    inverseOf(code, new Array(4).fill("%r99")),
  );
  const text = code.toString();
  expect(new Set(quotients).size).toBe(4);
  expect(text.match(/div\.rn\.f32/g)).toHaveLength(4);
  expect(text.match(/rcp\.approx/g)).toHaveLength(1);
  expect(text.match(/abs\.f32/g)).toHaveLength(4);
});
