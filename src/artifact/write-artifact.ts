/** An artifact as the bytes of one safetensors file; equal artifacts give equal bytes. */
import { type Safetensor, writeSafetensors } from "../frontend/safetensors/safetensors.ts";
import type { Graph, WeightStore } from "../graph/graph.ts";
import { printGraph } from "../graph/graph-text.ts";
import { printBuffer, printProgram } from "../program/program-text.ts";
import { printSchedule } from "../schedule/directive-text.ts";
import { type Tensor, tensorBytes } from "../semantics/tensor.ts";
import { sha256 } from "../support/hash.ts";
import { targets } from "../target/index.ts";
import {
  type Artifact,
  type ArtifactMeta,
  arenaAlignment,
  type Checksums,
  containerTypes,
  type HashBytes,
  leastTaggedBytes,
  type TagBytes,
  tensorNames,
} from "./artifact.ts";
import { isPackable, packWeights } from "./packed-weights.ts";
import { readerOfWeights } from "./weights.ts";

/** What the caller says of an artifact; the hashes are computed here. */
export type ArtifactContent = Omit<Artifact, "meta"> & {
  readonly meta: Omit<ArtifactMeta, "hashes" | "format" | "version" | "packed" | "tags">;
};

const plainHashes: Checksums = { hash: sha256 };

/** @param pack the target whose weights are stored as its program reads them; undefined: none */
export function writeArtifact(
  content: ArtifactContent,
  checksums: Checksums = plainHashes,
  pack?: string,
): Uint8Array {
  const { meta: own, ...rest } = content;
  // What another file said of itself.
  const { packed: _, tags: __, hashes: ___, ...meta } = own as Partial<ArtifactMeta> & typeof own;
  const code = pack === undefined ? undefined : content.targets.get(pack);
  const isStored = code && isPackable(targets.get(pack!)!);
  if (!isStored) return sealed(tensorsOf(rest), meta, checksums);
  const { graph } = content;
  const read = readerOfWeights(content, meta.views);
  const { bytes, buffers } = packWeights(code.program, graph, meta.views, read);
  const tensors = tensorsOf(rest, new Set(buffers.keys()));
  const arena = { type: "U8", shape: [bytes.length], bytes, alignment: arenaAlignment } as const;
  tensors.set(tensorNames.arena(pack!), arena);
  const texts = [...buffers].map(([key, buffer]) => [key, printBuffer(buffer)] as const);
  const packed = { target: pack!, buffers: Object.fromEntries(texts) };
  return sealed(tensors, { ...meta, packed }, checksums);
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

export function writeStagedArtifact(
  { meta, graph, weights, stages }: StagedContent,
  checksums: Checksums = plainHashes,
): Uint8Array {
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

function fingerprintOf({ type, shape, bytes }: Safetensor, hash: HashBytes): string {
  return `${type}[${shape}] ${hash(bytes)}`;
}

function keysOf(graph: Graph): readonly string[] {
  return graph.weights.flatMap(({ source }) => (source.kind === "inline" ? [] : [source.key]));
}

/** @param packed keys of weights that stand in an arena */
function tensorsOf(
  { graph, targets, weights }: Pick<Artifact, "graph" | "targets" | "weights">,
  packed: ReadonlySet<string> = new Set(),
): Map<string, Safetensor> {
  const tensors = new Map<string, Safetensor>([[tensorNames.graph, textTensor(printGraph(graph))]]);
  for (const [name, { program, schedules }] of targets) {
    tensors.set(tensorNames.program(name), textTensor(printProgram(program)));
    tensors.set(tensorNames.schedules(name), textTensor(schedules.map(printSchedule).join("")));
  }
  for (const key of keysOf(graph).filter((k) => !packed.has(k))) {
    tensors.set(tensorNames.weight(key), dataTensor(weights.read(key)));
  }
  return tensors;
}

/** The tensors with `meta`, which has their hashes, and its own hash beside it. */
function sealed(
  tensors: Map<string, Safetensor>,
  meta: Omit<ArtifactMeta, "hashes" | "format" | "version" | "tags">,
  { hash, tag }: Checksums,
): Uint8Array {
  const names = [...tensors.keys()].sort();
  const summed = (list: readonly string[], sum: HashBytes | TagBytes) =>
    Object.fromEntries(list.map((name) => [name, sum(tensors.get(name)!.bytes)]));
  const large = names.filter((name) => tensors.get(name)!.bytes.length >= leastTaggedBytes);
  const head: ArtifactMeta = {
    format: "wavetile-artifact",
    version: 1,
    ...meta,
    hashes: summed(names, hash),
    ...(tag && large.length > 0 && { tags: summed(large, tag) }),
  };
  const spelled = textTensor(`${JSON.stringify(head, null, 1)}\n`);
  tensors.set(tensorNames.meta, spelled);
  tensors.set(tensorNames.seal, textTensor(hash(spelled.bytes)));
  return writeSafetensors(tensors);
}

function textTensor(text: string): Safetensor {
  const bytes = new TextEncoder().encode(text);
  return { type: "U8", shape: [bytes.length], bytes };
}

function dataTensor(tensor: Tensor): Safetensor {
  const bytes = tensorBytes(tensor);
  const type = containerTypes[tensor.dtype];
  return type ? { type, shape: tensor.shape, bytes } : { type: "U8", shape: [bytes.length], bytes };
}
