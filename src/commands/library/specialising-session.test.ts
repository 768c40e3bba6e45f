import { afterAll, describe, expect, it } from "vitest";
import { growing } from "../../frontend/onnx/growing-loop.test-support.ts";
import { writeModel } from "../../frontend/onnx/model-writer.ts";
import { randomTensor, type Tensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { load } from "./load.ts";
import { LoadedModel } from "./loaded-model.ts";
import { openSum, sampleModel } from "./sample-model.test-support.ts";
import { type SpecialisationLimits, specialise } from "./specialising-session.ts";
import { tensor } from "./tensor.ts";
import { unwrap } from "./wavetile-error.ts";

const open: LoadedModel[] = [];
afterAll(async () => {
  for (const model of open) await model.dispose();
});

function opened(bytes: Uint8Array, limits: SpecialisationLimits, shapes = {}) {
  const options = { target: "wasm", shapes, seed: 0, threads: 1, limits };
  const { face, session } = unwrap(specialise({ bytes }, options));
  const model = new LoadedModel(face, session);
  open.push(model);
  return { model, session };
}

const rows = (m: number): Tensor => randomTensor("f32", [m, 24], new Rng(m));
const roomy = { programs: 8, bytes: 2 ** 30 };

describe("a model without bounds", () => {
  it("runs any size as a model of that size does, and makes each program once", async () => {
    const { model, session } = opened(sampleModel(), roomy);
    expect(model.inputs).toEqual([{ name: "x:0", dtype: "f32", shape: ["M", 24] }]);
    for (const m of [3, 1, 17, 3, 1, 17]) {
      const y = model.run({ "x:0": rows(m) })["y:0"]!;
      const options = { target: "wasm", shapes: { M: m }, threads: 1 };
      const fixed = await load(sampleModel(), options);
      expect(y).toEqual(fixed.run({ "x:0": rows(m) })["y:0"]);
      await fixed.dispose();
    }
    expect(session.compiled).toBe(3);
    expect((await model.runAsync({ "x:0": rows(3) }))["y:0"]!.shape).toEqual([3, 40]);
    expect(session.compiled).toBe(3);
  });

  it("runs what is empty: keys before the first token", () => {
    const { model } = opened(sampleModel(), roomy);
    expect(model.run({ "x:0": rows(0) })["y:0"]!.shape).toEqual([0, 40]);
    expect(model.run({ "x:0": rows(2) })["y:0"]!.shape).toEqual([2, 40]);
  });

  it("keeps as many programs as it may, those that were used last", () => {
    const { model, session } = opened(sampleModel(), { ...roomy, programs: 2 });
    for (const m of [1, 2, 1, 3, 1]) model.run({ "x:0": rows(m) });
    expect(session.compiled).toBe(3);
    model.run({ "x:0": rows(2) });
    expect(session.compiled).toBe(4);
  });

  it("keeps no more bytes than it may, but for the newest", () => {
    const { model, session } = opened(sampleModel(), { ...roomy, bytes: 1 });
    for (const m of [4, 4, 5, 4]) model.run({ "x:0": rows(m) });
    expect(session.compiled).toBe(3);
  });

  it("refuses inputs of another type, or unknown ones, before a program is made for their size", () => {
    const { model, session } = opened(sampleModel(), roomy);
    const wide = tensor("f64", [3, 24], new Float64Array(72));
    expect(model.tryRun({ "x:0": wide })).toMatchObject({ diagnostics: [{ code: "RUN013" }] });
    const other = { "x:0": rows(3), other: rows(1) };
    expect(model.tryRun(other)).toMatchObject({ diagnostics: [{ code: "RUN011" }] });
    const flat = tensor("f32", [72], new Float32Array(72));
    expect(model.tryRun({ "x:0": flat })).toMatchObject({ diagnostics: [{ code: "RUN016" }] });
    expect(session.compiled).toBe(0);
  });

  it("serves concurrent callers of different sizes", async () => {
    const { model } = opened(sampleModel(), { ...roomy, programs: 1 });
    const sizes = [1, 4, 2, 4, 1];
    const found = await Promise.all(sizes.map((m) => model.runAsync({ "x:0": rows(m) })));
    expect(found.map((o) => o["y:0"]!.shape[0])).toEqual(sizes);
  });

  it("keeps to the ranges and expressions that were given", () => {
    const ranged = opened(openSum(), roomy, { n: { min: 2, max: Infinity } }).model;
    const of = (count: number) => tensor("f32", [count], new Float32Array(count).fill(1));
    expect(ranged.run({ x: of(5), s: of(5) }).total!.data).toEqual(new Float32Array(5).fill(2));
    expect(ranged.tryRun({ x: of(1), s: of(1) })).toMatchObject({
      diagnostics: [{ code: "RUN015" }],
    });
    expect(ranged.tryRun({ x: of(3), s: of(4) })).toMatchObject({
      diagnostics: [{ code: "RUN016" }],
    });
    expect(ranged.tryRun({ x: of(3) })).toMatchObject({ diagnostics: [{ code: "RUN012" }] });
    const more = { x: of(3), s: of(3), t: of(3) };
    expect(ranged.tryRun(more)).toMatchObject({ diagnostics: [{ code: "RUN011" }] });
  });

  it("works where shapes are computed from shapes", async () => {
    const bytes = writeModel({
      opset: 18,
      inputs: [{ name: "ids", dtype: "i64", shape: ["batch size", "length"] }],
      outputs: ["y"],
      weights: {
        table: randomTensor("f32", [10, 4], new Rng(1)),
        split: tensor("i64", [4], [0n, 0n, 2n, 2n]),
      },
      nodes: [
        { op: "Gather", inputs: ["table", "ids"], outputs: ["e"] },
        { op: "Reshape", inputs: ["e", "split"], outputs: ["h"] },
        { op: "Softmax", inputs: ["h"], outputs: ["p"], attributes: { axis: 1n } },
        { op: "ReduceSum", inputs: ["p"], outputs: ["y"], attributes: { keepdims: 0n } },
      ],
    });
    const model = await load(bytes, { threads: 1, specialise: { programs: 2 } });
    open.push(model);
    for (const [batch, length] of [
      [1, 3],
      [2, 7],
      [5, 1],
    ] as const) {
      const ids = tensor("i64", [batch, length], new BigInt64Array(batch * length).fill(2n));
      // Each column of each head sums to one.
      expect(model.run({ ids }).y!.data[0]).toBeCloseTo(batch * 4, 4);
    }
  });
});

describe("a model whose sizes are fed as numbers", () => {
  const integer = (value: bigint): Tensor => tensor("i64", [1], BigInt64Array.of(value));
  /** x spread over a shape that is fed, as it is or through an operator. */
  const spread = (isComputed: boolean) =>
    writeModel({
      opset: 18,
      inputs: [
        { name: "x", dtype: "f32", shape: [1] },
        { name: "n", dtype: "i64", shape: ["rank"] },
      ],
      outputs: ["y"],
      weights: { one: integer(1n) },
      nodes: [
        ...(isComputed ? [{ op: "Add", inputs: ["n", "one"], outputs: ["m"] }] : []),
        { op: "Expand", inputs: ["x", isComputed ? "m" : "n"], outputs: ["y"] },
      ],
    });
  const small = { programs: 2, bytes: 2 ** 20 };

  it.each([false, true])(
    "runs what fits, and refuses the rest before it is there (RUN038): %s",
    (isComputed) => {
      const { model } = opened(spread(isComputed), small);
      const x = tensor("f32", [1], Float32Array.of(3));
      const run = (n: bigint) => model.tryRun({ x, n: integer(n) });
      expect(model.run({ x, n: integer(7n) }).y!.shape).toEqual([isComputed ? 8 : 7]);
      const before = process.memoryUsage().arrayBuffers;
      // 64 MiB and more; what else the process makes meanwhile is less than half of that.
      expect(run(2n ** 24n)).toMatchObject({ diagnostics: [{ code: "RUN038" }] });
      for (const n of [2n ** 31n, 2n ** 40n, 2n ** 63n - 1n]) expect(run(n).ok).toBe(false);
      expect(run(-5n)).toMatchObject({ diagnostics: [{ code: "SHP004" }] });
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 25);
    },
  );

  it("copies the body of a loop that carries a growing tensor, for each number of trips", () => {
    const bytes = writeModel({
      opset: 18,
      inputs: [
        { name: "x", dtype: "f32", shape: [2] },
        { name: "n", dtype: "i64", shape: [] },
      ],
      outputs: ["y"],
      nodes: [
        { op: "Loop", inputs: ["n", "", "x"], outputs: ["y"], attributes: { body: growing } },
      ],
    });
    const { model } = opened(bytes, roomy);
    const x = tensor("f32", [2], Float32Array.of(1, 2));
    for (const trips of [0, 3, 1]) {
      const { y } = model.run({ x, n: tensor("i64", [], BigInt64Array.of(BigInt(trips))) });
      expect([...y!.data]).toEqual(Array.from({ length: 2 * (trips + 1) }, (_, i) => 1 + (i % 2)));
    }
  });

  it("takes shapes, not data, for what decides the model (ONX013)", () => {
    const { model } = opened(spread(false), roomy);
    const feeds = {
      x: tensor("f32", [1], Float32Array.of(3)),
      n: tensor("i64", [70_000], new BigInt64Array(70_000).fill(1n)),
    };
    expect(model.tryRun(feeds)).toMatchObject({ diagnostics: [{ code: "ONX013" }] });
  });
});

it("unpools to a shape that is fed, with indices into the map that was pooled", async () => {
  const pooled = [1, 1, 2, 2];
  const bytes = writeModel({
    opset: 17,
    inputs: [
      { name: "x", dtype: "f32", shape: pooled },
      { name: "i", dtype: "i64", shape: pooled },
      { name: "shape", dtype: "i64", shape: [4] },
    ],
    outputs: ["y"],
    nodes: [
      {
        op: "MaxUnpool",
        inputs: ["x", "i", "shape"],
        outputs: ["y"],
        attributes: { kernel_shape: [2n, 2n], strides: [2n, 2n] },
      },
    ],
  });
  const model = await load(bytes, { threads: 1 });
  open.push(model);
  const x = tensor("f32", pooled, Float32Array.of(5, 6, 7, 8));
  const i = tensor("i64", pooled, BigInt64Array.of(5n, 7n, 13n, 15n));
  for (const [height, width] of [
    [5, 5],
    [4, 4],
    [6, 7],
  ] as const) {
    const extents = [1n, 1n, BigInt(height), BigInt(width)];
    const { y } = model.run({ x, i, shape: tensor("i64", [4], BigInt64Array.from(extents)) });
    const wanted = new Float32Array(height * width);
    // Rows 1 and 3, columns 1 and 3 of a map of 4 x 4.
    for (const [n, v] of [5, 6, 7, 8].entries()) {
      wanted[(1 + 2 * (n >> 1)) * width + 1 + 2 * (n & 1)] = v;
    }
    expect(y!.shape).toEqual([1, 1, height, width]);
    expect(y!.data).toEqual(wanted);
  }
});

it("decides for each value of a run whether an optional holds something", async () => {
  const arm = (name: string, inputs: readonly string[]) => ({
    inputs: [],
    outputs: [name],
    nodes: [{ op: "Optional", inputs, outputs: [name] }],
  });
  const bytes = writeModel({
    opset: 18,
    inputs: [
      { name: "c", dtype: "bool", shape: [] },
      { name: "x", dtype: "f32", shape: [2] },
    ],
    outputs: ["y"],
    nodes: [
      {
        op: "If",
        inputs: ["c"],
        outputs: ["o"],
        attributes: { then_branch: arm("t", ["x"]), else_branch: arm("e", []) },
      },
      { op: "OptionalHasElement", inputs: ["o"], outputs: ["y"] },
    ],
  });
  const model = await load(bytes, { threads: 1 });
  open.push(model);
  for (const c of [1, 0, 1]) {
    const feeds = { c: tensor("bool", [], [c]), x: tensor("f32", [2], [1, 2]) };
    expect([Number(model.run(feeds).y!.data[0])]).toEqual([c]);
  }
});
