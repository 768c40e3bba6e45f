/**
 * Index expressions, conditions and value expressions of programs as closures over a frame. Values are
 * arrays of lanes on the grid of their dtype; arithmetic is float64 rounded once per operator
 * (semantics/scalar-meaning.ts). How a load reaches memory is the owner's business.
 */
import { findValueIntrinsic } from "../program/intrinsic-table.ts";
import type { ValueIntrinsic } from "../program/intrinsics.ts";
import type { Expr } from "../program/statement.ts";
import type { Condition } from "../semantics/condition.ts";
import { isBigDType } from "../semantics/dtype.ts";
import type { IndexAtom, IndexExpr } from "../semantics/index-expr.ts";
import { positiveMod } from "../semantics/index-expr.ts";
import { wrapBig } from "../semantics/integer.ts";
import { scalarOps } from "../semantics/scalar-expr.ts";
import {
  bigMeaningOf,
  castScalar,
  compileScalar,
  numberMeaningOf,
  roundNumber,
  type ScalarValue,
} from "../semantics/scalar-meaning.ts";
import { invariant } from "../support/invariant.ts";

/** Slots of one activation: index variables and values. */
export interface Frame {
  readonly ints: number[];
  readonly values: (readonly ScalarValue[])[];
}

export type IndexCode = (ints: readonly number[]) => number;
export type ValueCode<F extends Frame> = (frame: F) => readonly ScalarValue[];
/** A value of one lane. */
export type ScalarCode<F extends Frame> = (frame: F) => ScalarValue;
export type Load = Extract<Expr, { kind: "load" }>;

/** Where names live, and how memory is read. */
export interface ExprContext<F extends Frame> {
  /** Slot of an index variable in scope. */
  readonly int: (name: string) => number;
  /** Slot of a value in scope. */
  readonly value: (name: string) => number;
  /** Of several lanes. */
  readonly load: (load: Load) => ValueCode<F>;
  /** Of one lane. */
  readonly loadOne: (load: Load) => ScalarCode<F>;
}

export function compileIndex(expr: IndexExpr, int: (name: string) => number): IndexCode {
  const { constant, terms } = expr;
  if (terms.length === 0) return () => constant;
  const parts = terms.map(({ coefficient, atoms }) => {
    const codes = atoms.map((a) => compileAtom(a, int));
    const [only] = codes;
    if (codes.length === 1 && only) {
      return coefficient === 1 ? only : (ints: readonly number[]) => coefficient * only(ints);
    }
    return (ints: readonly number[]) => codes.reduce((p, code) => p * code(ints), coefficient);
  });
  const [a, b] = parts;
  if (parts.length === 1 && a) return constant === 0 ? a : (ints) => a(ints) + constant;
  if (parts.length === 2 && a && b) return (ints) => a(ints) + b(ints) + constant;
  return (ints) => parts.reduce((sum, part) => sum + part(ints), constant);
}

function compileAtom(atom: IndexAtom, int: (name: string) => number): IndexCode {
  if (atom.kind === "variable") {
    const slot = int(atom.name);
    return (ints) => ints[slot]!;
  }
  if ("operands" in atom) {
    const pick = atom.kind === "min" ? Math.min : Math.max;
    const codes = atom.operands.map((o) => compileIndex(o, int));
    return (ints) => codes.reduce((best, code) => pick(best, code(ints)), codes[0]!(ints));
  }
  const a = compileIndex(atom.numerator, int);
  const b = compileIndex(atom.denominator, int);
  if (atom.kind === "floorDiv") return (ints) => Math.floor(a(ints) / b(ints));
  return (ints) => positiveMod(a(ints), b(ints));
}

/** Whether all conditions hold. */
export function compileConditions(
  conditions: readonly Condition[],
  int: (name: string) => number,
): (ints: readonly number[]) => boolean {
  const codes = conditions.map((c) => {
    const code = compileIndex(c.expr, int);
    return c.kind === "zero"
      ? (ints: readonly number[]) => code(ints) === 0
      : (ints: readonly number[]) => code(ints) >= 0;
  });
  const [only] = codes;
  if (!only) return () => true;
  if (codes.length === 1) return only;
  return (ints) => codes.every((code) => code(ints));
}

/** An expression of one lane, without an array for it. */
export function compileOne<F extends Frame>(expr: Expr, at: ExprContext<F>): ScalarCode<F> {
  invariant(expr.lanes === 1, () => `${expr.lanes} lanes of ${expr.kind} as one`);
  switch (expr.kind) {
    case "literal": {
      const value = castScalar(expr.value, expr.dtype, false);
      return () => value;
    }
    case "index": {
      const code = compileIndex(expr.expr, at.int);
      const { dtype } = expr;
      return (frame) => castScalar(code(frame.ints), dtype, false);
    }
    case "load":
      return at.loadOne(expr);
    case "local": {
      const slot = at.value(expr.name);
      return (frame) => frame.values[slot]![0]!;
    }
    case "cast": {
      const operand = compileOne(expr.operand, at);
      const { dtype, saturate } = expr;
      return (frame) => castScalar(operand(frame), dtype, saturate);
    }
    case "apply":
      return applyOne(expr, at);
    case "extract": {
      const operand = compileExpr(expr.operand, at);
      return (frame) => operand(frame)[expr.lane]!;
    }
    case "splat":
    case "pack":
    case "call": {
      const code = compileLanes(expr, at);
      return (frame) => code(frame)[0]!;
    }
  }
}

export function compileExpr<F extends Frame>(expr: Expr, at: ExprContext<F>): ValueCode<F> {
  if (expr.lanes > 1 || expr.kind === "local" || expr.kind === "call")
    return compileLanes(expr, at);
  const one = compileOne(expr, at);
  return (frame) => [one(frame)];
}

function compileLanes<F extends Frame>(expr: Expr, at: ExprContext<F>): ValueCode<F> {
  switch (expr.kind) {
    case "literal": {
      const value = castScalar(expr.value, expr.dtype, false);
      const lanes = new Array<ScalarValue>(expr.lanes).fill(value);
      return () => lanes;
    }
    case "index": {
      const code = compileIndex(expr.expr, at.int);
      const { dtype, lanes, laneStep } = expr;
      return (frame) => {
        const base = code(frame.ints);
        return eachLane(lanes, (l) => castScalar(base + l * laneStep, dtype, false));
      };
    }
    case "load":
      return at.load(expr);
    case "local": {
      const slot = at.value(expr.name);
      return (frame) => frame.values[slot]!;
    }
    case "cast": {
      const operand = compileExpr(expr.operand, at);
      return (frame) => operand(frame).map((v) => castScalar(v, expr.dtype, expr.saturate));
    }
    case "splat": {
      const operand = compileExpr(expr.operand, at);
      const { lanes: each } = expr.operand;
      return (frame) => {
        const values = operand(frame);
        return eachLane(expr.lanes, (l) => values[l % each]!);
      };
    }
    case "pack": {
      const operands = expr.operands.map((o) => compileOne(o, at));
      return (frame) => operands.map((o) => o(frame));
    }
    case "extract": {
      const one = compileOne(expr, at);
      return (frame) => [one(frame)];
    }
    case "apply":
      return compileApply(expr, at);
    case "call":
      return compileCall(expr, at);
  }
}

function eachLane(lanes: number, value: (lane: number) => ScalarValue): ScalarValue[] {
  const result = new Array<ScalarValue>(lanes);
  for (let l = 0; l < lanes; l++) result[l] = value(l);
  return result;
}

function applyOne<F extends Frame>(
  expr: Extract<Expr, { kind: "apply" }>,
  at: ExprContext<F>,
): ScalarCode<F> {
  const { op, dtype } = expr;
  const operands = expr.operands.map((o) => compileOne(o, at));
  const [a, b, c] = [operands[0]!, operands[1] ?? operands[0]!, operands[2] ?? operands[0]!];
  if (op === "select") {
    // Both are computed, as in lanes: what they read is seen.
    return (frame) => {
      const [test, yes, no] = [a(frame), b(frame), c(frame)];
      return test ? yes : no;
    };
  }
  const from = expr.operands[0]!.dtype;
  if (isBigDType(from)) {
    const meaning = bigMeaningOf(op, from);
    const predicate = scalarOps[op].typing === "predicate";
    return (frame) => {
      const value = meaning(a(frame) as bigint, b(frame) as bigint, 0n);
      return predicate ? Number(value) : wrapBig(dtype, value);
    };
  }
  const meaning = numberMeaningOf(op, from);
  if (dtype === "f32")
    return (frame) => Math.fround(meaning(a(frame) as number, b(frame) as number, 0));
  return (frame) => roundNumber(dtype, meaning(a(frame) as number, b(frame) as number, 0));
}

function compileApply<F extends Frame>(
  expr: Extract<Expr, { kind: "apply" }>,
  at: ExprContext<F>,
): ValueCode<F> {
  const { op, dtype, lanes } = expr;
  const operands = expr.operands.map((o) => compileExpr(o, at));
  const [a, b, c] = [operands[0]!, operands[1] ?? operands[0]!, operands[2] ?? operands[0]!];
  if (op === "select") {
    return (frame) => {
      const [test, yes, no] = [a(frame), b(frame), c(frame)];
      return eachLane(lanes, (l) => (test[l] ? yes[l]! : no[l]!));
    };
  }
  const from = expr.operands[0]!.dtype;
  const predicate = scalarOps[op].typing === "predicate";
  if (isBigDType(from)) {
    const meaning = bigMeaningOf(op, from);
    return (frame) => {
      const [x, y] = [a(frame), b(frame)];
      return eachLane(lanes, (l) => {
        const value = meaning(x[l] as bigint, y[l] as bigint, 0n);
        return predicate ? Number(value) : wrapBig(dtype, value);
      });
    };
  }
  const meaning = numberMeaningOf(op, from);
  return (frame) => {
    const [x, y] = [a(frame), b(frame)];
    return eachLane(lanes, (l) => roundNumber(dtype, meaning(x[l] as number, y[l] as number, 0)));
  };
}

function compileCall<F extends Frame>(
  expr: Extract<Expr, { kind: "call" }>,
  at: ExprContext<F>,
): ValueCode<F> {
  const row = findValueIntrinsic(expr.intrinsic);
  invariant(row, () => `unknown intrinsic ${expr.intrinsic}`);
  const operands = expr.operands.map((o) => compileExpr(o, at));
  const lane = row.fused ? fusedLane(row) : bodyLane(row);
  return (frame) => {
    const given = operands.map((o) => o(frame));
    return eachLane(row.lanes, (l) => lane(given, l));
  };
}

type LaneCode = (given: readonly (readonly ScalarValue[])[], lane: number) => ScalarValue;

function bodyLane(row: ValueIntrinsic): LaneCode {
  const body = compileScalar(row.body);
  const none: ReadonlyMap<string, number> = new Map();
  return (given, l) => {
    const args = given.flatMap((v, o) => v.slice(l * row.ratios[o]!, (l + 1) * row.ratios[o]!));
    return body(args, none);
  };
}

function fusedLane(row: ValueIntrinsic): LaneCode {
  const { result } = row;
  return ([a, b, c], l) => {
    const sum = multiplyAdd(a![l] as number, b![l] as number, c![l] as number);
    return roundNumber(result, sum);
  };
}

/**
 * a * b + c as a float64 rounded to odd, so that the rounding to f32 after it is the only one that
 * counts (Boldo and Melquiond 2008); the product of two f32 is exact. For f64 the product's error is
 * recovered (Dekker 1971) and the result may be one bit away from the fused one.
 */
export function multiplyAdd(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  if (!Number.isFinite(sum)) return sum;
  const back = sum - product;
  const error = product - (sum - back) + (c - back) + productError(a, b, product);
  if (error === 0 || Number.isNaN(error)) return sum;
  return roundToOdd(sum, error);
}

const splitter = 134217729; // 2^27 + 1

function productError(a: number, b: number, product: number): number {
  const [ta, tb] = [splitter * a, splitter * b];
  const [ha, hb] = [ta - (ta - a), tb - (tb - b)];
  const [la, lb] = [a - ha, b - hb];
  const error = la * lb - (product - ha * hb - la * hb - ha * lb);
  return Number.isFinite(error) ? error : 0;
}

const oddDouble = new Float64Array(1);
const oddWords = new BigInt64Array(oddDouble.buffer);

function roundToOdd(sum: number, error: number): number {
  if (sum === 0) return error;
  oddDouble[0] = sum;
  const truncated = error > 0 === sum > 0 ? oddWords[0]! : oddWords[0]! - 1n;
  oddWords[0] = truncated | 1n;
  return oddDouble[0];
}
