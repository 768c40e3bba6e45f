/** What one line says of the search: among it, of how many threads its price is. */
import { expect, it } from "vitest";
import { unwrap } from "../../../bench/sessions/import-hints.ts";
import { tensorOf, writeModel } from "../../frontend/onnx/model-writer.ts";
import { openModel } from "./open-model.ts";
import { describeCertificate } from "./search-report.ts";

it.each([
  [1, "ms as priced on one thread, gap"],
  [2, "ms as priced on 2 threads, gap"],
])("the price is that on %s threads", (threads, text) => {
  const bytes = writeModel({
    opset: 17,
    inputs: [{ name: "x", dtype: "f32", shape: [64, 64] }],
    outputs: [{ name: "y", dtype: "f32", shape: [64, 64] }],
    weights: { w: tensorOf("f32", [64, 64], new Float32Array(4096)) },
    nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
  });
  const opened = unwrap(openModel({ bytes }, { target: "wasm", shapes: {}, seed: 0, threads }));
  const [search] = opened.artifact.meta.searches!;
  expect(search!.threads).toBe(threads);
  expect(describeCertificate(search!)).toContain(text);
});
