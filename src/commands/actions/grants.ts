/**
 * What `verify` grants an output beside the roundings of f32 that its graph comes to: what steps of quantisations and
 * roundings to 16 bits move it by, and how much it hangs on last bits. Both are measured by running the oracle again.
 */

import type { ArtifactMeta } from "../../artifact/artifact.ts";
import type { Graph, Model } from "../../graph/graph.ts";
import { expandComposites } from "../../graph/transforms/expand-composites.ts";
import { keepRange } from "../../graph/transforms/keep-range.ts";
import { keepWide } from "../../graph/transforms/keep-wide.ts";
import { runGraph, runNearEdges, runNudged } from "../../interp/graph.ts";
import { isFloatDType } from "../../semantics/dtype.ts";
import { type RefTensor, toRef } from "../../semantics/tensor.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import {
  errorsOf,
  isMovable,
  leastOfHalves,
  moveTolerances,
  tolerancesOf,
  worstDifference,
} from "../../verdict/tolerance.ts";
import type { Tensors } from "../library/loaded-model.ts";
import { extentsOf } from "./given-inputs.ts";
import { atTrips, oracleSeconds, type Symbols } from "./oracle-budget.ts";

/** A comparison with the reference's side of it. */
interface ReferenceRun {
  /** Name of the reference: "oracle", or another implementation. */
  readonly against: string;
  /** Seconds that the oracle may take. */
  readonly budget: number;
  readonly ports: Pick<ArtifactMeta, "inputs">;
  /** The graph of the program. */
  readonly graph: Graph;
  /** The model as it was imported. */
  readonly reference: () => Result<Pick<Model, "graph" | "weights">>;
  readonly feeds: Tensors;
  /** What the reference computed. */
  readonly expected: readonly RefTensor[];
}

/** What is granted beside the roundings of 32 bits, and whether it was measured. */
export interface Moves {
  readonly tolerances: readonly number[];
  readonly isMoved: boolean;
}

/**
 * What steps of the model's quantisations and roundings to 16 bits may move each output: by a second run of the
 * oracle; against onnxruntime by the model alone, where the oracle has no time for that.
 */
export function movesOf(run: ReferenceRun): Result<Moves> {
  const model = run.reference();
  if (!model.ok) return model;
  if (!isMovable(run.graph) && !isMovable(model.value.graph))
    return ok({ tolerances: [], isMoved: false });
  const asked = oracleOf(run, model.value);
  const { own, weights, inputs, symbols, fed, oracle } = asked;
  if (!oracle) return ok({ tolerances: tolerancesOf(atExtents(fed, symbols)), isMoved: false });
  if (!oracle.ok) return oracle;
  const { model: wide } = keepWide({ graph: own, weights }, { everywhere: true });
  const near = runNearEdges(wide.graph, inputs, wide.weights, (core) =>
    errorsOf(atExtents(core, symbols)),
  );
  if (!near.ok) return near;
  const least = leastOfHalves(atExtents(fed, symbols));
  const moved = moveTolerances(near.value, oracle.value);
  const isFloat = (i: number): boolean => isFloatDType(oracle.value[i]!.dtype);
  return ok({ tolerances: moved.map((m, i) => m + (isFloat(i) ? least : 0)), isMoved: true });
}

/** Programs take sums in other orders at every node. */
const conditionsGranted = 4;

/** How far other roundings to f32 move outputs of floats, relative to their largest values; nothing where there is no time. */
export function conditionsOf(run: ReferenceRun): Result<readonly number[]> {
  const model = run.reference();
  if (!model.ok) return model;
  const { own, weights, inputs, oracle } = oracleOf(run, model.value);
  if (!oracle) return ok([]);
  if (!oracle.ok) return oracle;
  const near = runNudged(own, inputs, weights);
  if (!near.ok) return near;
  return ok(
    oracle.value.map((tensor, i) => {
      if (!isFloatDType(tensor.dtype)) return 0;
      const { relative } = worstDifference(near.value[i]!, tensor);
      return Number.isFinite(relative) ? conditionsGranted * relative : 0;
    }),
  );
}

/** The oracle's side; it has run where it is the reference, runs now where there is time, or is not there. */
function oracleOf(
  { against, budget, ports, feeds, expected }: ReferenceRun,
  model: Pick<Model, "graph" | "weights">,
) {
  const { graph: own, weights } = coreOf(keepRange(model));
  const inputs = ports.inputs.map(({ name }) => toRef(feeds[name]!));
  const names = ports.inputs.map((p) => p.name);
  const symbols = extentsOf(own, names, feeds);
  const fed = atTrips(own, names, feeds);
  const common = { own, weights, inputs, symbols, fed };
  if (against === "oracle") return { ...common, oracle: ok(expected) };
  const isShort = 2 * oracleSeconds(fed, symbols) <= budget;
  return { ...common, oracle: isShort ? runGraph(own, inputs, weights) : undefined };
}

/** Of composites nothing is kept wide. */
function coreOf({
  graph,
  weights,
}: Pick<Model, "graph" | "weights">): Pick<Model, "graph" | "weights"> {
  const core = expandComposites(graph);
  const read = (key: string) => core.constants.get(key) ?? weights.read(key);
  return { graph: core.graph, weights: { read } };
}

function atExtents(graph: Graph, extents: Symbols): Graph {
  const symbols = graph.symbols.map((s) => {
    const extent = extents.get(s.name);
    return extent === undefined ? s : { ...s, min: extent, max: extent };
  });
  return { ...graph, symbols };
}
