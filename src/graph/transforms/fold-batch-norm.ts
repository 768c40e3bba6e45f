/**
 * Batch norms of inference with constant parameters, which are a factor and a shift for each channel:
 *
 *   (x - mean) / d * scale + bias = x s + (bias - mean s),   s = scale / d,   d = sqrt(variance + epsilon)
 *
 * A constant factor or shift of channels behind one (a scale layer) is part of its scale and bias. Behind a
 * convolution or contraction the factor goes into its weights:
 *
 *   w * x + c -> (w s) * x + ((c - mean) s + bias)
 *
 * Anywhere else two operations a value are left, where the definition has a division among four. What is new is
 * written as nodes on the old parameters, so that folding constants computes it (and the graph stays right
 * without). Equal in exact arithmetic; products are rounded elsewhere, so the numeric class is `reassociates`.
 */
import { constantValue } from "../../semantics/index-expr.ts";
import type { Graph, Node, NodeOf, OpKind, ValueId } from "../graph.ts";
import type { OpWriter } from "../op-writer.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** A linear node with constant weights that only feeds the batch norm. */
interface Foldable {
  readonly node: Node;
  /** Axis of the weights along which the output channels lie. */
  readonly channelAxis: number;
  /** A constant added per channel in between. */
  readonly bias?: ValueId;
}

type BatchNorm = NodeOf<"batchNorm">;

/** Types whose sums and products may be rounded elsewhere: narrower ones would round to more than a digit. */
const wideTypes: ReadonlySet<string> = new Set(["f32", "f64"]);

export function foldBatchNorm(graph: Graph): Rebuilt {
  const indices = new Map<Graph, GraphIndex>();
  return rebuildGraph(graph, {
    node: (site) => {
      const index = indices.get(site.old) ?? indexGraph(site.old);
      indices.set(site.old, index);
      const found = normOf(index, site.old, site.node);
      if (!found) return undefined;
      const { norm, behind } = found;
      const parameters = parametersOf(site, norm, behind);
      const foldable = findFoldable(index, site.old, norm);
      if (foldable) return [writeFolded(site, foldable, parameters)];
      const isWide = norm.inputs.every((id) => wideTypes.has(dtypeOf(site.old, id)));
      return isWide ? [writeScaled(site, norm, parameters)] : undefined;
    },
  });
}

/** What constants of each channel do to what a batch norm gives. */
interface ChannelStep {
  readonly op: "mul" | "add";
  readonly constant: ValueId;
}

interface NormChain {
  readonly norm: BatchNorm;
  /** In the order in which they come. */
  readonly behind: readonly ChannelStep[];
}

/** The batch norm that a node is, or ends with constant factors and shifts that alone read it. */
function normOf(index: GraphIndex, graph: Graph, node: Node): NormChain | undefined {
  if (node.op === "batchNorm") {
    const isConstant = node.inputs.slice(1).every((id) => index.weights.has(id));
    return isConstant ? { norm: node as BatchNorm, behind: [] } : undefined;
  }
  if (node.op !== "mul" && node.op !== "add") return undefined;
  const [a, b] = node.inputs as readonly [ValueId, ValueId];
  const [data, constant] = index.weights.has(b) ? [a, b] : [b, a];
  const before = index.producers.get(data);
  if (!before || !index.weights.has(constant) || index.uses.get(data) !== 1) return undefined;
  const found = normOf(index, graph, before);
  if (!found) return undefined;
  const { rank, types } = kindOf(graph, [...found.norm.inputs, constant]);
  const isAlike = types.size === 1 && wideTypes.has([...types][0]!);
  const sameRank = graph.values[node.outputs[0]!]!.type.shape.length === rank;
  if (!isAlike || !sameRank || !isPerChannel(graph, constant, rank)) return undefined;
  return { norm: found.norm, behind: [...found.behind, { op: node.op, constant }] };
}

/** The rank of the first and the types of all. */
function kindOf(graph: Graph, ids: readonly ValueId[]) {
  const rank = graph.values[ids[0]!]!.type.shape.length;
  return { rank, types: new Set(ids.map((id) => dtypeOf(graph, id))) };
}

function dtypeOf(graph: Graph, id: ValueId): string {
  return graph.values[id]!.type.dtype;
}

/** A factor and a shift for each channel, vectors. */
interface Parameters {
  readonly factor: ValueId;
  readonly shift: ValueId;
}

function parametersOf(
  { b, newValue }: RebuildSite,
  norm: BatchNorm,
  behind: readonly ChannelStep[],
): Parameters {
  const [, scale, bias, mean, variance] = norm.inputs.map(newValue) as readonly ValueId[];
  const deviation = b.apply("sqrt", b.applyNumber("add", variance!, norm.attrs.epsilon));
  let factor = b.div(scale!, deviation);
  let shift = b.sub(bias!, b.mul(mean!, factor));
  for (const { op, constant } of behind) {
    const value = asVector(b, newValue(constant));
    if (op === "mul") factor = b.mul(factor, value);
    shift = op === "mul" ? b.mul(shift, value) : b.add(shift, value);
  }
  return { factor, shift };
}

/** One element, or one for each channel, along the only axis. */
function asVector(b: OpWriter, value: ValueId): ValueId {
  const long = b.shapeOf(value).find((d) => constantValue(d) !== 1);
  return b.reshape(value, [long ?? 1]);
}

function writeScaled(
  { b, newValue }: RebuildSite,
  norm: BatchNorm,
  { factor, shift }: Parameters,
): ValueId {
  const x = newValue(norm.inputs[0]!);
  const rank = b.rankOf(x);
  return b.add(b.mul(x, alongAxis(b, factor, rank, 1)), alongAxis(b, shift, rank, 1));
}

interface GraphIndex {
  readonly producers: ReadonlyMap<ValueId, Node>;
  readonly uses: ReadonlyMap<ValueId, number>;
  readonly weights: ReadonlySet<ValueId>;
}

function indexGraph(graph: Graph): GraphIndex {
  const uses = new Map<ValueId, number>();
  for (const id of [...graph.nodes.flatMap((n) => n.inputs), ...graph.outputs]) {
    uses.set(id, (uses.get(id) ?? 0) + 1);
  }
  return {
    producers: new Map(graph.nodes.flatMap((n) => n.outputs.map((id) => [id, n] as const))),
    uses,
    weights: new Set(graph.weights.map((w) => w.value)),
  };
}

function findFoldable(index: GraphIndex, old: Graph, { inputs }: BatchNorm): Foldable | undefined {
  const x = inputs[0]!;
  if (index.uses.get(x) !== 1) return undefined;
  const before = index.producers.get(x);
  if (before?.op !== "add") return before && linearNode(index, old, before);
  const [a, b] = before.inputs as readonly [ValueId, ValueId];
  const [inner, bias] = index.weights.has(b) ? [a, b] : [b, a];
  const linear = index.producers.get(inner);
  if (!linear || index.uses.get(inner) !== 1 || !index.weights.has(bias)) return undefined;
  const rank = old.values[x]!.type.shape.length;
  const found = isPerChannel(old, bias, rank) ? linearNode(index, old, linear) : undefined;
  return found && { ...found, bias };
}

/** Shape [c, 1, …] or [1, c, 1, …], or a single element. */
function isPerChannel(graph: Graph, bias: ValueId, rank: number): boolean {
  const { shape } = graph.values[bias]!.type;
  return shape.every((d, i) => constantValue(d) === 1 || rank - shape.length + i === 1);
}

function linearNode(index: GraphIndex, graph: Graph, node: Node): Foldable | undefined {
  const weights = node.inputs[1];
  if (weights === undefined || !index.weights.has(weights)) return undefined;
  switch (node.op) {
    case "convolution":
      return { node, channelAxis: 0 };
    case "transposedConvolution":
      return node.attrs.groups === 1 ? { node, channelAxis: 1 } : undefined;
    case "contract": {
      const label = node.attrs.output[1];
      const channelAxis = label === undefined ? -1 : node.attrs.rhs.indexOf(label);
      const own = channelAxis >= 0 && !node.attrs.lhs.includes(label!);
      const same = node.attrs.accumulator === graph.values[weights]!.type.dtype;
      return own && same ? { node, channelAxis } : undefined;
    }
    default:
      return undefined;
  }
}

function writeFolded(
  { b, newValue }: RebuildSite,
  found: Foldable,
  { factor, shift }: Parameters,
): ValueId {
  const [data, weights] = found.node.inputs.map(newValue) as [ValueId, ValueId];
  const scaled = b.mul(weights, alongAxis(b, factor, b.rankOf(weights), found.channelAxis));
  const { op, attrs } = found.node as NodeOf<OpKind>;
  const linear = b.node(op, [data, scaled], attrs);
  const rank = b.rankOf(linear);
  if (found.bias === undefined) return b.add(linear, alongAxis(b, shift, rank, 1));
  const carried = b.mul(newValue(found.bias), alongAxis(b, factor, rank, 1));
  return b.add(linear, b.add(alongAxis(b, shift, rank, 1), carried));
}

/** A vector as a tensor of `rank` axes that lies along one of them. */
function alongAxis(b: OpWriter, vector: ValueId, rank: number, axis: number): ValueId {
  const shape = Array.from({ length: rank }, (_, i) => (i === axis ? b.shapeOf(vector)[0]! : 1));
  return b.reshape(vector, shape);
}
