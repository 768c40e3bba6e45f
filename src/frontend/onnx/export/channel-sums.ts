/**
 * Convolutions to whose result one number a channel is added, which ONNX writes as an operand of Conv. Runtimes
 * that run a convolution of dequantized values in integers know it by that form alone.
 */

import type { Graph, Node, NodeOf, OpKind, ValueId } from "../../../graph/graph.ts";
import { constantValue } from "../../../semantics/index-expr.ts";

export interface ChannelSum {
  readonly convolution: NodeOf<"convolution">;
  /** A value of one axis. */
  readonly bias: ValueId;
}

export interface ChannelSums {
  /** By the addition that is written as a part of the convolution. */
  readonly byNode: ReadonlyMap<Node, ChannelSum>;
  /** What is not written by itself then. */
  readonly covered: ReadonlySet<Node>;
}

export function channelSums(graph: Graph): ChannelSums {
  const uses = new Map<ValueId, number>();
  const count = (id: ValueId) => uses.set(id, (uses.get(id) ?? 0) + 1);
  for (const { inputs } of graph.nodes) inputs.forEach(count);
  graph.outputs.forEach(count);
  const makers = new Map(graph.nodes.flatMap((n) => n.outputs.map((id) => [id, n] as const)));
  const makerOf = (id: ValueId, op: OpKind): Node | undefined => {
    const maker = makers.get(id);
    return maker?.op === op && uses.get(id) === 1 ? maker : undefined;
  };
  const byNode = new Map<Node, ChannelSum>();
  const covered = new Set<Node>();
  for (const node of graph.nodes) {
    if (node.op !== "add") continue;
    for (const [sum, added] of [node.inputs, node.inputs.toReversed()] as [ValueId, ValueId][]) {
      const convolution = makerOf(sum, "convolution") as NodeOf<"convolution"> | undefined;
      const spread = makerOf(added, "reshape");
      if (!convolution || convolution.attrs.accumulator !== undefined || !spread) continue;
      const [bias] = spread.inputs as [ValueId];
      if (!isByChannel(graph, sum, added, bias)) continue;
      byNode.set(node, { convolution, bias });
      covered.add(convolution).add(spread);
      break;
    }
  }
  return { byNode, covered };
}

/** Whether `added` is a vector `bias` along the second axis of `sum`, of the same type. */
function isByChannel(graph: Graph, sum: ValueId, added: ValueId, bias: ValueId): boolean {
  const typeOf = (id: ValueId) => graph.values[id]!.type;
  const channels = constantValue(typeOf(sum).shape[1]!);
  const shape = typeOf(added).shape.map((d) => constantValue(d));
  const fromEnd = typeOf(sum).shape.length - 1;
  return (
    channels !== undefined &&
    typeOf(bias).dtype === typeOf(sum).dtype &&
    typeOf(bias).shape.length === 1 &&
    shape.length >= fromEnd &&
    shape.length <= fromEnd + 1 &&
    shape.every((n, i) => n === (i === shape.length - fromEnd ? channels : 1))
  );
}
