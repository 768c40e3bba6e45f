/**
 * Convolutions of a graph by Winograd's filtering, F(2 x 2), where the prices say that it is cheaper. In: a graph with
 * constants as weights, prices (injected). Out: the graph with these convolutions replaced, and what that
 * saves. No saturation is needed: a convolution is one operation, whatever stands around it, and few shapes
 * have to be priced. F(4 x 4) is left out: it loses three bits more than sums do.
 */
import type { AnyAttrs } from "../graph/attr-schema.ts";
import { GraphBuilder } from "../graph/builder.ts";
import { rangesOf } from "../graph/counts.ts";
import type { Graph, Model, Node, NodeOf, ValueId, WeightStore } from "../graph/graph.ts";
import { printType } from "../graph/tensor-type.ts";
import { rebuildGraph } from "../graph/transforms/rebuild.ts";
import { constantValue } from "../semantics/index-expr.ts";
import { invariant, unreachable } from "../support/invariant.ts";
import { type Filtered, filter, type NodeWriter, two } from "./filtering.ts";
import { countRegions, type Pricer, savedNs, totalNs } from "./savings.ts";

export interface FilteredModel {
  readonly model: Model;
  /** Convolutions that were replaced. */
  readonly count: number;
  readonly savedNs: number;
}

/** Saves at least this part of the convolution: a price may be wrong by as much. */
const leastSaving = 0.1;

export function filterConvolutions(model: Model, pricer: Pricer): FilteredModel | undefined {
  const { graph, weights } = model;
  const savings = savingsOf(graph, pricer);
  let [count, saved] = [0, 0];
  const rebuilt = rebuildGraph(graph, {
    node: ({ b, old, node, inputs }) => {
      if (old !== graph || node.op !== "convolution") return;
      const convolution = node as NodeOf<"convolution">;
      const each = savings.get(keyOf(convolution, graph)) ?? 0;
      if (each <= 0) return;
      count++;
      saved += each;
      const [x, w] = inputs as [ValueId, ValueId];
      return [filtered(b, convolution, graph, [x, w])];
    },
  });
  if (count === 0) return undefined;
  const read = (key: string) => rebuilt.constants.get(key) ?? weights.read(key);
  return { model: { graph: rebuilt.graph, weights: { read } }, count, savedNs: saved };
}

/** Convolutions of one shape. */
interface Layer {
  readonly node: NodeOf<"convolution">;
  readonly key: string;
  /** What is the same for other numbers of channels on the same maps. */
  readonly maps: string;
  readonly inputs: number;
  readonly outputs: number;
}

/**
 * Nanoseconds that filtering saves, by the shapes of all convolutions that it may take. What is worth it for
 * some channels is so for more of them on the same maps: a transform of the data is shared by all outputs, one
 * of the results by all inputs, and the products that are saved grow with both. So the fewest channels are
 * priced, and more save at least in proportion.
 */
function savingsOf(graph: Graph, pricer: Pricer): ReadonlyMap<string, number> {
  const savings = new Map<string, number>();
  const worth: (Layer & { readonly saved: number })[] = [];
  for (const layer of layersOf(graph)) {
    const { maps, inputs, outputs } = layer;
    const fewer = worth.find(
      (other) => other.maps === maps && other.inputs <= inputs && other.outputs <= outputs,
    );
    const saved = fewer
      ? (fewer.saved * inputs * outputs) / (fewer.inputs * fewer.outputs)
      : savingOf(layer.node, graph, pricer);
    savings.set(layer.key, saved);
    if (!fewer && saved > 0) worth.push({ ...layer, saved });
  }
  return savings;
}

/** Each shape once, few channels first. */
function layersOf(graph: Graph): readonly Layer[] {
  const constants = constantValues(graph);
  const layers = new Map<string, Layer>();
  for (const node of graph.nodes) {
    if (!isFilterable(node, graph) || !constants.has(node.inputs[1]!)) continue;
    const key = keyOf(node, graph);
    const [x, w] = node.inputs.map((id) => graph.values[id]!.type.shape);
    const [outputs, inputs] = w!.map((d) => constantValue(d) ?? Number.NaN);
    const [batch, , ...size] = x!;
    const { padLow, padHigh } = node.attrs;
    const maps = [...[batch!, ...size].map((d) => d.key), ...padLow, ...padHigh].join(" ");
    layers.set(key, { node, key, maps, inputs: inputs!, outputs: outputs! });
  }
  return [...layers.values()].sort((a, b) => a.inputs * a.outputs - b.inputs * b.outputs);
}

/** What is the same at every run. */
function constantValues(graph: Graph): ReadonlySet<ValueId> {
  const constants = new Set(graph.weights.map((w) => w.value));
  for (const { inputs, outputs } of graph.nodes) {
    if (inputs.length > 0 && inputs.every((id) => constants.has(id)))
      for (const id of outputs) constants.add(id);
  }
  return constants;
}

function isFilterable(node: Node, graph: Graph): node is NodeOf<"convolution"> {
  if (node.op !== "convolution") return false;
  const { strides, dilations, groups } = node.attrs;
  const [x, w] = node.inputs.map((id) => graph.values[id]!.type);
  return (
    x!.dtype === "f32" &&
    w!.dtype === "f32" &&
    groups === 1 &&
    w!.shape.length === 4 &&
    w!.shape.slice(2).every((d) => constantValue(d) === 3) &&
    [...strides, ...dilations].every((n) => n === 1) &&
    x!.shape.slice(2).every((d) => constantValue(d) !== undefined)
  );
}

function keyOf({ inputs, outputs, attrs }: NodeOf<"convolution">, graph: Graph): string {
  const types = [...inputs, ...outputs].map((id) => printType(graph.values[id]!.type));
  return `${types.join(" ")} ${attrs.padLow.join()} ${attrs.padHigh.join()}`;
}

const noStore: WeightStore = {
  read: (key) => unreachable(key as never, "a weight that a price reads"),
};

/** Nanoseconds by which the filtering is priced below the convolution alone; 0 where it is not worth it. */
function savingOf(node: NodeOf<"convolution">, graph: Graph, pricer: Pricer): number {
  const alone = (write: (b: GraphBuilder, operands: readonly [ValueId, ValueId]) => ValueId) => {
    const b = new GraphBuilder("layer");
    const [x, w] = node.inputs.map((id) => graph.values[id]!.type);
    // Symbols of the batch keep their ranges.
    for (const { name, min, max } of graph.symbols) b.symbol(name, min, max);
    const ids = [b.input("x", x!), b.weight("w", w!)] as const;
    return b.finish([write(b, ids)]);
  };
  const direct = alone((b, operands) => b.node("convolution", operands, node.attrs));
  const other = alone((b, operands) => filtered(b, node, graph, operands));
  const enough = 1 - leastSaving;
  // Arithmetic and bytes alone rule out few channels and small maps, at a hundredth of what prices take.
  if (guideNs(other, pricer) >= enough * guideNs(direct, pricer)) return 0;
  const [before, after] = [direct, other].map((layer) =>
    countRegions({ graph: layer, weights: noStore }, pricer),
  );
  if (!before!.ok || !after!.ok) return 0;
  const whole = totalNs(before!.value, pricer);
  const saved = savedNs(before!.value, after!.value, pricer);
  return saved > leastSaving * whole ? saved : 0;
}

/** What the operations of a graph take by the guide, without those on weights alone. */
function guideNs(graph: Graph, pricer: Pricer): number {
  const constants = constantValues(graph);
  const ranges = rangesOf(graph);
  const type = (id: ValueId) => graph.values[id]!.type;
  let ns = 0;
  for (const { op, attrs, inputs, outputs } of graph.nodes) {
    const [first] = outputs as [ValueId];
    if (constants.has(first)) continue;
    ns += pricer.op(
      { op, attrs: attrs as AnyAttrs, inputs: inputs.map(type), output: type(first) },
      ranges,
    );
  }
  return ns;
}

function filtered(
  b: GraphBuilder,
  node: NodeOf<"convolution">,
  graph: Graph,
  [x, w]: readonly [ValueId, ValueId],
): ValueId {
  const writer: NodeWriter<ValueId> = {
    add: (op, inputs, attrs) => b.node(op, inputs, attrs),
    constant: (tensor) => b.constant(tensor),
  };
  const { shape: data, dtype } = b.typeOf(x);
  const result = graph.values[node.outputs[0]!]!.type.shape;
  const convolution: Filtered<ValueId> = { x, w, dtype, padLow: node.attrs.padLow, data, result };
  const found = filter(writer, convolution, two);
  invariant(found !== undefined, () => "the result of known maps is known");
  return found;
}
