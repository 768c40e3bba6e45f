/** In Node, which lacks a browser's workers: those are replaced by worker_threads behind the same class. */
import { Worker as NodeWorker } from "node:worker_threads";
import { afterEach, describe, expect, it, vi } from "vitest";
import { writeArtifact } from "../artifact/write-artifact.ts";
import { openModel } from "../commands/library/open-model.ts";
import { sampleModel } from "../commands/library/sample-model.test-support.ts";
import { stagedArtifact } from "../commands/library/staged-artifact.test-support.ts";
import { tensor } from "../commands/library/tensor.ts";
import { WavetileError } from "../commands/library/wavetile-error.ts";
import { writeModel } from "../frontend/onnx/model-writer.ts";
import { loadArtifact } from "./index.ts";

function artifactFor(target: string): Uint8Array {
  const shapes = { M: { min: 1, max: 8 } };
  const made = openModel({ bytes: sampleModel() }, { target, seed: 0, shapes });
  if (!made.ok) throw new WavetileError(made.diagnostics);
  return writeArtifact(made.value.artifact);
}

const artifact = artifactFor("wasm");
const x = tensor("f32", [2, 24], new Float32Array(48).fill(0.25));

/** A browser's Worker over a thread of Node; blobs are read through their URL. */
class BlobWorker {
  readonly #ready: Promise<NodeWorker>;
  constructor(url: string) {
    this.#ready = fetch(url)
      .then((response) => response.text())
      .then((source) => {
        const self = `const { parentPort } = require("node:worker_threads");
          const self = {
            postMessage: (message) => parentPort.postMessage(message),
            addEventListener: (kind, handler) => parentPort.on(kind, (data) => handler({ data })),
          };`;
        return new NodeWorker(self + source.replace('"use strict";', ""), { eval: true });
      });
  }
  postMessage(message: unknown): void {
    void this.#ready.then((worker) => worker.postMessage(message));
  }
  addEventListener(kind: "message" | "error", listener: (event: never) => void): void {
    void this.#ready.then((worker) =>
      worker.on(kind, (data: Error) =>
        listener((kind === "message" ? { data } : { message: data.message }) as never),
      ),
    );
  }
  terminate(): void {
    void this.#ready.then((worker) => worker.terminate());
  }
}

afterEach(() => vi.unstubAllGlobals());

async function codeOf(body: () => Promise<unknown>): Promise<string> {
  try {
    await body();
  } catch (error) {
    if (error instanceof WavetileError) return error.diagnostics[0]!.code;
    throw error;
  }
  return "ok";
}

describe("loadArtifact", () => {
  it("runs on one thread where there are no workers, and on several where there are", async () => {
    const alone = await loadArtifact(artifact);
    expect(alone.threads).toBe(1);
    expect(alone.inputs).toEqual([{ name: "x:0", dtype: "f32", shape: ["M", 24] }]);
    const wanted = (await alone.run({ "x:0": x }))["y:0"]!;
    expect(wanted.shape).toEqual([2, 40]);
    await alone.dispose();
    vi.stubGlobal("Worker", BlobWorker);
    vi.stubGlobal("navigator", { hardwareConcurrency: 3 });
    const shared = await loadArtifact(artifact);
    expect(shared.threads).toBe(3);
    const found = await Promise.all([1, 2].map(() => shared.run({ "x:0": x })));
    expect(found.map((o) => o["y:0"])).toEqual([wanted, wanted]);
    await shared.dispose();
  });

  it("shares no memory in a page that is not isolated (RUN045)", async () => {
    vi.stubGlobal("Worker", BlobWorker);
    vi.stubGlobal("crossOriginIsolated", false);
    expect(await codeOf(() => loadArtifact(artifact, { threads: 2 }))).toBe("RUN045");
    const model = await loadArtifact(artifact);
    expect(model.threads).toBe(1);
    expect((await model.run({ "x:0": x }))["y:0"]!.shape).toEqual([2, 40]);
    await model.dispose();
  });

  it("runs a model in which data decide sizes, one stage after another", async () => {
    const bytes = stagedArtifact(
      writeModel({
        opset: 18,
        inputs: [{ name: "x", dtype: "f32", shape: [6] }],
        outputs: ["found"],
        weights: { two: tensor("f32", [], new Float32Array([2])) },
        nodes: [
          { op: "NonZero", inputs: ["x"], outputs: ["places"] },
          {
            op: "Transpose",
            inputs: ["places"],
            outputs: ["rows"],
            attributes: { perm: [1n, 0n] },
          },
          { op: "GatherND", inputs: ["x", "rows"], outputs: ["taken"] },
          { op: "Mul", inputs: ["taken", "two"], outputs: ["found"] },
        ],
      }),
    );
    vi.stubGlobal("Worker", BlobWorker);
    vi.stubGlobal("navigator", { hardwareConcurrency: 2 });
    for (const threads of [1, 2]) {
      const model = await loadArtifact(bytes, { threads });
      for (const values of [
        [0, 1, 0, 2, 3, 0],
        [0, 0, 0, 0, 0, 0],
      ]) {
        const { found } = await model.run({ x: tensor("f32", [6], Float32Array.from(values)) });
        expect([...found!.data]).toEqual(values.filter((v) => v !== 0).map((v) => 2 * v));
      }
      await model.dispose();
    }
  });

  it("refuses what it cannot run in words", async () => {
    expect(await codeOf(() => loadArtifact(artifactFor("x64-avx2")))).toBe("RUN046");
    expect(await codeOf(() => loadArtifact(artifact.slice(0, 100)))).toMatch(/^ART00/);
    expect(await codeOf(() => loadArtifact(artifact, { threads: 0 }))).toBe("CLI001");
    const model = await loadArtifact(artifact);
    expect(await codeOf(() => model.run({}))).toBe("RUN012");
    await model.dispose();
    expect(await codeOf(() => model.run({ "x:0": x }))).toBe("RUN037");
  });
});
