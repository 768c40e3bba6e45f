/** Tensors between the Session interface and Wavetile's own storage form; the arrays are shared. */
import type { TensorType } from "../../src/graph/graph.ts";
import { type DType, isDType } from "../../src/semantics/dtype.ts";
import { constantValue } from "../../src/semantics/index-expr.ts";
import type { Tensor as StoredTensor } from "../../src/semantics/tensor.ts";
import { invariant } from "../../src/support/invariant.ts";
import type { ElementType, Tensor, TensorInfo } from "./session.ts";

const dtypeOf: Readonly<Record<ElementType, DType>> = {
  float32: "f32",
  float64: "f64",
  int32: "i32",
  int64: "i64",
  uint8: "u8",
  int8: "i8",
  bool: "bool",
};

const elementTypeOf = new Map(
  Object.entries(dtypeOf).map(([type, dtype]) => [dtype, type as ElementType]),
);

export function toStored({ type, dims, data }: Tensor): StoredTensor {
  return { dtype: dtypeOf[type], shape: dims, data };
}

export function fromStored({ dtype, shape, data }: StoredTensor): Tensor {
  return { type: elementTypeFor(dtype), dims: shape, data } as Tensor;
}

/** An input or output of a graph as callers know it; symbolic extents by their expression. */
export function describeValue(name: string, { dtype, shape }: TensorType): TensorInfo {
  const dims = shape.map((d) => constantValue(d) ?? d.key);
  return { name, type: elementTypeFor(dtype), dims };
}

/** Throws for types that no bench carries. */
export function elementTypeFor(dtype: DType): ElementType {
  const type = elementTypeOf.get(dtype);
  invariant(type !== undefined, () => `element type ${dtype} is not carried`);
  return type;
}

/** By the name of either form. */
export function dtypeNamed(name: string): DType {
  if (isDType(name)) return name;
  const dtype = (dtypeOf as Readonly<Record<string, DType>>)[name];
  invariant(dtype !== undefined, () => `element type ${name} is not carried`);
  return dtype;
}
