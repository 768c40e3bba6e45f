/**
 * Elementwise operators of a concat as a concat of elementwise operators, where nobody else reads the joined value:
 * it need not be in memory then, and each part takes the operator where it is made. `x cos + concat(-x2, x1) sin`,
 * the usual form of a rotary embedding, becomes two maps of the halves. So does a conversion to fewer bits behind
 * what moves the joined value further.
 */

import { dtypes } from "../../semantics/dtype.ts";
import {
  add,
  constantValue,
  type IndexExpr,
  indexEquals,
  toIndex,
} from "../../semantics/index-expr.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Graph, Node, NodeOf, OpKind, ValueId } from "../graph.ts";
import { subgraphsOf, traitsOf } from "../op-table.ts";
import { type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** Parts, at most: every operator on the way is written once for each. */
const mostParts = 4;

/** A value as parts behind each other along an axis. */
interface Parts {
  readonly values: readonly ValueId[];
  readonly axis: number;
}

type Move = NodeOf<"concat"> | NodeOf<"reshape"> | NodeOf<"transpose">;

/** What a value of the new graph is made of by moving elements. */
interface Moved {
  readonly node: Move;
  readonly inputs: readonly ValueId[];
  /** Nobody but one node reads it. */
  readonly isOwn: boolean;
}

export function mapParts(graph: Graph): Rebuilt {
  const uses = new Map<Graph, ReadonlyMap<ValueId, number>>();
  const usesOf = (of: Graph): ReadonlyMap<ValueId, number> => {
    const known = uses.get(of) ?? countUses(of);
    uses.set(of, known);
    return known;
  };
  // By value of the new graph.
  const found = new Map<GraphBuilder, Map<ValueId, Moved>>();
  return rebuildGraph(graph, {
    node: ({ b, old, node, inputs }) => {
      const known = found.get(b) ?? new Map<ValueId, Moved>();
      found.set(b, known);
      const isOwn = (value: ValueId): boolean => usesOf(old).get(value) === 1;
      if (isMove(node)) {
        const moved = again(b, node, inputs);
        known.set(moved, { node, inputs, isOwn: isOwn(node.outputs[0]!) });
        return [moved];
      }
      const { elementwise, conversion } = traitsOf(node, old);
      if (!elementwise && !conversion) return undefined;
      const rank = old.values[node.outputs[0]!]!.type.shape.length;
      const at = inputs.findIndex((x, i) => {
        const parts = known.get(x)?.isOwn && partsOf(known, x);
        if (parts && !areApart(b, parts)) return false;
        return parts && b.shapeOf(x).length === rank && isWhole(old, node, i, parts.axis);
      });
      if (at < 0) {
        const narrow = node.op === "cast" && narrowed(b, known, node, inputs[0]!);
        return narrow === undefined || narrow === false ? undefined : [narrow];
      }
      const { values, axis } = partsOf(known, inputs[at]!)!;
      const made = applied(b, node, inputs, { known, values, axis, at });
      const joined: NodeOf<"concat"> = { ...node, op: "concat", attrs: { axis } };
      const whole = b.node("concat", made, { axis });
      known.set(whole, { node: joined, inputs: made, isOwn: isOwn(node.outputs[0]!) });
      return [whole];
    },
  });
}

function isMove(node: Node): node is Move {
  return node.op === "concat" || node.op === "reshape" || node.op === "transpose";
}

/**
 * Whether parts are different values of known lengths: of one that stands in two places, or whose place open extents
 * say, a kernel that maps it writes what cannot be shown to be apart, or all there is.
 */
function areApart(b: GraphBuilder, { values, axis }: Parts): boolean {
  const isKnown = values.every((v) => constantValue(b.shapeOf(v)[axis]!) !== undefined);
  return isKnown && new Set(values).size === values.length;
}

function partsOf(known: ReadonlyMap<ValueId, Moved>, value: ValueId): Parts | undefined {
  const moved = known.get(value);
  if (moved?.node.op !== "concat" || moved.inputs.length > mostParts) return undefined;
  return { values: moved.inputs, axis: moved.node.attrs.axis };
}

/** A conversion to fewer bits before elements are moved to where a concat joins them; undefined where none does. */
function narrowed(
  b: GraphBuilder,
  known: Map<ValueId, Moved>,
  cast: NodeOf<"cast">,
  value: ValueId,
): ValueId | undefined {
  if (dtypes[cast.attrs.to].bits >= dtypes[b.dtypeOf(value)].bits) return undefined;
  const moved = known.get(value);
  if (!moved?.isOwn) return undefined;
  const { node, inputs } = moved;
  const parts = partsOf(known, value);
  const made = parts
    ? areApart(b, parts) && inputs.map((x) => b.node("cast", [x], cast.attrs))
    : node.op !== "concat" && inputs.map((x) => narrowed(b, known, cast, x));
  if (!made || made.includes(undefined)) return undefined;
  const result = again(b, node, made as readonly ValueId[]);
  known.set(result, { ...moved, inputs: made as readonly ValueId[] });
  return result;
}

function again(b: GraphBuilder, node: Node, inputs: readonly ValueId[]): ValueId {
  const { op, attrs } = node as NodeOf<OpKind>;
  return b.node(op, inputs, attrs);
}

/** How often nodes read a value, those of subgraphs counted; what the caller reads counts twice. */
function countUses(graph: Graph): ReadonlyMap<ValueId, number> {
  const found = new Map<ValueId, number>();
  const count = (value: ValueId, by: number): void => {
    found.set(value, (found.get(value) ?? 0) + by);
  };
  for (const node of graph.nodes) {
    for (const value of node.inputs) count(value, subgraphsOf(node).length > 0 ? 2 : 1);
  }
  for (const value of graph.outputs) count(value, 2);
  return found;
}

/** Whether an operand has as many elements along the axis as the result. */
function isWhole({ values }: Graph, node: Node, operand: number, axis: number): boolean {
  const [of, result] = [node.inputs[operand]!, node.outputs[0]!].map((v) => values[v]!.type.shape);
  return indexEquals(of![axis]!, result![axis]!);
}

/** The node for each part; of its other operands, the parts that meet it. */
function applied(
  b: GraphBuilder,
  node: Node,
  inputs: readonly ValueId[],
  {
    known,
    values,
    axis,
    at,
  }: Parts & { readonly known: ReadonlyMap<ValueId, Moved>; readonly at: number },
): readonly ValueId[] {
  const rank = b.shapeOf(inputs[at]!).length;
  const sizes = values.map((v) => b.shapeOf(v)[axis]!);
  let start: IndexExpr = toIndex(0);
  return values.map((part, n) => {
    const size = sizes[n]!;
    const from = start;
    start = add(start, size);
    const operands = inputs.map((x, i) => {
      if (i === at) return part;
      const own = axis - (rank - b.shapeOf(x).length);
      const extent = own < 0 ? undefined : b.shapeOf(x)[own]!;
      if (extent === undefined || indexEquals(extent, toIndex(1))) return x;
      const apart = partsOf(known, x);
      const isAlike =
        apart?.axis === own &&
        apart.values.length === values.length &&
        apart.values.every((v, j) => indexEquals(b.shapeOf(v)[own]!, sizes[j]!));
      return isAlike ? apart.values[n]! : b.sliceAxis(x, own, from, size);
    });
    return again(b, node, operands);
  });
}
