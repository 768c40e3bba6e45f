/** `wavetile verify` on inputs of which the outputs say something, and on such of which they do not. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tensor } from "../commands/library/tensor.ts";
import { unwrap } from "../commands/library/wavetile-error.ts";
import { writeModel } from "../frontend/onnx/model-writer.ts";
import { readNpy, writeNpy } from "../runtime/files/npy.ts";
import { runCaptured } from "./run-captured.test-support.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-verify-inputs-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** y = op(x - c): the path of a model of an open number of elements. */
function model(op: string, c: number): string {
  const path = join(folder, `${op}${c}.onnx`);
  const bytes = writeModel({
    name: "m",
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: ["N"] }],
    outputs: ["y"],
    weights: { c: tensor("f32", [], Float32Array.of(c)) },
    nodes: [
      { op: "Sub", inputs: ["x", "c"], outputs: ["t"] },
      { op, inputs: ["t"], outputs: ["y"] },
    ],
  });
  writeFileSync(path, bytes);
  return path;
}

function npy(...values: number[]): string {
  const path = join(folder, "x.npy");
  const x = tensor("f32", [values.length], Float32Array.from(values));
  writeFileSync(path, unwrap(writeNpy(x)));
  return `x=${path}`;
}

/** y = a table of five rows at x * factor, where exporters have x count from the end when it is negative. */
function lookUp(factor: number): string {
  const path = join(folder, `table${factor}.onnx`);
  const i32 = (value: number) => tensor("i32", [], Int32Array.of(value));
  const bytes = writeModel({
    name: "m",
    opset: 18,
    inputs: [{ name: "x", dtype: "i32", shape: [8] }],
    outputs: ["y"],
    weights: {
      table: tensor(
        "f32",
        [5, 2],
        Float32Array.from({ length: 10 }, (_, i) => i),
      ),
      n: i32(5),
      zero: i32(0),
      factor: i32(factor),
    },
    nodes: [
      { op: "Mul", inputs: ["x", "factor"], outputs: ["i"] },
      { op: "Less", inputs: ["i", "zero"], outputs: ["less"] },
      { op: "Add", inputs: ["i", "n"], outputs: ["more"] },
      { op: "Where", inputs: ["less", "more", "i"], outputs: ["p"] },
      { op: "Gather", inputs: ["table", "p"], outputs: ["y"] },
    ],
  });
  writeFileSync(path, bytes);
  return path;
}

/** y = softmax over what `mask` leaves of s. */
function attention(): string {
  const path = join(folder, "attention.onnx");
  const f32 = (value: number) => tensor("f32", [], Float32Array.of(value));
  const bytes = writeModel({
    name: "m",
    opset: 18,
    inputs: [
      { name: "s", dtype: "f32", shape: [4, 9] },
      { name: "m", dtype: "i64", shape: [4, 9] },
    ],
    outputs: ["y", "kept"],
    weights: { one: f32(1), low: f32(-3.4028234663852886e38) },
    nodes: [
      { op: "Cast", inputs: ["m"], outputs: ["kept"], attributes: { to: 1n } },
      { op: "Sub", inputs: ["one", "kept"], outputs: ["out"] },
      { op: "Mul", inputs: ["out", "low"], outputs: ["by"] },
      { op: "Add", inputs: ["s", "by"], outputs: ["score"] },
      { op: "Softmax", inputs: ["score"], outputs: ["y"] },
    ],
  });
  writeFileSync(path, bytes);
  return path;
}

async function verify(...options: readonly string[]) {
  const args = ["verify", ...options, "--threads", "1"];
  const { exit, out } = await runCaptured([...args, "--json"]);
  return { exit, document: JSON.parse(out), text: await runCaptured(args) };
}

describe("wavetile verify", () => {
  it("fails where no element is a number, and says how to give inputs (CLI009)", async () => {
    const logs = model("Log", 2);
    for (const against of ["oracle", "onnxruntime"]) {
      const found = await verify(logs, "--shape", "N=6", "--against", against);
      expect(found).toMatchObject({
        exit: 3,
        document: {
          data: { outputs: [{ elements: 6, compared: 0, nan: 6, infinite: 0, agrees: false }] },
          error: { code: "CLI009", help: expect.stringContaining("--input NAME=FILE.npy") },
        },
      });
      expect(found.text.out).toMatch(/0 of 6 .* nothing compared/);
    }
  });

  it("takes inputs from files, and their extents", async () => {
    const given = ["--input", npy(3, 4, 5)];
    for (const against of ["oracle", "onnxruntime"]) {
      const found = await verify(model("Log", 2), ...given, "--against", against);
      expect(found).toMatchObject({
        exit: 0,
        document: { data: { outputs: [{ elements: 3, compared: 3, agrees: true }] }, warnings: [] },
      });
      expect(found.text.out).toMatch(/3 of 3 +yes/);
    }
    const wrong = await verify(model("Log", 2), "--input", npy(3, 4, 5).replace("x=", "z="));
    expect(wrong.document.error.message).toContain("z");
    const long = await verify(model("Log", 2), ...given, "--budget", "1e-12");
    expect(long.document.error).toMatchObject({ code: "CLI001", at: "--input" });
  });

  it("warns where some elements are no numbers, and where all are the same", async () => {
    const some = await verify(model("Log", 0), "--shape", "N=64");
    const { nan, compared } = some.document.data.outputs[0];
    expect([nan > 0, compared > 0, nan + compared]).toEqual([true, true, 64]);
    expect(some).toMatchObject({ exit: 0, document: { warnings: [{ code: "CLI009" }] } });
    const most = await verify(model("Log", 0.75), "--shape", "N=64");
    expect(most.text.out).toContain("in part");
    const zeros = await verify(model("Relu", 2), "--shape", "N=8");
    expect(zeros).toMatchObject({
      exit: 0,
      document: {
        warnings: [
          {
            message:
              "output y: all 8 elements are 0, which says little of the code that makes them",
          },
        ],
      },
    });
  });

  it("draws positions that count from the end within their table", async () => {
    const found = await verify(lookUp(1));
    expect(found).toMatchObject({ exit: 0, document: { data: { outputs: [{ compared: 16 }] } } });
  });

  it("draws masks that leave something, in verify and in run", async () => {
    const found = await verify(attention(), "--against", "onnxruntime");
    expect(found).toMatchObject({
      exit: 0,
      document: { data: { outputs: [{ compared: 36, agrees: true }, { agrees: true }] } },
    });
    const outputs = join(folder, "out");
    const options = ["--random", "--threads", "1", "--output-dir", outputs];
    expect((await runCaptured(["run", attention(), ...options])).exit).toBe(0);
    const kept = unwrap(readNpy(readFileSync(join(outputs, "kept.npy"))));
    const rows = [0, 1, 2, 3].map((i) => Array.from(kept.data.slice(9 * i, 9 * i + 9), Number));
    expect(new Set(rows.flat())).toEqual(new Set([0, 1]));
    expect(rows.map((row) => row[0])).toEqual([1, 1, 1, 1]);
  });

  it("names the inputs that were drawn where a position is out of range", async () => {
    const table = lookUp(100);
    for (const command of ["verify", "bench", "run"]) {
      const random = command === "run" ? ["--random"] : [];
      const { err } = await runCaptured([command, table, ...random, "--threads", "1"]);
      expect(err).toMatch(/^error RUN006/);
      expect(err).toMatch(
        /help: the inputs were drawn at random, among them x: .* by --(value|input) NAME=/,
      );
    }
    const bytes = unwrap(writeNpy(tensor("i32", [8], new Int32Array(8).fill(70))));
    writeFileSync(join(folder, "i.npy"), bytes);
    const fed = ["verify", table, "--input", `x=${join(folder, "i.npy")}`, "--threads", "1"];
    const { err } = await runCaptured(fed);
    expect(err).toContain("help: check the index tensor that is fed to the model");
  });

  it("grants what other roundings come to where results hang on them, and says so", async () => {
    const path = join(folder, "near.onnx");
    const depth = 1024;
    const w = Float32Array.from({ length: depth }, (_, i) => Math.sin(i) + 1);
    const near = w.map((v, i) => v + (i % 7 === 0 ? 1e-5 : 0));
    const bytes = writeModel({
      name: "m",
      opset: 18,
      inputs: [{ name: "x", dtype: "f32", shape: [16, depth] }],
      outputs: ["y"],
      weights: { w: tensor("f32", [depth, 1], w), near: tensor("f32", [depth, 1], near) },
      nodes: [
        { op: "MatMul", inputs: ["x", "w"], outputs: ["a"] },
        { op: "MatMul", inputs: ["x", "near"], outputs: ["b"] },
        { op: "Sub", inputs: ["b", "a"], outputs: ["y"] },
      ],
    });
    writeFileSync(path, bytes);
    const { exit, out } = await runCaptured([
      "verify",
      path,
      "--target",
      "wasm",
      "--seed",
      "1",
      "--json",
    ]);
    const { data } = JSON.parse(out);
    const [{ tolerance, worst }] = data.outputs;
    expect(exit).toBe(0);
    expect(worst.relative).toBeGreaterThan(1e-3);
    expect(data.conditions[0]).toBeGreaterThan(worst.relative);
    expect(tolerance).toBeLessThan(0.5);
  });
});
