/**
 * Constructors of typed expressions and statements, and the typing rule they keep. `typeFault` is the
 * rule as a question, for text from outside (program-text) and for the validator; the constructors
 * ask it as an invariant, so that a lowering bug stops where it is made.
 */
import type { Condition } from "../semantics/condition.ts";
import { type DType, dtypes, isBigDType } from "../semantics/dtype.ts";
import { type IndexLike, toIndex } from "../semantics/index-expr.ts";
import { resultType, type ScalarExpr, type ScalarOp, scalarOps } from "../semantics/scalar-expr.ts";
import { invariant, unreachable } from "../support/invariant.ts";
import { findValueIntrinsic } from "./intrinsic-table.ts";
import type {
  Completion,
  Expr,
  IntrinsicOperand,
  LoopMode,
  Statement,
  ValueType,
} from "./statement.ts";

/** `f32`, `f32x16`. */
export function printType(type: ValueType): string {
  return type.lanes === 1 ? type.dtype : `${type.dtype}x${type.lanes}`;
}

export function sameType(a: ValueType, b: ValueType): boolean {
  return a.dtype === b.dtype && a.lanes === b.lanes;
}

/** Why the topmost operator of `expr` is ill typed, or undefined; operands are trusted. */
export function typeFault(expr: Expr): string | undefined {
  if (!Number.isInteger(expr.lanes) || expr.lanes < 1) return `${expr.lanes} lanes`;
  switch (expr.kind) {
    case "literal":
      return literalFault(expr.dtype, expr.value);
    case "load":
      return literalFault(expr.dtype, expr.fill);
    case "index":
      return isValueOfIndex(expr.dtype) ? undefined : `index value of type ${expr.dtype}`;
    case "local":
      return undefined;
    case "apply":
      return applyFault(expr);
    case "cast":
      return expr.operand.lanes === expr.lanes ? undefined : "cast changes the lanes";
    case "splat":
      return expr.lanes % expr.operand.lanes === 0 && expr.operand.dtype === expr.dtype
        ? undefined
        : `splat of ${printType(expr.operand)} to ${printType(expr)}`;
    case "pack":
      return expr.operands.length === expr.lanes &&
        expr.operands.every((o) => o.lanes === 1 && o.dtype === expr.dtype)
        ? undefined
        : `pack of (${expr.operands.map(printType).join(", ")}) to ${printType(expr)}`;
    case "extract":
      return extractFault(expr);
    case "call":
      return callFault(expr);
    default:
      return unreachable(expr, "expression");
  }
}

function isValueOfIndex(dtype: DType): boolean {
  return dtypes[dtype].kind !== "exponent";
}

function literalFault(dtype: DType, value: number | bigint): string | undefined {
  if (isBigDType(dtype) === (typeof value === "bigint")) return undefined;
  return `${dtype} literal ${value} is a ${typeof value}`;
}

function applyFault(expr: Extract<Expr, { kind: "apply" }>): string | undefined {
  if (!Object.hasOwn(scalarOps, expr.op)) return `unknown operator ${expr.op}`;
  const { arity, typing } = scalarOps[expr.op];
  const operands = expr.operands;
  const spelled = `${expr.op}(${operands.map(printType).join(", ")}) to ${printType(expr)}`;
  if (operands.length !== arity) return `${expr.op} takes ${arity} operands`;
  if (operands.some((o) => o.lanes !== expr.lanes)) return spelled;
  const valued = typing === "select" ? operands.slice(1) : operands;
  const result = resultType(expr.op, valued[0]!.dtype);
  if (expr.dtype !== result || valued.some((o) => o.dtype !== valued[0]!.dtype)) return spelled;
  return typing === "select" && operands[0]!.dtype !== "bool" ? spelled : undefined;
}

function extractFault(expr: Extract<Expr, { kind: "extract" }>): string | undefined {
  const { operand, lane } = expr;
  const inside = Number.isInteger(lane) && lane >= 0 && lane < operand.lanes;
  return inside && expr.lanes === 1 && expr.dtype === operand.dtype
    ? undefined
    : `lane ${lane} of ${printType(operand)} as ${printType(expr)}`;
}

function callFault(expr: Extract<Expr, { kind: "call" }>): string | undefined {
  const row = findValueIntrinsic(expr.intrinsic);
  if (!row) return `unknown intrinsic ${expr.intrinsic}`;
  const wanted = row.operands.map((dtype, o) => ({ dtype, lanes: row.lanes * row.ratios[o]! }));
  const fits =
    wanted.length === expr.operands.length &&
    wanted.every((type, o) => sameType(type, expr.operands[o]!)) &&
    expr.dtype === row.result &&
    expr.lanes === row.lanes;
  if (fits) return undefined;
  return `${row.name} takes (${wanted.map(printType).join(", ")}), given (${expr.operands.map(printType).join(", ")})`;
}

function checked(expr: Expr): Expr {
  const fault = typeFault(expr);
  invariant(fault === undefined, () => `ill-typed expression: ${fault}`);
  return expr;
}

/** A constant in every lane; numbers become BigInts where the dtype wants them. */
export function literalExpr(value: number | bigint, dtype: DType, lanes = 1): Expr {
  return checked({ kind: "literal", dtype, lanes, value: literalValue(dtype, value) });
}

function literalValue(dtype: DType, value: number | bigint): number | bigint {
  return isBigDType(dtype) && typeof value === "number" ? BigInt(value) : value;
}

/** The value of an index expression; lane l is `expr + l * laneStep`. */
export function indexValue(expr: IndexLike, dtype: DType, lanes = 1, laneStep = 0): Expr {
  return checked({ kind: "index", dtype, lanes, expr: toIndex(expr), laneStep });
}

export interface LoadGuard {
  readonly guard: readonly Condition[];
  readonly fill: number | bigint;
}

/** An element or `type.lanes` contiguous ones; under a guard, `fill` where it fails. */
export function loadExpr(
  buffer: string,
  index: readonly IndexLike[],
  type: ValueType,
  guarded: LoadGuard = { guard: [], fill: 0 },
): Expr {
  const fill = literalValue(type.dtype, guarded.fill);
  const { dtype, lanes } = type;
  const where = { buffer, index: index.map(toIndex), guard: guarded.guard, fill };
  return checked({ kind: "load", dtype, lanes, ...where });
}

/** A value bound by let. */
export function localExpr(name: string, type: ValueType): Expr {
  return checked({ kind: "local", dtype: type.dtype, lanes: type.lanes, name });
}

/** Applies a scalar operator lanewise. */
export function applyExpr(op: ScalarOp, ...operands: readonly Expr[]): Expr {
  const valued = operands[operands.length - 1]!;
  const dtype = resultType(op, valued.dtype);
  return checked({ kind: "apply", dtype, lanes: valued.lanes, op, operands });
}

/** A conversion, or the operand itself when it already has the type. */
export function castExpr(operand: Expr, dtype: DType, saturate: boolean): Expr {
  if (operand.dtype === dtype) return operand;
  return checked({ kind: "cast", dtype, lanes: operand.lanes, saturate, operand });
}

/** A value again and again until `lanes` lanes are filled; what has so many lanes is itself. */
export function splatExpr(operand: Expr, lanes: number): Expr {
  if (lanes === operand.lanes) return operand;
  return checked({ kind: "splat", dtype: operand.dtype, lanes, operand });
}

export function packExpr(operands: readonly Expr[]): Expr {
  const lanes = operands.length;
  return checked({ kind: "pack", dtype: operands[0]!.dtype, lanes, operands });
}

export function extractExpr(operand: Expr, lane: number): Expr {
  return checked({ kind: "extract", dtype: operand.dtype, lanes: 1, operand, lane });
}

/** A value intrinsic by name. */
export function callExpr(intrinsic: string, ...operands: readonly Expr[]): Expr {
  const row = findValueIntrinsic(intrinsic);
  invariant(row, () => `unknown intrinsic ${intrinsic}`);
  return checked({ kind: "call", dtype: row.result, lanes: row.lanes, intrinsic, operands });
}

/** A scalar expression over `args`, lanewise; scalar arguments are spread over the lanes. */
export function exprOfScalar(scalar: ScalarExpr, args: readonly Expr[], lanes: number): Expr {
  const convert = (e: ScalarExpr): Expr => exprOfScalar(e, args, lanes);
  switch (scalar.kind) {
    case "literal":
      return literalExpr(scalar.value, scalar.dtype, lanes);
    case "index":
      return indexValue(scalar.expr, scalar.dtype, lanes);
    case "argument": {
      const arg = args[scalar.index];
      invariant(arg, () => `argument ${scalar.index} is not bound`);
      return arg.lanes === lanes ? arg : splatExpr(arg, lanes);
    }
    case "cast":
      return castExpr(convert(scalar.operand), scalar.dtype, scalar.saturate);
    case "apply":
      return applyExpr(scalar.op, ...scalar.operands.map(convert));
  }
}

export const serial: LoopMode = { kind: "serial" };
export const unrolled: LoopMode = { kind: "unrolled" };

/** Deals iterations out over a grid axis. */
export function overGrid(axis: string): LoopMode {
  return { kind: "grid", axis };
}

export function forLoop(
  variable: string,
  extent: IndexLike,
  body: readonly Statement[],
  mode: LoopMode = serial,
): Statement {
  return { kind: "for", variable, extent: toIndex(extent), mode, body };
}

export function ifThen(
  conditions: readonly Condition[],
  then: readonly Statement[],
  otherwise: readonly Statement[] = [],
): Statement {
  return { kind: "if", conditions, then, else: otherwise };
}

export function letValue(name: string, value: Expr): Statement {
  return { kind: "let", name, value };
}

export function storeTo(buffer: string, index: readonly IndexLike[], value: Expr): Statement {
  return { kind: "store", buffer, index: index.map(toIndex), value };
}

/** A tile operand of `extents` along the last axes, at `index`. */
export function tileAt(
  buffer: string,
  index: readonly IndexLike[],
  extents: readonly number[],
): IntrinsicOperand {
  return { kind: "tile", buffer, index: index.map(toIndex), extents };
}

export const syncCompletion: Completion = { kind: "sync" };

export function issue(
  intrinsic: string,
  operands: readonly IntrinsicOperand[],
  completion: Completion = syncCompletion,
): Statement {
  return { kind: "intrinsic", intrinsic, operands, completion };
}
