/**
 * Tensors of the host. `Tensor` holds storage format, byte for byte what a device sees: typed
 * arrays, f16/bf16 as their 16-bit patterns, f8/e8m0 as bytes, 2- and 4-bit types packed, bool as
 * bytes of 0 or 1. `RefTensor` is what the oracle computes with: float64 for every dtype but i64
 * and u64, which stay exact as BigInts. Both are dense and row-major. Values of a RefTensor always
 * lie on its dtype's grid. Scalars have shape [].
 */
import { invariant, unreachable } from "../support/invariant.ts";
import type { Rng } from "../support/rng.ts";
import { type DType, dtypes, isFloatDType, storageBytes } from "./dtype.ts";
import { decodeFloatArray, encodeFloat, encodeFloatArray, roundToFloat } from "./float-codec.ts";
import { packBits, unpackBits } from "./packing.ts";
import { elementCount, type Shape } from "./shape.ts";

/** Storage of a tensor: the typed array that its dtype prescribes. */
export type TensorData =
  | Float64Array
  | Float32Array
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | BigInt64Array
  | BigUint64Array;

export interface Tensor {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly data: TensorData;
}

/** Element values as the oracle sees them. */
export type RefData = Float64Array | BigInt64Array | BigUint64Array;

export interface RefTensor {
  readonly dtype: DType;
  readonly shape: Shape;
  /** BigInt64Array for i64, BigUint64Array for u64, Float64Array for all others. */
  readonly data: RefData;
}

interface StorageConstructor {
  readonly BYTES_PER_ELEMENT: number;
  new (length: number): TensorData;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TensorData;
}

const storageConstructors: Readonly<Record<DType, StorageConstructor>> = {
  f64: Float64Array,
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f8e4m3fn: Uint8Array,
  f8e4m3fnuz: Uint8Array,
  f8e5m2: Uint8Array,
  f8e5m2fnuz: Uint8Array,
  f4e2m1: Uint8Array,
  e8m0: Uint8Array,
  i2: Uint8Array,
  i4: Uint8Array,
  i8: Int8Array,
  i16: Int16Array,
  i32: Int32Array,
  i64: BigInt64Array,
  u2: Uint8Array,
  u4: Uint8Array,
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  u64: BigUint64Array,
  bool: Uint8Array,
};

/** A zeroed tensor. */
export function makeTensor(dtype: DType, shape: Shape): Tensor {
  return { dtype, shape, data: makeStorage(dtype, elementCount(shape)) };
}

/** Zeroed storage for `count` elements. */
export function makeStorage(dtype: DType, count: number): TensorData {
  const bits = dtypes[dtype].bits;
  return new storageConstructors[dtype](bits < 8 ? storageBytes(dtype, count) : count);
}

/** A tensor over bytes in storage format (copied: the source may be unaligned). */
export function tensorFromBytes(dtype: DType, shape: Shape, bytes: Uint8Array): Tensor {
  const tensor = makeTensor(dtype, shape);
  invariant(
    tensor.data.byteLength === bytes.byteLength,
    () => `${dtype}[${shape}] needs ${tensor.data.byteLength} bytes, got ${bytes.byteLength}`,
  );
  tensorBytes(tensor).set(bytes);
  return tensor;
}

/** The same on the bytes themselves where its elements may begin there, for readers that change nothing. */
export function tensorOnBytes(dtype: DType, shape: Shape, bytes: Uint8Array): Tensor {
  const make = storageConstructors[dtype];
  const size = make.BYTES_PER_ELEMENT;
  if (bytes.byteOffset % size !== 0) return tensorFromBytes(dtype, shape, bytes);
  const count = storageBytes(dtype, elementCount(shape)) / size;
  invariant(
    count * size === bytes.byteLength,
    () => `${dtype}[${shape}] needs ${count * size} bytes, got ${bytes.byteLength}`,
  );
  return { dtype, shape, data: new make(bytes.buffer, bytes.byteOffset, count) };
}

/** The bytes of a tensor's storage (a view, not a copy). */
export function tensorBytes(tensor: Tensor): Uint8Array {
  return new Uint8Array(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
}

/** Reference storage for `count` elements of a dtype, zeroed. */
export function makeRefData(dtype: DType, count: number): RefData {
  if (dtype === "i64") return new BigInt64Array(count);
  if (dtype === "u64") return new BigUint64Array(count);
  return new Float64Array(count);
}

/** A reference tensor from values on the dtype's grid (numbers become BigInts where needed). */
export function refTensor(
  dtype: DType,
  shape: Shape,
  values: ArrayLike<number> | ArrayLike<bigint>,
): RefTensor {
  const data = makeRefData(dtype, elementCount(shape));
  invariant(
    data.length === values.length,
    () => `${dtype}[${shape}] needs ${data.length} values, got ${values.length}`,
  );
  for (let i = 0; i < data.length; i++) {
    const value = values[i]!;
    data[i] = data instanceof Float64Array ? Number(value) : BigInt(value);
  }
  return { dtype, shape, data };
}

/** A zeroed reference tensor. */
export function zeroRef(dtype: DType, shape: Shape): RefTensor {
  return { dtype, shape, data: makeRefData(dtype, elementCount(shape)) };
}

/** The float64 values of a tensor that is not i64 or u64. */
export function numbersOf(tensor: RefTensor): Float64Array {
  invariant(tensor.data instanceof Float64Array, () => `${tensor.dtype} has BigInt values`);
  return tensor.data;
}

/** The values as numbers, whatever the dtype; i64 beyond 2^53 lose bits, so for indices only. */
export function indicesOf(tensor: RefTensor): Float64Array {
  return tensor.data instanceof Float64Array ? tensor.data : Float64Array.from(tensor.data, Number);
}

/** Storage format to reference values: exact. */
export function toRef(tensor: Tensor): RefTensor {
  const { dtype, shape, data } = tensor;
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    return { dtype, shape, data: data.slice() };
  }
  const values = new Float64Array(elementCount(shape));
  readStorage(dtype, data, values);
  return { dtype, shape, data: values };
}

function readStorage(
  dtype: DType,
  data: Exclude<TensorData, BigInt64Array | BigUint64Array>,
  values: Float64Array,
): void {
  const { bits, kind } = dtypes[dtype];
  if (bits < 8) {
    const patterns = unpackBits(data as Uint8Array, bits, values.length);
    if (kind === "float") decodeFloatArray(dtype, patterns, values);
    else if (kind === "uint") values.set(patterns);
    else
      for (let i = 0; i < values.length; i++)
        values[i] = (patterns[i]! << (32 - bits)) >> (32 - bits);
  } else if (isFloatDType(dtype) && bits <= 16) decodeFloatArray(dtype, data, values);
  else values.set(data);
}

/** Reference values to storage format: floats are rounded (a no-op on the grid). */
export function fromRef(tensor: RefTensor): Tensor {
  const { dtype, shape, data } = tensor;
  const result = makeTensor(dtype, shape);
  if (!(data instanceof Float64Array)) {
    (result.data as BigInt64Array).set(data as BigInt64Array);
    return result;
  }
  const { bits } = dtypes[dtype];
  if (bits < 8) {
    const patterns = dtypes[dtype].kind === "float" ? data.map((x) => encodeFloat(dtype, x)) : data;
    (result.data as Uint8Array).set(packBits(patterns, bits));
  } else if (isFloatDType(dtype) && bits <= 16) {
    encodeFloatArray(dtype, data, result.data as Uint16Array);
  } else {
    (result.data as Float32Array).set(data);
  }
  return result;
}

/** What random values look like; `scale` multiplies float values. */
export interface FillOptions {
  readonly distribution: "uniform" | "normal";
  readonly scale: number;
}

/**
 * Random values fit to provoke errors without overflow: floats uniform in [-scale, scale) or normal,
 * rounded to the grid; integers over their range, limited to +-1000; e8m0 in 2^-4 … 2^3.
 */
export function randomRef(
  dtype: DType,
  shape: Shape,
  rng: Rng,
  options: FillOptions = { distribution: "uniform", scale: 1 },
): RefTensor {
  const tensor = zeroRef(dtype, shape);
  const { data } = tensor;
  if (!(data instanceof Float64Array)) {
    const low = dtype === "u64" ? 0 : -1000;
    for (let i = 0; i < data.length; i++) data[i] = BigInt(rng.integer(low, 1000));
    return tensor;
  }
  for (let i = 0; i < data.length; i++) data[i] = randomValue(dtype, rng, options);
  return tensor;
}

function randomValue(dtype: DType, rng: Rng, options: FillOptions): number {
  const { kind, min, max } = dtypes[dtype];
  switch (kind) {
    case "float": {
      const unit = options.distribution === "normal" ? rng.normal() : 2 * rng.uniform() - 1;
      return roundToFloat(dtype, unit * options.scale);
    }
    case "exponent":
      return 2 ** rng.integer(-4, 3);
    case "bool":
      return rng.integer(0, 1);
    case "int":
    case "uint":
      return rng.integer(Math.max(min, -1000), Math.min(max, 1000));
    default:
      return unreachable(kind, "dtype kind");
  }
}

/** A random tensor in storage format. */
export function randomTensor(dtype: DType, shape: Shape, rng: Rng, options?: FillOptions): Tensor {
  return fromRef(randomRef(dtype, shape, rng, options));
}

/** Whether two reference tensors are the same value bit for bit (NaN equals NaN, -0 is not 0). */
export function refTensorsEqual(a: RefTensor, b: RefTensor): boolean {
  if (a.dtype !== b.dtype || a.shape.join() !== b.shape.join()) return false;
  for (let i = 0; i < a.data.length; i++) if (!Object.is(a.data[i], b.data[i])) return false;
  return true;
}
