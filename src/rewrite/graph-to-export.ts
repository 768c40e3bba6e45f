/** Which of the graphs that rewriting finds is written as a model for other runtimes. */
import type { Graph, Model } from "../graph/graph.ts";
import { prepareModel } from "../graph/prepare.ts";
import { eliminateDeadCode } from "../graph/transforms/clean.ts";
import { foldBatchNorm } from "../graph/transforms/fold-batch-norm.ts";
import { ok, type Result } from "../support/diagnostic.ts";
import { defaultPhases } from "./families/index.ts";
import { givenComposites } from "./given-composites.ts";
import { hasQuantisedWeights } from "./quantised-weights.ts";
import { type RewriteOptions, rewriteModel, settleConstants } from "./rewrite-model.ts";
import type { RuleRow } from "./rule-row.ts";

/** Prices operators one after another. */
export type OperatorPrices = NonNullable<RewriteOptions["pricer"]> & {
  readonly totalNs: (graph: Graph) => number;
};

export interface GraphToExport {
  readonly model: Model;
  /** Of the import and of what is written, one operator after another at the target's rates. */
  readonly importNs: number;
  readonly exportNs: number;
}

/**
 * Of a graph for other runtimes. Measured in onnxruntime on the models of the benches: what was priced lower by
 * less came out up to 3 % slower, and never faster beyond noise.
 */
const leastSavingOfOperators = 0.02;

/**
 * The graph to write for other runtimes, which take one operator after another: the cheapest, with the
 * composites that the import came with wherever they are still there; as it was imported where nothing is
 * cheaper by more than prices tell apart, or where its weights are quantised.
 */
export function chooseExport(
  imported: Model,
  { pricer, rules }: { readonly pricer: OperatorPrices; readonly rules: readonly RuleRow[] },
): Result<GraphToExport> {
  const given = { name: "given", rules: givenComposites(imported.graph), iterations: 1 };
  // At first, whatever becomes of the budget, and again where rules have moved them.
  const phases = [given, ...defaultPhases, given];
  const options = { pricer, phases, onTie: "rewritten", ownRules: rules } as const;
  const found = rewriteModel(prepareModel(imported), options);
  if (!found.ok) return found;
  const model = settleConstants(found.value.best.model);
  // Every runtime folds batch norms by itself.
  const [before, after] = [foldBatchNorm(imported.graph).graph, model.graph].map((graph) =>
    pricer.totalNs(eliminateDeadCode(graph)),
  ) as [number, number];
  const isWorth =
    after < (1 - leastSavingOfOperators) * before && !hasQuantisedWeights(imported.graph);
  const chosen = isWorth
    ? { model, importNs: before, exportNs: after }
    : { model: imported, importNs: before, exportNs: before };
  return ok(chosen, found.warnings);
}
