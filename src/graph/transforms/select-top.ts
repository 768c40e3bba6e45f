/**
 * topK of a long axis by its groups. Elements of the first k stand in the k groups whose own first elements
 * come first: before the first element of any other group stand k others, and so before all of that group. So
 * the first of each group is found (a fold, n steps), the k first of those say which groups count, and of the
 * k groups' elements, in the order of the axis, the k first are the result. With groups of about the root of
 * n / k both of the shorter ones have the root of n k elements; they are cut again while they are long. What
 * is left is counted (region/builders/ordering.ts): about n + 2 n k steps a line instead of n n. Equal
 * values keep their order throughout, as the groups of the result are put in order of the axis. A k of more
 * than a sixteenth of the axis stays as it is, as do extents that are not known.
 */
import type { CoreOpAttrs } from "../../semantics/core-ops.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import { constant, constantValue } from "../../semantics/index-expr.ts";
import { identityElement } from "../../semantics/monoids.ts";
import { fromRef, refTensor } from "../../semantics/tensor.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Graph, ValueId } from "../graph.ts";
import { type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** Elements of an axis, and of them for each of the k, from which on it is cut in groups. */
const leastExtent = 1024;
const leastShare = 16;
/** How far a size that divides the axis may be from the best one. */
const mostOff = 1.5;

type TopK = CoreOpAttrs["topK"];

export function selectTop(graph: Graph): Rebuilt {
  return rebuildGraph(graph, {
    node: ({ b, node, inputs }) => {
      if (node.op !== "topK") return undefined;
      const { attrs } = node;
      return isCut(b, inputs[0]!, attrs) ? byGroups(b, inputs[0]!, attrs) : undefined;
    },
  });
}

function isCut(b: GraphBuilder, x: ValueId, { axis, k }: TopK): boolean {
  const [extent, count] = [constantValue(b.shapeOf(x)[axis]!), constantValue(k)];
  if (extent === undefined || count === undefined || count < 2) return false;
  return extent >= leastExtent && extent >= leastShare * count;
}

/** Values and positions, by groups where the axis is long. */
function first(b: GraphBuilder, x: ValueId, attrs: TopK): readonly [ValueId, ValueId] {
  if (isCut(b, x, attrs)) return byGroups(b, x, attrs);
  return b.nodes("topK", [x], attrs) as readonly ValueId[] as readonly [ValueId, ValueId];
}

function byGroups(b: GraphBuilder, x: ValueId, attrs: TopK): readonly [ValueId, ValueId] {
  const { axis, k } = attrs;
  const shape = b.shapeOf(x);
  const [extent, count] = [constantValue(shape[axis]!)!, constantValue(k)!];
  const size = groupSize(extent, count);
  const groups = Math.ceil(extent / size);
  const whole = groups * size === extent ? x : padded(b, x, attrs, groups * size - extent);
  const withAxis = (...extents: readonly number[]) =>
    shape.flatMap((e, i) => (i === axis ? extents.map((n) => constant(n)) : [e]));
  const apart = b.reshape(whole, withAxis(groups, size));
  const [leaders] = b.nodes("topK", [apart], { ...attrs, axis: axis + 1, k: constant(1) });
  const [, chosen] = first(b, b.reshape(leaders!, withAxis(groups)), { ...attrs, sorted: true });
  const inOrder = { axis, k, largest: false, sorted: true };
  const [ordered] = first(b, chosen, inOrder);
  const begins = b.applyNumber("mul", b.reshape(ordered, withAxis(count, 1)), size);
  const lone = withAxis(1, size).map((e, i) => (i === axis + 1 ? e : constant(1)));
  const within = b.node("iota", [], { shape: lone, axis: axis + 1, dtype: "i64" });
  const places = b.reshape(b.add(begins, within), withAxis(count * size));
  const candidates = b.node("gatherElements", [whole, places], { axis });
  const [values, at] = first(b, candidates, attrs);
  return [values, b.node("gatherElements", [places, at], { axis })];
}

/** About the root of n / k elements; of such sizes one that divides the axis, where there is one. */
function groupSize(extent: number, count: number): number {
  const wanted = Math.sqrt(extent / count);
  const near = Array.from({ length: Math.ceil(2 * wanted) }, (_, i) => i + 2).filter(
    (n) => extent % n === 0 && n <= wanted * mostOff && n >= wanted / mostOff,
  );
  const off = (n: number): number => Math.abs(Math.log(n / wanted));
  return near.sort((a, c) => off(a) - off(c))[0] ?? Math.max(2, Math.round(wanted));
}

/** The axis with elements behind it that come last of all, and behind their equals. */
function padded(b: GraphBuilder, x: ValueId, { axis, largest }: TopK, more: number): ValueId {
  const dtype = b.dtypeOf(x);
  const last = lastOf(dtype, largest);
  const fill = b.constant(
    fromRef(refTensor(dtype, [], typeof last === "bigint" ? [last] : [last])),
  );
  const none = b.shapeOf(x).map(() => constant(0));
  const high = none.map((e, i) => (i === axis ? constant(more) : e));
  return b.node("pad", [x, fill], { low: none, high, mode: "constant" });
}

/** NaN is the greatest value of its type. */
function lastOf(dtype: DType, largest: boolean): number | bigint {
  if (largest) return identityElement("max", dtype);
  const { format } = dtypes[dtype];
  return format && format.nan !== "none" ? Number.NaN : identityElement("min", dtype);
}
