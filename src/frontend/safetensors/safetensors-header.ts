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

/** The tensors of a header, in the order of its keys. */
export function readSafetensorsHeader(json: Uint8Array): Result<readonly SafetensorEntry[]> {
  return attempt(() => {
    const header = parse(json);
    if (!isRecord(header)) malformed("its header is no JSON object");
    return Object.entries(header)
      .filter(([name]) => name !== "__metadata__")
      .map(([name, entry]) => readEntry(name, entry));
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
  const { dtype: type, shape } = entry;
  if (typeof type !== "string" || !Object.hasOwn(safetensorBits, type)) {
    malformed(`${what} has the type ${JSON.stringify(type)}`);
  }
  if (!Array.isArray(shape) || shape.some((n) => !Number.isSafeInteger(n) || n < 0)) {
    malformed(`${what} has no valid shape`);
  }
  return { name, type: type as SafetensorType, shape: shape as number[] };
}

function malformed(why: string): never {
  return reject("ART001", `not a readable safetensors file: ${why}`, {
    help: "the file is damaged or of another kind; write or download it again",
  });
}
