/** Weights in a file beside the model that is missing, too short, elsewhere, or goes away in between. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runCaptured } from "../../cli/run-captured.test-support.ts";
import { writeModel } from "../../frontend/onnx/model-writer.ts";
import { writeExternalTensorProto } from "../../frontend/onnx/tensor-proto.ts";
import { diagnostic, fail, ok } from "../../support/diagnostic.ts";
import { load, tryLoad } from "./load.ts";
import { openModel, startSession } from "./open-model.ts";
import { tensor } from "./tensor.ts";
import { unwrap, WavetileError } from "./wavetile-error.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-external-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const type = { dtype: "f32", shape: [64, 64] } as const;
const bytes = 64 * 64 * 4;

function modelOf(location: string): Uint8Array {
  return writeModel({
    opset: 17,
    inputs: [{ name: "x", dtype: "f32", shape: ["n", 64] }],
    outputs: ["y"],
    tensors: [writeExternalTensorProto("w", type, { location, offset: 0, length: bytes })],
    nodes: [{ op: "MatMul", inputs: ["x", "w"], outputs: ["y"] }],
  });
}

function written(name: string, location: string): string {
  const path = join(folder, name);
  writeFileSync(path, modelOf(location));
  return path;
}

const faults = [
  ["missing", "nope.bin", "RUN030", "does not exist"],
  ["short", "short.bin", "RUN030", "are asked for, it has 100"],
  ["outside", "outside.bin", "RUN032", "leads out of"],
] as const;
writeFileSync(join(folder, "short.bin"), new Uint8Array(100));
symlinkSync(process.execPath, join(folder, "outside.bin"));

describe.each(faults)("weights in a file that is %s", (name, location, code, message) => {
  const path = written(`${name}.onnx`, location);
  const wanted = {
    code,
    message: expect.stringContaining(message),
    notes: expect.arrayContaining(['initializer "w" is read from it']),
  };

  it("are a diagnostic of the library", async () => {
    expect(tryLoad(path, { shapes: { n: 2 } })).toMatchObject({ diagnostics: [wanted] });
    const refused = load(path, { shapes: { n: 2 } });
    await expect(refused).rejects.toBeInstanceOf(WavetileError);
  });

  it("are one of every command", async () => {
    const shape = ["--shape", "n=2", "--json"];
    const given = [
      ["run", path, "--random", ...shape],
      ["verify", path, ...shape],
      ["optimize", path, "-o", join(folder, "m.wt"), ...shape],
      ["inspect", path, "--regions", ...shape],
    ];
    for (const args of given) {
      const { exit, out } = await runCaptured(args, () => 0);
      const { error } = JSON.parse(out) as { error: { code: string } };
      expect([args[0], exit, error.code]).toEqual([args[0], 1, code]);
    }
  });
});

it("a file that goes away is told by the run that reads it, and no threads stay", async () => {
  const path = written("later.onnx", "later.bin");
  const data = join(folder, "later.bin");
  writeFileSync(data, new Uint8Array(bytes));
  const model = await load(path, { threads: 2 });
  rmSync(data);
  const feeds = { x: tensor("f32", [2, 64], new Float32Array(128)) };
  const gone = { diagnostics: [{ code: "RUN030" }] };
  expect(model.tryRun(feeds)).toMatchObject(gone);
  await expect(model.runAsync(feeds)).rejects.toBeInstanceOf(WavetileError);
  expect(model.profile(feeds, () => 0)).toMatchObject(gone);
  writeFileSync(data, new Uint8Array(bytes));
  expect(model.run(feeds).y!.shape).toEqual([2, 64]);
  await model.dispose();
});

it.each(["wasm", "cpu"])("%s: a session is not started without its weights", (target) => {
  let calls = 0;
  const readExternal = (_: string, __: number, length: number) =>
    ++calls > 1 ? fail(diagnostic("RUN030", "gone")) : ok(new Uint8Array(length));
  const source = { bytes: modelOf("w.bin"), readExternal };
  const opened = unwrap(openModel(source, { target, shapes: { n: 2 }, seed: 0 }));
  expect(startSession(opened, 2)).toMatchObject({ diagnostics: [{ code: "RUN030" }] });
});
