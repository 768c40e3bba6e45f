/**
 * Whether the driver will encode a tensor map: the rules that cuda.h gives for cuTensorMapEncodeTiled
 * (without interleaving), and one that it does not give: the box, its extents divided by the element
 * strides and rounded down, has to fit the 228 KiB of a multiprocessor's shared memory. Held to 2,000
 * answers of a driver (fixtures/tensor-maps.txt).
 */
import type { Legality } from "./matrix-legality.ts";

const elementBytes = {
  u8: 1,
  u16: 2,
  u32: 4,
  i32: 4,
  u64: 8,
  i64: 8,
  f16: 2,
  bf16: 2,
  f32: 4,
  tf32: 4,
  f64: 8,
} as const satisfies Record<string, number>;

export type TensorMapType = keyof typeof elementBytes;

export interface TensorMapShape {
  readonly type: TensorMapType;
  /** Of the first element. */
  readonly addressBytes: number;
  /** Extents, fastest axis first. */
  readonly dims: readonly number[];
  /** Bytes, of the axes after the first. */
  readonly strides: readonly number[];
  readonly box: readonly number[];
  readonly elementStrides: readonly number[];
  /** 0: none. */
  readonly swizzleBytes: number;
}

const granule = 16;
const longestBox = 256;
const sharedBytes = 228 * 1024;

export function checkTensorMap(map: TensorMapShape): Legality {
  const why = faultOf(map);
  return why === undefined ? { legal: true } : { legal: false, why };
}

function faultOf(map: TensorMapShape): string | undefined {
  const { type, addressBytes, dims, strides, box, elementStrides, swizzleBytes } = map;
  const size = elementBytes[type];
  const rank = dims.length;
  if (rank < 1 || rank > 5) return `${rank} axes: 1 to 5 are possible`;
  if (strides.length !== rank - 1) return `${strides.length} strides for ${rank} axes`;
  if (addressBytes % granule !== 0) return `the address is no multiple of ${granule}`;
  const dim = dims.find((d) => d < 1 || d > 2 ** 32);
  if (dim !== undefined) return `extent ${dim} is not in 1 to 2^32`;
  const stride = strides.find((s) => s % granule !== 0 || s >= 2 ** 40);
  if (stride !== undefined) return `stride ${stride} is no multiple of ${granule} below 2^40`;
  const edge = box.find((b) => b < 1 || b > longestBox);
  if (edge !== undefined) return `box extent ${edge} is not in 1 to ${longestBox}`;
  const step = elementStrides.find((s) => s < 1 || s > 8);
  if (step !== undefined) return `element stride ${step} is not in 1 to 8`;
  const row = box[0]! * size;
  if (row % granule !== 0) return `a box row of ${row} bytes is no multiple of ${granule}`;
  if (swizzleBytes > 0 && row > swizzleBytes) {
    return `a box row of ${row} bytes is wider than its swizzle of ${swizzleBytes}`;
  }
  const bytes = box.reduce((n, b, axis) => n * Math.floor(b / elementStrides[axis]!), size);
  return bytes > sharedBytes ? `a box of ${bytes} bytes is over ${sharedBytes}` : undefined;
}
