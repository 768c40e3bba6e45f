/**
 * Conversions of scalars with the meanings of semantics/scalar-meaning.ts (castScalar): floats round to
 * nearest even, integers saturate or wrap after truncation, infinities and NaN wrap to zero. What cvt
 * promises: PTX ISA, "cvt" (float to integer clamps; NaN gives 0 only for 32-bit results of f32).
 */
import { type DType, dtypes } from "../../semantics/dtype.ts";
import { integerRange } from "../../semantics/integer.ts";
import { FloatCode } from "./float-code.ts";
import { normalized } from "./integer-ops.ts";
import type { Operand, PtxCode } from "./ptx-code.ts";
import { isTinyFloat, narrowTiny, type TinyFloat, widenTiny } from "./tiny-floats.ts";
import { isFloat, isNarrowFloat, isUnsigned, widen } from "./values.ts";

/** The value of a register of `from` as a register of `to`. */
export function castScalar(
  code: PtxCode,
  [from, to]: readonly [DType, DType],
  saturate: boolean,
  x: Operand,
): Operand {
  if (from === to) return x;
  if (from === "bool") return fromBool(code, to, x);
  if (isNarrowFloat(from)) {
    return castScalar(code, ["f32", to], saturate, widen(code, from, 1, [x])[0]!);
  }
  if (isTinyFloat(from)) return castScalar(code, ["f32", to], saturate, widenTiny(code, from, x));
  if (isTinyFloat(to)) return narrowTiny(code, to, saturate, towardTiny(code, [from, to], x));
  if (to === "bool") return nonZero(code, from, x);
  if (isFloat(from)) {
    if (isFloat(to)) return floatToFloat(code, from === "f64", to, x);
    return saturate ? saturated(code, from, to, x) : wrapped(code, from, to, x);
  }
  return isFloat(to) ? integerToFloat(code, from, to, x) : resized(code, [from, to], saturate, x);
}

/** As f32, such that rounding it to a few bits is the rounding of what it was. */
function towardTiny(code: PtxCode, [from, to]: readonly [DType, TinyFloat], x: Operand): Operand {
  if (from === "f32") return x;
  if (from === "f64") return oddRounded(code, "f64", x);
  const { bits } = dtypes[from];
  const sign = isUnsigned(from) ? "u" : "s";
  // Integers of 32 bits that f32 does not hold lie beyond the largest value, but that of powers of two.
  const isHeld = bits < 32 || (bits === 32 && to !== "e8m0");
  if (isHeld) return code.op(`cvt.rn.f32.${sign}32`, "r", x);
  const long = bits === 64 ? x : code.op(`cvt.${sign}64.${sign}32`, "d", x);
  return oddRounded(code, isUnsigned(from) ? "u64" : "i64", long);
}

function fromBool(code: PtxCode, to: DType, x: Operand): Operand {
  const one = code.op("selp.b32", "r", "1", "0", x);
  return castScalar(code, ["i32", to], false, one);
}

function nonZero(code: PtxCode, from: DType, x: Operand): Operand {
  const { bits } = dtypes[from];
  if (isFloat(from)) return new FloatCode(code, bits === 64 ? 64 : 32).test("neu", x, 0);
  return code.op(`setp.ne.s${bits === 64 ? 64 : 32}`, "p", x, "0");
}

function floatToFloat(code: PtxCode, wide: boolean, to: DType, x: Operand): Operand {
  if (to === "f64") return code.op("cvt.f64.f32", "d", x);
  if (to === "f32") return code.op("cvt.rn.f32.f64", "r", x);
  if (!wide) return code.op(`cvt.rn.${to}.f32`, "h", x);
  if (to === "f16") return code.op("cvt.rn.f16.f64", "h", x);
  return code.op("cvt.rn.bf16.f32", "h", oddRounded(code, "f64", x));
}

/**
 * To f32 with the last bit set where digits were lost, so that the rounding to bf16 after it is the
 * only one that counts (Boldo and Melquiond 2008).
 */
function oddRounded(code: PtxCode, from: DType, x: Operand): Operand {
  const type = isFloat(from) ? "f64" : `${isUnsigned(from) ? "u" : "s"}64`;
  const f = code.op(`cvt.rz.f32.${type}`, "r", x);
  const back = isFloat(from)
    ? code.op("cvt.f64.f32", "d", f)
    : code.op(`cvt.rzi.${type}.f32`, "d", f);
  const test = isFloat(from) ? "setp.eq.f64" : "setp.eq.s64";
  const exact = code.op(test, "p", back, x);
  const odd = code.op("or.b32", "r", f, "1");
  const sticky = code.op("selp.b32", "r", f, odd, exact);
  if (!isFloat(from)) return sticky;
  // Infinities and NaN stay; a finite value beyond f32 was cut to the largest one, which is odd.
  const special = code.op("testp.finite.f64", "p", x);
  const plain = code.op("cvt.rn.f32.f64", "r", x);
  return code.op("selp.b32", "r", sticky, plain, special);
}

function integerToFloat(code: PtxCode, from: DType, to: DType, x: Operand): Operand {
  const wide = dtypes[from].bits === 64;
  const type = `${isUnsigned(from) ? "u" : "s"}${wide ? 64 : 32}`;
  if (to === "f64") return code.op(`cvt.rn.f64.${type}`, "d", x);
  if (to === "f32") return code.op(`cvt.rn.f32.${type}`, "r", x);
  if (to === "f16") return code.op(`cvt.rn.f16.${type}`, "h", x);
  if (dtypes[from].bits < 32) {
    return code.op("cvt.rn.bf16.f32", "h", code.op(`cvt.rn.f32.${type}`, "r", x));
  }
  const long = wide ? x : code.op(`cvt.${isUnsigned(from) ? "u64.u32" : "s64.s32"}`, "d", x);
  return code.op("cvt.rn.bf16.f32", "h", oddRounded(code, isUnsigned(from) ? "u64" : "i64", long));
}

/** Truncated and clamped; NaN becomes 0. */
function saturated(code: PtxCode, from: DType, to: DType, x: Operand): Operand {
  const { bits } = dtypes[to];
  const sign = isUnsigned(to) ? "u" : "s";
  const wide = bits === 64;
  const kind = wide ? "d" : "r";
  const source = from === "f64" ? "f64" : "f32";
  const value = code.op(`cvt.rzi.${sign}${wide ? 64 : 32}.${source}`, kind, x);
  const clamped = bits < 32 ? clamp(code, to, value) : value;
  const nan = code.op(`setp.nan.${source}`, "p", x, x);
  return code.op(`selp.b${wide ? 64 : 32}`, kind, "0", clamped, nan);
}

/** A 32-bit integer clamped to a narrower dtype; the sign is that of the dtype. */
function clamp(code: PtxCode, to: DType, x: Operand): Operand {
  const { min, max } = integerRange(to);
  if (isUnsigned(to)) return code.op("min.u32", "r", x, String(max));
  return code.op("max.s32", "r", code.op("min.s32", "r", x, String(max)), String(min));
}

/** Truncated, then modulo the width: large values are shifted into place by their exponent. */
function wrapped(code: PtxCode, from: DType, to: DType, x: Operand): Operand {
  const wide = from === "f64" ? x : code.op("cvt.f64.f32", "d", x);
  const c = new FloatCode(code, 64);
  const near = code.op("cvt.rzi.s64.f64", "d", wide);
  const mantissa = code.op("and.b64", "d", wide, "0xfffffffffffff");
  const whole = code.op("or.b64", "d", mantissa, "0x10000000000000");
  const exponent = code.op("bfe.u64", "d", wide, "52", "11");
  const shift = code.op("cvt.u32.u64", "r", code.op("sub.s64", "d", exponent, "1075"));
  const shifted = code.op("shl.b64", "d", whole, shift);
  const negative = code.op("setp.lt.s64", "p", wide, "0");
  const signed = code.op("selp.b64", "d", code.op("neg.s64", "d", shifted), shifted, negative);
  const small = c.test("lt", c.abs(wide), 2 ** 63);
  const value = code.op("selp.b64", "d", near, signed, small);
  if (dtypes[to].bits === 64) return value;
  return normalized(code, to, code.op("cvt.u32.u64", "r", value));
}

/** Between integers: through 64 bits where something may be lost. */
function resized(
  code: PtxCode,
  [from, to]: readonly [DType, DType],
  saturate: boolean,
  x: Operand,
): Operand {
  const [fromWide, toWide] = [dtypes[from].bits === 64, dtypes[to].bits === 64];
  if (!saturate) {
    const sized = !fromWide && toWide ? lengthened(code, from, x) : x;
    if (toWide) return sized;
    return normalized(code, to, fromWide ? code.op("cvt.u32.u64", "r", x) : x);
  }
  const long = fromWide ? x : lengthened(code, from, x);
  const { min, max } = integerRange(to);
  const range = integerRange(from);
  let value = long;
  if (range.max > max) {
    const type = from === "u64" ? "u64" : "s64";
    value = code.op(`min.${type}`, "d", value, String(max));
  }
  if (range.min < min) value = code.op("max.s64", "d", value, String(min));
  return toWide ? value : code.op("cvt.u32.u64", "r", value);
}

function lengthened(code: PtxCode, from: DType, x: Operand): Operand {
  return code.op(isUnsigned(from) ? "cvt.u64.u32" : "cvt.s64.s32", "d", x);
}
