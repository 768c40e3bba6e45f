/**
 * Vectors of 32-bit lanes made of single lanes and taken apart again, in registers: on the stack a vector
 * that is read where single lanes were stored waits until all of these stores are done.
 */
import type { FunctionCode } from "./function-code.ts";
import { type Register, type RegisterBits, sized } from "./operand.ts";

const quadLanes = 4;

/** @param lanes scalars: floats in vector registers, or integers in general ones */
export function joinLanes(
  f: FunctionCode,
  lanes: readonly Register[],
  { bits, evex }: { readonly bits: RegisterBits; readonly evex: boolean },
): Register {
  let whole: Register | undefined;
  for (let first = 0; first < lanes.length; first += quadLanes) {
    const quad = joinQuad(f, lanes.slice(first, first + quadLanes));
    if (!whole) {
      whole = quad;
      continue;
    }
    const wider = f.vec(bits);
    const insert = evex ? "vinsertf32x4" : "vinsertf128";
    f.emit(insert, wider, sized(whole, bits), quad, first / quadLanes);
    whole = wider;
  }
  return sized(whole!, bits);
}

/** A vector whose first lane is a float of its own. */
export function replaceFirst(
  f: FunctionCode,
  whole: Register,
  first: Register,
  { bits, evex }: { readonly bits: RegisterBits; readonly evex: boolean },
): Register {
  const quad = f.vec(128);
  f.emit("vinsertps", quad, sized(whole, 128), sized(first, 128), 0);
  if (bits === 128) return quad;
  const wide = f.vec(bits);
  f.emit(evex ? "vinsertf32x4" : "vinsertf128", wide, whole, quad, 0);
  return wide;
}

function joinQuad(f: FunctionCode, [first, ...others]: readonly Register[]): Register {
  const isFloat = first!.class === "vec";
  let quad = sized(first!, isFloat ? 128 : 32);
  if (!isFloat) {
    const low = f.vec(128);
    f.emit("vmovd", low, quad);
    quad = low;
  }
  for (const [i, lane] of others.entries()) {
    const next = f.vec(128);
    const at = i + 1;
    if (isFloat) f.emit("vinsertps", next, quad, sized(lane, 128), at << 4);
    else f.emit("vpinsrd", next, quad, sized(lane, 32), at);
    quad = next;
  }
  return quad;
}

/** One float lane of a vector as a scalar. */
export function takeLane(f: FunctionCode, from: Register, lane: number, evex: boolean): Register {
  let quad = sized(from, 128);
  const at = lane % quadLanes;
  if (lane >= quadLanes) {
    quad = f.vec(128);
    f.emit(evex ? "vextractf32x4" : "vextractf128", quad, from, Math.floor(lane / quadLanes));
  }
  if (at === 0) return quad;
  const low = f.vec(128);
  f.emit("vpermilps", low, quad, at);
  return low;
}
