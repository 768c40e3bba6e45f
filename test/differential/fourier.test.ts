/** Fourier transforms as matrix products against the reference, and as WebAssembly. */
import { describe, expect, it } from "vitest";
import { compileModel } from "../../src/compile.ts";
import { GraphBuilder } from "../../src/graph/builder.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { weightReader } from "../../src/graph/prepare.ts";
import { tensorType } from "../../src/graph/tensor-type.ts";
import { expandFourier } from "../../src/graph/transforms/expand-fourier.ts";
import { verifyGraph } from "../../src/graph/verify.ts";
import { noWeights, runGraph } from "../../src/interp/graph.ts";
import { probeWasmFeatures } from "../../src/runtime/wasm/features.ts";
import { nodeWorkerHost } from "../../src/runtime/wasm/node-worker-host.ts";
import { createWasmSession } from "../../src/runtime/wasm/session.ts";
import { constant } from "../../src/semantics/index-expr.ts";
import { fromRef, type RefTensor, refTensor, toRef } from "../../src/semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
}

interface Case {
  readonly shape: readonly number[];
  readonly axis: number;
  readonly length: number;
  readonly inverse: boolean;
  readonly onesided: boolean;
}

function transform({ shape, axis, length, inverse, onesided }: Case): Graph {
  const b = new GraphBuilder("fourier");
  const x = b.input("x", tensorType("f32", ...shape));
  const attrs = { axis, inverse, onesided, length: constant(length) };
  return b.finish([b.node("dft", [x], attrs)]);
}

function input(shape: readonly number[], rng: Rng): RefTensor {
  const count = shape.reduce((n, d) => n * d, 1);
  return refTensor(
    "f32",
    shape,
    Array.from({ length: count }, () => Math.fround(rng.normal())),
  );
}

function expectClose(found: RefTensor, want: RefTensor): void {
  expect(found.shape).toEqual(want.shape);
  for (const [i, value] of Array.from(want.data, Number).entries()) {
    expect(Number(found.data[i])).toBeCloseTo(value, 4);
  }
}

const flags = [false, true];
const extents = [
  { shape: [2, 1, 2], axis: 1, length: 1 },
  { shape: [2, 8, 2], axis: 1, length: 8 },
  { shape: [2, 9, 2], axis: 1, length: 9 },
  { shape: [3, 5, 4, 2], axis: 1, length: 8 },
  { shape: [7, 3, 2], axis: 0, length: 6 },
];
const cases: readonly Case[] = extents.flatMap((e) =>
  flags.flatMap((inverse) => flags.map((onesided) => ({ ...e, inverse, onesided }))),
);
const real = { shape: [2, 20, 1], axis: 1, length: 20, inverse: false } as const;

describe("a Fourier transform as a product", () => {
  it("is the transform: padded, cut, completed, real and complex", () => {
    const rng = new Rng(1);
    for (const c of [...cases, { ...real, onesided: true }, { ...real, onesided: false }]) {
      const graph = transform(c);
      const after = expandFourier(graph, { elements: 4096 }).graph;
      expect(verifyGraph(after)).toEqual([]);
      expect(after.nodes.map((n) => n.op).filter((op) => op !== "slice")).toEqual(["contract"]);
      const x = input(c.shape, rng);
      expectClose(unwrap(runGraph(after, [x]))[0]!, unwrap(runGraph(graph, [x]))[0]!);
    }
  });

  it("does not look at what is cut", () => {
    const graph = transform({
      shape: [1, 3, 1],
      axis: 1,
      length: 2,
      inverse: false,
      onesided: true,
    });
    const { graph: after } = expandFourier(graph, { elements: 4096 });
    const x = refTensor("f32", [1, 3, 1], [1, 2, Infinity]);
    expectClose(unwrap(runGraph(after, [x]))[0]!, refTensor("f32", [1, 2, 2], [3, 0, -1, 0]));
  });

  it("stays a transform when its matrix would be large", () => {
    const graph = transform({ ...real, onesided: true });
    const { graph: after } = expandFourier(graph, { elements: 20 * 11 * 2 - 1 });
    expect(after.nodes.map((n) => n.op)).toEqual(["dft"]);
  });

  it.each([{ ...real, onesided: true }, cases[7]!, cases[13]!])("compiles: %j", async (c) => {
    const graph = transform(c);
    const x = input(c.shape, new Rng(2));
    const target = targets.get("wasm")!;
    const { model, nests, plan } = unwrap(compileModel({ graph, weights: noWeights }, { target }));
    const features = { ...probeWasmFeatures(), threads: false };
    const weight = weightReader(model);
    const session = unwrap(
      createWasmSession(plan.program, { weight, threads: 1, features, host: nodeWorkerHost }),
    );
    const outputs = unwrap(session.run({ x: fromRef(x) }));
    expectClose(toRef(outputs[nests.outputs[0]!]!), unwrap(runGraph(graph, [x]))[0]!);
    await session.dispose();
  });
});
