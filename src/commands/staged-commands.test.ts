/** Commands on models that run in stages, and on models with external data in another folder. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCaptured } from "../cli/run-captured.test-support.ts";
import { writeModel } from "../frontend/onnx/model-writer.ts";
import { writeExternalTensorProto } from "../frontend/onnx/tensor-proto.ts";
import { tensor } from "./library/tensor.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-staged-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const [model, artifact] = ["m.onnx", "m.wt"].map((name) => join(folder, name)) as [string, string];

beforeAll(async () => {
  const table = Float32Array.from({ length: 20 * 64 }, (_, i) => i % 7);
  const bytes = writeModel({
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: ["N", 20] }],
    outputs: ["y"],
    weights: { table: tensor("f32", [20, 64], table), zero: tensor("f32", [], [0]) },
    nodes: [
      { op: "Greater", inputs: ["x", "zero"], outputs: ["mask"] },
      { op: "NonZero", inputs: ["mask"], outputs: ["places"] },
      { op: "Transpose", inputs: ["places"], outputs: ["rows"], attributes: { perm: [1n, 0n] } },
      { op: "GatherND", inputs: ["x", "rows"], outputs: ["picked"] },
      { op: "MatMul", inputs: ["x", "table"], outputs: ["mixed"] },
      { op: "ReduceSum", inputs: ["mixed"], outputs: ["sum"], attributes: { keepdims: 0n } },
      { op: "Mul", inputs: ["picked", "sum"], outputs: ["y"] },
    ],
  });
  writeFileSync(model, bytes);
  await captured("optimize", model, "--shape", "N=6", "-o", artifact, "--target", "wasm");
}, 120_000);

async function captured(...args: string[]) {
  let now = 0;
  const { exit, out } = await runCaptured([...args, "--json"], () => ++now);
  return { exit, document: JSON.parse(out) as { data: Record<string, unknown> } };
}

const given = () => [
  ["an ONNX model", [model, "--shape", "N=6"]] as const,
  ["an artifact", [artifact]] as const,
];

describe.each(given())("a model in stages, as %s", (_, source) => {
  it("is inspected as a whole graph, else stage by stage", async () => {
    const { document, exit } = await captured("inspect", ...source, "--graph", "--program");
    const { graph, program } = document.data as Record<string, string>;
    expect(exit).toBe(0);
    expect(graph).toContain("nonZero(");
    expect(program!.match(/^stage \d.*$/gm)).toEqual([
      expect.stringMatching(/^stage 1, a program of \d+ nodes:$/),
      "stage 2, computed by the reference, because data decide: nonZero",
      expect.stringMatching(/^stage 3, a program of \d+ nodes:$/),
    ]);
    expect(program!.match(/^program /gm)).toHaveLength(2);
  });

  it("is explained stage by stage, with a region the stages that have it", async () => {
    const all = await captured("explain", ...source);
    const stages = all.document.data.stages as { regions?: { name: string }[] }[];
    expect(stages.map((s) => (s.regions ?? []).length > 0)).toEqual([true, false, true]);
    const names = stages.flatMap((s) => s.regions ?? []).map((r) => r.name);
    const once = names.find((n) => names.indexOf(n) === names.lastIndexOf(n))!;
    const one = await captured("explain", ...source, "--region", once);
    expect(one.document.data.stages).toHaveLength(1);
    const none = await captured("explain", ...source, "--region", "S77");
    expect(none).toMatchObject({ exit: 2, document: { error: { code: "CLI001" } } });
  });

  it("is verified whole, or program by program where the oracle is over the budget", async () => {
    const whole = await captured("verify", ...source);
    expect(whole).toMatchObject({
      exit: 0,
      document: { data: { coverage: { kind: "whole" }, outputs: [{ name: "y", agrees: true }] } },
    });
    const parts = await captured("verify", ...source, "--budget", "0.000001");
    expect(parts).toMatchObject({
      exit: 0,
      document: { data: { stages: [{ stage: 1 }, { stage: 3 }] } },
    });
  });

  it("is timed, and reported on one page", async () => {
    const timed = await captured("bench", ...source, "--runs", "2", "--threads", "1");
    expect(timed).toMatchObject({ exit: 0, document: { data: { n: 2, threads: 1 } } });
    const page = join(folder, "page.html");
    const svg = join(folder, "svg");
    const drawn = await captured("report", ...source, "-o", page, "--svg", svg, "--measure");
    expect(drawn.exit).toBe(0);
    const text = readFileSync(page, "utf8");
    for (const part of ["stage 1", "stage 3"]) expect(text).toContain(`${part}. Elimination`);
    expect(text).toContain("stage 2, computed by the reference");
    for (const number of [1, 3]) {
      expect(existsSync(join(svg, `stage-${number}-measured.svg`))).toBe(true);
    }
  });
});

describe("against onnxruntime", () => {
  it("a model in stages agrees, and is timed; its artifact is no model", async () => {
    const args = [model, "--shape", "N=6", "--against", "onnxruntime", "--threads", "1"];
    expect(await captured("verify", ...args)).toMatchObject({
      exit: 0,
      document: { data: { outputs: [{ agrees: true }] } },
    });
    const timed = await captured("bench", ...args, "--runs", "2");
    expect(timed.document.data).toMatchObject({
      results: [{ name: "wavetile" }, { name: "onnxruntime" }],
    });
    const refused = await captured("verify", artifact, "--against", "onnxruntime");
    expect(refused).toMatchObject({ exit: 2, document: { error: { code: "CLI001" } } });
  });

  it("external data are found in the folder of the model, whatever the present one is", async () => {
    const own = join(folder, "elsewhere");
    mkdirSync(own);
    const type = { dtype: "f32", shape: [4] } as const;
    const path = join(own, "external.onnx");
    writeFileSync(
      path,
      writeModel({
        opset: 17,
        inputs: [{ name: "a", dtype: "f32", shape: [4] }],
        outputs: ["y"],
        tensors: [
          writeExternalTensorProto("w", type, { location: "w.bin", offset: 0, length: 16 }),
        ],
        nodes: [{ op: "Add", inputs: ["a", "w"], outputs: ["y"] }],
      }),
    );
    writeFileSync(join(own, "w.bin"), new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
    const found = await captured("verify", path, "--against", "onnxruntime");
    expect(found).toMatchObject({ exit: 0, document: { data: { outputs: [{ agrees: true }] } } });
    const timed = await captured("bench", path, "--against", "onnxruntime", "--runs", "2");
    expect(timed.document.data).toMatchObject({ n: 2 });
  });
});

/** As many steps as the largest length, and as many copies of their sum as it says. */
function writeCounted(path: string): void {
  const nodes = [
    { op: "ReduceMax", inputs: ["lengths"], outputs: ["most"], attributes: { keepdims: 0n } },
    { op: "Range", inputs: ["zero", "most", "one"], outputs: ["steps"] },
    { op: "ReduceSum", inputs: ["steps"], outputs: ["sum"], attributes: { keepdims: 0n } },
    { op: "Unsqueeze", inputs: ["sum", "axis"], outputs: ["shape"] },
    { op: "Expand", inputs: ["x", "shape"], outputs: ["y"] },
  ];
  const weights = {
    zero: tensor("i64", [], [0n]),
    one: tensor("i64", [], [1n]),
    axis: tensor("i64", [1], [0n]),
  };
  const inputs = [
    { name: "lengths", dtype: "i64", shape: ["B"] },
    { name: "x", dtype: "f32", shape: [] },
  ] as const;
  writeFileSync(path, writeModel({ opset: 18, inputs, outputs: ["y"], weights, nodes }));
}

describe("a model that values it computes decide the form of", () => {
  const counted = join(folder, "counted.onnx");
  const wasm = ["--target", "wasm", "--threads", "1"] as const;
  beforeAll(() => writeCounted(counted));

  it("is run, verified and timed for the inputs that are drawn", async () => {
    const ran = await captured("run", counted, "--random", ...wasm);
    expect(ran).toMatchObject({ exit: 0, document: { data: { outputs: [{ name: "y" }] } } });
    for (const against of ["oracle", "onnxruntime"]) {
      const found = await captured("verify", counted, "--against", against, ...wasm);
      expect(found).toMatchObject({
        exit: 0,
        document: { data: { against, outputs: [{ name: "y", agrees: true }] } },
      });
    }
    const timed = await captured(
      "bench",
      counted,
      "--against",
      "onnxruntime",
      "--runs",
      "2",
      ...wasm,
    );
    expect(timed).toMatchObject({ exit: 0, document: { data: { n: 2 } } });
  });

  it("has no artifact: what fixes its inputs is named", async () => {
    const output = ["-o", join(folder, "m.wt"), "--target", "wasm"] as const;
    expect(await captured("optimize", counted, ...output)).toMatchObject({
      exit: 4,
      document: { error: { code: "ONX013", help: expect.stringContaining("--value") } },
    });
  });
});
