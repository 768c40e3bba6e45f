/**
 * References of the ops whose control flow follows the data: topK, nonZero, unique and
 * nonMaxSuppression. Order is total and stable: NaN is the greatest value (as in numpy's sort), equal
 * values keep the order of their positions.
 */
import type { ConcreteAttrs } from "../concrete-attrs.ts";
import type { ScalarValue } from "../scalar-meaning.ts";
import { elementCount, rowMajorStrides, splitAtAxis } from "../shape.ts";
import { numbersOf, type RefTensor, refTensor, zeroRef } from "../tensor.ts";
import { copyRange, type Reference, takeOffsets } from "./reference.ts";

/** Ascending order with NaN last; -0 equals 0. */
function compareValues(a: ScalarValue, b: ScalarValue): number {
  if (a < b) return -1;
  if (a > b) return 1;
  return (Number.isNaN(a) ? 1 : 0) - (Number.isNaN(b) ? 1 : 0);
}

export const topK: Reference<"topK"> = (attrs, [x]) => firstAlong(x!, attrs);

/** The first k along an axis: elements, and where they stand. */
export function firstAlong(
  x: RefTensor,
  { axis, k, largest }: Pick<ConcreteAttrs<"topK">, "axis" | "k" | "largest">,
): readonly [RefTensor, RefTensor] {
  const { outer, extent, inner } = splitAtAxis(x.shape, axis);
  const shape = x.shape.map((size, i) => (i === axis ? k : size));
  const offsets = new Int32Array(elementCount(shape));
  const indices = zeroRef("i64", shape);
  const direction = largest ? -1 : 1;
  for (let row = 0; row < outer * inner; row++) {
    const o = Math.floor(row / inner);
    const base = o * extent * inner + (row % inner);
    const order = Array.from({ length: extent }, (_, j) => j).sort((a, b) => {
      const byValue = compareValues(x.data[base + a * inner]!, x.data[base + b * inner]!);
      return direction * byValue || a - b;
    });
    // Sorted results satisfy an unsorted request too.
    for (let j = 0; j < k; j++) {
      const at = (o * k + j) * inner + (row % inner);
      offsets[at] = base + order[j]! * inner;
      indices.data[at] = BigInt(order[j]!);
    }
  }
  return [takeOffsets(x, shape, offsets), indices];
}

export const nonZero: Reference<"nonZero"> = (_, [x]) => {
  const { shape, data } = x!;
  const strides = rowMajorStrides(shape);
  const hits: number[] = [];
  for (let i = 0; i < data.length; i++) {
    // NaN is not zero.
    if (data[i] !== 0 && data[i] !== 0n) hits.push(i);
  }
  const rows: number[] = [];
  for (const [axis, stride] of strides.entries()) {
    for (const at of hits) rows.push(Math.floor(at / stride) % shape[axis]!);
  }
  return [refTensor("i64", [strides.length, hits.length], rows)];
};

/** The operand with `axis` moved to the front: one block of `inner` elements per entry. */
function entriesAlong(x: RefTensor, axis: number | undefined) {
  if (axis === undefined) return { count: x.data.length, offsetsOf: (i: number) => [i] };
  const { outer, extent, inner } = splitAtAxis(x.shape, axis);
  const offsetsOf = (entry: number) =>
    Array.from(
      { length: outer * inner },
      (_, i) => (Math.floor(i / inner) * extent + entry) * inner + (i % inner),
    );
  return { count: extent, offsetsOf };
}

export const unique: Reference<"unique"> = ({ axis, sorted }, [x]) => {
  const { count, offsetsOf } = entriesAlong(x!, axis);
  const keys = Array.from({ length: count }, (_, i) => offsetsOf(i).map((at) => x!.data[at]!));
  const compare = (a: number, b: number): number => {
    for (const [i, value] of keys[a]!.entries()) {
      const order = compareValues(value, keys[b]![i]!);
      if (order !== 0) return order;
    }
    return 0;
  };
  // Groups of equal entries; within a group positions ascend, so its first is the first occurrence.
  const groups: number[][] = [];
  for (const entry of keys.map((_, i) => i).sort((a, b) => compare(a, b) || a - b)) {
    const last = groups.at(-1);
    if (last && compare(last[0]!, entry) === 0) last.push(entry);
    else groups.push([entry]);
  }
  if (!sorted) groups.sort((a, b) => a[0]! - b[0]!);
  const inverse = new Array<number>(count);
  for (const [g, group] of groups.entries()) for (const entry of group) inverse[entry] = g;
  const firsts = groups.map((group) => group[0]!);
  const int64 = (values: readonly number[]) => refTensor("i64", [values.length], values);
  const counts = int64(groups.map((group) => group.length));
  return [pickEntries(x!, axis, firsts), int64(firsts), int64(inverse), counts];
};

/** The entries along an axis, or of the flat tensor, at the given positions. */
function pickEntries(
  x: RefTensor,
  axis: number | undefined,
  entries: readonly number[],
): RefTensor {
  if (axis === undefined) return takeOffsets(x, [entries.length], Int32Array.from(entries));
  const { outer, extent, inner } = splitAtAxis(x.shape, axis);
  const shape = x.shape.map((size, i) => (i === axis ? entries.length : size));
  const result = zeroRef(x.dtype, shape);
  for (let o = 0; o < outer; o++) {
    for (const [e, entry] of entries.entries()) {
      const to = (o * entries.length + e) * inner;
      copyRange(x.data, (o * extent + entry) * inner, inner, result.data, to);
    }
  }
  return result;
}

/** A box as [low y, low x, high y, high x]. */
function cornersOf(box: Float64Array, centerPoint: boolean): [number, number, number, number] {
  const [a, b, c, d] = box as unknown as [number, number, number, number];
  if (centerPoint) return [b - d / 2, a - c / 2, b + d / 2, a + c / 2];
  return [Math.min(a, c), Math.min(b, d), Math.max(a, c), Math.max(b, d)];
}

type Corners = readonly [number, number, number, number];

function intersectionOverUnion(p: Corners, q: Corners): number {
  const height = Math.max(0, Math.min(p[2], q[2]) - Math.max(p[0], q[0]));
  const width = Math.max(0, Math.min(p[3], q[3]) - Math.max(p[1], q[1]));
  const area = (r: Corners) => (r[2] - r[0]) * (r[3] - r[1]);
  const union = area(p) + area(q) - height * width;
  return union > 0 ? (height * width) / union : 0;
}

/** Greedy selection for one class: highest score first, none that overlaps a selected one. */
function selectBoxes(
  boxes: readonly Corners[],
  scores: Float64Array,
  attrs: ConcreteAttrs<"nonMaxSuppression">,
): number[] {
  const order = [...scores.keys()]
    .filter((i) => scores[i]! > attrs.scoreThreshold)
    .sort((a, b) => scores[b]! - scores[a]! || a - b);
  const selected: number[] = [];
  for (const candidate of order) {
    if (selected.length >= attrs.maxPerClass) break;
    const overlaps = (s: number) =>
      intersectionOverUnion(boxes[s]!, boxes[candidate]!) > attrs.iouThreshold;
    if (!selected.some(overlaps)) selected.push(candidate);
  }
  return selected;
}

export const nonMaxSuppression: Reference<"nonMaxSuppression"> = (attrs, [boxes, scores]) => {
  const [batches, classes, count] = scores!.shape as [number, number, number];
  const boxData = numbersOf(boxes!);
  const scoreData = numbersOf(scores!);
  const rows: number[] = [];
  for (let b = 0; b < batches; b++) {
    const corners = Array.from({ length: count }, (_, i) => {
      const at = (b * count + i) * 4;
      return cornersOf(boxData.subarray(at, at + 4), attrs.centerPoint);
    });
    for (let c = 0; c < classes; c++) {
      const at = (b * classes + c) * count;
      const selected = selectBoxes(corners, scoreData.subarray(at, at + count), attrs);
      for (const box of selected) rows.push(b, c, box);
    }
  }
  return [refTensor("i64", [rows.length / 3, 3], rows)];
};
