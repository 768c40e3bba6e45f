/**
 * One maker an op family: picks operands that fit from the draft, adds a node with random attributes
 * and says what is known of its result; false when nothing fits. Adding an op to the random graphs is
 * adding a maker.
 */
import type { PoolKind, ReduceKind } from "../src/semantics/core-ops.ts";
import { type DType, dtypes } from "../src/semantics/dtype.ts";
import { constantValue, type IndexExpr, toIndex } from "../src/semantics/index-expr.ts";
import type { ScalarOp } from "../src/semantics/scalar-expr.ts";
import type { GraphDraft, PoolValue } from "./random-graph.ts";

/** Adds one node, or declines. */
export type OpMaker = (draft: GraphDraft) => boolean;

const isFloat = (v: PoolValue) => v.dtype === "f32";
const isExactFloat = (v: PoolValue) => isFloat(v) && v.exact;
const isInteger = (v: PoolValue) => v.dtype === "i32" || v.dtype === "i64";
const isNumber = (v: PoolValue) => isFloat(v) || isInteger(v);
const hasRank =
  (low: number, high = 9) =>
  (v: PoolValue) =>
    v.dims.length >= low && v.dims.length <= high;
const count = (v: PoolValue) => v.extents.reduce((a, b) => a * b, 1);

/** Smooth operators whose result stays within the given bound. */
const smooth: Readonly<Partial<Record<ScalarOp, (bound: number) => number>>> = {
  neg: (b) => b,
  abs: (b) => b,
  relu: (b) => b,
  sin: () => 1,
  cos: () => 1,
  tanh: () => 1,
  erf: () => 1,
  atan: () => 2,
  sigmoid: () => 1,
};

const jumping: readonly ScalarOp[] = ["floor", "ceil", "round", "trunc", "sign"];

const unary: OpMaker = (d) => {
  const x = d.find(isFloat);
  if (x === undefined) return false;
  const op = d.rng.pick(Object.keys(smooth) as ScalarOp[]);
  const exact = x.exact && (op === "neg" || op === "abs" || op === "relu");
  d.keep(d.builder.apply(op, x.id), { exact, bound: smooth[op]!(x.bound) });
  return true;
};

const roundOff: OpMaker = (d) => {
  const x = d.find(isExactFloat);
  if (x === undefined) return false;
  d.keep(d.builder.apply(d.rng.pick(jumping), x.id), { exact: true, bound: x.bound });
  return true;
};

/** A new operand that broadcasts with x: the same dims, some 1, leading ones left out. */
function partner(d: GraphDraft, x: PoolValue): PoolValue {
  const dims = x.dims.map((dim) => (d.rng.uniform() < 0.3 ? toIndex(1) : dim));
  return d.input(x.dtype, dims.slice(d.rng.integer(0, Math.max(0, dims.length - 1))));
}

const binary: OpMaker = (d) => {
  const x = d.find(isFloat);
  if (x === undefined) return false;
  const y = partner(d, x);
  const op = d.rng.pick(["add", "sub", "mul", "min", "max"] as const);
  const bounds = { add: x.bound + 1, sub: x.bound + 1, mul: x.bound, min: x.bound, max: x.bound };
  const operands = d.rng.uniform() < 0.5 ? [x.id, y.id] : [y.id, x.id];
  const exact = x.exact && (op === "min" || op === "max");
  d.keep(d.builder.apply(op, ...operands), { exact, bound: Math.max(1, bounds[op]) });
  return true;
};

/** How two values are joined, with what bounds the result and whether it is exact where they are. */
function join(
  d: GraphDraft,
  x: PoolValue,
  y: { readonly id: number; readonly bound: number },
): void {
  const op = d.rng.pick(["add", "mul", "max"] as const);
  const bound = { add: x.bound + y.bound, mul: x.bound * y.bound, max: Math.max(x.bound, y.bound) };
  const operands = d.rng.uniform() < 0.5 ? [x.id, y.id] : [y.id, x.id];
  const exact = x.exact && op === "max";
  d.keep(d.builder.apply(op, ...operands), { exact, bound: Math.max(1, bound[op]) });
}

/** A value joined with itself in another order, or with a part of it: it is read twice, once through a view. */
const joinView: OpMaker = (d) => {
  const x = d.find((v) => isFloat(v) && v.dims.length > 0);
  if (x === undefined) return false;
  const { builder: b } = d;
  const ways = [
    () => b.reshape(b.node("reverse", [b.reshape(x.id, [-1])], { axes: [0] }), x.dims),
    () => b.reshape(b.transpose(x.id, shuffled(d, [...x.dims.keys()])), x.dims),
    () => {
      const size = x.extents.at(-1)!;
      const from = toIndex(d.rng.integer(0, count(x) - size));
      const sizes = [toIndex(size)];
      return b.node("slice", [b.reshape(x.id, [-1])], { starts: [from], steps: [1], sizes });
    },
  ];
  const isKnown = x.dims.every((dim) => constantValue(dim) !== undefined);
  join(d, x, { id: d.rng.pick(isKnown ? ways : ways.slice(0, 2))(), bound: x.bound });
  return true;
};

/** Two values of one shape that stand apart in the graph. */
const joinValues: OpMaker = (d) => {
  const x = d.find(isFloat);
  const isLike = (v: PoolValue): boolean =>
    isFloat(v) &&
    v.id !== x?.id &&
    v.dims.map((e) => e.key).join() === x?.dims.map((e) => e.key).join();
  const y = d.find(isLike);
  if (x === undefined || y === undefined) return false;
  join(d, { ...x, exact: x.exact && y.exact }, y);
  return true;
};

const integers: OpMaker = (d) => {
  const x = d.find(isInteger) ?? d.input(d.rng.pick(["i32", "i64"]), d.dims(0, 3));
  const op = d.rng.pick(["add", "sub", "mul", "min", "max", "bitAnd", "bitOr", "bitXor"] as const);
  d.keep(d.builder.apply(op, x.id, partner(d, x).id), { exact: true, bound: x.bound });
  return true;
};

const compareAndSelect: OpMaker = (d) => {
  const x = d.find((v) => isNumber(v) && v.exact);
  if (x === undefined) return false;
  const y = partner(d, x);
  const condition = d.builder.apply(d.rng.pick(["less", "lessEqual", "equal"]), x.id, y.id);
  const chosen = d.builder.select(condition, x.id, y.id);
  d.keep(condition, { exact: true, bound: 1 });
  d.keep(chosen, { exact: true, bound: Math.max(x.bound, y.bound) });
  return true;
};

const convert: OpMaker = (d) => {
  const x = d.find((v) => isNumber(v) && v.exact);
  if (x === undefined) return false;
  const to = d.rng.pick(["f32", "i32", "i64", "u8", "i8"] as const);
  const id = d.builder.node("cast", [x.id], { to, saturate: true });
  if (id !== x.id) d.keep(id, { exact: true, bound: x.bound });
  return true;
};

const reshape: OpMaker = (d) => {
  const x = d.find(hasRank(1));
  if (x === undefined) return false;
  const at = d.rng.integer(0, x.dims.length - 1);
  const merged = [...x.dims.slice(0, at), toIndex(-1), ...x.dims.slice(at + 2)];
  const split = [...x.dims.slice(0, at), toIndex(1), ...x.dims.slice(at)];
  const id = d.builder.reshape(x.id, d.rng.uniform() < 0.5 ? spell(merged) : split);
  if (id !== x.id) d.keep(id, x);
  return true;
};

/** The builder spells "what is left" as the number -1. */
function spell(dims: readonly IndexExpr[]): (IndexExpr | number)[] {
  return dims.map((dim) => (constantValue(dim) === -1 ? -1 : dim));
}

const transpose: OpMaker = (d) => {
  const x = d.find(hasRank(2));
  if (x === undefined) return false;
  const permutation = shuffled(
    d,
    x.dims.map((_, i) => i),
  );
  const id = d.builder.transpose(x.id, permutation);
  if (id !== x.id) d.keep(id, x);
  return true;
};

function shuffled(d: GraphDraft, items: readonly number[]): number[] {
  const keyed = items.map((item) => [d.rng.uniform(), item] as const);
  return keyed.sort(([a], [b]) => a - b).map(([, item]) => item);
}

/** Two axes of one extent: made by adding an outer product's axis, since few values have any. */
const diagonal: OpMaker = (d) => {
  const x = d.find(
    (v) => isNumber(v) && v.dims.length >= 1 && v.dims.length <= 3 && count(v) <= 400,
  );
  if (x === undefined) return false;
  const axis = d.rng.integer(0, x.dims.length - 1);
  const square = d.input(x.dtype, [...x.dims, x.dims[axis]!]);
  const id = d.builder.node("diagonal", [square.id], { axis, other: x.dims.length });
  d.keep(id, square);
  return true;
};

const slice: OpMaker = (d) => {
  const x = d.find((v) => v.dims.some((dim) => constantValue(dim) !== undefined));
  if (x === undefined) return false;
  const starts: IndexExpr[] = [];
  const sizes: IndexExpr[] = [];
  const steps: number[] = [];
  for (const dim of x.dims) {
    const extent = constantValue(dim);
    const step = extent === undefined ? 1 : d.rng.integer(1, 2);
    const start = extent === undefined ? 0 : d.rng.integer(0, extent - 1);
    steps.push(step);
    starts.push(toIndex(start));
    const most = extent === undefined ? 0 : Math.ceil((extent - start) / step);
    sizes.push(extent === undefined ? dim : toIndex(d.rng.integer(1, most)));
  }
  d.keep(d.builder.node("slice", [x.id], { starts, steps, sizes }), x);
  return true;
};

const reverse: OpMaker = (d) => {
  const x = d.find(hasRank(1));
  if (x === undefined) return false;
  const axes = x.dims.map((_, i) => i).filter(() => d.rng.uniform() < 0.5);
  if (axes.length === 0) return false;
  d.keep(d.builder.node("reverse", [x.id], { axes }), x);
  return true;
};

const concat: OpMaker = (d) => {
  const x = d.find((v) => hasRank(1)(v) && v.dtype !== "bool");
  if (x === undefined) return false;
  const axis = d.rng.integer(0, x.dims.length - 1);
  const dims = x.dims.map((dim, i) => (i === axis ? d.dim() : dim));
  const y = d.input(x.dtype, dims);
  const bound = Math.max(x.bound, y.bound);
  d.keep(d.builder.concat([y.id, x.id, y.id], axis), { exact: x.exact, bound });
  return true;
};

const pad: OpMaker = (d) => {
  const x = d.find((v) => isFloat(v) && v.dims.length > 0 && count(v) < 200);
  if (x === undefined) return false;
  const amounts = () => x.dims.map(() => toIndex(d.rng.integer(0, 2)));
  const fill = d.builder.scalar(d.rng.pick([0, -1, 0.5]), "f32");
  const attrs = { low: amounts(), high: amounts(), mode: "constant" as const };
  const bound = Math.max(1, x.bound);
  d.keep(d.builder.node("pad", [x.id, fill], attrs), { exact: x.exact, bound });
  return true;
};

/** What may be folded of a type: sums of whole numbers wrap around, in any order. */
function foldsOf(dtype: DType): readonly ReduceKind[] {
  return dtype === "bool" ? ["or", "and"] : ["sum", "max", "min"];
}

const reduce: OpMaker = (d) => {
  const x = d.find((v) => v.dims.length > 0 && dtypes[v.dtype].bits >= 8);
  if (x === undefined) return false;
  const axes = x.dims.map((_, i) => i).filter(() => d.rng.uniform() < 0.6);
  if (axes.length === 0) return false;
  const kind = d.rng.pick(foldsOf(x.dtype));
  const terms = axes.reduce((n, axis) => n * x.extents[axis]!, 1);
  const facts =
    kind === "sum" && isFloat(x)
      ? { exact: false, bound: x.bound * terms }
      : { exact: x.exact, bound: x.bound };
  d.keep(d.builder.reduce(kind, x.id, axes, d.rng.uniform() < 0.5), facts);
  return true;
};

const argReduce: OpMaker = (d) => {
  const x = d.find((v) => isExactFloat(v) && v.dims.length > 0);
  if (x === undefined) return false;
  const attrs = {
    kind: d.rng.pick(["max", "min"] as const),
    axis: d.rng.integer(0, x.dims.length - 1),
    keepDims: d.rng.uniform() < 0.5,
    selectLast: d.rng.uniform() < 0.5,
  };
  d.keep(d.builder.node("argReduce", [x.id], attrs), { exact: true, bound: 16 });
  return true;
};

/** Sometimes of a line that is long enough to be selected by digits. */
const topK: OpMaker = (d) => {
  const isLong = d.rng.uniform() < 0.3;
  const long = (): readonly IndexExpr[] =>
    [d.rng.integer(1, 3), d.rng.integer(128, 200)].map((n) => toIndex(n));
  const x = isLong ? d.input("f32", long()) : d.find((v) => isExactFloat(v) && v.dims.length > 0);
  if (x === undefined) return false;
  const axis = d.rng.integer(0, x.dims.length - 1);
  const k = toIndex(d.rng.integer(1, constantValue(x.dims[axis]!) ?? 1));
  const attrs = { axis, k, largest: d.rng.uniform() < 0.5, sorted: true };
  const [values, indices] = d.builder.nodes("topK", [x.id], attrs);
  d.keep(values!, { exact: true, bound: x.bound });
  d.keep(indices!, { exact: true, bound: Math.max(16, x.extents[axis]!) });
  return true;
};

const cumulative: OpMaker = (d) => {
  const x = d.find((v) => isFloat(v) && v.dims.length > 0);
  if (x === undefined) return false;
  const axis = d.rng.integer(0, x.dims.length - 1);
  const id = d.builder.node("cumulative", [x.id], {
    kind: "sum",
    axis,
    exclusive: d.rng.uniform() < 0.5,
    reverse: d.rng.uniform() < 0.5,
  });
  d.keep(id, { exact: false, bound: x.bound * x.extents[axis]! });
  return true;
};

const matrixProduct: OpMaker = (d) => {
  const x = d.find((v) => isFloat(v) && hasRank(2, 4)(v));
  if (x === undefined) return false;
  const inner = x.dims.at(-1)!;
  const w = d.input("f32", [inner, d.dim()]);
  d.keep(d.builder.matMul(x.id, w.id), { exact: false, bound: x.bound * x.extents.at(-1)! });
  return true;
};

/** A fresh picture [batch, channels, height, width] and window attributes that fit it. */
function window(d: GraphDraft) {
  const channels = d.rng.pick([1, 2, 4]);
  const sides = [d.rng.integer(3, 7), d.rng.integer(3, 7)];
  const x = d.input("f32", [d.dim(), ...[channels, ...sides].map(toIndex)]);
  const size = [d.rng.integer(1, 3), d.rng.integer(1, 3)];
  const pads = () => size.map((s) => d.rng.integer(0, Math.min(1, s - 1)));
  const attrs = {
    strides: [d.rng.integer(1, 2), d.rng.integer(1, 2)],
    dilations: [1, 1],
    padLow: pads(),
    padHigh: pads(),
  };
  return { x, channels, size, attrs };
}

const convolution: OpMaker = (d) => {
  const { x, channels, size, attrs } = window(d);
  const groups = d.rng.pick([1, channels]);
  const outputs = groups * d.rng.integer(1, 3);
  const inner = channels / groups;
  const w = d.input("f32", [outputs, inner, ...size].map(toIndex));
  const id = d.builder.node("convolution", [x.id, w.id], { ...attrs, groups });
  d.keep(id, { exact: false, bound: inner * size[0]! * size[1]! });
  return true;
};

const pool: OpMaker = (d) => {
  const { x, size, attrs } = window(d);
  const kind = d.rng.pick(["max", "average", "sum"] as const satisfies PoolKind[]);
  const id = d.builder.node("pool", [x.id], {
    ...attrs,
    kind,
    window: size,
    ceil: false,
    countPadding: d.rng.uniform() < 0.5,
    exponent: 2,
  });
  d.keep(id, { exact: kind === "max", bound: size[0]! * size[1]! });
  return true;
};

const gather: OpMaker = (d) => {
  const x = d.find(hasRank(1));
  if (x === undefined) return false;
  const axis = d.rng.integer(0, x.dims.length - 1);
  const extent = x.extents[axis]!;
  const picks = Array.from({ length: d.rng.integer(1, 4) }, () => d.rng.integer(0, extent - 1));
  const at = d.builder.integers(picks);
  d.keep(d.builder.node("gather", [x.id, at], { axis }), x);
  return true;
};

/** All makers; one drawn at random. */
export const opMakers: readonly OpMaker[] = [
  unary,
  roundOff,
  binary,
  joinView,
  joinValues,
  integers,
  compareAndSelect,
  convert,
  reshape,
  transpose,
  diagonal,
  slice,
  reverse,
  concat,
  pad,
  reduce,
  argReduce,
  topK,
  cumulative,
  matrixProduct,
  convolution,
  pool,
  gather,
];
