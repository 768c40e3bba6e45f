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
  const made = await tried(name, nodes);
  if (!made.ok) throw new Error(JSON.stringify(made.diagnostics));
  return made.value;
}

function tried(
  name: string,
  nodes: readonly NodeSpec[],
  more: { region?: string; svg?: string } = {},
) {
  const shapes = { x: [64, 4], y: [4, 64], z: [64, 4] };
  const inputs = Object.entries(shapes).map(([x, shape]) => ({
    name: x,
    dtype: "f32" as const,
    shape,
  }));
  const model = join(folder, name);
  const weights = { one: tensorOf("f32", [1], Float32Array.of(1)) };
  writeFileSync(model, writeModel({ opset: 17, inputs, outputs: ["r"], weights, nodes }));
  return explainModel(
    { model, target: "wasm", shape: [], state: [], rewrite: true, ...more },
    context,
  );
}

it.each([{ region: "S0" }, { svg: "pictures" }])(
  "refuses what tells of schedules: %o",
  async (more) => {
    const refused = await tried("relu.onnx", [{ op: "Relu", inputs: ["x"], outputs: ["r"] }], more);
    expect(refused.ok ? [] : refused.diagnostics).toMatchObject([
      { code: "CLI001", at: `--${Object.keys(more)[0]}` },
    ]);
  },
);

it("names the chain of rules, prices before and after, and the graph that is kept", async () => {
  const { text, data } = await explained("chain.onnx", [
    { op: "MatMul", name: "first", inputs: ["x", "y"], outputs: ["xy"] },
    { op: "MatMul", name: "second", inputs: ["xy", "z"], outputs: ["r"] },
  ]);
  expect(text).toMatch(
    /^import [\d.]+ ms, rewritten [\d.]+ ms \([\d.]+ % less\), as scheduled for 2 threads/,
  );
  expect(text).toContain("(kept)");
  expect(text).toMatch(/rule +uses +first for\n +\S+ +\d+ +second/);
  expect(text).toContain("at the price that rewriting goes by");
  expect(text).toMatch(/cheapest term [\d.]+ ms .*, none is below [\d.]+ \(gap 0\.0 %\)/);
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
  expect(text).toMatch(/rule \(to [\d.]+\) +uses +first for\n(?: .*\n)*? +transpose-into-right +1/);
});

it("says that the import is kept where nothing is cheaper", async () => {
  const { text, data } = await explained("plain.onnx", [
    { op: "Tanh", inputs: ["x"], outputs: ["r"] },
  ]);
  expect(text).toContain("which is kept");
  expect(data.keptPriceNs).toBe(data.importPriceNs);
});

it("explains the stages of a model in which data decide sizes, each by itself", async () => {
  const { text, data } = await explained("staged.onnx", [
    { op: "MatMul", inputs: ["x", "y"], outputs: ["xy"] },
    { op: "MatMul", inputs: ["xy", "z"], outputs: ["xyz"] },
    { op: "NonZero", inputs: ["xyz"], outputs: ["places"] },
    { op: "Add", inputs: ["places", "places"], outputs: ["r"] },
  ]);
  expect(text).toMatch(/^data decide sizes: 3 stages .*; 1 are as they are \(nonZero\)/);
  expect(text).toMatch(/stage 1, 2 nodes:\nimport [\d.]+ ms, rewritten [\d.]+ ms/);
  expect(text).toContain("stage 3, ");
  expect(data).toMatchObject({ stages: [{}, { op: "nonZero" }, {}] });
});

it("refuses what no stages help", async () => {
  const refused = await tried("sampled.onnx", [
    { op: "RandomNormalLike", inputs: ["nothing"], outputs: ["r"] },
  ]);
  expect(refused.ok).toBe(false);
});
