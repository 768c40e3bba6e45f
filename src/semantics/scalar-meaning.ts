/**
 * What the scalar operators compute. Floats: the float64 function, then one rounding to the dtype.
 * Integers: two's complement of the dtype's width, exact (i64 and u64 on BigInts). bool: 0 and 1.
 * The elementwise references, the interpreters and constant folding all take their meaning from
 * here. An integer division or remainder by zero gives zero; a shift by the width or more gives what
 * shifting one bit at a time would.
 */
import { invariant } from "../support/invariant.ts";
import { type DType, dtypes, isBigDType } from "./dtype.ts";
import { erf } from "./erf.ts";
import { decodeFloat, encodeFloat, roundHalfEven, roundToFloat } from "./float-codec.ts";
import { evaluate } from "./index-expr.ts";
import { clampBig, saturateBig, saturateInteger, wrapBig, wrapInteger } from "./integer.ts";
import type { ScalarExpr, ScalarOp } from "./scalar-expr.ts";

/** A value of any dtype: BigInt for i64 and u64, number for the rest. */
export type ScalarValue = number | bigint;

type NumberMeaning = (a: number, b: number, c: number) => number;
type BigMeaning = (a: bigint, b: bigint, c: bigint) => bigint;

function floorMod(a: number, b: number): number {
  const remainder = a % b;
  return remainder !== 0 && remainder < 0 !== b < 0 ? remainder + b : remainder;
}

const word = new DataView(new ArrayBuffer(4));

/** The magnitude's bits, negative where the number is. */
function orderKey(a: number): number {
  if (Number.isNaN(a)) return 2 ** 31 - 1;
  word.setFloat32(0, Math.abs(a));
  const magnitude = word.getInt32(0);
  return a < 0 ? -magnitude : magnitude;
}

/** Meanings on float64; predicates give 0 or 1. Bit operators exist on integers alone. */
const numberMeanings = {
  neg: (a) => -a,
  abs: Math.abs,
  sign: Math.sign,
  floor: Math.floor,
  ceil: Math.ceil,
  round: roundHalfEven,
  trunc: Math.trunc,
  exp: Math.exp,
  log: Math.log,
  sqrt: Math.sqrt,
  reciprocal: (a) => 1 / a,
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  asin: Math.asin,
  acos: Math.acos,
  atan: Math.atan,
  sinh: Math.sinh,
  cosh: Math.cosh,
  tanh: Math.tanh,
  asinh: Math.asinh,
  acosh: Math.acosh,
  atanh: Math.atanh,
  erf,
  sigmoid: (a) => 1 / (1 + Math.exp(-a)),
  relu: (a) => Math.max(a, 0),
  not: (a) => (a === 0 ? 1 : 0),
  isNan: (a) => (Number.isNaN(a) ? 1 : 0),
  orderKey,
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  mod: (a, b) => a % b,
  floorMod,
  pow: (a, b) => (a === 1 ? 1 : a ** b),
  min: (a, b) => Math.min(a, b),
  max: (a, b) => Math.max(a, b),
  atan2: Math.atan2,
  equal: (a, b) => (a === b ? 1 : 0),
  less: (a, b) => (a < b ? 1 : 0),
  lessEqual: (a, b) => (a <= b ? 1 : 0),
  and: (a, b) => (a !== 0 && b !== 0 ? 1 : 0),
  or: (a, b) => (a !== 0 || b !== 0 ? 1 : 0),
  xor: (a, b) => ((a !== 0) !== (b !== 0) ? 1 : 0),
  select: (a, b, c) => (a !== 0 ? b : c),
} satisfies Partial<Record<ScalarOp, NumberMeaning>>;

/**
 * base^exponent modulo 2^32; a negative exponent truncates the fraction, one beyond every integer of 32
 * bits (infinity too) counts as 2^32.
 */
function integerPower(base: number, exponent: number): number {
  if (exponent < 0) return base === 1 || base === -1 ? base ** (exponent & 1) : 0;
  let result = 1;
  let square = base;
  for (let left = Math.min(exponent, 2 ** 32); left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = Math.imul(result, square);
    square = Math.imul(square, square);
  }
  return result;
}

/** Where integers of at most 32 bits differ from floats; results are wrapped by the caller. */
const integerMeanings: Partial<Record<ScalarOp, NumberMeaning>> = {
  bitNot: (a) => ~a,
  mul: (a, b) => Math.imul(a, b),
  div: (a, b) => (b === 0 ? 0 : Math.trunc(a / b)),
  mod: (a, b) => (b === 0 ? 0 : a % b),
  floorMod: (a, b) => (b === 0 ? 0 : floorMod(a, b)),
  reciprocal: (a) => (a === 0 ? 0 : Math.trunc(1 / a)),
  pow: integerPower,
  bitAnd: (a, b) => a & b,
  bitOr: (a, b) => a | b,
  bitXor: (a, b) => a ^ b,
  shiftLeft: (a, b) => (b >= 32 || b < 0 ? 0 : a << b),
  // A signed value shifts in its sign, an unsigned one is non-negative: floor covers both.
  shiftRight: (a, b) => (b < 0 ? 0 : Math.floor(a / 2 ** Math.min(b, 63))),
};

function bigPower(base: bigint, exponent: bigint): bigint {
  if (exponent < 0n) {
    if (base === 1n) return 1n;
    return base === -1n ? (exponent % 2n === 0n ? 1n : -1n) : 0n;
  }
  let result = 1n;
  let square = base;
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = BigInt.asUintN(64, result * square);
    square = BigInt.asUintN(64, square * square);
  }
  return result;
}

const bigOfBoolean = (value: boolean): bigint => (value ? 1n : 0n);

/** Meanings on BigInts; predicates give 0n or 1n. */
const bigMeanings: Partial<Record<ScalarOp, BigMeaning>> = {
  neg: (a) => -a,
  abs: (a) => (a < 0n ? -a : a),
  sign: (a) => (a > 0n ? 1n : a < 0n ? -1n : 0n),
  floor: (a) => a,
  ceil: (a) => a,
  round: (a) => a,
  trunc: (a) => a,
  reciprocal: (a) => (a === 0n ? 0n : 1n / a),
  relu: (a) => (a > 0n ? a : 0n),
  bitNot: (a) => ~a,
  isNan: () => 0n,
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => (b === 0n ? 0n : a / b),
  mod: (a, b) => (b === 0n ? 0n : a % b),
  floorMod: (a, b) => {
    if (b === 0n) return 0n;
    const remainder = a % b;
    return remainder !== 0n && remainder < 0n !== b < 0n ? remainder + b : remainder;
  },
  pow: bigPower,
  // biome-ignore lint/complexity/useMathMinMax: Math.min takes no BigInts
  min: (a, b) => (a < b ? a : b),
  // biome-ignore lint/complexity/useMathMinMax: Math.max takes no BigInts
  max: (a, b) => (a > b ? a : b),
  equal: (a, b) => bigOfBoolean(a === b),
  less: (a, b) => bigOfBoolean(a < b),
  lessEqual: (a, b) => bigOfBoolean(a <= b),
  bitAnd: (a, b) => a & b,
  bitOr: (a, b) => a | b,
  bitXor: (a, b) => a ^ b,
  shiftLeft: (a, b) => (b >= 64n || b < 0n ? 0n : a << b),
  shiftRight: (a, b) => (b < 0n ? 0n : a >> (b > 64n ? 64n : b)),
};

/** The unrounded meaning of an operator on a dtype of numbers. */
export function numberMeaningOf(op: ScalarOp, dtype: DType): NumberMeaning {
  const kind = dtypes[dtype].kind;
  const integer = kind === "int" || kind === "uint" ? integerMeanings[op] : undefined;
  const meaning = integer ?? (numberMeanings as Partial<Record<ScalarOp, NumberMeaning>>)[op];
  invariant(meaning, () => `${op} has no meaning on ${dtype}`);
  return meaning;
}

/** The unwrapped meaning of an operator on i64 or u64. */
export function bigMeaningOf(op: ScalarOp, dtype: DType): BigMeaning {
  const meaning = bigMeanings[op];
  invariant(meaning, () => `${op} has no meaning on ${dtype}`);
  return meaning;
}

/** A number brought onto the dtype's grid: floats rounded, integers wrapped, bool made 0 or 1. */
export function roundNumber(dtype: DType, x: number): number {
  switch (dtypes[dtype].kind) {
    case "float":
      return roundToFloat(dtype, x);
    case "exponent":
      return decodeFloat(dtype, encodeFloat(dtype, x));
    case "bool":
      return x !== 0 ? 1 : 0;
    default:
      return wrapInteger(dtype, Math.trunc(x));
  }
}

/** Whether `saturate` of a cast to this dtype has an effect: integers and floats below 16 bits. */
export function castSaturates(to: DType): boolean {
  const { bits, kind } = dtypes[to];
  return kind === "int" || kind === "uint" || (kind !== "bool" && bits <= 8);
}

/**
 * A conversion between any two dtypes. To integers: truncation toward zero, then clamping when
 * `saturate`, else wrapping (infinities and NaN become 0). To floats below 16 bits: overflow becomes
 * the largest finite value when `saturate`; wider floats always overflow to infinity. To bool: x != 0.
 */
export function castScalar(value: ScalarValue, to: DType, saturate: boolean): ScalarValue {
  if (to === "bool") return value === 0 || value === 0n ? 0 : 1;
  if (typeof value === "bigint") return castBig(value, to, saturate);
  if (isBigDType(to)) {
    if (saturate) return saturateBig(to, value);
    return Number.isFinite(value) ? wrapBig(to, BigInt(Math.trunc(value))) : 0n;
  }
  const { kind } = dtypes[to];
  if (kind === "int" || kind === "uint") {
    return saturate ? saturateInteger(to, value) : wrapInteger(to, Math.trunc(value));
  }
  return roundToFloat(to, value, saturate && castSaturates(to) ? "saturate" : "special");
}

function castBig(value: bigint, to: DType, saturate: boolean): ScalarValue {
  const { kind, bits } = dtypes[to];
  if (kind === "int" || kind === "uint") {
    if (isBigDType(to)) return saturate ? clampBig(to, value) : wrapBig(to, value);
    if (saturate) return Number(clampBig(to, value));
    return Number(kind === "int" ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value));
  }
  if (to === "f64") return Number(value);
  return roundToFloat(
    to,
    oddRounded(value),
    saturate && castSaturates(to) ? "saturate" : "special",
  );
}

/**
 * A 64-bit integer as a float64 rounded to odd, so that a second rounding to a narrower format is
 * the correct one (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums").
 */
function oddRounded(value: bigint): number {
  const magnitude = value < 0n ? -value : value;
  if (magnitude < 1n << 53n) return Number(value);
  const sticky = (magnitude & 0x7ffn) !== 0n ? 1n : 0n;
  const rounded = Number((magnitude >> 11n) | sticky) * 2048;
  return value < 0n ? -rounded : rounded;
}

type CompiledScalar = (
  args: readonly ScalarValue[],
  bindings: ReadonlyMap<string, number>,
) => ScalarValue;

/** Turns an expression into a function of its arguments and the iteration's index variables. */
export function compileScalar(expr: ScalarExpr): CompiledScalar {
  switch (expr.kind) {
    case "literal": {
      const value = castScalar(expr.value, expr.dtype, false);
      return () => value;
    }
    case "argument":
      return (args) => args[expr.index]!;
    case "index":
      return (_, bindings) => castScalar(evaluate(expr.expr, bindings), expr.dtype, false);
    case "cast": {
      const operand = compileScalar(expr.operand);
      return (args, bindings) => castScalar(operand(args, bindings), expr.dtype, expr.saturate);
    }
    case "apply":
      return compileApply(expr);
  }
}

function compileApply(expr: Extract<ScalarExpr, { kind: "apply" }>): CompiledScalar {
  const [a, b, c] = expr.operands.map(compileScalar);
  const { op, dtype } = expr;
  const none: CompiledScalar = () => 0;
  const [first, second, third] = [a ?? none, b ?? none, c ?? none];
  if (op === "select") {
    return (args, at) => (first(args, at) ? second(args, at) : third(args, at));
  }
  const operandType = expr.operands[0]!.dtype;
  if (isBigDType(operandType)) {
    const meaning = bigMeaningOf(op, operandType);
    const run = (args: readonly ScalarValue[], at: ReadonlyMap<string, number>) =>
      meaning(first(args, at) as bigint, second(args, at) as bigint, 0n);
    if (dtype === "bool") return (args, at) => Number(run(args, at));
    return (args, at) => wrapBig(dtype, run(args, at));
  }
  const meaning = numberMeaningOf(op, operandType);
  return (args, at) =>
    roundNumber(dtype, meaning(first(args, at) as number, second(args, at) as number, 0));
}

const noBindings: ReadonlyMap<string, number> = new Map();

/** The value of an expression under arguments and index variables. */
export function evaluateScalar(
  expr: ScalarExpr,
  args: readonly ScalarValue[],
  bindings: ReadonlyMap<string, number> = noBindings,
): ScalarValue {
  return compileScalar(expr)(args, bindings);
}
