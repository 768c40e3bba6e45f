/**
 * Rows of the value intrinsics: fused multiply-adds, a quick power of two, and the dot products of small integers and bf16,
 * at the lane counts that machines have. The capability of a row is its own name, so that a target
 * lists what it executes. Meanings: Intel SDM (VPDPBUSD, VPMADDWD, VDPBF16PS), Arm ARM (SDOT),
 * WebAssembly relaxed SIMD (relaxed_madd, relaxed_dot).
 */
import type { DType } from "../semantics/dtype.ts";
import { apply, argument, cast, literal, type ScalarExpr } from "../semantics/scalar-expr.ts";
import type { ValueIntrinsic } from "./intrinsics.ts";

function laneSuffix(dtype: DType, lanes: number): string {
  return lanes === 1 ? dtype : `${dtype}x${lanes}`;
}

/** d[l] = a[l] * b[l] + c[l], rounded once. */
function fma(dtype: DType, lanes: number): ValueIntrinsic {
  const [a, b, c] = [0, 1, 2].map((i) => argument(i, dtype)) as [
    ScalarExpr,
    ScalarExpr,
    ScalarExpr,
  ];
  const name = `fma.${laneSuffix(dtype, lanes)}`;
  return {
    kind: "value",
    name,
    needs: name,
    operands: [dtype, dtype, dtype],
    ratios: [1, 1, 1],
    result: dtype,
    lanes,
    body: apply("add", apply("mul", a, b), c),
    fused: true,
  };
}

interface DotRow {
  readonly name: string;
  readonly left: DType;
  readonly right: DType;
  readonly result: DType;
  readonly terms: number;
}

/** d[l] = c[l] + sum over q < terms of a[terms l + q] * b[terms l + q]; operands (c, a, b). */
function dot(row: DotRow, lanes: number): ValueIntrinsic {
  const name = `${row.name}.${laneSuffix(row.result, lanes)}`;
  let body: ScalarExpr = argument(0, row.result);
  for (let q = 0; q < row.terms; q++) {
    const a = cast(argument(1 + q, row.left), row.result, false);
    const b = cast(argument(1 + row.terms + q, row.right), row.result, false);
    body = apply("add", body, apply("mul", a, b));
  }
  return {
    kind: "value",
    name,
    needs: name,
    operands: [row.result, row.left, row.right],
    ratios: [1, row.terms, row.terms],
    result: row.result,
    lanes,
    body,
    fused: false,
  };
}

const vpdpbusd: DotRow = { name: "vpdpbusd", left: "u8", right: "i8", result: "i32", terms: 4 };
const sdot: DotRow = { name: "sdot", left: "i8", right: "i8", result: "i32", terms: 4 };
const vpdpwssd: DotRow = { name: "vpdpwssd", left: "i16", right: "i16", result: "i32", terms: 2 };
const vdpbf16ps: DotRow = {
  name: "vdpbf16ps",
  left: "bf16",
  right: "bf16",
  result: "f32",
  terms: 2,
};

/** 2^x to 22 bits, what is too small to be normal as zero (PTX ISA, "ex2.approx.ftz.f32"). */
const exp2: ValueIntrinsic = {
  kind: "value",
  name: "exp2.f32",
  needs: "exp2.f32",
  operands: ["f32"],
  ratios: [1],
  result: "f32",
  lanes: 1,
  body: apply("exp", apply("mul", argument(0, "f32"), literal(Math.LN2, "f32"))),
  fused: false,
};

export const valueRows: readonly ValueIntrinsic[] = [
  ...[1, 2, 4, 8, 16].map((lanes) => fma("f32", lanes)),
  ...[1, 2, 4, 8].map((lanes) => fma("f64", lanes)),
  ...[4, 8, 16].map((lanes) => dot(vpdpbusd, lanes)),
  ...[4, 8, 16].map((lanes) => dot(vpdpwssd, lanes)),
  ...[4, 8, 16].map((lanes) => dot(vdpbf16ps, lanes)),
  dot(sdot, 4),
  exp2,
];
