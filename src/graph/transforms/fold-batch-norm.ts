/**
 * Folds an inference batch norm into the weights of the convolution or contraction before it:
 *
 *   (w * x + c - mean) / d * scale + bias = (w s) * x + ((c - mean) s + bias),   s = scale / d
 *
 * with d = sqrt(variance + epsilon). The new weights are written as nodes on the old ones, so that
 * folding constants computes them (and the graph stays right without). Equal in exact arithmetic;
 * products are rounded elsewhere, so the numeric class is `reassociates`.
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

export function foldBatchNorm(graph: Graph): Rebuilt {
  const indices = new Map<Graph, GraphIndex>();
  return rebuildGraph(graph, {
    node: (site) => {
      if (site.node.op !== "batchNorm") return undefined;
      const index = indices.get(site.old) ?? indexGraph(site.old);
      indices.set(site.old, index);
      const found = findFoldable(index, site);
      return found && [writeFolded(site, found)];
    },
  });
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

function findFoldable(index: GraphIndex, { old, node }: RebuildSite): Foldable | undefined {
  const [x, ...parameters] = node.inputs as readonly [ValueId, ...ValueId[]];
  if (!parameters.every((id) => index.weights.has(id)) || index.uses.get(x) !== 1) return undefined;
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

function writeFolded({ b, node, newValue, inputs }: RebuildSite, found: Foldable): ValueId {
  const [, scale, bias, mean, variance] = inputs as readonly ValueId[];
  const { epsilon } = (node as NodeOf<"batchNorm">).attrs;
  const deviation = b.apply("sqrt", b.applyNumber("add", variance!, epsilon));
  const factor = b.div(scale!, deviation);
  const [data, weights] = found.node.inputs.map(newValue) as [ValueId, ValueId];
  const scaled = b.mul(weights, alongAxis(b, factor, b.rankOf(weights), found.channelAxis));
  const { op, attrs } = found.node as NodeOf<OpKind>;
  const linear = b.node(op, [data, scaled], attrs);
  const rank = b.rankOf(linear);
  const shift = b.sub(bias!, b.mul(mean!, factor));
  if (found.bias === undefined) return b.add(linear, alongAxis(b, shift, rank, 1));
  const carried = b.mul(newValue(found.bias), alongAxis(b, factor, rank, 1));
  return b.add(linear, b.add(alongAxis(b, shift, rank, 1), carried));
}

/** A vector as a tensor of `rank` axes that lies along one of them. */
function alongAxis(b: OpWriter, vector: ValueId, rank: number, axis: number): ValueId {
  const shape = Array.from({ length: rank }, (_, i) => (i === axis ? b.shapeOf(vector)[0]! : 1));
  return b.reshape(vector, shape);
}
