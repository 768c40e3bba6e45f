/**
 * The op table: a row for every op, core or composite. An op without a row does not compile. Rows of
 * core ops stand by family in ops/; those of composites follow from their definitions.
 */
import { type AnyAttrs, type AnySchema, attrParts } from "./attr-schema.ts";
import { type CompositeKind, compositeTable } from "./composite-table.ts";
import type { Graph, Node, NodeOf, OpKind, TensorType } from "./graph.ts";
import type { OpInfo, OpRows, OpTraits } from "./op-info.ts";
import { controlOps } from "./ops/control.ts";
import { elementwiseOps } from "./ops/elementwise.ts";
import { movementOps } from "./ops/movement.ts";
import { reductionOps } from "./ops/reduction.ts";
import { samplingOps } from "./ops/sampling.ts";
import { windowOps } from "./ops/window.ts";

function compositeRow<K extends CompositeKind>(op: K): OpInfo<K> {
  const { arity, schema } = compositeTable[op];
  const infer: OpInfo<K>["infer"] = (inputs, attrs, ctx) => ctx.inferDefinition(op, inputs, attrs);
  return { arity, schema, traits: { composite: true }, infer } as unknown as OpInfo<K>;
}

const compositeOps = Object.fromEntries(
  (Object.keys(compositeTable) as CompositeKind[]).map((op) => [op, compositeRow(op)]),
) as unknown as OpRows<CompositeKind>;

export const opTable: OpRows<OpKind> = {
  ...elementwiseOps,
  ...movementOps,
  ...reductionOps,
  ...windowOps,
  ...samplingOps,
  ...controlOps,
  ...compositeOps,
};

export function isOpKind(name: string): name is OpKind {
  return Object.hasOwn(opTable, name);
}

export function isComposite(op: OpKind): op is CompositeKind {
  return Object.hasOwn(compositeTable, op);
}

export function infoOf<K extends OpKind>(op: K): OpInfo<K> {
  return opTable[op];
}

/** The schema of an op for generic code. */
export function schemaOf(op: OpKind): AnySchema {
  return opTable[op].schema as unknown as AnySchema;
}

/** The traits of a node; some depend on its attributes. */
export function traitsOf(node: Node, graph: Graph): OpTraits {
  const { op, attrs, inputs } = node as NodeOf<OpKind>;
  const { traits } = infoOf(op);
  if (typeof traits !== "function") return traits;
  return traits(
    attrs,
    inputs.map((id): TensorType => graph.values[id]!.type),
  );
}

/** The subgraphs among a node's attributes. */
export function subgraphsOf(node: Node): readonly Graph[] {
  return attrParts(schemaOf(node.op), node.attrs as AnyAttrs).graphs;
}
