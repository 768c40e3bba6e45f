import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { modelOfGguf } from "../../plan/quantize/read-model.ts";
import { type ByteRanges, readGgufHeader } from "./gguf-header.ts";
import { writeGguf } from "./write-gguf.test-support.ts";

/** A file of these bytes and, where `total` says so, of data behind them that nobody reads. */
const ranges = (bytes: Uint8Array, total = bytes.length): ByteRanges => ({
  bytes: total,
  readAt: (offset, length) => bytes.slice(offset, offset + length),
});

const metadata = {
  "general.architecture": "llama",
  "llama.block_count": 32,
  "llama.embedding_length": 4096,
  "llama.feed_forward_length": 14336,
  "llama.attention.head_count": 32,
  "llama.attention.head_count_kv": 8,
};
const file = writeGguf(metadata, [
  ["token_embd.weight", 12, 4096, 128256],
  ["blk.0.ffn_down.weight", 14, 14336, 4096],
  ["blk.0.attn_norm.weight", 0, 4096],
]);
/** All tensors begin with the data; the embedding is the longest: 4096 x 128256 at 4.5 bits. */
const wholeBytes = file.length + (4096 * 128256 * 4.5) / 8;

describe("GGUF headers", () => {
  it("give tensors with their block types, outermost extent first", async () => {
    expect(await readGgufHeader(ranges(file, wholeBytes))).toMatchObject({
      value: {
        tensors: [
          { name: "token_embd.weight", shape: [128256, 4096], type: "Q4_K", bitsPerElement: 4.5 },
          {
            name: "blk.0.ffn_down.weight",
            shape: [4096, 14336],
            type: "Q6_K",
            bitsPerElement: 6.5625,
          },
          { name: "blk.0.attn_norm.weight", shape: [4096], type: "F32", bitsPerElement: 32 },
        ],
      },
    });
  });
  it("describe the decoder", async () => {
    const header = await readGgufHeader(ranges(file, wholeBytes));
    if (!header.ok) throw new Error("unreadable");
    expect(modelOfGguf("m", header.value)).toMatchObject({
      value: {
        originalFormat: "Q4_K_M",
        decoder: { layers: 32, hidden: 4096, kvHeads: 8, headWidth: 128, vocabulary: 128256 },
      },
    });
  });
  it("are refused when the file ends before its header (GUF001), wherever it was cut", async () => {
    const lengths = Array.from({ length: 40 }, (_, i) => Math.floor((i * file.length) / 40));
    for (const n of lengths) {
      const read = await readGgufHeader(ranges(file.slice(0, n)));
      expect(read).toMatchObject({ ok: false, diagnostics: [{ code: "GUF001" }] });
    }
  });
  it("are refused when a tensor's data runs past the end (GUF001)", async () => {
    expect(await readGgufHeader(ranges(file, wholeBytes - 1))).toMatchObject({
      ok: false,
      diagnostics: [{ code: "GUF001", message: expect.stringContaining("token_embd.weight") }],
    });
  });
  it("that are none are refused (GUF001), whatever the bytes", async () => {
    const junk = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.tuple(fc.nat(file.length - 1), fc.nat(255)).map(([at, value]) => {
        const damaged = file.slice();
        damaged[at] = value;
        return damaged;
      }),
      fc.nat(file.length).map((n) => file.slice(0, n)),
    );
    await fc.assert(
      fc.asyncProperty(junk, async (bytes) => {
        const read = await readGgufHeader(ranges(bytes, bytes.length + wholeBytes));
        if (!read.ok) expect(read.diagnostics[0]!.code).toBe("GUF001");
      }),
      { numRuns: 100 },
    );
    const odd = writeGguf(metadata, [["w", 999, 32]]);
    expect(await readGgufHeader(ranges(odd))).toMatchObject({ diagnostics: [{ code: "GUF001" }] });
  });
});
