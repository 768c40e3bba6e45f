/**
 * Graphs as terms of an e-graph. A node becomes an operator over its operands with its attributes as
 * payload; elementwise operators are all `map` with the operator as payload, so that one pattern serves
 * every one of them, and a concatenation of many is nested from the left. Labels of contractions get
 * canonical letters. Inputs and weights are leaves; a small constant is a leaf under its elements, so
 * that equal constants are one. What has no meaning to rules (subgraphs, several results, extents that the
 * data decide, random numbers) is no term: segment.ts leaves such nodes outside.
 */
import type { EGraph, NodeId, Payload } from "../egraph/index.ts";
import { type AnyAttrs, type AnySchema, attrParts } from "../graph/attr-schema.ts";
import { printAttrs } from "../graph/attr-text.ts";
import type { Graph, Node, NodeOf, OpAttrs, OpKind, TensorType, ValueId } from "../graph/graph.ts";
import { isOpKind, schemaOf, traitsOf } from "../graph/op-table.ts";
import { printType } from "../graph/tensor-type.ts";
import type { ContractAttrs } from "../semantics/core-ops.ts";
import { type ScalarOp, scalarOps } from "../semantics/scalar-expr.ts";
import { type Tensor, tensorBytes } from "../semantics/tensor.ts";
import { invariant } from "../support/invariant.ts";

/** The operator of all elementwise operators. */
export const mapOp = "map";
/** Leaves: an input or a weight of the graph, and a constant with its elements. */
export const leafOp = "leaf";
export const constantOp = "constant";

/** Constants up to this many elements are known by their elements. */
export const knownElements = 64;

export interface Leaf {
  readonly value: ValueId;
  readonly type: TensorType;
  readonly isWeight: boolean;
  /** The elements of a weight, where rules may look at them. */
  readonly read?: () => Tensor;
}

/** Elements of weights by value, for rules that look at them; undefined: not at hand. */
export type ReadElements = (value: ValueId) => (() => Tensor) | undefined;

export function isScalarOp(op: string): op is ScalarOp {
  return Object.hasOwn(scalarOps, op);
}

/** Attributes as a payload: equal attributes are one. */
export function attrsPayload(op: OpKind, attrs: AnyAttrs): Payload {
  const canonical =
    op === "contract" ? (canonicalLabels(attrs as unknown as ContractAttrs) as never) : attrs;
  const text = printAttrs(schemaOf(op) as AnySchema, canonical, refuseSubgraph);
  return text === "" ? { key: "" } : { key: `${text.trim()}`, value: canonical };
}

function refuseSubgraph(): never {
  invariant(false, () => "an op with a subgraph is no term");
}

/** Labels a, b, … in the order in which the operands have them. */
export function canonicalLabels(attrs: ContractAttrs): ContractAttrs {
  const names = new Map<string, string>();
  const rename = (label: string): string => {
    const known = names.get(label) ?? labelNumber(names.size);
    names.set(label, known);
    return known;
  };
  const lhs = attrs.lhs.map(rename);
  const rhs = attrs.rhs.map(rename);
  return { lhs, rhs, output: attrs.output.map(rename), accumulator: attrs.accumulator };
}

function labelNumber(n: number): string {
  return n < 26 ? String.fromCharCode(97 + n) : `l${n}`;
}

export function constantPayload(tensor: Tensor): Payload {
  const bytes = Array.from(tensorBytes(tensor), (b) => b.toString(16).padStart(2, "0")).join("");
  return { key: `${tensor.dtype}[${tensor.shape.join(",")}] ${bytes}`, value: tensor };
}

/** Op and attributes of an e-node that is neither leaf nor opaque. */
export interface TermCall {
  readonly op: OpKind;
  readonly attrs: AnyAttrs;
}

const noAttrs: AnyAttrs = {};

/** What an e-node computes; undefined for leaves and constants. */
export function callOf(op: string, key: string, value: unknown): TermCall | undefined {
  if (op === mapOp) return { op: key as ScalarOp, attrs: noAttrs };
  if (!isOpKind(op)) return undefined;
  return { op, attrs: (value ?? noAttrs) as AnyAttrs };
}

/** Whether rules may look inside a node. */
export function isTransparent(node: Node, graph: Graph): boolean {
  const traits = traitsOf(node, graph);
  const { graphs } = attrParts(schemaOf(node.op), node.attrs as AnyAttrs);
  return (
    graphs.length === 0 &&
    node.outputs.length === 1 &&
    !traits.random &&
    !traits.dataDependentShape &&
    !traits.hasSubgraph
  );
}

/** Adds every node of the graph; gives the e-node of each value. */
export function addGraph<D>(
  egraph: EGraph<D>,
  graph: Graph,
  read: ReadElements = () => undefined,
): ReadonlyMap<ValueId, NodeId> {
  const ids = new Map<ValueId, NodeId>();
  const constants = new Map(
    graph.weights.flatMap(({ value, source }) =>
      source.kind === "inline" && source.tensor.data.length <= knownElements
        ? [[value, source.tensor] as const]
        : [],
    ),
  );
  const weights = new Set(graph.weights.map((w) => w.value));
  for (const id of [...graph.inputs, ...weights]) {
    const tensor = constants.get(id);
    const elements = weights.has(id) ? read(id) : undefined;
    const { name, type } = graph.values[id]!;
    const leaf = {
      value: id,
      type,
      isWeight: weights.has(id),
      ...(elements && { read: elements }),
    };
    ids.set(id, tensor ? addConstant(egraph, tensor) : addLeaf(egraph, name, leaf));
  }
  for (const node of graph.nodes) {
    invariant(isTransparent(node, graph), () => `${node.op} is no term`);
    const { op, attrs, inputs, outputs } = node as NodeOf<OpKind>;
    const operands = inputs.map((id) => ids.get(id)!);
    ids.set(outputs[0]!, addCall(egraph, op, operands, attrs));
  }
  return ids;
}

export function addConstant<D>(egraph: EGraph<D>, tensor: Tensor): NodeId {
  return egraph.add(constantOp, [], constantPayload(tensor));
}

function addLeaf<D>(egraph: EGraph<D>, name: string, leaf: Leaf): NodeId {
  const { value, type, isWeight } = leaf;
  const kind = isWeight ? "weight" : "input";
  const key = `${kind} ${value} ${JSON.stringify(name)} ${printType(type)}`;
  return egraph.add(leafOp, [], { key, value: leaf });
}

/** Where nodes are added: an e-graph, or the builder of a rule's right side. */
export interface TermSink {
  add(op: string, children?: readonly NodeId[], payload?: Payload | string): NodeId;
}

/** An op over operands, in the encoding of this file. */
export function addCall<K extends OpKind>(
  sink: TermSink,
  op: K,
  inputs: readonly NodeId[],
  attrs: OpAttrs[K],
): NodeId {
  if (isScalarOp(op)) return sink.add(mapOp, inputs, op);
  const payload = attrsPayload(op, attrs as AnyAttrs);
  if (op !== "concat") return sink.add(op, inputs, payload);
  return inputs.slice(1).reduce((left, right) => sink.add(op, [left, right], payload), inputs[0]!);
}
