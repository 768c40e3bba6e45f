/** A graph's products with given schedules, proved, run thread by thread and compared with the oracle. */
import { compileModel } from "../../src/compile.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { runProgram } from "../../src/interp/program.ts";
import type { Schedule } from "../../src/schedule/directive.ts";
import { printSchedule } from "../../src/schedule/directive-text.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import {
  fromRef,
  randomRef,
  tensorBytes,
  tensorFromBytes,
  toRef,
} from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import type { Target } from "../../src/target/target.ts";
import { firstDifference } from "../random-values.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

export interface MeasuredGraph {
  readonly graph: Graph;
  /** Schedules by region: as many regions have to be products. */
  readonly measured: ReadonlyMap<string, Schedule>;
  readonly target: Target;
  /** Of open extents. */
  readonly sizes?: Readonly<Record<string, number>>;
}

/** The first element that is not the oracle's; integers have to be equal. Throws where the graph does not compile. */
export function productDifference({
  graph,
  measured,
  target,
  sizes = {},
}: MeasuredGraph): string | undefined {
  const compiled = take(compileModel({ graph, weights: noWeights }, { target, measured }));
  const multiplied = compiled.regions.filter((r) => r.scheduled.products.length > 0);
  if (multiplied.length !== measured.size) return `${multiplied.length} products`;
  const other = multiplied.find(({ name, scheduled }) => {
    const given = measured.get(name);
    return !given || printSchedule(given) !== printSchedule(scheduled.schedule);
  });
  if (other) return `${other.name} has another schedule`;
  const rng = new Rng(5);
  const inputs = graph.inputs.map((id) => {
    const { dtype, shape } = graph.values[id]!.type;
    const extents = shape.map((e) => evaluate(e, new Map(Object.entries(sizes))));
    return randomRef(dtype, extents, rng);
  });
  const want = take(runGraph(graph, inputs));
  const { program } = compiled.plan;
  const names = compiled.model.graph.inputs.map((id) => compiled.model.graph.values[id]!.name);
  const contents = new Map(
    names.map((name, i) => [name, tensorBytes(fromRef(inputs[i]!))] as const),
  );
  const outcome = runProgram(program, { parameters: sizes, contents, threads: 1, seed: 2 });
  if (outcome.kind === "fault") return JSON.stringify(outcome.fault);
  const differences = compiled.nests.outputs.map((output, i) => {
    const { dtype, shape } = want[i]!;
    const found = tensorFromBytes(dtype, shape, outcome.contents.get(output)!.slice());
    return firstDifference(toRef(found), want[i]!);
  });
  return differences.find((d) => d !== undefined);
}
