/** Folds of truths, bytes and halves of a word: dealt out to the threads of a warp, and equal to the oracle's. */
import { describe, expect, it } from "vitest";
import { firstDifference } from "../../campaign/random-values.ts";
import { type CompiledModel, compileModel } from "../compile.ts";
import { emitPtx } from "../emit/ptx/emit-program.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, ValueId } from "../graph/graph.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { noWeights, runGraph } from "../interp/graph.ts";
import { runProgram } from "../interp/program.ts";
import { applySchedule } from "../schedule/apply.ts";
import { enumerateBlockSchedules } from "../schedule/blocks/block-candidates.ts";
import type { Schedule } from "../schedule/directive.ts";
import { printSchedule } from "../schedule/directive-text.ts";
import type { ReduceKind } from "../semantics/core-ops.ts";
import type { DType } from "../semantics/dtype.ts";
import { fromRef, type RefTensor, refTensor, toRef } from "../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../support/diagnostic.ts";
import { Rng } from "../support/rng.ts";
import { architectures } from "../target/architectures/index.ts";
import { targets } from "../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

type Build = (g: GraphBuilder, x: ValueId) => ValueId;

function graphOf(dtype: DType, shape: readonly number[], build: Build): Graph {
  const g = new GraphBuilder("folds");
  return g.finish([build(g, g.input("x", tensorType(dtype, ...shape)))]);
}

function compiled(graph: Graph, schedules: readonly Schedule[] = []): CompiledModel {
  const measured = new Map(schedules.map((s) => [s.region, s]));
  return take(compileModel({ graph, weights: noWeights }, { target, measured }));
}

/** Values of the whole range; truths of which in some rows a single one is the other. */
function values(dtype: DType, shape: readonly number[]): RefTensor {
  const rng = new Rng(5);
  const count = shape.reduce((m, n) => m * n, 1);
  const rare = rng.integer(0, 1);
  const bits = dtype.endsWith("16") ? 16 : 8;
  const low = dtype.startsWith("u") ? 0 : -(2 ** (bits - 1));
  const next = (): number => {
    if (dtype === "bool") return rng.integer(0, shape.at(-1)!) === 0 ? rare : 1 - rare;
    return rng.integer(low, low + 2 ** bits - 1);
  };
  return refTensor(dtype, shape, Array.from({ length: count }, next));
}

function differenceOf({ plan, nests }: CompiledModel, graph: Graph, x: RefTensor) {
  const [want] = take(runGraph(graph, [x]));
  const { data } = fromRef(x);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const given = { parameters: {}, contents: new Map([["x", bytes]]), threads: 1, seed: 2 };
  const outcome = runProgram(plan.program, given);
  if (outcome.kind === "fault") return JSON.stringify(outcome.fault);
  const made = outcome.contents.get(nests.outputs[0]!)!.slice();
  const { dtype, shape } = want!;
  const own = { ...fromRef(want!) };
  const Kind = own.data.constructor as new (b: ArrayBuffer) => typeof own.data;
  const found = toRef({ dtype, shape, data: new Kind(made.buffer as ArrayBuffer) } as typeof own);
  return firstDifference(found, want!);
}

const kindsOf: readonly (readonly [DType, ReduceKind])[] = [
  ["bool", "or"],
  ["bool", "and"],
  ["u8", "max"],
  ["i8", "min"],
  ["i8", "sum"],
  ["u8", "prod"],
  ["i16", "max"],
  ["u16", "sum"],
];

describe.each(kindsOf)("folds of %s by %s", (dtype, kind) => {
  it.each([
    ["rows", [20, 1500], [1]],
    ["rows of whole vectors", [16, 2048], [1]],
    ["columns", [1500, 24], [0]],
    ["a middle axis", [3, 700, 7], [1]],
    ["all elements", [40, 333], [0, 1]],
  ])("along %s are exchanged, and exact", (_, shape, axes) => {
    const graph = graphOf(dtype, shape, (g, x) => g.reduce(kind, x, axes, false));
    const made = compiled(graph);
    const { text } = take(emitPtx(made.plan.program, architectures.get("sm_90a")!));
    expect(text).toContain("shfl");
    expect(differenceOf(made, graph, values(dtype, shape))).toBeUndefined();
  });
});

/** What stands in one kernel with folds: rows that are kept, and places of extremes. */
const inRows: readonly (readonly [string, DType, Build])[] = [
  [
    "rows beside their largest",
    "i8",
    (g, x) =>
      g.apply("equal", x, g.node("reduce", [x], { kind: "max", axes: [1], keepDims: true })),
  ],
  [
    "rows where any is true",
    "bool",
    (g, x) => g.apply("xor", x, g.node("reduce", [x], { kind: "or", axes: [1], keepDims: true })),
  ],
  [
    "places of the smallest",
    "u8",
    (g, x) =>
      g.node("argReduce", [x], {
        kind: "min",
        axis: 1,
        keepDims: false,
        selectLast: true,
      }),
  ],
];

describe.each(inRows)("%s of %s", (_, dtype, build) => {
  it("are exact under every kind of schedule", () => {
    const graph = graphOf(dtype, [6, 96], build);
    const x = values(dtype, [6, 96]);
    const made = compiled(graph);
    expect(differenceOf(made, graph, x)).toBeUndefined();
    const { region } = made.regions.at(-1)!.scheduled;
    const all = enumerateBlockSchedules(region, target).filter((s) => applySchedule(region, s).ok);
    expect(all.length).toBeGreaterThan(0);
    const step = Math.max(1, Math.floor(all.length / 12));
    for (const schedule of all.filter((_s, i) => i % step === 0)) {
      const other = compiled(graph, [schedule]);
      expect([printSchedule(schedule), differenceOf(other, graph, x)]).toEqual([
        printSchedule(schedule),
        undefined,
      ]);
    }
  });
});
