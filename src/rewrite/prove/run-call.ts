/** One op on values: core ops by their references, composites by their definitions. */
import { definitionGraph } from "../../graph/builder.ts";
import type { Graph, NodeOf, OpKind, ValueId } from "../../graph/graph.ts";
import { isComposite } from "../../graph/op-table.ts";
import type { CoreOpKind } from "../../semantics/core-ops.ts";
import { constantValue, toIndex } from "../../semantics/index-expr.ts";
import { type ReferenceContext, runReference } from "../../semantics/references/references.ts";
import { type RefTensor, toRef } from "../../semantics/tensor.ts";
import { invariant } from "../../support/invariant.ts";
import type { TermCall } from "../terms.ts";

function refuseSubgraph(): never {
  invariant(false, () => "an op with a subgraph is no term");
}

const noSubgraphs: ReferenceContext<Graph> = {
  runSubgraph: refuseSubgraph,
  subgraphOutputTypes: refuseSubgraph,
};

/** The result, or undefined where the data make it impossible. */
export function runGraphOfCall(
  { op, attrs }: TermCall,
  inputs: readonly RefTensor[],
): RefTensor | undefined {
  if (isComposite(op)) return runDefinition({ op, attrs }, inputs);
  const result = runReference(
    { kind: op as CoreOpKind, attrs: attrs as never, inputs, evaluate: (d) => constantValue(d)! },
    noSubgraphs,
  );
  return result.ok ? result.value[0] : undefined;
}

function runDefinition(
  { op, attrs }: TermCall,
  inputs: readonly RefTensor[],
): RefTensor | undefined {
  const types = inputs.map(({ dtype, shape }) => ({ dtype, shape: shape.map(toIndex) }));
  const graph = definitionGraph(op as never, types, attrs as never, { ranges: new Map(), at: op });
  const values = new Map<ValueId, RefTensor>();
  for (const [i, id] of graph.inputs.entries()) values.set(id, inputs[i]!);
  for (const { value, source } of graph.weights) {
    invariant(source.kind === "inline", () => `${op} has large constants`);
    values.set(value, toRef(source.tensor));
  }
  for (const node of graph.nodes) {
    const call = node as NodeOf<OpKind>;
    const operands = node.inputs.map((id) => values.get(id)!);
    const found = runGraphOfCall({ op: call.op, attrs: call.attrs as never }, operands);
    if (!found) return undefined;
    values.set(node.outputs[0]!, found);
  }
  return values.get(graph.outputs[0]!);
}
