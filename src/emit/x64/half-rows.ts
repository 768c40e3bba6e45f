/**
 * f16 and bf16 in f32 lanes: bringing f32 values onto the narrow grid, and patterns in the low 16 bits
 * of 32-bit lanes, rounding to nearest even. f16 by the conversions of F16C; bf16 by integer steps,
 * because the hardware's own conversion drops subnormals.
 */
import type { DType } from "../../semantics/dtype.ts";
import type { Register } from "./operand.ts";
import { roundTiny } from "./tiny-float-rows.ts";
import type { VectorCode } from "./vector-code.ts";

/** To nearest, ties to even, whatever the control register says. */
const toNearest = 0;

/**
 * f32 lanes rounded to a narrow format.
 * @param saturate what lies beyond a format of at most 8 bits becomes its largest finite value
 */
export function roundNarrow(c: VectorCode, dtype: DType, x: Register, saturate = false): Register {
  if (dtype === "bf16") return c.shl(brainPatterns(c, x), 16);
  if (dtype !== "f16") return roundTiny(c, dtype, x, saturate);
  const { f } = c;
  const half = f.vec(c.bits === 512 ? 256 : 128);
  f.emit("vcvtps2ph", half, x, toNearest);
  return c.op("vcvtph2ps", half);
}

/** The patterns of bf16 in the low half of each 32-bit lane. */
export function brainPatterns(c: VectorCode, x: Register): Register {
  const odd = c.and(c.shr(x, 16), c.i32(1));
  const rounded = c.op("vpaddd", c.op("vpaddd", x, c.i32(0x7fff)), odd);
  const quiet = c.or(x, c.i32(0x400000));
  const isNan = c.compare("unordered", x, x);
  return c.shr(c.select(isNan, quiet, rounded), 16);
}

/** f32 from patterns of bf16 in 32-bit lanes. */
export function fromBrainPatterns(c: VectorCode, x: Register): Register {
  return c.shl(x, 16);
}
