/** Values of inputs that decide what a model is, said in the command that needs them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runCaptured } from "../cli/run-captured.test-support.ts";
import { type NodeSpec, type ValueSpec, writeModel } from "../frontend/onnx/model-writer.ts";
import type { DType } from "../semantics/dtype.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-values-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const domains = { "com.microsoft": 1 };

function written(
  name: string,
  inputs: readonly ValueSpec[],
  outputs: readonly string[],
  node: NodeSpec,
): string {
  const path = join(folder, name);
  const bytes = writeModel({ opset: 21, domains, inputs, outputs, weights: {}, nodes: [node] });
  writeFileSync(path, bytes);
  return path;
}

const half = (name: string, ...shape: readonly number[]): ValueSpec => ({
  name,
  dtype: "f16",
  shape,
});
const decoder = written(
  "decoder.onnx",
  [
    ...[half("q", 1, 1, 128), half("k", 1, 1, 64), half("v", 1, 1, 64)],
    ...[half("keys", 1, 1, 31, 64), half("values", 1, 1, 31, 64)],
    { name: "lengths", dtype: "i32", shape: [1] },
    { name: "total_sequence_length", dtype: "i32", shape: [] },
  ],
  ["y", "presentKeys", "presentValues"],
  {
    op: "GroupQueryAttention",
    domain: "com.microsoft",
    inputs: ["q", "k", "v", "keys", "values", "lengths", "total_sequence_length"],
    outputs: ["y", "presentKeys", "presentValues"],
    attributes: { num_heads: 2n, kv_num_heads: 1n },
  },
);

describe("numbers of --value", () => {
  it("are what explain and inspect want of a decoder's length, in one command", async () => {
    const refused = await runCaptured(["explain", decoder, "--target", "wasm"]);
    expect(refused.err).toMatch(/ONX013[\s\S]*--value/);
    const value = ["--value", "total_sequence_length=32"];
    for (const words of [["explain"], ["inspect", "--regions"]]) {
      const [command, ...more] = words;
      const told = await runCaptured([command!, decoder, "--target", "wasm", ...value, ...more]);
      expect(told).toMatchObject({
        exit: 0,
        out: expect.stringMatching(/^region .*(states|statements)/m),
      });
    }
  });

  it("are enough for a GPU, whose kernels have keys and values of their own", async () => {
    const words = ["explain", decoder, "--target", "h200", "--value", "total_sequence_length=32"];
    expect(await runCaptured(words)).toMatchObject({ exit: 0 });
  });

  const repeated = (dtype: DType, shape: readonly (number | string)[]) =>
    written(
      "repeated.onnx",
      [
        { name: "x", dtype: "f32", shape: [2, 3] },
        { name: "n", dtype, shape },
      ],
      ["y"],
      { op: "Tile", inputs: ["x", "n"], outputs: ["y"] },
    );
  const inspected = (path: string, text: string) =>
    runCaptured(["inspect", path, "--target", "wasm", "--value", `n=${text}`]);

  it("are one for each element or one for all, and what an open extent leaves", async () => {
    const shapeOf = async (shape: readonly (number | string)[], text: string) =>
      /-> \(y\)[\s\S]*?y = .*: f32(\[\d+, \d+\])/.exec(
        (await inspected(repeated("i64", shape), text)).out,
      )?.[1];
    expect(await shapeOf([2], "2,4")).toBe("[4, 12]");
    expect(await shapeOf([2], "3")).toBe("[6, 9]");
    expect(await shapeOf(["N"], "2,4")).toBe("[4, 12]");
  });

  it.each([
    ["i64", [2], "1,2,3", "3 numbers are no i64[2]"],
    ["i64", [2], "1,2.5", "2.5 is no i64"],
    ["i64", [2], "1,true", "true is no i64"],
    ["i64", [2], "1,9223372036854775808", "9223372036854775808 is no i64"],
    ["i64", ["N", "M"], "1,2", "2 numbers are no i64[N, M]"],
  ] as const)("are refused where they are none of the input: %s%j = %s", async (...given) => {
    const [dtype, shape, text, message] = given;
    const { exit, err } = await inspected(repeated(dtype, shape), text);
    expect([exit, err]).toEqual([2, expect.stringContaining(message)]);
    expect(err).toContain("CLI001");
  });

  it("name inputs of the model", async () => {
    const { err } = await runCaptured(["inspect", repeated("i64", [2]), "--value", "m=1"]);
    expect(err).toMatch(/ONX015[\s\S]*no input "m"/);
  });
});
