/**
 * A model that runs in stages (staged-run.ts), from its bytes to a session: an ONNX model in which data
 * decide sizes (NonZero, Unique, NonMaxSuppression), how many samples a box has (RoiAlign) or when a loop ends,
 * or that draws numbers, or an artifact of one.
 */
import { looksLikeArtifact } from "../../artifact/artifact.ts";
import type { ImportedModel } from "../../frontend/onnx/import/import-model.ts";
import type { Graph, Node } from "../../graph/graph.ts";
import { subgraphsOf, traitsOf } from "../../graph/op-table.ts";
import { unboundedSymbols } from "../../graph/unbounded-symbols.ts";
import { memoryBytes } from "../../program/storage-sizes.ts";
import { sharedThreads } from "../../runtime/create-session.ts";
import type { CudaWish } from "../../runtime/cuda/features.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { findTarget } from "./choose-target.ts";
import type { ModelFace } from "./loaded-model.ts";
import { importBytes, type ModelBytes, portNames } from "./model-bytes.ts";
import { type OpenOptions, startSession } from "./open-model.ts";
import { describePorts } from "./ports.ts";
import { openStagedArtifact } from "./staged-artifact.ts";
import { type Stage, StagedSession } from "./staged-run.ts";
import { type OpenStages, openStages } from "./stages.ts";

export interface Staged {
  readonly face: ModelFace;
  readonly session: StagedSession;
}

/** A model in stages before it is started, with its ports. */
export interface StagedModel {
  readonly face: ModelFace;
  readonly stages: OpenStages;
  /** Absent where it was read from an artifact. */
  readonly imported?: ImportedModel;
}

/** The model in stages; undefined where no data decide a size, so that stages would not help. */
export function openStaged(
  source: ModelBytes,
  options: OpenOptions,
): Result<StagedModel> | undefined {
  if (looksLikeArtifact(source.bytes)) return openArtifact(source, options);
  const read = importBytes(source, options);
  if (!read.ok) return read;
  const target = findTarget(options.target, options.gpu?.ordinal);
  if (!target.ok) return target;
  const open = unboundedSymbols(read.value.graph);
  if (open) return fail(open);
  const opened = openStages(read.value, target.value, options);
  if (!opened?.ok) return opened;
  const { graph, stages: parts } = opened.value;
  const meta = portNames(read.value, graph);
  const face = { start: { meta }, ports: describePorts(graph, meta) };
  const bodies = parts.flatMap((p) => (p.opened ? [] : p.graph.nodes));
  const slow = bodies.flatMap((node) => onReference(node, graph) ?? []);
  const warnings = [...read.warnings, ...opened.warnings, ...slow];
  return ok({ face, stages: opened.value, imported: read.value }, warnings);
}

function openArtifact(source: ModelBytes, options: OpenOptions): Result<StagedModel> {
  const opened = openStagedArtifact(source, options);
  if (!opened.ok) return opened;
  const { meta, stages } = opened.value;
  const face = { start: { meta }, ports: describePorts(stages.graph, meta) };
  return ok({ face, stages }, opened.warnings);
}

/** As openStaged, ready to run. */
export function stageModel(
  source: ModelBytes,
  options: OpenOptions & { readonly threads: number },
): Result<Staged> | undefined {
  const opened = openStaged(source, options);
  if (!opened?.ok) return opened;
  const { face, stages } = opened.value;
  const session = startStages(stages, options.threads, options.gpu);
  return session.ok ? ok({ face, session: session.value }, opened.warnings) : session;
}

/** Each program loaded, with the references between them; they take turns on the same threads. */
export function startStages(
  { graph, weights, stages: parts }: OpenStages,
  threads: number,
  gpu?: CudaWish,
): Result<StagedSession> {
  const stages: Stage[] = [];
  const target = parts.find((p) => p.opened)?.opened?.target;
  const pool = target && sharedThreads(target, threads);
  for (const { graph: own, opened } of parts) {
    const session = opened ? startSession(opened, threads, { pool, gpu }) : undefined;
    if (session && !session.ok) {
      for (const stage of stages) void stage.session?.dispose();
      void pool?.dispose();
      return session;
    }
    const bytes = opened ? memoryBytes(opened.start.program) : 0;
    stages.push({ graph: own, weights, bytes, ...(session && { session: session.value }) });
  }
  return ok(new StagedSession({ graph, weights }, stages, pool));
}

/** Work that ends where data say so: told, because the reference takes its time. */
function onReference(node: Node, graph: Graph): Diagnostic | undefined {
  const isFlow = subgraphsOf(node).length > 0;
  if (!isFlow && !traitsOf(node, graph).dataDependentWork) return undefined;
  const help = isFlow
    ? "data decide how many rows it collects, or shapes inside, so its body runs on the reference, in every trip; where the model, --value or --shape fixes the trips it is part of a program (on GPUs up to 64 of them)"
    : "data decide how many samples a box has, so it runs on the reference; with a sampling_ratio from 1 on it is a program";
  const found = `${node.op} of ${node.origin ?? "the model"} has no program`;
  return diagnostic("SCH015", found, { severity: "warning", help });
}
