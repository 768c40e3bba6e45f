/**
 * Conversions of vectors of 32-bit lanes to bytes and to 16 bits. In: a register of lanes. Out: a register of
 * half as many bits, 128 at least, with one element a lane at its low end. EVEX has instructions that narrow
 * (VPMOVDB, VPMOVDW and their saturating forms); under VEX the two halves are packed, which saturates: to 16
 * bits, and then to 8.
 */
import type { DType } from "../../semantics/dtype.ts";
import { isUnsigned } from "./lanes.ts";
import { type Register, sized } from "./operand.ts";
import type { Features, VectorCode } from "./vector-code.ts";

type Narrow = (c: VectorCode, x: Register) => Register;

/** How floats become integers: towards zero, as casts do, or to the nearest, as the control word says. */
export type Conversion = "vcvttps2dq" | "vcvtps2dq";

/**
 * How to convert one register of f32, i32 or u32 lanes to i8 or u8; undefined: lane by lane. A float that saturates
 * is converted as `conversion` says.
 */
export function findNarrowing(
  [from, to]: readonly [DType, DType],
  saturate: boolean,
  { evex }: Features,
  conversion: Conversion = "vcvttps2dq",
): Narrow | undefined {
  if (to === "i16" && from === "i32") return (c, x) => integerToWord(c, x, saturate);
  if (to !== "i8" && to !== "u8") return undefined;
  if (from === "f32" && saturate) {
    const make = to === "u8" ? floatToUnsigned : floatToSigned;
    return (c, x) => make(c, x, conversion);
  }
  if (from !== "i32" && from !== "u32") return undefined;
  if (!saturate) return truncated;
  if (from === "i32") return to === "u8" ? integerToUnsigned : integerToSigned;
  // Unsigned values pass the range of the signed packs.
  if (!evex) return undefined;
  return to === "u8" ? (c, x) => narrowed(c, "vpmovusdb", x) : unsignedToSigned;
}

function narrowed(c: VectorCode, op: string, x: Register): Register {
  const r = c.f.vec(128);
  c.f.emit(op, r, x);
  return r;
}

/** Both halves side by side with signed saturation to 16 bits. */
function words(c: VectorCode, x: Register): Register {
  const { f } = c;
  const [low, high, made] = [sized(x, 128), f.vec(128), f.vec(128)];
  if (c.bits === 256) f.emit("vextractf128", high, x, 1);
  f.emit("vpackssdw", made, low, c.bits === 256 ? high : low);
  return made;
}

/** To 16 bits with saturation, then to bytes. */
function packed(c: VectorCode, x: Register, to: "i8" | "u8"): Register {
  const bytes = c.f.vec(128);
  const pairs = words(c, x);
  c.f.emit(isUnsigned(to) ? "vpackuswb" : "vpacksswb", bytes, pairs, pairs);
  return bytes;
}

/** Without saturation the low halves, extended first so that packing keeps them. */
function integerToWord(c: VectorCode, x: Register, saturate: boolean): Register {
  if (c.evex) {
    const r = c.f.vec(c.bits === 512 ? 256 : 128);
    c.f.emit(saturate ? "vpmovsdw" : "vpmovdw", r, x);
    return r;
  }
  return words(c, saturate ? x : c.sar(c.shl(x, 16), 16));
}

/** NaN becomes zero, as it is no number that is greater than zero. */
function floatToUnsigned(c: VectorCode, x: Register, conversion: Conversion): Register {
  const positive = c.maxOrSecond(x, c.constant(0));
  if (c.evex) {
    const unsigned = conversion === "vcvttps2dq" ? "vcvttps2udq" : "vcvtps2udq";
    return narrowed(c, "vpmovusdb", c.op(unsigned, positive));
  }
  const capped = c.minOrSecond(positive, c.constant(255));
  return packed(c, c.op(conversion, capped), "u8");
}

/** What is too small converts to the lowest integer, which saturates as it should. */
function floatToSigned(c: VectorCode, x: Register, conversion: Conversion): Register {
  const number = c.select(c.compare("ordered", x, x), x, c.constant(0));
  const whole = c.op(conversion, c.minOrSecond(number, c.constant(127)));
  return integerToSigned(c, whole);
}

function integerToUnsigned(c: VectorCode, x: Register): Register {
  if (!c.evex) return packed(c, x, "u8");
  return narrowed(c, "vpmovusdb", c.op("vpmaxsd", x, c.i32(0)));
}

function integerToSigned(c: VectorCode, x: Register): Register {
  return c.evex ? narrowed(c, "vpmovsdb", x) : packed(c, x, "i8");
}

function unsignedToSigned(c: VectorCode, x: Register): Register {
  return narrowed(c, "vpmovdb", c.op("vpminud", x, c.i32(127)));
}

function truncated(c: VectorCode, x: Register): Register {
  if (c.evex) return narrowed(c, "vpmovdb", x);
  return packed(c, c.and(x, c.i32(0xff)), "u8");
}
