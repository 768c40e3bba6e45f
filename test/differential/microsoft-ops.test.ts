/** Operators of com.microsoft: import and oracle against onnxruntime-node on random inputs. */
import { expect, test } from "vitest";
import { worstDifference } from "../../bench/sessions/compare.ts";
import { oracleRuntime } from "../../bench/sessions/oracle.ts";
import { ortNodeRuntime } from "../../bench/sessions/ort-node.ts";
import type { Tensors } from "../../bench/sessions/session.ts";
import { type NodeSpec, type ValueSpec, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { Rng } from "../../src/support/rng.ts";

interface Case {
  readonly node: Omit<NodeSpec, "inputs" | "outputs" | "domain"> & { readonly domain?: string };
  /** Shapes of the operands; an absent one is undefined. */
  readonly operands: readonly (readonly number[] | undefined)[];
  readonly outputs?: readonly string[];
}

const cases: readonly Case[] = [
  { node: { op: "Gelu" }, operands: [[3, 5]] },
  { node: { op: "BiasGelu" }, operands: [[3, 5], [5]] },
  { node: { op: "FastGelu" }, operands: [[3, 5], [5]] },
  { node: { op: "FastGelu" }, operands: [[3, 5]] },
  { node: { op: "QuickGelu", attributes: { alpha: 1.3 } }, operands: [[3, 5]] },
  {
    node: { op: "FusedMatMul", attributes: { transA: 1n, transB: 1n, alpha: 0.5 } },
    operands: [
      [2, 6, 3],
      [2, 4, 6],
    ],
  },
  {
    node: { op: "SkipLayerNormalization", attributes: { epsilon: 1e-5 } },
    operands: [[2, 3, 8], [2, 3, 8], [8], [8], [8]],
    outputs: ["y", "", "", "sum"],
  },
  {
    node: { op: "SkipSimplifiedLayerNormalization", attributes: { epsilon: 1e-5 } },
    operands: [[2, 3, 8], [2, 3, 8], [8]],
    outputs: ["y", "", "", "sum"],
  },
  {
    node: {
      op: "SimplifiedLayerNormalization",
      domain: "",
      attributes: { epsilon: 1e-5, axis: -1n },
    },
    operands: [[2, 3, 8], [8]],
  },
  {
    node: { op: "MultiHeadAttention", attributes: { num_heads: 2n } },
    operands: [[2, 3, 8], [2, 5, 8], [2, 5, 8], [24], undefined, [2, 2, 3, 5]],
  },
  {
    node: { op: "MultiHeadAttention", attributes: { num_heads: 2n, scale: 0.3 } },
    operands: [
      [1, 3, 8],
      [1, 3, 8],
      [1, 3, 8],
      undefined,
      undefined,
      undefined,
      [1, 2, 4, 4],
      [1, 2, 4, 4],
    ],
    outputs: ["y", "key", "value"],
  },
];

test.each(cases.map((c, i) => [c.node.op, i] as const))("%s (%i)", async (_op, i) => {
  const { node, operands, outputs = ["y"] } = cases[i]!;
  const rng = new Rng(i);
  const names = operands.map((shape, o) => (shape ? `x${o}` : ""));
  const inputs = operands.flatMap((shape, o): ValueSpec[] =>
    shape ? [{ name: names[o]!, dtype: "f32", shape }] : [],
  );
  const bytes = writeModel({
    opset: 17,
    domains: { "com.microsoft": 1 },
    inputs,
    outputs: outputs
      .filter((name) => name !== "")
      .map((name) => ({ name, dtype: "f32" as const, shape: rankOf(name, operands) })),
    nodes: [{ domain: "com.microsoft", ...node, inputs: names, outputs }],
  });
  const feeds: Tensors = Object.fromEntries(
    inputs.map(({ name, shape }) => {
      const dims = shape as readonly number[];
      const count = dims.reduce((a, b) => a * b, 1);
      const data = Float32Array.from({ length: count }, () => rng.normal());
      return [name, { type: "float32", dims, data }];
    }),
  );
  const [ours, theirs] = await Promise.all(
    [oracleRuntime, ortNodeRuntime(1)].map(async (runtime) => {
      const session = await runtime.open(bytes);
      const found = await session.run(feeds);
      await session.release();
      return found;
    }),
  );
  expect(worstDifference(ours!, theirs!)).toBeLessThan(2e-5);
});

/** Extents that onnxruntime infers itself. */
function rankOf(name: string, operands: Case["operands"]): readonly null[] {
  const rank = name === "key" || name === "value" ? 4 : operands[0]!.length;
  return new Array<null>(rank).fill(null);
}
