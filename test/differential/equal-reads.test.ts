/** A statement that reads one element twice under different formulas, joined with the copy of its result. */
import { expect, test } from "vitest";
import { places, runCompiled } from "../../campaign/campaigns/random-ops.ts";
import { firstDifference } from "../../campaign/random-values.ts";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { randomRef } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

test("x + reshape(transpose(x)), given out twice", async () => {
  const b = new GraphBuilder("twice");
  const x = b.input("x", tensorType("f32", 1, 4, 1, 1));
  const turned = b.transpose(x, [1, 3, 0, 2]);
  const sum = b.add(x, b.reshape(turned, [1, 4, 1, 1].map(constant)));
  const graph = b.finish([sum, sum]);
  const inputs = [randomRef("f32", [1, 4, 1, 1], new Rng(1))];
  const expected = runGraph(graph, inputs);
  if (!expected.ok) throw new Error(JSON.stringify(expected.diagnostics));
  const model = { graph, weights: noWeights };
  for (const name of ["x64-avx2", "x64-avx512"])
    expect(compileModel(model, { target: targets.get(name)! })).toMatchObject({ ok: true });
  const found = await runCompiled(model, inputs, places.wasm(1));
  for (const [i, value] of expected.value.entries())
    expect(firstDifference(found[i]!, value)).toBeUndefined();
});
