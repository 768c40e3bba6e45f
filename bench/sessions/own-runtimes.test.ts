import { expect, test } from "vitest";
import { tensorOf, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import { Rng } from "../../src/support/rng.ts";
import { toleranceOf, worstDifference } from "./compare.ts";
import { oracleRuntime } from "./oracle.ts";
import { ortNodeRuntime } from "./ort-node.ts";
import { float32Tensor, type Tensors } from "./session.ts";
import { wavetileRuntime } from "./wavetile.ts";

const rng = new Rng(5);
const normal = (count: number) => Float32Array.from({ length: count }, () => rng.normal());

/** y = softmax(x w), n = rows + 1: a symbolic extent, a composite, and an input that never changes. */
const model = writeModel({
  opset: 17,
  inputs: [
    { name: "x", dtype: "f32", shape: ["rows", 6] },
    { name: "one", dtype: "i64", shape: [] },
  ],
  outputs: [
    { name: "y", dtype: "f32", shape: ["rows", 5] },
    { name: "n", dtype: "i64", shape: [] },
  ],
  weights: {
    w: tensorOf("f32", [6, 5], normal(30)),
    zero: tensorOf("i64", [], new BigInt64Array(1)),
  },
  nodes: [
    { op: "MatMul", inputs: ["x", "w"], outputs: ["p"] },
    { op: "Softmax", inputs: ["p"], outputs: ["y"], attributes: { axis: 1n } },
    { op: "Shape", inputs: ["x"], outputs: ["s"] },
    { op: "Gather", inputs: ["s", "zero"], outputs: ["rows"] },
    { op: "Add", inputs: ["rows", "one"], outputs: ["n"] },
  ],
});

const one: Tensors = { one: { type: "int64", dims: [], data: BigInt64Array.of(1n) } };

test("oracle and WebAssembly agree with onnxruntime-node at several sizes", async () => {
  const reference = await ortNodeRuntime(1).open(model);
  const plain = await oracleRuntime.open(model);
  const fixed = await oracleRuntime.open(model, { constants: one });
  const hints = { constants: one, shapes: { rows: "1..8" } };
  const compiled = await wavetileRuntime("wasm", 1).open(model, hints);
  expect(compiled.inputs.map((i) => i.name)).toEqual(["x"]);
  expect(plain.inputs).toEqual([
    { name: "x", type: "float32", dims: ["rows", 6] },
    { name: "one", type: "int64", dims: [] },
  ]);
  expect(fixed.inputs.map((i) => i.name)).toEqual(["x"]);
  for (const rows of [1, 4, 7]) {
    const feeds = { x: float32Tensor([rows, 6], normal(rows * 6)), ...one };
    const expected = await reference.run(feeds);
    for (const session of [plain, fixed, compiled]) {
      const found = await session.run(feeds);
      expect(found.n!.data[0]).toBe(BigInt(rows + 1));
      expect(worstDifference(found, expected)).toBeLessThan(
        toleranceOf({ depth: 1, longestSum: 6 }, rows * 5),
      );
    }
  }
  const times = compiled.profile!().map((row) => row.medianNs);
  expect(times.length).toBeGreaterThan(0);
  expect(Math.min(...times)).toBeGreaterThan(0);
  for (const session of [reference, compiled]) await session.release();
});
