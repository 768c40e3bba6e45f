import { afterAll, describe, expect, it } from "vitest";
import { type ModelSpec, writeModel } from "../../frontend/onnx/model-writer.ts";
import { load, tryLoad } from "./load.ts";
import type { LoadedModel } from "./loaded-model.ts";
import { openSum } from "./sample-model.test-support.ts";
import { tensor } from "./tensor.ts";

const open: LoadedModel[] = [];
afterAll(async () => {
  for (const model of open) await model.dispose();
});

async function loaded(bytes: Uint8Array, options: Parameters<typeof load>[1]) {
  const model = await load(bytes, { threads: 1, ...options });
  open.push(model);
  return model;
}

const vector = (...values: number[]) => tensor("f32", [values.length], values);
const row = (...values: number[]) => tensor("f32", [1, values.length], values);
const written = (spec: Omit<ModelSpec, "opset" | "weights">): Uint8Array =>
  writeModel({ opset: 18, weights: {}, ...spec });

/** A cache that grows by a row in each run, and the sums of its columns. */
const cache = (): Uint8Array =>
  written({
    inputs: [
      { name: "x", dtype: "f32", shape: [1, 2] },
      { name: "past", dtype: "f32", shape: ["P", 2] },
    ],
    outputs: ["present", "y"],
    nodes: [
      { op: "Concat", inputs: ["past", "x"], outputs: ["present"], attributes: { axis: 0n } },
      { op: "Transpose", inputs: ["present"], outputs: ["columns"] },
      { op: "ReduceMax", inputs: ["columns"], outputs: ["most"] },
      { op: "Add", inputs: ["columns", "most"], outputs: ["y"] },
    ],
  });

/** The positive elements of x, and a count of all that were seen. */
const counted = (): Uint8Array =>
  written({
    inputs: [
      { name: "x", dtype: "f32", shape: [4] },
      { name: "seen", dtype: "i64", shape: [] },
    ],
    outputs: ["places", "now"],
    nodes: [
      { op: "Relu", inputs: ["x"], outputs: ["positive"] },
      { op: "NonZero", inputs: ["positive"], outputs: ["places"] },
      { op: "Size", inputs: ["places"], outputs: ["count"] },
      { op: "Add", inputs: ["count", "seen"], outputs: ["now"] },
    ],
  });

describe("states between runs of several programs", () => {
  it("are kept where sizes are open, and begin as zeros of the size that comes", async () => {
    const model = await loaded(openSum(), { states: { s: "total" } });
    expect(model.inputs.map((p) => p.keeps)).toEqual([undefined, "total"]);
    const add = (feeds: Parameters<LoadedModel["run"]>[0]) => model.run(feeds).total!.data;
    expect(add({ x: vector(1, 2) })).toEqual(Float32Array.of(1, 2));
    expect(add({ x: vector(10, 20) })).toEqual(Float32Array.of(11, 22));
    expect((await model.runAsync({ x: vector(1, 1) })).total!.data).toEqual(
      Float32Array.of(12, 23),
    );
    expect(model.tryRun({ x: vector(1) })).toMatchObject({ diagnostics: [{ code: "RUN016" }] });
    expect(add({ x: vector(5), s: vector(1) })).toEqual(Float32Array.of(6));
    model.resetStates();
    expect(add({ x: vector(1, 2, 3) })).toEqual(Float32Array.of(1, 2, 3));
  });

  it.each([{}, { shapes: { P: "0..4" } }])("may grow: %o", async (options) => {
    const model = await loaded(cache(), { states: { past: "present" }, ...options });
    for (const [i, x] of [row(1, 2), row(3, 4), row(5, 6)].entries()) {
      const { present, y } = model.run({ x });
      expect([present!.shape, y!.shape]).toEqual([
        [i + 1, 2],
        [2, i + 1],
      ]);
      // What a caller does to its outputs is no business of the states.
      present!.data.fill(0 as never);
    }
    const { present } = model.run({ x: row(7, 8) });
    expect(present!.data).toEqual(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
  });

  it("are kept where a model runs in stages", async () => {
    const model = await loaded(counted(), { states: { seen: "now" } });
    const now = (...x: number[]) => Number(model.run({ x: vector(...x) }).now!.data[0]);
    expect([now(1, 0, 2, -3), now(0, 0, 0, 1), now(0, 0, 0, 0)]).toEqual([2, 3, 3]);
    model.resetStates();
    expect(now(1, 1, 1, 1)).toBe(4);
  });

  it("name an input and an output (CLI001) of one type (GRF011)", () => {
    const codeOf = (bytes: Uint8Array, states: Record<string, string>) => {
      const refused = tryLoad(bytes, { states });
      return refused.ok ? "ok" : refused.diagnostics[0]!.code;
    };
    expect(codeOf(openSum(), { s: "nothing" })).toBe("CLI001");
    expect(codeOf(cache(), { x: "present" })).toBe("ok");
    expect(codeOf(cache(), { x: "y" })).toBe("GRF011");
    expect(codeOf(counted(), { x: "places" })).toBe("GRF011");
  });
});
