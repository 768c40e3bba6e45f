/** The same graph with its values numbered inputs, weights, then the nodes' outputs in their order. */
import type { Graph, Node, ValueId } from "../graph/graph.ts";

export function weightsFirst(graph: Graph): Graph {
  const order = [
    ...graph.inputs,
    ...graph.weights.map((w) => w.value),
    ...graph.nodes.flatMap((n) => n.outputs),
  ];
  const place = new Map(order.map((old, i) => [old, i]));
  const moved = (id: ValueId): ValueId => place.get(id)!;
  return {
    ...graph,
    values: order.map((old, id) => ({ ...graph.values[old]!, id })),
    inputs: graph.inputs.map(moved),
    weights: graph.weights.map((w) => ({ ...w, value: moved(w.value) })),
    nodes: graph.nodes.map(
      (n) => ({ ...n, inputs: n.inputs.map(moved), outputs: n.outputs.map(moved) }) as Node,
    ),
    outputs: graph.outputs.map(moved),
    states: graph.states.map((s) => ({ input: moved(s.input), output: moved(s.output) })),
  };
}
