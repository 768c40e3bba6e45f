/**
 * Sums that ONNX writes as an operand: one number a channel that is added to a convolution (Conv), and what
 * is added to a product of matrices (Gemm). Runtimes that run a convolution of dequantized values in integers
 * know it by that form alone, and a product with its sum is one operator to all.
 */

import type { Graph, Node, NodeOf, OpKind, ValueId } from "../../../graph/graph.ts";
import { constantValue } from "../../../semantics/index-expr.ts";
import { gemmOf } from "./rows/contraction.ts";

type Summand = NodeOf<"convolution"> | NodeOf<"contract">;

export interface OperandSum {
  /** What is added to. */
  readonly node: Summand;
  readonly operand: ValueId;
}

export interface OperandSums {
  /** By the addition that is written as a part of the operator. */
  readonly byNode: ReadonlyMap<Node, OperandSum>;
  /** What is not written by itself then. */
  readonly covered: ReadonlySet<Node>;
}

/** A sum found, with the nodes that it covers. */
interface Found extends OperandSum {
  readonly covered: readonly Node[];
}

export function operandSums(graph: Graph): OperandSums {
  const uses = new Map<ValueId, number>();
  const count = (id: ValueId) => uses.set(id, (uses.get(id) ?? 0) + 1);
  for (const { inputs } of graph.nodes) inputs.forEach(count);
  graph.outputs.forEach(count);
  const makers = new Map(graph.nodes.flatMap((n) => n.outputs.map((id) => [id, n] as const)));
  const makerOf = (id: ValueId, op: OpKind): Node | undefined => {
    const maker = makers.get(id);
    return maker?.op === op && uses.get(id) === 1 ? maker : undefined;
  };
  const channelSum = (sum: ValueId, added: ValueId): Found | undefined => {
    const node = makerOf(sum, "convolution") as NodeOf<"convolution"> | undefined;
    const spread = makerOf(added, "reshape");
    if (!node || node.attrs.accumulator !== undefined || !spread) return undefined;
    const [operand] = spread.inputs as [ValueId];
    if (!isByChannel(graph, sum, added, operand)) return undefined;
    return { node, operand, covered: [node, spread] };
  };
  const matrixSum = (sum: ValueId, operand: ValueId): Found | undefined => {
    const node = makerOf(sum, "contract") as NodeOf<"contract"> | undefined;
    if (!node || !isProductOfMatrices(graph, node) || !spreadsOver(graph, operand, sum)) {
      return undefined;
    }
    // With dequantized operands runtimes multiply integers, and take a sum of integers alone into that.
    const isInteger = (id: ValueId) => makers.get(id)?.op === "dequantize";
    if (node.inputs.some(isInteger) && !isInteger(operand)) return undefined;
    return { node, operand, covered: [node] };
  };
  const byNode = new Map<Node, OperandSum>();
  const covered = new Set<Node>();
  for (const node of graph.nodes) {
    if (node.op !== "add") continue;
    const [x, y] = node.inputs as [ValueId, ValueId];
    const found = channelSum(x, y) ?? channelSum(y, x) ?? matrixSum(x, y) ?? matrixSum(y, x);
    if (!found) continue;
    byNode.set(node, found);
    for (const part of found.covered) covered.add(part);
  }
  return { byNode, covered };
}

function isProductOfMatrices(graph: Graph, { attrs, inputs }: NodeOf<"contract">): boolean {
  const types = inputs.map((id) => graph.values[id]!.type);
  return gemmOf(attrs, types) !== undefined;
}

/** Whether an operand of at most two axes is of the type of a matrix, or spreads over it. */
function spreadsOver(graph: Graph, operand: ValueId, matrix: ValueId): boolean {
  const [own, whole] = [operand, matrix].map((id) => graph.values[id]!.type);
  const extents = whole!.shape.slice(2 - own!.shape.length);
  return (
    own!.dtype === whole!.dtype &&
    own!.shape.length <= 2 &&
    own!.shape.every((d, i) => constantValue(d) === 1 || d.key === extents[i]!.key)
  );
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
