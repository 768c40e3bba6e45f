/**
 * f8e4m3fn and f8e5m2 in registers: their pattern in the low 8 bits of a word. Widened exactly by shifting the
 * fields into those of f32 and scaling by the difference of the biases; narrowed from f32 by rounding the bits
 * that are lost to nearest even, below the smallest normal by adding the power of two at whose last place the
 * format's lies. A format is its row of the dtype table.
 */
import { type DType, dtypes, type FloatFormat } from "../../semantics/dtype.ts";
import { encodeFloat } from "../../semantics/float-codec.ts";
import { invariant } from "../../support/invariant.ts";
import { f32Immediate, type Operand, type PtxCode } from "./ptx-code.ts";

export type ByteFloat = "f8e4m3fn" | "f8e5m2";

export function isByteFloat(dtype: DType): dtype is ByteFloat {
  return dtype === "f8e4m3fn" || dtype === "f8e5m2";
}

const [f32Bias, f32Mantissa] = [127, 23];
const f32Infinity = 0x7f800000;
const signBit = 0x80;

function formatOf(dtype: ByteFloat): FloatFormat & { readonly spare: number } {
  const { format } = dtypes[dtype];
  invariant(format, () => `${dtype} has no float format`);
  return { ...format, spare: f32Mantissa - format.mantissaBits };
}

const bitsOf = (value: number): number =>
  new DataView(Float32Array.of(value).buffer).getUint32(0, true);

/** The pattern as f32. */
export function widenByte(code: PtxCode, dtype: ByteFloat, x: Operand): Operand {
  const { spare, bias } = formatOf(dtype);
  const magnitude = code.op("and.b32", "r", x, String(signBit - 1));
  const shifted = code.op("shl.b32", "r", magnitude, String(spare));
  const scaled = code.op("mul.rn.f32", "r", shifted, f32Immediate(2 ** (f32Bias - bias)));
  const special = encodeFloat(dtype, Infinity, "special");
  const isSpecial = code.op("setp.ge.u32", "p", magnitude, String(special));
  // Where the format has infinities their mantissa is zero, and that of NaNs is not.
  const top = code.op("or.b32", "r", shifted, String(f32Infinity));
  const bits = code.op("selp.b32", "r", top, scaled, isSpecial);
  const sign = code.op("shl.b32", "r", code.op("and.b32", "r", x, String(signBit)), "24");
  return code.op("or.b32", "r", bits, sign);
}

/** The pattern of an f32, rounded to nearest even; what lies beyond becomes the largest value, or is special. */
export function narrowByte(
  code: PtxCode,
  dtype: ByteFloat,
  saturate: boolean,
  x: Operand,
): Operand {
  const { spare, bias, mantissaBits } = formatOf(dtype);
  const smallest = 2 ** (1 - bias);
  const magic = smallest * 2 ** spare;
  const bits = code.op("and.b32", "r", x, "0x7fffffff");
  const odd = code.op("bfe.u32", "r", bits, String(spare), "1");
  const up = code.op(
    "add.u32",
    "r",
    code.op("add.u32", "r", bits, odd),
    String(2 ** (spare - 1) - 1),
  );
  const cut = code.op("shr.u32", "r", up, String(spare));
  const normal = code.op("sub.u32", "r", cut, String((f32Bias - bias) * 2 ** mantissaBits));
  const added = code.op("add.rn.f32", "r", bits, f32Immediate(magic));
  const small = code.op("sub.u32", "r", added, String(bitsOf(magic)));
  const isSmall = code.op("setp.lt.u32", "p", bits, String(bitsOf(smallest)));
  const finite = code.op("selp.b32", "r", small, normal, isSmall);
  const largest = encodeFloat(dtype, dtypes[dtype].max);
  const isBeyond = code.op("setp.gt.u32", "p", finite, String(largest));
  const beyond = encodeFloat(dtype, Infinity, saturate ? "saturate" : "special");
  const bounded = code.op("selp.b32", "r", String(beyond), finite, isBeyond);
  const isNan = code.op("setp.gt.u32", "p", bits, String(f32Infinity));
  const value = code.op("selp.b32", "r", String(encodeFloat(dtype, Number.NaN)), bounded, isNan);
  const sign = code.op("and.b32", "r", code.op("shr.u32", "r", x, "24"), String(signBit));
  return code.op("or.b32", "r", value, sign);
}
