/**
 * References of gather and scatter. Indices are integers of any dtype; negative ones count from the
 * end; out of range is rejected (SEM001). Scatter applies updates in row-major order of the indices,
 * so with reduction `none` the last one wins; reductions accumulate before rounding.
 */
import { reject } from "../../support/diagnostic.ts";
import type { ScatterReduction } from "../core-ops.ts";
import { type DType, isBigDType } from "../dtype.ts";
import { bigMeaningOf, numberMeaningOf, type ScalarValue } from "../scalar-meaning.ts";
import { elementCount, rowMajorStrides, type Shape, splitAtAxis, viewOffsets } from "../shape.ts";
import { indicesOf, type RefTensor } from "../tensor.ts";
import { finish, type Reference, takeOffsets } from "./reference.ts";

/** A non-negative index below `extent`. */
function checkedIndex(index: number, extent: number, axis: number): number {
  const wrapped = index < 0 ? index + extent : index;
  if (wrapped >= 0 && wrapped < extent) return wrapped;
  return reject("SEM001", `index ${index} is outside axis ${axis} of extent ${extent}`, {
    help: `use indices from ${-extent} to ${extent - 1}`,
  });
}

export const gather: Reference<"gather"> = ({ axis }, [data, indices]) => {
  const { outer, extent, inner } = splitAtAxis(data!.shape, axis);
  const picked = indicesOf(indices!).map((index) => checkedIndex(index, extent, axis));
  const shape = [...data!.shape.slice(0, axis), ...indices!.shape, ...data!.shape.slice(axis + 1)];
  const offsets = new Int32Array(outer * picked.length * inner);
  let at = 0;
  for (let o = 0; o < outer; o++) {
    for (let p = 0; p < picked.length; p++) {
      const base = (o * extent + picked[p]!) * inner;
      for (let i = 0; i < inner; i++) offsets[at++] = base + i;
    }
  }
  return [takeOffsets(data!, shape, offsets)];
};

/** For each element of `indices` the offset in `dataShape` with its position along `axis` replaced. */
function elementOffsets(dataShape: Shape, indices: RefTensor, axis: number): Int32Array {
  const strides = rowMajorStrides(dataShape);
  const others = strides.map((stride, i) => (i === axis ? 0 : stride));
  const offsets = viewOffsets(indices.shape, others);
  const values = indicesOf(indices);
  for (let i = 0; i < offsets.length; i++) {
    offsets[i] = offsets[i]! + checkedIndex(values[i]!, dataShape[axis]!, axis) * strides[axis]!;
  }
  return offsets;
}

export const gatherElements: Reference<"gatherElements"> = ({ axis }, [data, indices]) => [
  takeOffsets(data!, indices!.shape, elementOffsets(data!.shape, indices!, axis)),
];

/** The offset of the slice that each index tuple of `indices` names, and the length of a slice. */
function tupleOffsets(
  dataShape: Shape,
  indices: RefTensor,
  batchDims: number,
): { readonly starts: Int32Array; readonly sliceLength: number } {
  const width = indices.shape.at(-1)!;
  const strides = rowMajorStrides(dataShape);
  const values = indicesOf(indices);
  const tuples = elementCount(indices.shape.slice(0, -1));
  const batches = elementCount(dataShape.slice(0, batchDims));
  const batchLength = elementCount(dataShape.slice(batchDims));
  const starts = new Int32Array(tuples);
  for (let t = 0; t < tuples; t++) {
    let start = Math.floor((t * batches) / tuples) * batchLength;
    for (let j = 0; j < width; j++) {
      const axis = batchDims + j;
      start += checkedIndex(values[t * width + j]!, dataShape[axis]!, axis) * strides[axis]!;
    }
    starts[t] = start;
  }
  return { starts, sliceLength: elementCount(dataShape.slice(batchDims + width)) };
}

export const gatherNd: Reference<"gatherNd"> = ({ batchDims }, [data, indices]) => {
  const { starts, sliceLength } = tupleOffsets(data!.shape, indices!, batchDims);
  const width = indices!.shape.at(-1)!;
  const shape = [...indices!.shape.slice(0, -1), ...data!.shape.slice(batchDims + width)];
  const offsets = new Int32Array(starts.length * sliceLength);
  for (let i = 0; i < offsets.length; i++) {
    offsets[i] = starts[Math.floor(i / sliceLength)]! + (i % sliceLength);
  }
  return [takeOffsets(data!, shape, offsets)];
};

type Combine = (old: ScalarValue, update: ScalarValue) => ScalarValue;

function combineOf(reduction: ScatterReduction, dtype: DType): Combine {
  if (reduction === "none") return (_, update) => update;
  if (isBigDType(dtype)) {
    const meaning = bigMeaningOf(reduction, dtype);
    return (old, update) => meaning(old as bigint, update as bigint, 0n);
  }
  const meaning = numberMeaningOf(reduction, dtype);
  return (old, update) => meaning(old as number, update as number, 0);
}

/** Copies `data` and combines update i into the element at offset i. */
function scatter(
  data: RefTensor,
  updates: RefTensor,
  offsets: Int32Array,
  reduction: ScatterReduction,
): RefTensor {
  const result = data.data.slice();
  const combine = combineOf(reduction, data.dtype);
  for (let i = 0; i < offsets.length; i++) {
    const at = offsets[i]!;
    result[at] = combine(result[at]!, updates.data[i]!);
  }
  if (result instanceof Float64Array) return finish(data.dtype, data.shape, result);
  return { dtype: data.dtype, shape: data.shape, data: result };
}

export const scatterElements: Reference<"scatterElements"> = (
  { axis, reduction },
  [data, indices, updates],
) => [scatter(data!, updates!, elementOffsets(data!.shape, indices!, axis), reduction)];

export const scatterNd: Reference<"scatterNd"> = ({ reduction }, [data, indices, updates]) => {
  const { starts, sliceLength } = tupleOffsets(data!.shape, indices!, 0);
  const offsets = new Int32Array(starts.length * sliceLength);
  for (let i = 0; i < offsets.length; i++) {
    offsets[i] = starts[Math.floor(i / sliceLength)]! + (i % sliceLength);
  }
  return [scatter(data!, updates!, offsets, reduction)];
};
