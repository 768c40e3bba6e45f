import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeGguf } from "../../frontend/gguf/write-gguf.test-support.ts";
import { writeSafetensors } from "../../frontend/safetensors/safetensors.ts";
import { describeModel } from "./describe-model.ts";
import { sampleModel } from "./sample-model.test-support.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-plan-"));
  const shard = (name: string) =>
    writeSafetensors(
      new Map([[name, { type: "BF16", shape: [64, 32], bytes: new Uint8Array(64 * 32 * 2) }]]),
    );
  writeFileSync(
    join(folder, "model-00001-of-00002.safetensors"),
    shard("model.embed_tokens.weight"),
  );
  writeFileSync(join(folder, "model-00002-of-00002.safetensors"), shard("lm_head.weight"));
  const config = {
    num_hidden_layers: 2,
    hidden_size: 32,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    intermediate_size: 64,
    vocab_size: 64,
  };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  writeFileSync(join(folder, "m.onnx"), sampleModel());
  writeFileSync(join(folder, "broken.safetensors.txt"), "x");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("models for planning", () => {
  it("a folder: all shards, and the decoder of config.json", async () => {
    expect(await describeModel(folder)).toMatchObject({
      value: {
        parameters: { value: 2 * 64 * 32 },
        originalFormat: "BF16",
        originalBits: 16,
        decoder: { layers: 2, kvHeads: 2, headWidth: 8 },
      },
    });
  });
  it("a folder whose index names absent shards is refused, with their names (PLN004)", async () => {
    const index = join(folder, "model.safetensors.index.json");
    const shards = { a: "model-00001-of-00002.safetensors", b: "model-00003-of-00002.safetensors" };
    writeFileSync(index, JSON.stringify({ weight_map: shards }));
    expect(await describeModel(folder)).toMatchObject({
      diagnostics: [{ code: "PLN004", message: expect.stringContaining(shards.b) }],
    });
    writeFileSync(index, "{");
    expect(await describeModel(folder)).toMatchObject({ diagnostics: [{ code: "PLN004" }] });
    writeFileSync(index, JSON.stringify({ weight_map: { a: shards.a } }));
    expect(await describeModel(folder)).toMatchObject({ ok: true });
    rmSync(index);
  });
  it("safetensors whose data is not all there, or of another size, are refused (ART001)", async () => {
    const bytes = new Uint8Array(64);
    const whole = writeSafetensors(new Map([["w", { type: "F32", shape: [4, 4], bytes }]]));
    const file = join(folder, "cut.safetensors");
    const text = new TextDecoder("latin1").decode(whole).replace("[4,4]", "[4,8]");
    for (const damaged of [whole.slice(0, -1), Uint8Array.from(text, (c) => c.charCodeAt(0))]) {
      writeFileSync(file, damaged);
      expect(await describeModel(file)).toMatchObject({ diagnostics: [{ code: "ART001" }] });
    }
    writeFileSync(file, whole);
    expect(await describeModel(file)).toMatchObject({ value: { parameters: { value: 16 } } });
    rmSync(file);
  });
  it("a config.json that is no JSON is refused (PLN004)", async () => {
    const config = join(folder, "config.json");
    const whole = readFileSync(config);
    writeFileSync(config, "{ hidden_size: 32 }");
    expect(await describeModel(folder)).toMatchObject({
      diagnostics: [{ code: "PLN004", at: config, message: `${config} is no JSON` }],
    });
    writeFileSync(config, whole);
  });
  it("GGUF shards are one model, several models are refused by name (PLN004)", async () => {
    const inner = join(folder, "gguf");
    mkdirSync(inner);
    const metadata = { "general.architecture": "llama", "llama.block_count": 2 };
    const write = (name: string, tensor: string): void => {
      const header = writeGguf(metadata, [[tensor, 1, 64, 32]]);
      writeFileSync(join(inner, name), new Uint8Array([...header, ...new Uint8Array(64 * 32 * 2)]));
    };
    const shards = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"];
    write(shards[0]!, "token_embd.weight");
    expect(await describeModel(inner)).toMatchObject({
      diagnostics: [{ code: "RUN030", at: join(inner, shards[1]!) }],
    });
    write(shards[1]!, "output.weight");
    const both = { value: { parameters: { value: 2 * 64 * 32 }, originalFormat: "FP16" } };
    expect(await describeModel(inner)).toMatchObject(both);
    expect(await describeModel(join(inner, shards[1]!))).toMatchObject(both);
    write("other.gguf", "token_embd.weight");
    expect(await describeModel(inner)).toMatchObject({
      diagnostics: [{ code: "PLN004", message: expect.stringContaining("other.gguf") }],
    });
  });
  it("one safetensors file, its folder's config.json", async () => {
    const found = await describeModel(join(folder, "model-00002-of-00002.safetensors"));
    expect(found).toMatchObject({
      value: { parameters: { value: 64 * 32 }, decoder: { hidden: 32 } },
    });
  });
  it("an ONNX file: its float initializers and no decoder", async () => {
    const found = await describeModel(join(folder, "m.onnx"));
    expect(found).toMatchObject({ ok: true, value: { originalFormat: "FP32" } });
    expect(found.ok && found.value.decoder).toBeUndefined();
  });
  it("other files are refused (PLN004), absent ones as well (RUN030)", async () => {
    expect(await describeModel(join(folder, "broken.safetensors.txt"))).toMatchObject({
      diagnostics: [{ code: "PLN004" }],
    });
    expect(await describeModel(join(folder, "none.gguf"))).toMatchObject({
      diagnostics: [{ code: "RUN030" }],
    });
    expect(await describeModel(join(folder, "none.safetensors"))).toMatchObject({
      diagnostics: [{ code: "RUN030" }],
    });
  });
});
