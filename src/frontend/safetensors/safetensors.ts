/**
 * The safetensors container: an unsigned 64-bit header length, a JSON header with the type, shape and
 * byte range of each tensor, then the data (huggingface/safetensors, "Format"). Ranges must cover the
 * data without holes or overlaps. Written files are deterministic: tensors in the order of their names,
 * each aligned by named pad tensors, which the format allows and any reader sees as plain tensors.
 */
import { attempt, type Result, reject } from "../../support/diagnostic.ts";

/** Bits of each element type of the format. */
export const safetensorBits = {
  BOOL: 8,
  F4: 4,
  F8_E4M3: 8,
  F8_E5M2: 8,
  F8_E8M0: 8,
  U8: 8,
  I8: 8,
  U16: 16,
  I16: 16,
  F16: 16,
  BF16: 16,
  U32: 32,
  I32: 32,
  F32: 32,
  U64: 64,
  I64: 64,
  F64: 64,
} as const satisfies Record<string, number>;

export type SafetensorType = keyof typeof safetensorBits;

export interface Safetensor {
  readonly type: SafetensorType;
  readonly shape: readonly number[];
  /** A view of the file. */
  readonly bytes: Uint8Array;
  /** Of a tensor to write: begin at a multiple of this many bytes, a multiple of safetensorAlignment. */
  readonly alignment?: number;
}

/** Every data range of a written file starts at a multiple of this many bytes from its beginning. */
export const safetensorAlignment = 64;
const mostHeaderBytes = 100_000_000;
const mostTensors = 1_000_000;
const mostAxes = 64;
const padPrefix = "pad.";

/** The tensors of a file by name, pad tensors left out. Anything malformed is ART001. */
export function readSafetensors(file: Uint8Array): Result<ReadonlyMap<string, Safetensor>> {
  return attempt(() => {
    const { header, data } = splitFile(file);
    const entries = Object.entries(header).filter(([name]) => name !== "__metadata__");
    if (entries.length > mostTensors) malformed(`it has ${entries.length} tensors`);
    const rows = entries.map(([name, entry]) => readEntry(name, entry));
    rows.sort((a, b) => a.begin - b.begin || a.end - b.end);
    const end = rows.at(-1)?.end ?? 0;
    if (end > data.length) {
      malformed(`it is cut short: ${end} bytes of data are announced, ${data.length} are there`);
    }
    const tensors = new Map<string, Safetensor>();
    let next = 0;
    for (const { name, type, shape, begin, end } of rows) {
      if (begin !== next) {
        malformed(`tensor ${JSON.stringify(name)} is at ${begin} to ${end}, expected at ${next}`);
      }
      next = end;
      const bytes = data.subarray(begin, end);
      if (!name.startsWith(padPrefix)) tensors.set(name, { type, shape, bytes });
    }
    if (next !== data.length) malformed(`${data.length - next} bytes belong to no tensor`);
    return tensors;
  });
}

function splitFile(file: Uint8Array): {
  header: Readonly<Record<string, unknown>>;
  data: Uint8Array;
} {
  if (file.length < 8) malformed(`it has ${file.length} bytes`);
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const length = Number(view.getBigUint64(0, true));
  if (length > mostHeaderBytes || 8 + length > file.length) {
    malformed(`it is cut short: its header of ${length} bytes is not there`);
  }
  const header = parseJson(file.subarray(8, 8 + length));
  if (!isRecord(header)) malformed("its header is no JSON object");
  return { header, data: file.subarray(8 + length) };
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    // SyntaxError: not JSON. TypeError: not UTF-8.
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    return malformed("its header is no JSON");
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface Entry {
  readonly name: string;
  readonly type: SafetensorType;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

function readEntry(name: string, entry: unknown): Entry {
  const what = `tensor ${JSON.stringify(name)}`;
  if (!isRecord(entry)) malformed(`${what} has no description`);
  const { dtype: type, shape, data_offsets: range, ...others } = entry;
  if (Object.keys(others).length > 0)
    malformed(`${what} has the unknown key ${Object.keys(others)[0]}`);
  if (typeof type !== "string" || !isType(type))
    malformed(`${what} has the type ${JSON.stringify(type)}`);
  if (!isCounts(shape) || shape.length > mostAxes) malformed(`${what} has no valid shape`);
  if (!isCounts(range) || range.length !== 2) malformed(`${what} has no valid range`);
  const [begin, end] = range as [number, number];
  const bits = shape.reduce((n, extent) => n * extent, safetensorBits[type]);
  if (bits !== (end - begin) * 8)
    malformed(`${what} needs ${bits} bits in bytes ${begin} to ${end}`);
  return { name, type, shape, begin, end };
}

function isType(name: string): name is SafetensorType {
  return Object.hasOwn(safetensorBits, name);
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0);
}

function malformed(why: string): never {
  return reject("ART001", `not a readable safetensors file: ${why}`, {
    help: "the file is damaged or of another kind; write or download it again",
  });
}

/** What a tensor takes of a file. */
export interface SafetensorExtent extends Pick<Safetensor, "type" | "shape" | "alignment"> {
  readonly byteLength: number;
}

export interface SafetensorsLayout {
  /** The file's first bytes: all before the data. */
  readonly head: Uint8Array;
  /** Where each tensor begins in the file, in the order of the file; what lies between is zeros. */
  readonly offsets: ReadonlyMap<string, number>;
  /** Of the whole file. */
  readonly byteLength: number;
}

/** A file with such tensors. */
export function layoutSafetensors(
  tensors: ReadonlyMap<string, SafetensorExtent>,
): SafetensorsLayout {
  const names = [...tensors.keys()].sort((a, b) => (a < b ? -1 : 1));
  const header: Record<string, unknown> = {};
  const starts: (readonly [string, number])[] = [];
  let next = 0;
  const put = (name: string, { type, shape, byteLength }: SafetensorExtent): void => {
    header[name] = { dtype: type, shape, data_offsets: [next, next + byteLength] };
    next += byteLength;
  };
  const alignments = names.map((name) => tensors.get(name)!.alignment ?? safetensorAlignment);
  names.forEach((name, i) => {
    starts.push([name, next]);
    put(name, tensors.get(name)!);
    const gap = aligned(next, alignments[i + 1]) - next;
    const pad = { type: "U8", shape: [gap], byteLength: gap } as const;
    if (gap > 0) put(`${padPrefix}${String(i).padStart(6, "0")}`, pad);
  });
  const text = new TextEncoder().encode(JSON.stringify(header));
  const dataAt = aligned(8 + text.length, Math.max(safetensorAlignment, ...alignments));
  const head = new Uint8Array(dataAt).fill(0x20, 8);
  new DataView(head.buffer).setBigUint64(0, BigInt(dataAt - 8), true);
  head.set(text, 8);
  const offsets = new Map(starts.map(([name, at]) => [name, dataAt + at]));
  return { head, offsets, byteLength: dataAt + next };
}

/** The bytes of a file with these tensors. */
export function writeSafetensors(tensors: ReadonlyMap<string, Safetensor>): Uint8Array {
  const extents = [...tensors].map(([name, { bytes, ...tensor }]) => {
    return [name, { ...tensor, byteLength: bytes.length }] as const;
  });
  const { head, offsets, byteLength } = layoutSafetensors(new Map(extents));
  const file = new Uint8Array(byteLength);
  file.set(head);
  for (const [name, at] of offsets) file.set(tensors.get(name)!.bytes, at);
  return file;
}

function aligned(bytes: number, alignment: number = safetensorAlignment): number {
  return Math.ceil(bytes / alignment) * alignment;
}
