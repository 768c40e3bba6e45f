/**
 * Attributes of right sides, computed from the match: functions by name for the where-texts of rules.
 * Each gives the attributes, or undefined where the rule does not apply. Axes of the operands are told
 * apart by extents and labels; what is not provable is refused.
 */
import { sameShape } from "../graph/tensor-type.ts";
import { dtypes } from "../semantics/dtype.ts";
import {
  add,
  constantValue,
  type IndexExpr,
  indexEquals,
  mul,
  sub,
  toIndex,
} from "../semantics/index-expr.ts";
import { provesAtMost } from "../semantics/index-range.ts";
import { fromRef, refTensor } from "../semantics/tensor.ts";
import { contractionAttributes } from "./attributes-contraction.ts";
import { joinAttributes } from "./attributes-joins.ts";
import { quantisedAttributes } from "./attributes-quantised.ts";
import { ropeAttributes } from "./attributes-rope.ts";
import { windowAttributes } from "./attributes-windows.ts";
import { isOne, onlyAxis } from "./axes.ts";
import type { Site } from "./site.ts";

export type AttributeFunction = (site: Site, args: readonly string[]) => object | undefined;

type Row = AttributeFunction;

/** A scalar of an element type as the payload of a constant. */
const number: Row = (site, [n, like]) =>
  fromRef(refTensor(site.type(like!).dtype, [], [Number(n)]));

/** transpose(transpose(x, q), p) */
const compose: Row = (site, [p, q]) => {
  const outer = site.attrs<"transpose">(p!).permutation;
  const inner = site.attrs<"transpose">(q!).permutation;
  return { permutation: outer.map((axis) => inner[axis]!) };
};

const inverse: Row = (site, [p]) => {
  const { permutation } = site.attrs<"transpose">(p!);
  return { permutation: permutation.map((_, axis) => permutation.indexOf(axis)) };
};

/** The shape of the left side. */
const wholeShape: Row = (site) => ({ shape: site.rootType().shape });
const shapeOf: Row = (site, [x]) => ({ shape: site.shape(x!) });

/** A per-channel factor behind a convolution, as a factor of its weights [o, i, …]. */
const outputScale: Row = (site, [s, w]) => {
  const shape = site.shape(s!);
  const weights = site.shape(w!);
  const rank = weights.length;
  if (shape.length > rank) return undefined;
  const axis = onlyAxis(shape, rank);
  if (axis === undefined) return { shape: weights.map(() => toIndex(1)) };
  if (axis !== 1) return undefined;
  return {
    shape: weights.map((_, i) => (i === 0 ? shape[axis - (rank - shape.length)]! : toIndex(1))),
  };
};

/** A per-channel factor before a convolution, as a factor of its weights. */
const inputScale: Row = (site, [s, w, a]) => {
  const shape = site.shape(s!);
  const weights = site.shape(w!);
  const rank = weights.length;
  const { groups } = site.attrs<"convolution">(a!);
  if (shape.length > rank) return undefined;
  const axis = onlyAxis(shape, rank);
  if (axis === undefined) return { shape: weights.map(() => toIndex(1)) };
  if (axis !== 1) return undefined;
  const channels = shape[axis - (rank - shape.length)]!;
  const at = groups === 1 ? 1 : isDepthwise(weights, groups) ? 0 : -1;
  if (at < 0) return undefined;
  return { shape: weights.map((_, i) => (i === at ? channels : toIndex(1))) };
};

/** One filter a channel: weights [c, 1, …] with c groups. */
function isDepthwise(weights: readonly IndexExpr[], groups: number): boolean {
  return constantValue(weights[0]!) === groups && isOne(weights[1]!);
}

/** The sum over a filter's elements. */
const sumFilter: Row = (site, [w]) => ({
  kind: "sum",
  axes: site.shape(w!).flatMap((_, i) => (i === 0 ? [] : [i])),
  keepDims: true,
});

/** [o, 1, …] as [1, o, 1, …]. */
const biasShape: Row = (site, [w]) => {
  const [outputs, , ...rest] = site.shape(w!);
  return { shape: [toIndex(1), outputs!, ...rest.map(() => toIndex(1))] };
};

const axisZero: Row = () => ({ axis: 0 });

/** The part of axis 1 of the left side's merged form: the first or second of two. */
function part(which: "first" | "second"): Row {
  return (site, [axisText, x, y]) => {
    const axis = Number(axisText);
    const shape = site.rootType().shape;
    const extents = [site.shape(x!)[axis], site.shape(y!)[axis]];
    if (extents.some((d) => d === undefined)) return undefined;
    return sliceOf(shape, axis, which === "first" ? toIndex(0) : extents[0]!, shape[axis]!);
  };
}

function sliceOf(shape: readonly IndexExpr[], axis: number, start: IndexExpr, size: IndexExpr) {
  return {
    starts: shape.map((_, i) => (i === axis ? start : toIndex(0))),
    steps: shape.map(() => 1),
    sizes: shape.map((d, i) => (i === axis ? size : d)),
  };
}

/** slice(slice(x, inner), outer) */
const composeSlices: Row = (site, [p, q]) => {
  const outer = site.attrs<"slice">(p!);
  const inner = site.attrs<"slice">(q!);
  return {
    starts: inner.starts.map((s, i) => addScaled(s, outer.starts[i]!, inner.steps[i]!)),
    steps: inner.steps.map((s, i) => s * outer.steps[i]!),
    sizes: outer.sizes,
  };
};

function addScaled(start: IndexExpr, offset: IndexExpr, step: number): IndexExpr {
  let result = start;
  for (let i = 0; i < step; i++) result = add(result, offset);
  return result;
}

/** The slice of one operand of a concatenation, when it lies in that operand alone. */
function sliceWithin(which: "first" | "second"): Row {
  return (site, [p, a, x, y]) => {
    const { starts, steps, sizes } = site.attrs<"slice">(p!);
    const { axis } = site.attrs<"concat">(a!);
    const [first, second] = [site.shape(x!), site.shape(y!)];
    const start = starts[axis]!;
    const last = add(start, scaled(sub(sizes[axis]!, 1), steps[axis]!));
    const { ranges } = site.scope;
    if (which === "first") {
      const inside = provesAtMost(add(last, 1), first[axis]!, ranges);
      return inside ? { starts, steps, sizes } : undefined;
    }
    if (!provesAtMost(first[axis]!, start, ranges)) return undefined;
    if (second[axis] === undefined) return undefined;
    const moved = starts.map((s, i) => (i === axis ? sub(s, first[axis]!) : s));
    return { starts: moved, steps, sizes };
  };
}

function scaled(d: IndexExpr, factor: number): IndexExpr {
  return addScaled(toIndex(0), d, factor);
}

/** Two slices of one operand that lie side by side, as one. */
const joinSlices: Row = (site, [a, p, q]) => {
  const { axis } = site.attrs<"concat">(a!);
  const [left, right] = [site.attrs<"slice">(p!), site.attrs<"slice">(q!)];
  if ([...left.steps, ...right.steps].some((s) => s !== 1)) return undefined;
  if (!indexEquals(add(left.starts[axis]!, left.sizes[axis]!), right.starts[axis]!))
    return undefined;
  const elsewhere = (d: readonly IndexExpr[]): IndexExpr[] => d.filter((_, i) => i !== axis);
  if (!sameShape(elsewhere(left.starts), elsewhere(right.starts))) return undefined;
  const sizes = left.sizes.map((d, i) => (i === axis ? add(d, right.sizes[axis]!) : d));
  return { starts: left.starts, steps: left.steps, sizes };
};

/** The concatenation axis behind a transpose. */
const movedAxis: Row = (site, [a, p]) => ({
  axis: site.attrs<"transpose">(p!).permutation.indexOf(site.attrs<"concat">(a!).axis),
});

/** The slice behind a transpose, before it. */
const slicedBefore: Row = (site, [s, p]) => {
  const { starts, steps, sizes } = site.attrs<"slice">(s!);
  const { permutation } = site.attrs<"transpose">(p!);
  const back = <T>(list: readonly T[]): T[] =>
    permutation.map((_, axis) => list[permutation.indexOf(axis)]!);
  return { starts: back(starts), steps: back(steps), sizes: back(sizes) };
};

/** reduce(reduce(x, inner), outer), of one kind: all axes at once. */
const joinReductions: Row = (site, [p, q]) => {
  const outer = site.attrs<"reduce">(p!);
  const inner = site.attrs<"reduce">(q!);
  if (outer.kind !== inner.kind || outer.keepDims !== inner.keepDims) return undefined;
  if (inner.keepDims) {
    const axes = [...new Set([...inner.axes, ...outer.axes])].sort((a, b) => a - b);
    return { ...outer, axes };
  }
  const rank = outer.axes.length + inner.axes.length + site.rootType().shape.length;
  const kept = Array.from({ length: rank }, (_, i) => i).filter((i) => !inner.axes.includes(i));
  const axes = [...inner.axes, ...outer.axes.map((i) => kept[i]!)].sort((a, b) => a - b);
  return { ...outer, axes };
};

/** A reduction behind a transpose, before it; axes that stay keep their order. */
const reducedBefore: Row = (site, [r, p]) => {
  const attrs = site.attrs<"reduce">(r!);
  const { permutation } = site.attrs<"transpose">(p!);
  const axes = attrs.axes.map((axis) => permutation[axis]!).sort((a, b) => a - b);
  if (!attrs.keepDims) {
    const left = permutation.filter((_, i) => !attrs.axes.includes(i));
    if (left.some((axis, i) => i > 0 && axis < left[i - 1]!)) return undefined;
  }
  return { ...attrs, axes };
};

const otherExtremum: Row = (site, [r]) => {
  const { kind, ...rest } = site.attrs<"reduce">(r!);
  if (kind !== "max" && kind !== "min") return undefined;
  return { ...rest, kind: kind === "max" ? "min" : "max" };
};

/** How many equal elements a reduction of a broadcast sums, as a scalar. */
const repeats: Row = (site, [r, p, x]) => {
  const { shape } = site.attrs<"broadcast">(p!);
  const extents = site.attrs<"reduce">(r!).axes.map((axis) => constantValue(shape[axis]!));
  if (extents.some((n) => n === undefined)) return undefined;
  const count = (extents as number[]).reduce((product, n) => product * n, 1);
  return fromRef(refTensor(site.type(x!).dtype, [], [count]));
};

/** Padding of a convolution with that of the data before it. */
const padInto: Row = (site, [a, p]) => {
  const attrs = site.attrs<"convolution">(a!);
  const { low, high, mode } = site.attrs<"pad">(p!);
  if (mode !== "constant") return undefined;
  const amounts = [low, high].map((list) => list.map((d) => constantValue(d)));
  if (amounts.flat().some((n) => n === undefined || n < 0)) return undefined;
  const [before, after] = amounts as [number[], number[]];
  if (before[0] !== 0 || before[1] !== 0 || after[0] !== 0 || after[1] !== 0) return undefined;
  return {
    ...attrs,
    padLow: attrs.padLow.map((n, i) => n + before[i + 2]!),
    padHigh: attrs.padHigh.map((n, i) => n + after[i + 2]!),
  };
};

/** Axis of a softmax whose maximum and sum are these reductions. */
const softmaxAxis: Row = (site, [m, s]) => {
  const [top, sum] = [site.attrs<"reduce">(m!), site.attrs<"reduce">(s!)];
  if (top.kind !== "max" || sum.kind !== "sum" || !top.keepDims || !sum.keepDims) return undefined;
  if (top.axes.length !== 1 || sum.axes.length !== 1) return undefined;
  return top.axes[0] === sum.axes[0] ? { axis: top.axes[0]! } : undefined;
};

/** A reduction along the axis of a softmax. */
const along: Row = (site, [a, kind]) => ({
  kind,
  axes: [site.attrs<"softmax">(a!).axis],
  keepDims: true,
});

/** The lowest finite number of an element type. */
const lowest: Row = (site, [like]) => {
  const { dtype } = site.type(like!);
  return fromRef(refTensor(dtype, [], [dtypes[dtype].min]));
};

const geluForm: Row = (_site, [approximate]) => ({ approximate });

/** Axis and epsilon of a norm: sums over the last axes by their extents, one epsilon. */
const normForm: Row = (site, [m, v, n, e, x]) => {
  const [mean, variance] = [site.attrs<"reduce">(m!), site.attrs<"reduce">(v!)];
  const shape = site.shape(x!);
  const { axes } = mean;
  const [axis] = axes;
  const isSum = [mean, variance].every((r) => r.kind === "sum" && r.keepDims);
  if (!isSum || axis === undefined || axes.join() !== variance.axes.join()) return undefined;
  if (axes.length !== shape.length - axis || axes.at(-1) !== shape.length - 1) return undefined;
  const count = constantValue(mul(...axes.map((i) => shape[i]!)));
  const [counts, epsilons] = [n, e].map((name) => site.facts(name!).value?.data);
  if (count === undefined || !counts?.every((c: number | bigint) => Number(c) === count))
    return undefined;
  const epsilon = epsilons?.[0];
  if (epsilon === undefined || epsilons?.length !== 1 || !(Number(epsilon) > 0)) return undefined;
  return { axis, epsilon: Number(epsilon) };
};

/** softmax(scale q·k + mask) v with the labels of heads and rows; without a scale it is 1. */
function attentionForm(mask: boolean): Row {
  return (site, names) => attentionAttributes(site, names, mask);
}

function attentionAttributes(site: Site, [a, b, s, c]: readonly string[], mask: boolean) {
  const scores = site.attrs<"contract">(a!);
  const mixed = site.attrs<"contract">(b!);
  const spell = ({ lhs, rhs, output }: typeof scores) =>
    `${lhs.join("")},${rhs.join("")}->${output.join("")}`;
  if (spell(scores) !== "abcd,abed->abce" || spell(mixed) !== "abcd,abde->abce") return undefined;
  if (site.attrs<"softmax">(s!).axis !== 3) return undefined;
  const scale = c === undefined ? 1 : site.facts(c).value?.data[0];
  if (scale === undefined) return undefined;
  return { scale: Number(scale), causal: "none", mask, softcap: 0 };
}

const bothBounds: Row = () => ({ low: true, high: true });

export const attributeFunctions: Readonly<Record<string, AttributeFunction>> = {
  number,
  compose,
  inverse,
  wholeShape,
  shapeOf,
  outputScale,
  inputScale,
  sumFilter,
  biasShape,
  axisZero,
  firstPart: part("first"),
  secondPart: part("second"),
  composeSlices,
  sliceWithinFirst: sliceWithin("first"),
  sliceWithinSecond: sliceWithin("second"),
  joinSlices,
  movedAxis,
  slicedBefore,
  joinReductions,
  reducedBefore,
  otherExtremum,
  repeats,
  padInto,
  softmaxAxis,
  along,
  lowest,
  geluForm,
  bothBounds,
  normForm,
  attentionForm: attentionForm(false),
  maskedAttentionForm: attentionForm(true),
  ...contractionAttributes,
  ...joinAttributes,
  ...ropeAttributes,
  ...windowAttributes,
  ...quantisedAttributes,
};
