/** Rules from a file: bad ones end in a diagnostic that names them, and the model is what it was. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { tensorOf, writeModel } from "../frontend/onnx/model-writer.ts";
import { type Captured, runCaptured } from "./run-captured.test-support.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-rules-"));
  const scalar = (x: number) => tensorOf("f32", [], Float32Array.of(x));
  const model = writeModel({
    opset: 17,
    inputs: [{ name: "x", dtype: "f32", shape: [8, 8] }],
    outputs: ["y"],
    weights: { low: scalar(-200), lower: scalar(-100) },
    nodes: [
      { op: "Add", inputs: ["x", "x"], outputs: ["a"] },
      { op: "Max", inputs: ["a", "low"], outputs: ["b"] },
      { op: "Max", inputs: ["b", "lower"], outputs: ["y"] },
    ],
  });
  writeFileSync(join(folder, "m.onnx"), model);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function wavetile(...argv: string[]): Promise<Captured> {
  return runCaptured(argv);
}

function written(rules: unknown): string {
  const path = join(folder, "rules.json");
  writeFileSync(path, JSON.stringify(rules));
  return path;
}

const rule = (name: string, left: string, right: string, where?: string) => ({
  name,
  numerics: "reassociates",
  left,
  right,
  ...(where !== undefined && { where }),
});

it.each([
  ["EGR001", rule("odd", "(negate ?x)", "?x")],
  ["EGR002", rule("open", "(add ?x ?x)", "?y")],
  ["EGR003", rule("rare", "(max ?x ?c)", "?x", "all(c, -100); whole(x); float(x)")],
  ["EGR004", rule("endless", "(add ?x ?y)", "(add (neg (neg ?x)) ?y)")],
  ["EGR006", rule("lie", "(add ?x ?y)", "(add ?x ?x)")],
])("%s names the rule, and the model is compiled as it was given", async (code, bad) => {
  const model = join(folder, "m.onnx");
  const graph = ["inspect", model, "--graph", "--target", "wasm"];
  const rules = ["--rewrite", "on", "--rules", written([bad])];
  const [plain, rewritten] = [await wavetile(...graph), await wavetile(...graph, ...rules)];
  expect(rewritten.exit).toBe(0);
  expect(rewritten.err).toContain(`warning ${code}`);
  expect(rewritten.err).toContain(`rule "${bad.name}"`);
  expect(rewritten.out).toBe(plain.out);
  const explained = await wavetile("explain", model, "--rewrite", ...rules.slice(2));
  expect(explained.exit).toBe(0);
  expect(explained.out).toContain("which is kept");
  const file = join(folder, "out.onnx");
  const exported = await wavetile("export", model, "--onnx", file, ...rules);
  expect(exported.exit).toBe(0);
  const again = join(folder, "plain.onnx");
  await wavetile("export", model, "--onnx", again, "--rewrite", "off");
  expect(readFileSync(file).equals(readFileSync(again))).toBe(true);
});

it("refuses a file that is no list of rules, and rules where nothing is rewritten", async () => {
  const model = join(folder, "m.onnx");
  const text = await wavetile("inspect", model, "--rewrite", "on", "--rules", written({}));
  expect(text).toMatchObject({ exit: 2, err: expect.stringContaining("CLI001") });
  const off = await wavetile("inspect", model, "--rules", written([]));
  expect(off).toMatchObject({ exit: 2, err: expect.stringContaining("--rewrite on") });
});
