/**
 * Conversions of scalars with the meanings of semantics/scalar-meaning.ts (castScalar): floats round to
 * nearest even, integers saturate or wrap after truncation, infinities and NaN wrap to zero.
 */
import { type DType, dtypes } from "../../semantics/dtype.ts";
import { integerRange } from "../../semantics/integer.ts";
import { castSaturates } from "../../semantics/scalar-meaning.ts";
import { roundNarrow } from "./half-rows.ts";
import { flagOf, normalize } from "./integer-ops.ts";
import type { KernelContext } from "./kernel-context.ts";
import { holdingOf, isFloat, isNarrowFloat, isUnsigned, scalarBits } from "./lanes.ts";
import { immediate, type Register, sized } from "./operand.ts";
import { patternOfF64 } from "./vector-code.ts";

export function castScalar(
  context: KernelContext,
  [from, to]: readonly [DType, DType],
  saturate: boolean,
  x: Register,
): Register {
  if (from === to) return x;
  if (to === "bool") return nonZero(context, from, x);
  if (isFloat(from)) {
    if (isFloat(to)) return floatToFloat(context, [from, to], saturate, x);
    const wide = holdingOf(from) === "f64" ? x : toF64(context, x);
    return saturate ? saturated(context, to, wide) : wrapped(context, to, wide);
  }
  return isFloat(to)
    ? integerToFloat(context, [from, to], saturate, x)
    : resized(context, from, to, saturate, x);
}

function nonZero({ f }: KernelContext, from: DType, x: Register): Register {
  if (!isFloat(from)) {
    f.emit("test", x, x);
    return flagOf(f, "ne");
  }
  const zero = f.splat32(0, 128);
  f.emit(holdingOf(from) === "f64" ? "vucomisd" : "vucomiss", x, zero);
  // NaN is not zero: not equal or not comparable.
  const r = flagOf(f, "ne");
  f.emit(holdingOf(from) === "f64" ? "vucomisd" : "vucomiss", x, zero);
  f.emit("or", r, flagOf(f, "p"));
  return r;
}

function toF64({ f }: KernelContext, x: Register): Register {
  const r = f.vec(128);
  f.emit("vxorps", r, r, r).emit("vcvtss2sd", r, r, x);
  return r;
}

function toF32({ f }: KernelContext, x: Register): Register {
  const r = f.vec(128);
  f.emit("vxorps", r, r, r).emit("vcvtsd2ss", r, r, x);
  return r;
}

function floatToFloat(
  context: KernelContext,
  [from, to]: readonly [DType, DType],
  saturate: boolean,
  x: Register,
): Register {
  const [source, target] = [holdingOf(from), holdingOf(to)];
  if (target === "f64") return source === "f64" ? x : toF64(context, x);
  const single =
    source === "f64" ? (isNarrowFloat(to) ? demoteOdd(context, x) : toF32(context, x)) : x;
  return isNarrowFloat(to) ? narrowed(context, to, saturate, single) : single;
}

function narrowed(context: KernelContext, to: DType, saturate: boolean, x: Register): Register {
  return roundNarrow(context.vectorCode(128, "f32"), to, x, saturate && castSaturates(to));
}

/**
 * f64 to f32 rounded to odd, so that a second rounding to a narrower format is the right one (Boldo
 * and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
 */
function demoteOdd(context: KernelContext, x: Register): Register {
  const { f } = context;
  const near = toF32(context, x);
  const back = toF64(context, near);
  const r = f.vec(128);
  const end = f.label();
  // Exact, infinite or NaN: as it is.
  f.emit("vmovaps", r, near).emit("vucomisd", back, x).emit("je", end);
  const c = context.vectorCode(128, "f64");
  f.emit("vucomisd", c.abs(back), c.constant(Number.POSITIVE_INFINITY)).emit("je", end);
  const bits = f.gpr(32);
  f.emit("vmovd", bits, near);
  // One step back towards zero where the rounding went outwards, then the last bit set.
  f.emit("vucomisd", c.abs(back), c.abs(x));
  f.emit("sub", bits, flagOf(f, "a")).emit("or", bits, 1).emit("vmovd", r, bits).place(end);
  return r;
}

function integerToFloat(
  context: KernelContext,
  [from, to]: readonly [DType, DType],
  saturate: boolean,
  x: Register,
): Register {
  // To nearest and up are two roundings: not by way of f32.
  if (to === "e8m0") {
    const wide = integerToFloat(context, [from, "f64"], false, x);
    return floatToFloat(context, ["f64", to], saturate, wide);
  }
  const { f } = context;
  const r = f.vec(128);
  const suffix = holdingOf(to) === "f64" ? "sd" : "ss";
  f.emit("vxorps", r, r, r);
  // Narrow unsigned values are non-negative as 32 bits; a u32 is one as 64.
  if (from === "u64") unsignedToFloat(context, suffix, r, x);
  else f.emit(`vcvtsi2${suffix}`, r, r, from === "u32" ? sized(x, 64) : x);
  return isNarrowFloat(to) ? narrowed(context, to, saturate, r) : r;
}

function unsignedToFloat(
  { f, features }: KernelContext,
  suffix: "ss" | "sd",
  r: Register,
  x: Register,
): void {
  if (features.evex) {
    f.emit(`vcvtusi2${suffix}`, r, r, x);
    return;
  }
  // From 2^63 on: half, the lost bit kept for the rounding, then doubled.
  const [large, end] = [f.label(), f.label()];
  f.emit("test", x, x).emit("js", large).emit(`vcvtsi2${suffix}`, r, r, x).emit("jmp", end);
  const [half, low] = [f.gpr(), f.gpr()];
  f.place(large).emit("mov", half, x).emit("shr", half, 1);
  f.emit("mov", low, x).emit("and", low, 1).emit("or", half, low);
  f.emit(`vcvtsi2${suffix}`, r, r, half).emit(`vadd${suffix}`, r, r, r).place(end);
}

/** From f64, clamped to the range; NaN gives zero. */
function saturated(context: KernelContext, to: DType, x: Register): Register {
  const { f } = context;
  const r = f.gpr(64);
  const end = f.label();
  f.emit("xor", sized(r, 32), sized(r, 32)).emit("vucomisd", x, x).emit("jp", end);
  if (scalarBits(to) === 64) saturateWide(context, to, x, r, end);
  else {
    const { min, max } = integerRange(to);
    const low = f.splat64(patternOfF64(Number(min)), 128);
    const high = f.splat64(patternOfF64(Number(max)), 128);
    const clamped = f.vec(128);
    f.emit("vmaxsd", clamped, x, low).emit("vminsd", clamped, clamped, high);
    f.emit("vcvttsd2si", r, clamped);
  }
  f.place(end);
  return sized(r, scalarBits(to));
}

type LabelOf = ReturnType<KernelContext["f"]["label"]>;

function saturateWide(
  context: KernelContext,
  to: DType,
  x: Register,
  r: Register,
  end: LabelOf,
): void {
  const { f } = context;
  const limit = f.splat64(patternOfF64(to === "u64" ? 2 ** 64 : 2 ** 63), 128);
  const most = to === "u64" ? (1n << 64n) - 1n : (1n << 63n) - 1n;
  const inside = f.label();
  f.emit("vucomisd", x, limit).emit("jb", inside);
  f.emit("movabs", r, immediate(BigInt.asIntN(64, most)))
    .emit("jmp", end)
    .place(inside);
  if (to === "i64") f.emit("vcvttsd2si", r, x);
  else {
    f.emit("vucomisd", x, f.splat64(0n, 128)).emit("jbe", end);
    unsignedFromFloat(context, x, r);
  }
}

/** Of 0 <= x < 2^64. */
function unsignedFromFloat({ f }: KernelContext, x: Register, r: Register): void {
  const half = f.splat64(patternOfF64(2 ** 63), 128);
  const [small, end] = [f.label(), f.label()];
  f.emit("vucomisd", x, half).emit("jb", small);
  const [rest, top] = [f.vec(128), f.gpr()];
  f.emit("vsubsd", rest, x, half).emit("vcvttsd2si", r, rest);
  f.emit("movabs", top, immediate(-(1n << 63n)))
    .emit("xor", r, top)
    .emit("jmp", end);
  f.place(small).emit("vcvttsd2si", r, x).place(end);
}

/** From f64 modulo the width, truncated first; infinities and NaN give zero. */
function wrapped(context: KernelContext, to: DType, x: Register): Register {
  const { f } = context;
  const c = context.vectorCode(128, "f64");
  const r = f.gpr(64);
  const [large, end] = [f.label(), f.label()];
  f.emit("vucomisd", c.abs(x), c.constant(2 ** 63)).emit("jae", large);
  f.emit("jp", large).emit("vcvttsd2si", r, x).emit("jmp", end).place(large);
  f.emit("xor", sized(r, 32), sized(r, 32));
  f.emit("vucomisd", c.abs(x), c.constant(Number.POSITIVE_INFINITY)).emit("jae", end);
  f.emit("jp", end);
  // A multiple of 2^11, so that the difference is exact.
  const turns = c.rounded(c.mul(x, c.constant(2 ** -64)), "floor");
  unsignedFromFloat(context, c.sub(x, c.mul(turns, c.constant(2 ** 64))), r);
  f.place(end);
  if (scalarBits(to) === 64) return r;
  return normalize(f, to, sized(r, 32));
}

/** Between integers, through 64 bits, where all but the upper half of u64 is itself. */
function resized(
  context: KernelContext,
  from: DType,
  to: DType,
  saturate: boolean,
  x: Register,
): Register {
  const { f } = context;
  const r = f.gpr(64);
  if (scalarBits(from) === 64) f.emit("mov", r, x);
  else if (from === "i32") f.emit("movsxd", r, x);
  // Narrower ones are extended in their 32 bits already.
  else if (isUnsigned(from) || from === "bool") f.emit("mov", sized(r, 32), x);
  else f.emit("movsxd", r, x);
  if (saturate) clampInteger(context, from, to, r);
  return scalarBits(to) === 64 ? r : normalize(f, to, sized(r, 32));
}

function clampInteger({ f }: KernelContext, from: DType, to: DType, r: Register): void {
  const { min, max } = integerRange(to);
  const limit = f.gpr(64);
  const cap = (value: bigint, beyond: "cmovl" | "cmovg" | "cmova"): void => {
    f.emit("movabs", limit, immediate(BigInt.asIntN(64, value))).emit("cmp", r, limit);
    f.emit(beyond, r, limit);
  };
  if (from === "u64") {
    if (to !== "u64") cap(max, "cmova");
    return;
  }
  if (dtypes[to].kind === "uint") cap(0n, "cmovl");
  else if (to !== "i64") cap(min, "cmovl");
  if (scalarBits(to) === 32) cap(max, "cmovg");
}
