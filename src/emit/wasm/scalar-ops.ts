/**
 * Scalar operators and conversions as stack code, with the meanings of semantics/scalar-meaning.ts.
 * Tables give the instruction where there is one; the rest are library functions (integer-rows.ts,
 * float-rows.ts) or functions of JavaScript's Math.
 */
import type { Expr } from "../../program/statement.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { castSaturates } from "../../semantics/scalar-meaning.ts";
import type { KernelContext } from "./kernel-context.ts";
import {
  findRepresentation,
  isNarrowFloat,
  isUnsigned,
  pushClamped,
  pushNormalized,
} from "./lanes.ts";
import type { PlainOp } from "./opcodes.ts";

type Apply = Extract<Expr, { kind: "apply" }>;
type OpTable = Partial<Record<ScalarOp, string>>;

/** Suffixes of f32 and f64 instructions. */
const floatOps: OpTable = {
  neg: "neg",
  abs: "abs",
  floor: "floor",
  ceil: "ceil",
  round: "nearest",
  trunc: "trunc",
  sqrt: "sqrt",
  add: "add",
  sub: "sub",
  mul: "mul",
  div: "div",
  min: "min",
  max: "max",
  equal: "eq",
  less: "lt",
  lessEqual: "le",
};

/** Suffixes of i32 and i64 instructions; `*` stands for _s or _u. */
const integerOps: OpTable = {
  add: "add",
  sub: "sub",
  mul: "mul",
  bitAnd: "and",
  bitOr: "or",
  bitXor: "xor",
  equal: "eq",
  less: "lt*",
  lessEqual: "le*",
};

/** Operators on bool that its 0 and 1 make simple. */
const boolOps: OpTable = {
  ...{ and: "and", or: "or", xor: "xor", bitAnd: "and", bitOr: "or", bitXor: "xor" },
  ...{ add: "or", max: "or", mul: "and", min: "and", equal: "eq", less: "lt_u", lessEqual: "le_u" },
};

/** Operators that are JavaScript's Math functions on f64. */
const mathImports: OpTable = {
  ...{ exp: "exp", log: "log", sin: "sin", cos: "cos", tan: "tan", asin: "asin", acos: "acos" },
  ...{ atan: "atan", sinh: "sinh", cosh: "cosh", tanh: "tanh", asinh: "asinh", acosh: "acosh" },
  ...{ atanh: "atanh", pow: "pow", atan2: "atan2" },
};

const identityOnIntegers = new Set<ScalarOp>(["floor", "ceil", "round", "trunc"]);
const rowsOnIntegers = new Set<ScalarOp>([
  ...(["neg", "abs", "sign", "relu", "bitNot", "reciprocal", "div", "mod", "floorMod"] as const),
  ...(["pow", "min", "max", "shiftLeft", "shiftRight"] as const),
]);

/** Which Math functions a program may need: every operator it uses that has one. */
export function mathNamesOf(ops: Iterable<ScalarOp>): Set<string> {
  const names = new Set<string>();
  // The sine and cosine of large arguments go to Math whatever the type.
  for (const op of ops) {
    const name = mathImports[op];
    if (name !== undefined) names.add(name);
    if (op === "sigmoid") names.add("exp");
  }
  return names;
}

/** Pushes the operator applied to what `operands` push. */
export function pushScalarApply(
  context: KernelContext,
  e: Apply,
  operands: readonly (() => void)[],
): void {
  const { f } = context;
  const valued = e.op === "select" ? operands.slice(1) : operands;
  for (const push of valued) push();
  if (e.op === "select") {
    operands[0]!();
    f.op("select");
    return;
  }
  const dtype = e.operands[0]!.dtype;
  if (dtype === "bool") pushBool(context, e.op);
  else if (isFloatDType(dtype)) pushFloat(context, e.op, dtype);
  else pushInteger(context, e.op, dtype);
}

function pushBool(context: KernelContext, op: ScalarOp): void {
  const { f } = context;
  const suffix = boolOps[op];
  if (op === "not" || op === "bitNot") f.op("i32.eqz");
  else if (suffix !== undefined) f.op(`i32.${suffix}` as PlainOp);
  else context.refuse(`${op} of bool`);
}

function pushFloat(context: KernelContext, op: ScalarOp, dtype: DType): void {
  const { f, library } = context;
  const { scalar } = findRepresentation(dtype)!;
  const suffix = floatOps[op];
  const row = `${op}.${scalar}`;
  const vectorRow = `${op}.f32x4`;
  if (suffix !== undefined) f.op(`${scalar}.${suffix}` as PlainOp);
  else if (library.has(row)) library.call(f, row);
  else if (scalar === "f32" && library.has(vectorRow)) pushThroughVector(context, vectorRow);
  else pushMath(context, op, scalar === "f32");
  const rounds =
    isNarrowFloat(dtype) &&
    !["equal", "less", "lessEqual", "isNan", "not", "orderKey"].includes(op);
  if (rounds) library.call(f, `round.${dtype}`);
}

/** One f32 by the function for four. */
function pushThroughVector({ f, library }: KernelContext, name: string): void {
  f.op("f32x4.splat");
  library.call(f, name);
  f.lane("f32x4.extract_lane", 0);
}

function pushMath(context: KernelContext, op: ScalarOp, narrow: boolean): void {
  const { f, library } = context;
  const name = mathImports[op];
  if (name === undefined) context.refuse(`${op} of ${narrow ? "f32" : "f64"}`);
  if (narrow) f.op("f64.promote_f32");
  library.call(f, `math.${name}`);
  if (narrow) f.op("f32.demote_f64");
}

function pushInteger(context: KernelContext, op: ScalarOp, dtype: DType): void {
  const { f, library } = context;
  const { scalar } = findRepresentation(dtype)!;
  const sign = isUnsigned(dtype) ? "u" : "s";
  const suffix = integerOps[op]?.replace("*", `_${sign}`);
  if (identityOnIntegers.has(op)) return;
  if (op === "isNan") f.op("drop").i32Const(0);
  else if (suffix !== undefined) f.op(`${scalar}.${suffix}` as PlainOp);
  else if (rowsOnIntegers.has(op)) library.call(f, `${op}.${scalar}_${sign}`);
  else context.refuse(`${op} of ${dtype}`, "cast the operand to f32 in the model");
  if (op !== "equal" && op !== "less" && op !== "lessEqual") pushNormalized(f, dtype);
}

/** Replaces the scalar on the stack by its conversion (semantics: castScalar). */
export function pushScalarCast(
  context: KernelContext,
  from: DType,
  to: DType,
  saturate: boolean,
): void {
  if (from === to) return;
  const source = findRepresentation(from) ?? context.refuse(`values of type ${from}`);
  const target = findRepresentation(to) ?? context.refuse(`values of type ${to}`);
  const { f } = context;
  if (to === "bool") pushNonZero(context, source.scalar);
  else if (isFloatDType(from)) {
    if (isFloatDType(to)) pushFloatToFloat(context, source.scalar, to, saturate);
    else if (saturate) pushFloatToSaturated(context, source.scalar, to);
    else pushFloatToWrapped(context, source.scalar, to);
  } else if (isFloatDType(to)) {
    const sign = isUnsigned(from) ? "u" : "s";
    f.op(`${target.scalar}.convert_${source.scalar}_${sign}` as PlainOp);
    if (isNarrowFloat(to)) context.library.call(f, roundingOf(to, saturate));
  } else pushIntegerToInteger(context, from, to, saturate);
}

/** The library function that brings f32 values onto a narrow grid, for one of them or four. */
export function roundingOf(to: DType, saturate: boolean, lanes: "" | "x4" = ""): string {
  const kind = saturate && castSaturates(to) ? "saturate" : "round";
  return `${kind}.${to}${lanes}`;
}

function pushNonZero({ f }: KernelContext, scalar: "i32" | "i64" | "f32" | "f64"): void {
  if (scalar === "i32") f.i32Const(0).op("i32.ne");
  else if (scalar === "i64") f.i64Const(0n).op("i64.ne");
  else if (scalar === "f32") f.f32Const(0).op("f32.ne");
  else f.f64Const(0).op("f64.ne");
}

function pushFloatToFloat(
  { f, library }: KernelContext,
  scalar: string,
  to: DType,
  saturate: boolean,
): void {
  if (scalar === "f64" && isNarrowFloat(to)) library.call(f, "demoteOdd");
  else if (scalar === "f64") f.op("f32.demote_f64");
  else if (to === "f64") f.op("f64.promote_f32");
  if (isNarrowFloat(to)) library.call(f, roundingOf(to, saturate));
}

function pushFloatToSaturated({ f }: KernelContext, scalar: string, to: DType): void {
  const target = findRepresentation(to)!.scalar;
  const unsigned = isUnsigned(to) && dtypes[to].bits >= 32;
  f.op(`${target}.trunc_sat_${scalar}_${unsigned ? "u" : "s"}` as PlainOp);
  if (dtypes[to].bits >= 32) return;
  f.op("i64.extend_i32_s");
  pushClamped(f, to);
  f.op("i32.wrap_i64");
}

function pushFloatToWrapped({ f, library }: KernelContext, scalar: string, to: DType): void {
  if (scalar === "f32") f.op("f64.promote_f32");
  library.call(f, "wrap.f64");
  if (findRepresentation(to)!.scalar === "i64") return;
  f.op("i32.wrap_i64");
  pushNormalized(f, to);
}

/** Through i64, where every integer but the upper half of u64 is itself. */
function pushIntegerToInteger(
  { f }: KernelContext,
  from: DType,
  to: DType,
  saturate: boolean,
): void {
  const wide = findRepresentation(from)!.scalar === "i64";
  if (!wide) f.op(isUnsigned(from) ? "i64.extend_i32_u" : "i64.extend_i32_s");
  if (saturate && from === "u64" && to !== "u64") {
    const value = f.local("i64");
    f.set(value)
      .i64Const((1n << 63n) - 1n)
      .get(value);
    f.get(value).i64Const(0n).op("i64.lt_s").op("select").release(value);
  }
  if (saturate && from !== "u64" && !(from === "i64" && to === "i64")) pushClamped(f, to);
  else if (saturate && to !== "u64") pushClamped(f, to);
  if (findRepresentation(to)!.scalar === "i64") return;
  f.op("i32.wrap_i64");
  pushNormalized(f, to);
}
