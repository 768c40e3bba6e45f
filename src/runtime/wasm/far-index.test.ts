import { expect, it } from "vitest";
import { load } from "../../commands/library/load.ts";
import { tensor } from "../../commands/library/tensor.ts";
import { writeModel } from "../../frontend/onnx/model-writer.ts";

it.each([
  [2n ** 62n, /index 2147483647 or more is out of range/],
  [-(2n ** 62n), /index -2147483648 or less is out of range/],
  [2n ** 32n + 1n, /index 2147483647 or more is out of range/],
  [7n, /index 7 is out of range/],
])("an index of %s is told as what it is, not by its lowest bits", async (index, message) => {
  const bytes = writeModel({
    opset: 18,
    inputs: [
      { name: "x", dtype: "f32", shape: [2] },
      { name: "i", dtype: "i64", shape: [1] },
    ],
    outputs: ["y"],
    nodes: [{ op: "Gather", inputs: ["x", "i"], outputs: ["y"] }],
  });
  await using model = await load(bytes, { threads: 1, target: "wasm" });
  const feeds = {
    x: tensor("f32", [2], Float32Array.of(1, 2)),
    i: tensor("i64", [1], BigInt64Array.of(index)),
  };
  expect(() => model.run(feeds)).toThrow(message);
});
