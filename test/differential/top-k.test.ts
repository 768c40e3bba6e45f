/** topK as nests and as WebAssembly against the oracle: order, ties, NaN, signed zeros, edge extents. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { toIndex } from "../../src/semantics/index-expr.ts";
import { fromRef, refTensor, refTensorsEqual, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

interface Case {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly axis: number;
  readonly k: number;
  /** The extent of the axis, and k, are symbols. */
  readonly symbolic?: boolean;
}

/** Few different values, so that many are equal; floats also NaN, infinities and both zeros. */
function draw(dtype: DType, rng: Rng): number {
  if (dtype !== "f32") return rng.integer(dtype === "u8" ? 0 : -3, 3);
  return rng.pick([Number.NaN, Infinity, -Infinity, 0, -0, 1, -1.5, 2.25, -3]);
}

async function check({ dtype, shape, axis, k, symbolic }: Case, largest: boolean): Promise<void> {
  const b = new GraphBuilder("order");
  const dims = shape.map((d, i) => (symbolic && i === axis ? b.symbol("N", 0, 40) : toIndex(d)));
  const x = b.input("x", { dtype, shape: dims });
  const taken = symbolic ? dims[axis]! : toIndex(k);
  const graph = b.finish(b.nodes("topK", [x], { axis, k: taken, largest, sorted: true }));
  const rng = new Rng(k + 31 * axis);
  const count = shape.reduce((n, d) => n * d, 1);
  const input = refTensor(
    dtype,
    shape,
    Array.from({ length: count }, () => draw(dtype, rng)),
  );
  const target = targets.get("wasm")!;
  const { model, nests, plan } = unwrap(compileModel({ graph, weights: noWeights }, { target }));
  const features = { ...probeWasmFeatures(), threads: false };
  const weight = weightReader(model);
  const session = unwrap(
    createWasmSession(plan.program, { weight, threads: 1, features, host: nodeWorkerHost }),
  );
  const outputs = unwrap(session.run({ x: fromRef(input) }));
  for (const [o, want] of unwrap(runGraph(graph, [input])).entries()) {
    const found = toRef(outputs[nests.outputs[o]!]!);
    expect(refTensorsEqual(found, want), `${found.data} instead of ${want.data}`).toBe(true);
  }
  await session.dispose();
}

describe("topK", () => {
  const cases: readonly Case[] = [
    { dtype: "f32", shape: [1], axis: 0, k: 1 },
    { dtype: "f32", shape: [37], axis: 0, k: 37 },
    { dtype: "f32", shape: [3, 17, 5], axis: 1, k: 4 },
    { dtype: "f32", shape: [6, 33], axis: 1, k: 1 },
    { dtype: "f32", shape: [9, 4], axis: 0, k: 9 },
    { dtype: "i32", shape: [4, 19], axis: 1, k: 7 },
    { dtype: "u8", shape: [4, 19], axis: 1, k: 19 },
    { dtype: "f32", shape: [2, 21], axis: 1, k: 21, symbolic: true },
    { dtype: "f32", shape: [2, 1], axis: 1, k: 1, symbolic: true },
  ];

  it.each(cases)("%j", async (c) => {
    await check(c, true);
    await check(c, false);
  });
});
