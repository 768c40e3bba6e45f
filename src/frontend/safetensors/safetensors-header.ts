/**
 * The header of a safetensors file alone: what tensors it holds, without their data. For files too large
 * to be read whole; the caller reads the first 8 bytes, then as many as they say.
 */
import { attempt, type Result, reject } from "../../support/diagnostic.ts";
import { type SafetensorType, safetensorBits } from "./safetensors.ts";

export interface SafetensorEntry {
  readonly name: string;
  readonly type: SafetensorType;
  readonly shape: readonly number[];
  /** Bytes of the file's data before its end. */
  readonly end: number;
}

const mostHeaderBytes = 100_000_000;

/** Length of the JSON header from a file's first 8 bytes. */
export function safetensorsHeaderBytes(first: Uint8Array): Result<number> {
  return attempt(() => {
    if (first.length < 8) malformed(`it has ${first.length} bytes`);
    const view = new DataView(first.buffer, first.byteOffset, first.byteLength);
    const length = view.getBigUint64(0, true);
    if (length > BigInt(mostHeaderBytes)) malformed(`its header would have ${length} bytes`);
    return Number(length);
  });
}

/** The tensors of a header, in the order of its keys; their data must end within `dataBytes`. */
export function readSafetensorsHeader(
  json: Uint8Array,
  dataBytes: number,
): Result<readonly SafetensorEntry[]> {
  return attempt(() => {
    const header = parse(json);
    if (!isRecord(header)) malformed("its header is no JSON object");
    const entries = Object.entries(header)
      .filter(([name]) => name !== "__metadata__")
      .map(([name, entry]) => readEntry(name, entry));
    const cut = entries.find((e) => e.end > dataBytes);
    if (cut) {
      const what = `tensor ${JSON.stringify(cut.name)}`;
      malformed(`${what} would end at byte ${cut.end} of the data, the file has ${dataBytes}`);
    }
    return entries;
  });
}

function parse(json: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
  } catch (error) {
    // SyntaxError: not JSON. TypeError: not UTF-8.
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    return malformed("its header is no JSON");
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readEntry(name: string, entry: unknown): SafetensorEntry {
  const what = `tensor ${JSON.stringify(name)}`;
  if (!isRecord(entry)) malformed(`${what} has no description`);
  const { dtype: type, shape, data_offsets: range } = entry;
  if (typeof type !== "string" || !Object.hasOwn(safetensorBits, type)) {
    malformed(`${what} has the type ${JSON.stringify(type)}`);
  }
  if (!isCounts(shape)) malformed(`${what} has no valid shape`);
  if (!isCounts(range) || range.length !== 2) malformed(`${what} has no valid range`);
  const [begin, end] = range as [number, number];
  const bits = shape.reduce((n, extent) => n * extent, safetensorBits[type as SafetensorType]);
  if (bits !== (end - begin) * 8) {
    malformed(`${what} needs ${bits} bits in bytes ${begin} to ${end}`);
  }
  return { name, type: type as SafetensorType, shape, end };
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0);
}

function malformed(why: string): never {
  return reject("ART001", `not a readable safetensors file: ${why}`, {
    help: "the file is damaged or of another kind; write or download it again",
  });
}
