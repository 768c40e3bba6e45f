/** Commands on models with extents that nobody bounded: they take sizes by themselves, and say which. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCaptured } from "../cli/run-captured.test-support.ts";
import { writeModel } from "../frontend/onnx/model-writer.ts";
import { randomTensor } from "../semantics/tensor.ts";
import { Rng } from "../support/rng.ts";
import { tryLoad } from "./library/load.ts";
import { sampleModel } from "./library/sample-model.test-support.ts";
import { tensor } from "./library/tensor.ts";
import { unwrap } from "./library/wavetile-error.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-open-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);

/** x cut into its columns, each turned into its relu, side by side again: how many there are is open. */
const columns = (): Uint8Array =>
  writeModel({
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: ["M", "N"] }],
    outputs: ["y", "count"],
    weights: {},
    nodes: [
      { op: "SplitToSequence", inputs: ["x"], outputs: ["s"], attributes: { axis: 1n } },
      { op: "SequenceLength", inputs: ["s"], outputs: ["count"] },
      { op: "ConcatFromSequence", inputs: ["s"], outputs: ["t"], attributes: { axis: 0n } },
      { op: "Relu", inputs: ["t"], outputs: ["y"] },
    ],
  });

beforeAll(() => {
  writeFileSync(at("rows.onnx"), sampleModel());
  writeFileSync(at("columns.onnx"), columns());
  const nodes = [
    { op: "Relu", inputs: ["x"], outputs: ["r"] },
    { op: "NonZero", inputs: ["r"], outputs: ["y"] },
  ];
  const inputs = [{ name: "x", dtype: "f32", shape: ["M", 24] }] as const;
  const staged = writeModel({ opset: 18, inputs, outputs: ["y"], weights: {}, nodes });
  writeFileSync(at("staged.onnx"), staged);
  const weights = { w: randomTensor("f32", [1, 1, 70], new Rng(1)) };
  const wide = writeModel({
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: ["n", 1, "t"] }],
    outputs: ["y"],
    weights,
    nodes: [{ op: "Conv", inputs: ["x", "w"], outputs: ["y"] }],
  });
  writeFileSync(at("wide.onnx"), wide);
});

async function captured(...args: string[]) {
  let now = 0;
  const { exit, out } = await runCaptured([...args, "--json"], () => ++now);
  const { data, warnings, error } = JSON.parse(out) as {
    data: Record<string, unknown>;
    warnings: { code: string; message: string }[];
    error?: { code: string };
  };
  const said = warnings.filter((w) => w.code === "CLI005").map((w) => w.message);
  return { exit, data, said, error };
}

const taken = (sizes: string): readonly string[] => [
  `extents without an upper bound were taken as ${sizes}`,
];

describe("sizes that nobody gave", () => {
  it.each([
    ["verify", []],
    ["bench", ["--runs", "2", "--threads", "1"]],
    ["inspect", ["--program"]],
    ["explain", []],
    ["report", ["-o", at("page.html")]],
    ["run", ["--random"]],
  ])("%s takes one of each, and says so", async (command, options) => {
    const open = await captured(command, at("rows.onnx"), ...options);
    expect([open.exit, open.said]).toEqual([0, taken("M=1")]);
    const given = await captured(command, at("rows.onnx"), "--shape", "M=2", ...options);
    expect([given.exit, given.said]).toEqual([0, []]);
  });

  it("are what verify compares at, where numbers must be known and where data decide sizes", async () => {
    for (const [name, sizes] of [
      ["columns", "M=1, N=64"],
      ["staged", "M=1"],
    ] as const) {
      const found = await captured("verify", at(`${name}.onnx`));
      expect([found.exit, found.said]).toEqual([0, taken(sizes)]);
      const { outputs } = found.data as { outputs: { agrees: boolean }[] };
      expect(outputs.every((o) => o.agrees)).toBe(true);
      const run = await captured("run", at(`${name}.onnx`), "--random");
      expect([run.exit, run.said]).toEqual([0, taken(sizes)]);
    }
  });

  it("are ranges in artifacts, which then serve each size of them and no other", async () => {
    const made = await captured("optimize", at("rows.onnx"), "-o", at("rows.wt"));
    expect([made.exit, made.said]).toEqual([0, taken("M=1..8")]);
    const model = unwrap(tryLoad(at("rows.wt"), { threads: 1 }));
    for (const m of [1, 8]) {
      const x = randomTensor("f32", [m, 24], new Rng(m));
      expect(model.run({ "x:0": x })["y:0"]!.shape).toEqual([m, 40]);
    }
    const nine = model.tryRun({ "x:0": randomTensor("f32", [9, 24], new Rng(9)) });
    expect(nine).toMatchObject({ ok: false, diagnostics: [{ code: "RUN015" }] });
    await model.dispose();
  });

  it("are values where no program is proved for the range", async () => {
    const made = await captured("optimize", at("wide.onnx"), "-o", at("wide.wt"));
    expect([made.exit, made.said]).toEqual([0, taken("n=1..8, t=128")]);
  });
});

describe("a model that is no graph before its sizes are known", () => {
  it("is specialised by load, within what is given", async () => {
    const model = unwrap(tryLoad(columns(), { threads: 1, specialise: { programs: 2 } }));
    expect(model.inputs).toEqual([{ name: "x", dtype: "f32", shape: ["M", "N"] }]);
    for (const [m, n] of [
      [2, 3],
      [1, 7],
      [2, 3],
    ] as const) {
      const data = Float32Array.from({ length: m * n }, (_, i) => i - 2);
      const { y, count } = model.run({ x: tensor("f32", [m, n], data) });
      const expected = Array.from({ length: m * n }, (_, i) =>
        Math.max(0, data[(i % m) * n + Math.floor(i / m)]!),
      );
      expect([y!.shape, Array.from(y!.data as Float32Array)]).toEqual([[m * n, 1], expected]);
      expect(count!.data).toEqual(BigInt64Array.of(BigInt(n)));
    }
    await model.dispose();
    const ranged = unwrap(tryLoad(columns(), { threads: 1, shapes: { M: 1, N: "2..4" } }));
    const five = tensor("f32", [1, 5], new Float32Array(5));
    expect(ranged.tryRun({ x: five })).toMatchObject({ diagnostics: [{ code: "RUN015" }] });
    await ranged.dispose();
  });

  const inputs = [
    { name: "x", dtype: "f32", shape: ["N"] },
    { name: "shape", dtype: "i64", shape: [2] },
    { name: "other", dtype: "i64", shape: [1] },
  ] as const;

  it("is specialised to the values of a small input that decides shapes, and to no other's", async () => {
    const nodes = [
      { op: "Reshape", inputs: ["x", "shape"], outputs: ["y"] },
      { op: "Neg", inputs: ["other"], outputs: ["z"] },
    ];
    const bytes = writeModel({ opset: 18, inputs, outputs: ["y", "z"], weights: {}, nodes });
    const model = unwrap(tryLoad(bytes, { threads: 1 }));
    const x = tensor("f32", [6], Float32Array.of(1, 2, 3, 4, 5, 6));
    for (const [a, b] of [
      [2n, 3n],
      [6n, 1n],
      [2n, 3n],
    ] as const) {
      const shape = tensor("i64", [2], [a, b]);
      const { y, z } = model.run({ x, shape, other: tensor("i64", [1], [a]) });
      expect([y!.shape, y!.data, z!.data]).toEqual([
        [Number(a), Number(b)],
        x.data,
        BigInt64Array.of(-a),
      ]);
    }
    const wrong = model.tryRun({
      x,
      shape: tensor("i64", [2], [4n, 4n]),
      other: tensor("i64", [1], [1n]),
    });
    expect(wrong.ok).toBe(false);
    expect(model.tryRun({ x })).toMatchObject({ diagnostics: [{ code: "RUN012" }] });
    await model.dispose();
  });

  it("is specialised to the condition of branches that differ in rank", async () => {
    const branch = (op: string, attributes = {}) => ({
      inputs: [],
      outputs: ["r"],
      nodes: [{ op, inputs: ["x"], outputs: ["r"], attributes }],
    });
    const attributes = {
      then_branch: branch("Relu"),
      else_branch: branch("ReduceSum", { keepdims: 0n }),
    };
    const bytes = writeModel({
      opset: 18,
      inputs: [
        { name: "x", dtype: "f32", shape: ["N", 2] },
        { name: "cached", dtype: "bool", shape: [] },
      ],
      outputs: ["y"],
      weights: {},
      nodes: [{ op: "If", inputs: ["cached"], outputs: ["y"], attributes }],
    });
    const model = unwrap(tryLoad(bytes, { threads: 1 }));
    const x = tensor("f32", [1, 2], Float32Array.of(-1, 2));
    const y = (cached: number) =>
      model.run({ x, cached: tensor("bool", [], Uint8Array.of(cached)) }).y!;
    for (let i = 0; i < 2; i++) {
      expect([y(1).shape, y(1).data]).toEqual([[1, 2], Float32Array.of(0, 2)]);
      expect([y(0).shape, y(0).data]).toEqual([[], Float32Array.of(1)]);
    }
    await model.dispose();
  });

  it("is specialised to values that it computes, one after another", async () => {
    const nodes = [
      { op: "ReduceMax", inputs: ["lengths"], outputs: ["most"], attributes: { keepdims: 0n } },
      { op: "Range", inputs: ["zero", "most", "one"], outputs: ["steps"] },
      { op: "Mul", inputs: ["steps", "x"], outputs: ["scaled"] },
      { op: "ReduceSum", inputs: ["scaled"], outputs: ["sum"], attributes: { keepdims: 0n } },
      { op: "Cast", inputs: ["sum"], outputs: ["count"], attributes: { to: 7n } },
      { op: "Unsqueeze", inputs: ["count", "axis"], outputs: ["shape"] },
      { op: "Expand", inputs: ["sum", "shape"], outputs: ["y"] },
      { op: "Neg", inputs: ["scaled"], outputs: ["z"] },
    ];
    const weights = {
      zero: tensor("f32", [], [0]),
      one: tensor("f32", [], [1]),
      axis: tensor("i64", [1], [0n]),
    };
    const bytes = writeModel({
      opset: 18,
      inputs: [
        { name: "lengths", dtype: "f32", shape: ["B"] },
        { name: "x", dtype: "f32", shape: [] },
      ],
      outputs: ["y", "z"],
      weights,
      nodes,
    });
    const model = unwrap(tryLoad(bytes, { threads: 1 }));
    for (const [lengths, x] of [
      [[2, 4], 1],
      [[3], 2],
      [[4, 1], 1],
    ] as const) {
      const feeds = {
        lengths: tensor("f32", [lengths.length], Float32Array.from(lengths)),
        x: tensor("f32", [], Float32Array.of(x)),
      };
      const { y, z } = model.run(feeds);
      const scaled = Array.from({ length: Math.max(...lengths) }, (_, i) => i * x);
      const sum = scaled.reduce((a, b) => a + b);
      expect([y!.shape, Array.from(y!.data as Float32Array)]).toEqual([
        [sum],
        Array.from({ length: sum }, () => sum),
      ]);
      expect(Array.from(z!.data as Float32Array)).toEqual(scaled.map((s) => -s));
      expect((await model.runAsync(feeds)).y!.shape).toEqual([sum]);
    }
    await model.dispose();
  });

  it("is refused where neither helps (ONX013)", () => {
    const nodes = [
      { op: "Cast", inputs: ["x"], outputs: ["shape"], attributes: { to: 7n } },
      { op: "Reshape", inputs: ["x", "shape"], outputs: ["y"] },
    ];
    // More dimensions than any tensor has.
    const input = { name: "x", dtype: "f32", shape: [65] } as const;
    const bytes = writeModel({ opset: 18, inputs: [input], outputs: ["y"], weights: {}, nodes });
    expect(tryLoad(bytes)).toMatchObject({ ok: false, diagnostics: [{ code: "ONX013" }] });
  });
});
