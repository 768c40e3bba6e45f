/**
 * Conversions to half precision that a model asks for, on targets that keep halves wide; and values of f16 that leave
 * their range on the way from stage to stage of a model or from trip to trip of a loop.
 */
import { expect, it } from "vitest";
import { atTrips, oracleSeconds } from "../../src/commands/actions/oracle-budget.ts";
import { load } from "../../src/commands/library/load.ts";
import { tensor } from "../../src/commands/library/tensor.ts";
import { importOnnx } from "../../src/frontend/onnx/import/import-model.ts";
import { type ModelSpec, writeModel } from "../../src/frontend/onnx/model-writer.ts";
import type { DType } from "../../src/semantics/dtype.ts";
import { fromRef, numbersOf, refTensor, type Tensor, toRef } from "../../src/semantics/tensor.ts";

const half = (shape: readonly number[], values: readonly number[]): Tensor =>
  fromRef(refTensor("f16", shape, values));

async function run(spec: ModelSpec, feeds: Readonly<Record<string, Tensor>>, target = "wasm") {
  const model = await load(writeModel(spec), { threads: 1, target });
  const { y } = model.run(feeds);
  await model.dispose();
  const values: Iterable<number | bigint> = toRef(y!).data;
  return Array.from(values, Number);
}

/** What is left of x behind a conversion and back. */
const rest = (to: bigint): ModelSpec => ({
  opset: 18,
  inputs: [{ name: "x", dtype: "f32", shape: [4] }],
  outputs: ["y"],
  weights: {},
  nodes: [
    { op: "Cast", inputs: ["x"], outputs: ["h"], attributes: { to } },
    { op: "Cast", inputs: ["h"], outputs: ["w"], attributes: { to: 1n } },
    { op: "Sub", inputs: ["x", "w"], outputs: ["y"] },
  ],
});

it.each([
  ["wasm", 10n, [1, -1, -Infinity, 2 ** -12]],
  ["wasm", 16n, [1, -1, -144, 2 ** -9 + 2 ** -12]],
  ["cpu", 10n, [1, -1, -Infinity, 2 ** -12]],
  ["cpu", 16n, [1, -1, -144, 2 ** -9 + 2 ** -12]],
] as const)("on %s a conversion to type %i of ONNX and back rounds", async (target, to, wanted) => {
  const x = tensor("f32", [4], Float32Array.of(2049, -4097, 70_000, 1 + 2 ** -9 + 2 ** -12));
  expect(await run(rest(to), { x }, target)).toEqual(wanted);
});

it("rounds to f16 what becomes a row's number", async () => {
  const spec: ModelSpec = {
    opset: 18,
    inputs: [{ name: "x", dtype: "f32", shape: [2] }],
    outputs: ["y"],
    weights: {
      t: tensor(
        "f32",
        [5000],
        Float32Array.from({ length: 5000 }, (_, i) => i),
      ),
    },
    nodes: [
      { op: "Cast", inputs: ["x"], outputs: ["h"], attributes: { to: 10n } },
      { op: "Cast", inputs: ["h"], outputs: ["i"], attributes: { to: 7n } },
      { op: "Gather", inputs: ["t", "i"], outputs: ["y"] },
    ],
  };
  const x = tensor("f32", [2], Float32Array.of(2049, 4095));
  expect(await run(spec, { x })).toEqual([2048, 4096]);
});

it("keeps squares from stage to stage", async () => {
  const f16: DType = "f16";
  const spec: ModelSpec = {
    opset: 18,
    inputs: [
      { name: "x", dtype: f16, shape: [2, 4] },
      { name: "c", dtype: "bool", shape: [2] },
    ],
    outputs: ["y"],
    weights: { zero: tensor("i64", [1], BigInt64Array.of(0n)) },
    nodes: [
      { op: "Mul", inputs: ["x", "x"], outputs: ["p"] },
      { op: "NonZero", inputs: ["c"], outputs: ["found"] },
      { op: "Squeeze", inputs: ["found", "zero"], outputs: ["rows"] },
      { op: "Gather", inputs: ["p", "rows"], outputs: ["taken"] },
      { op: "Sqrt", inputs: ["taken"], outputs: ["y"] },
    ],
  };
  const model = await load(writeModel(spec), { threads: 1, target: "wasm" });
  const x = half([2, 4], [1, 2, 3, 4, 500, -600, 700, 1]);
  const { y } = model.run({ x, c: tensor("bool", [2], Uint8Array.of(0, 1)) });
  expect([...numbersOf(toRef(y!))]).toEqual([500, 600, 700, 1]);
  await model.dispose();
});

const loop: ModelSpec = {
  opset: 18,
  inputs: [
    { name: "n", dtype: "i64", shape: [] },
    { name: "x0", dtype: "f16", shape: [4] },
  ],
  outputs: ["y"],
  weights: { go: tensor("bool", [], Uint8Array.of(1)) },
  nodes: [
    {
      op: "Loop",
      inputs: ["n", "go", "x0"],
      outputs: ["y"],
      attributes: {
        body: {
          inputs: [
            { name: "i", dtype: "i64", shape: [] },
            { name: "c", dtype: "bool", shape: [] },
            { name: "x", dtype: "f16", shape: [4] },
          ],
          outputs: ["c", "z"],
          weights: { k: half([], [1000]) },
          nodes: [
            { op: "ReduceSumSquare", inputs: ["x"], outputs: ["s"] },
            { op: "Sqrt", inputs: ["s"], outputs: ["r"] },
            { op: "Div", inputs: ["x", "r"], outputs: ["u"] },
            { op: "Mul", inputs: ["u", "k"], outputs: ["z"] },
          ],
        },
      },
    },
  ],
};

it("keeps squares in a loop of as many trips as are fed, which a reference has the time for", async () => {
  const n = tensor("i64", [], BigInt64Array.of(3n));
  const x0 = half([4], [500, 500, -500, 500]);
  expect(await run(loop, { n, x0 })).toEqual([500, 500, -500, 500]);
  const imported = importOnnx(writeModel(loop));
  if (!imported.ok) throw new Error(imported.diagnostics[0]!.message);
  const { graph } = imported.value;
  expect(oracleSeconds(graph, new Map())).toBeGreaterThan(10);
  expect(oracleSeconds(atTrips(graph, ["n", "x0"], { n, x0 }), new Map())).toBeLessThan(1e-5);
});

it.each(["wasm", "cpu"])("on %s what data decide is decided by rounded halves", async (target) => {
  // 120,000 and 120,117 leave the range; 2^-13 * 60,000 * 2^-28 is below half of the least subnormal number of f16.
  const spec = (op: string, factors: readonly number[]): ModelSpec => ({
    opset: 18,
    inputs: [{ name: "x", dtype: "f16", shape: [4] }],
    outputs: ["y"],
    weights: Object.fromEntries(factors.map((f, i) => [`f${i}`, half([], [f])])),
    nodes: [
      ...factors.map((_, i) => ({
        op: "Mul",
        inputs: [i === 0 ? "x" : `t${i - 1}`, `f${i}`],
        outputs: [`t${i}`],
      })),
      { op, inputs: [`t${factors.length - 1}`], outputs: ["y"] },
    ],
  });
  const large = half([4], [1, 2, 2.001953125, -3]);
  const unique = await run(spec("Unique", [60_000, 1]), { x: large }, target);
  expect(unique).toEqual([-Infinity, 60_000, Infinity]);
  const small = half([4], [2 ** -13, 1, 0, 2 ** -12]);
  const places = await run(spec("NonZero", [60_000, 2 ** -14, 2 ** -14]), { x: small }, target);
  expect(places).toEqual([1, 3]);
});
