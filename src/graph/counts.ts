/**
 * How much work a node is, as expressions over the symbols.
 *
 * Flops: one per addition, multiplication, comparison or function of an element (an exp counts 1);
 * two per multiply-add of a contraction; convolutions count padding as if it were data; nothing for
 * data movement, conversions and selections. A composite counts what its definition does, a branch
 * its more expensive side, a loop its largest number of trips.
 * Compulsory bytes: each distinct operand read once (only the part that is used, where the op says
 * so) and each output written once: what must move when nothing stays in a cache.
 */
import { add, constantValue, type IndexExpr, max, mul, toIndex } from "../semantics/index-expr.ts";
import type { IndexRanges } from "../semantics/index-range.ts";
import { definitionGraph } from "./builder.ts";
import type { CompositeAttrs } from "./composites.ts";
import type { Graph, Node, NodeOf, OpKind, ValueId } from "./graph.ts";
import type { OpCall } from "./op-info.ts";
import { infoOf, isComposite, subgraphsOf } from "./op-table.ts";
import { bytesOf } from "./tensor-type.ts";

export function rangesOf(graph: Graph): IndexRanges {
  return new Map(graph.symbols.map((s) => [s.name, s] as const));
}

function callOf(node: Node, graph: Graph): OpCall<OpKind> {
  const types = (ids: readonly ValueId[]) => ids.map((id) => graph.values[id]!.type);
  const { attrs, inputs, outputs } = node as NodeOf<OpKind>;
  return { inputs: types(inputs), outputs: types(outputs), attrs, ranges: rangesOf(graph) };
}

export function flopsOf(node: Node, graph: Graph): IndexExpr {
  const { op } = node as NodeOf<OpKind>;
  const call = callOf(node, graph);
  if (isComposite(op)) {
    const attrs = call.attrs as CompositeAttrs[typeof op];
    const context = { ranges: call.ranges, at: node.origin ?? op };
    return graphFlops(definitionGraph(op, call.inputs, attrs, context));
  }
  const inner = subgraphsOf(node).map(graphFlops);
  if (node.op === "if") return max(...inner);
  if (node.op === "loop") return times(node.attrs.maxTrips, inner[0]!);
  if (node.op === "scan") {
    const sequence = call.inputs[node.attrs.carried]!;
    return mul(sequence.shape[node.attrs.inputAxes[0]!]!, inner[0]!);
  }
  return infoOf<OpKind>(op).flops?.(call) ?? toIndex(0);
}

/** Operations of a loop that are counted: in loops that data end, one in another, there could be more than numbers. */
const mostCounted = 2 ** 44;

function times(trips: IndexExpr, work: IndexExpr): IndexExpr {
  const known = constantValue(trips);
  if (known === undefined) return mul(trips, work);
  const largest = Math.max(1, work.constant, ...work.terms.map((t) => Math.abs(t.coefficient)));
  return mul(Math.min(known, Math.floor(mostCounted / largest)), work);
}

export function graphFlops(graph: Graph): IndexExpr {
  return add(0, ...graph.nodes.map((node) => flopsOf(node, graph)));
}

export function compulsoryBytes(node: Node, graph: Graph): IndexExpr {
  const { op, inputs, outputs } = node as NodeOf<OpKind>;
  const bytes = (id: ValueId): IndexExpr => bytesOf(graph.values[id]!.type);
  const written = add(0, ...outputs.map(bytes));
  const partial = infoOf(op).bytesRead;
  if (partial) return add(written, partial(callOf(node, graph)));
  return add(written, ...[...new Set(inputs)].map(bytes));
}
