/** Models that run in stages, and their artifacts, for tests. */
import { writeStagedArtifact } from "../../artifact/write-artifact.ts";
import { importOnnx } from "../../frontend/onnx/import/import-model.ts";
import {
  type GraphSpec,
  type ModelSpec,
  type NodeSpec,
  tensorOf,
} from "../../frontend/onnx/model-writer.ts";
import type { Tensor } from "../../semantics/tensor.ts";
import { targets } from "../../target/index.ts";
import { portNames } from "./model-bytes.ts";
import { openStages } from "./stages.ts";
import { unwrap } from "./wavetile-error.ts";

/** For WebAssembly; throws where it is refused. */
export function stagedArtifact(model: Uint8Array): Uint8Array {
  const imported = unwrap(importOnnx(model));
  const options = { target: "wasm", shapes: {}, seed: 0 };
  const { graph, weights, stages } = unwrap(openStages(imported, targets.get("wasm")!, options)!);
  return writeStagedArtifact({
    meta: { producer: "test", seed: 0, ...portNames(imported, graph) },
    graph,
    weights,
    stages: stages.map(({ graph: part, opened }) => ({
      part,
      ...(opened && { program: opened.artifact }),
    })),
  });
}

/** The body of a loop: v <- v + `added` until it is 100; each v is kept. */
export function upToHundred(added: string): GraphSpec {
  return {
    inputs: [
      { name: "i", dtype: "i64", shape: [] },
      { name: "before", dtype: "bool", shape: [] },
      { name: "v", dtype: "f32", shape: [1] },
    ],
    outputs: ["on", "next", "kept"],
    weights: { hundred: tensorOf("f32", [], Float32Array.of(100)) },
    nodes: [
      { op: "Add", inputs: ["v", added], outputs: ["next"] },
      { op: "Identity", inputs: ["next"], outputs: ["kept"] },
      { op: "Squeeze", inputs: ["next"], outputs: ["scalar"] },
      { op: "Less", inputs: ["scalar", "hundred"], outputs: ["on"] },
    ],
  };
}

/**
 * x <- 2 x until it is 100 or there were n trips; each x is kept (`all`).
 * @param last from the last x, `end`, to the output `last`
 */
export function untilHundred(
  last: readonly NodeSpec[],
  weights: Readonly<Record<string, Tensor>> = {},
): ModelSpec {
  return {
    opset: 18,
    inputs: [
      { name: "x", dtype: "f32", shape: [1] },
      { name: "n", dtype: "i64", shape: [] },
    ],
    outputs: ["all", "last"],
    weights: { go: tensorOf("bool", [], Uint8Array.of(1)), ...weights },
    nodes: [
      {
        op: "Loop",
        inputs: ["n", "go", "x"],
        outputs: ["end", "all"],
        attributes: {
          body: upToHundred("v"),
        },
      },
      ...last,
    ],
  };
}
