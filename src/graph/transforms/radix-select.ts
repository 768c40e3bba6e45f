/**
 * The places of the k first of each line by the digits of the k-th one (radix selection; Alabi et al. 2012,
 * "Fast k-selection algorithms for graphics processing units"). Elements become integers in whose order they
 * are; the greatest integer that at least k of a line reach is found bit by bit from the top, by one count of the line a bit;
 * elements above it are among the first k, of those that equal it as many as are left, in the order of the axis.
 * A running count of both says where each one goes, and the place of the p-th is where that count passes p: found
 * among the ends of parts of the line, then in one part. About 2 n a bit instead of the n n comparisons of
 * ranks, whatever k is, and the counts of a line are folds over the same elements: one kernel keeps them.
 */
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import { constant, constantValue, type IndexExpr } from "../../semantics/index-expr.ts";
import { fromRef, refTensor } from "../../semantics/tensor.ts";
import type { GraphBuilder } from "../builder.ts";
import type { ValueId } from "../graph.ts";

/** Integers in the order in which elements are wanted, the first the greatest; lines are along the last axis. */
export interface OrderKeys {
  readonly value: ValueId;
  /** Keys are from `least` to 2^bits above it. */
  readonly least: number;
  readonly bits: number;
}

/** Two counts in one word, each of fewer elements than this. */
const mostPacked = 2 ** 15 - 1;
const countBits = 16;
const mantissaOf32 = 23;
/** How far parts of a line may be from its root before it is filled up to whole ones. */
const mostOff = 4;

/** Whether elements have keys of 32 bits: floats of at most 32, in which NaN is the greatest, and integers that an i32 has. */
export function hasOrderKeys(dtype: DType): boolean {
  const { kind, bits, format } = dtypes[dtype];
  if (isFloatDType(dtype)) return kind === "float" && bits <= 32 && format !== undefined;
  return kind === "int" ? bits <= 32 : kind === "uint" && bits < 32;
}

export function orderKeys(b: GraphBuilder, x: ValueId, largest: boolean): OrderKeys {
  const dtype = b.dtypeOf(x);
  const { bits, format, kind } = dtypes[dtype];
  const { value, width } = isFloatDType(dtype)
    ? keysOfFloats(b, x, mantissaOf32 - format!.mantissaBits)
    : { value: b.cast(x, "i32"), width: bits };
  const least = kind === "uint" ? 0 : -(2 ** (width - 1));
  if (largest) return { value, least, bits: width };
  // -1 - key: the greatest becomes the least, and what ties still ties.
  return { value: b.apply("bitNot", value), least: -least - 2 ** width, bits: width };
}

/** Floats of fewer bits have a part of the mantissa of f32: the bits below it are zeros. */
function keysOfFloats(
  b: GraphBuilder,
  x: ValueId,
  unused: number,
): { readonly value: ValueId; readonly width: number } {
  const key = b.apply("orderKey", b.cast(x, "f32"));
  const value = unused === 0 ? key : b.applyNumber("shiftRight", key, unused);
  return { value, width: 32 - unused };
}

/** Where the k first of each line stand, in the order of the axis (i32, the last axis of extent k). */
export function firstPlaces(b: GraphBuilder, keys: OrderKeys, k: number): ValueId {
  const { value: key } = keys;
  const last = b.rankOf(key) - 1;
  const threshold = kthKey(b, keys, k);
  const above = b.cast(b.apply("less", threshold, key), "i32");
  const tied = b.cast(b.apply("equal", threshold, key), "i32");
  const left = b.sub(b.scalar(k, "i32"), b.reduce("sum", above, [last], true));
  const [aboveSoFar, tiedSoFar] = running(b, above, tied);
  return places(b, b.add(aboveSoFar, b.apply("min", tiedSoFar, left)), k);
}

/** The greatest number that at least k keys of a line reach: the k-th of them. */
function kthKey(b: GraphBuilder, { value: key, least, bits }: OrderKeys, k: number): ValueId {
  const last = b.rankOf(key) - 1;
  const wanted = b.scalar(k, "i32");
  let found = b.scalar(least, "i32");
  for (let bit = bits - 1; bit >= 0; bit--) {
    const isFirst = bit === bits - 1;
    // No more than the greatest key, which as many reach as equal it: a number of the line, so that the test of it
    // belongs to the count and not to whoever makes the keys.
    const higher = isFirst
      ? b.apply("min", b.reduce("max", key, [last], true), b.scalar(least + 2 ** bit, "i32"))
      : b.applyNumber("add", found, 2 ** bit);
    const reached = b.cast(b.apply("lessEqual", higher, key), "i32");
    const count = b.reduce("sum", reached, [last], true);
    found = b.select(b.apply("lessEqual", wanted, count), higher, found);
  }
  return found;
}

/** How many of both kinds there are up to each element. */
function running(b: GraphBuilder, above: ValueId, tied: ValueId): readonly [ValueId, ValueId] {
  const last = b.rankOf(above) - 1;
  const attrs = { kind: "sum", axis: last, exclusive: false, reverse: false } as const;
  if (constantValue(b.shapeOf(above)[last]!)! > mostPacked) {
    return [b.node("cumulative", [above], attrs), b.node("cumulative", [tied], attrs)];
  }
  const both = b.add(above, b.applyNumber("mul", tied, 2 ** countBits));
  const counts = b.node("cumulative", [both], attrs);
  return [
    b.applyNumber("bitAnd", counts, 2 ** countBits - 1),
    b.applyNumber("shiftRight", counts, countBits),
  ];
}

/** How many running counts are at most p, for each p below k: the place of the element that makes it p + 1. */
function places(b: GraphBuilder, counts: ValueId, k: number): ValueId {
  const shape = b.shapeOf(counts);
  const last = shape.length - 1;
  const lines = shape.slice(0, last);
  const extent = constantValue(shape[last]!)!;
  const size = partSize(extent);
  const parts = Math.ceil(extent / size);
  // Behind the end the count has passed every p.
  const whole = parts * size === extent ? counts : filled(b, counts, parts * size - extent, k);
  const apart = b.reshape(whole, [...lines, constant(parts), constant(size)]);
  const upTo = (axis: number): ValueId =>
    b.iota(
      [...lines.map(() => 1), ...[0, 1].map((a) => (a === axis ? k : 1))],
      lines.length + axis,
      "i32",
    );
  const countUpTo = (x: ValueId, p: ValueId, axis: number): ValueId =>
    b.reduce("sum", b.cast(b.apply("lessEqual", x, p), "i32"), [axis], false);
  const ends = b.sliceAxis(apart, last + 1, size - 1, 1);
  const part = countUpTo(ends, upTo(1), last);
  const inside = rowsAt(b, apart, part);
  const within = countUpTo(inside, upTo(0), last + 1);
  return b.add(b.applyNumber("mul", part, size), within);
}

/** Of each line, the rows of its last two axes that indices ([..., n]) name: [..., n, size]. */
export function rowsAt(b: GraphBuilder, x: ValueId, indices: ValueId): ValueId {
  const shape = b.shapeOf(indices);
  const tuples = b.reshape(indices, [...shape, constant(1)]);
  return b.node("gatherNd", [x, tuples], { batchDims: shape.length - 1 });
}

/** About the root; of the sizes near it one that divides the line, where there is one. */
function partSize(extent: number): number {
  const root = Math.sqrt(extent);
  const near = Array.from({ length: Math.ceil(mostOff * root) }, (_, i) => i + 1).filter(
    (n) => extent % n === 0 && n >= root / mostOff,
  );
  const off = (n: number): number => Math.abs(Math.log(n / root));
  return near.sort((a, c) => off(a) - off(c))[0] ?? Math.ceil(root);
}

function filled(b: GraphBuilder, x: ValueId, more: number, by: number): ValueId {
  const shape = b.shapeOf(x);
  const fill = b.constant(fromRef(refTensor("i32", [], [by])));
  const low: readonly IndexExpr[] = shape.map(() => constant(0));
  const high = low.map((e, i) => (i === low.length - 1 ? constant(more) : e));
  return b.node("pad", [x, fill], { low, high, mode: "constant" });
}
