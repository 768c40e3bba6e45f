/**
 * Dead code elimination and common subexpression elimination. Nodes that draw random numbers are
 * never merged; nodes whose extents the data decide may be, and then share the extent's symbol.
 */
import { tensorBytes } from "../../semantics/tensor.ts";
import type { AnyAttrs } from "../attr-schema.ts";
import { printAttrs } from "../attr-text.ts";
import type { Graph, ValueId, Weight } from "../graph.ts";
import { printGraph } from "../graph-text.ts";
import { schemaOf, subgraphsOf, traitsOf } from "../op-table.ts";
import { printType } from "../tensor-type.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** Values that some output depends on. */
export function liveValues(graph: Graph): ReadonlySet<ValueId> {
  const live = new Set<ValueId>(graph.outputs);
  for (const node of [...graph.nodes].reverse()) {
    if (node.outputs.some((id) => live.has(id))) for (const id of node.inputs) live.add(id);
  }
  return live;
}

/** Drops nodes and weights that no output depends on; inputs stay. */
export function eliminateDeadCode(graph: Graph): Graph {
  return isAllLive(graph) ? graph : rebuildGraph(graph, { live: liveValues }).graph;
}

/** Whether every node and weight is of use; a graph with subgraphs counts as one that has others. */
function isAllLive(graph: Graph): boolean {
  const live = liveValues(graph);
  const isLive = (id: ValueId): boolean => live.has(id);
  return (
    graph.weights.every((w) => isLive(w.value)) &&
    graph.nodes.every((node) => node.outputs.some(isLive) && subgraphsOf(node).length === 0)
  );
}

/** Merges nodes with equal op, attributes and operands, and equal weights. */
export function eliminateCommonSubexpressions(graph: Graph): Rebuilt {
  // One table a graph, since a subgraph sees only its own values.
  const tables = new Map<object, Map<string, readonly ValueId[]>>();
  const tableOf = (b: object): Map<string, readonly ValueId[]> => {
    const found = tables.get(b) ?? new Map<string, readonly ValueId[]>();
    tables.set(b, found);
    return found;
  };
  return rebuildGraph(graph, {
    weight: (b, weight, old) => {
      const table = tableOf(b);
      const key = weightKey(weight, old);
      const seen = table.get(key)?.[0];
      if (seen !== undefined) return seen;
      const { name, type } = old.values[weight.value]!;
      const { source } = weight;
      const id =
        source.kind === "inline"
          ? b.constant(source.tensor, name)
          : b.weight(name, type, source.key);
      table.set(key, [id]);
      return id;
    },
    node: (site) => {
      const { b, old, node, inputs } = site;
      if (traitsOf(node, old).random) return undefined;
      const table = tableOf(b);
      const key = nodeKey(site);
      const seen = table.get(key);
      if (seen) return seen;
      const names = node.outputs.map((id) => old.values[id]!.name);
      const outputs = b.nodes(node.op, inputs, node.attrs as never, { names });
      table.set(key, outputs);
      return outputs;
    },
  });
}

function weightKey({ value, source }: Weight, graph: Graph): string {
  const type = printType(graph.values[value]!.type);
  if (source.kind === "stored") return `stored ${type} ${JSON.stringify(source.key)}`;
  return `inline ${type} ${tensorBytes(source.tensor).join(" ")}`;
}

function nodeKey({ old, node, inputs }: RebuildSite): string {
  const { commutative } = traitsOf(node, old);
  const operands = commutative ? [...inputs].sort((a, b) => a - b) : inputs;
  const attrs = printAttrs(schemaOf(node.op), node.attrs as AnyAttrs, printGraph);
  return `${node.op}(${operands.join(", ")})${attrs}`;
}
