/** `wavetile verify` of models that compute in 16 bits, which programs do in wider registers. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tensor } from "../commands/library/tensor.ts";
import { writeModel } from "../frontend/onnx/model-writer.ts";
import { runCaptured } from "./run-captured.test-support.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-verify-halves-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** ONNX's numbers of element types. */
const types = { f16: 10n, bf16: 16n, f32: 1n } as const;

/** y = op(x) in a type of 16 bits, as f32. */
function model(type: "f16" | "bf16", op: string): string {
  const path = join(folder, `${op}-${type}.onnx`);
  const bytes = writeModel({
    name: "m",
    opset: 20,
    inputs: [{ name: "x", dtype: "f32", shape: [7, 33] }],
    outputs: ["y"],
    weights: { w: tensor("f32", [33], new Float32Array(33).fill(0.3)) },
    nodes: [
      { op: "Cast", inputs: ["x"], outputs: ["h"], attributes: { to: types[type] } },
      { op: "Cast", inputs: ["w"], outputs: ["wh"], attributes: { to: types[type] } },
      { op: "Mul", inputs: ["h", "wh"], outputs: ["m"] },
      { op, inputs: ["m"], outputs: ["r"] },
      { op: "Cast", inputs: ["r"], outputs: ["y"], attributes: { to: types.f32 } },
    ],
  });
  writeFileSync(path, bytes);
  return path;
}

describe.each(["f16", "bf16"] as const)("a model in %s", (type) => {
  it.each(["Softmax", "Gelu", "ReduceMean", "Sigmoid"])(
    "agrees, and not with anything: %s",
    async (op) => {
      for (const seed of [1, 2, 3]) {
        const args = ["verify", model(type, op), "--seed", String(seed), "--json"];
        const { exit, out } = await runCaptured(args);
        const { ok, data } = JSON.parse(out);
        expect({ exit, ok }).toEqual({ exit: 0, ok: true });
        const [{ tolerance }] = data.outputs;
        expect(tolerance).toBeGreaterThan(2 ** -11);
        expect(tolerance).toBeLessThan(type === "f16" ? 0.01 : 0.08);
      }
    },
  );
});
