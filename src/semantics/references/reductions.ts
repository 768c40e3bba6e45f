/**
 * References of reduce, argReduce and cumulative. Sums and products run in float64 in row-major order
 * of the reduced axes and are rounded once; extremes propagate NaN; argReduce takes a NaN as the
 * extreme (as numpy does), which is what the argmax monoid of monoids.ts does too.
 */
import { reject } from "../../support/diagnostic.ts";
import type { ReduceKind } from "../core-ops.ts";
import { type DType, isBigDType } from "../dtype.ts";
import { identityElement } from "../monoids.ts";
import { bigMeaningOf, numberMeaningOf, type ScalarValue } from "../scalar-meaning.ts";
import { rowMajorStrides, type Shape, splitAtAxis, viewOffsets } from "../shape.ts";
import { makeRefData, type RefTensor, zeroRef } from "../tensor.ts";
import { finish, type Reference } from "./reference.ts";

const combineNames = {
  sum: "add",
  prod: "mul",
  max: "max",
  min: "min",
  and: "and",
  or: "or",
} as const satisfies Record<ReduceKind, string>;

/** Float64 accumulation: integers up to 32 bits wrap at the end, so products must wrap on the way. */
function numberCombine(kind: ReduceKind, dtype: DType): (a: number, b: number) => number {
  const meaning = numberMeaningOf(combineNames[kind], dtype);
  return (a, b) => meaning(a, b, 0);
}

/** Offsets of the kept elements and, relative to one of them, of the elements reduced into it. */
function splitAxes(shape: Shape, axes: readonly number[]) {
  const strides = rowMajorStrides(shape);
  const isReduced = (axis: number) => axes.includes(axis);
  const all = shape.map((_, axis) => axis);
  const kept = all.filter((axis) => !isReduced(axis));
  const pick = (list: readonly number[]) =>
    viewOffsets(
      list.map((axis) => shape[axis]!),
      list.map((axis) => strides[axis]!),
    );
  return { bases: pick(kept), reduced: pick(all.filter(isReduced)), kept };
}

export const reduce: Reference<"reduce"> = ({ kind, axes, keepDims }, [x]) => {
  const { dtype } = x!;
  const { bases, reduced, kept } = splitAxes(x!.shape, axes);
  const shape = keepDims
    ? x!.shape.map((extent, axis) => (axes.includes(axis) ? 1 : extent))
    : kept.map((axis) => x!.shape[axis]!);
  if (!(x!.data instanceof Float64Array)) return [reduceBig(x!, kind, { bases, reduced, shape })];
  const values = new Float64Array(bases.length);
  const identity = identityElement(kind, dtype) as number;
  if (kind === "sum") sumInto(values, x!.data, bases, reduced);
  else {
    const combine = numberCombine(kind, dtype);
    for (let i = 0; i < bases.length; i++) {
      let total = identity;
      for (let j = 0; j < reduced.length; j++) {
        total = combine(total, x!.data[bases[i]! + reduced[j]!]!);
      }
      values[i] = total;
    }
  }
  return [finish(dtype, shape, values)];
};

function sumInto(
  values: Float64Array,
  data: Float64Array,
  bases: Int32Array,
  reduced: Int32Array,
): void {
  for (let i = 0; i < bases.length; i++) {
    const base = bases[i]!;
    let total = 0;
    for (let j = 0; j < reduced.length; j++) total += data[base + reduced[j]!]!;
    values[i] = total;
  }
}

function reduceBig(
  x: RefTensor,
  kind: ReduceKind,
  at: { readonly bases: Int32Array; readonly reduced: Int32Array; readonly shape: Shape },
): RefTensor {
  const meaning = bigMeaningOf(combineNames[kind], x.dtype);
  const result = zeroRef(x.dtype, at.shape);
  for (let i = 0; i < at.bases.length; i++) {
    let total = identityElement(kind, x.dtype) as bigint;
    for (const offset of at.reduced) {
      total = meaning(total, x.data[at.bases[i]! + offset] as bigint, 0n);
    }
    result.data[i] = total;
  }
  return result;
}

export const argReduce: Reference<"argReduce"> = (attrs, [x]) => {
  const { kind, axis, keepDims, selectLast } = attrs;
  const { outer, extent, inner } = splitAtAxis(x!.shape, axis);
  if (extent === 0) {
    reject(
      "SHP004",
      `axis ${axis} of [${x!.shape}] is empty: none of its elements is the extreme`,
      {
        help: "choose input extents and values with which it has an element",
      },
    );
  }
  const shape = x!.shape.flatMap((size, i) => (i === axis ? (keepDims ? [1] : []) : [size]));
  const result = zeroRef("i64", shape);
  const beats = (a: ScalarValue, b: ScalarValue): boolean => {
    const [nanA, nanB] = [Number.isNaN(a), Number.isNaN(b)];
    if (nanA || nanB) return nanA && (selectLast || !nanB);
    if (a === b) return selectLast;
    return kind === "max" ? a > b : a < b;
  };
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const base = o * extent * inner + i;
      let best = 0;
      for (let j = 1; j < extent; j++) {
        if (beats(x!.data[base + j * inner]!, x!.data[base + best * inner]!)) best = j;
      }
      result.data[o * inner + i] = BigInt(best);
    }
  }
  return [result];
};

export const cumulative: Reference<"cumulative"> = (attrs, [x]) => {
  const { dtype, shape, data: from } = x!;
  const { kind, axis, exclusive } = attrs;
  const { outer, extent, inner } = splitAtAxis(shape, axis);
  const data = makeRefData(dtype, from.length);
  const combine = combineValues(kind, dtype);
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      let total = identityElement(kind, dtype);
      for (let j = 0; j < extent; j++) {
        const position = attrs.reverse ? extent - 1 - j : j;
        const at = (o * extent + position) * inner + i;
        const next = combine(total, from[at]!);
        data[at] = exclusive ? total : next;
        total = next;
      }
    }
  }
  return [data instanceof Float64Array ? finish(dtype, shape, data) : { dtype, shape, data }];
};

function combineValues(
  kind: ReduceKind,
  dtype: DType,
): (a: ScalarValue, b: ScalarValue) => ScalarValue {
  if (isBigDType(dtype)) {
    const meaning = bigMeaningOf(combineNames[kind], dtype);
    return (a, b) => meaning(a as bigint, b as bigint, 0n);
  }
  const combine = numberCombine(kind, dtype);
  return (a, b) => combine(a as number, b as number);
}
