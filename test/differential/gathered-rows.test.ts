/**
 * Rows that data picks, whole vectors at a time: compiled and run in WebAssembly, against the oracle. Indices from
 * the end on and those that differ along a row (which no vector takes) are among them.
 */
import { expect, it } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { fromRef, numbersOf, refTensor, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

it.each([
  ["rows", 0, [9, 37], true],
  ["elements of rows", 1, [9, 37], false],
] as const)("picks %s", (_, axis, shape, inLanes) => {
  const rng = new Rng(5 + axis);
  const b = new GraphBuilder("pick");
  const x = b.input("x", { dtype: "f32", shape: shape.map((n) => constant(n)) });
  const at = b.input("at", { dtype: "i64", shape: [constant(17)] });
  const graph = b.finish([b.applyNumber("mul", b.node("gather", [x, at], { axis }), 3)]);
  const data = Array.from({ length: shape[0] * shape[1] }, () => Math.fround(rng.normal()));
  const picked = Array.from({ length: 17 }, (_, i) => BigInt((i * 5) % 9) - (i % 2 ? 9n : 0n));
  const inputs = [refTensor("f32", shape, data), refTensor("i64", [17], picked)];
  const target = targets.get("wasm")!;
  const { plan, regions, nests, model } = unwrap(
    compileModel({ graph, weights: noWeights }, { target, threads: 1 }),
  );
  const directives = regions.flatMap((r) => r.scheduled.schedule.directives);
  expect(directives.some((d) => d.kind === "vectorize")).toBe(inLanes);
  const features = { ...probeWasmFeatures(), threads: false };
  const session = unwrap(
    createWasmSession(plan.program, {
      weight: weightReader(model),
      threads: 1,
      features,
      host: nodeWorkerHost,
    }),
  );
  const feeds = { x: fromRef(inputs[0]!), at: fromRef(inputs[1]!) };
  const outputs = unwrap(session.run(feeds));
  const found = numbersOf(toRef(outputs[nests.outputs[0]!]!));
  const want = numbersOf(unwrap(runGraph(graph, inputs))[0]!);
  expect([...found]).toEqual([...want].map(Math.fround));
  session.dispose();
});
