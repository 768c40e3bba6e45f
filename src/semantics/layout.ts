/**
 * Physical layouts as invertible maps: which element of the logical tensor stands at each position of
 * the stored array. Stored positions that map outside the logical shape are padding and hold zero.
 *
 * `packed(j / 64, k, j % 64)` of a logical [k, j] is the stored array [ceil(J / 64), K, 64] with
 * logical index [p1, 64*p0 + p2] at position p.
 */
import { evaluate, type IndexExpr } from "./index-expr.ts";
import type { Tensor } from "./tensor.ts";

export interface LayoutMap {
  /** Extents of the stored array, row-major. */
  readonly shape: readonly IndexExpr[];
  /** Logical index per logical axis, over the stored position's variables p0, p1, …. */
  readonly logical: readonly IndexExpr[];
  /** The inverse: stored position per stored axis, over the logical index's variables l0, l1, …. */
  readonly stored: readonly IndexExpr[];
}

/** Stored elements of `tensor` under a layout of constant shape; whole bytes per element only. */
export function packTensor(tensor: Tensor, layout: LayoutMap): Tensor {
  const none = new Map<string, number>();
  const shape = layout.shape.map((s) => evaluate(s, none));
  const count = shape.reduce((a, b) => a * b, 1);
  const make = tensor.data.constructor as new (n: number) => typeof tensor.data;
  const data = new make(count);
  const position = new Map<string, number>();
  const at = shape.map(() => 0);
  for (let i = 0; i < count; i++) {
    for (let axis = 0; axis < at.length; axis++) position.set(`p${axis}`, at[axis]!);
    const source = logicalOffset(layout, tensor.shape, position);
    if (source >= 0) data[i] = tensor.data[source]!;
    for (let axis = at.length - 1; axis >= 0 && ++at[axis]! === shape[axis]; axis--) at[axis] = 0;
  }
  return { dtype: tensor.dtype, shape, data };
}

function logicalOffset(
  layout: LayoutMap,
  shape: readonly number[],
  position: ReadonlyMap<string, number>,
): number {
  let offset = 0;
  for (let axis = 0; axis < shape.length; axis++) {
    const index = evaluate(layout.logical[axis]!, position);
    if (index < 0 || index >= shape[axis]!) return -1;
    offset = offset * shape[axis]! + index;
  }
  return offset;
}
