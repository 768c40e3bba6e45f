/** A product whose epilogue reads rows that an index tensor picks: WebAssembly against the oracle. */
import { expect, test } from "vitest";
import { places, runCompiled } from "../../campaign/campaigns/random-ops.ts";
import { firstDifference } from "../../campaign/random-values.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { randomRef, refTensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";

test("biases of experts, by token", async () => {
  const b = new GraphBuilder("experts");
  const chosen = b.input("chosen", tensorType("i64", 2, 3));
  const x = b.input("x", tensorType("f32", 2, 32));
  const weights = b.input("weights", tensorType("f32", 7, 64, 32));
  const biases = b.input("biases", tensorType("f32", 7, 64));
  const own = b.node("gather", [weights, chosen], { axis: 0 });
  const bias = b.node("gather", [biases, chosen], { axis: 0 });
  const labels = { lhs: ["t", "h"], rhs: ["t", "e", "n", "h"], output: ["t", "e", "n"] };
  const product = b.node("contract", [x, own], { ...labels, accumulator: "f32" });
  const graph = b.finish([b.add(product, bias)]);
  const rng = new Rng(1);
  const inputs = [
    refTensor("i64", [2, 3], [0, 6, 3, 3, 5, 1]),
    ...[
      [2, 32],
      [7, 64, 32],
      [7, 64],
    ].map((shape) => randomRef("f32", shape, rng)),
  ];
  const expected = runGraph(graph, inputs);
  if (!expected.ok) throw new Error(JSON.stringify(expected.diagnostics));
  const found = await runCompiled({ graph, weights: noWeights }, inputs, places.wasm(1));
  expect(firstDifference(found[0]!, expected.value[0]!)).toBeUndefined();
});
