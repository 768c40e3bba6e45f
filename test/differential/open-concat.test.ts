/** Parts of a concatenation that are written as rows of different lengths, which an open extent decides. */
import { expect, test } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { add } from "../../src/semantics/index-expr.ts";
import { formatDiagnostic } from "../../src/support/diagnostic.ts";
import { targets } from "../../src/target/index.ts";

test("is proved to be written whole", () => {
  const b = new GraphBuilder("open");
  const width = add(b.symbol("N", 1, 16), 4);
  const x = b.input("x", tensorType("f32", 6, 6, width));
  const y = b.input("y", tensorType("f32", 4, 6, width));
  const turned = b.node("transpose", [x], { permutation: [1, 2, 0] });
  const sum = b.add(x, b.reshape(turned, tensorType("f32", 6, 6, width).shape));
  const graph = b.finish([b.node("concat", [y, sum, y], { axis: 0 })]);
  const made = compileModel({ graph, weights: noWeights }, { target: targets.get("wasm")! });
  expect(made.ok ? [] : made.diagnostics.map(formatDiagnostic)).toEqual([]);
});
