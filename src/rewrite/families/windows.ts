/**
 * Convolutions as other convolutions: a small window with zeros around it, so that it joins a larger one
 * beside it (merges, products.ts); groups in pairs, with zeros where a filter's own group is not; and two halves of a batch as one higher picture, right but at the
 * seam, which is computed apart and put in its place (partial equivalence with correction, as in PET).
 */
import type { NodeId } from "../../egraph/index.ts";
import type { ConvolutionAttrs } from "../../semantics/core-ops.ts";
import { constantValue, floorDiv, type IndexExpr, toIndex } from "../../semantics/index-expr.ts";
import { fromRef, refTensor } from "../../semantics/tensor.ts";
import { partOfAxis } from "../attributes-joins.ts";
import { type RuleRow, row, sampled } from "../rule-row.ts";
import type { Site } from "../site.ts";

/**
 * Two neighbouring groups as one: a filter has zeros where the channels of the other group are. Twice the
 * operations in half the pieces.
 */
function pairsOfGroups(site: Site): NodeId | undefined {
  const attrs = site.attrs<"convolution">("a");
  const { dtype, shape } = site.type("w");
  const [filters, inner, ...kernel] = shape.map(constantValue);
  if (attrs.groups % 2 !== 0 || filters === undefined || inner === undefined) return undefined;
  if (kernel.some((k) => k === undefined)) return undefined;
  const groups = attrs.groups / 2;
  const extents = (channels: number) =>
    [groups, 2, filters / attrs.groups, channels, ...kernel].map((d) => toIndex(d!));
  const apart = site.add("reshape", [site.id("w")], { shape: extents(inner) });
  const zero = site.constant(fromRef(refTensor(dtype, [], [0])));
  const halves = [0, 1].map((half) => {
    const own = cut(site, [apart, extents(inner)], [1, toIndex(half), toIndex(1)]);
    const zeros = (channels: number) => extents(0).map((_, i) => toIndex(i === 3 ? channels : 0));
    const [low, high] = [zeros(half * inner), zeros((1 - half) * inner)];
    return site.add("pad", [own, zero], { low, high, mode: "constant" });
  });
  const joined = site.add("concat", halves, { axis: 1 });
  const wide = [filters, 2 * inner, ...kernel].map((d) => toIndex(d!));
  const filter = site.add("reshape", [joined], { shape: wide });
  return site.add("convolution", [site.id("x"), filter], { ...attrs, groups });
}

export const enlargements: readonly RuleRow[] = [
  row(
    "join-groups",
    "reassociates",
    "(convolution[?a] ?x ?w)",
    pairsOfGroups,
    "constant(w); computed(x)",
  ),
  sampled(
    row(
      "enlarge-window",
      "reassociates",
      "(convolution[?a] ?x ?w)",
      "(convolution[?b] ?x (pad[?p] ?w (constant[?z])))",
      "constant(w); computed(x); b = enlargedWindow(a, w); p = enlargingZeros(a, w); z = number(0, w)",
    ),
    "#two-windows",
  ),
];

/** A part of a value along one axis. */
function cut(
  site: Site,
  [value, shape]: readonly [NodeId, readonly IndexExpr[]],
  [axis, start, size]: readonly [number, IndexExpr, IndexExpr],
): NodeId {
  return site.add("slice", [value], partOfAxis(shape, axis, [start, size]));
}

interface Rows {
  readonly low: number;
  readonly high: number;
  readonly kernel: number;
  /** Rows of a picture and of its result. */
  readonly given: number;
  readonly made: number;
}

/** Rows of a convolution that moves by one row, where all is known. */
function rowsOf(site: Site): Rows | undefined {
  const { strides, dilations, padLow, padHigh } = site.attrs<"convolution">("a");
  const [shape, filter] = [site.shape("x"), site.shape("w")];
  const [given, kernel] = [constantValue(shape[2]!), constantValue(filter[2]!)];
  if (shape.length !== 4 || given === undefined || kernel === undefined) return undefined;
  const [low, high] = [padLow[0]!, padHigh[0]!];
  const batch = constantValue(shape[0]!);
  const fits =
    batch !== undefined &&
    batch % 2 === 0 &&
    strides[0] === 1 &&
    dilations[0] === 1 &&
    low + high > 0 &&
    low < kernel &&
    high < kernel &&
    given >= kernel - 1;
  return fits ? { low, high, kernel, given, made: given + low + high - kernel + 1 } : undefined;
}

/**
 * Both halves of the batch one below the other. Rows of the result whose window stays in one picture,
 * or leaves the joined one where it left its own, are right; `high` rows of the upper picture and `low`
 * of the lower see the other picture instead of zeros, and are computed from the rows that they read.
 */
function halvesBelowEachOther(site: Site): NodeId | undefined {
  const rows = rowsOf(site);
  if (!rows) return undefined;
  const { low, high, kernel, given, made } = rows;
  const attrs = site.attrs<"convolution">("a");
  const whole = [site.id("x"), site.shape("x")] as const;
  const half = floorDiv(whole[1][0]!, 2);
  const pictures = [toIndex(0), half].map((start) => cut(site, whole, [0, start, half]));
  const shape = whole[1].map((d, i) => (i === 0 ? half : d));
  const convolve = (data: NodeId, change: Partial<ConvolutionAttrs>) =>
    site.add("convolution", [data, site.id("w")], { ...attrs, ...change });
  const joined = convolve(site.add("concat", pictures, { axis: 2 }), {});
  const result = site.rootType().shape.map((d, i) => (i === 0 ? half : d));
  const tall = result.map((d, i) => (i === 2 ? toIndex(given + made) : d));
  const rowsAt = (start: number, size: number) =>
    cut(site, [joined, tall], [2, toIndex(start), toIndex(size)]);
  const seam = (picture: NodeId, start: number, pads: readonly [number, number]) =>
    convolve(cut(site, [picture, shape], [2, toIndex(start), toIndex(kernel - 1)]), {
      padLow: [pads[0], attrs.padLow[1]!],
      padHigh: [pads[1], attrs.padHigh[1]!],
    });
  const [above, below] = pictures as [NodeId, NodeId];
  const upper = [rowsAt(0, made - high)];
  if (high > 0) upper.push(seam(above, given - kernel + 1, [0, high]));
  const lower = [rowsAt(given + low, made - low)];
  if (low > 0) lower.unshift(seam(below, 0, [low, 0]));
  const parts = [upper, lower].map((list) => site.add("concat", list, { axis: 2 }));
  return site.add("concat", parts, { axis: 0 });
}

export const partialEquivalences: readonly RuleRow[] = [
  sampled(
    row(
      "halves-below-each-other",
      "exact",
      "(convolution[?a] ?x ?w)",
      halvesBelowEachOther,
      "computed(x)",
    ),
    "#even-batch",
  ),
  row(
    "offset-through-padding-corrected",
    "reassociates",
    "(convolution[?a] (add ?x ?c) ?w)",
    "(add (convolution[?a] ?x ?w) (convolution[?a] (broadcast[?s] ?c) ?w))",
    "constant(w); constant(c); computed(x); covers(x, c); s = onePicture(x, c)",
  ),
];
