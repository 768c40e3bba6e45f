/**
 * Float operators on vector registers, for f32 and f64 lanes; a scalar is lane 0 of an xmm register and
 * is computed alike. Operators without a row are functions of the C library, lane by lane.
 */
import type { DType } from "../../semantics/dtype.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { holdingOf } from "./lanes.ts";
import { findMathRow } from "./math-rows.ts";
import type { Register } from "./operand.ts";
import type { VectorCode } from "./vector-code.ts";

type FloatOp = (c: VectorCode, operands: readonly Register[]) => Register;

/**
 * NaN if either is NaN: the hardware gives its second operand then, and a NaN in its first is put back. That is what
 * is folded in, not what it is folded into: the test for it is then no part of the chain of a fold.
 */
function extremum(kind: "minOrSecond" | "maxOrSecond"): FloatOp {
  return (c, [into, x]) => c.select(c.compare("unordered", x!, x!), x!, c[kind](x!, into!));
}

/** Of f32: the magnitude's bits, negative where the number is, as 32-bit integers; NaN above all. */
export function orderKey(c: VectorCode, x: Register): Register {
  const sign = c.sar(x, 31);
  const key = c.op("vpsubd", c.xor(c.abs(x), sign), sign);
  return c.select(c.compare("unordered", x, x), c.i32(0x7fffffff), key);
}

const rows: Partial<Record<ScalarOp, FloatOp>> = {
  add: (c, [a, b]) => c.add(a!, b!),
  sub: (c, [a, b]) => c.sub(a!, b!),
  mul: (c, [a, b]) => c.mul(a!, b!),
  div: (c, [a, b]) => c.div(a!, b!),
  sqrt: (c, [a]) => c.sqrt(a!),
  neg: (c, [a]) => c.neg(a!),
  abs: (c, [a]) => c.abs(a!),
  floor: (c, [a]) => c.rounded(a!, "floor"),
  ceil: (c, [a]) => c.rounded(a!, "ceil"),
  trunc: (c, [a]) => c.rounded(a!, "trunc"),
  round: (c, [a]) => c.rounded(a!, "round"),
  reciprocal: (c, [a]) => c.div(c.constant(1), a!),
  // Of a NaN and zero the hardware keeps the second, the NaN.
  relu: (c, [a]) => c.maxOrSecond(c.constant(0), a!),
  min: extremum("minOrSecond"),
  max: extremum("maxOrSecond"),
  /** NaN and zeros stay themselves. */
  sign: (c, [a]) => {
    const one = c.or(c.constant(1), c.and(a!, c.signs()));
    return c.select(c.compare("greater", c.abs(a!), c.constant(0)), one, a!);
  },
};

/** How to compute an operator whose result has the type of its operands; undefined: by the C library. */
export function findFloatOp(op: ScalarOp, dtype: DType): FloatOp | undefined {
  const row = rows[op];
  if (row) return row;
  const math = holdingOf(dtype) === "f32" ? findMathRow(op) : undefined;
  return math && ((c, [a]) => math.body(c, a!));
}
