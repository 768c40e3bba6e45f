import { describe, expect, it } from "vitest";
import { writeArtifact } from "../../artifact/write-artifact.ts";
import { runnableTargets } from "../../runtime/create-session.ts";
import { checksums } from "../../runtime/files/hash-bytes.ts";
import type { KeptFiles } from "../../runtime/files/kept-files.ts";
import { randomTensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { LoadedModel } from "./loaded-model.ts";
import { type OpenModel, openModel, startSession } from "./open-model.ts";
import { sampleModel, sumModel } from "./sample-model.test-support.ts";

function memoryStore(): KeptFiles & { readonly files: Map<string, Uint8Array> } {
  const files = new Map<string, Uint8Array>();
  return { files, read: (key) => files.get(key), write: (key, file) => void files.set(key, file) };
}

/** @param isPacked its weights are stored as the program reads them */
function artifactOf(
  onnx: Uint8Array,
  states: Record<string, string> = {},
  isPacked = false,
): Uint8Array {
  const shapes = "s" in states ? {} : { M: { min: 1, max: 8 } };
  const options = { target: "auto", seed: 0, shapes, states };
  const made = openModel({ bytes: onnx }, options);
  if (!made.ok) throw new Error(made.diagnostics[0]!.message);
  const { artifact, target } = made.value;
  return isPacked ? writeArtifact(artifact, checksums, target.name) : writeArtifact(artifact);
}

function open(bytes: Uint8Array, kept: KeptFiles | undefined): OpenModel {
  const opened = openModel({ bytes }, { target: "auto", shapes: {}, seed: 0, kept });
  if (!opened.ok) throw new Error(opened.diagnostics[0]!.message);
  return opened.value;
}

function start(opened: OpenModel): LoadedModel {
  const session = startSession(opened, 1);
  if (!session.ok) throw new Error(session.diagnostics[0]!.message);
  return new LoadedModel(opened, session.value);
}

/** Columns on both sides of the size from which weights stand outside the graph's text. */
const models = [
  ["weights in the text", 40, false],
  ["weights in the container", 64, false],
  ["weights in the arena", 64, true],
] as const;

describe.each(models)("an artifact that was loaded before: %s", (_, columns, isPacked) => {
  const bytes = artifactOf(sampleModel(columns), {}, isPacked);
  const feeds = { "x:0": randomTensor("f32", [3, 24], new Rng(2)) };

  it("runs without its texts, and equals the first load", async () => {
    const store = memoryStore();
    const first = start(open(bytes, store));
    expect(store.files.size).toBe(1);
    const opened = open(bytes, store);
    expect(opened.start.program.kernels.every((k) => k.roles.length === 0)).toBe(true);
    const again = start(opened);
    expect([again.inputs, again.outputs]).toEqual([first.inputs, first.outputs]);
    expect(again.run(feeds)).toEqual(first.run(feeds));
    expect(store.files.size).toBe(1);
    await Promise.all([first.dispose(), again.dispose()]);
  });

  it("still knows graph, program and times of kernels", async () => {
    const store = memoryStore();
    await start(open(bytes, store)).dispose();
    const opened = open(bytes, store);
    const whole = open(bytes, undefined);
    expect(opened.artifact.graph.nodes).toEqual(whole.artifact.graph.nodes);
    expect(opened.code.program).toEqual(whole.code.program);
    const model = start(opened);
    const profile = model.profile(feeds, () => 0);
    expect(profile.ok && profile.value.outputs).toEqual(model.run(feeds));
    await model.dispose();
  });
});

describe("what is kept", () => {
  it("belongs to one content: another artifact is read anew", () => {
    const store = memoryStore();
    void start(open(artifactOf(sampleModel(40)), store)).dispose();
    const other = open(artifactOf(sampleModel(41)), store);
    expect(other.start.code).toBeUndefined();
  });

  it("does not hide damage of the artifact (ART003)", () => {
    const store = memoryStore();
    const bytes = artifactOf(sampleModel(64));
    void start(open(bytes, store)).dispose();
    const broken = Uint8Array.from(bytes);
    broken[broken.length - 100]! ^= 1;
    const refused = openModel(
      { bytes: broken },
      { target: "auto", shapes: {}, seed: 0, kept: store },
    );
    expect(refused).toMatchObject({ ok: false, diagnostics: [{ code: "ART003" }] });
  });

  it("carries states from run to run", async () => {
    const store = memoryStore();
    const bytes = artifactOf(sumModel(), { s: "total" });
    const x = randomTensor("f32", [2], new Rng(3));
    const results = [];
    for (let load = 0; load < 2; load++) {
      const model = start(open(bytes, store));
      results.push([model.inputs, model.run({ x }), model.run({ x })]);
      await model.dispose();
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[0]![2]).not.toEqual(results[0]![1]);
  });

  it("finds weights in the arena of another target's program", async () => {
    const [best] = runnableTargets().names;
    const made = openModel(
      { bytes: sampleModel(64) },
      { target: best!, portable: true, seed: 0, shapes: { M: { min: 1, max: 8 } } },
    );
    if (!made.ok) throw new Error(made.diagnostics[0]!.message);
    const bytes = writeArtifact(made.value.artifact, checksums, best);
    const store = memoryStore();
    const feeds = { "x:0": randomTensor("f32", [3, 24], new Rng(2)) };
    const runs = [1, 2].map(() => {
      const opened = openModel({ bytes }, { target: "wasm", shapes: {}, seed: 0, kept: store });
      if (!opened.ok) throw new Error(opened.diagnostics[0]!.message);
      return start(opened.value);
    });
    expect(store.files.size).toBe(1);
    const [first, again] = runs.map((model) => model.run(feeds));
    expect(again).toEqual(first);
    await Promise.all(runs.map((model) => model.dispose()));
  });
});
