import { describe, expect, it } from "vitest";
import { interpretProgram } from "../../campaign/interpreted-instance.ts";
import { compileModel } from "../compile.ts";
import { GraphBuilder } from "../graph/builder.ts";
import { weightReader } from "../graph/prepare.ts";
import { tensorType } from "../graph/tensor-type.ts";
import { ModelSession } from "../runtime/model-session.ts";
import type { ResizeAttrs } from "../semantics/core-ops.ts";
import { constant, variable } from "../semantics/index-expr.ts";
import { fromRef, randomRef, toRef } from "../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../support/diagnostic.ts";
import { Rng } from "../support/rng.ts";
import { targets } from "../target/index.ts";
import { noWeights, runGraph } from "./graph.ts";

const target = targets.get("h200")!;

function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

const plain: ResizeAttrs = {
  ...{ mode: "linear", coordinates: "half_pixel", nearest: "floor", cubicCoefficient: -0.75 },
  ...{ excludeOutside: false, antialias: false, axes: [2, 3], sizes: [], extrapolation: 0 },
};

function resized(attrs: Partial<ResizeAttrs>, from: number, to: number) {
  const g = new GraphBuilder("resized");
  const x = g.input("x", tensorType("f32", 1, 3, from, from));
  const sizes = [constant(to), constant(to)];
  const graph = g.finish([g.node("resize", [x], { ...plain, sizes, ...attrs })]);
  const made = take(compileModel({ graph, weights: noWeights }, { target }));
  const input = randomRef("f32", [1, 3, from, from], new Rng(3));
  const { program } = made.plan;
  const options = { weight: weightReader(made.model) };
  const session = new ModelSession(program, interpretProgram(program, 2), options);
  const results = take(session.run({ x: fromRef(input) }));
  const found = toRef(results[made.nests.outputs[0]!]!);
  const [want] = take(runGraph(graph, [input]));
  const off = Array.from(want!.data, Number).map((v, i) => Math.abs(v - Number(found.data[i])));
  return { kernels: program.kernels.length, off: Math.max(...off) };
}

describe("constant tables", () => {
  it("a resize on blocks is one kernel, whose positions and weights are stored", () => {
    for (const [attrs, from, to] of [
      [{ mode: "linear" }, 5, 9],
      [{ mode: "cubic", excludeOutside: true }, 6, 10],
      [{ mode: "linear", antialias: true }, 9, 4],
      [{ mode: "nearest", coordinates: "align_corners" }, 5, 8],
    ] as const) {
      const { kernels, off } = resized(attrs, from, to);
      expect([attrs.mode, kernels, off < 1e-5]).toEqual([attrs.mode, 1, true]);
    }
  });

  it("what is made of numbers in a row alone is stored, where it would be a kernel of its own", () => {
    const g = new GraphBuilder("sums");
    const x = g.input("x", tensorType("f32", 8, 512));
    const row = g.node("iota", [], { dtype: "f32", shape: [constant(512)], axis: 0 });
    const scan = { kind: "sum", axis: 0, exclusive: false, reverse: false } as const;
    const graph = g.finish([g.add(x, g.node("cumulative", [row], scan))]);
    const made = take(compileModel({ graph, weights: noWeights }, { target }));
    expect(made.plan.program.kernels).toHaveLength(1);
    const read = weightReader(made.model);
    const [weight] = made.model.graph.weights;
    const { data } = read(made.model.graph.values[weight!.value]!.name);
    expect(Array.from(data as Float32Array).slice(0, 5)).toEqual([0, 1, 3, 6, 10]);
  });

  it("tables of open sizes are made in each run", () => {
    const g = new GraphBuilder("resized");
    g.symbol("W", 4, 64);
    const x = g.input("x", {
      dtype: "f32",
      shape: [constant(1), constant(3), constant(4), variable("W")],
    });
    const open: ResizeAttrs = { ...plain, axes: [3], sizes: [variable("W")] };
    const scaled: ResizeAttrs = { ...open, coordinates: "align_corners" };
    const graph = g.finish([g.node("resize", [x], scaled)]);
    const made = take(compileModel({ graph, weights: noWeights }, { target }));
    expect(made.model.graph.weights).toEqual([]);
    expect(made.plan.program.kernels.length).toBeGreaterThan(1);
  });
});
