/**
 * Texts of transposes, and of what is computed with them, as the compiler lowers them through shared memory
 * (lower/turns/), each from a graph and a `turn` schedule: what assembling, counting and planting faults work on.
 */
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { printProgram } from "../../src/program/program-text.ts";
import { parseSchedule } from "../../src/schedule/directive-text.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { targets } from "../../src/target/index.ts";
import { Making } from "./making.ts";

export interface TurnCase {
  readonly dtype: DType;
  /** Of the operand; its last two axes are exchanged. */
  readonly shape: readonly number[];
  /** What is computed with it: nothing, or a sum with an operand in the order of the results. */
  readonly added?: true;
  /** The `turn` directive without its statement; absent: as the compiler chooses. */
  readonly how?: string;
}

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join(" "));
  return result.value;
}

export function turnGraph({ dtype, shape, added }: TurnCase): Graph {
  const g = new GraphBuilder("turns");
  const axes = shape.map((_, axis) => axis);
  const permutation = [...axes.slice(0, -2), axes.at(-1)!, axes.at(-2)!];
  const input = (name: string, extents: readonly number[]) =>
    g.input(name, { dtype, shape: extents.map((n) => constant(n)) });
  const x = input("x", shape);
  const others = added
    ? [
        input(
          "z",
          permutation.map((axis) => shape[axis]!),
        ),
      ]
    : [];
  const turned = g.transpose(x, permutation);
  return g.finish([others.reduce((sum, z) => g.add(sum, z), turned)]);
}

export function turnText(given: TurnCase, making = new Making()): string {
  const target = targets.get("h200")!;
  const model = { graph: turnGraph(given), weights: noWeights };
  const plain = making.compile(model, { target });
  if (given.how === undefined) return printProgram(plain.plan.program);
  const [{ name, scheduled }] = plain.regions as [(typeof plain.regions)[number]];
  const statement = scheduled.region.statements[0]!.name;
  const text = `schedule "${name}" for "h200" { turn ${statement} ${given.how} }`;
  const measured = new Map([[name, take(parseSchedule(text))]]);
  return printProgram(making.compile(model, { target, measured }).plan.program);
}
