/**
 * Values of half precision that may leave its range and go into a body of control flow, out of it or from trip to
 * trip: the body takes and gives them in single precision, with conversions on both sides of its border. These are
 * what keepWide then leaves out, inside as outside. In: a model, and the estimated ranges of its values.
 */
import type { Graph, Node, NodeOf, Value, ValueId } from "../graph.ts";
import { subgraphsOf } from "../op-table.ts";
import { type GraphRanges, mayLeaveHalf } from "../value-ranges.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** Undefined: no body needs it. */
export function openBodies(graph: Graph, ranges: GraphRanges): Rebuilt | undefined {
  if (graph.nodes.every((node) => subgraphsOf(node).length === 0)) return undefined;
  let isChanged = false;
  const rebuilt = rebuildGraph(graph, {
    node: (site) => {
      const opened = open(site, ranges);
      isChanged ||= opened !== undefined;
      return opened;
    },
  });
  return isChanged ? rebuilt : undefined;
}

/** Which inputs and outputs of a body become single precision. */
interface WidePorts {
  readonly inputs: readonly boolean[];
  readonly outputs: readonly boolean[];
}

type Control = NodeOf<"if"> | NodeOf<"loop"> | NodeOf<"scan">;

function open(site: RebuildSite, ranges: GraphRanges): readonly ValueId[] | undefined {
  const { b, old, node, inputs } = site;
  if (node.op !== "if" && node.op !== "loop" && node.op !== "scan") return undefined;
  // The node of the site has bodies that are rebuilt already; ranges are known of those before.
  const ports = portsOf(old.nodes.find((n) => n.outputs[0] === node.outputs[0]) as Control, ranges);
  if (![...ports.inputs, ...ports.outputs].includes(true)) return undefined;
  const [firstInput, firstOutput] = [node.op === "if" ? 1 : 0, node.op === "loop" ? 1 : 0];
  const operands = inputs.map((id, i) => (ports.inputs[i - firstInput] ? b.cast(id, "f32") : id));
  const widened = (body: Graph) => withWidePorts(body, ports, node);
  const results =
    node.op === "if"
      ? b.nodes(node.op, operands, {
          then: widened(node.attrs.then),
          else: widened(node.attrs.else),
        })
      : b.nodes(node.op, operands, {
          ...node.attrs,
          body: widened(node.attrs.body),
        } as never);
  return results.map((id, i) => (ports.outputs[i + firstOutput] ? b.cast(id, "f16") : id));
}

function portsOf(node: Control, ranges: GraphRanges): WidePorts {
  const leaves = (body: Graph, id: ValueId) =>
    mayLeaveHalf(body.values[id]!.type.dtype, ranges.get(body)?.get(id));
  const bodies = subgraphsOf(node);
  const [first] = bodies as [Graph];
  const inputs = first.inputs.map((_, i) => bodies.some((g) => leaves(g, g.inputs[i]!)));
  const outputs = first.outputs.map((_, o) => bodies.some((g) => leaves(g, g.outputs[o]!)));
  if (node.op === "if") return { inputs, outputs };
  const [into, from] = node.op === "loop" ? [2, 1] : [0, 0];
  for (let k = 0; k < node.attrs.carried; k++) {
    const isWide = inputs[into + k]! || outputs[from + k]!;
    inputs[into + k] = isWide;
    outputs[from + k] = isWide;
  }
  return { inputs, outputs };
}

/** The body with conversions at these ports; those that it had keep their names inside. */
function withWidePorts(body: Graph, ports: WidePorts, { origin, op }: Node): Graph {
  const names = new Set(body.values.map((v) => v.name));
  const values: Value[] = [...body.values];
  const before: Omit<Node, "id">[] = [];
  const after: Omit<Node, "id">[] = [];
  const wide = (id: ValueId): ValueId => {
    const { name, type } = body.values[id]!;
    const value = { id: values.length, name: freeName(name, names), type };
    values.push({ ...value, type: { ...type, dtype: "f32" } });
    return value.id;
  };
  const cast = (from: ValueId, into: ValueId, to: "f16" | "f32") =>
    ({
      op: "cast",
      inputs: [from],
      outputs: [into],
      attrs: { to, saturate: false },
      origin: origin ?? op,
    }) as const;
  const inputs = body.inputs.map((id, i) => {
    if (!ports.inputs[i]) return id;
    const taken = wide(id);
    before.push(cast(taken, id, "f16"));
    return taken;
  });
  const outputs = body.outputs.map((id, i) => {
    if (!ports.outputs[i]) return id;
    const given = wide(id);
    after.push(cast(id, given, "f32"));
    return given;
  });
  const nodes = [...before, ...body.nodes, ...after].map((node, id) => ({ ...node, id }) as Node);
  return { ...body, values, nodes, inputs, outputs };
}

function freeName(name: string, names: Set<string>): string {
  let wide = `${name}.wide`;
  while (names.has(wide)) wide += "'";
  names.add(wide);
  return wide;
}
