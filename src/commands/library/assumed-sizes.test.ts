import { expect, it } from "vitest";
import { type ModelSpec, writeModel } from "../../frontend/onnx/model-writer.ts";
import { randomTensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { assumeSizes, type SizeWish, sizeTexts } from "./assumed-sizes.ts";
import type { GivenSizes } from "./model-bytes.ts";
import { tensor } from "./tensor.ts";

type Parts = Pick<ModelSpec, "inputs" | "nodes"> & Partial<ModelSpec>;

function assumed(
  parts: Parts,
  wish: SizeWish = { ranges: [] },
  shapes: GivenSizes["shapes"] = {},
): readonly string[] | undefined {
  const bytes = writeModel({ opset: 18, outputs: ["y"], weights: {}, ...parts });
  const sizes = assumeSizes({ bytes }, { shapes }, wish);
  return sizes && sizeTexts(sizes);
}

const input = (name: string, ...shape: (number | string)[]) =>
  ({ name, dtype: "f32", shape }) as const;
const relu: Parts["nodes"] = [{ op: "Relu", inputs: ["x"], outputs: ["y"] }];
const ranges: SizeWish = { ranges: ["batch", "length"] };

it("takes a size by the place of an extent", () => {
  const of = (...shape: (number | string)[]) =>
    assumed({ inputs: [input("x", ...shape)], nodes: relu });
  expect(of("n", "c", "h", "w")).toEqual(["n=1", "c=3", "h=224", "w=224"]);
  expect(of("n", 3, 48, "w")).toEqual(["n=1", "w=224"]);
  expect(of("n", 12, "past", 64)).toEqual(["n=1", "past=64"]);
  expect(of("n", "t", 80)).toEqual(["n=1", "t=64"]);
  expect(of("samples")).toEqual(["samples=64"]);
  expect(of(2, 3)).toBeUndefined();
});

it("takes ranges of batches and lengths for programs, and keeps to what is given", () => {
  const parts = { inputs: [input("x", "n", "t")], nodes: relu };
  expect(assumed(parts, ranges)).toEqual(["n=1..8", "t=1..512"]);
  expect(assumed(parts, ranges, { n: 4 })).toEqual(["t=1..512"]);
  const from = { min: 100, max: Infinity };
  expect(assumed(parts, ranges, { t: from })).toEqual(["n=1..8", "t=100..512"]);
  expect(assumed(parts, { ranges: [] }, { t: from, n: 1 })).toEqual(["t=100"]);
  expect(assumed(parts, ranges, { t: { min: 1, max: 7 }, n: 1 })).toBeUndefined();
});

it("goes on to sizes that the model can be imported at", () => {
  const weights = { w: randomTensor("f32", [2, 1, 400], new Rng(1)) };
  const nodes = [{ op: "Conv", inputs: ["x", "w"], outputs: ["y"] }];
  const parts = { inputs: [input("x", "n", 1, "t")], weights, nodes };
  expect(assumed(parts)).toEqual(["n=1", "t=512"]);
  expect(assumed(parts, { ranges: ["batch"] })).toEqual(["n=1..8", "t=512"]);
});

it("gives extents that have to agree sizes that do", () => {
  const inputs = [input("past", 1, "p"), input("x", 1, "s"), input("mask", 1, "total")];
  const nodes = [
    { op: "Concat", inputs: ["past", "x"], outputs: ["all"], attributes: { axis: 1n } },
    { op: "Add", inputs: ["all", "mask"], outputs: ["y"] },
  ];
  expect(assumed({ inputs, nodes })).toEqual(["p=64", "s=64", "total=128"]);
  const fixed = { w: tensor("f32", [5], new Float32Array(5)) };
  const add = [{ op: "Mul", inputs: ["x", "w"], outputs: ["y"] }];
  const five = assumed({ inputs: [input("x", 2, "s")], weights: fixed, nodes: add });
  expect(five === undefined || five[0] === "s=5" || five[0] === "s=1").toBe(true);
});

it("takes no range of which the model allows but one size", () => {
  const inputs = [input("x", "batch", "t")];
  const weights = { flat: tensor("i64", [2], [1n, -1n]) };
  const nodes = [
    { op: "Reshape", inputs: ["x", "flat"], outputs: ["r"] },
    { op: "Add", inputs: ["r", "x"], outputs: ["y"] },
  ];
  // 1 x (batch * t) added to batch x t: only a batch of one is possible.
  expect(assumed({ inputs, weights, nodes }, ranges)).toEqual(["batch=1", "t=1..512"]);
});

it("takes a first axis for frames where a batch of one is too few", () => {
  const weights = {
    w: randomTensor("f32", [2, 1, 9, 9], new Rng(1)),
    axis: tensor("i64", [2], [0n, 1n]),
  };
  const nodes = [
    { op: "Unsqueeze", inputs: ["x", "axis"], outputs: ["image"] },
    { op: "Conv", inputs: ["image", "w"], outputs: ["y"] },
  ];
  expect(assumed({ inputs: [input("x", "frames", "bins")], weights, nodes })).toEqual([
    "frames=64",
    "bins=128",
  ]);
});

it("gives up at once where sizes are not what is missing (ONX007)", () => {
  const nodes = [{ op: "Nonesuch", inputs: ["x"], outputs: ["y"] }];
  expect(assumed({ inputs: [input("x", "n", "t")], nodes })).toBeUndefined();
});
