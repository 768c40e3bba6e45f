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
import { constant } from "../../semantics/index-expr.ts";
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

  it("across: rows beside each other to neighbouring threads, of a warp and of several", () => {
    for (const [how, shape] of [
      ["threads 8 lanes 1 together 4 across items 4 keep registers", [136, 6]],
      ["threads 32 lanes 1 together 8 across items 2 keep memory", [136, 8]],
      ["threads 16 lanes 1 together 32 across items 8 keep memory", [264, 40]],
      ["threads 2 lanes 1 together 64 across items 8 keep registers", [56, 3]],
      ["threads 1 lanes 1 together 64 across items 4 keep memory", [20, 70]],
      ["threads 64 lanes 1 together 2 across keep registers", [77, 3]],
      ["threads 16 lanes 1 together 8 across items 8 keep registers", [77, 3]],
      ["threads 4 lanes 1 together 16 across items 4 keep memory", [77, 18]],
    ] as const) {
      for (const reverse of [false, true]) {
        for (const [dtype, exclusive] of [
          ["f32", false],
          ["i64", true],
        ] as const) {
          const scan = { kind: "sum", dtype, shape, axis: 0, exclusive, reverse } as const;
          expect([how, reverse, difference(scan, how)]).toEqual([how, reverse, undefined]);
        }
      }
    }
  });

  it("across carries narrow floats in f32, and has no kernels that convert", () => {
    const how = "threads 16 lanes 1 together 4 across items 4 keep registers";
    for (const dtype of ["bf16", "f16"] as const)
      expect(difference({ kind: "sum", dtype, shape: [150, 4], axis: 0 }, how)).toBeUndefined();
  });

  it("across lines whose length is open", () => {
    const g = new GraphBuilder("scan");
    const steps = g.symbol("S", 1, 4000);
    const x = g.input("x", { dtype: "bf16", shape: [steps, constant(96)] });
    const attrs = { kind: "sum", axis: 0, exclusive: false, reverse: true } as const;
    const graph = g.finish([g.node("cumulative", [x], attrs)]);
    const { regions } = take(compileModel({ graph, weights: noWeights }, { target }));
    const [directive] = regions.map((r) => r.scheduled.schedule.directives[0]!);
    expect(regions).toHaveLength(1);
    expect(directive).toMatchObject({ kind: "rows", across: true, keep: "memory" });
  });

  it("across in the middle of a tensor, along with what follows", () => {
    const how = "threads 8 lanes 1 together 16 across items 4 keep registers";
    const scan = { kind: "prod", dtype: "f32", shape: [3, 64, 20], axis: 1 } as const;
    expect(difference(scan, how)).toBeUndefined();
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
