/**
 * Descriptors of the tensor memory accelerator: what cuTensorMapEncodeTiled answers for a box of a tensor
 * in device memory (CUDA driver API, "Tensor Map Object Management").
 */
import type { CudaDriver } from "./driver.ts";
import { alignedCopy } from "./launch.ts";

/** CUtensorMapDataType. */
export const tensorMapTypes = {
  u8: 0,
  u16: 1,
  u32: 2,
  i32: 3,
  u64: 4,
  i64: 5,
  f16: 6,
  f32: 7,
  f64: 8,
  bf16: 9,
  tf32: 11,
} as const;

/** CUtensorMapSwizzle by bytes; 0 is none. */
export const tensorMapSwizzles = { 0: 0, 32: 1, 64: 2, 128: 3 } as const;

/** CUtensorMapL2promotion by bytes; 0 is none. */
export const tensorMapPromotions = { 0: 0, 64: 1, 128: 2, 256: 3 } as const;

export interface TensorMapSpec {
  readonly type: keyof typeof tensorMapTypes;
  readonly address: bigint;
  /** Extents, fastest axis first; 1 to 5. */
  readonly dims: readonly number[];
  /** Bytes from one element to the next along the axes after the first. */
  readonly strides: readonly number[];
  readonly box: readonly number[];
  /** Step along each axis; by default 1. */
  readonly elementStrides?: readonly number[];
  readonly swizzleBytes: keyof typeof tensorMapSwizzles;
  readonly l2PromotionBytes?: keyof typeof tensorMapPromotions;
}

export const tensorMapBytes = 128;

/** The descriptor, or the status with which the driver refused it. */
export function encodeTensorMap(
  driver: CudaDriver,
  spec: TensorMapSpec,
): { readonly status: number; readonly map: Uint8Array } {
  const map = alignedCopy(new Uint8Array(tensorMapBytes));
  const rank = spec.dims.length;
  const status = driver.ask(
    "cuTensorMapEncodeTiled",
    map,
    tensorMapTypes[spec.type],
    rank,
    spec.address,
    BigUint64Array.from(spec.dims, BigInt),
    // A tensor of one axis has none; the driver wants a valid address all the same.
    BigUint64Array.from(spec.strides.length > 0 ? spec.strides : [0], BigInt),
    Uint32Array.from(spec.box),
    Uint32Array.from(spec.elementStrides ?? spec.dims.map(() => 1)),
    0,
    tensorMapSwizzles[spec.swizzleBytes],
    tensorMapPromotions[spec.l2PromotionBytes ?? 0],
    0,
  );
  return { status, map };
}
