import { describe, expect, test } from "vitest";
import {
  type GraphSpec,
  type NodeSpec,
  tensorOf,
  writeModel,
} from "../../src/frontend/onnx/model-writer.ts";
import { fetchModel } from "./fetch.ts";
import { roundingOf } from "./rounding.ts";
import { findModel } from "./table.ts";

function weight(...dims: number[]) {
  return tensorOf("f32", dims, new Float32Array(dims.reduce((a, b) => a * b, 1)));
}

/** Convolutions w (3 x 3) and v (1 x 1) over four channels. */
const weights = { w: weight(4, 4, 3, 3), v: weight(4, 4, 1, 1) };

function check(nodes: readonly NodeSpec[], expected: unknown): void {
  const inputs = [{ name: "x", dtype: "f32", shape: [1, 4, 8, 8] }] as const;
  const result = roundingOf(writeModel({ opset: 17, inputs, outputs: ["y"], weights, nodes }));
  expect(result.ok && result.value).toEqual(expected);
}

const node = (op: string, inputs: readonly string[], output: string): NodeSpec => ({
  op,
  inputs,
  outputs: [output],
});

describe("roundingOf", () => {
  test("the longest of two paths, and the longest sum of all", () => {
    check(
      [
        node("Conv", ["x", "v"], "a"),
        node("Conv", ["a", "v"], "b"),
        node("Conv", ["x", "w"], "c"),
        node("Relu", ["b"], "d"),
        node("Add", ["c", "d"], "y"),
      ],
      { depth: 2, longestSum: 36 },
    );
  });

  test("without layers there is still one rounding", () => {
    check([node("Relu", ["x"], "y")], { depth: 1, longestSum: 1 });
  });

  test("of branches the deeper one counts, on top of what they capture", () => {
    const branch = (nodes: readonly NodeSpec[]): GraphSpec => ({
      inputs: [],
      outputs: ["r"],
      nodes,
    });
    const then = branch([node("Conv", ["a", "v"], "t"), node("Conv", ["t", "w"], "r")]);
    const attributes = { then_branch: then, else_branch: branch([node("Relu", ["a"], "r")]) };
    const condition = { ...node("If", ["c"], "y"), attributes };
    const nodes = [node("Conv", ["x", "v"], "a"), node("IsNaN", ["x"], "c"), condition];
    check(nodes, { depth: 3, longestSum: 36 });
  });

  test("of a model that quantises, a step is a share of a tensor's range", () => {
    const nodes = [node("DynamicQuantizeLinear", ["x"], "y")];
    check(nodes, { depth: 1, longestSum: 1, storedEpsilon: 2 ** -8, isQuantized: true });
  });

  test("a real model", () => {
    const bytes = fetchModel(findModel("ppocr-v2-cls")!);
    const result = bytes.ok ? roundingOf(bytes.value) : bytes;
    expect(result.ok && result.value).toEqual({ depth: 54, longestSum: 200 });
  });

  test("bytes that are no model are refused", () => {
    const result = roundingOf(new TextEncoder().encode("not a model"));
    expect(result.ok ? "accepted" : result.diagnostics[0]!.code).toBe("ONX001");
  });
});
