/** Which of the graphs that rewriting finds is written as a model for other runtimes. */
import type { Graph, Model } from "../graph/graph.ts";
import { prepareModel } from "../graph/prepare.ts";
import { eliminateDeadCode } from "../graph/transforms/clean.ts";
import { foldBatchNorm } from "../graph/transforms/fold-batch-norm.ts";
import { type Diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { type RewriteBody, rewriteBranches } from "./branch-bodies.ts";
import { arithmetic } from "./families/arithmetic.ts";
import { composites } from "./families/composites.ts";
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

/** The rules that recognise what runtimes do by themselves: norms, their squares however spelled, and GELU. */
const recognised = /^(gelu|layer-norm|pow-two$)/;

type Options = Omit<RewriteOptions, "pricer"> & { readonly pricer: OperatorPrices };

/**
 * The graph to write for other runtimes, which take one operator after another, and of branches the one that
 * is taken: the cheapest, with the composites that the import came with wherever they are still there; as it
 * was imported where nothing is cheaper by more than prices tell apart, or where its weights are quantised.
 */
export function chooseExport(
  imported: Model,
  { pricer, rules }: { readonly pricer: OperatorPrices; readonly rules: readonly RuleRow[] },
): Result<GraphToExport> {
  const all = givenComposites(withBranches(imported.graph));
  const given = { name: "given", rules: all, iterations: 1 };
  const prepared = prepareModel(imported, { keepsChoices: true });
  // At first, whatever becomes of the budget, and again where rules have moved them.
  const phases = [given, ...defaultPhases, given];
  const options = { pricer, onTie: "rewritten" } as const;
  const found = rewriteAll(prepared, { ...options, phases, ownRules: rules });
  if (!found.ok) return found;
  const before = importNs(imported, prepared, { ...options, phases: [given] });
  if (!before.ok) return before;
  const after = pricer.totalNs(eliminateDeadCode(found.value.graph));
  const isWorth =
    after < (1 - leastSavingOfOperators) * before.value && !hasQuantisedWeights(imported.graph);
  const chosen = isWorth
    ? { model: found.value, importNs: before.value, exportNs: after }
    : { model: imported, importNs: before.value, exportNs: before.value };
  return ok(chosen, found.warnings);
}

const ownComposites = {
  name: "recognise",
  rules: [...arithmetic, ...composites].filter(({ name }) => recognised.test(name)),
  iterations: 2,
};

/** The import as runtimes see it: batch norms folded, less what norms and such save that they recognise. */
function importNs(imported: Model, prepared: Model, options: Options): Result<number> {
  const { pricer, phases = [] } = options;
  const seen = [phases, [...phases, ownComposites]].map((of) =>
    rewriteAll(prepared, { ...options, phases: of }),
  );
  const prices: number[] = [];
  for (const found of seen) {
    if (!found.ok) return found;
    prices.push(pricer.totalNs(eliminateDeadCode(found.value.graph)));
  }
  const [written, recognised] = prices as [number, number];
  const folded = eliminateDeadCode(foldBatchNorm(imported.graph).graph);
  return ok(pricer.totalNs(folded) - Math.max(0, written - recognised));
}

/** The best of a graph, and of each of its branches. */
function rewriteAll(model: Model, options: Options): Result<Model> {
  const warnings: Diagnostic[] = [];
  const faults: Diagnostic[] = [];
  const rewrite: RewriteBody = (body) => {
    const found = rewriteModel(body, options);
    if (!found.ok) {
      faults.push(...found.diagnostics);
      return body;
    }
    warnings.push(...found.warnings);
    return settleConstants(found.value.best.model);
  };
  const whole = rewriteBranches(rewrite(model), rewrite);
  const [fault, ...others] = faults;
  return fault ? fail(fault, ...others) : ok(whole, warnings);
}

/** A graph and those of its branches. */
function withBranches(graph: Graph): readonly Graph[] {
  const inner = graph.nodes.flatMap((node) =>
    node.op === "if" ? [node.attrs.then, node.attrs.else].flatMap(withBranches) : [],
  );
  return [graph, ...inner];
}
