import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allDTypes, dtypes, isBigDType, isIntegerDType } from "./dtype.ts";
import {
  clampBig,
  integerRange,
  saturateBig,
  saturateInteger,
  wrapBig,
  wrapInteger,
} from "./integer.ts";

const integers = allDTypes.filter(isIntegerDType);
const narrow = integers.filter((d) => !isBigDType(d));

describe.each(narrow)("%s", (dtype) => {
  const { bits, kind } = dtypes[dtype];
  it("wraps as BigInt.asIntN does", () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (x) => {
        const judge = kind === "int" ? BigInt.asIntN : BigInt.asUintN;
        expect(BigInt(wrapInteger(dtype, x))).toBe(judge(bits, BigInt(x)));
      }),
    );
  });

  it("saturates to its range and truncates", () => {
    const { min, max } = integerRange(dtype);
    expect(saturateInteger(dtype, 1e30)).toBe(Number(max));
    expect(saturateInteger(dtype, -Infinity)).toBe(Number(min));
    expect(saturateInteger(dtype, Number.NaN)).toBe(0);
    expect(saturateInteger(dtype, 0.9)).toBe(0);
    expect(saturateInteger(dtype, -0.9)).toBe(0);
    expect(clampBig(dtype, 1n << 70n)).toBe(max);
    expect(clampBig(dtype, -1n << 70n)).toBe(min);
  });
});

describe("64-bit integers", () => {
  it("wrap and saturate exactly", () => {
    expect(wrapBig("i64", 1n << 63n)).toBe(-(1n << 63n));
    expect(wrapBig("u64", -1n)).toBe((1n << 64n) - 1n);
    expect(saturateBig("i64", 2 ** 63)).toBe((1n << 63n) - 1n);
    expect(saturateBig("u64", -3.5)).toBe(0n);
    expect(saturateBig("i64", -3.5)).toBe(-3n);
    expect(saturateBig("i64", Number.NaN)).toBe(0n);
    expect(saturateBig("i64", 2 ** 53)).toBe(1n << 53n);
  });
});
