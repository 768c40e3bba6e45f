import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { register } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { sampleModel } from "../commands/library/sample-model.test-support.ts";
import { runCaptured } from "./run-captured.test-support.ts";

const peer = "onnxruntime-node";
let folder = "";
let model = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-peer-"));
  model = join(folder, "m.onnx");
  writeFileSync(model, sampleModel());
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => vi.doUnmock(peer));

/** Answers every run with zeros, which the model does not give. */
function wrongRuntime() {
  const y = { type: "float32", dims: [4, 40], data: new Float32Array(4 * 40) };
  const session = { run: async () => ({ "y:0": y }), release: async () => {} };
  return { InferenceSession: { create: async () => session }, Tensor: class {} };
}

/** From here on an import of the peer looks for a package that nobody has. */
function hidePeer(): void {
  const hooks = `export const resolve = (name, context, next) =>
    next(name.includes("${peer}") ? "package-that-is-not-installed" : name, context);`;
  register(`data:text/javascript,${encodeURIComponent(hooks)}`);
}

async function againstPeer(command: "verify" | "bench") {
  const args = [command, model, "--shape", "M=4", "--threads", "1", "--against", "onnxruntime"];
  const { exit, out } = await runCaptured([...args, "--json"], () => performance.now());
  return { exit, document: JSON.parse(out) as unknown };
}

describe("--against onnxruntime", () => {
  it("says what the peer says of a model that it refuses (CLI010)", async () => {
    const create = async () => {
      throw new Error("no kernel for Frob");
    };
    vi.doMock(peer, () => ({ InferenceSession: { create }, Tensor: class {} }));
    for (const command of ["verify", "bench"] as const) {
      expect(await againstPeer(command)).toMatchObject({
        exit: 1,
        document: { error: { code: "CLI010", message: expect.stringContaining("no kernel for") } },
      });
    }
  });

  it("reports outputs that differ (CLI004)", async () => {
    vi.doMock(peer, wrongRuntime);
    expect(await againstPeer("verify")).toMatchObject({
      exit: 3,
      document: {
        ok: false,
        data: { outputs: [{ name: "y:0", agrees: false }] },
        error: { code: "CLI004" },
      },
    });
  });

  it("exits with 7 when the peer is faster beyond doubt (CLI007)", async () => {
    vi.doMock(peer, wrongRuntime);
    const { exit, document } = await againstPeer("bench");
    expect({ exit, document }).toMatchObject({
      exit: 7,
      document: { ok: false, data: { n: expect.any(Number) }, error: { code: "CLI007" } },
    });
  });

  it("reports that the peer is not installed (CLI003)", async () => {
    hidePeer();
    expect(await againstPeer("verify")).toMatchObject({
      exit: 6,
      document: { ok: false, error: { code: "CLI003" } },
    });
  });
});
