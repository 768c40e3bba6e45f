/** `tensor("f32", [2, 3], data)`: a checked tensor; plain numbers are rounded to the type. */
import { isDType } from "../../semantics/dtype.ts";
import { fromRef, refTensor, type Tensor } from "../../semantics/tensor.ts";
import { makeCheckedTensor } from "./check-tensor.ts";
import { unwrap } from "./wavetile-error.ts";

/** Throws WavetileError when type, shape and data do not fit together. */
export function tensor(
  dtype: string,
  shape: readonly number[],
  data: Tensor["data"] | readonly number[] | readonly bigint[],
): Tensor {
  const count = shape.reduce((a, b) => a * b, 1);
  if (Array.isArray(data) && isDType(dtype) && data.length === count) {
    return fromRef(refTensor(dtype, shape, data));
  }
  return unwrap(makeCheckedTensor(dtype, shape, data));
}
