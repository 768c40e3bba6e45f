/** The graph passes (graph/prepare.ts) for a target: what only some machines gain by is asked of it. */
import type { Model } from "../graph/graph.ts";
import { type PrepareOptions, prepareModel } from "../graph/prepare.ts";
import { type KeepWideOptions, keepWide, type WideValue } from "../graph/transforms/keep-wide.ts";
import type { NestOptions } from "../region/builders/context.ts";
import { costlyHalves, halfFactors, type Target } from "../target/target.ts";
import { mayAttend } from "./attention/attention-candidates.ts";
import { productOrdersOf } from "./products/stream-operands.ts";
import {
  dotDataOf,
  dotTermsOf,
  multipliesByteFloats,
  multipliesHalfPairs,
  takesWideWeights,
} from "./states/dot-form.ts";

/** Whether the first k of a line are selected by digits where threads share its folds; default: yes. */
interface Selecting {
  readonly byDigits?: boolean;
}

/** The graph passes, with those that only this target gains by. */
export function prepareFor(
  model: Model,
  target: Target,
  { byDigits = true }: Selecting = {},
): Model {
  const options = prepareOptions(target);
  const selectsByDigits = byDigits && options.selectsByDigits === true;
  return prepareModel(model, { ...options, selectsByDigits });
}

export interface PreparedModel {
  readonly model: Model;
  /** The same with ranks counted where the model has the first k selected by digits. */
  readonly counted?: Model;
  readonly wide: readonly WideValue[];
}

/** The graph passes; half precision that may overflow becomes single, and is prepared again. */
export function prepareWide(source: Model, target: Target): PreparedModel {
  const { from, model, wide } = prepareKept(source, target, {
    everywhere: target.capabilities.has(costlyHalves),
    narrowFactors: target.capabilities.has(halfFactors),
    pairsOfBrains: multipliesHalfPairs(target),
  });
  const counted = countedRanks(from, model, target);
  return { model, wide, ...(counted && { counted }) };
}

/**
 * The graph passes for a model that is cut into parts: half precision that may overflow becomes single before that,
 * so that it is in every part and between them. Whatever else a target keeps wide stays within a part.
 */
export function prepareParts(source: Model, target: Target): PreparedModel {
  const { model, wide } = prepareKept(source, target, {});
  return { model, wide };
}

function prepareKept(source: Model, target: Target, options: KeepWideOptions) {
  const model = prepareFor(source, target);
  const kept = keepWide(model, { ...options, hasHalfUnits: target.capabilities.has("mma") });
  const { wide, isChanged } = kept;
  const from = isChanged ? kept.model : source;
  return { from, model: isChanged ? prepareFor(from, target) : model, wide };
}

function countedRanks(source: Model, prepared: Model, target: Target): Model | undefined {
  const { nodes } = prepared.graph;
  // What is selected is put in order by ranks in the end.
  if (!target.blocks || nodes.every((n) => n.op !== "topK")) return undefined;
  const model = prepareFor(source, target, { byDigits: false });
  return model.graph.nodes.length === nodes.length ? undefined : model;
}

function prepareOptions(target: Target): PrepareOptions {
  const data = dotDataOf(target);
  const terms = dotTermsOf(target);
  const productOrders = productOrdersOf(target);
  return {
    ...(data && {
      integerProducts: {
        ...data,
        ...(terms !== undefined && { terms }),
        sumsRows: terms === 4,
        takesWideWeights: takesWideWeights(target),
      },
    }),
    byteFloatProducts: multipliesByteFloats(target),
    packsAttention: mayAttend(target),
    forBlocks: target.blocks !== undefined,
    ...(productOrders && { productOrders }),
    selectsByDigits: target.blocks !== undefined,
    repeatsSteps: true,
  };
}

/** A result is what all lanes agree on: sixteen take a fifth longer for that than eight. */
const mostSelectionLanes = 8;

/** How nests are built for a target: processors select the first k of a line, and filter one axis at a time. */
export function nestOptions(target: Target): Omit<NestOptions, "prefix"> {
  if (target.blocks) return {};
  const selectionLanes = Math.min(mostSelectionLanes, target.vectorBytes / 4);
  return { selectionLanes, separatesFilters: true };
}
