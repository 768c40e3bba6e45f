/**
 * A value and views of it in one statement: whatever is written over the value must not be read through a
 * view later. Random reshapes, slices, transposes and reversals of a product, joined with it elementwise.
 */
import { expect, it } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { ValueId } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { runGraph } from "../../src/interp/graph.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { fromRef, numbersOf, randomRef, type Tensor, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

const side = 16;

/** An operand of the shape of `h`, made of a view of it. */
function view(g: GraphBuilder, h: ValueId, rng: Rng): ValueId {
  const dims = (...shape: number[]) => shape.map((d) => constant(d));
  const flat = g.reshape(h, dims(side * side));
  switch (rng.integer(0, 3)) {
    case 0: {
      const from = constant(rng.integer(0, side - 1) * side);
      const row = g.node("slice", [flat], {
        starts: [from],
        sizes: dims(side),
        steps: [1],
      });
      return g.reshape(row, dims(1, side));
    }
    case 1:
      return g.reshape(g.node("reverse", [flat], { axes: [0] }), dims(side, side));
    case 2:
      return g.transpose(g.reshape(flat, dims(side, side)), [1, 0]);
    default:
      return g.reshape(g.transpose(g.reshape(h, dims(4, 64)), [1, 0]), dims(side, side));
  }
}

it("agree with the oracle", () => {
  const rng = new Rng(21);
  for (let trial = 0; trial < 6; trial++) {
    const g = new GraphBuilder("views");
    const shape = [constant(side), constant(side)];
    const x = g.input("x", { dtype: "f32", shape });
    const w = g.constant(fromRef(randomRef("f32", [side, side], rng)), "w");
    const h = g.matMul(x, w);
    let y = g.add(h, view(g, h, rng));
    if (rng.integer(0, 1) === 1) y = g.mul(y, g.apply("tanh", view(g, h, rng)));
    const graph = g.finish([g.matMul(y, w)]);
    const weights = { read: (key: string): Tensor => g.storedConstants.get(key)! };
    const model = { graph, weights };
    const {
      model: chosen,
      nests,
      plan,
    } = unwrap(compileModel(model, { target: targets.get("wasm")! }));
    const input = randomRef("f32", [side, side], rng);
    const features = { ...probeWasmFeatures(), threads: false };
    const options = { weight: weightReader(chosen), threads: 1, features, host: nodeWorkerHost };
    const session = unwrap(createWasmSession(plan.program, options));
    const found = unwrap(session.run({ x: fromRef(input) }))[nests.outputs[0]!]!;
    const wanted = numbersOf(unwrap(runGraph(graph, [input], weights))[0]!);
    const largest = wanted.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    for (const [i, value] of numbersOf(toRef(found)).entries()) {
      expect(Math.abs(value - wanted[i]!), `trial ${trial}`).toBeLessThan(1e-4 * largest);
    }
  }
});

it("are not joined with what makes the value to one kernel over rows", () => {
  const g = new GraphBuilder("rows");
  const n = g.symbol("N", 1, 16);
  const x = g.input("x", { dtype: "f32", shape: [n, constant(1), constant(5)] });
  const w = g.input("w", { dtype: "f32", shape: [constant(5), constant(4)] });
  const rows = g.matMul(x, w);
  const turned = g.node("reverse", [g.reshape(rows, [-1])], { axes: [0] });
  const graph = g.finish([g.apply("max", g.reshape(turned, g.shapeOf(rows)), rows)]);
  const weights = { read: (key: string): Tensor => g.storedConstants.get(key)! };
  unwrap(compileModel({ graph, weights }, { target: targets.get("h200")! }));
});
