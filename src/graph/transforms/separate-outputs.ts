/**
 * Gives every output a value of its own: an output that is an input, a weight or an earlier output becomes
 * a copy of it. A program then has one buffer for each port, under a name that the graph knows.
 */
import type { Graph, Node, Value, ValueId } from "../graph.ts";

export function separateOutputs(graph: Graph): Graph {
  const taken = new Set<ValueId>([...graph.inputs, ...graph.weights.map((w) => w.value)]);
  const names = new Set(graph.values.map((v) => v.name));
  const values: Value[] = [...graph.values];
  const nodes: Node[] = [...graph.nodes];
  const copies = new Map<ValueId, ValueId>();
  const outputs = graph.outputs.map((id) => {
    if (!taken.has(id)) {
      taken.add(id);
      return id;
    }
    const { name, type } = graph.values[id]!;
    const copy = { id: values.length, name: freeName(`${name}.output`, names), type };
    values.push(copy);
    if (!copies.has(id)) copies.set(id, copy.id);
    nodes.push({
      id: nodes.length,
      op: "cast",
      inputs: [id],
      outputs: [copy.id],
      attrs: { to: type.dtype, saturate: false },
      origin: `output ${name}`,
    });
    return copy.id;
  });
  if (copies.size === 0) return graph;
  // A state that takes over what is no output of its own any more (a delay line) takes over the copy.
  const own = new Set(outputs);
  const states = graph.states.map(({ input, output }) => ({
    input,
    output: own.has(output) ? output : copies.get(output)!,
  }));
  return { ...graph, values, nodes, outputs, states };
}

function freeName(wanted: string, names: Set<string>): string {
  let name = wanted;
  for (let n = 1; names.has(name); n++) name = `${wanted}.${n}`;
  names.add(name);
  return name;
}
