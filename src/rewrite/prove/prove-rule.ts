/**
 * Proof of a rule by trials: its left side on random types, attributes and data, the rule applied by the
 * engine with no second look at types, then every class of the e-graph judged by numbers (judge.ts). A
 * rule passes when it applied often enough and no trial found a contradiction or a disagreement. A
 * false rule, or one that lacks a guard, fails with the trial's seed.
 */
import { EGraph, saturate } from "../../egraph/index.ts";
import type { DType } from "../../semantics/dtype.ts";
import { fromRef, type RefTensor } from "../../semantics/tensor.ts";
import { Rng } from "../../support/rng.ts";
import { compileRows } from "../compile-rows.ts";
import { type Facts, factsAnalysis, scopeOf } from "../facts.ts";
import type { RuleRow } from "../rule-row.ts";
import { addGraph } from "../terms.ts";
import { type Instance, type InstanceOptions, instantiate } from "./instantiate.ts";
import { closeJudge, exactJudge, type Judge, judgeGraph, moduloJudge } from "./judge.ts";

export interface ProofOptions {
  readonly seed: number;
  /** Trials in which the rule must apply. */
  readonly wanted: number;
  /** Trials at most. */
  readonly most: number;
}

export const defaultProof: ProofOptions = { seed: 1, wanted: 24, most: 1500 };

export type RuleVerdict =
  | { readonly kind: "holds"; readonly applied: number; readonly modulo: number }
  | { readonly kind: "fails"; readonly reason: string; readonly seed: number };

export function proveRule(row: RuleRow, options: ProofOptions = defaultProof): RuleVerdict {
  let applied = 0;
  let modulo = 0;
  for (let i = 0; i < options.most && applied < options.wanted; i++) {
    const seed = options.seed * 100_003 + i;
    const trial = runTrial(row, seed);
    if (trial.kind === "failed") return { kind: "fails", reason: trial.reason, seed };
    if (trial.kind === "applied") {
      applied++;
      if (trial.modulo) modulo++;
    }
  }
  if (applied < options.wanted) {
    const reason = `it applied in ${applied} of ${options.most} trials`;
    return { kind: "fails", reason, seed: options.seed };
  }
  return { kind: "holds", applied, modulo };
}

type Trial =
  | { readonly kind: "none" }
  | { readonly kind: "applied"; readonly modulo: boolean }
  | { readonly kind: "failed"; readonly reason: string };

const none: Trial = { kind: "none" };

/** Sums whose order a rule may change are exact only on few bits. */
const summing = /contract|convolution|reduce|softmax|Norm|attention/;

function optionsFor(row: RuleRow, rng: Rng): InstanceOptions {
  const text = `${row.left} ${typeof row.right === "string" ? row.right : row.name}`;
  const sums = summing.test(text);
  const exact = row.numerics === "exact";
  const draw = rng.uniform();
  const dtype: DType = draw < 0.15 ? "i32" : exact && draw < 0.8 ? "f32" : "f64";
  return { dtype, dyadic: sums || draw > 0.9, specials: exact && !sums && rng.uniform() < 0.5 };
}

export function runTrial(row: RuleRow, seed: number): Trial {
  const rng = new Rng(seed);
  const options = optionsFor(row, rng);
  const instance = instantiate(row, rng, options);
  if (!instance) return none;
  const { graph } = instance;
  const scope = scopeOf(graph);
  const rules = compileRows([row], scope, { trusting: true });
  if (!rules.ok) return { kind: "failed", reason: rules.diagnostics[0]!.message };
  const egraph = new EGraph<Facts>({ analysis: factsAnalysis(scope) });
  addGraph(egraph, graph, (id) => {
    const value = instance.values.get(graph.values[id]!.name);
    return value && (() => fromRef(value));
  });
  const report = saturate(egraph, [{ name: "once", rules: rules.value, iterations: 1 }], {
    matchers: "interpreted",
  });
  if (egraph.inconsistency) return { kind: "failed", reason: egraph.inconsistency.message };
  if (report.rules[0]!.changes === 0) return none;
  const faulty = egraph.classes().find((root) => egraph.data(root).fault !== undefined);
  if (faulty !== undefined) {
    return { kind: "failed", reason: `a term does not type: ${egraph.data(faulty).fault}` };
  }
  return judgeTrial(row, egraph, instance);
}

function judgeTrial(row: RuleRow, egraph: EGraph<Facts>, { graph, values }: Instance): Trial {
  const verdict = judgeGraph(egraph, graph, values, judgeOf(row));
  if (verdict === "open") return none;
  if (verdict !== undefined) return { kind: "failed", reason: verdict };
  if (row.numerics === "approximates") return { kind: "applied", modulo: false };
  const rounded = roundToDyadic(values);
  const again = judgeGraph(egraph, graph, rounded, moduloJudge(operatorsNamed(row)));
  if (again !== undefined && again !== "open") {
    return { kind: "failed", reason: `modulo a prime: ${again}` };
  }
  return { kind: "applied", modulo: again === undefined };
}

/** Words of the rule's texts: an operator among them has a meaning for the rule. */
function operatorsNamed({ left, right, sample }: RuleRow): ReadonlySet<string> {
  const text = `${left} ${typeof right === "string" ? right : ""} ${sample ?? ""}`;
  return new Set(text.match(/\w+/g));
}

/** Values of the same types whose residues are small work. */
function roundToDyadic(values: ReadonlyMap<string, RefTensor>): ReadonlyMap<string, RefTensor> {
  const round = (x: number) => Math.round(x * 64) / 64;
  return new Map(
    [...values].map(([name, tensor]) => [
      name,
      tensor.data instanceof Float64Array ? { ...tensor, data: tensor.data.map(round) } : tensor,
    ]),
  );
}

/** Rounding of a few dozen operations in f64. */
const f64Tolerance = 1e-9;

function judgeOf(row: RuleRow): Judge {
  if (row.numerics === "exact") return exactJudge;
  return row.errorBound === undefined ? closeJudge(f64Tolerance) : closeJudge(row.errorBound, 1);
}
