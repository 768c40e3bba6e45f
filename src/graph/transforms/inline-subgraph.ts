/**
 * Copies the nodes of a subgraph into the graph around it, and says of which subgraphs that may be
 * done: of any without symbols of its own, and also where its results may be thrown away if nothing
 * in it can fail or have an effect.
 */
import type { GraphBuilder } from "../builder.ts";
import type { Graph, Node, NodeOf, OpKind, ValueId } from "../graph.ts";
import { subgraphsOf, traitsOf } from "../op-table.ts";

/** The values of the subgraph's outputs when it runs on `inputs`. */
export function inlineSubgraph(
  b: GraphBuilder,
  body: Graph,
  inputs: readonly ValueId[],
): readonly ValueId[] {
  const values = new Map(body.inputs.map((id, i) => [id, inputs[i]!] as const));
  for (const { value, source } of body.weights) {
    const { name, type } = body.values[value]!;
    const id =
      source.kind === "inline" ? b.constant(source.tensor) : b.weight(name, type, source.key);
    values.set(value, id);
  }
  for (const { left, right, origin } of body.constraints) b.constrain(left, right, origin);
  for (const node of body.nodes) {
    const { op, attrs, origin } = node as NodeOf<OpKind>;
    const operands = node.inputs.map((id) => values.get(id)!);
    const results = b.nodes(op, operands, attrs, origin === undefined ? {} : { origin });
    for (const [i, id] of node.outputs.entries()) values.set(id, results[i]!);
  }
  return body.outputs.map((id) => values.get(id)!);
}

/** Nodes of a graph and of its subgraphs. */
export function nodeCount(graph: Graph): number {
  return graph.nodes.reduce(
    (sum, node) => sum + subgraphsOf(node).reduce((n, inner) => n + nodeCount(inner), 1),
    0,
  );
}

/** Whether copies of the body are what running it is: its extents are known outside, no draws. */
export function isCopyable(body: Graph): boolean {
  const plain = (node: Node): boolean =>
    !traitsOf(node, body).random && subgraphsOf(node).every(isCopyable);
  return body.symbols.length === 0 && body.nodes.every(plain);
}

/**
 * Whether running the body without need changes nothing: it asks nothing of the symbols, and its ops
 * give a result for any elements. (An index that is read from a tensor may be out of range.)
 */
export function isSpeculative(body: Graph): boolean {
  return (
    body.constraints.length === 0 &&
    isCopyable(body) &&
    body.nodes.every((node) => isTotal(node, body))
  );
}

function isTotal(node: Node, body: Graph): boolean {
  if (node.op === "cast" || node.op === "iota" || node.op === "dimSize") return true;
  const traits = traitsOf(node, body);
  if (traits.elementwise !== undefined || traits.dataMovement || traits.contraction) return true;
  return traits.reduction !== undefined;
}
