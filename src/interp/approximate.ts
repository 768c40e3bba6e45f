/**
 * Scalar expressions with a bound on how far a program may be from the oracle's value through rounding
 * alone. Running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 3.3): every
 * operation adds its own rounding to what the errors of its operands do to its result, and that is
 * found by evaluating the operation at the ends of each operand's interval, so that branches,
 * conversions to integers and cancellation need no rules of their own.
 */
import { type DType, dtypes, isBigDType, isFloatDType } from "../semantics/dtype.ts";
import { wrapBig } from "../semantics/integer.ts";
import type { ScalarExpr, ScalarOp } from "../semantics/scalar-expr.ts";
import {
  bigMeaningOf,
  castScalar,
  compileScalar,
  numberMeaningOf,
  roundNumber,
  type ScalarValue,
} from "../semantics/scalar-meaning.ts";

/** A value, and how far another order of evaluation in its type may lie from it. */
export interface Approximate {
  readonly value: ScalarValue;
  readonly error: number;
}

export type ApproximateFunction = (
  args: readonly Approximate[],
  point: ReadonlyMap<string, number>,
) => Approximate;

/** Operations whose result is a float that needs no rounding when its operands are floats. */
const unrounded: ReadonlySet<ScalarOp> = new Set<ScalarOp>([
  ...(["neg", "abs", "sign", "floor", "ceil", "round", "trunc", "relu"] as const),
  ...(["min", "max", "select", "not", "isNan", "orderKey"] as const),
]);

/** Operations that IEEE 754 rounds correctly: the program's rounding and the oracle's differ by one. */
const correctlyRounded: ReadonlySet<ScalarOp> = new Set<ScalarOp>([
  ...(["add", "sub", "mul", "div", "sqrt", "reciprocal", "mod"] as const),
]);

/** Roundings of a function that programs approximate: emitters promise 4 units in the last place. */
const approximatedRoundings = 5;

/** Roundings of its result that an operation counts. */
export function roundingsOf(op: ScalarOp): number {
  if (unrounded.has(op)) return 0;
  return correctlyRounded.has(op) ? 1 : approximatedRoundings;
}

/** Exponents from that of f32 on: programs count what is below the normal numbers as zero, the oracle keeps it. */
const flushedBias = 127;

/** Spacing of a float type's values at 1, and the smallest positive one that programs keep; 0 where values are exact. */
export function spacingOf(dtype: DType): { readonly relative: number; readonly least: number } {
  const { format, kind } = dtypes[dtype];
  if (kind !== "float" || !format) return { relative: 0, least: 0 };
  const { mantissaBits, bias } = format;
  const least = 2 ** (1 - bias - (bias >= flushedBias ? 0 : mantissaBits));
  return { relative: 2 ** -mantissaBits, least };
}

/** The error of one rounding of a value to a type, by program and oracle together. */
export function roundingOf(dtype: DType, value: ScalarValue): number {
  const { relative, least } = spacingOf(dtype);
  const size = Math.abs(Number(value));
  return Number.isFinite(size) && relative > 0 ? size * relative + least : 0;
}

/**
 * An expression as a function of arguments with errors. A step of a fold (`fold`) keeps its value in
 * float64, like the oracle, and counts the rounding of a sum by the size of its terms, because programs
 * may add them in another order.
 */
export function compileApproximate(expr: ScalarExpr, fold = false): ApproximateFunction {
  switch (expr.kind) {
    case "argument":
      return (args) => args[expr.index]!;
    case "literal":
    case "index": {
      const exact = compileScalar(expr);
      return (_, point) => ({ value: exact([], point), error: 0 });
    }
    case "cast": {
      const { dtype, saturate } = expr;
      const operand = compileApproximate(expr.operand, fold);
      const from = expr.operand.dtype;
      const to = fold && isFloatDType(dtype) ? "f64" : dtype;
      const convert = ([x]: readonly ScalarValue[]) => castScalar(x!, to, saturate);
      const rounds = spacingOf(dtype).relative > spacingOf(from).relative || isInteger(from);
      return (args, point) => {
        const x = operand(args, point);
        const value = convert([x.value]);
        const own = rounds ? roundingOf(dtype, value) : 0;
        return { value, error: own + spread(convert, [x], [from], value) };
      };
    }
    case "apply":
      return compileApply(expr, fold);
  }
}

function compileApply(
  expr: Extract<ScalarExpr, { kind: "apply" }>,
  fold: boolean,
): ApproximateFunction {
  const operands = expr.operands.map((e) => compileApproximate(e, fold));
  const types = expr.operands.map((o) => o.dtype);
  const { op, dtype } = expr;
  const meaning = meaningOf(op, types, fold && isFloatDType(dtype) ? "f64" : dtype);
  const reorders = fold && (op === "add" || op === "sub");
  const roundings = roundingsOf(op);
  return (args, point) => {
    const given = operands.map((operand) => operand(args, point));
    const value = meaning(given.map((x) => x.value));
    const size = reorders ? sizeOf(given) : value;
    const own = roundings * roundingOf(dtype, size) + errorsTogether(op, given);
    return { value, error: own + spread(meaning, given, types, value) };
  };
}

function sizeOf(given: readonly Approximate[]): number {
  return given.reduce((sum, { value }) => sum + Math.abs(Number(value)), 0);
}

type Meaning = (values: readonly ScalarValue[]) => ScalarValue;

function meaningOf(op: ScalarOp, types: readonly DType[], dtype: DType): Meaning {
  if (op === "select") return ([c, a, b]) => (c ? a! : b!);
  const type = types[0]!;
  if (isBigDType(type)) {
    const big = bigMeaningOf(op, type);
    const finish = dtype === "bool" ? Number : (x: bigint) => wrapBig(dtype, x);
    return ([a, b]) => finish(big(a as bigint, (b ?? 0n) as bigint, 0n));
  }
  const number = numberMeaningOf(op, type);
  return ([a, b]) => roundNumber(dtype, number(a as number, (b ?? 0) as number, 0));
}

/** What is left of a product where one operand, or both, are no larger than their errors. */
function errorsTogether(op: ScalarOp, given: readonly Approximate[]): number {
  const [a, b] = given;
  return op === "mul" && b && a!.error !== 0 && b.error !== 0 ? a!.error * b.error : 0;
}

/** How far the result moves when each operand moves to the ends of its interval. */
function spread(
  meaning: Meaning,
  given: readonly Approximate[],
  types: readonly DType[],
  value: ScalarValue,
): number {
  let total = 0;
  for (const [i, { error }] of given.entries()) {
    if (error === 0) continue;
    const values = given.map((x) => x.value);
    let most = 0;
    for (const moved of endsOf(given[i]!, types[i]!)) {
      values[i] = moved;
      const distance = distanceOf(meaning(values), value);
      most = Math.max(most, distance);
    }
    total += most;
  }
  return total;
}

/** Distance of two values; infinite where one of them alone is NaN or infinite. */
export function distanceOf(a: ScalarValue, b: ScalarValue): number {
  if (typeof a === "bigint" && typeof b === "bigint") return Number(a > b ? a - b : b - a);
  return distanceOfNumbers(Number(a), Number(b));
}

/** `distanceOf` where both are numbers. */
export function distanceOfNumbers(x: number, y: number): number {
  if (x === y || Object.is(x, y)) return 0;
  const distance = Math.abs(x - y);
  return Number.isNaN(distance) ? Infinity : distance;
}

function endsOf({ value, error }: Approximate, dtype: DType): readonly ScalarValue[] {
  if (dtype === "bool") return [0, 1];
  if (typeof value === "bigint") {
    const step = Number.isFinite(error) ? BigInt(Math.ceil(error)) : 0n;
    return [value - step, value + step];
  }
  if (isInteger(dtype)) return [value - Math.ceil(error), value + Math.ceil(error)];
  return [value - error, value + error];
}

function isInteger(dtype: DType): boolean {
  const { kind } = dtypes[dtype];
  return kind === "int" || kind === "uint";
}
