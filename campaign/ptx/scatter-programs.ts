/** Texts of updates that meet (ScatterND) as the compiler makes them, in all of their kernels. */
import { GraphBuilder } from "../../src/graph/builder.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { printProgram } from "../../src/program/program-text.ts";
import type { ScatterReduction } from "../../src/semantics/core-ops.ts";
import { targets } from "../../src/target/index.ts";
import { Making } from "./making.ts";

export interface ScatterCase {
  readonly dtype: "f32" | "bf16" | "i64";
  readonly reduction: ScatterReduction;
  readonly updates: number;
  /** Places, and elements of each. */
  readonly shape: readonly [places: number, slice: number];
}

export function scatterText(
  { dtype, reduction, updates, shape }: ScatterCase,
  making = new Making(),
): string {
  const g = new GraphBuilder("scatter");
  const data = g.input("data", tensorType(dtype, ...shape));
  const indices = g.input("indices", tensorType("i64", updates, 1));
  const values = g.input("updates", tensorType(dtype, updates, shape[1]));
  const graph = g.finish([g.node("scatterNd", [data, indices, values], { reduction })]);
  const target = targets.get("h200")!;
  const made = making.compile({ graph, weights: noWeights }, { target, overlap: false });
  return printProgram(made.plan.program);
}
