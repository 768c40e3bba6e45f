/**
 * Scalar expressions: what one iteration of a nest computes, the combine function of a monoid, the
 * reference body of an intrinsic. They are trees over numbered arguments and have no memory access:
 * a nest says which element each argument is (region/), a program which load (program/).
 *
 * The operator table is data: arity, typing and a float64 meaning. Emitters own a spelling per
 * operator; nothing else switches over operator names.
 */
import { invariant } from "../support/invariant.ts";
import { type DType, dtypes } from "./dtype.ts";
import type { IndexExpr } from "./index-expr.ts";

/** How the result type follows from the argument types. */
export type ScalarTyping = "same" | "predicate" | "select" | "key";

export interface ScalarOpInfo {
  readonly arity: 1 | 2 | 3;
  readonly typing: ScalarTyping;
  /** Commutative in exact arithmetic and in IEEE arithmetic up to NaN payloads. */
  readonly commutative?: true;
  /** f(0, …, 0) = 0 exactly: padded lanes stay zero. */
  readonly zeroPreserving?: true;
  /** Rough cost in fused multiply-adds, for cost models. */
  readonly cost: number;
}

export const scalarOps = {
  neg: { arity: 1, typing: "same", zeroPreserving: true, cost: 1 },
  abs: { arity: 1, typing: "same", zeroPreserving: true, cost: 1 },
  sign: { arity: 1, typing: "same", zeroPreserving: true, cost: 3 },
  floor: { arity: 1, typing: "same", zeroPreserving: true, cost: 1 },
  ceil: { arity: 1, typing: "same", zeroPreserving: true, cost: 1 },
  /** To nearest, ties to even. */
  round: { arity: 1, typing: "same", zeroPreserving: true, cost: 1 },
  trunc: { arity: 1, typing: "same", zeroPreserving: true, cost: 1 },
  exp: { arity: 1, typing: "same", cost: 12 },
  log: { arity: 1, typing: "same", cost: 14 },
  sqrt: { arity: 1, typing: "same", zeroPreserving: true, cost: 6 },
  reciprocal: { arity: 1, typing: "same", cost: 4 },
  sin: { arity: 1, typing: "same", zeroPreserving: true, cost: 16 },
  cos: { arity: 1, typing: "same", cost: 16 },
  tan: { arity: 1, typing: "same", zeroPreserving: true, cost: 24 },
  asin: { arity: 1, typing: "same", zeroPreserving: true, cost: 20 },
  acos: { arity: 1, typing: "same", cost: 20 },
  atan: { arity: 1, typing: "same", zeroPreserving: true, cost: 20 },
  sinh: { arity: 1, typing: "same", zeroPreserving: true, cost: 24 },
  cosh: { arity: 1, typing: "same", cost: 24 },
  tanh: { arity: 1, typing: "same", zeroPreserving: true, cost: 18 },
  asinh: { arity: 1, typing: "same", zeroPreserving: true, cost: 24 },
  acosh: { arity: 1, typing: "same", cost: 24 },
  atanh: { arity: 1, typing: "same", zeroPreserving: true, cost: 24 },
  erf: { arity: 1, typing: "same", zeroPreserving: true, cost: 20 },
  sigmoid: { arity: 1, typing: "same", cost: 16 },
  relu: { arity: 1, typing: "same", zeroPreserving: true, cost: 1 },
  not: { arity: 1, typing: "same", cost: 1 },
  bitNot: { arity: 1, typing: "same", cost: 1 },
  isNan: { arity: 1, typing: "predicate", cost: 1 },
  /**
   * The place of an f32 among all f32, as an i32: of two numbers the lesser has the lesser key, both zeros have
   * 0, the key of -x is the negative of that of x, and every NaN has the greatest i32.
   */
  orderKey: { arity: 1, typing: "key", zeroPreserving: true, cost: 5 },
  add: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  sub: { arity: 2, typing: "same", zeroPreserving: true, cost: 1 },
  mul: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  /** Integers truncate towards zero; an integer division by zero gives zero. */
  div: { arity: 2, typing: "same", cost: 4 },
  /** Remainder with the sign of the dividend (C's fmod, ONNX Mod with fmod = 1). */
  mod: { arity: 2, typing: "same", cost: 8 },
  /** Remainder with the sign of the divisor (ONNX Mod with fmod = 0). */
  floorMod: { arity: 2, typing: "same", cost: 8 },
  pow: { arity: 2, typing: "same", cost: 28 },
  /** NaN if either is NaN, as ONNX Min and Max. */
  min: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  max: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  atan2: { arity: 2, typing: "same", cost: 26 },
  equal: { arity: 2, typing: "predicate", commutative: true, cost: 1 },
  less: { arity: 2, typing: "predicate", cost: 1 },
  lessEqual: { arity: 2, typing: "predicate", cost: 1 },
  and: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  or: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  xor: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  bitAnd: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  bitOr: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  bitXor: { arity: 2, typing: "same", commutative: true, zeroPreserving: true, cost: 1 },
  shiftLeft: { arity: 2, typing: "same", zeroPreserving: true, cost: 1 },
  /** Logical on unsigned, arithmetic on signed types. */
  shiftRight: { arity: 2, typing: "same", zeroPreserving: true, cost: 1 },
  /** select(condition, then, else) */
  select: { arity: 3, typing: "select", cost: 1 },
} as const satisfies Record<string, ScalarOpInfo>;

export type ScalarOp = keyof typeof scalarOps;

export type ScalarExpr =
  | { readonly kind: "literal"; readonly dtype: DType; readonly value: number | bigint }
  /** The `index`-th argument of whoever owns the expression. */
  | { readonly kind: "argument"; readonly dtype: DType; readonly index: number }
  /** An index expression of the iteration as a value (iota, position masks). */
  | { readonly kind: "index"; readonly dtype: DType; readonly expr: IndexExpr }
  /** Integer targets saturate when `saturate`, else wrap; floats round to nearest even. */
  | {
      readonly kind: "cast";
      readonly dtype: DType;
      readonly saturate: boolean;
      readonly operand: ScalarExpr;
    }
  | {
      readonly kind: "apply";
      readonly op: ScalarOp;
      readonly dtype: DType;
      readonly operands: readonly ScalarExpr[];
    };

export function literal(value: number | bigint, dtype: DType): ScalarExpr {
  return { kind: "literal", dtype, value };
}

export function argument(index: number, dtype: DType): ScalarExpr {
  return { kind: "argument", dtype, index };
}

export function indexValue(expr: IndexExpr, dtype: DType): ScalarExpr {
  return { kind: "index", dtype, expr };
}

/** A conversion, or the operand itself when it already has the type. */
export function cast(operand: ScalarExpr, dtype: DType, saturate: boolean): ScalarExpr {
  return operand.dtype === dtype ? operand : { kind: "cast", dtype, saturate, operand };
}

/** Applies an operator; operands must agree in type (the condition of select is bool). */
export function apply(op: ScalarOp, ...operands: readonly ScalarExpr[]): ScalarExpr {
  const info = scalarOps[op];
  invariant(operands.length === info.arity, () => `${op} takes ${info.arity} operands`);
  const valued = info.typing === "select" ? operands.slice(1) : operands;
  const dtype = valued[0]!.dtype;
  const types = operands.map((o) => o.dtype).join(", ");
  invariant(
    valued.every((o) => o.dtype === dtype),
    () => `${op}(${types}) mixes types`,
  );
  invariant(valued === operands || operands[0]!.dtype === "bool", () => `${op}(${types})`);
  return { kind: "apply", op, dtype: resultType(op, dtype), operands };
}

/** What an operator gives for operands of an element type (the condition of select aside). */
export function resultType(op: ScalarOp, operands: DType): DType {
  const { typing } = scalarOps[op];
  if (typing === "predicate") return "bool";
  return typing === "key" ? "i32" : operands;
}

/** The direct sub-expressions. */
export function scalarOperands(expr: ScalarExpr): readonly ScalarExpr[] {
  if (expr.kind === "cast") return [expr.operand];
  return expr.kind === "apply" ? expr.operands : [];
}

type ScalarLeaf = Extract<ScalarExpr, { kind: "literal" | "argument" | "index" }>;

/** Rebuilds bottom-up; `leaf` replaces literals, arguments and index values. Sharing is kept. */
export function mapScalar(
  expr: ScalarExpr,
  leaf: (e: ScalarLeaf) => ScalarExpr,
  done: Map<ScalarExpr, ScalarExpr> = new Map(),
): ScalarExpr {
  const known = done.get(expr);
  if (known) return known;
  const made = mapOne(expr, leaf, done);
  done.set(expr, made);
  return made;
}

function mapOne(
  expr: ScalarExpr,
  leaf: (e: ScalarLeaf) => ScalarExpr,
  done: Map<ScalarExpr, ScalarExpr>,
): ScalarExpr {
  switch (expr.kind) {
    case "cast":
      return cast(mapScalar(expr.operand, leaf, done), expr.dtype, expr.saturate);
    case "apply":
      return apply(expr.op, ...expr.operands.map((o) => mapScalar(o, leaf, done)));
    default:
      return leaf(expr);
  }
}

/** Replaces each argument by the expression at its index. */
export function bindArguments(expr: ScalarExpr, values: readonly ScalarExpr[]): ScalarExpr {
  return mapScalar(expr, (leaf) => {
    if (leaf.kind !== "argument") return leaf;
    const value = values[leaf.index];
    invariant(value, () => `argument ${leaf.index} is not bound`);
    return value;
  });
}

/** Sum of the operators' costs, in fused multiply-adds. */
/** Conversions of operands of half precision to single: loads do these, once for all points that use a vector. */
export function widenedOperands(expr: ScalarExpr): number {
  const { kind, dtype } = expr;
  if (kind === "cast" && dtype === "f32" && expr.operand.kind === "argument") {
    const { dtype: from } = expr.operand;
    return from === "f16" || from === "bf16" ? 1 : 0;
  }
  return scalarOperands(expr).reduce((sum, operand) => sum + widenedOperands(operand), 0);
}

/** The same without conversions. */
export function scalarFlops(expr: ScalarExpr): number {
  const own = expr.kind === "apply" ? scalarOps[expr.op].cost : 0;
  return scalarOperands(expr).reduce((sum, operand) => sum + scalarFlops(operand), own);
}

/** Floats of 8 bits are widened and rounded field by field; other conversions are instructions. */
const fieldsCost = 7;

function castCost(from: DType, to: DType): number {
  const hasFields = [from, to].some((t) => dtypes[t].kind === "float" && dtypes[t].bits <= 8);
  return hasFields ? fieldsCost : 1;
}

export function scalarCost(expr: ScalarExpr): number {
  const ofCast = expr.kind === "cast" ? castCost(expr.operand.dtype, expr.dtype) : 0;
  const own = expr.kind === "apply" ? scalarOps[expr.op].cost : ofCast;
  return scalarOperands(expr).reduce((sum, operand) => sum + scalarCost(operand), own);
}

/**
 * How many values an expression holds at once, itself among them, where what needs more is computed first (Ershov
 * 1958; Sethi and Ullman 1970). Constants are none; an operator of n multiply-adds is taken for a balanced tree of
 * so many.
 */
export function scalarsAtOnce(expr: ScalarExpr): number {
  if (expr.kind === "literal") return 0;
  const operands = scalarOperands(expr).map(scalarsAtOnce);
  if (operands.length > 0 && operands.every((n) => n === 0)) return 0;
  const inOrder = operands.sort((a, b) => b - a).map((n, done) => (n === 0 ? 0 : n + done));
  const own = expr.kind === "apply" ? Math.ceil(Math.log2(scalarOps[expr.op].cost)) : 0;
  return Math.max(1 + own, ...inOrder);
}
