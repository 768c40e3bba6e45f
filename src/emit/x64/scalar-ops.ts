/**
 * Scalar operators with the meanings of semantics/scalar-meaning.ts. Floats are lane 0 of vectors and
 * share the vector spellings (vector-ops.ts); what has none is a function of the C library on f64.
 */
import type { Expr } from "../../program/statement.ts";
import type { DType } from "../../semantics/dtype.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { type MathFunction, mathFunctions } from "./context-block.ts";
import { findFloatOp, orderKey } from "./float-ops.ts";
import { roundNarrow } from "./half-rows.ts";
import { applyInteger, flagOf } from "./integer-ops.ts";
import type { KernelContext } from "./kernel-context.ts";
import { holdingOf, isFloat, isNarrowFloat } from "./lanes.ts";
import { type Register, sized } from "./operand.ts";

type Apply = Extract<Expr, { kind: "apply" }>;

export function applyScalar(
  context: KernelContext,
  e: Apply,
  operands: readonly Register[],
): Register {
  if (e.op === "select") return selectScalar(context, e.dtype, operands);
  const dtype = e.operands[0]!.dtype;
  if (dtype === "bool") return applyBool(context, e.op, operands);
  if (isFloat(dtype)) return applyFloat(context, e.op, dtype, operands);
  return applyInteger(context, e.op, dtype, operands);
}

function selectScalar(
  { f }: KernelContext,
  dtype: DType,
  [condition, then, otherwise]: readonly Register[],
): Register {
  if (!isFloat(dtype)) {
    const r = f.gpr(then!.bits);
    f.emit("mov", r, otherwise!).emit("test", condition!, condition!).emit("cmovne", r, then!);
    return r;
  }
  const r = f.vec(128);
  const end = f.label();
  f.emit("vmovaps", r, then!).emit("test", condition!, condition!).emit("jne", end);
  f.emit("vmovaps", r, otherwise!).place(end);
  return r;
}

/** On 0 and 1. */
function applyBool(context: KernelContext, op: ScalarOp, [a, b]: readonly Register[]): Register {
  const { f } = context;
  const r = f.gpr(32);
  const binary = (name: string): Register => {
    f.emit("mov", r, a!).emit(name, r, b!);
    return r;
  };
  switch (op) {
    case "and":
    case "bitAnd":
    case "mul":
    case "min":
      return binary("and");
    case "or":
    case "bitOr":
    case "add":
    case "max":
      return binary("or");
    case "xor":
    case "bitXor":
      return binary("xor");
    case "not":
    case "bitNot":
      f.emit("mov", r, a!).emit("xor", r, 1);
      return r;
    case "equal":
      binary("xor");
      f.emit("xor", r, 1);
      return r;
    case "less":
      f.emit("mov", r, a!).emit("xor", r, 1).emit("and", r, b!);
      return r;
    case "lessEqual":
      f.emit("mov", r, a!).emit("xor", r, 1).emit("or", r, b!);
      return r;
    default:
      return context.refuse(`${op} of bool`);
  }
}

function applyFloat(
  context: KernelContext,
  op: ScalarOp,
  dtype: DType,
  operands: readonly Register[],
): Register {
  const { f } = context;
  const wide = holdingOf(dtype) === "f64";
  const compare = wide ? "vucomisd" : "vucomiss";
  const [a, b] = operands;
  switch (op) {
    case "equal": {
      // Not equal or not comparable (parity) gives 0.
      f.emit(compare, a!, b!);
      const [equal, ordered] = [f.gpr(32), f.gpr(32)];
      f.emit("sete", sized(equal, 8)).emit("setnp", sized(ordered, 8));
      f.emit("movzx8", equal, sized(equal, 8)).emit("movzx8", ordered, sized(ordered, 8));
      f.emit("and", equal, ordered);
      return equal;
    }
    case "less":
      f.emit(compare, b!, a!);
      return flagOf(f, "a");
    case "lessEqual":
      f.emit(compare, b!, a!);
      return flagOf(f, "ae");
    case "isNan":
      f.emit(compare, a!, a!);
      return flagOf(f, "p");
    case "orderKey": {
      const key = f.gpr(32);
      f.emit("vmovd", key, orderKey(context.vectorCode(128, dtype), a!));
      return key;
    }
    default:
      break;
  }
  const found = findFloatOp(op, dtype);
  const result = found
    ? found(context.vectorCode(128, dtype), operands)
    : throughMath(context, op, wide, operands);
  return isNarrowFloat(dtype) ? roundNarrow(context.vectorCode(128, "f32"), dtype, result) : result;
}

const mathNames: Partial<Record<ScalarOp, MathFunction>> = {
  ...Object.fromEntries(mathFunctions.map((name) => [name, name])),
  mod: "fmod",
};

function throughMath(
  context: KernelContext,
  op: ScalarOp,
  wide: boolean,
  operands: readonly Register[],
): Register {
  const c = context.vectorCode(128, "f64");
  const args = wide ? operands : operands.map((o) => widened(context, o));
  const result = mathResult(context, op, args);
  if (wide) return result;
  const narrow = c.f.vec(128);
  c.f.emit("vxorps", narrow, narrow, narrow).emit("vcvtsd2ss", narrow, narrow, result);
  return narrow;
}

function mathResult(context: KernelContext, op: ScalarOp, args: readonly Register[]): Register {
  const c = context.vectorCode(128, "f64");
  if (op === "sigmoid") {
    const e = context.callMath("exp", [c.neg(args[0]!)]);
    return c.div(c.constant(1), c.add(c.constant(1), e));
  }
  if (op === "floorMod") {
    const [, b] = args;
    const r = context.callMath("fmod", args);
    const zero = c.constant(0);
    // Add the divisor where the remainder is not zero and has the other sign.
    const differs = c.xor(
      c.lanes64(c.compare("less", r, zero)),
      c.lanes64(c.compare("less", b!, zero)),
    );
    const nonZero = c.lanes64(c.compare("notEqual", r, zero));
    return c.add(r, c.and(c.and(differs, nonZero), b!));
  }
  const name = mathNames[op];
  if (name === undefined) context.refuse(`${op} of floats`);
  return context.callMath(name, args);
}

export function widened({ f }: KernelContext, x: Register): Register {
  const r = f.vec(128);
  f.emit("vxorps", r, r, r).emit("vcvtss2sd", r, r, x);
  return r;
}
