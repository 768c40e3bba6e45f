/**
 * Results without elements: they need no arithmetic, and no weights read. "elements" where a node has a result
 * with elements, or data decide sizes; "unknown" where the symbols that are known do not tell.
 */
import type { Graph, Node } from "../graph/graph.ts";
import { traitsOf } from "../graph/op-table.ts";
import { evaluate, substitute, variablesOf } from "../semantics/index-expr.ts";
import { type RefTensor, refTensor } from "../semantics/tensor.ts";

export function emptyResults(
  node: Node,
  graph: Graph,
  symbols: ReadonlyMap<string, number>,
): readonly RefTensor[] | "elements" | "unknown" {
  const { hasSubgraph, dataDependentShape } = traitsOf(node, graph);
  if (hasSubgraph || dataDependentShape) return "elements";
  const types = node.outputs.map((id) => graph.values[id]!.type);
  const shapes = types.map(({ shape }) => shape.map((e) => substitute(e, symbols)));
  if (shapes.some((shape) => variablesOf(...shape).size > 0)) return "unknown";
  const sizes = shapes.map((shape) => shape.map((e) => evaluate(e, symbols)));
  const areEmpty = sizes.every((shape) => shape.includes(0) && shape.every((n) => n >= 0));
  return areEmpty ? sizes.map((shape, i) => refTensor(types[i]!.dtype, shape, [])) : "elements";
}
