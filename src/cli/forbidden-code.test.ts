import { beforeAll, describe, expect, it, vi } from "vitest";
import { writeArtifact } from "../artifact/write-artifact.ts";
import { load, tryLoad } from "../commands/library/load.ts";
import { openModel } from "../commands/library/open-model.ts";
import { sampleModel } from "../commands/library/sample-model.test-support.ts";
import { tensor } from "../commands/library/tensor.ts";
import { noExecution } from "../runtime/native/cpuid.ts";
import { fail } from "../support/diagnostic.ts";

/** A host that forbids executable memory, whatever its processor can do. */
vi.mock("../runtime/native/features.ts", () => ({
  probeNativeFeatures: () => fail(noExecution()),
}));

const shapes = { M: { min: 1, max: 8 } };
let artifact: Uint8Array;
beforeAll(() => {
  const options = { target: "x64-avx512-vnni", portable: true, seed: 0, shapes };
  const opened = openModel({ bytes: sampleModel() }, options);
  if (!opened.ok) throw new Error(JSON.stringify(opened.diagnostics));
  artifact = writeArtifact(opened.value.artifact);
});

describe("on a host that forbids executable memory", () => {
  it("an artifact runs as WebAssembly, and the model says why", async () => {
    const model = await load(artifact, { threads: 1 });
    expect(model.warnings).toMatchObject([{ code: "RUN052", severity: "warning" }]);
    const x = tensor("f32", [1, 24], new Float32Array(24).fill(1));
    expect(model.run({ "x:0": x })["y:0"]!.shape).toEqual([1, 40]);
    await model.dispose();
    const plain = await load(artifact, { threads: 1, target: "wasm" });
    expect(plain.warnings).toEqual([]);
    await plain.dispose();
  });

  it("a model that is to be machine code says why it is not", async () => {
    const model = await load(sampleModel(), { shapes: { M: "1..8" }, target: "cpu", threads: 1 });
    expect(model.warnings).toMatchObject([{ code: "RUN052" }]);
    await model.dispose();
  });

  it.each(["x64-avx512-vnni", "x64-avx2", "epyc-9654"])(
    "a target by name is refused with the reason: %s (CLI006)",
    (target) => {
      const made = tryLoad(sampleModel(), { shapes: { M: "1..8" }, target });
      expect(made.ok ? [] : made.diagnostics).toMatchObject([
        {
          code: "CLI006",
          message: expect.stringContaining("forbids memory that is executable"),
          notes: expect.arrayContaining([expect.stringContaining("RUN052")]),
        },
      ]);
    },
  );

  it("a target that the artifact lacks says how to make its program (CLI002)", () => {
    const made = tryLoad(artifact, { target: "x64-avx2" });
    expect(made.ok ? [] : made.diagnostics).toMatchObject([
      { code: "CLI002", help: expect.stringContaining("--target x64-avx2 -o") },
    ]);
  });
});
