/** Rules that approximate are used when they are asked for, and their bound is part of the verdict. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { tensorOf, writeModel } from "../frontend/onnx/model-writer.ts";
import type { RewriteMode } from "../rewrite/families/index.ts";
import { verifyModel } from "./actions/verify.ts";
import type { CommandContext } from "./command.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-approximate-"));
  const scalar = (x: number) => tensorOf("f32", [], Float32Array.of(x));
  const gelu = writeModel({
    opset: 17,
    inputs: [{ name: "x", dtype: "f32", shape: [64, 256] }],
    outputs: [{ name: "y", dtype: "f32", shape: [64, 256] }],
    weights: { root: scalar(Math.SQRT2), one: scalar(1), half: scalar(0.5) },
    nodes: [
      { op: "Div", inputs: ["x", "root"], outputs: ["a"] },
      { op: "Erf", inputs: ["a"], outputs: ["b"] },
      { op: "Add", inputs: ["b", "one"], outputs: ["c"] },
      { op: "Mul", inputs: ["x", "c"], outputs: ["d"] },
      { op: "Mul", inputs: ["d", "half"], outputs: ["y"] },
    ],
  });
  writeFileSync(join(folder, "gelu.onnx"), gelu);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const context: CommandContext = {
  now: () => 0,
  progress: () => {},
  interrupted: () => new AbortController().signal,
};

async function verify(rewrite: RewriteMode) {
  const args = { shape: [], state: [], value: [], target: "wasm", seed: 1, threads: 1 };
  const found = await verifyModel(
    { ...args, model: join(folder, "gelu.onnx"), rewrite, against: "oracle", budget: 60 },
    context,
  );
  if (!found.ok) throw new Error(JSON.stringify(found.diagnostics));
  return found.value;
}

it("grants what approximating rules may have added, and only that", async () => {
  const exact = await verify("on");
  const near = await verify("approximate");
  expect(exact.data).not.toHaveProperty("errorBound");
  const { errorBound, outputs } = near.data as unknown as {
    errorBound: number;
    outputs: { tolerance: number; worst: { relative: number } }[];
  };
  expect(errorBound).toBeGreaterThan(1e-4);
  expect(outputs[0]!.tolerance).toBeGreaterThan(errorBound);
  // The program is not the model's own: without the bound it would be refused.
  expect(outputs[0]!.worst.relative).toBeGreaterThan(outputs[0]!.tolerance - errorBound);
  expect(near.failed).toEqual([]);
  expect(near.text).toContain("rules that approximate");
});
