/** Tensors without elements: nothing is left of what computes them, on any target; extents of a run stay. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../../compile.ts";
import { noWeights, runGraph } from "../../interp/graph.ts";
import { randomRef } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import type { Graph } from "../graph.ts";
import { parseGraph } from "../graph-text.ts";
import { foldEmpty } from "./fold-empty.ts";

function graphOf(text: string): Graph {
  const graph = parseGraph(text);
  if (!graph.ok) throw new Error(graph.diagnostics[0]!.message);
  return graph.value;
}

const none = {
  "a gather of no places": `graph "g" (x: f32[3, 4], i: i64[0]) -> (y) {
  y = gather(x, i) {axis: 0} : f32[0, 4]
}
`,
  "updates by none": `graph "g" (x: f32[3, 4], i: i64[0, 4], u: f32[0, 4]) -> (y) {
  t = scatterElements(x, i, u) {axis: 0, reduction: none} : f32[3, 4]
  y = relu(t) : f32[3, 4]
}
`,
  "updates of rows by none": `graph "g" (x: f32[3, 4], i: i64[0, 1], u: f32[0, 4]) -> (y) {
  t = scatterNd(x, i, u) {reduction: add} : f32[3, 4]
  y = relu(t) : f32[3, 4]
}
`,
  "the first of no lines": `graph "g" (x: f32[0, 9]) -> (y, j) {
  (y, j) = topK(x) {axis: 1, k: 3, largest: true, sorted: true} : (f32[0, 3], i64[0, 3])
}
`,
  "a sum of nothing": `graph "g" (x: f32[0, 5]) -> (y) {
  t = relu(x) : f32[0, 5]
  y = reduce(t) {kind: sum, axes: [0], keepDims: false} : f32[5]
}
`,
} as const;

describe.each(Object.entries(none))("%s", (_, text) => {
  it("is folded, and gives the same", () => {
    const graph = graphOf(text);
    const folded = foldEmpty(graph).graph;
    const empty = ["gather", "scatterElements", "scatterNd", "topK"];
    expect(folded.nodes.filter((n) => empty.includes(n.op))).toEqual([]);
    const rng = new Rng(1);
    const inputs = graph.inputs.map((id) => {
      const { dtype, shape } = graph.values[id]!.type;
      return randomRef(
        dtype,
        shape.map((e) => e.constant),
        rng,
      );
    });
    expect(runGraph(folded, inputs)).toEqual(runGraph(graph, inputs));
  });

  it.each(["wasm", "x64-avx2", "h200", "rtx-3090"])("has a program for %s", (name) => {
    const model = { graph: graphOf(text), weights: noWeights };
    const compiled = compileModel(model, { target: targets.get(name)! });
    expect(compiled.ok ? [] : compiled.diagnostics).toEqual([]);
  });
});

it("extents that a run decides are left", () => {
  const graph = graphOf(`graph "g" (x: f32[3, 4], i: i64[N]) -> (y) where 0 <= N <= 5 {
  y = gather(x, i) {axis: 0} : f32[N, 4]
}
`);
  expect(foldEmpty(graph).graph.nodes.map((n) => n.op)).toEqual(["gather"]);
});
