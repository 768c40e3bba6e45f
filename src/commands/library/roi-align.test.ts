/** RoiAlign without a sampling ratio: data decide how many samples a bin has. */
import { afterAll, describe, expect, it } from "vitest";
import { writeModel } from "../../frontend/onnx/model-writer.ts";
import { randomTensor, type Tensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { load, tryLoad } from "./load.ts";
import type { LoadedModel } from "./loaded-model.ts";
import { openPeer } from "./onnxruntime.ts";
import { tensor } from "./tensor.ts";
import { unwrap } from "./wavetile-error.ts";

const open: LoadedModel[] = [];
afterAll(async () => {
  for (const model of open) await model.dispose();
});

const rois = 24;

function modelOf(mode: string, coordinates: string): Uint8Array {
  const attributes = {
    mode,
    coordinate_transformation_mode: coordinates,
    output_height: 3n,
    output_width: 2n,
    spatial_scale: 0.5,
  };
  return writeModel({
    opset: 18,
    inputs: [
      { name: "x", dtype: "f32", shape: [2, 3, 9, 11] },
      { name: "boxes", dtype: "f32", shape: ["k", 4] },
      { name: "batches", dtype: "i64", shape: ["k"] },
    ],
    outputs: ["y"],
    nodes: [
      { op: "Neg", inputs: ["x"], outputs: ["negative"] },
      {
        op: "RoiAlign",
        inputs: ["negative", "boxes", "batches"],
        outputs: ["aligned"],
        attributes,
      },
      { op: "Neg", inputs: ["aligned"], outputs: ["y"] },
    ],
  });
}

/** Boxes of all sizes, some partly or wholly outside of the data. */
function boxesOf(rng: Rng): Tensor {
  const corners = Array.from({ length: rois }, () => {
    const [x, y] = [rng.uniform() * 34 - 10, rng.uniform() * 30 - 10];
    return [x, y, x + rng.uniform() * 30, y + rng.uniform() * 30];
  });
  return tensor("f32", [rois, 4], Float32Array.from(corners.flat()));
}

describe.each(["avg", "max"])("RoiAlign by %s without a sampling ratio", (mode) => {
  it.each(["half_pixel", "output_half_pixel"])("gives what onnxruntime does: %s", async (how) => {
    const bytes = modelOf(mode, how);
    const model = await load(bytes, { shapes: { k: rois }, threads: 1 });
    open.push(model);
    const peer = unwrap(await openPeer(bytes, 1));
    const rng = new Rng(7);
    const batches = tensor(
      "i64",
      [rois],
      Array.from({ length: rois }, (_, i) => BigInt(i % 2)),
    );
    for (let trial = 0; trial < 4; trial++) {
      const feeds = { x: randomTensor("f32", [2, 3, 9, 11], rng), boxes: boxesOf(rng), batches };
      const wanted = unwrap(await peer.run(feeds)).y!;
      const found = model.run(feeds).y!;
      expect(found.shape).toEqual(wanted.shape);
      const errors = Array.from(found.data as Float32Array, (v, i) => {
        return Math.abs(v - Number(wanted.data[i]));
      });
      expect(Math.max(...errors)).toBeLessThan(1e-5);
    }
    await peer.release();
  });
});

it("a box of any size takes as long as the data, and the reference is told of (SCH015)", () => {
  const told = tryLoad(modelOf("avg", "half_pixel"), { shapes: { k: 2 }, threads: 1 });
  expect(told).toMatchObject({ warnings: [{ code: "SCH015", severity: "warning" }] });
  const model = unwrap(told);
  open.push(model);
  const x = tensor("f32", [2, 3, 9, 11], new Float32Array(2 * 3 * 9 * 11).fill(1));
  const boxes = tensor("f32", [2, 4], Float32Array.of(-1e9, -1e9, 1e9, 1e9, 0, 0, Infinity, 8));
  const { y } = model.run({ x, boxes, batches: tensor("i64", [2], [0n, 1n]) });
  expect(Math.max(...Array.from(y!.data as Float32Array, Math.abs))).toBeLessThan(1e-6);
});
