import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { emitPtx } from "../../emit/ptx/emit-program.ts";
import { GraphBuilder } from "../../graph/builder.ts";
import type { Graph } from "../../graph/graph.ts";
import { tensorType } from "../../graph/tensor-type.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { runProgram } from "../../interp/program.ts";
import { parseSchedule } from "../../schedule/directive-text.ts";
import type { DType } from "../../semantics/dtype.ts";
import { constant } from "../../semantics/index-expr.ts";
import { argMonoid } from "../../semantics/monoids.ts";
import { evaluateScalar } from "../../semantics/scalar-meaning.ts";
import { fromRef, type RefTensor, refTensor } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

type Kind = "max" | "min";
const numbers = [-1, 0, -0, 2, -Infinity, Infinity, Number.NaN];

describe("monoids of values with places", () => {
  const all = (["max", "min"] as const).flatMap((kind) =>
    (["first", "last"] as const).flatMap((tie) =>
      (["extreme", "greatest"] as const).map((nan) => ({ kind, tie, nan })),
    ),
  );

  it.each(all)("%o: what stands behind is combined as in any order", (options) => {
    for (const dtype of ["f32", "i32"] as const) {
      const monoid = argMonoid({ ...options, dtype, indexDType: "i32" });
      const values = dtype === "f32" ? numbers : [-1, 0, 7];
      for (const left of values) {
        for (const right of values) {
          const args = [left, 3, right, 4];
          const [found, want] = [monoid.inOrder!, monoid.combine].map((list) =>
            list.map((e) => evaluateScalar(e, args)),
          );
          expect({ args, found }).toEqual({ args, found: want });
        }
      }
    }
  });
});

interface Place {
  readonly kind: Kind;
  readonly dtype: DType;
  readonly length: number;
  readonly selectLast: boolean;
}

function graphOf({ kind, dtype, length, selectLast }: Place): Graph {
  const g = new GraphBuilder("place");
  const x = g.input("x", tensorType(dtype, 3, length));
  return g.finish([g.node("argReduce", [x], { kind, axis: 1, keepDims: false, selectLast })]);
}

/** The graph compiled (and so proved) with rows of that form and run. */
function placesOf(graph: Graph, x: RefTensor, how: string): readonly bigint[] {
  const [region] = take(compileModel({ graph, weights: noWeights }, { target })).regions;
  const text = `schedule "${region!.name}" for "h200" { rows ${region!.scheduled.statements.at(-1)!.statement.name} ${how} }`;
  const measured = new Map([[region!.name, take(parseSchedule(text))]]);
  const compiled = take(compileModel({ graph, weights: noWeights }, { target, measured }));
  const { program } = compiled.plan;
  if (target.machine?.kind !== "gpu") throw new Error("no GPU");
  take(emitPtx(program, target.machine.architecture, target.blocks));
  const { data } = fromRef(x);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const name = compiled.model.graph.values[compiled.model.graph.inputs[0]!]!.name;
  const contents = new Map([[name, bytes]]);
  const outcome = runProgram(program, { parameters: {}, contents, threads: 1, seed: 2 });
  if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
  return [
    ...new BigInt64Array(outcome.contents.get(compiled.nests.outputs.at(-1)!)!.slice().buffer),
  ];
}

describe("places folded by threads in their order", () => {
  const forms = [
    { how: "threads 32 lanes 1 together 1 keep memory", length: 77 },
    { how: "threads 8 lanes 8 together 4 keep registers", length: 200 },
    { how: "threads 64 lanes 4 together 1 keep memory", length: 520 },
    { how: "threads 64 lanes 2 together 2 keep registers", length: 40 },
  ] as const;

  it.each(forms)("are those of the definition: $how", ({ how, length }) => {
    const rng = new Rng(length);
    for (const dtype of ["f32", "bf16", "i32"] as const) {
      if (dtype !== "bf16" && how.includes("lanes 8")) continue;
      const kind: Kind = rng.uniform() < 0.5 ? "max" : "min";
      const place = { kind, dtype, length, selectLast: rng.uniform() < 0.5 };
      const graph = graphOf(place);
      // Lines of few values; of one value alone; with NaN in some.
      const values = Array.from({ length: 3 * length }, (_, i) => {
        if (i < length) return dtype === "i32" ? 5 : kind === "max" ? -Infinity : Infinity;
        const special = dtype !== "i32" && i >= 2 * length ? numbers : [0, 1, 2];
        return special[rng.integer(0, special.length - 1)]!;
      });
      const x = refTensor(dtype, [3, length], values);
      const want = [...(take(runGraph(graph, [x]))[0]!.data as BigInt64Array)];
      expect({ place, found: placesOf(graph, x, how) }).toEqual({ place, found: want });
    }
  });

  it("of the first in an order in which NaN is the greatest", () => {
    const g = new GraphBuilder("first");
    const x = g.input("x", tensorType("f32", 3, 96));
    const attrs = { axis: 1, k: constant(1), largest: false, sorted: true };
    const graph = g.finish([g.nodes("topK", [x], attrs)[1]!]);
    const rng = new Rng(4);
    const given = refTensor(
      "f32",
      [3, 96],
      Array.from({ length: 288 }, (_, i) =>
        i < 96 ? Number.NaN : numbers[rng.integer(0, numbers.length - 1)]!,
      ),
    );
    const want = [...(take(runGraph(graph, [given]))[0]!.data as BigInt64Array)];
    const how = "threads 32 lanes 2 together 1 keep memory";
    expect(placesOf(graph, given, how)).toEqual(want);
  });
});
