/**
 * Arithmetic on concrete shapes: element counts, row-major strides, broadcasting, axis
 * normalisation, iteration in row-major order. Symbolic shapes belong to graph/.
 */
import { invariant } from "../support/invariant.ts";

export type Shape = readonly number[];

export function elementCount(shape: Shape): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** Row-major strides in elements. */
export function rowMajorStrides(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis]!;
  }
  return strides;
}

/** The common shape of numpy broadcasting, or null when the shapes do not broadcast. */
export function broadcastShapes(...shapes: readonly Shape[]): number[] | null {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  const result = new Array<number>(rank).fill(1);
  for (const shape of shapes) {
    const offset = rank - shape.length;
    for (const [axis, extent] of shape.entries()) {
      const seen = result[offset + axis]!;
      if (seen === 1) result[offset + axis] = extent;
      else if (extent !== 1 && extent !== seen) return null;
    }
  }
  return result;
}

/** Strides with which `shape` is read at each index of `target` (0 along broadcast axes). */
export function broadcastStrides(shape: Shape, target: Shape): number[] {
  const strides = rowMajorStrides(shape);
  const offset = target.length - shape.length;
  return target.map((_, axis) => {
    const own = axis - offset;
    return own >= 0 && shape[own] !== 1 ? strides[own]! : 0;
  });
}

export function shapesEqual(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((extent, axis) => extent === b[axis]);
}

/**
 * For every index of `shape` in row-major order the offset `base + sum(index * stride)`: how a
 * strided view is read. The base of slices, transposes, broadcasts, reversals.
 */
export function viewOffsets(shape: Shape, strides: readonly number[], base = 0): Int32Array {
  const offsets = new Int32Array(elementCount(shape));
  if (offsets.length === 0) return offsets;
  offsets[0] = base;
  let filled = 1;
  // Grow from the innermost axis: each axis repeats the block built so far with its stride added.
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const block = filled;
    for (let i = 1; i < shape[axis]!; i++) {
      const shift = i * strides[axis]!;
      for (let j = 0; j < block; j++) offsets[filled++] = offsets[j]! + shift;
    }
  }
  return offsets;
}

/** Calls `visit` with each index of `shape` in row-major order; the array is reused. */
export function forEachIndex(
  shape: Shape,
  visit: (index: readonly number[], offset: number) => void,
): void {
  const count = elementCount(shape);
  const index = new Array<number>(shape.length).fill(0);
  for (let offset = 0; offset < count; offset++) {
    visit(index, offset);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = index[axis]! + 1;
      if (index[axis]! < shape[axis]!) break;
      index[axis] = 0;
    }
  }
}

/** The row-major offset of one index. */
export function offsetOf(index: readonly number[], strides: readonly number[]): number {
  let offset = 0;
  for (let axis = 0; axis < index.length; axis++) offset += index[axis]! * strides[axis]!;
  return offset;
}

/** Splits a shape around an axis: `outer` blocks of `extent` rows of `inner` elements. */
export function splitAtAxis(
  shape: Shape,
  axis: number,
): { readonly outer: number; readonly extent: number; readonly inner: number } {
  invariant(axis >= 0 && axis < shape.length, () => `axis ${axis} of rank ${shape.length}`);
  return {
    outer: elementCount(shape.slice(0, axis)),
    extent: shape[axis]!,
    inner: elementCount(shape.slice(axis + 1)),
  };
}
