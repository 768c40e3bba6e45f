/** An artifact as the bytes of one safetensors file; equal artifacts give equal bytes. */
import { type Safetensor, writeSafetensors } from "../frontend/safetensors/safetensors.ts";
import { printGraph } from "../graph/graph-text.ts";
import { printProgram } from "../program/program-text.ts";
import { printSchedule } from "../schedule/directive-text.ts";
import { type Tensor, tensorBytes } from "../semantics/tensor.ts";
import { sha256Text } from "../support/hash.ts";
import { type Artifact, type ArtifactMeta, containerTypes, tensorNames } from "./artifact.ts";

/** What the caller says of an artifact; the hashes are computed here. */
export type ArtifactContent = Omit<Artifact, "meta"> & {
  readonly meta: Omit<ArtifactMeta, "hashes" | "format" | "version">;
};

export function writeArtifact({ meta, graph, targets, weights }: ArtifactContent): Uint8Array {
  const texts = new Map<string, string>([[tensorNames.graph, printGraph(graph)]]);
  for (const [name, { program, schedules }] of targets) {
    texts.set(tensorNames.program(name), printProgram(program));
    texts.set(tensorNames.schedules(name), schedules.map(printSchedule).join(""));
  }
  const hashes = Object.fromEntries(
    [...texts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, text]) => [name, sha256Text(text)]),
  );
  const head: ArtifactMeta = { format: "wavetile-artifact", version: 1, ...meta, hashes };
  const tensors = new Map<string, Safetensor>();
  tensors.set(tensorNames.meta, textTensor(`${JSON.stringify(head, null, 1)}\n`));
  for (const [name, text] of texts) tensors.set(name, textTensor(text));
  for (const { source } of graph.weights) {
    if (source.kind === "inline") continue;
    tensors.set(tensorNames.weight(source.key), dataTensor(weights.read(source.key)));
  }
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
