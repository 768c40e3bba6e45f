import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { writeArtifact } from "../../artifact/write-artifact.ts";
import { readSafetensors, writeSafetensors } from "../../frontend/safetensors/safetensors.ts";
import { runnableTargets } from "../../runtime/create-session.ts";
import { checksums } from "../../runtime/files/hash-bytes.ts";
import { randomTensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { load, tryLoad } from "./load.ts";
import type { LoadedModel } from "./loaded-model.ts";
import { openModel } from "./open-model.ts";
import { sampleModel } from "./sample-model.test-support.ts";

const folder = mkdtempSync(join(tmpdir(), "wavetile-artifact-"));
afterAll(() => rmSync(folder, { recursive: true }));

const [best = "wasm"] = runnableTargets().names;
const opened = openModel(
  { bytes: sampleModel(1400) },
  { target: best, portable: true, shapes: { M: { min: 1, max: 8 } }, seed: 3 },
);
if (!opened.ok) throw new Error(opened.diagnostics.map((d) => d.message).join());
const bytes = writeArtifact(opened.value.artifact, checksums, best);
const feeds = { "x:0": randomTensor("f32", [5, 24], new Rng(2)) };

const run = (model: LoadedModel) => model.run(feeds)["y:0"]!.data;

/** What a file of these bytes gives. */
async function resultOf(source: string | Uint8Array, target = "auto") {
  const model = await load(source, { target, threads: 1 });
  const result = run(model);
  await model.dispose();
  return result;
}

function written(name: string, contents: Uint8Array = bytes): string {
  const path = join(folder, name);
  writeFileSync(path, contents);
  return path;
}

/** What this process may do with its pages of a file. */
function mappingsOf(path: string): readonly string[] {
  const rows = readFileSync("/proc/self/maps", "utf8").split("\n");
  return rows.filter((row) => row.endsWith(path)).map((row) => row.split(/ +/)[1]!);
}

describe("an artifact with packed weights", () => {
  it("gives the same from its file, from bytes, and without an arena", async () => {
    const expected = await resultOf(writeArtifact(opened.value.artifact));
    expect(await resultOf(bytes)).toEqual(expected);
    expect(await resultOf(written("whole.wt"))).toEqual(expected);
    // Packed again by a target that the arena is not of.
    const portable = await resultOf(writeArtifact(opened.value.artifact), "wasm");
    expect(await resultOf(bytes, "wasm")).toEqual(portable);
    expect(await resultOf(written("other.wt"), "wasm")).toEqual(portable);
  });

  it("runs where its arena begins in the middle of a page or a word", async () => {
    const expected = await resultOf(bytes);
    const file = readSafetensors(bytes);
    if (!file.ok) throw new Error("unreadable");
    const packed = writeSafetensors(file.value);
    expect(await resultOf(written("unaligned.wt", packed))).toEqual(expected);
    // The header without the blanks behind it: everything begins where it ends.
    const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
    const header = new TextDecoder().decode(bytes.subarray(8, 8 + length)).trimEnd();
    for (const blanks of [1, 2, 3]) {
      const text = new TextEncoder().encode(header + " ".repeat(blanks));
      const odd = new Uint8Array(8 + text.length + bytes.length - 8 - length);
      new DataView(odd.buffer).setBigUint64(0, BigInt(text.length), true);
      odd.set(text, 8);
      odd.set(bytes.subarray(8 + length), 8 + text.length);
      expect(await resultOf(written(`odd-${blanks}.wt`, odd))).toEqual(expected);
    }
  });

  it("is refused where it is cut short or changed on the disk", () => {
    for (const share of [0, 0.001, 0.3, 0.99]) {
      const cut = tryLoad(written("cut.wt", bytes.slice(0, share * bytes.length)));
      expect([share, cut.ok || cut.diagnostics[0]!.code]).toEqual([share, "ART001"]);
    }
    const changed = bytes.slice();
    changed[bytes.length - 3000]! ^= 4;
    const flipped = tryLoad(written("flipped.wt", changed));
    expect(flipped.ok || flipped.diagnostics[0]!.code).toBe("ART003");
  });
});

describe.runIf(best.startsWith("x64"))("the mapped file of an artifact", () => {
  it("is mapped once a session, read only, and given back with it", async () => {
    const expected = await resultOf(bytes);
    const path = written("shared.wt");
    const models = [await load(path, { threads: 1 }), await load(path, { threads: 2 })];
    expect(mappingsOf(path)).toEqual(["r--p", "r--p"]);
    for (const model of models) expect(run(model)).toEqual(expected);
    await models[0]!.dispose();
    expect(mappingsOf(path)).toEqual(["r--p"]);
    expect(run(models[1]!)).toEqual(expected);
    await models[1]!.dispose();
    expect(mappingsOf(path)).toEqual([]);
    // Nothing is left of one that was refused.
    expect(tryLoad(path, { target: "h100" }).ok).toBe(false);
    expect(mappingsOf(path)).toEqual([]);
  });

  it("may be replaced while it is used; written in place it gives other numbers, no fault", async () => {
    const expected = await resultOf(bytes);
    const path = written("used.wt");
    const model = await load(path, { threads: 1 });
    renameSync(written("next.wt", new Uint8Array(64)), path);
    expect(run(model)).toEqual(expected);
    await model.dispose();

    const other = written("rewritten.wt");
    const rewritten = await load(other, { threads: 1 });
    const file = openSync(other, "r+");
    writeSync(file, new Uint8Array(bytes.length).fill(0x3f), 0, bytes.length, 0);
    closeSync(file);
    expect(run(rewritten).length).toBe(expected.length);
    await rewritten.dispose();
  });
});
