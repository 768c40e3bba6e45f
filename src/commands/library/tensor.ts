/** `tensor("f32", [2, 3], data)`: a checked tensor; plain numbers are rounded to the type. */
import { type DType, isDType, isFloatDType } from "../../semantics/dtype.ts";
import { fromRef, refTensor, type Tensor, toRef } from "../../semantics/tensor.ts";
import { diagnostic, fail } from "../../support/diagnostic.ts";
import { makeCheckedTensor } from "./check-tensor.ts";
import { unwrap } from "./wavetile-error.ts";

/**
 * Throws WavetileError when type, shape and data do not fit together, or when an integer type cannot hold
 * a number.
 */
export function tensor(
  dtype: string,
  shape: readonly number[],
  data: Tensor["data"] | readonly number[] | readonly bigint[],
): Tensor {
  const count = shape.reduce((a, b) => a * b, 1);
  if (Array.isArray(data) && isDType(dtype) && data.length === count) {
    if (isFloatDType(dtype)) return fromRef(refTensor(dtype, shape, data));
    return exactTensor(dtype, shape, data);
  }
  return unwrap(makeCheckedTensor(dtype, shape, data));
}

/** Integers and truth values are never rounded or wrapped: what the type cannot hold is a mistake. */
function exactTensor(
  dtype: DType,
  shape: readonly number[],
  data: readonly number[] | readonly bigint[],
): Tensor {
  const broken = data.findIndex((value) => typeof value === "number" && !Number.isInteger(value));
  if (broken >= 0) return refuse(dtype, data, broken);
  const made = fromRef(refTensor(dtype, shape, data));
  const held = toRef(made).data;
  const other = data.findIndex((value, i) => Number(held[i]) !== Number(value));
  return other < 0 ? made : refuse(dtype, data, other);
}

function refuse(dtype: DType, data: ArrayLike<number | bigint>, at: number): never {
  const found = `element ${at} is ${data[at]}, which is no ${dtype}`;
  return unwrap(fail(diagnostic("RUN036", `tensor: ${found}`, { help: "convert it first" })));
}
