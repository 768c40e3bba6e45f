/**
 * Scalar expressions with error bounds (approximate.ts), where every value is a number: the same arithmetic
 * in the same order, without an object for each value. What a check by samples folds over chains of
 * statements is millions of these.
 */
import { type DType, dtypes, isBigDType, isFloatDType } from "../semantics/dtype.ts";
import { type ScalarExpr, scalarOperands } from "../semantics/scalar-expr.ts";
import {
  castScalar,
  compileScalar,
  numberMeaningOf,
  roundNumber,
} from "../semantics/scalar-meaning.ts";
import { invariant } from "../support/invariant.ts";
import {
  compileApproximate,
  distanceOfNumbers as distanceOf,
  roundingsOf,
  spacingOf,
} from "./approximate.ts";

/** Arguments with their errors, and the error of the result that was computed last. */
export class NumberFrame {
  readonly values: Float64Array;
  readonly errors: Float64Array;
  error = 0;

  constructor(count: number) {
    this.values = new Float64Array(count);
    this.errors = new Float64Array(count);
  }

  set(slot: number, value: number, error: number): void {
    this.values[slot] = value;
    this.errors[slot] = error;
  }
}

/** The value; its error is left in the frame. */
export type NumberFunction = (frame: NumberFrame) => number;

/** The values of index variables where an expression is evaluated. */
export type PointNow = () => ReadonlyMap<string, number>;

/**
 * Undefined where a value is a BigInt that does not hang on indices alone.
 * @param point absent where no index is a value
 */
export function compileNumbers(
  expr: ScalarExpr,
  fold = false,
  point?: PointNow,
): NumberFunction | undefined {
  return isOfNumbers(expr, point !== undefined) ? compile(expr, fold, point) : undefined;
}

function isOfNumbers(expr: ScalarExpr, hasPoint: boolean): boolean {
  if (isBigDType(expr.dtype)) return false;
  if (isOfPoint(expr)) return hasPoint;
  return scalarOperands(expr).every((o) => isOfNumbers(o, hasPoint));
}

/** Whether an expression has an index in it, and no argument: a mask by positions. */
function isOfPoint(expr: ScalarExpr): boolean {
  return hasKind(expr, "index") && !hasKind(expr, "argument");
}

function hasKind(expr: ScalarExpr, kind: ScalarExpr["kind"]): boolean {
  return expr.kind === kind || scalarOperands(expr).some((o) => hasKind(o, kind));
}

function compileOfPoint(expr: ScalarExpr, fold: boolean, point: PointNow): NumberFunction {
  const compute = compileApproximate(expr, fold);
  return (frame) => {
    const { value, error } = compute([], point());
    frame.error = error;
    return value as number;
  };
}

function compile(expr: ScalarExpr, fold: boolean, point: PointNow | undefined): NumberFunction {
  if (point && isOfPoint(expr)) return compileOfPoint(expr, fold, point);
  switch (expr.kind) {
    case "argument": {
      const { index } = expr;
      return (frame) => {
        frame.error = frame.errors[index]!;
        return frame.values[index]!;
      };
    }
    case "literal":
    case "index": {
      const value = Number(compileScalar(expr)([], new Map()));
      return (frame) => {
        frame.error = 0;
        return value;
      };
    }
    case "cast":
      return compileCast(expr, fold, point);
    case "apply":
      return compileApply(expr, fold, point);
  }
}

function compileCast(
  { dtype, saturate, operand: inner }: Extract<ScalarExpr, { kind: "cast" }>,
  fold: boolean,
  point: PointNow | undefined,
): NumberFunction {
  const operand = compile(inner, fold, point);
  const from = inner.dtype;
  const to = fold && isFloatDType(dtype) ? "f64" : dtype;
  const convert =
    to === "f32" ? Math.fround : (x: number): number => castScalar(x, to, saturate) as number;
  const rounds = spacingOf(dtype).relative > spacingOf(from).relative || isInteger(from);
  const rounding = roundingTo(dtype);
  const [low, high] = endsOf(from);
  return (frame) => {
    const x = operand(frame);
    const error = frame.error;
    const value = convert(x);
    const own = rounds ? rounding(value) : 0;
    frame.error =
      error === 0
        ? own
        : own +
          Math.max(
            distanceOf(convert(low(x, error)), value),
            distanceOf(convert(high(x, error)), value),
          );
    return value;
  };
}

function compileApply(
  expr: Extract<ScalarExpr, { kind: "apply" }>,
  fold: boolean,
  point: PointNow | undefined,
): NumberFunction {
  const { op, dtype } = expr;
  const operands = expr.operands.map((o) => compile(o, fold, point));
  const types = expr.operands.map((o) => o.dtype);
  if (op === "select") return compileSelect(operands, types);
  invariant(operands.length <= 2, () => `${op} of more than two operands`);
  const meaning = numberMeaningOf(op, types[0]!);
  const round = rounderTo(fold && isFloatDType(dtype) ? "f64" : dtype);
  const rounding = roundingTo(dtype);
  const roundings = roundingsOf(op);
  const reorders = fold && (op === "add" || op === "sub");
  const multiplies = op === "mul";
  const [first, second] = operands as [NumberFunction, NumberFunction | undefined];
  const [lowA, highA] = endsOf(types[0]!);
  if (!second) {
    return (frame) => {
      const a = first(frame);
      const error = frame.error;
      const value = round(meaning(a, 0, 0));
      let total = roundings * rounding(value);
      if (error !== 0) {
        const low = distanceOf(round(meaning(lowA(a, error), 0, 0)), value);
        const high = distanceOf(round(meaning(highA(a, error), 0, 0)), value);
        total += Math.max(low, high);
      }
      frame.error = total;
      return value;
    };
  }
  const [lowB, highB] = endsOf(types[1]!);
  return (frame) => {
    const a = first(frame);
    const errorA = frame.error;
    const b = second(frame);
    const errorB = frame.error;
    const value = round(meaning(a, b, 0));
    let spread = 0;
    if (errorA !== 0) {
      const low = distanceOf(round(meaning(lowA(a, errorA), b, 0)), value);
      const high = distanceOf(round(meaning(highA(a, errorA), b, 0)), value);
      spread += Math.max(low, high);
    }
    if (errorB !== 0) {
      const low = distanceOf(round(meaning(a, lowB(b, errorB), 0)), value);
      const high = distanceOf(round(meaning(a, highB(b, errorB), 0)), value);
      spread += Math.max(low, high);
    }
    const together = multiplies && errorA !== 0 && errorB !== 0 ? errorA * errorB : 0;
    const size = reorders ? Math.abs(a) + Math.abs(b) : value;
    frame.error = roundings * rounding(size) + together + spread;
    return value;
  };
}

/** Either operand as it is, and what the condition's own error may change. */
function compileSelect(
  operands: readonly NumberFunction[],
  types: readonly DType[],
): NumberFunction {
  const [condition, first, second] = operands as [NumberFunction, NumberFunction, NumberFunction];
  const ends = types.map(endsOf);
  const moved = (
    [low, high]: readonly [End, End],
    x: number,
    error: number,
    at: (x: number) => number,
    value: number,
  ): number =>
    error === 0
      ? 0
      : Math.max(distanceOf(at(low(x, error)), value), distanceOf(at(high(x, error)), value));
  return (frame) => {
    const c = condition(frame);
    const errorC = frame.error;
    const a = first(frame);
    const errorA = frame.error;
    const b = second(frame);
    const errorB = frame.error;
    const value = c ? a : b;
    let spread = moved(ends[0]!, c, errorC, (x) => (x ? a : b), value);
    spread += moved(ends[1]!, a, errorA, (x) => (c ? x : b), value);
    spread += moved(ends[2]!, b, errorB, (x) => (c ? a : x), value);
    frame.error = spread;
    return value;
  };
}

/** A value brought onto a type's grid. */
export function rounderTo(dtype: DType): (x: number) => number {
  if (dtype === "f32") return Math.fround;
  if (dtype === "f64") return (x) => x;
  return (x) => roundNumber(dtype, x);
}

/** `roundingOf` of a type. */
export function roundingTo(dtype: DType): (x: number) => number {
  const { relative, least } = spacingOf(dtype);
  if (relative === 0) return () => 0;
  return (x) => {
    const size = Math.abs(x);
    return Number.isFinite(size) ? size * relative + least : 0;
  };
}

type End = (x: number, error: number) => number;

/** The ends of a value's interval, by its type. */
function endsOf(dtype: DType): readonly [End, End] {
  if (dtype === "bool") return [() => 0, () => 1];
  if (isInteger(dtype)) {
    return [(x, error) => x - Math.ceil(error), (x, error) => x + Math.ceil(error)];
  }
  return [(x, error) => x - error, (x, error) => x + error];
}

function isInteger(dtype: DType): boolean {
  const { kind } = dtypes[dtype];
  return kind === "int" || kind === "uint";
}
