/**
 * Artifacts that forging starts from: one program, and models in stages with everything that a stage can
 * be: programs for sizes that data decide, references between them, a loop that data end, boxes that
 * survive, numbers that are drawn, a weight that several stages share.
 */
import { writeArtifact } from "../../src/artifact/write-artifact.ts";
import type { OpenModel } from "../../src/commands/library/open-model.ts";
import {
  stagedArtifact,
  untilHundred,
} from "../../src/commands/library/staged-artifact.test-support.ts";
import {
  type ModelSpec,
  type NodeSpec,
  tensorOf,
  writeModel,
} from "../../src/frontend/onnx/model-writer.ts";
import { checksums } from "../../src/runtime/files/hash-bytes.ts";
import { randomTensor, type Tensor } from "../../src/semantics/tensor.ts";
import { Rng } from "../../src/support/rng.ts";

const floats = (...values: readonly number[]): Tensor =>
  tensorOf("f32", [values.length], Float32Array.from(values));
const scalar = (value: number): Tensor => tensorOf("f32", [], Float32Array.of(value));

/** Rows of a table at the places of what is above zero, with a product that takes the same table. */
const picked: ModelSpec = {
  opset: 18,
  inputs: [{ name: "x", dtype: "f32", shape: [20] }],
  outputs: ["rows", "sum"],
  // Larger than what stands in the graph's text.
  weights: { table: randomTensor("f32", [20, 60], new Rng(1)), zero: scalar(0) },
  nodes: [
    { op: "Greater", inputs: ["x", "zero"], outputs: ["mask"] },
    { op: "NonZero", inputs: ["mask"], outputs: ["places"] },
    { op: "Gather", inputs: ["table", "places"], outputs: ["rows"] },
    { op: "MatMul", inputs: ["x", "table"], outputs: ["mixed"] },
    { op: "Add", inputs: ["rows", "mixed"], outputs: ["moved"] },
    { op: "ReduceSum", inputs: ["moved"], outputs: ["sum"], attributes: { keepdims: 0n } },
  ],
};

/** A loop that data end, with noise on what it ends with. */
const untilLarge = untilHundred([
  { op: "RandomNormalLike", inputs: ["end"], outputs: ["noise"], attributes: { seed: 0.7 } },
  { op: "Add", inputs: ["end", "noise"], outputs: ["last"] },
]);

const column: NodeSpec = {
  op: "Gather",
  inputs: ["kept", "one"],
  outputs: ["labelOf"],
  attributes: { axis: 1n },
};

/** Boxes that survive, then the labels among them, each once. */
const survivors: ModelSpec = {
  opset: 18,
  inputs: [
    { name: "boxes", dtype: "f32", shape: [1, 12, 4] },
    { name: "scores", dtype: "f32", shape: [1, 2, 12] },
  ],
  outputs: ["labels", "best"],
  weights: {
    most: tensorOf("i64", [1], BigInt64Array.of(5n)),
    overlap: floats(0.3),
    least: floats(0.2),
    one: tensorOf("i64", [], BigInt64Array.of(1n)),
  },
  nodes: [
    {
      op: "NonMaxSuppression",
      inputs: ["boxes", "scores", "most", "overlap", "least"],
      outputs: ["kept"],
    },
    column,
    { op: "Unique", inputs: ["labelOf"], outputs: ["labels"] },
    { op: "ReduceMax", inputs: ["scores"], outputs: ["best"], attributes: { keepdims: 0n } },
  ],
};

/** Of one program, and of programs in stages. */
export interface ArtifactSeeds {
  readonly whole: readonly Uint8Array[];
  readonly staged: readonly Uint8Array[];
}

export function artifactSeeds(opened: OpenModel): ArtifactSeeds {
  return {
    whole: [
      writeArtifact(opened.artifact),
      writeArtifact(opened.artifact, checksums, opened.target.name),
    ],
    staged: [picked, untilLarge, survivors].map((spec) => stagedArtifact(writeModel(spec))),
  };
}
