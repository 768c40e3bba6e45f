/** Host tensors in storage format. */
import type { DType } from "./dtype.ts";

export interface Tensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Row-major elements; f16/bf16 as Uint16Array, 8-bit floats, bool and packed sub-byte types as Uint8Array. */
  readonly data:
    | Float64Array
    | Float32Array
    | Uint8Array
    | Int8Array
    | Uint16Array
    | Int16Array
    | Int32Array
    | Uint32Array
    | BigInt64Array
    | BigUint64Array;
}
