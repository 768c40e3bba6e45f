/** `explain --rewrite` tells of the graphs that the search was given what compiling does with them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type NodeSpec, tensorOf, writeModel } from "../frontend/onnx/model-writer.ts";
import { explainModel } from "./actions/explain.ts";
import type { CommandContext } from "./command.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-explain-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const context: CommandContext = {
  now: () => 0,
  progress: () => {},
  interrupted: () => new AbortController().signal,
};

async function explained(name: string, nodes: readonly NodeSpec[]) {
  const shapes = { x: [64, 4], y: [4, 64], z: [64, 4] };
  const inputs = Object.entries(shapes).map(([x, shape]) => ({
    name: x,
    dtype: "f32" as const,
    shape,
  }));
  const model = join(folder, name);
  const weights = { one: tensorOf("f32", [1], Float32Array.of(1)) };
  writeFileSync(model, writeModel({ opset: 17, inputs, outputs: ["r"], weights, nodes }));
  const made = await explainModel(
    { model, target: "wasm", shape: [], state: [], rewrite: true },
    context,
  );
  if (!made.ok) throw new Error(JSON.stringify(made.diagnostics));
  return made.value;
}

it("names the chain of rules, prices before and after, and the graph that is kept", async () => {
  const { text, data } = await explained("chain.onnx", [
    { op: "MatMul", inputs: ["x", "y"], outputs: ["xy"] },
    { op: "MatMul", inputs: ["xy", "z"], outputs: ["r"] },
  ]);
  expect(text).toMatch(
    /^import [\d.]+ ms, rewritten [\d.]+ ms \([\d.]+ % less\), as scheduled for 2 threads/,
  );
  expect(text).toContain("(kept)");
  expect(text).toMatch(/rule +uses/);
  expect(text).toContain("at the price that rewriting goes by");
  expect(data.keptPriceNs).toBeLessThan(data.importPriceNs as number);
});

it("names the rules that lead to what is not taken of a part that stays", async () => {
  const { text } = await explained("kept.onnx", [
    { op: "MatMul", inputs: ["x", "y"], outputs: ["xy"] },
    { op: "Transpose", inputs: ["z"], outputs: ["turned"] },
    { op: "MatMul", inputs: ["x", "turned"], outputs: ["xz"] },
    { op: "Mul", inputs: ["xy", "xz"], outputs: ["r"] },
  ]);
  expect(text).toMatch(/stays at [\d.]+ ms; candidates [\d.]+/);
  expect(text).toMatch(/rule \(to [\d.]+\) +uses\n +transpose-into-right +1/);
});

it("says that the import is kept where nothing is cheaper", async () => {
  const { text, data } = await explained("plain.onnx", [
    { op: "Tanh", inputs: ["x"], outputs: ["r"] },
  ]);
  expect(text).toContain("which is kept");
  expect(data.keptPriceNs).toBe(data.importPriceNs);
});
