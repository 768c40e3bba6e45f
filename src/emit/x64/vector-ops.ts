/**
 * Operators and conversions of vectors that have a spelling on whole registers. Everything else is done
 * lane by lane (value-emitter.ts).
 */
import type { Expr } from "../../program/statement.ts";
import type { DType } from "../../semantics/dtype.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { castSaturates } from "../../semantics/scalar-meaning.ts";
import { findFloatOp, orderKey } from "./float-ops.ts";
import { roundNarrow } from "./half-rows.ts";
import { holdingOf, isFloat, isNarrowFloat, isPacked, isUnsigned } from "./lanes.ts";
import type { Register } from "./operand.ts";
import type { Features, FloatPredicate, VectorCode } from "./vector-code.ts";

type VectorRow = (c: VectorCode, operands: readonly Register[]) => Register;

const comparisons: Partial<Record<ScalarOp, FloatPredicate & ("equal" | "less" | "lessEqual")>> = {
  ...{ equal: "equal", less: "less", lessEqual: "lessEqual" },
};

/** On lanes of all ones or zeros. */
const boolRows: Partial<Record<ScalarOp, VectorRow>> = {
  ...sameRow(["and", "bitAnd", "mul", "min"], (c, [a, b]) => c.and(a!, b!)),
  ...sameRow(["or", "bitOr", "add", "max"], (c, [a, b]) => c.or(a!, b!)),
  ...sameRow(["xor", "bitXor"], (c, [a, b]) => c.xor(a!, b!)),
  ...sameRow(["not", "bitNot"], (c, [a]) => c.xor(a!, c.i32(-1))),
  equal: (c, [a, b]) => c.xor(c.xor(a!, b!), c.i32(-1)),
  less: (c, [a, b]) => c.without(a!, b!),
  lessEqual: (c, [a, b]) => c.or(c.xor(a!, c.i32(-1)), b!),
};

function sameRow(ops: readonly ScalarOp[], row: VectorRow): Partial<Record<ScalarOp, VectorRow>> {
  return Object.fromEntries(ops.map((op) => [op, row]));
}

/** Lanes of 16 bits wrap like these. */
const wordRows: Partial<Record<ScalarOp, VectorRow>> = {
  add: (c, [a, b]) => c.op("vpaddw", a!, b!),
  sub: (c, [a, b]) => c.op("vpsubw", a!, b!),
};

function integerRow(op: ScalarOp, unsigned: boolean): VectorRow | undefined {
  const sign = unsigned ? "ud" : "sd";
  const rows: Partial<Record<ScalarOp, VectorRow>> = {
    add: (c, [a, b]) => c.op("vpaddd", a!, b!),
    sub: (c, [a, b]) => c.op("vpsubd", a!, b!),
    mul: (c, [a, b]) => c.op("vpmulld", a!, b!),
    neg: (c, [a]) => c.op("vpsubd", c.i32(0), a!),
    min: (c, [a, b]) => c.op(`vpmin${sign}`, a!, b!),
    max: (c, [a, b]) => c.op(`vpmax${sign}`, a!, b!),
    abs: (c, [a]) => (unsigned ? a! : c.op("vpabsd", a!)),
    relu: (c, [a]) => (unsigned ? a! : c.op("vpmaxsd", a!, c.i32(0))),
    bitAnd: (c, [a, b]) => c.and(a!, b!),
    bitOr: (c, [a, b]) => c.or(a!, b!),
    bitXor: (c, [a, b]) => c.xor(a!, b!),
    bitNot: (c, [a]) => c.xor(a!, c.i32(-1)),
    shiftLeft: (c, [a, b]) => c.op("vpsllvd", a!, b!),
    ...sameRow(["floor", "ceil", "round", "trunc"], (_, [a]) => a!),
    ...(unsigned && { shiftRight: (c, [a, b]) => c.op("vpsrlvd", a!, b!) }),
  };
  return rows[op];
}

/** How to compute one chunk of an operator from its operands' chunks; undefined: lane by lane. */
export function findVectorApply(e: Extract<Expr, { kind: "apply" }>): VectorRow | undefined {
  const { op } = e;
  const dtype = op === "select" ? e.dtype : e.operands[0]!.dtype;
  const holding = holdingOf(dtype);
  if (op === "select") {
    if (holding !== "f32" && holding !== "i32") return undefined;
    return (c, [mask, then, otherwise]) => c.select(c.maskOf(mask!), then!, otherwise!);
  }
  if (dtype === "bool") return boolRows[op];
  const comparison = comparisons[op];
  if (comparison !== undefined) return compareRow(comparison, dtype);
  if (holding === "i32") return isPacked(dtype) ? undefined : integerRow(op, isUnsigned(dtype));
  if (holding === "i16") return wordRows[op];
  if (!isFloat(dtype)) return undefined;
  if (op === "isNan") {
    return holding === "f32" ? (c, [a]) => c.lanesOf(c.compare("unordered", a!, a!)) : undefined;
  }
  if (op === "orderKey") return (c, [a]) => orderKey(c, a!);
  const row = extremumWithNumber(e) ?? findFloatOp(op, dtype);
  if (!row || !isNarrowFloat(dtype)) return row;
  return (c, operands) => roundNarrow(c, dtype, row(c, operands));
}

/** The least or greatest of a value and a number: of a NaN and the number before it the NaN is kept. */
function extremumWithNumber({
  op,
  operands,
}: Extract<Expr, { kind: "apply" }>): VectorRow | undefined {
  if (op !== "min" && op !== "max") return undefined;
  const number = operands.findIndex((o) => o.kind === "literal" && !Number.isNaN(o.value));
  if (number < 0) return undefined;
  const kind = op === "min" ? "minOrSecond" : "maxOrSecond";
  return (c, [a, b]) => (number === 0 ? c[kind](a!, b!) : c[kind](b!, a!));
}

function compareRow(op: "equal" | "less" | "lessEqual", dtype: DType): VectorRow | undefined {
  const holding = holdingOf(dtype);
  if (holding === "f32") return (c, [a, b]) => c.lanesOf(c.compare(op, a!, b!));
  if (holding !== "i32") return undefined;
  return (c, [a, b]) => c.lanesOf(c.compareIntegers(op, a!, b!, isUnsigned(dtype)));
}

/** How to convert one chunk between 32-bit lanes; undefined: lane by lane. */
export function findVectorCast(
  from: DType,
  to: DType,
  saturate: boolean,
  features: Features,
): ((c: VectorCode, x: Register) => Register) | undefined {
  const [source, target] = [holdingOf(from), holdingOf(to)];
  if ((source !== "f32" && source !== "i32") || (target !== "f32" && target !== "i32")) {
    return undefined;
  }
  if (isPacked(to) && target === "i32") return undefined;
  if (to === "e8m0" && source === "i32") return undefined;
  const plain = plainCast(from, to, saturate, features);
  if (!plain || !isNarrowFloat(to)) return plain;
  const saturates = saturate && castSaturates(to);
  return (c, x) => roundNarrow(c, to, plain(c, x), saturates);
}

function plainCast(
  from: DType,
  to: DType,
  saturate: boolean,
  { evex }: Features,
): ((c: VectorCode, x: Register) => Register) | undefined {
  const [fromFloat, toFloat] = [isFloat(from), isFloat(to)];
  if (fromFloat && toFloat) return (_, x) => x;
  if (to === "bool") {
    if (fromFloat) return (c, x) => c.lanesOf(c.compare("notEqual", x, c.constant(0)));
    return (c, x) => c.lanesOf(c.compareIntegers("notEqual", x, c.i32(0), false));
  }
  if (from === "bool") return (c, x) => c.and(x, toFloat ? c.constant(1) : c.i32(1));
  if (toFloat) {
    if (isUnsigned(from) && !isPacked(from))
      return evex ? (c, x) => c.op("vcvtudq2ps", x) : undefined;
    return (c, x) => c.op("vcvtdq2ps", x);
  }
  if (!fromFloat) return from === to || !saturate ? (_, x) => x : undefined;
  if (!saturate) return undefined;
  if (!isUnsigned(to)) return saturateToSigned;
  // Negative values and NaN become zero, what is too large all ones.
  return evex ? (c, x) => c.op("vcvttps2udq", c.maxOrSecond(x, c.constant(0))) : undefined;
}

/** The hardware gives the lowest integer for what is out of range or NaN. */
function saturateToSigned(c: VectorCode, x: Register): Register {
  const plain = c.op("vcvttps2dq", x);
  const high = c.compare("greaterEqual", x, c.constant(2 ** 31));
  const capped = c.select(high, c.i32(0x7fffffff), plain);
  return c.select(c.compare("unordered", x, x), c.i32(0), capped);
}

/** Dot products of bytes, or of integers or floats of 16 bits, whose operands fill registers of one size. */
export function isDot({ intrinsic }: Extract<Expr, { kind: "call" }>): boolean {
  return ["vpdpbusd.", "vpdpwssd.", "vdpbf16ps."].some((name) => intrinsic.startsWith(name));
}
