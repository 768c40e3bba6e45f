/**
 * What is left of a program once it is proved and emitted for this machine: its outline (all but the
 * kernels' bodies), its code, and where each weight is. A later process runs from this without parsing,
 * proving or emitting anything. In a file: the length of a head, the head as JSON, then the blobs that
 * it names by range.
 */
import type { Program } from "../program/program.ts";
import { parseProgram } from "../program/program-parse.ts";
import { printProgram } from "../program/program-text.ts";
import type { DType } from "../semantics/dtype.ts";
import { type Tensor, tensorBytes, tensorFromBytes } from "../semantics/tensor.ts";
import { invariant } from "../support/invariant.ts";
import type { EmittedCode } from "./emit-here.ts";

/** Elements of a weight: in a tensor of the container, or (small ones) here. */
export type KeptWeight =
  | {
      readonly kind: "stored";
      readonly tensor: string;
      readonly dtype: DType;
      readonly shape: readonly number[];
      /** Of half precision, read as single. */
      readonly isWide?: true;
    }
  | { readonly kind: "inline"; readonly tensor: Tensor };

export interface KeptProgram<Ports> {
  /** The program; its kernels have neither buffers nor bodies. */
  readonly outline: Program;
  readonly code: EmittedCode;
  /** By the name of the buffer's source. */
  readonly weights: ReadonlyMap<string, KeptWeight>;
  /** Of the arena that the artifact has in place of weights; the outline then has no buffers of them. */
  readonly arenaBytes?: number;
  /** The caller's own description of inputs and outputs: plain JSON. */
  readonly ports: Ports;
}

export function outlineOf(program: Program): Program {
  const kernels = program.kernels.map((k) => ({ ...k, buffers: [], counters: [], roles: [] }));
  return { ...program, kernels };
}

/** The buffers that are no weights, and no views of any. */
export function withoutWeights(program: Program): Program {
  const known = new Map(program.buffers.map((b) => [b.name, b]));
  const isWeight = (name: string): boolean => {
    const { kind, viewOf } = known.get(name)!;
    return viewOf === undefined ? kind === "weight" : isWeight(viewOf);
  };
  return { ...program, buffers: program.buffers.filter((b) => !isWeight(b.name)) };
}

type Range = readonly [start: number, end: number];
type SpelledWeight =
  | Extract<KeptWeight, { kind: "stored" }>
  | {
      readonly kind: "inline";
      readonly dtype: DType;
      readonly shape: readonly number[];
      readonly at: Range;
    };

interface Head<Ports> {
  readonly outline: string;
  readonly code: SpelledCode;
  readonly weights: readonly (readonly [string, SpelledWeight])[];
  readonly arenaBytes?: number;
  readonly ports: Ports;
}

type Layout = EmittedCode["layout"];
type SpelledLayout = {
  readonly [K in keyof Layout]: Layout[K] extends ReadonlyMap<string, number>
    ? readonly (readonly [string, number])[]
    : Layout[K];
};
type Spelled<C> = C extends EmittedCode
  ? Omit<C, "bytes" | "layout"> & { readonly layout: SpelledLayout; readonly at: Range }
  : never;
type SpelledCode = Spelled<EmittedCode>;

const lengthBytes = 4;

export function encodeKept<Ports>(kept: KeptProgram<Ports>): Uint8Array {
  const blobs: Uint8Array[] = [];
  let end = 0;
  const add = (bytes: Uint8Array): Range => {
    const start = end;
    blobs.push(bytes);
    end += bytes.length;
    return [start, end];
  };
  const { bytes, layout, ...rest } = kept.code;
  const spelled = {
    ...layout,
    parameters: [...layout.parameters],
    buffers: [...layout.buffers],
  };
  const head: Head<Ports> = {
    outline: printProgram(kept.outline),
    code: { ...rest, layout: spelled, at: add(bytes) } as SpelledCode,
    weights: [...kept.weights].map(([name, w]) => [name, spellWeight(w, add)]),
    ...(kept.arenaBytes !== undefined && { arenaBytes: kept.arenaBytes }),
    ports: kept.ports,
  };
  const text = new TextEncoder().encode(JSON.stringify(head));
  const file = new Uint8Array(lengthBytes + text.length + end);
  new DataView(file.buffer).setUint32(0, text.length, true);
  file.set(text, lengthBytes);
  let at = lengthBytes + text.length;
  for (const blob of blobs) {
    file.set(blob, at);
    at += blob.length;
  }
  return file;
}

function spellWeight(weight: KeptWeight, add: (bytes: Uint8Array) => Range): SpelledWeight {
  if (weight.kind === "stored") return weight;
  const { dtype, shape } = weight.tensor;
  return { kind: "inline", dtype, shape, at: add(tensorBytes(weight.tensor)) };
}

/** The inverse of `encodeKept`; the bytes are what this version wrote (kept-files.ts checks that). */
export function decodeKept<Ports>(file: Uint8Array): KeptProgram<Ports> {
  const length = new DataView(file.buffer, file.byteOffset).getUint32(0, true);
  const text = new TextDecoder().decode(file.subarray(lengthBytes, lengthBytes + length));
  const head = JSON.parse(text) as Head<Ports>;
  const blob = ([start, end]: Range): Uint8Array<ArrayBuffer> =>
    file.slice(lengthBytes + length + start, lengthBytes + length + end) as Uint8Array<ArrayBuffer>;
  const outline = parseProgram(head.outline);
  invariant(outline.ok, () => "a kept outline parses");
  const { at, layout, ...rest } = head.code;
  const code = {
    ...rest,
    bytes: blob(at),
    layout: { ...layout, parameters: new Map(layout.parameters), buffers: new Map(layout.buffers) },
  } as EmittedCode;
  const weights = head.weights.map(([name, w]): [string, KeptWeight] => {
    if (w.kind === "stored") return [name, w];
    return [name, { kind: "inline", tensor: tensorFromBytes(w.dtype, w.shape, blob(w.at)) }];
  });
  const { arenaBytes, ports } = head;
  const found = { code, weights: new Map(weights), ports };
  return { outline: outline.value, ...found, ...(arenaBytes !== undefined && { arenaBytes }) };
}
