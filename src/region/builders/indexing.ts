/**
 * Nests of gather and scatter: indices are indirect variables. A scatter copies the operand and then
 * applies the updates in order; loops along which two updates may meet are `scan` loops.
 */
import type { NodeOf, ValueId } from "../../graph/graph.ts";
import { constant, constantValue, type IndexExpr } from "../../semantics/index-expr.ts";
import { invariant } from "../../support/invariant.ts";
import type { NestContext, StatementDraft } from "./context.ts";

export function buildGather(context: NestContext, node: NodeOf<"gather">): void {
  const [data, indices] = node.inputs as [ValueId, ValueId];
  const { axis } = node.attrs;
  const rank = context.type(indices).shape.length;
  const draft = context.draft(node);
  const at = draft.loops("i", context.type(node.outputs[0]!).shape);
  const extent = context.type(data).shape[axis]!;
  const position = draft.indirect(
    indices,
    unitsAtZero(context, indices, at.slice(axis, axis + rank)),
    extent,
  );
  const index = [...at.slice(0, axis), position, ...at.slice(axis + rank)];
  writeElement(context, node, draft, { data, index, at });
}

export function buildGatherElements(context: NestContext, node: NodeOf<"gatherElements">): void {
  const [data, indices] = node.inputs as [ValueId, ValueId];
  const { axis } = node.attrs;
  const draft = context.draft(node);
  const at = draft.loops("i", context.type(node.outputs[0]!).shape);
  const position = draft.indirect(indices, at, context.type(data).shape[axis]!);
  const index = at.map((i, a) => (a === axis ? position : i));
  writeElement(context, node, draft, { data, index, at });
}

export function buildGatherNd(context: NestContext, node: NodeOf<"gatherNd">): void {
  const [data, indices] = node.inputs as [ValueId, ValueId];
  const { batchDims } = node.attrs;
  const { shape } = context.type(data);
  const leading = context.type(indices).shape.length - 1;
  const draft = context.draft(node);
  const at = draft.loops("i", context.type(node.outputs[0]!).shape);
  const positions = tuple(context, indices).map((j) =>
    draft.indirect(indices, [...at.slice(0, leading), constant(j)], shape[batchDims + j]!),
  );
  const index = [...at.slice(0, batchDims), ...positions, ...at.slice(leading)];
  writeElement(context, node, draft, { data, index, at });
}

export function buildScatterElements(context: NestContext, node: NodeOf<"scatterElements">): void {
  const [data, indices, updates] = node.inputs as [ValueId, ValueId, ValueId];
  const { axis, reduction } = node.attrs;
  const tensor = copyOperand(context, node);
  const draft = context.draft(node);
  const at = context
    .type(updates)
    .shape.map((extent, a) => draft.loop(`i${a}`, extent, a === axis ? "scan" : "space"));
  const position = draft.indirect(indices, at, context.type(data).shape[axis]!);
  const index = at.map((i, a) => (a === axis ? position : i));
  const combine = reduction === "none" ? "overwrite" : reduction;
  draft.finishStatement([draft.read(updates, at)], [{ tensor, index, combine }]);
}

export function buildScatterNd(context: NestContext, node: NodeOf<"scatterNd">): void {
  const [data, indices, updates] = node.inputs as [ValueId, ValueId, ValueId];
  const { reduction } = node.attrs;
  const { shape } = context.type(data);
  const leading = context.type(indices).shape.length - 1;
  const tensor = copyOperand(context, node);
  const draft = context.draft(node);
  const at = context
    .type(updates)
    .shape.map((extent, a) => draft.loop(`i${a}`, extent, a < leading ? "scan" : "space"));
  const positions = tuple(context, indices).map((j) =>
    draft.indirect(indices, [...at.slice(0, leading), constant(j)], shape[j]!),
  );
  const index = [...positions, ...at.slice(leading)];
  const combine = reduction === "none" ? "overwrite" : reduction;
  draft.finishStatement([draft.read(updates, at)], [{ tensor, index, combine }]);
}

/** The positions of an index tuple, the last axis of `indices`. */
function tuple(context: NestContext, indices: ValueId): readonly number[] {
  const width = constantValue(context.type(indices).shape.at(-1)!);
  invariant(width !== undefined, () => `index tuples of ${context.name(indices)} vary in length`);
  return Array.from({ length: width }, (_, j) => j);
}

function unitsAtZero(
  context: NestContext,
  value: ValueId,
  at: readonly IndexExpr[],
): readonly IndexExpr[] {
  return context.type(value).shape.map((d, a) => (constantValue(d) === 1 ? constant(0) : at[a]!));
}

function copyOperand(
  context: NestContext,
  node: NodeOf<"scatterElements"> | NodeOf<"scatterNd">,
): string {
  const tensor = context.name(node.outputs[0]!);
  context.copy(node, context.name(node.inputs[0]!), tensor);
  return tensor;
}

function writeElement(
  context: NestContext,
  node: NodeOf<"gather"> | NodeOf<"gatherElements"> | NodeOf<"gatherNd">,
  draft: StatementDraft,
  { data, index, at }: { data: ValueId; index: readonly IndexExpr[]; at: readonly IndexExpr[] },
): void {
  const write = { tensor: context.name(node.outputs[0]!), index: at };
  draft.finishStatement([draft.read(data, index)], [write]);
}
