/**
 * What a model needs to be planned for, from its file: safetensors (one file, an index of several, or
 * the folder with its config.json), GGUF, or ONNX. Only headers are read.
 */
import { z } from "zod";
import { type GgufHeader, readGgufHeader } from "../../frontend/gguf/gguf-header.ts";
import {
  readSafetensorsHeader,
  type SafetensorEntry,
  safetensorsHeaderBytes,
} from "../../frontend/safetensors/safetensors-header.ts";
import type { ModelDescription } from "../../plan/quantize/model.ts";
import { modelOfGguf, modelOfOnnx, modelOfSafetensors } from "../../plan/quantize/read-model.ts";
import { listFolder, openRanges } from "../../runtime/files/byte-ranges.ts";
import { join } from "../../runtime/files/paths.ts";
import { readWhole } from "../../runtime/files/plain-file.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";

export async function describeModel(path: string): Promise<Result<ModelDescription>> {
  const listed = listFolder(path);
  if (listed) return describeFolder(path, listed);
  if (/\.gguf$/i.test(path)) return describeGguf(path);
  if (/\.safetensors$/i.test(path)) return describeSafetensors(path, [path], folderOf(path));
  if (/\.onnx$/i.test(path)) {
    const bytes = readWhole(path);
    return bytes.ok ? modelOfOnnx(path, bytes.value) : bytes;
  }
  return fail(
    diagnostic("PLN004", `${path} is of a kind that cannot be planned for`, {
      at: path,
      help: "give a .safetensors, .gguf or .onnx file or a model folder, or only --params",
    }),
  );
}

function folderOf(path: string): string {
  return path.replace(/[^\\/]*$/, "") || ".";
}

function describeFolder(path: string, names: readonly string[]): Promise<Result<ModelDescription>> {
  const absent = absentShards(path, names);
  if (absent) return Promise.resolve(fail(absent));
  const shards = names.filter((n) => n.endsWith(".safetensors")).map((n) => join(path, n));
  if (shards.length > 0) return Promise.resolve(describeSafetensors(path, shards, path));
  const ggufs = names.filter((n) => /\.gguf$/i.test(n)).sort();
  const models = ggufs.filter((n) => (shardOf(n)?.index ?? 1) === 1);
  if (models.length > 1) return Promise.resolve(fail(severalModels(path, models)));
  if (ggufs.length > 0) return describeGguf(join(path, ggufs[0]!));
  return Promise.resolve(
    fail(
      diagnostic("PLN004", `${path} holds no .safetensors and no .gguf file`, {
        at: path,
        help: "give the folder that holds the weights, or only --params",
      }),
    ),
  );
}

/** The shards that a folder's index puts tensors in and that are not there. */
function absentShards(path: string, names: readonly string[]): Diagnostic | undefined {
  const indexName = names.find((n) => n.endsWith(".safetensors.index.json"));
  if (indexName === undefined) return undefined;
  const file = join(path, indexName);
  const bytes = readWhole(file);
  if (!bytes.ok) return bytes.diagnostics[0];
  const index = indexSchema.safeParse(parseJson(bytes.value));
  if (!index.success) {
    return diagnostic("PLN004", `${file} is no index of shards`, {
      at: file,
      help: "write or download it again",
    });
  }
  const shards = [...new Set(Object.values(index.data.weight_map))].sort();
  const absent = shards.filter((shard) => !names.includes(shard));
  if (absent.length === 0) return undefined;
  const named = absent.slice(0, 5).join(", ") + (absent.length > 5 ? ", …" : "");
  return diagnostic(
    "PLN004",
    `${absent.length} of ${shards.length} shards that ${indexName} names are not there: ${named}`,
    { at: file, help: "download the missing files, or give a folder that holds all of them" },
  );
}

const indexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

interface Shard {
  readonly stem: string;
  readonly index: number;
  readonly count: number;
}

/** As llama.cpp names the files of a split model: `name-00001-of-00003.gguf`. */
function shardOf(name: string): Shard | undefined {
  const [, stem, index, count] = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i.exec(name) ?? [];
  if (stem === undefined || index! < "00001" || index! > count!) return undefined;
  return { stem, index: Number(index), count: Number(count) };
}

function shardPaths(path: string): readonly string[] {
  const shard = shardOf(path);
  if (!shard) return [path];
  const digits = (n: number): string => String(n).padStart(5, "0");
  return Array.from(
    { length: shard.count },
    (_, i) => `${shard.stem}-${digits(i + 1)}-of-${digits(shard.count)}.gguf`,
  );
}

function severalModels(path: string, models: readonly string[]): Diagnostic {
  const named = models.slice(0, 5).join(", ") + (models.length > 5 ? ", …" : "");
  return diagnostic("PLN004", `${path} holds ${models.length} GGUF models: ${named}`, {
    at: path,
    help: "give the one that is meant",
  });
}

/** Metadata stands in the first file, tensors in all. */
async function describeGguf(path: string): Promise<Result<ModelDescription>> {
  const headers: GgufHeader[] = [];
  for (const part of shardPaths(path)) {
    const file = openRanges(part);
    if (!file.ok) return file;
    const header = await readGgufHeader(file.value);
    file.value.close();
    if (!header.ok) return header;
    headers.push(header.value);
  }
  return modelOfGguf(path, {
    metadata: headers[0]!.metadata,
    tensors: headers.flatMap((h) => h.tensors),
  });
}

function describeSafetensors(
  name: string,
  paths: readonly string[],
  folder: string,
): Result<ModelDescription> {
  const entries: SafetensorEntry[] = [];
  for (const path of paths) {
    const read = readHeader(path);
    if (!read.ok) return read;
    entries.push(...read.value);
  }
  const configPath = join(folder, "config.json");
  const config = readWhole(configPath);
  const sizes = config.ok ? parseJson(config.value) : undefined;
  if (config.ok && sizes === undefined) {
    const help = "write or download it again, or take it away: then no KV cache is counted";
    return fail(diagnostic("PLN004", `${configPath} is no JSON`, { at: configPath, help }));
  }
  return modelOfSafetensors(name, entries, sizes);
}

function readHeader(path: string): Result<readonly SafetensorEntry[]> {
  const file = openRanges(path);
  if (!file.ok) return file;
  const { bytes, readAt, close } = file.value;
  const length = safetensorsHeaderBytes(readAt(0, 8));
  const header = length.ok
    ? readSafetensorsHeader(readAt(8, length.value), bytes - 8 - length.value)
    : length;
  close();
  return header;
}

/** Undefined when it is none. */
function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

/** The original format when only a size is given. */
export function originalOf(
  name: string,
  bits: number | undefined,
): Result<{ bits: number; name: string }> {
  if (bits !== undefined) return ok({ bits, name });
  return fail(
    diagnostic("CLI001", `${JSON.stringify(name)} is no weight format`, {
      at: "--original",
      help: "use BF16, FP16, FP32, FP8, Q8_0, Q6_K, Q5_K_M or Q4_K_M",
    }),
  );
}
