/**
 * An artifact as one safetensors file, in parts that are made when they are written, so that its weights need not be in
 * memory together; equal artifacts give equal bytes.
 */
import { layoutSafetensors, type SafetensorExtent } from "../frontend/safetensors/safetensors.ts";
import type { Graph, WeightStore } from "../graph/graph.ts";
import { printGraph } from "../graph/graph-text.ts";
import { printBuffer, printProgram } from "../program/program-text.ts";
import { printSchedule } from "../schedule/directive-text.ts";
import { storageBytes } from "../semantics/dtype.ts";
import { constantValue } from "../semantics/index-expr.ts";
import { elementCount } from "../semantics/shape.ts";
import { tensorBytes } from "../semantics/tensor.ts";
import type { RunningSum } from "../support/hash.ts";
import { invariant } from "../support/invariant.ts";
import { targets } from "../target/index.ts";
import {
  type Artifact,
  type ArtifactMeta,
  arenaAlignment,
  type Checksums,
  containerTypes,
  leastTaggedBytes,
  plainChecksums,
  type StartSum,
  sumOf,
  tensorNames,
} from "./artifact.ts";
import { isPackable, type Piece, packWeights } from "./packed-weights.ts";
import { readerOfWeights } from "./weights.ts";

/** What the caller says of an artifact; the hashes are computed here. */
export type ArtifactContent = Omit<Artifact, "meta"> & {
  readonly meta: Omit<ArtifactMeta, "hashes" | "format" | "version" | "packed" | "tags">;
};

/** A part of the file, made when it is asked for. */
export interface ArtifactPart {
  /** Where it begins in the file. */
  readonly offset: number;
  readonly read: () => Uint8Array;
}

/** An artifact's file. No more than one weight is in memory where what was read is not kept. */
export interface ArtifactFile {
  readonly byteLength: number;
  /** To be read once each and in this order: the last ones have the sums of all before. Zeros lie between them. */
  readonly parts: readonly ArtifactPart[];
}

/** @param pack the target whose weights are stored as its program reads them; undefined: none */
export function layoutArtifact(
  content: ArtifactContent,
  checksums: Checksums = plainChecksums,
  pack?: string,
): ArtifactFile {
  const { meta: own, ...rest } = content;
  // What another file said of itself.
  const { packed: _, tags: __, hashes: ___, ...meta } = own as Partial<ArtifactMeta> & typeof own;
  const code = pack === undefined ? undefined : content.targets.get(pack);
  const isStored = code && isPackable(targets.get(pack!)!);
  if (!isStored) return sealed(tensorsOf(rest), meta, checksums);
  const { graph } = content;
  const read = readerOfWeights(content, meta.views);
  const { byteLength, pieces, buffers } = packWeights(code.program, graph, meta.views, read);
  const tensors = tensorsOf(rest, new Set(buffers.keys()));
  const arena = { type: "U8", shape: [byteLength], byteLength, alignment: arenaAlignment } as const;
  tensors.set(tensorNames.arena(pack!), { ...arena, pieces });
  const texts = [...buffers].map(([key, buffer]) => [key, printBuffer(buffer)] as const);
  const packed = { target: pack!, buffers: Object.fromEntries(texts) };
  return sealed(tensors, { ...meta, packed }, checksums);
}

/** As `layoutArtifact`, in memory. */
export function writeArtifact(
  content: ArtifactContent,
  checksums?: Checksums,
  pack?: string,
): Uint8Array {
  return inMemory(layoutArtifact(content, checksums, pack));
}

function inMemory({ byteLength, parts }: ArtifactFile): Uint8Array {
  const file = new Uint8Array(byteLength);
  for (const { offset, read } of parts) file.set(read(), offset);
  return file;
}

/** A model in stages: the whole graph with its weights, and each part with the program for it. */
export interface StagedContent {
  readonly meta: Pick<ArtifactMeta, "producer" | "seed" | "inputs" | "outputs">;
  readonly graph: Graph;
  readonly weights: WeightStore;
  readonly stages: readonly StageContent[];
}

export interface StageContent {
  /** Its weights are those of the whole graph. */
  readonly part: Graph;
  /** Absent: the reference computes it. */
  readonly program?: ArtifactContent;
}

/** As `layoutStagedArtifact`, in memory. */
export function writeStagedArtifact(content: StagedContent, checksums?: Checksums): Uint8Array {
  return inMemory(layoutStagedArtifact(content, checksums));
}

export function layoutStagedArtifact(
  { meta, graph, weights, stages }: StagedContent,
  checksums: Checksums = plainChecksums,
): ArtifactFile {
  const { hash } = checksums;
  const tensors = tensorsOf({ graph, targets: new Map(), weights });
  const whole = new Map(
    [...tensors].map(([name, t]): [string, string] => [name, fingerprintOf(t, hash)]),
  );
  const described = stages.map(({ part, program }, i) => {
    const prefix = tensorNames.stage(i);
    tensors.set(`${prefix}${tensorNames.part}`, textTensor(printGraph(part)));
    if (!program) return null;
    const shared: string[] = [];
    const keys = new Map(keysOf(program.graph).map((key) => [tensorNames.weight(key), key]));
    for (const [name, tensor] of tensorsOf(program)) {
      const key = keys.get(name);
      if (key !== undefined && whole.get(name) === fingerprintOf(tensor, hash)) shared.push(key);
      else tensors.set(`${prefix}${name}`, tensor);
    }
    const { inputs, outputs, views, checks, searches, errorBound } = program.meta;
    const optional = { checks, searches, errorBound };
    const given = Object.entries(optional).filter(([, value]) => value !== undefined);
    return { inputs, outputs, views, ...Object.fromEntries(given), shared };
  });
  return sealed(tensors, { ...meta, views: [], stages: described }, checksums);
}

function fingerprintOf(tensor: StoredTensor, start: StartSum): string {
  const contents = new SummedContents(tensor, [start]);
  for (const { read } of contents.pieces) read();
  return `${tensor.type}[${tensor.shape}] ${contents.digests()[0]!}`;
}

/** A tensor to write. */
interface StoredTensor extends SafetensorExtent {
  /** In order; what lies between is zeros. */
  readonly pieces: readonly Piece[];
}

/** Pieces that are added to sums when they are read, with the zeros before them. */
class SummedContents {
  readonly pieces: readonly Piece[];
  readonly #sums: readonly RunningSum[];
  readonly #byteLength: number;
  #done = 0;

  constructor({ pieces, byteLength }: StoredTensor, starts: readonly StartSum[]) {
    this.#sums = starts.map((start) => start());
    this.#byteLength = byteLength;
    this.pieces = pieces.map((piece) => ({ ...piece, read: () => this.#read(piece) }));
  }

  #read({ offset, byteLength, read }: Piece): Uint8Array {
    const bytes = read();
    invariant(
      bytes.length === byteLength && offset >= this.#done,
      () => `${bytes.length} bytes at ${offset} do not come behind ${this.#done}`,
    );
    this.#add(new Uint8Array(offset - this.#done));
    this.#add(bytes);
    return bytes;
  }

  /** When all pieces were read. */
  digests(): readonly string[] {
    this.#add(new Uint8Array(this.#byteLength - this.#done));
    return this.#sums.map((sum) => sum.digest());
  }

  #add(bytes: Uint8Array): void {
    this.#done += bytes.length;
    for (const sum of this.#sums) sum.update(bytes);
  }
}

function keysOf(graph: Graph): readonly string[] {
  return graph.weights.flatMap(({ source }) => (source.kind === "inline" ? [] : [source.key]));
}

/** @param packed keys of weights that stand in an arena */
function tensorsOf(
  { graph, targets, weights }: Pick<Artifact, "graph" | "targets" | "weights">,
  packed: ReadonlySet<string> = new Set(),
): Map<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>([
    [tensorNames.graph, textTensor(printGraph(graph))],
  ]);
  for (const [name, { program, schedules }] of targets) {
    tensors.set(tensorNames.program(name), textTensor(printProgram(program)));
    tensors.set(tensorNames.schedules(name), textTensor(schedules.map(printSchedule).join("")));
  }
  for (const { value, source } of graph.weights) {
    if (source.kind === "inline" || packed.has(source.key)) continue;
    const { dtype, shape } = graph.values[value]!.type;
    const extents = shape.map((e) => constantValue(e)!);
    const byteLength = storageBytes(dtype, elementCount(extents));
    const type = containerTypes[dtype];
    const stored = type ? { type, shape: extents } : ({ type: "U8", shape: [byteLength] } as const);
    const read = (): Uint8Array => tensorBytes(weights.read(source.key));
    const pieces = [{ offset: 0, byteLength, read }];
    tensors.set(tensorNames.weight(source.key), { ...stored, byteLength, pieces });
  }
  return tensors;
}

/** The tensors with `meta`, which has their hashes, and its own hash beside it. */
function sealed(
  tensors: ReadonlyMap<string, StoredTensor>,
  meta: Omit<ArtifactMeta, "hashes" | "format" | "version" | "tags">,
  { hash, tag }: Checksums,
): ArtifactFile {
  const names = [...tensors.keys()].sort();
  const isLarge = (name: string): boolean => tensors.get(name)!.byteLength >= leastTaggedBytes;
  const tagged = tag ? names.filter(isLarge) : [];
  const contents = new Map(
    names.map((name): [string, SummedContents] => {
      const sums = tag && isLarge(name) ? [hash, tag] : [hash];
      return [name, new SummedContents(tensors.get(name)!, sums)];
    }),
  );
  const spell = (sums: (name: string) => readonly string[]): Uint8Array => {
    const all = new Map(names.map((name) => [name, sums(name)]));
    const at = (list: readonly string[], i: number) =>
      Object.fromEntries(list.map((name) => [name, all.get(name)![i]!]));
    const head: ArtifactMeta = {
      format: "wavetile-artifact",
      version: 1,
      ...meta,
      hashes: at(names, 0),
      ...(tagged.length > 0 && { tags: at(tagged, 1) }),
    };
    return new TextEncoder().encode(`${JSON.stringify(head, null, 1)}\n`);
  };
  // Sums are as long whatever they are of.
  const none = [hash, ...(tag ? [tag] : [])].map((start) => start().digest());
  let spelled: Uint8Array | undefined;
  const last = [
    textOf(tensorNames.meta, spell(() => none).length, () => {
      spelled = spell((name) => contents.get(name)!.digests());
      return spelled;
    }),
    textOf(tensorNames.seal, none[0]!.length, () =>
      new TextEncoder().encode(sumOf(hash, spelled!)),
    ),
  ] as const;
  const { head, offsets, byteLength } = layoutSafetensors(new Map([...tensors, ...last]));
  const ordered = [...names.map((name) => [name, contents.get(name)!] as const), ...last];
  const parts = ordered.flatMap(([name, { pieces }]) =>
    pieces.map(({ offset, read }) => ({ offset: offsets.get(name)! + offset, read })),
  );
  return { byteLength, parts: [{ offset: 0, read: () => head }, ...parts] };
}

function textOf(
  name: string,
  byteLength: number,
  read: () => Uint8Array,
): readonly [string, StoredTensor] {
  const pieces = [{ offset: 0, byteLength, read }];
  return [name, { type: "U8", shape: [byteLength], byteLength, pieces }];
}

function textTensor(text: string): StoredTensor {
  const bytes = new TextEncoder().encode(text);
  return textOf("", bytes.length, () => bytes)[1];
}
