import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { importOnnx } from "../../../src/frontend/onnx/import/import-model.ts";
import { readModelFile as decodeModel } from "../../../src/frontend/onnx/model-file.ts";
import { tensorOf, writeModel } from "../../../src/frontend/onnx/model-writer.ts";
import { readModelFile } from "../../../src/runtime/files/model-source.ts";
import { unwrap } from "../../sessions/import-hints.ts";
import { ortNodeRuntime } from "../../sessions/ort-node.ts";
import { buildBert, miniLm } from "./bert.ts";
import { exportModel } from "./export-model.ts";
import { seedLightModel, unpackLightModels } from "./light.ts";
import type { Precision } from "./model-builder.ts";
import { fillNormal, seedOf } from "./normal-fill.ts";
import type { Recipe } from "./recipes.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "export-test-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const small = { ...miniLm, layers: 1, width: 48, inner: 96, vocabulary: 50, positions: 16 };
const recipe = (opset: number, precision: Precision, isDynamic = false): Recipe => ({
  opset,
  precision,
  build: (b) => buildBert(b, { ...small, isDynamic }),
});

describe("exported models", () => {
  test("are the same bytes each time, with large weights beside the file", () => {
    const wanted = recipe(17, "f32");
    const first = exportModel("small", wanted, join(folder, "a"));
    const second = exportModel("small", wanted, join(folder, "b"));
    expect(readFileSync(first)).toEqual(readFileSync(second));
    expect(readFileSync(`${first}_data`)).toEqual(readFileSync(`${second}_data`));
    const written = statSync(first).mtimeMs;
    expect(exportModel("small", wanted, join(folder, "a"))).toBe(first);
    expect(statSync(first).mtimeMs).toBe(written);
  });

  test.each([
    [14, "f32", false],
    [14, "f16", false],
    [14, "f16-converted", false],
    [17, "f16", false],
    [17, "f32", true],
  ] as const)(
    "of operator set %i in %s, quantised when they run: %s, import and run in onnxruntime",
    async (opset, precision, isDynamic) => {
      const path = exportModel("small", recipe(opset, precision, isDynamic), folder);
      const { bytes, readExternal } = unwrap(readModelFile(path));
      expect(unwrap(importOnnx(bytes, { readExternal })).inputNames).toHaveLength(3);
      const session = await ortNodeRuntime(1).open(bytes, { path });
      const ids = BigInt64Array.of(1n, 7n, 3n);
      const input = (data: BigInt64Array) => ({ type: "int64", dims: [1, 3], data }) as const;
      const outputs = await session.run({
        input_ids: input(ids),
        attention_mask: input(BigInt64Array.of(1n, 1n, 0n)),
        token_type_ids: input(new BigInt64Array(3)),
      });
      await session.release();
      const values = outputs.last_hidden_state!.data as Float32Array;
      const square = values.reduce((sum, x) => sum + x * x, 0) / values.length;
      expect(Math.sqrt(square)).toBeCloseTo(1, 1);
    },
  );
});

describe("light models", () => {
  const shapeOf = (name: string, ...shape: readonly number[]) =>
    [name, tensorOf("i64", [shape.length], BigInt64Array.from(shape, BigInt))] as const;
  const filled = (name: string) => ({
    op: "ConstantOfShape",
    inputs: [`${name}_shape`],
    outputs: [name],
  });
  const light = writeModel({
    opset: 9,
    inputs: [{ name: "x", dtype: "f32", shape: [1, 8, 6, 6] }],
    outputs: [{ name: "y", dtype: "f32", shape: [1, 64, 6, 6] }],
    weights: Object.fromEntries([
      shapeOf("w_shape", 64, 8, 3, 3),
      ...["scale", "bias", "mean", "variance"].map((name) => shapeOf(`${name}_shape`, 64)),
    ]),
    nodes: [
      ...["w", "scale", "bias", "mean", "variance"].map(filled),
      { op: "Conv", inputs: ["x", "w"], outputs: ["c"], attributes: { pads: [1n, 1n, 1n, 1n] } },
      {
        op: "BatchNormalization",
        inputs: ["c", "scale", "bias", "mean", "variance"],
        outputs: ["y"],
      },
    ],
  });

  test("take drawn weights for their constants and keep what the network does", () => {
    const parts: Uint8Array[] = [];
    const sink = {
      location: "data",
      append: (bytes: Uint8Array) =>
        parts.slice(0, parts.push(bytes) - 1).reduce((n, p) => n + p.length, 0),
    };
    const seeded = unwrap(decodeModel(seedLightModel(unwrap(decodeModel(light)), sink, 1)));
    expect(seeded.graph!.node.map((n) => n.opType)).toEqual(["Conv", "BatchNormalization"]);
    expect(seeded.graph!.initializer.map((t) => t.name).sort()).toEqual([
      "bias",
      "mean",
      "scale",
      "variance",
      "w",
    ]);
    const weights = new Float32Array(parts[0]!.slice().buffer);
    expect(weights).toHaveLength(64 * 72);
    const square = weights.reduce((sum, x) => sum + x * x, 0) / weights.length;
    expect(square * 72).toBeCloseTo(1, 1);
    const variance = seeded.graph!.initializer.find((t) => t.name === "variance")!;
    const values = new Float32Array(variance.rawData.slice().buffer);
    expect(Math.min(...values)).toBeGreaterThan(0.8);
  });

  test("are refused where the archive is no archive", () => {
    const path = join(folder, "no-archive");
    writeFileSync(path, "nothing");
    const result = unpackLightModels(path, join(folder, "into"));
    expect(result.ok ? [] : result.diagnostics.map((d) => d.code)).toEqual(["FET005"]);
  });
});

test("normal numbers have the mean and deviation asked for, by name and seed", () => {
  const values = new Float32Array(100_001);
  fillNormal(values, { mean: 2, deviation: 0.5, seed: seedOf("a", 1) });
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
  expect(mean).toBeCloseTo(2, 2);
  expect(Math.sqrt(variance)).toBeCloseTo(0.5, 2);
  expect(seedOf("a", 1)).not.toBe(seedOf("b", 1));
  expect(seedOf("a", 1)).not.toBe(seedOf("a", 2));
});
