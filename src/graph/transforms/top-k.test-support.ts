/** Graphs of one TopK, for the tests of what it becomes. */
import type { DType } from "../../semantics/dtype.ts";
import { constant } from "../../semantics/index-expr.ts";
import type { RefTensor } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph } from "../graph.ts";
import { tensorType } from "../tensor-type.ts";

export interface Top {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly axis: number;
  readonly k: number;
  readonly largest: boolean;
}

export function graphOf({ dtype, shape, axis, k, largest }: Top): Graph {
  const g = new GraphBuilder("top");
  const x = g.input("x", tensorType(dtype, ...shape));
  return g.finish([...g.nodes("topK", [x], { axis, k: constant(k), largest, sorted: true })]);
}

export function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

export const valuesOf = ({ data }: RefTensor): readonly (number | bigint)[] => [
  ...(data as Iterable<number | bigint>),
];
