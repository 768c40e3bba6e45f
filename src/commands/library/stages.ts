/**
 * A model in which data decide sizes (NonZero, Unique, NonMaxSuppression), how many samples a box has (RoiAlign)
 * or when a loop ends, or that draws numbers, cut there: each part between is compiled by itself, for any size up to the bound.
 */
import { prepareParts } from "../../compile.ts";
import type { ImportedModel } from "../../frontend/onnx/import/import-model.ts";
import type { Graph, Model } from "../../graph/graph.ts";
import { keptWide } from "../../graph/transforms/keep-wide.ts";
import { symbolsIntroduced } from "../../graph/transforms/rebuild.ts";
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
  const parts = splitAtData(graph, (node) => isRepeated(node, graph, target));
  if (!parts) return undefined;
  const large = parts.flatMap((part) => (part.kind === "data" ? (tooLarge(part.graph) ?? []) : []));
  if (large.length > 0) return fail(...large);
  const stages: OpenStage[] = [];
  const warnings: Diagnostic[] = [...keptWide(wide)];
  const memory = { own: emptySchedulingMemory(), portable: emptySchedulingMemory() };
  const decided = new Set(graph.nodes.flatMap((node) => symbolsIntroduced(node, graph)));
  let programs = 0;
  for (const part of parts) {
    if (part.kind === "data") {
      stages.push({ graph: part.graph });
      continue;
    }
    const better = measured[programs++];
    const own = { ...options, memory, ...(better && { measured: better }) };
    const opened = openStage({ graph: part.graph, weights }, target, { decided, ...own });
    if (!opened.ok) return opened;
    stages.push(opened.value);
    warnings.push(...opened.warnings);
  }
  return ok({ graph, weights, stages }, warnings);
}

/** Sizes that data decide and nothing bounds, as programs have memory for them; references take those beyond. */
const usualSizes = [4096, 256] as const;

/** The part for all sizes that there can be, or where no memory is enough for these, for usual ones. */
function openStage(
  model: Model,
  target: Target,
  { decided, ...options }: OpenOptions & { readonly decided: ReadonlySet<string> },
): Result<OpenStage> {
  const whole = openPart(model, target, options);
  const lacksMemory = !whole.ok && whole.diagnostics.every((d) => d.code === "MEM002");
  for (const most of lacksMemory ? usualSizes : []) {
    const isOpen = (s: Graph["symbols"][number]): boolean => decided.has(s.name) && s.max > most;
    const { symbols } = model.graph;
    if (!symbols.some(isOpen)) break;
    const bounded = symbols.map((s) => (isOpen(s) ? { ...s, max: most } : s));
    const graph = { ...model.graph, symbols: bounded };
    const opened = openPart({ ...model, graph }, target, options);
    if (opened.ok) return ok({ graph, opened: opened.value }, opened.warnings);
  }
  return whole.ok ? ok({ graph: model.graph, opened: whole.value }, whole.warnings) : whole;
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
