/**
 * Rules of the rewriter: every rule proved on random tensors with odd shapes and broadcasts, in floating
 * point and modulo a prime, and every planted false or unguarded rule refused by a counterexample; target
 * `z3` asks the solver about the rules that are formulas over real numbers.
 */
import { families } from "../../src/rewrite/families/index.ts";
import { falseRules } from "../../src/rewrite/prove/false-rules.test-support.ts";
import { defaultProof, proveRule } from "../../src/rewrite/prove/prove-rule.ts";
import type { RuleRow } from "../../src/rewrite/rule-row.ts";
import { type Campaign, type Finding, passed, type Trial } from "../campaign.ts";
import { loadRealSolver } from "../rewrite/real-formulas.ts";

const rows = Object.values(families).flat();

export const rules: Campaign = {
  name: "rules",
  summary: "rewrite rules proved on random tensors, planted false ones refused",
  targets: ["numbers", "z3"],
  defaultCount: rows.length + falseRules.length,
  names: () => [...rows, ...falseRules].map((row) => row.name),
  open: async (target) => {
    if (target === "z3") return askSolver(await loadRealSolver());
    return (seed) => {
      const all = rows.length + falseRules.length;
      const number = seed % all;
      const round = Math.floor(seed / all) + 2;
      const row = rows[number];
      return row ? holds(row, round) : isRefused(falseRules[number - rows.length]!, round);
    };
  },
};

function holds(row: RuleRow, seed: number): Finding {
  const verdict = proveRule(row, { ...defaultProof, seed, wanted: 40, most: 6000 });
  if (verdict.kind === "holds") return passed;
  return { kind: "failed", reason: `rule "${row.name}", trial ${verdict.seed}: ${verdict.reason}` };
}

function isRefused(row: RuleRow, seed: number): Finding {
  const verdict = proveRule(row, { ...defaultProof, seed, wanted: 200, most: 6000 });
  const found = verdict.kind === "fails" && !verdict.reason.startsWith("it applied");
  return found
    ? passed
    : { kind: "failed", reason: `the false rule "${row.name}" was not refused` };
}

function askSolver(solve: (row: RuleRow) => Promise<"valid" | "invalid" | undefined>): Trial {
  const all = [
    ...rows.map((row) => ({ row, wanted: "valid" })),
    ...falseRules.map((row) => ({ row, wanted: "invalid" })),
  ];
  return async (seed) => {
    const { row, wanted } = all[seed % all.length]!;
    const answer = await solve(row);
    if (answer === undefined) {
      return { kind: "skipped", reason: "the rule is no formula over real numbers" };
    }
    // A false rule may be true of single numbers: what it breaks are shapes or rounding.
    if (wanted === "invalid" || answer === wanted) return passed;
    return { kind: "failed", reason: `rule "${row.name}": z3 has a counterexample` };
  };
}
