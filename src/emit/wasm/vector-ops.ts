/**
 * Vector operators and conversions that have a SIMD spelling. Everything else is done lane by lane
 * (value-emitter.ts).
 */
import type { Expr } from "../../program/statement.ts";
import { type DType, dtypes, isIntegerDType } from "../../semantics/dtype.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import type { KernelContext } from "./kernel-context.ts";
import {
  findRepresentation,
  isNarrowFloat,
  isUnsigned,
  pushSplatLiteral,
  type Shape,
} from "./lanes.ts";
import type { PlainOp } from "./opcodes.ts";
import { roundingOf } from "./scalar-ops.ts";

type Push = () => void;
type OpTable = Partial<Record<ScalarOp, string>>;

const floatOps: OpTable = {
  ...{ neg: "neg", abs: "abs", sqrt: "sqrt", floor: "floor", ceil: "ceil", trunc: "trunc" },
  ...{ round: "nearest", add: "add", sub: "sub", mul: "mul", div: "div", min: "min", max: "max" },
};

/** `*` stands for _s or _u. */
const integerOps: OpTable = {
  ...{ neg: "neg", add: "add", sub: "sub", mul: "mul", min: "min*", max: "max*" },
};
const missing = new Set(["i8x16.mul", "i64x2.min_s", "i64x2.min_u", "i64x2.max_s", "i64x2.max_u"]);

const bitOps: OpTable = {
  ...{ bitAnd: "v128.and", bitOr: "v128.or", bitXor: "v128.xor", bitNot: "v128.not" },
};
const maskOps: OpTable = {
  ...bitOps,
  ...{ and: "v128.and", or: "v128.or", xor: "v128.xor", not: "v128.not" },
};

/** Comparisons, for lanes of 32 bits, whose masks are bool vectors as they are. */
const comparisons: OpTable = { equal: "eq", less: "lt", lessEqual: "le" };

/** How to push one chunk of an operator from its operands' chunks; undefined: no SIMD spelling. */
export function findVectorApply(
  context: KernelContext,
  e: Extract<Expr, { kind: "apply" }>,
): ((operands: readonly Push[]) => void) | undefined {
  const dtype = e.op === "select" ? e.dtype : e.operands[0]!.dtype;
  const shape = findRepresentation(dtype)?.shape;
  if (!shape) return undefined;
  // Lanes of 32 bits do not wrap like these.
  if (dtypes[dtype].bits < 8 && isIntegerDType(dtype)) return undefined;
  if (e.op === "select") return spellSelect(context, shape);
  if (dtype === "bool") return plain(context, maskOps[e.op]);
  const comparison = comparisons[e.op];
  if (comparison !== undefined) return spellComparison(context, dtype, shape, comparison);
  if (shape === "f32x4" || shape === "f64x2") return spellFloat(context, e.op, shape);
  return spellInteger(context, e.op, dtype, shape);
}

function plain(
  { f }: KernelContext,
  op: string | undefined,
): ((operands: readonly Push[]) => void) | undefined {
  if (op === undefined) return undefined;
  return (operands) => {
    for (const push of operands) push();
    f.op(op as PlainOp);
  };
}

function spellSelect({ f }: KernelContext, shape: Shape) {
  if (shape !== "f32x4" && shape !== "i32x4") return undefined;
  return ([mask, then, otherwise]: readonly Push[]) => {
    then!();
    otherwise!();
    mask!();
    f.op("v128.bitselect");
  };
}

function spellComparison(context: KernelContext, dtype: DType, shape: Shape, op: string) {
  if (shape === "f32x4") return plain(context, `f32x4.${op}`);
  if (shape !== "i32x4") return undefined;
  const sign = op === "eq" ? "" : isUnsigned(dtype) ? "_u" : "_s";
  return plain(context, `i32x4.${op}${sign}`);
}

function spellFloat(context: KernelContext, op: ScalarOp, shape: "f32x4" | "f64x2") {
  const { f, library } = context;
  const suffix = floatOps[op];
  if (suffix !== undefined) return plain(context, `${shape}.${suffix}`);
  const constant = (value: number) => pushSplatLiteral(f, shape === "f32x4" ? "f32" : "f64", value);
  if (op === "relu") {
    // pmax keeps its first operand unless that is less than the second: NaN stays NaN.
    return ([x]: readonly Push[]) => {
      x!();
      constant(0);
      f.op(`${shape}.pmax`);
    };
  }
  if (op === "reciprocal") {
    return ([x]: readonly Push[]) => {
      constant(1);
      x!();
      f.op(`${shape}.div`);
    };
  }
  if (op === "isNan" && shape === "f32x4") {
    return ([x]: readonly Push[]) => {
      x!();
      x!();
      f.op("f32x4.ne");
    };
  }
  if (op === "orderKey") return spellOrderKey(context);
  const row = `${op}.${shape}`;
  if (!library.has(row)) return undefined;
  return ([x]: readonly Push[]) => {
    if (!library.expands(row)) {
      x!();
      library.call(f, row);
      return;
    }
    const operand = f.local("v128");
    x!();
    f.set(operand);
    library.expand(f, row, () => f.get(operand));
    f.release(operand);
  };
}

/** The magnitude's bits, negative where the number is; NaN above all. */
function spellOrderKey({ f }: KernelContext) {
  return ([x]: readonly Push[]): void => {
    const [bits, sign] = [f.local("v128"), f.local("v128")];
    pushSplatLiteral(f, "i32", 0x7fffffff);
    x!();
    f.tee(bits);
    pushSplatLiteral(f, "i32", 0x7fffffff);
    f.op("v128.and").get(bits).i32Const(31).op("i32x4.shr_s").tee(sign).op("v128.xor");
    f.get(sign).op("i32x4.sub");
    // The key where the number equals itself.
    const key = f.local("v128");
    f.set(key).get(key);
    f.get(bits).get(bits).op("f32x4.ne").op("v128.bitselect");
    f.release(bits).release(sign).release(key);
  };
}

function spellInteger(context: KernelContext, op: ScalarOp, dtype: DType, shape: Shape) {
  if (bitOps[op] !== undefined) return plain(context, bitOps[op]);
  const unsigned = isUnsigned(dtype);
  if (op === "abs" && !unsigned) return plain(context, `${shape}.abs`);
  if (op === "relu" && !unsigned && shape !== "i64x2") {
    return ([x]: readonly Push[]) => {
      x!();
      pushSplatLiteral(context.f, dtype, 0);
      context.f.op(`${shape}.max_s` as PlainOp);
    };
  }
  const suffix = integerOps[op]?.replace("*", unsigned ? "_u" : "_s");
  const name = `${shape}.${suffix}`;
  return suffix === undefined || missing.has(name) ? undefined : plain(context, name);
}

type CastSpelling = (pushOperand: (chunk: number) => void, chunk: number) => void;

/** How to push a chunk of a conversion; undefined: no SIMD spelling. */
export function findVectorCast(
  context: KernelContext,
  e: Extract<Expr, { kind: "cast" }>,
): CastSpelling | undefined {
  const { f, library } = context;
  const [from, to] = [e.operand.dtype, e.dtype];
  const source = findRepresentation(from)?.shape;
  const target = findRepresentation(to)?.shape;
  if (dtypes[to].bits < 8 && isIntegerDType(to)) return undefined;
  if (source === "f32x4" && target === "f32x4") {
    return (push, chunk) => {
      push(chunk);
      if (isNarrowFloat(to)) library.call(f, roundingOf(to, e.saturate, "x4"));
    };
  }
  if (isFourLanes(source) && isFourLanes(target)) return spellFourLanes(context, e);
  const narrow = source === "i8x16" || source === "i16x8";
  if (narrow && isFourLanes(target) && to !== "bool") return spellWidening(context, e, source);
  if (
    source === "i8x16" &&
    target === "i16x8" &&
    !(e.saturate && isUnsigned(to) !== isUnsigned(from))
  ) {
    return (push, chunk) => {
      push(Math.floor(chunk / 2));
      const half = chunk % 2 === 0 ? "low" : "high";
      f.op(`i16x8.extend_${half}_i8x16_${isUnsigned(from) ? "u" : "s"}`);
    };
  }
  if (target === "i8x16" && e.saturate && (from === "f32" || from === "i32")) {
    return spellNarrowing(context, e);
  }
  return undefined;
}

function isFourLanes(shape: Shape | undefined): boolean {
  return shape === "f32x4" || shape === "i32x4";
}

/** Between f32 (or narrower floats), i32, u32 and bool. */
function spellFourLanes(
  context: KernelContext,
  e: Extract<Expr, { kind: "cast" }>,
): CastSpelling | undefined {
  const { f, library } = context;
  const [from, to] = [e.operand.dtype, e.dtype];
  const fromFloat = findRepresentation(from)!.shape === "f32x4";
  const toFloat = findRepresentation(to)!.shape === "f32x4";
  const spell = (finish: () => void): CastSpelling => {
    return (push, chunk) => {
      push(chunk);
      finish();
      if (isNarrowFloat(to)) library.call(f, roundingOf(to, e.saturate, "x4"));
    };
  };
  if (to === "bool") {
    return spell(() => {
      f.v128Const(new Uint8Array(16)).op(fromFloat ? "f32x4.ne" : "i32x4.ne");
    });
  }
  if (from === "bool") {
    return spell(() => {
      pushSplatLiteral(f, toFloat ? "f32" : "i32", 1);
      f.op("v128.and");
    });
  }
  if (toFloat) return spell(() => f.op(`f32x4.convert_i32x4_${isUnsigned(from) ? "u" : "s"}`));
  if (fromFloat && e.saturate) {
    return spell(() => f.op(`i32x4.trunc_sat_f32x4_${isUnsigned(to) ? "u" : "s"}`));
  }
  return !fromFloat && !e.saturate ? spell(() => undefined) : undefined;
}

/** i8, u8, i16, u16 to 32-bit lanes: each chunk is a quarter or half of the operand's. */
function spellWidening(
  context: KernelContext,
  e: Extract<Expr, { kind: "cast" }>,
  source: "i8x16" | "i16x8",
): CastSpelling | undefined {
  const { f, library } = context;
  const [from, to] = [e.operand.dtype, e.dtype];
  if (e.saturate && to === "u32" && !isUnsigned(from)) return undefined;
  const sign = isUnsigned(from) ? "u" : "s";
  const parts = source === "i8x16" ? 4 : 2;
  return (push, chunk) => {
    push(Math.floor(chunk / parts));
    const part = chunk % parts;
    if (source === "i8x16") f.op(`i16x8.extend_${part < 2 ? "low" : "high"}_i8x16_${sign}`);
    f.op(`i32x4.extend_${part % 2 === 0 ? "low" : "high"}_i16x8_${sign}`);
    if (findRepresentation(to)!.shape === "f32x4") f.op("f32x4.convert_i32x4_s");
    if (isNarrowFloat(to)) library.call(f, roundingOf(to, e.saturate, "x4"));
  };
}

/** f32 or i32 to i8 or u8, saturating: four chunks become one through i16. */
function spellNarrowing({ f }: KernelContext, e: Extract<Expr, { kind: "cast" }>): CastSpelling {
  const sign = isUnsigned(e.dtype) ? "u" : "s";
  const last = Math.ceil(e.lanes / 4) - 1;
  const narrow = (left: Push, right: Push | undefined, op: PlainOp): void => {
    left();
    if (right) right();
    else {
      const copy = f.local("v128");
      f.tee(copy).get(copy).release(copy);
    }
    f.op(op);
  };
  return (push, chunk) => {
    const quarter = (n: number) => () => {
      push(4 * chunk + n);
      if (e.operand.dtype === "f32") f.op("i32x4.trunc_sat_f32x4_s");
    };
    const has = (n: number): boolean => 4 * chunk + n <= last;
    const half = (n: number) => () =>
      narrow(quarter(n), has(n + 1) ? quarter(n + 1) : undefined, "i16x8.narrow_i32x4_s");
    narrow(half(0), has(2) ? half(2) : undefined, `i8x16.narrow_i16x8_${sign}`);
  };
}
