import { describe, expect, it } from "vitest";
import { firstDifference } from "../../../campaign/random-values.ts";
import { compileModel } from "../../compile.ts";
import { emitPtx } from "../../emit/ptx/emit-program.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph, ValueId } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { runProgram } from "../../interp/program.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import type { DType } from "../../semantics/dtype.ts";
import { fromRef, randomRef, toRef } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

interface Scan {
  readonly kind: "sum" | "prod";
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly axis?: number;
  readonly exclusive?: boolean;
  readonly reverse?: boolean;
  /** What is done with the result. */
  readonly then?: (g: GraphBuilder, x: ValueId) => ValueId;
}

function graphOf(scan: Scan): Graph {
  const { kind, dtype, shape, axis = shape.length - 1, then } = scan;
  const { exclusive = false, reverse = false } = scan;
  const g = new GraphBuilder("scan");
  const x = g.input("x", tensorType(dtype, ...shape));
  const y = g.node("cumulative", [x], { kind, axis, exclusive, reverse });
  return g.finish([then ? then(g, y) : y]);
}

/** The graph compiled (and so proved) with rows for the region that scans, run and compared with the oracle. */
function difference(scan: Scan, how: string): string | undefined {
  const graph = graphOf(scan);
  const plain = take(compileModel({ graph, weights: noWeights }, { target }));
  const region = plain.regions.find(({ scheduled }) =>
    scheduled.region.statements.some((s) => s.loops.some((l) => l.kind === "scan")),
  );
  const last = region!.scheduled.statements.at(-1)!.statement.name;
  const text = `schedule "${region!.name}" for "h200" { rows ${last} ${how} }`;
  const measured = new Map([[region!.name, take(parseSchedule(text))]]);
  const compiled = take(compileModel({ graph, weights: noWeights }, { target, measured }));
  const { program } = compiled.plan;
  expect(program.kernels.length).toBe(1);
  if (target.machine?.kind !== "gpu") throw new Error("no GPU");
  take(emitPtx(program, target.machine.architecture, target.blocks));
  const input = randomRef(scan.dtype, scan.shape, new Rng(5));
  const [want] = take(runGraph(graph, [input]));
  const bytesOf = ({ data }: ReturnType<typeof fromRef>): Uint8Array =>
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const name = compiled.model.graph.values[compiled.model.graph.inputs[0]!]!.name;
  const contents = new Map([[name, bytesOf(fromRef(input))]]);
  const outcome = runProgram(program, { parameters: {}, contents, threads: 1, seed: 2 });
  if (outcome.kind === "fault") return JSON.stringify(outcome.fault);
  const shaped = fromRef(want!);
  const bytes = outcome.contents.get(compiled.nests.outputs[0]!)!.slice();
  bytesOf(shaped).set(bytes);
  return firstDifference(toRef(shaped), take(runGraph(graph, [input]))[0]!);
}

describe("scans along rows by blocks", () => {
  it("parts of a warp, a warp, several, in vectors and without, kept and in a loop", () => {
    for (const how of [
      "threads 8 lanes 4 together 4 keep registers",
      "threads 64 lanes 2 together 1 keep memory",
      "threads 64 lanes 1 together 1 keep memory",
      "threads 64 lanes 1 together 2 keep registers",
    ]) {
      for (const reverse of [false, true]) {
        const scan = { kind: "sum", dtype: "f32", shape: [2, 136], reverse } as const;
        expect([how, reverse, difference(scan, how)]).toEqual([how, reverse, undefined]);
      }
    }
  });

  it("without the element itself, products, lengths that are no whole vectors", () => {
    for (const how of [
      "threads 32 lanes 1 together 1 keep memory",
      "threads 64 lanes 1 together 2 keep registers",
    ]) {
      for (const reverse of [false, true]) {
        for (const kind of ["sum", "prod"] as const) {
          const scan = { kind, dtype: "f32", shape: [3, 77], exclusive: true, reverse } as const;
          expect(difference(scan, how)).toBeUndefined();
        }
      }
    }
  });

  it("integers of every length wrap as one after another, narrow floats are rounded once", () => {
    for (const dtype of ["i64", "u8", "f64", "bf16"] as const) {
      for (const how of ["threads 64 lanes 2 together 1 keep registers"]) {
        expect([dtype, difference({ kind: "sum", dtype, shape: [1, 150] }, how)]).toEqual([
          dtype,
          undefined,
        ]);
      }
    }
  });
});
