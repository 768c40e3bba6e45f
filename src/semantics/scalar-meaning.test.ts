import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DType } from "./dtype.ts";
import { erf } from "./erf.ts";
import { variable } from "./index-expr.ts";
import {
  apply,
  argument,
  cast,
  indexValue,
  literal,
  type ScalarOp,
  scalarOps,
} from "./scalar-expr.ts";
import { castScalar, evaluateScalar, numberMeaningOf, type ScalarValue } from "./scalar-meaning.ts";

function run(op: ScalarOp, dtype: DType, ...values: ScalarValue[]): ScalarValue {
  return evaluateScalar(apply(op, ...values.map((_, i) => argument(i, dtype))), values);
}

describe("erf", () => {
  // NIST Digital Library of Mathematical Functions, table 7.23 and high-precision evaluation.
  it.each([
    [0, 0],
    [0.5, 0.5204998778130465],
    [1, 0.8427007929497149],
    [2, 0.9953222650189527],
    [2.5, 0.999593047982555],
    [3, 0.9999779095030014],
    [-1, -0.8427007929497149],
    [10, 1],
  ])("erf(%d)", (x, expected) => {
    expect(Math.abs(erf(x) - expected)).toBeLessThan(3e-16);
  });

  it("is continuous where the method changes, and odd", () => {
    expect(Math.abs(erf(2.5) - erf(2.4999999999999996))).toBeLessThan(1e-15);
    expect(erf(-0.3)).toBe(-erf(0.3));
    expect(erf(Number.NaN)).toBeNaN();
  });
});

describe("integer operators", () => {
  it("agree with exact arithmetic modulo the width", () => {
    const ops: [ScalarOp, (a: bigint, b: bigint) => bigint][] = [
      ["add", (a, b) => a + b],
      ["sub", (a, b) => a - b],
      ["mul", (a, b) => a * b],
      ["div", (a, b) => (b === 0n ? 0n : a / b)],
      ["mod", (a, b) => (b === 0n ? 0n : a % b)],
      ["bitAnd", (a, b) => a & b],
      ["bitOr", (a, b) => a | b],
      ["bitXor", (a, b) => a ^ b],
    ];
    const word = fc.oneof(fc.integer(), fc.constantFrom(0, 1, -1, 2 ** 31 - 1, -(2 ** 31)));
    fc.assert(
      fc.property(word, word, (a, b) => {
        for (const [op, judge] of ops) {
          const signed = judge(BigInt(a), BigInt(b));
          expect(run(op, "i32", a, b)).toBe(Number(BigInt.asIntN(32, signed)));
          expect(run(op, "i64", BigInt(a), BigInt(b))).toBe(BigInt.asIntN(64, signed));
          const [ua, ub] = [a >>> 0, b >>> 0];
          const unsigned = judge(BigInt(ua), BigInt(ub));
          expect(run(op, "u32", ua, ub)).toBe(Number(BigInt.asUintN(32, unsigned)));
        }
      }),
    );
  });

  it.each([
    ["div", "i32", -(2 ** 31), -1, -(2 ** 31)],
    ["floorMod", "i32", -7, 3, 2],
    ["floorMod", "i32", 7, -3, -2],
    ["mod", "i32", -7, 3, -1],
    ["pow", "i32", 3, 21, 1870418611],
    ["pow", "i32", -1, -3, -1],
    ["pow", "i32", 2, -1, 0],
    ["pow", "i32", 2, Number.POSITIVE_INFINITY, 0],
    ["pow", "i32", 1, Number.POSITIVE_INFINITY, 1],
    ["shiftLeft", "u8", 0x81, 1, 2],
    ["shiftLeft", "u32", 1, 32, 0],
    ["shiftRight", "i8", -5, 1, -3],
    ["shiftRight", "i8", -5, 40, -1],
    ["shiftRight", "u32", 2 ** 31, 31, 1],
    ["abs", "i8", -128, 0, -128],
    ["add", "u4", 15, 2, 1],
  ] as const)("%s on %s", (op, dtype, a, b, expected) => {
    const operands = scalarOps[op].arity === 1 ? [a] : [a, b];
    expect(run(op, dtype, ...operands)).toBe(expected);
  });

  it("do 64 bits exactly", () => {
    expect(run("mul", "i64", 3037000500n, 3037000500n)).toBe(-9223372036709301616n);
    expect(run("floorMod", "i64", -7n, 3n)).toBe(2n);
    expect(run("pow", "u64", 3n, 41n)).toBe(BigInt.asUintN(64, 3n ** 41n));
    expect(run("shiftRight", "i64", -1n, 99n)).toBe(-1n);
    expect(run("less", "i64", 2n ** 62n, 2n ** 62n + 1n)).toBe(1);
  });
});

describe("float operators", () => {
  it("round once to the dtype", () => {
    expect(run("add", "bf16", 256, 1)).toBe(256);
    expect(run("mul", "f16", 60000, 2)).toBe(Infinity);
    expect(run("add", "f32", 2 ** 24, 1)).toBe(2 ** 24);
    expect(run("div", "f32", 1, 3)).toBe(Math.fround(1 / 3));
  });

  it.each([
    ["max", Number.NaN, 1, Number.NaN],
    ["relu", Number.NaN, 0, Number.NaN],
    ["relu", -0, 0, 0],
    ["pow", 1, Number.NaN, 1],
    ["round", 2.5, 0, 2],
    ["mod", -5.5, 2, -1.5],
    ["floorMod", -5.5, 2, 0.5],
    ["sign", -0.1, 0, -1],
    ["and", 1, 0, 0],
  ] as const)("%s", (op, a, b, expected) => {
    expect(numberMeaningOf(op, "f64")(a, b, 0)).toBe(expected);
  });

  it("has a meaning for every operator", () => {
    for (const op of Object.keys(scalarOps) as ScalarOp[]) {
      const dtype = op.startsWith("bit") || op.startsWith("shift") ? "i32" : "f64";
      expect(numberMeaningOf(op, dtype)).toBeTypeOf("function");
    }
  });
});

describe("castScalar", () => {
  it.each([
    [300.7, "i8", true, 127],
    [300.7, "i8", false, 44],
    [-1, "u8", false, 255],
    [Number.NaN, "i32", true, 0],
    [-3.99, "i32", false, -3],
    [1e6, "f16", true, Infinity],
    [1e6, "f8e4m3fn", true, 448],
    [2, "bool", false, 1],
    [Number.NaN, "bool", false, 1],
    [2 ** 63, "i64", true, 2n ** 63n - 1n],
    [2n ** 40n + 3n, "i16", false, 3],
    [-1n, "u64", false, 2n ** 64n - 1n],
    [-1n, "u64", true, 0n],
  ] as const)("%d to %s", (value, to, saturate, expected) => {
    expect(castScalar(value, to, saturate)).toBe(expected);
  });

  it("rounds 64-bit integers to f32 once", () => {
    // Just above the tie 2^60 + 2^36: float64 would drop the low bit and tie to even.
    expect(castScalar(2n ** 60n + 2n ** 36n + 1n, "f32", false)).toBe(2 ** 60 + 2 ** 37);
    expect(castScalar(-(2n ** 60n) - 2n ** 36n, "f32", false)).toBe(-(2 ** 60));
  });
});

describe("evaluateScalar", () => {
  it("selects, casts and reads index variables", () => {
    const position = indexValue(variable("i"), "i32");
    const masked = apply(
      "select",
      apply("less", position, literal(3, "i32")),
      argument(0, "f32"),
      cast(position, "f32", false),
    );
    expect(evaluateScalar(masked, [7], new Map([["i", 2]]))).toBe(7);
    expect(evaluateScalar(masked, [7], new Map([["i", 5]]))).toBe(5);
  });
});
