import { describe, expect, it } from "vitest";
import { openModel } from "../commands/library/open-model.ts";
import { sampleModel } from "../commands/library/sample-model.test-support.ts";
import {
  readSafetensors,
  type Safetensor,
  writeSafetensors,
} from "../frontend/safetensors/safetensors.ts";
import { checksums } from "../runtime/files/hash-bytes.ts";
import { tensorBytes } from "../semantics/tensor.ts";
import { sha256 } from "../support/hash.ts";
import { type ArtifactMeta, arenaAlignment } from "./artifact.ts";
import { openContainer } from "./container.ts";
import { readArtifact } from "./read-artifact.ts";
import { layoutArtifact, writeArtifact } from "./write-artifact.ts";

// Wide enough that its arena has a tag: 24 x 1400 floats.
const opened = openModel(
  { bytes: sampleModel(1400) },
  { target: "x64-avx2", portable: true, shapes: { M: { min: 1, max: 8 } }, seed: 3 },
);
if (!opened.ok) throw new Error(opened.diagnostics.map((d) => d.message).join());
const { artifact } = opened.value;
const arena = "target.x64-avx2.weights";
const bytes = writeArtifact(artifact, checksums, "x64-avx2");

/** Tensors and `meta` changed, hashes made to agree, tags left out or kept as they were. */
function forged(
  edit: (tensors: Map<string, Safetensor>, meta: ArtifactMeta) => unknown,
  keepTags = false,
): Uint8Array {
  const read = readSafetensors(bytes);
  if (!read.ok) throw new Error("unreadable");
  const tensors = new Map(read.value);
  const meta = JSON.parse(new TextDecoder().decode(tensors.get("meta")!.bytes));
  edit(tensors, meta);
  for (const name of Object.keys(meta.hashes)) {
    const found = tensors.get(name);
    if (found) meta.hashes[name] = sha256(found.bytes);
  }
  if (!keepTags) delete meta.tags;
  const text = (spelled: string): Safetensor => {
    const data = new TextEncoder().encode(spelled);
    return { type: "U8", shape: [data.length], bytes: data };
  };
  tensors.set("meta", text(JSON.stringify(meta)));
  tensors.set("seal", text(sha256(tensors.get("meta")!.bytes)));
  return writeSafetensors(tensors);
}

function codeOf(file: Uint8Array): string {
  const result = readArtifact(file, { checksums });
  return result.ok ? "ok" : result.diagnostics[0]!.code;
}

function metaOf(file: Uint8Array): ArtifactMeta {
  const container = openContainer(file, checksums);
  if (!container.ok) throw new Error("unreadable");
  return container.value.meta;
}

describe("packed weights", () => {
  it("are read one after another while the file is written, and not kept", () => {
    let held = 0;
    let reads = 0;
    const { weights } = artifact;
    const read = (key: string) => {
      reads++;
      held++;
      return weights.read(key);
    };
    const { parts, byteLength } = layoutArtifact(
      { ...artifact, weights: { read } },
      checksums,
      "x64-avx2",
    );
    const stored = artifact.graph.weights.filter((w) => w.source.kind === "stored").length;
    expect(reads).toBeLessThanOrEqual(stored);
    const file = new Uint8Array(byteLength);
    for (const part of parts) {
      held = 0;
      file.set(part.read(), part.offset);
      expect(held).toBeLessThanOrEqual(1);
    }
    expect(Buffer.compare(file, bytes)).toBe(0);
  });

  it("stand in a file once, at the begin of a page, and come back bit by bit", () => {
    const file = readSafetensors(bytes);
    if (!file.ok) throw new Error("unreadable");
    const stored = file.value.get(arena)!.bytes;
    expect((stored.byteOffset - bytes.byteOffset) % arenaAlignment).toBe(0);
    const { packed, tags } = metaOf(bytes);
    expect(packed!.target).toBe("x64-avx2");
    expect(Object.keys(tags!)).toContain(arena);
    const keys = Object.keys(packed!.buffers);
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) expect(file.value.has(`weight.${key}`)).toBe(false);
    // With tags and without: a browser has none.
    for (const read of [readArtifact(bytes, { checksums }), readArtifact(bytes)]) {
      if (!read.ok) throw new Error(read.diagnostics.map((d) => d.message).join());
      expect(read.value.arenas!.get("x64-avx2")).toEqual(stored);
      for (const key of keys) {
        const found = read.value.weights.read(key);
        const expected = artifact.weights.read(key);
        expect(found.shape).toEqual(expected.shape);
        expect(tensorBytes(found)).toEqual(tensorBytes(expected));
      }
      expect(writeArtifact(read.value, checksums, "x64-avx2")).toEqual(bytes);
      expect(writeArtifact(read.value)).toEqual(writeArtifact(artifact));
    }
  });

  it("are refused where a bit is another one, at once or when they are read", () => {
    const flip = (tensors: Map<string, Safetensor>): void => {
      const data = tensors.get(arena)!.bytes.slice();
      data[data.length >> 1]! ^= 1;
      tensors.set(arena, { ...tensors.get(arena)!, bytes: data });
    };
    // Its hash agrees, its tag does not.
    const file = forged(flip, true);
    expect(codeOf(file)).toBe("ART003");
    expect(codeOf(forged(flip))).toBe("ok");
    const later = openContainer(file, checksums, { later: true });
    if (!later.ok) throw new Error("checked at once");
    expect(() => later.value.contents(arena)).toThrow(/hash/);
    const model = openModel({ bytes: file }, { target: "x64-avx2", shapes: {}, seed: 0 });
    expect(model.ok ? "ok" : model.diagnostics[0]!.code).toBe("ART003");
  });

  it("are refused where they are not what the program and the graph have", () => {
    const cut = (tensors: Map<string, Safetensor>): void => {
      const data = tensors.get(arena)!.bytes.slice(64);
      tensors.set(arena, { ...tensors.get(arena)!, shape: [data.length], bytes: data });
    };
    expect(codeOf(forged(cut))).toBe("ART004");
    expect(codeOf(forged((t) => t.delete(arena)))).toMatch(/^ART00[23]$/);
    const withBuffers = (edit: (text: string) => string) =>
      forged((_, { packed }) => {
        for (const key of Object.keys(packed!.buffers)) {
          packed!.buffers[key] = edit(packed!.buffers[key]!);
        }
      });
    expect(codeOf(withBuffers((text) => text))).toBe("ok");
    for (const [from, to] of [
      [/weights \+ \(\d+\)/, "weights + (1048576)"],
      [/weights \+ \(\d+\)/, "weights + (-64)"],
      [/f32 \[\d+/, "f32 [4096"],
      [/f32/, "i32"],
      [/source "/, 'source "x'],
      [/layout \[\d+/, "layout [9007199254740991"],
      [/buffer/, "buffers"],
      [/ at .*$/, ""],
    ] as const) {
      const edited = withBuffers((text) => text.replace(from, to));
      expect([String(from), to, codeOf(edited)]).toEqual([
        String(from),
        to,
        expect.stringMatching(/^(ART|TXT)\d+$/),
      ]);
    }
  });
});
