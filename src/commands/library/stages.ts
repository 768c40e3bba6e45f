/**
 * A model in which data decide sizes (NonZero, Unique, NonMaxSuppression), how many samples a box has (RoiAlign)
 * or when a loop ends, or that draws numbers, cut there: each part between is compiled by itself, for any size up to the bound.
 */
import { prepareParts } from "../../compile.ts";
import type { ImportedModel } from "../../frontend/onnx/import/import-model.ts";
import type { Graph, Model } from "../../graph/graph.ts";
import { keptWide } from "../../graph/transforms/keep-wide.ts";
import { splitAtData } from "../../graph/transforms/split-at-data.ts";
import { tooLarge } from "../../interp/reference-limit.ts";
import type { Schedule } from "../../schedule/directive.ts";
import { emptySchedulingMemory, isRepeated } from "../../scheduled-graph.ts";
import { type Diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import { compileImported, type OpenModel, type OpenOptions } from "./open-model.ts";

export interface OpenStage {
  readonly graph: Graph;
  /** Absent: the one node whose results data decide. */
  readonly opened?: OpenModel;
}

/** The graph as it was cut, and its parts in the order they run. */
export interface OpenStages extends Model {
  readonly stages: readonly OpenStage[];
}

/**
 * Undefined where no data decide a size, so that stages would not help.
 * @param measured of each program, schedules by its regions that were measured to be the best
 */
export function openStages(
  imported: ImportedModel,
  target: Target,
  options: OpenOptions,
  measured: readonly ReadonlyMap<string, Schedule>[] = [],
): Result<OpenStages> | undefined {
  const { model, wide } = prepareParts(imported, target);
  const { graph, weights } = model;
  const parts = splitAtData(graph, (node) => isRepeated(node, target));
  if (!parts) return undefined;
  const large = parts.flatMap((part) => (part.kind === "data" ? (tooLarge(part.graph) ?? []) : []));
  if (large.length > 0) return fail(...large);
  const stages: OpenStage[] = [];
  const warnings: Diagnostic[] = [...keptWide(wide)];
  const memory = { own: emptySchedulingMemory(), portable: emptySchedulingMemory() };
  let programs = 0;
  for (const part of parts) {
    if (part.kind === "data") {
      stages.push({ graph: part.graph });
      continue;
    }
    const better = measured[programs++];
    const own = { ...options, memory, ...(better && { measured: better }) };
    const opened = openPart({ graph: part.graph, weights }, target, own);
    if (!opened.ok) return opened;
    stages.push({ graph: part.graph, opened: opened.value });
    warnings.push(...opened.warnings);
  }
  return ok({ graph, weights, stages }, warnings);
}

function openPart(
  { graph, weights }: Model,
  target: Target,
  options: OpenOptions,
): Result<OpenModel> {
  const names = (ids: readonly number[]) => ids.map((id) => graph.values[id]!.name);
  const [inputNames, outputNames] = [names(graph.inputs), names(graph.outputs)];
  return compileImported({ graph, weights, inputNames, outputNames, outputs: [] }, target, options);
}
