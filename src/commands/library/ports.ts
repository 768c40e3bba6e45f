/** What a model takes and gives, by its own names. */
import type { ArtifactMeta } from "../../artifact/artifact.ts";
import type { Graph } from "../../graph/graph.ts";
import type { DType } from "../../semantics/dtype.ts";
import { constantValue, type IndexExpr } from "../../semantics/index-expr.ts";

/** An input or output: a string extent is a symbol or an expression over symbols. */
export interface Port {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly (number | string)[];
  /** For an input that is a state: the output that it takes over. */
  readonly keeps?: string;
}

export interface ModelPorts {
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
}

export function describePorts(
  graph: Graph,
  meta: Pick<ArtifactMeta, "inputs" | "outputs">,
): ModelPorts {
  const port = (name: string, id: number): Port => {
    const { dtype, shape } = graph.values[id]!.type;
    return { name, dtype, shape: shape.map(extentOf) };
  };
  const outputName = (id: number): string => meta.outputs[graph.outputs.indexOf(id)]!.name;
  const keeps = new Map(graph.states.map((s) => [s.input, outputName(s.output)]));
  return {
    inputs: graph.inputs.map((v, i) => ({
      ...port(meta.inputs[i]!.name, v),
      ...(keeps.has(v) && { keeps: keeps.get(v)! }),
    })),
    outputs: graph.outputs.map((v, i) => port(meta.outputs[i]!.name, v)),
  };
}

function extentOf(extent: IndexExpr): number | string {
  return constantValue(extent) ?? extent.key;
}
