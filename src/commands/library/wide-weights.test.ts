/**
 * Weights of half precision that an artifact has once, for two programs: machine code and kernels of GPUs read
 * them as they are, WebAssembly as single precision.
 */
import { describe, expect, it } from "vitest";
import { readArtifact } from "../../artifact/read-artifact.ts";
import { writeArtifact } from "../../artifact/write-artifact.ts";
import { writeModel } from "../../frontend/onnx/model-writer.ts";
import { runnableTargets } from "../../runtime/create-session.ts";
import { checksums } from "../../runtime/files/hash-bytes.ts";
import type { KeptFiles } from "../../runtime/files/kept-files.ts";
import { fromRef, numbersOf, refTensor, toRef } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { LoadedModel } from "./loaded-model.ts";
import { type OpenModel, openModel, startSession } from "./open-model.ts";
import { tensor } from "./tensor.ts";

type Half = "f16" | "bf16";

const depth = 48;

/** Rows of halves by weights, as they are or from a vector that is reshaped. */
function halves(dtype: Half, columns: number, isReshaped: boolean): Uint8Array {
  const rng = new Rng(3);
  const values = Array.from({ length: depth * columns }, () => rng.normal());
  const shape = isReshaped ? [depth * columns] : [depth, columns];
  const nodes = [
    { op: "Neg", inputs: ["x"], outputs: ["a"] },
    ...(isReshaped ? [{ op: "Reshape", inputs: ["w", "shape"], outputs: ["m"] }] : []),
    { op: "MatMul", inputs: ["a", isReshaped ? "m" : "w"], outputs: ["y"] },
  ];
  return writeModel({
    opset: 18,
    inputs: [{ name: "x", dtype, shape: [8, depth] }],
    outputs: ["y"],
    weights: {
      w: fromRef(refTensor(dtype, shape, values)),
      ...(isReshaped && {
        shape: tensor("i64", [2], BigInt64Array.from([depth, columns], BigInt)),
      }),
    },
    nodes,
  });
}

function opened(bytes: Uint8Array, target: string, kept?: KeptFiles): OpenModel {
  const found = openModel({ bytes }, { target, portable: true, seed: 0, shapes: {}, kept });
  if (!found.ok) throw new Error(found.diagnostics[0]!.message);
  return found.value;
}

async function resultOf(model: OpenModel, dtype: Half): Promise<ArrayLike<number>> {
  const session = startSession(model, 1);
  if (!session.ok) throw new Error(session.diagnostics[0]!.message);
  const loaded = new LoadedModel(model, session.value);
  const rng = new Rng(4);
  const x = fromRef(
    refTensor(
      dtype,
      [8, depth],
      Array.from({ length: 8 * depth }, () => rng.normal()),
    ),
  );
  const y = loaded.run({ x }).y!;
  await loaded.dispose();
  return numbersOf(toRef(y));
}

/** Columns on both sides of the size from which weights stand outside the graph's text. */
const cases = (["f16", "bf16"] as const).flatMap((dtype) =>
  [1, 64].flatMap((columns) => [false, true].map((is) => [dtype, columns, is] as const)),
);

describe.each(cases)("weights of %s, %i columns, reshaped: %s", (dtype, columns, isReshaped) => {
  const onnx = halves(dtype, columns, isReshaped);
  const native = runnableTargets().names.find((name) => name.startsWith("x64-"));

  it.each(["x64-avx512", "x64-avx2", "h100"])(
    "are read by both programs, with %s",
    async (name) => {
      const wanted = await resultOf(opened(onnx, "wasm"), dtype);
      const { artifact, target } = opened(onnx, name);
      for (const pack of [undefined, target.name]) {
        const bytes = writeArtifact(artifact, checksums, pack);
        const read = readArtifact(bytes);
        expect(read.ok ? "" : read.diagnostics[0]!.message).toBe("");
        expect(await resultOf(opened(bytes, "wasm"), dtype)).toEqual(wanted);
        if (read.ok) expect(writeArtifact(read.value, checksums, pack)).toEqual(bytes);
      }
    },
  );

  it("are found again by what was kept", async () => {
    const files = new Map<string, Uint8Array>();
    const kept = {
      read: (key: string) => files.get(key),
      write: (key: string, file: Uint8Array) => void files.set(key, file),
    };
    const { artifact } = opened(onnx, "x64-avx512");
    for (const pack of [undefined, "x64-avx512"]) {
      const bytes = writeArtifact(artifact, checksums, pack);
      files.clear();
      const first = await resultOf(opened(bytes, "wasm", kept), dtype);
      expect(files.size).toBe(1);
      const again = opened(bytes, "wasm", kept);
      expect(again.start.code).toBeDefined();
      expect(await resultOf(again, dtype)).toEqual(first);
    }
  });

  it.skipIf(!native)("give the same where machine code runs, within rounding", async () => {
    const { artifact } = opened(onnx, native!);
    const bytes = writeArtifact(artifact, checksums, native);
    const [own, wide] = [
      await resultOf(opened(bytes, native!), dtype),
      await resultOf(opened(bytes, "wasm"), dtype),
    ];
    const step = dtype === "f16" ? 2 ** -10 : 2 ** -7;
    for (const [i, y] of Array.from(own).entries())
      expect(Math.abs(y - wide[i]!)).toBeLessThanOrEqual(step * Math.max(8, Math.abs(y)));
  });
});

it("of single precision are no wider views (ART005)", () => {
  const { artifact } = opened(halves("f16", 64, false), "x64-avx512");
  const view = artifact.meta.views.find((v) => v.dtype)!;
  expect(view).toMatchObject({ of: "w", dtype: "f32" });
  const single = opened(
    writeModel({
      opset: 18,
      inputs: [{ name: "x", dtype: "f32", shape: [8, depth] }],
      outputs: ["y"],
      weights: { w: fromRef(refTensor("f32", [depth, 64], new Array<number>(depth * 64).fill(1))) },
      nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
    }),
    "wasm",
  );
  const meta = { ...single.artifact.meta, views: [view] };
  expect(readArtifact(writeArtifact({ ...single.artifact, meta }))).toMatchObject({
    ok: false,
    diagnostics: [{ code: "ART005" }],
  });
});
