/**
 * Work that a model makes of its constants alone, in every run anew: what folding left in the graph because it
 * is too large to be kept. Models have some (weights that are converted, masks); a file of a few hundred bytes
 * that fills gigabytes, or never ends, has nothing else.
 */
import type { Graph, Node, OpKind, ValueId } from "../../../graph/graph.ts";
import type { OpCall } from "../../../graph/op-info.ts";
import { infoOf, traitsOf } from "../../../graph/op-table.ts";
import { constantValue } from "../../../semantics/index-expr.ts";
import { reject } from "../../../support/diagnostic.ts";

/** Elements made and operations that are always allowed: about a second of a processor. */
const leastAllowed = 2 ** 29;
/** As many for each element of the model's weights. */
const allowedPerElement = 64;

/** Rejects (ONX019) graphs whose constants ask for more work than their size explains. */
export function checkConstantWork(graph: Graph): void {
  const constants = new Set(graph.weights.map((w) => w.value));
  const stored = graph.weights.reduce((sum, w) => sum + elementsOf(graph, w.value), 0);
  const allowed = Math.max(leastAllowed, allowedPerElement * stored);
  const live = liveNodes(graph);
  let work = 0;
  for (const node of graph.nodes) {
    if (!live.has(node) || !node.inputs.every((id) => constants.has(id))) continue;
    const { random, hasSubgraph } = traitsOf(node, graph);
    if (random || hasSubgraph) continue;
    for (const id of node.outputs) constants.add(id);
    work += workOf(node, graph);
    if (work > allowed) refuse(node, work, allowed);
  }
}

function refuse(node: Node, work: number, allowed: number): never {
  const message = `constants ask for ${work} elements and operations in every run`;
  return reject("ONX019", message, {
    at: node.origin ?? node.op,
    help:
      `at most ${allowed} are allowed: 2^29, or ${allowedPerElement} for each element of the weights; ` +
      "store the result as a weight, or make what it is computed from an input",
  });
}

function workOf(node: Node, graph: Graph): number {
  const types = (ids: readonly ValueId[]) => ids.map((id) => graph.values[id]!.type);
  const call = {
    inputs: types(node.inputs),
    outputs: types(node.outputs),
    attrs: node.attrs,
    ranges: new Map(),
  };
  const flops = infoOf(node.op as OpKind).flops?.(call as unknown as OpCall<OpKind>);
  const made = node.outputs.reduce((sum, id) => sum + elementsOf(graph, id), 0);
  return made + (flops ? (constantValue(flops) ?? 0) : 0);
}

/** Those with extents that are open have no constant size: they count nothing. */
function elementsOf({ values }: Graph, id: ValueId): number {
  return values[id]!.type.shape.reduce((count, e) => count * (constantValue(e) ?? 0), 1);
}

function liveNodes({ nodes, outputs }: Graph): ReadonlySet<Node> {
  const read = new Set(outputs);
  const live = nodes.toReversed().filter((node) => {
    if (!node.outputs.some((id) => read.has(id))) return false;
    for (const id of node.inputs) read.add(id);
    return true;
  });
  return new Set(live);
}
