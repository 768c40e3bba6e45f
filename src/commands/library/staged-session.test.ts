import { afterAll, describe, expect, it } from "vitest";
import { importOnnx } from "../../frontend/onnx/import/import-model.ts";
import { type ModelSpec, writeModel } from "../../frontend/onnx/model-writer.ts";
import { runGraph } from "../../interp/graph.ts";
import { randomTensor, type Tensor, toRef } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { load, tryLoad } from "./load.ts";
import type { LoadedModel } from "./loaded-model.ts";
import { stagedArtifact, untilHundred, upToHundred } from "./staged-artifact.test-support.ts";
import { tensor } from "./tensor.ts";
import { unwrap } from "./wavetile-error.ts";

const open: LoadedModel[] = [];
afterAll(async () => {
  for (const model of open) await model.dispose();
});

/** What the oracle computes, and the same from programs in stages. */
async function expectSame(spec: ModelSpec, feeds: readonly Readonly<Record<string, Tensor>>[]) {
  const bytes = writeModel(spec);
  const model = await load(bytes, { threads: 1, target: "wasm" });
  const { graph, weights } = unwrap(importOnnx(bytes));
  const stored = await load(stagedArtifact(bytes), { threads: 1 });
  open.push(stored, model);
  const shapes: (readonly number[])[] = [];
  for (const feed of feeds) {
    const inputs = spec.inputs.map(({ name }) => toRef(feed[name]!));
    const wanted = unwrap(runGraph(graph, inputs, weights));
    const found = model.run(feed);
    expect(stored.run(feed)).toEqual(found);
    for (const [i, name] of (spec.outputs as string[]).entries()) {
      expect(found[name]!.shape).toEqual(wanted[i]!.shape);
      const values = Array.from(toRef(found[name]!).data, Number);
      for (const [at, v] of Array.from(wanted[i]!.data, Number).entries()) {
        expect(values[at]).toBeCloseTo(v, 4);
      }
    }
    shapes.push(found[spec.outputs[0] as string]!.shape);
  }
  return shapes;
}

const of = (values: readonly number[], ...shape: number[]): Tensor =>
  tensor("f32", shape, Float32Array.from(values));

/** The elements above 1, doubled, and their sum. */
const above: ModelSpec = {
  opset: 18,
  inputs: [{ name: "x", dtype: "f32", shape: [3, 4] }],
  outputs: ["picked", "sum"],
  weights: { one: of([1]), two: of([2]) },
  nodes: [
    { op: "Greater", inputs: ["x", "one"], outputs: ["mask"] },
    { op: "NonZero", inputs: ["mask"], outputs: ["places"] },
    { op: "Transpose", inputs: ["places"], outputs: ["rows"], attributes: { perm: [1n, 0n] } },
    { op: "GatherND", inputs: ["x", "rows"], outputs: ["elements"] },
    { op: "Mul", inputs: ["elements", "two"], outputs: ["picked"] },
    { op: "ReduceSum", inputs: ["picked"], outputs: ["sum"], attributes: { keepdims: 0n } },
  ],
};

const untilLarge = untilHundred([{ op: "Add", inputs: ["end", "one"], outputs: ["last"] }], {
  one: of([1], 1),
});

/** Adds x up until that is 100, however often that is, and what there was on the way, less 50, at least 0. */
const untilFull: ModelSpec = {
  opset: 18,
  inputs: [{ name: "x", dtype: "f32", shape: [1] }],
  outputs: ["above"],
  weights: { go: tensor("bool", [], Uint8Array.of(1)), start: of([0], 1), half: of([50]) },
  nodes: [
    {
      op: "Loop",
      inputs: ["", "go", "start"],
      outputs: ["end", "all"],
      attributes: { body: upToHundred("x") },
    },
    { op: "Sub", inputs: ["all", "half"], outputs: ["less"] },
    { op: "Relu", inputs: ["less"], outputs: ["above"] },
  ],
};

describe("sizes that data decide", () => {
  it("have no bound where a loop goes on until data say so: programs take usual ones", async () => {
    const feeds = [30, 0.25, 1 / 64, 30].map((x) => ({ x: of([x], 1) }));
    const shapes = await expectSame(untilFull, feeds);
    expect(shapes.map(([trips]) => trips)).toEqual([4, 400, 6400, 4]);
  });

  it("leave the bounds of inputs as they are, where references alone read these", async () => {
    const places: ModelSpec = {
      opset: 18,
      inputs: [{ name: "x", dtype: "f32", shape: ["N"] }],
      outputs: ["places"],
      nodes: [{ op: "NonZero", inputs: ["x"], outputs: ["places"] }],
    };
    const model = await load(writeModel(places), {
      threads: 1,
      target: "wasm",
      shapes: { N: "1..8" },
    });
    open.push(model);
    const ones = (n: number): Tensor => of(new Array<number>(n).fill(1), n);
    expect(model.run({ x: ones(8) }).places!.shape).toEqual([1, 8]);
    expect(() => model.run({ x: ones(9) })).toThrow();
  });

  it("differ from run to run of one model, down to nothing", async () => {
    const few = of([0, 2, 0, 3, 0, 0, 0, 0, 9, 0, 0, 1.5], 3, 4);
    const all = of(new Array<number>(12).fill(5), 3, 4);
    const none = of(new Array<number>(12).fill(-5), 3, 4);
    const shapes = await expectSame(
      above,
      [few, all, none, few].map((x) => ({ x })),
    );
    expect(shapes).toEqual([[4], [12], [0], [4]]);
  });

  it("give results of their own where nothing is put into an input", async () => {
    const spec: ModelSpec = {
      opset: 18,
      inputs: [{ name: "x", dtype: "f32", shape: [4] }],
      outputs: ["y"],
      weights: { zero: of([0]) },
      nodes: [
        { op: "Greater", inputs: ["x", "zero"], outputs: ["mask"] },
        { op: "NonZero", inputs: ["mask"], outputs: ["found"] },
        { op: "Transpose", inputs: ["found"], outputs: ["places"], attributes: { perm: [1n, 0n] } },
        { op: "GatherND", inputs: ["x", "places"], outputs: ["taken"] },
        { op: "Neg", inputs: ["taken"], outputs: ["negative"] },
        { op: "ScatterND", inputs: ["x", "places", "negative"], outputs: ["y"] },
      ],
    };
    const none = { x: of([-1, -2, -3, -4], 4) };
    await expectSame(spec, [{ x: of([1, -2, 3, -4], 4) }, none, none]);
    const model = await load(writeModel(spec), { threads: 1, target: "wasm" });
    open.push(model);
    for (let run = 0; run < 3; run++) {
      const { y } = model.run(none);
      (y!.data as Float32Array).fill(7);
      expect(none.x.data[0]).toBe(-1);
    }
  });

  it("leave the programs of other sizes running where one of them is nothing", async () => {
    // Rows of x above 1 through one product, those below -1 through another, added at their places.
    const side = (name: string, op: string) => [
      { op, inputs: ["rows", `${name}.limit`], outputs: [`${name}.mask`] },
      { op: "NonZero", inputs: [`${name}.mask`], outputs: [`${name}.places`] },
      {
        op: "Squeeze",
        inputs: [`${name}.places`, "axis"],
        outputs: [`${name}.which`],
      },
      { op: "Gather", inputs: ["x", `${name}.which`], outputs: [`${name}.taken`] },
      { op: "MatMul", inputs: [`${name}.taken`, `${name}.w`], outputs: [`${name}.made`] },
      {
        op: "Transpose",
        inputs: [`${name}.places`],
        outputs: [`${name}.column`],
        attributes: { perm: [1n, 0n] },
      },
    ];
    const rng = new Rng(8);
    const spec: ModelSpec = {
      opset: 18,
      inputs: [{ name: "x", dtype: "f32", shape: [4, 3] }],
      outputs: ["y"],
      weights: {
        axis: tensor("i64", [1], [0n]),
        last: tensor("i64", [1], [1n]),
        zero: of(new Array<number>(12).fill(0), 4, 3),
        "high.limit": of([1]),
        "low.limit": of([-1]),
        "high.w": randomTensor("f32", [3, 3], rng),
        "low.w": randomTensor("f32", [3, 3], rng),
      },
      nodes: [
        { op: "ReduceSum", inputs: ["x", "last"], outputs: ["rows"], attributes: { keepdims: 0n } },
        ...side("high", "Greater"),
        ...side("low", "Less"),
        {
          op: "ScatterND",
          inputs: ["zero", "high.column", "high.made"],
          outputs: ["first"],
          attributes: { reduction: "add" },
        },
        {
          op: "ScatterND",
          inputs: ["first", "low.column", "low.made"],
          outputs: ["y"],
          attributes: { reduction: "add" },
        },
      ],
    };
    const both = of([1, 1, 1, -1, -1, -1, 2, 2, 2, 0, 0, 0], 4, 3);
    const high = of([1, 1, 1, 0, 0, 0, 2, 2, 2, 0, 0, 0], 4, 3);
    await expectSame(spec, [{ x: both }, { x: high }, { x: of(new Array(12).fill(0), 4, 3) }]);
    const kernels = async (x: Tensor) => unwrap(open.at(-1)!.profile({ x }, () => 0)).kernels;
    const [all, one] = [(await kernels(both)).length, (await kernels(high)).length];
    expect(one).toBeGreaterThan(0);
    expect(one).toBeLessThan(all);
  });

  it("go with extents that nobody bounded", async () => {
    const inputs = [{ name: "x", dtype: "f32", shape: ["N", 4] }] as const;
    const bytes = writeModel({ ...above, inputs });
    const model = await load(bytes, { threads: 1 });
    open.push(model);
    for (const rows of [2, 5]) {
      const x = of(new Array<number>(rows * 4).fill(3), rows, 4);
      expect(model.run({ x }).picked!.shape).toEqual([rows * 4]);
      const { picked } = await model.runAsync({ x });
      expect(picked!.data[0]).toBe(6);
    }
  });

  it("follow each other: boxes that survive, then different labels among them", async () => {
    const spec: ModelSpec = {
      opset: 18,
      inputs: [
        { name: "boxes", dtype: "f32", shape: [1, 12, 4] },
        { name: "scores", dtype: "f32", shape: [1, 2, 12] },
      ],
      outputs: ["labels", "kept", "best"],
      weights: {
        most: tensor("i64", [1], [5n]),
        overlap: of([0.3], 1),
        least: of([0.2], 1),
        column: tensor("i64", [], [1n]),
      },
      nodes: [
        {
          op: "NonMaxSuppression",
          inputs: ["boxes", "scores", "most", "overlap", "least"],
          outputs: ["kept"],
        },
        {
          op: "Gather",
          inputs: ["kept", "column"],
          outputs: ["labelOf"],
          attributes: { axis: 1n },
        },
        { op: "Unique", inputs: ["labelOf"], outputs: ["labels"] },
        { op: "ReduceMax", inputs: ["scores"], outputs: ["best"], attributes: { keepdims: 0n } },
      ],
    };
    const rng = new Rng(2);
    const draw = () => {
      const corners = Array.from({ length: 12 }, () => {
        const [y, x] = [rng.uniform() * 10, rng.uniform() * 10];
        return [y, x, y + 2 + rng.uniform(), x + 2 + rng.uniform()];
      });
      return { boxes: of(corners.flat(), 1, 12, 4), scores: scoresOf(rng) };
    };
    await expectSame(spec, [draw(), draw(), draw()]);
  });

  it("numbers that are drawn come from the reference, the same in every run", async () => {
    await expectSame(
      {
        opset: 18,
        inputs: [{ name: "x", dtype: "f32", shape: [4] }],
        outputs: ["y"],
        nodes: [
          { op: "RandomNormalLike", inputs: ["x"], outputs: ["noise"], attributes: { seed: 0.7 } },
          { op: "Add", inputs: ["x", "noise"], outputs: ["y"] },
        ],
      },
      [1, 2].map((v) => ({ x: of([v, v, v, v], 4) })),
    );
  });

  it("a loop that data end collects as many rows as it had trips", async () => {
    const bytes = writeModel(untilLarge);
    const model = unwrap(tryLoad(bytes, { threads: 1, target: "wasm" }));
    open.push(model);
    const rows = (x: number, n: bigint) => {
      const { all, last } = model.run({
        x: of([x], 1),
        n: tensor("i64", [], new BigInt64Array([n])),
      });
      return { all: [...(all!.data as Float32Array)], last: [...(last!.data as Float32Array)] };
    };
    expect(rows(1, 9n)).toEqual({ all: [2, 4, 8, 16, 32, 64, 128], last: [129] });
    expect(rows(1, 3n)).toEqual({ all: [2, 4, 8], last: [9] });
    expect(rows(90, 9n)).toEqual({ all: [180], last: [181] });
    expect(rows(5, 0n)).toEqual({ all: [], last: [6] });
    const endless = model.tryRun({
      x: of([0], 1),
      n: tensor("i64", [], new BigInt64Array([2n ** 40n])),
    });
    expect(endless).toMatchObject({ ok: false, diagnostics: [{ code: "RUN007" }] });
    const told = tryLoad(bytes, { threads: 1, target: "wasm" });
    expect(told).toMatchObject({ warnings: [{ code: "SCH015", severity: "warning" }] });
    if (told.ok) open.push(told.value);
  });
});

function scoresOf(rng: Rng): Tensor {
  const { shape, data } = randomTensor("f32", [1, 2, 12], rng);
  return of([...(data as Float32Array)].map(Math.abs), ...shape);
}

describe("what runs on references", () => {
  const drawn = (...shape: bigint[]): ModelSpec => ({
    opset: 18,
    inputs: [],
    outputs: ["y"],
    nodes: [{ op: "RandomNormal", inputs: [], outputs: ["y"], attributes: { shape } }],
  });
  const places = (...shape: number[]): ModelSpec => ({
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape }],
    outputs: ["y"],
    nodes: [{ op: "NonZero", inputs: ["x"], outputs: ["y"] }],
  });
  const one = { threads: 1, target: "wasm" } as const;

  it("is refused before anything is made, where a tensor is too large (INT004)", async () => {
    for (const spec of [drawn(100_000n, 100_000n), drawn(2n ** 25n + 1n), places(3e8)]) {
      const found = await tryLoad(writeModel(spec), one);
      expect(found).toMatchObject({ ok: false, diagnostics: [{ code: "INT004" }] });
    }
  });
});
