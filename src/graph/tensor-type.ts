/** Small functions on tensor types: making, comparing, spelling and counting them. */
import { type DType, dtypes } from "../semantics/dtype.ts";
import {
  ceilDiv,
  type IndexExpr,
  type IndexLike,
  indexEquals,
  mul,
  toIndex,
} from "../semantics/index-expr.ts";
import type { TensorType } from "./graph.ts";

/** `tensorType("f32", M, 768)`; without dimensions a scalar. */
export function tensorType(dtype: DType, ...shape: readonly IndexLike[]): TensorType {
  return { dtype, shape: shape.map(toIndex) };
}

/** `f32[M, 768]`; a scalar is `f32[]`. */
export function printType(type: TensorType): string {
  return `${type.dtype}${printShape(type.shape)}`;
}

export function printShape(shape: readonly IndexExpr[]): string {
  return `[${shape.map((d) => d.key).join(", ")}]`;
}

export function sameShape(a: readonly IndexExpr[], b: readonly IndexExpr[]): boolean {
  return a.length === b.length && a.every((d, i) => indexEquals(d, b[i]!));
}

export function sameType(a: TensorType, b: TensorType): boolean {
  return a.dtype === b.dtype && sameShape(a.shape, b.shape);
}

export function elementsOf(type: TensorType): IndexExpr {
  return mul(...type.shape);
}

/** Bytes of the elements in storage; types below a byte are packed. */
export function bytesOf(type: TensorType): IndexExpr {
  const { bits } = dtypes[type.dtype];
  const elements = elementsOf(type);
  return bits >= 8 ? mul(elements, bits / 8) : ceilDiv(mul(elements, bits), 8);
}
