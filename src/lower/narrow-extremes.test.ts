import { describe, expect, it } from "vitest";
import { compileModel } from "../compile.ts";
import { emitPtx } from "../emit/ptx/emit-program.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, ValueId } from "../graph/graph.ts";
import { noWeights, runGraph } from "../interp/graph.ts";
import { runProgram } from "../interp/program.ts";
import { constant } from "../semantics/index-expr.ts";
import { fromRef, type RefTensor, refTensor, toRef } from "../semantics/tensor.ts";
import { Rng } from "../support/rng.ts";
import { architectures } from "../target/architectures/index.ts";
import { targets } from "../target/index.ts";

const target = targets.get("h200")!;

type Narrow = "bf16" | "f16";
type Build = (g: GraphBuilder, x: ValueId) => ValueId;

function graphOf(build: Build, dtype: Narrow | "f32", shape: readonly number[]): Graph {
  const g = new GraphBuilder("extremes");
  const x = g.input("x", { dtype, shape: shape.map((n) => constant(n)) });
  return g.finish([build(g, x)]);
}

function compiled(graph: Graph) {
  const made = compileModel({ graph, weights: noWeights }, { target });
  if (!made.ok) throw new Error(JSON.stringify(made.diagnostics));
  const { program } = made.value.plan;
  const emitted = emitPtx(program, architectures.get("sm_90a")!);
  if (!emitted.ok) throw new Error(JSON.stringify(emitted.diagnostics));
  const output = made.value.nests.outputs[0]!;
  return { program, output, text: emitted.value.text };
}

/** Numbers of every size, and now and then an infinity or none. */
function numbers(dtype: Narrow, shape: readonly number[]): RefTensor {
  const rng = new Rng(7);
  const [count, odd] = [shape.reduce((a, b) => a * b, 1), [Infinity, -Infinity, Number.NaN]];
  const next = (): number =>
    rng.integer(0, 99) === 0 ? odd[rng.integer(0, 2)]! : rng.normal() * 2 ** rng.integer(-12, 12);
  return refTensor(dtype, shape, Array.from({ length: count }, next));
}

describe.each(["bf16", "f16"] as const)("extremes of %s", (dtype) => {
  const cases = [
    ["max", [5, 1024], 1],
    ["min", [5, 1024], 1],
  ] as const;
  it.each(cases)("are compared in pairs, and exact: %s of %j along %i", (kind, shape, axis) => {
    const graph = graphOf((g, x) => g.reduce(kind, x, [axis], false), dtype, shape);
    const { program, output, text } = compiled(graph);
    expect(text).toContain(`${kind}.NaN.${dtype}x2`);
    const x = numbers(dtype, shape);
    const want = runGraph(graph, [x]);
    if (!want.ok) throw new Error(JSON.stringify(want.diagnostics));
    const stored = fromRef(x).data as Uint16Array;
    const contents = new Map([["x", new Uint8Array(stored.buffer)]]);
    const outcome = runProgram(program, { parameters: {}, contents, threads: 1, seed: 2 });
    if (outcome.kind === "fault") throw new Error(JSON.stringify(outcome.fault));
    const bytes = outcome.contents.get(output)!.slice();
    const data = new Uint16Array(bytes.buffer);
    const found = toRef({ ...fromRef(want.value[0]!), data } as ReturnType<typeof fromRef>);
    expect(found.data).toEqual(want.value[0]!.data);
  });
});

it("quotients that become floats of 16 bits are products with a reciprocal", () => {
  const softmax: Build = (g, x) => g.node("softmax", [x], { axis: 1 });
  const textOf = (dtype: Narrow | "f32"): string =>
    compiled(graphOf(softmax, dtype, [64, 1024, 256])).text;
  expect(textOf("bf16")).not.toMatch(/\bdiv\./);
  expect(textOf("bf16")).toContain("max.NaN.bf16x2");
  expect(textOf("f32")).toMatch(/\bdiv\.rn/);
  const normed: Build = (g, x) => {
    const wide = g.cast(x, "f32");
    const size = g.reduce("sum", g.mul(wide, wide), [1], true);
    return g.cast(g.div(wide, g.apply("sqrt", size)), "f16");
  };
  expect(compiled(graphOf(normed, "f16", [64, 1024, 256])).text).not.toMatch(/\bdiv\./);
});
