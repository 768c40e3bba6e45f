/**
 * Attributes around concatenation, for right sides: the parts of a slice or of an operand on both sides
 * of the seam, and the axis of the seam behind or before another op. See attributes.ts.
 */
import type { ContractAttrs, ReduceAttrs } from "../semantics/core-ops.ts";
import {
  add,
  constantValue,
  type IndexExpr,
  indexEquals,
  sub,
  toIndex,
} from "../semantics/index-expr.ts";
import type { AttributeFunction } from "./attributes.ts";
import type { Site } from "./site.ts";

type Row = AttributeFunction;
type Side = "first" | "second";

const axisOf = (site: Site, name: string): number => site.attrs<"concat">(name).axis;

/** The part along one axis of an operand of this shape. */
export function partOfAxis(
  shape: readonly IndexExpr[],
  axis: number,
  [start, size]: readonly [IndexExpr, IndexExpr],
) {
  return {
    starts: shape.map((_, i) => (i === axis ? start : toIndex(0))),
    steps: shape.map(() => 1),
    sizes: shape.map((d, i) => (i === axis ? size : d)),
  };
}

/** Of a slice with step 1 that reads both operands of a concatenation: what it reads of one. */
function sliceAcross(side: Side): Row {
  return (site, [p, a, x]) => {
    const { starts, steps, sizes } = site.attrs<"slice">(p!);
    const axis = axisOf(site, a!);
    const [start, size, seam] = [starts[axis]!, sizes[axis]!, site.shape(x!)[axis]!].map((d) =>
      constantValue(d),
    );
    if (start === undefined || size === undefined || seam === undefined || steps[axis] !== 1)
      return undefined;
    if (start >= seam || start + size <= seam) return undefined;
    const [from, length] = side === "first" ? [start, seam - start] : [0, start + size - seam];
    const at = (list: readonly IndexExpr[], value: number) =>
      list.map((d, i) => (i === axis ? toIndex(value) : d));
    return { starts: at(starts, from), steps, sizes: at(sizes, length) };
  };
}

/** The concatenation axis before a transpose of both operands. */
const axisBefore: Row = (site, [a, p]) => ({
  axis: site.attrs<"transpose">(p!).permutation[axisOf(site, a!)]!,
});

/** The concatenation axis behind a reduction of other axes. */
const axisBehindReduction: Row = (site, [a, r]) => {
  const { axes, keepDims } = site.attrs<"reduce">(r!) as ReduceAttrs;
  const axis = axisOf(site, a!);
  if (axes.includes(axis)) return undefined;
  return { axis: keepDims ? axis : axis - axes.filter((i) => i < axis).length };
};

const contractOf = (site: Site, name: string): ContractAttrs =>
  site.attrs<"contract">(name) as ContractAttrs;

/** The part of the second operand that meets one side of a concatenated first operand. */
function partOfRight(side: Side): Row {
  return (site, [a, k, x, w]) => {
    const { lhs, rhs, output } = contractOf(site, a!);
    const axis = axisOf(site, k!);
    const label = lhs[axis]!;
    const at = rhs.indexOf(label);
    if (at < 0 || output.includes(label)) return undefined;
    return partBeside(site.shape(w!), at, { side, seam: site.shape(x!)[axis]! });
  };
}

function partBeside(
  shape: readonly IndexExpr[],
  axis: number,
  { side, seam }: { readonly side: Side; readonly seam: IndexExpr },
) {
  const span: readonly [IndexExpr, IndexExpr] =
    side === "first" ? [toIndex(0), seam] : [seam, sub(shape[axis]!, seam)];
  return partOfAxis(shape, axis, span);
}

/** The part of a filter that meets one side of data whose channels are concatenated. */
function partOfFilter(side: Side): Row {
  return (site, [k, x, w]) => {
    if (axisOf(site, k!) !== 1) return undefined;
    return partBeside(site.shape(w!), 1, { side, seam: site.shape(x!)[1]! });
  };
}

/** The axis of the one summed label, in which alone two operands of one side differ. */
function summedAxis(of: "lhs" | "rhs"): Row {
  return (site, [a, x, y]) => {
    const { lhs, rhs, output } = contractOf(site, a!);
    const summed = lhs.filter((label) => rhs.includes(label) && !output.includes(label));
    const all = new Set([...lhs, ...rhs].filter((label) => !output.includes(label)));
    if (summed.length !== 1 || all.size !== 1) return undefined;
    const axis = (of === "lhs" ? lhs : rhs).indexOf(summed[0]!);
    const other = site.shape(y!);
    const fits = site.shape(x!).every((d, i) => i === axis || indexEquals(d, other[i]!));
    return fits ? { axis } : undefined;
  };
}

/** Where a concatenation of first operands is seen in the result, and back. */
const resultAxisOfLeft: Row = (site, [a, k]) => {
  const { lhs, rhs, output } = contractOf(site, a!);
  const label = lhs[axisOf(site, k!)]!;
  const axis = output.indexOf(label);
  return axis < 0 || rhs.includes(label) ? undefined : { axis };
};
const leftAxisOfResult: Row = (site, [a, k]) => {
  const { lhs, rhs, output } = contractOf(site, a!);
  const label = output[axisOf(site, k!)]!;
  const axis = lhs.indexOf(label);
  return axis < 0 || rhs.includes(label) ? undefined : { axis };
};

/** What a slice of a product leaves of one operand. */
function slicedOperand(of: "lhs" | "rhs"): Row {
  return (site, [p, a, x]) => {
    const { starts, steps, sizes } = site.attrs<"slice">(p!);
    const attrs = contractOf(site, a!);
    const shape = site.shape(x!);
    const places = attrs[of].map((label) => attrs.output.indexOf(label));
    return {
      starts: places.map((at) => (at < 0 ? toIndex(0) : starts[at]!)),
      steps: places.map((at) => (at < 0 ? 1 : steps[at]!)),
      sizes: places.map((at, i) => (at < 0 ? shape[i]! : sizes[at]!)),
    };
  };
}

/** Two paddings with one value as one. */
const joinPads: Row = (site, [p, q]) => {
  const [outer, inner] = [site.attrs<"pad">(p!), site.attrs<"pad">(q!)];
  if (outer.mode !== "constant" || inner.mode !== "constant") return undefined;
  const amounts = [...inner.low, ...inner.high].map((d) => constantValue(d));
  // What cuts first and pads then is no padding.
  if (amounts.some((n) => n === undefined || n < 0)) return undefined;
  const sums = (side: "low" | "high") => outer[side].map((d, i) => add(d, inner[side][i]!));
  return { low: sums("low"), high: sums("high"), mode: "constant" };
};

/** reverse(reverse(x)): the axes that one of them turns. */
const joinReversals: Row = (site, [p, q]) => {
  const [outer, inner] = [site.attrs<"reverse">(p!).axes, site.attrs<"reverse">(q!).axes];
  const axes = [
    ...outer.filter((axis) => !inner.includes(axis)),
    ...inner.filter((axis) => !outer.includes(axis)),
  ];
  return { axes: axes.sort((a, b) => a - b) };
};

const channelAxis: Row = () => ({ axis: 1 });
const outputAxis: Row = (site, [k]) => (axisOf(site, k!) === 1 ? { axis: 0 } : undefined);

export const joinAttributes: Readonly<Record<string, Row>> = {
  sliceAcrossFirst: sliceAcross("first"),
  sliceAcrossSecond: sliceAcross("second"),
  axisBefore,
  axisBehindReduction,
  partOfRightFirst: partOfRight("first"),
  partOfRightSecond: partOfRight("second"),
  partOfFilterFirst: partOfFilter("first"),
  partOfFilterSecond: partOfFilter("second"),
  summedOfLeft: summedAxis("lhs"),
  summedOfRight: summedAxis("rhs"),
  resultAxisOfLeft,
  leftAxisOfResult,
  slicedLeft: slicedOperand("lhs"),
  slicedRight: slicedOperand("rhs"),
  joinPads,
  joinReversals,
  channelAxis,
  outputAxis,
};
