/**
 * How large a tensor may be that a reference computes with in a run. References hold each element in 8 bytes and
 * take one after another: what no program does is for lists of boxes, masks and noise, not for weights. Weights
 * are left out: a body may read the large ones of a model.
 */
import type { Graph, ValueId } from "../graph/graph.ts";
import { subgraphsOf } from "../graph/op-table.ts";
import { constantValue, substitute } from "../semantics/index-expr.ts";
import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";

/** Elements of one tensor: 256 MiB, seconds of a reference. */
const mostElements = 2 ** 25;

/** What is too large of what the nodes read and make, as far as these symbols tell. */
export function tooLarge(
  graph: Graph,
  symbols: ReadonlyMap<string, number> = new Map(),
): Diagnostic | undefined {
  const weights = new Set(graph.weights.map((w) => w.value));
  return largeIn(graph, symbols, (node) => node.inputs.filter((id) => !weights.has(id)));
}

type Nodes = Graph["nodes"];

function largeIn(
  graph: Graph,
  symbols: ReadonlyMap<string, number>,
  readBy: (node: Nodes[number]) => readonly ValueId[],
): Diagnostic | undefined {
  for (const node of graph.nodes) {
    for (const id of [...readBy(node), ...node.outputs]) {
      const { name, type } = graph.values[id]!;
      const elements = type.shape.reduce(
        (count, e) => count * (constantValue(substitute(e, symbols)) ?? 1),
        1,
      );
      if (elements <= mostElements) continue;
      return diagnostic("INT004", `${name} has ${elements} elements or more`, {
        at: node.origin ?? node.op,
        help:
          `operators whose sizes data decide, loops that collect what data end, and random numbers run on references, ` +
          `with at most 2^25 = ${mostElements} elements a tensor: give smaller inputs, or compute it outside of the model`,
      });
    }
    for (const body of subgraphsOf(node)) {
      // What a body reads may be a weight of the graph around it.
      const found = largeIn(body, symbols, () => []);
      if (found) return found;
    }
  }
  return undefined;
}
