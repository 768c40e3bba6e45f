/**
 * Loading an artifact for the second time. The first load on a machine parses, proves and emits; what is
 * left of it is kept under a hash of the artifact, the target, this machine's features and the build of
 * Wavetile that did it. An artifact of another content, another build or another machine has another
 * key. A source checkout has no build, and keeps nothing.
 */
import type { ArtifactMeta } from "../../artifact/artifact.ts";
import { tensorNames } from "../../artifact/artifact.ts";
import type { Container } from "../../artifact/container.ts";
import { baseName } from "../../artifact/packed-weights.ts";
import { readPacked } from "../../artifact/read-artifact.ts";
import type { ArtifactContent } from "../../artifact/write-artifact.ts";
import type { Program } from "../../program/program.ts";
import { describeHost, type EmittedCode } from "../../runtime/emit-here.ts";
import { hashBytes } from "../../runtime/files/hash-bytes.ts";
import { type KeptFiles, openKeptFiles } from "../../runtime/files/kept-files.ts";
import {
  decodeKept,
  encodeKept,
  type KeptProgram,
  type KeptWeight,
  outlineOf,
  withoutWeights,
} from "../../runtime/kept-program.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { type Tensor, tensorOnBytes } from "../../semantics/tensor.ts";
import { wideTensor } from "../../semantics/wide-tensor.ts";
import { invariant } from "../../support/invariant.ts";
import type { Target } from "../../target/target.ts";
import { build } from "../version.ts";
import { describePorts, type ModelPorts } from "./ports.ts";

interface KeptPorts {
  readonly ports: ModelPorts;
  /** Of ports in the graph. */
  readonly names: Pick<ArtifactMeta, "inputs" | "outputs">;
}

export type KeptModel = KeptProgram<KeptPorts>;

export function openKeptModels(): KeptFiles | undefined {
  return build === undefined ? undefined : openKeptFiles("programs");
}

export function findKept(
  store: KeptFiles,
  container: Container,
  target: Target,
): KeptModel | undefined {
  const bytes = store.read(keyOf(container, target));
  return bytes && decodeKept<KeptPorts>(bytes);
}

/** The program for `target` of the artifact in `container`, with the code that was made of it. */
export interface MadeModel {
  readonly artifact: ArtifactContent;
  readonly program: Program;
  readonly target: Target;
  readonly code: EmittedCode;
}

export function keepModel(store: KeptFiles, container: Container, made: MadeModel): void {
  const { artifact, program, target, code } = made;
  const arena = container.tensors.get(tensorNames.arena(target.name));
  const outline = outlineOf(program);
  const { inputs, outputs } = artifact.meta;
  const kept: KeptModel = {
    outline: arena ? withoutWeights(outline) : outline,
    code,
    ...(arena && { arenaBytes: arena.bytes.length }),
    weights: arena ? new Map() : weightsOf(artifact, program),
    ports: { ports: describePorts(artifact.graph, artifact.meta), names: { inputs, outputs } },
  };
  store.write(keyOf(container, target), encodeKept(kept));
}

/** Elements of a weight by the name of its buffer's source. */
export function readerOfKept(kept: KeptModel, container: Container): (name: string) => Tensor {
  const { tensors, contents } = container;
  const stored = (
    name: string,
    { dtype, shape, tensor }: Extract<KeptWeight, { kind: "stored" }>,
  ): Tensor => {
    if (tensors.has(tensor)) return tensorOnBytes(dtype, shape, contents(tensor));
    const bases = new Map(container.meta.views.map((v) => [v.name, v.of]));
    const key = tensor.slice(tensorNames.weight("").length);
    return readPacked(key, { name: baseName(name, bases), dtype, shape }, container)();
  };
  return (name) => {
    const weight = kept.weights.get(name);
    invariant(weight, () => `no weight ${name}`);
    if (weight.kind === "inline") return weight.tensor;
    const tensor = stored(name, weight);
    return weight.isWide ? wideTensor(tensor) : tensor;
  };
}

function keyOf({ fingerprint }: Container, target: Target): string {
  const parts = [build ?? "none", fingerprint, target.name, describeHost(target)];
  return hashBytes(new TextEncoder().encode(parts.join("\n")));
}

function weightsOf(
  { graph, meta }: ArtifactContent,
  program: Program,
): ReadonlyMap<string, KeptWeight> {
  const known = new Map(graph.weights.map((w) => [graph.values[w.value]!.name, w]));
  const views = new Map(
    meta.views.map((v): [string, ArtifactMeta["views"][number]] => [v.name, v]),
  );
  const find = (name: string): KeptWeight => {
    const view = views.get(name);
    if (view) return seen(find(view.of), view);
    const weight = known.get(name);
    invariant(weight, () => `no weight ${name}`);
    const { source, value } = weight;
    if (source.kind === "inline") return { kind: "inline", tensor: source.tensor };
    const { dtype, shape } = graph.values[value]!.type;
    const extents = shape.map((e) => constantValue(e)!);
    return { kind: "stored", tensor: tensorNames.weight(source.key), dtype, shape: extents };
  };
  const names = program.buffers.flatMap((b) => (b.kind === "weight" ? [b.source!] : []));
  return new Map(names.map((name) => [name, find(name)]));
}

/** As a view of it says. */
function seen(weight: KeptWeight, { shape, dtype }: ArtifactMeta["views"][number]): KeptWeight {
  if (weight.kind === "stored") return { ...weight, shape, ...(dtype && { isWide: true }) };
  const tensor = dtype ? wideTensor(weight.tensor) : weight.tensor;
  return { ...weight, tensor: { ...tensor, shape } };
}
