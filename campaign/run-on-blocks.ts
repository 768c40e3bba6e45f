/** A graph compiled for a machine of blocks, proved, emitted, run in the program interpreter and held against the oracle. */
import { compileModel } from "../src/compile.ts";
import { emitPtx } from "../src/emit/ptx/emit-program.ts";
import type { Graph } from "../src/graph/graph.ts";
import { weightReader } from "../src/graph/prepare.ts";
import { noWeights, runGraph } from "../src/interp/graph.ts";
import { runProgram } from "../src/interp/program.ts";
import type { Schedule } from "../src/schedule/directive.ts";
import { fromRef, type RefTensor, toRef } from "../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../src/support/diagnostic.ts";
import { targets } from "../src/target/index.ts";

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join(" "));
  return result.value;
}

function bytesOf({ data }: ReturnType<typeof fromRef>): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/**
 * The first output that is not, bit for bit, the oracle's; undefined: all are. Throws what the compiler, the emitter or
 * the interpreter says.
 *
 * @param inputs in the graph's order
 * @param measured schedules by region, in place of those that are chosen
 */
export function differenceOnBlocks(
  graph: Graph,
  inputs: readonly RefTensor[],
  measured: ReadonlyMap<string, Schedule> = new Map(),
): string | undefined {
  const target = targets.get("h200")!;
  if (target.machine?.kind !== "gpu") throw new Error("no GPU");
  const { plan, model, nests } = take(
    compileModel({ graph, weights: noWeights }, { target, measured }),
  );
  const { program } = plan;
  take(emitPtx(program, target.machine.architecture, target.blocks));
  const weight = weightReader(model);
  const contents = new Map<string, Uint8Array>([
    ...inputs.map((x, i) => {
      return [model.graph.values[model.graph.inputs[i]!]!.name, bytesOf(fromRef(x))] as const;
    }),
    ...program.buffers.flatMap((b) =>
      b.kind === "weight" && b.source !== undefined
        ? [[b.name, bytesOf(weight(b.source))] as const]
        : [],
    ),
  ]);
  const outcome = runProgram(program, { parameters: {}, contents, threads: 1, seed: 2 });
  if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
  const wanted = take(runGraph(graph, inputs));
  for (const [i, output] of nests.outputs.entries()) {
    const found = fromRef(wanted[i]!);
    bytesOf(found).set(outcome.contents.get(output)!.slice());
    const [own, other] = [toRef(found), wanted[i]!].map(({ data }) =>
      JSON.stringify(Array.from(data as ArrayLike<number | bigint>, String)),
    );
    if (own !== other) return `output ${i}: ${own}, not ${other}`;
  }
  return undefined;
}
