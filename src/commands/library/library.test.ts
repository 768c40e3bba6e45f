import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeArtifact } from "../../artifact/write-artifact.ts";
import { writeModel } from "../../frontend/onnx/model-writer.ts";
import { probeCuda } from "../../runtime/cuda/features.ts";
import { InferenceSession } from "./inference-session.ts";
import { load, tryLoad } from "./load.ts";
import type { LoadedModel } from "./loaded-model.ts";
import { openModel } from "./open-model.ts";
import { delayLine, sampleModel, sumModel } from "./sample-model.test-support.ts";
import { tensor } from "./tensor.ts";
import { WavetileError } from "./wavetile-error.ts";

const shapes = { M: "1..8" };
const bounded = { M: { min: 1, max: 8 } };
let model: LoadedModel;
beforeAll(async () => {
  model = await load(sampleModel(), { shapes, threads: 1 });
});
afterAll(() => model.dispose());

const rows = (m: number) => tensor("f32", [m, 24], new Float32Array(m * 24).fill(0.25));

function codeOf(body: () => unknown): string {
  try {
    body();
  } catch (error) {
    if (error instanceof WavetileError) return error.diagnostics[0]!.code;
    throw error;
  }
  return "ok";
}

const tensorOf = (dtype: string, value: number) => () => tensor(dtype, [1], [value]);

describe("LoadedModel", () => {
  it("runs several shapes under the model's own names", () => {
    expect(model.inputs).toEqual([{ name: "x:0", dtype: "f32", shape: ["M", 24] }]);
    for (const m of [1, 5, 8]) {
      const y = model.run({ "x:0": rows(m) })["y:0"]!;
      expect(y.shape).toEqual([m, 40]);
      expect(y.data.slice(0, 40)).toEqual(y.data.slice((m - 1) * 40));
    }
  });

  it("serves concurrent callers with their own results", async () => {
    const feeds = [1, 2, 3, 4].map((k) => tensor("f32", [1, 24], new Float32Array(24).fill(k)));
    const wanted = feeds.map((x) => model.run({ "x:0": x })["y:0"]!.data);
    const found = await Promise.all(feeds.map((x) => model.runAsync({ "x:0": x })));
    expect(found.map((o) => o["y:0"]!.data)).toEqual(wanted);
  });

  it("puts outputs into the caller's tensors, on this thread and beside it", async () => {
    const taking = tensor("f32", [2, 40], new Float32Array(80).fill(Number.NaN));
    const wanted = model.run({ "x:0": rows(2) })["y:0"]!.data;
    const first = model.run({ "x:0": rows(2) }, { outputs: { "y:0": taking } })["y:0"]!;
    expect(first.data).toBe(taking.data);
    expect(taking.data).toEqual(wanted);
    taking.data.fill(Number.NaN as never);
    await model.runAsync({ "x:0": rows(2) }, { outputs: { "y:0": taking } });
    expect(taking.data).toEqual(wanted);
  });

  it("refuses tensors that no output fits, and leaves them as they are (RUN018, RUN019, RUN036)", async () => {
    const run = (outputs: unknown) => () =>
      model.run({ "x:0": rows(2) }, { outputs: outputs as never });
    const narrow = tensor("f32", [1, 40], new Float32Array(40).fill(3));
    expect(codeOf(run({ "y:0": narrow }))).toBe("RUN019");
    expect(codeOf(run({ "y:0": tensor("i32", [2, 40], new Array(80).fill(3)) }))).toBe("RUN019");
    expect(codeOf(run({ z: narrow }))).toBe("RUN018");
    expect(codeOf(run({ "y:0": 3 }))).toBe("RUN036");
    expect(codeOf(run(null))).toBe("RUN036");
    const later = model.runAsync({ "x:0": rows(2) }, { outputs: { "y:0": narrow } });
    await expect(later).rejects.toThrow("RUN019");
    expect(narrow.data).toEqual(new Float32Array(40).fill(3));
  });

  it("takes the values that its inputs had at the call", async () => {
    const x = rows(1);
    const wanted = model.run({ "x:0": x })["y:0"]!.data;
    const later = model.runAsync({ "x:0": x });
    x.data.fill(7 as never);
    expect((await later)["y:0"]!.data).toEqual(wanted);
  });

  it("refuses a run beside another (RUN035) and goes on", async () => {
    const running = model.runAsync({ "x:0": rows(1) });
    expect(codeOf(() => model.run({ "x:0": rows(1) }))).toBe("RUN035");
    await running;
    expect(codeOf(() => model.run({ "x:0": rows(1) }))).toBe("ok");
  });

  it("stops when its signal is raised (RUN004)", async () => {
    const signal = AbortSignal.abort();
    await expect(model.runAsync({ "x:0": rows(1) }, { signal })).rejects.toMatchObject({
      diagnostics: [{ code: "RUN004" }],
    });
    await expect(model.runAsync({ "x:0": rows(1) })).resolves.toBeDefined();
  });

  it.each([
    ["no model", undefined, {}, "undefined"],
    ["a promise", Promise.resolve("m.onnx"), {}, "awaited"],
    ["no options", "m.onnx", null, "null"],
  ])("load says that it was given %s", (_, source, options, found) => {
    expect(tryLoad(source as never, options as never)).toMatchObject({
      diagnostics: [{ code: "CLI001", message: expect.stringContaining(found) }],
    });
  });

  it.each([Number.NaN, Infinity, 2.5, -1, null])("load refuses %s as a size", (M) => {
    const refused = tryLoad(sampleModel(), { shapes: { M: M as never } });
    expect(refused).toMatchObject({ diagnostics: [{ code: "CLI001", at: "shape M" }] });
  });

  it("the place of the largest of no elements is refused (SHP004, RUN017)", async () => {
    const bytes = writeModel({
      opset: 18,
      inputs: [{ name: "x", dtype: "f32", shape: ["n", 3] }],
      outputs: ["y"],
      nodes: [{ op: "ArgMax", inputs: ["x"], outputs: ["y"], attributes: { keepdims: 0n } }],
    });
    const none = tensor("f32", [0, 3], new Float32Array(0));
    expect(tryLoad(bytes, { shapes: { n: 0 } })).toMatchObject({
      diagnostics: [{ code: "SHP004", message: expect.stringContaining("empty") }],
    });
    for (const [shapes, code] of [[{}, "SHP004"] as const, [{ n: "0..4" }, "RUN017"] as const]) {
      const places = await load(bytes, { shapes, threads: 1 });
      expect(places.tryRun({ x: none })).toMatchObject({ diagnostics: [{ code }] });
      const some = tensor("f32", [2, 3], Float32Array.of(1, 5, 2, 4, 3, 6));
      expect([...places.run({ x: some }).y!.data]).toEqual([1n, 0n, 1n]);
      await places.dispose();
    }
  });

  it("says exactly what is wrong with its arguments", () => {
    const message = (feeds: unknown): string => {
      const result = model.tryRun(feeds as never);
      return result.ok ? "ok" : `${result.diagnostics[0]!.code} ${result.diagnostics[0]!.message}`;
    };
    const x = rows(2);
    expect(message({})).toBe('RUN012 input "x:0" is missing');
    expect(message(null)).toBe("RUN036 the feeds are no object of tensors by input name");
    expect(message({ "x:0": 3 })).toBe(
      'RUN036 input "x:0": it is number, not { dtype, shape, data }',
    );
    expect(message({ "x:0": { ...x, dtype: "float" } })).toBe(
      'RUN036 input "x:0": dtype "float" is no element type',
    );
    expect(message({ "x:0": { ...x, shape: [3, 24] } })).toBe(
      'RUN036 input "x:0": f32[3, 24] needs 72 elements, found 48',
    );
    expect(message({ "x:0": { ...x, data: new Float64Array(48) } })).toBe(
      'RUN036 input "x:0": f32 data come in a Float32Array, found Float64Array',
    );
    expect(message({ "x:0": { ...x, shape: [-2, 24] } })).toBe(
      'RUN036 input "x:0": shape [-2,24] is no list of counts',
    );
    expect(message({ "x:0": tensor("f32", [24], new Float32Array(24)) })).toBe(
      'RUN016 input "x:0" has the shape [24], the model takes [M, 24]',
    );
    expect(message({ "x:0": x, "w:0": x })).toBe('RUN011 the model has no input "w:0"');
    expect(message({ "x:0": rows(9) })).toMatch(/^RUN015 M = 9 is outside 1 to 8/);
  });

  it("keeps states between runs, takes one that is fed, and forgets them when asked", async () => {
    const cell = await load(sumModel(), { states: { s: "total" }, threads: 1 });
    expect(cell.inputs.map((p) => p.keeps)).toEqual([undefined, "total"]);
    const add = (value: number, feeds = {}) =>
      cell.run({ x: tensor("f32", [2], Float32Array.of(value, 2 * value)), ...feeds }).total!.data;
    expect([add(1), add(10)]).toEqual([Float32Array.of(1, 2), Float32Array.of(11, 22)]);
    expect(add(1, { s: tensor("f32", [2], Float32Array.of(5, 5)) })).toEqual(Float32Array.of(6, 7));
    expect(add(1)).toEqual(Float32Array.of(7, 9));
    cell.resetStates();
    expect(add(3)).toEqual(Float32Array.of(3, 6));
    const x = tensor("f32", [2], Float32Array.of(1, 1));
    expect((await cell.runAsync({ x })).total!.data).toEqual(Float32Array.of(4, 7));
    await cell.dispose();
  });

  it("refuses states that name no input and output, or pair different types", () => {
    const faultOf = (states: Record<string, string>) => {
      const refused = tryLoad(sampleModel(), { shapes, states });
      return refused.ok ? "ok" : refused.diagnostics[0]!.code;
    };
    expect(faultOf({ "x:0": "z" })).toBe("CLI001");
    expect(faultOf({ "x:0": "y:0" })).toBe("GRF011");
  });

  it("runs a delay line: a state that takes over an input, and one that takes over a state", async () => {
    const line = await load(delayLine(), { states: { a: "a_next", b: "b_next" }, threads: 1 });
    const push = (value: number) => line.run({ x: tensor("f32", [1], [value]) }).y!.data[0];
    expect([1, 10, 100, 1000].map(push)).toEqual([1, 11, 111, 1110]);
    await line.dispose();
  });

  it("makes tensors of what the type can hold, and of nothing else (RUN036)", () => {
    expect(tensor("u8", [2], [0, 255]).data).toEqual(Uint8Array.of(0, 255));
    expect(tensor("f16", [1], [1e-9]).data[0]).toBe(0);
    const wrong = [tensorOf("u8", 300), tensorOf("i8", -129), tensorOf("i64", 0.5)];
    expect(wrong.map(codeOf)).toEqual(["RUN036", "RUN036", "RUN036"]);
  });

  it("is over after dispose (RUN037)", async () => {
    const other = await load(sampleModel(), { shapes, threads: 1 });
    await other.dispose();
    await other.dispose();
    expect(codeOf(() => other.run({ "x:0": rows(1) }))).toBe("RUN037");
    await expect(other.runAsync({ "x:0": rows(1) })).rejects.toThrow("RUN037");
  });
});

describe("load", () => {
  it("asks for known targets (CLI002), options and readable files", () => {
    const code = (result: ReturnType<typeof tryLoad>) =>
      result.ok ? "ok" : result.diagnostics[0]!.code;
    expect(code(tryLoad(sampleModel(), { specialise: { programs: 0 } }))).toBe("CLI001");
    expect(code(tryLoad(sampleModel(), { specialise: { models: 3 } } as never))).toBe("CLI001");
    expect(code(tryLoad(sampleModel(), { shapes, target: "tpu" }))).toBe("CLI002");
    expect(code(tryLoad("/nowhere.onnx"))).toBe("RUN030");
    expect(code(tryLoad(sampleModel(), { shapes, constants: {} } as never))).toBe("CLI001");
    expect(code(tryLoad(sampleModel(), { shapes: { M: "32 &" } }))).toBe("TXT001");
    expect(code(tryLoad(new Uint8Array(20)))).toBe("ONX001");
  });
});

describe("an artifact for machine code", () => {
  it("holds a WebAssembly program too, unless the model is too large for its memory", () => {
    const open = (max: number) =>
      openModel(
        { bytes: sampleModel() },
        { target: "x64-avx2", portable: true, seed: 0, shapes: { M: { min: 1, max } } },
      );
    const small = open(8);
    expect(small.ok && [...small.value.artifact.targets.keys()]).toEqual(["x64-avx2", "wasm"]);
    const large = open(30_000_000);
    expect(large.ok && [...large.value.artifact.targets.keys()]).toEqual(["x64-avx2"]);
    expect(large.ok && large.warnings[0]).toMatchObject({ code: "MEM002", severity: "warning" });
  });
});

describe("outputs that are inputs, constants or each other", () => {
  const shape = ["N", 2] as const;
  const bytes = writeModel({
    name: "aliases",
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: [...shape] }],
    outputs: ["y", "x2", "y2", "k"],
    weights: { c: tensor("f32", [2], new Float32Array([3, 4])) },
    nodes: [
      { op: "Relu", inputs: ["x"], outputs: ["y"] },
      { op: "Identity", inputs: ["x"], outputs: ["x2"] },
      { op: "Identity", inputs: ["y"], outputs: ["y2"] },
      { op: "Identity", inputs: ["c"], outputs: ["k"] },
    ],
  });
  const x = tensor("f32", [1, 2], new Float32Array([-1, 2]));
  const wanted = { y: [0, 2], x2: [-1, 2], y2: [0, 2], k: [3, 4] };

  it("keep their names, in the model and in its artifact", async () => {
    const options = { target: "wasm", seed: 0, shapes: { N: { min: 1, max: 4 } } };
    const made = openModel({ bytes }, options);
    const artifact = made.ok ? writeArtifact(made.value.artifact) : new Uint8Array();
    for (const source of [
      load(bytes, { shapes: { N: "1..4" }, threads: 1 }),
      load(artifact, { threads: 1 }),
    ]) {
      const loaded = await source;
      const outputs = loaded.run({ x });
      const found = Object.entries(outputs).map(([name, t]) => [name, [...t.data]]);
      expect(Object.fromEntries(found)).toEqual(wanted);
      await loaded.dispose();
    }
  });

  it("refuses a count of threads that is none (CLI001)", () => {
    for (const threads of [0, -1, 2.5, 1e9, "a" as never]) {
      const loaded = tryLoad(sampleModel(), { shapes, threads });
      expect(loaded).toMatchObject({ ok: false, diagnostics: [{ code: "CLI001" }] });
    }
  });
});

describe("what was asked for and is no use", () => {
  it("is refused: one program that is not proved (SCH032), which has one a size then", async () => {
    const bytes = writeModel({
      name: "window",
      opset: 18,
      inputs: [{ name: "x", dtype: "f32", shape: [1, 1, 5, "W"] }],
      outputs: ["y"],
      weights: { w: tensor("f32", [1, 1, 3, 3], new Float32Array(9)) },
      nodes: [{ op: "Conv", inputs: ["x", "w"], outputs: ["y"] }],
    });
    const range = { W: { min: 0, max: 3 } };
    const opened = openModel({ bytes }, { target: "wasm", seed: 0, shapes: range });
    expect(opened).toMatchObject({ ok: false, diagnostics: [{ code: "SCH032" }] });
    const loaded = tryLoad(bytes, { shapes: { W: "0..3" }, threads: 1 });
    expect(loaded).toMatchObject({
      ok: true,
      warnings: [{ code: "SCH032", severity: "warning" }],
    });
    if (!loaded.ok) return;
    const wide = (w: number) => tensor("f32", [1, 1, 5, w], new Float32Array(5 * w));
    expect(loaded.value.run({ x: wide(3) }).y!.shape).toEqual([1, 1, 3, 1]);
    expect(loaded.value.tryRun({ x: wide(2) }).ok).toBe(false);
    expect(loaded.value.tryRun({ x: wide(4) })).toMatchObject({
      diagnostics: [{ code: "RUN015" }],
    });
    await loaded.value.dispose();
  });

  it("is refused: a signal that is none (CLI001)", async () => {
    const run = model.runAsync({ "x:0": rows(1) }, { signal: 7 as never });
    await expect(run).rejects.toThrow("signal is no AbortSignal");
    expect(codeOf(() => model.run({ "x:0": rows(1) }))).toBe("ok");
  });
});

describe("--target cuda", () => {
  it("says what is missing, for a model and for an artifact", () => {
    const made = openModel({ bytes: sampleModel() }, { target: "wasm", seed: 0, shapes: bounded });
    const artifact = made.ok ? writeArtifact(made.value.artifact) : new Uint8Array();
    const here = probeCuda();
    for (const [bytes, options] of [
      [sampleModel(), { shapes }],
      [artifact, {}],
    ] as const) {
      const loaded = tryLoad(bytes, { ...options, target: "cuda" });
      // On a machine with a GPU the model runs, and the artifact lacks its program.
      const wanted = here.ok ? (bytes === artifact ? "CLI002" : "ok") : here.diagnostics[0]!.code;
      expect(loaded.ok ? "ok" : loaded.diagnostics[0]!.code).toBe(wanted);
    }
  });
});

describe("InferenceSession", () => {
  it("has onnxruntime's shape", async () => {
    const session = await InferenceSession.create(sampleModel(), { shapes, threads: 1 });
    expect([session.inputNames, session.outputNames]).toEqual([["x:0"], ["y:0"]]);
    const { shape: dims, data } = rows(2);
    const found = await session.run({ "x:0": { type: "float32", dims, data } });
    expect(found["y:0"]).toMatchObject({ type: "float32", dims: [2, 40] });
    expect(found["y:0"]!.data).toEqual(model.run({ "x:0": rows(2) })["y:0"]!.data);
    await expect(session.run({}, ["z"])).rejects.toThrow('the model has no output "z"');
    await expect(session.run({ "x:0": { type: "string", dims, data } })).rejects.toThrow(
      'input "x:0": type string is not carried',
    );
    await session.release();
  });
});
