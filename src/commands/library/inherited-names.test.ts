/** A model may call its values and dimensions what every object inherits: they are names like any other. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runCaptured } from "../../cli/run-captured.test-support.ts";
import { type NodeSpec, type ValueSpec, writeModel } from "../../frontend/onnx/model-writer.ts";
import { writeNpy } from "../../runtime/files/npy.ts";
import { InferenceSession } from "./inference-session.ts";
import { type LoadOptions, load } from "./load.ts";
import { stagedArtifact } from "./staged-artifact.test-support.ts";
import { tensor } from "./tensor.ts";
import { unwrap } from "./wavetile-error.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-names-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const inherited = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"];
const one = { threads: 1, target: "wasm" } as const;

function model(input: ValueSpec, nodes: readonly NodeSpec[], opset = 18): Uint8Array {
  const outputs = nodes.map((n) => n.outputs[0]!);
  return writeModel({ opset, inputs: [input], outputs, weights: {}, nodes });
}

const relu = (from: string, to: string): NodeSpec => ({
  op: "Relu",
  inputs: [from],
  outputs: [to],
});
const fed = (values: readonly number[]) =>
  tensor("f32", [values.length], Float32Array.from(values));
const given = fed([-1, 2]);
const relued = fed([0, 2]);
const named = (name: string) => model({ name, dtype: "f32", shape: [2] }, [relu(name, "y")]);
const giving = (name: string) =>
  model({ name: "x", dtype: "f32", shape: [2] }, [relu("x", name), relu("x", "y")]);

async function runWith(bytes: Uint8Array, input: string, options: LoadOptions = one) {
  await using loaded = await load(bytes, options);
  const feeds = { [input]: given };
  const found = loaded.run(feeds);
  expect(await loaded.runAsync(feeds)).toEqual(found);
  return found;
}

describe.each(inherited)("a model with the name %s", (name) => {
  it("gives an output of it, and takes a tensor for it", async () => {
    const found = await runWith(giving(name), "x");
    expect(Object.entries(found)).toEqual([
      [name, relued],
      ["y", relued],
    ]);
    expect(Object.getPrototypeOf(found)).toBe(Object.prototype);
    await using loaded = await load(giving(name), one);
    const into = fed([7, 7]);
    const taken = loaded.run({ x: given }, { outputs: { [name]: into } });
    expect(Object.entries(taken)[0]![1].data).toBe(into.data);
    expect(into).toEqual(relued);
  });

  it("takes an input of it, and says so where it is missing", async () => {
    expect(await runWith(named(name), name)).toEqual({ y: relued });
    await using loaded = await load(named(name), one);
    expect(() => loaded.run({})).toThrow(/RUN012/);
  });

  it("runs in stages, and from an artifact of them", async () => {
    const bytes = model({ name, dtype: "f32", shape: [2] }, [
      { op: "NonZero", inputs: [name], outputs: ["places"] },
      { op: "Neg", inputs: ["places"], outputs: [`${name}2`] },
    ]);
    const renamed = model({ name: "x", dtype: "f32", shape: [2] }, [
      { op: "NonZero", inputs: ["x"], outputs: [name] },
      { op: "Neg", inputs: [name], outputs: ["y"] },
    ]);
    for (const [file, input] of [
      [bytes, name],
      [renamed, "x"],
    ] as const) {
      const found = await runWith(file, input);
      expect(Object.values(found).map((t) => t.shape)).toEqual([
        [1, 2],
        [1, 2],
      ]);
      expect(await runWith(stagedArtifact(file), input, { threads: 1 })).toEqual(found);
    }
    await using loaded = await load(bytes, one);
    expect(() => loaded.run({})).toThrow(/RUN012/);
  });

  it("has a dimension of it, that has no bound or is given one", async () => {
    const bytes = model({ name: "x", dtype: "f32", shape: [name] }, [relu("x", name)]);
    const found = [[name, relued]];
    expect(Object.entries(await runWith(bytes, "x"))).toEqual(found);
    for (const size of ["2", "1..8"]) {
      const sized = await runWith(bytes, "x", { ...one, shapes: { [name]: size } });
      expect(Object.entries(sized)).toEqual(found);
    }
  });

  it("is run as onnxruntime runs it", async () => {
    const session = await InferenceSession.create(giving(name), one);
    const x = { type: "float32", dims: [2], data: given.data };
    for (const fetches of [undefined, [name, "y"]]) {
      const found = await session.run({ x }, fetches);
      expect(Object.entries(found).map(([n, t]) => [n, t.data])).toEqual([
        [name, relued.data],
        ["y", relued.data],
      ]);
    }
    await session.release();
  });

  it("is run from the command line, random, fed and as an artifact", async () => {
    const bytes = model({ name, dtype: "f32", shape: [name] }, [relu(name, `${name}.y`)]);
    const [path, feed, artifact, out] = [".onnx", ".npy", ".wt", ".out"].map((ending) =>
      join(folder, `${name}${ending}`),
    ) as [string, string, string, string];
    writeFileSync(path, bytes);
    writeFileSync(feed, unwrap(writeNpy(given)));
    const size = ["--shape", `${name}=2`, "--target", "wasm"];
    const input = ["--input", `${name}=${feed}`];
    const made = await runCaptured(["optimize", path, ...size, "--output", artifact]);
    expect(made).toMatchObject({ exit: 0, err: "" });
    for (const words of [
      [path, "--random", "--target", "wasm"],
      [path, ...size, ...input, "--output-dir", out],
      [artifact, ...input],
    ]) {
      const ran = await runCaptured(["run", ...words]);
      expect(ran).toMatchObject({ exit: 0, out: expect.stringContaining(`${name}.y f32[`) });
    }
    expect(readdirSync(out)).toEqual([`${name}.y.npy`]);
  });
});
