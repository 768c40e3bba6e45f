/** An artifact as the bytes of one safetensors file; equal artifacts give equal bytes. */
import { type Safetensor, writeSafetensors } from "../frontend/safetensors/safetensors.ts";
import { printGraph } from "../graph/graph-text.ts";
import { printProgram } from "../program/program-text.ts";
import { printSchedule } from "../schedule/directive-text.ts";
import { type Tensor, tensorBytes } from "../semantics/tensor.ts";
import { sha256 } from "../support/hash.ts";
import {
  type Artifact,
  type ArtifactMeta,
  containerTypes,
  type HashBytes,
  tensorNames,
} from "./artifact.ts";

/** What the caller says of an artifact; the hashes are computed here. */
export type ArtifactContent = Omit<Artifact, "meta"> & {
  readonly meta: Omit<ArtifactMeta, "hashes" | "format" | "version">;
};

export function writeArtifact(
  { meta, graph, targets, weights }: ArtifactContent,
  hash: HashBytes = sha256,
): Uint8Array {
  const tensors = new Map<string, Safetensor>([[tensorNames.graph, textTensor(printGraph(graph))]]);
  for (const [name, { program, schedules }] of targets) {
    tensors.set(tensorNames.program(name), textTensor(printProgram(program)));
    tensors.set(tensorNames.schedules(name), textTensor(schedules.map(printSchedule).join("")));
  }
  for (const { source } of graph.weights) {
    if (source.kind === "inline") continue;
    tensors.set(tensorNames.weight(source.key), dataTensor(weights.read(source.key)));
  }
  const names = [...tensors.keys()].sort();
  const hashes = Object.fromEntries(names.map((name) => [name, hash(tensors.get(name)!.bytes)]));
  const head: ArtifactMeta = { format: "wavetile-artifact", version: 1, ...meta, hashes };
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
