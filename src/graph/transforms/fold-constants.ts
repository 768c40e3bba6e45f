/**
 * Constant folding through the references, and removal of nodes that give their operand unchanged.
 * Elements of stored weights are read only when every operand of a node is constant and the node is
 * within the limits, so that a large model is not pulled into memory.
 */
import type { CoreOpKind } from "../../semantics/core-ops.ts";
import { constantValue, type IndexExpr } from "../../semantics/index-expr.ts";
import { type ReferenceContext, runReference } from "../../semantics/references/references.ts";
import { fromRef, type RefTensor, refTensor, type Tensor, toRef } from "../../semantics/tensor.ts";
import { invariant } from "../../support/invariant.ts";
import { type AnyAttrs, attrParts } from "../attr-schema.ts";
import { inlineBytes } from "../builder.ts";
import { flopsOf } from "../counts.ts";
import type { Graph, Node, NodeOf, TensorType, ValueId, WeightStore } from "../graph.ts";
import { isComposite, schemaOf, traitsOf } from "../op-table.ts";
import { elementsOf, sameShape } from "../tensor-type.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

export interface FoldLimits {
  /** Elements of any operand or result. */
  readonly elements: number;
  /** Arithmetic operations of one node. */
  readonly flops: number;
  /** Where stored weights are; absent: they are not folded. */
  readonly weights?: WeightStore;
  /** Nodes that are left for another pass. */
  readonly leave?: (node: Node) => boolean;
}

function refuseSubgraph(): never {
  invariant(false, () => "a node with a subgraph was folded");
}

const noSubgraphs: ReferenceContext<Graph> = {
  runSubgraph: refuseSubgraph,
  subgraphOutputTypes: refuseSubgraph,
};

/** Folds and simplifies; operands that nothing uses any more remain for eliminateDeadCode. */
export function foldConstants(graph: Graph, limits: FoldLimits): Rebuilt {
  return rebuildGraph(graph, {
    node: (site) => {
      const same = unchangedOperand(site);
      if (same !== undefined) return [same];
      if (limits.leave?.(site.node)) return undefined;
      return foldNode(site, limits)?.map((tensor, i) =>
        site.b.constant(tensor, site.old.values[site.node.outputs[i]!]!.name),
      );
    },
  });
}

/** The operand that the node gives back as it is, as far as its type shows. */
function unchangedOperand({ b, old, node, inputs }: RebuildSite): ValueId | undefined {
  const [x] = inputs;
  if (x === undefined || node.outputs.length !== 1) return undefined;
  const from = b.typeOf(x);
  if (node.op === "cast") return node.attrs.to === from.dtype ? x : undefined;
  if (!traitsOf(node, old).dataMovement || inputs.length !== 1) return undefined;
  return keepsElements(node, from) ? x : undefined;
}

/** Whether a one-operand data movement is the identity. */
function keepsElements(node: Node, from: TensorType): boolean {
  switch (node.op) {
    case "reshape":
    case "broadcast":
      return sameShape(node.attrs.shape, from.shape);
    case "transpose":
      return node.attrs.permutation.every((axis, i) => axis === i);
    case "slice":
      return sameShape(node.attrs.sizes, from.shape) && node.attrs.steps.every((s) => s === 1);
    case "reverse":
      return node.attrs.axes.every((axis) => constantValue(from.shape[axis]!) === 1);
    case "pad":
      return [...node.attrs.low, ...node.attrs.high].every((d) => constantValue(d) === 0);
    case "concat":
      return true;
    default:
      return false;
  }
}

function foldNode(site: RebuildSite, limits: FoldLimits): readonly Tensor[] | undefined {
  const { old, node } = site;
  if (node.op === "dimSize") return foldExtent(site);
  const traits = traitsOf(node, old);
  if (isComposite(node.op) || traits.random || traits.dataDependentShape) return undefined;
  const { dims, graphs } = attrParts(schemaOf(node.op), node.attrs as AnyAttrs);
  const fixed = dims.every((d) => constantValue(d) !== undefined);
  if (!fixed || graphs.length > 0 || !fitsLimits(site, limits)) return undefined;
  const operands = readOperands(site, limits);
  if (!operands) return undefined;
  const { op, attrs } = node as NodeOf<CoreOpKind>;
  const evaluate = (d: IndexExpr): number => constantValue(d)!;
  const result = runReference({ kind: op, attrs, inputs: operands, evaluate }, noSubgraphs);
  // What only running it can refuse (an index out of range) is left to the run.
  return result.ok ? result.value.map(fromRef) : undefined;
}

/** The operands if all are constants and there is one; iota and the like are cheaper computed. */
function readOperands(
  { b, inputs }: RebuildSite,
  { weights }: FoldLimits,
): readonly RefTensor[] | undefined {
  const sources = inputs.map((id): (() => Tensor) | undefined => {
    const tensor = b.constantOf(id);
    if (tensor) return () => tensor;
    const key = b.keyOf(id);
    return weights && key !== undefined ? () => weights.read(key) : undefined;
  });
  if (sources.length === 0 || sources.some((read) => read === undefined)) return undefined;
  return sources.map((read) => toRef(read!()));
}

function foldExtent({ b, node, inputs }: RebuildSite): readonly Tensor[] | undefined {
  const { axis } = (node as NodeOf<"dimSize">).attrs;
  const extent = constantValue(b.shapeOf(inputs[0]!)[axis]!);
  return extent === undefined ? undefined : [fromRef(refTensor("i64", [], [extent]))];
}

/** Small enough, and not a copy that is much larger than what it copies. */
function fitsLimits({ b, old, node, inputs }: RebuildSite, limits: FoldLimits): boolean {
  const read = inputs.map((id) => fixedElements(b.typeOf(id)));
  const written = node.outputs.map((id) => fixedElements(old.values[id]!.type));
  if ([...read, ...written].some((n) => n > limits.elements)) return false;
  const grows = Math.max(...written) > Math.max(inlineBytes / 4, ...read);
  if (grows && traitsOf(node, old).dataMovement) return false;
  const flops = constantValue(flopsOf(node, old));
  return flops !== undefined && flops <= limits.flops;
}

/** Infinity when the shape has symbols. */
function fixedElements(type: TensorType): number {
  return constantValue(elementsOf(type)) ?? Infinity;
}
