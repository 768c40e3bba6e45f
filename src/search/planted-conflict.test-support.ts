/** Networks with one contradiction planted in them. */
import { Rng } from "../support/rng.ts";
import { generate } from "./generators.ts";
import type { Problem } from "./problem.ts";

/** A satisfiable network with one contradiction planted somewhere in it. */
export function plant(seed: number): { readonly problem: Problem; readonly kind: string } {
  const rng = new Rng(seed);
  const base = generate({ shape: "residual", layers: 30, states: 12, seed });
  const kind = rng.pick(["budget", "layouts", "exclusion"]);
  const at = rng.integer(1, 27);
  if (kind === "budget") {
    const uses = [at, at + 1, at + 2].map((variable) => ({
      variable,
      amounts: Float64Array.from({ length: 12 }, () => rng.integer(10, 30)),
    }));
    const least = uses.reduce((sum, u) => sum + Math.min(...u.amounts), 0);
    return {
      kind,
      problem: { ...base, budgets: [{ name: "scratch", capacity: least - 1, uses }] },
    };
  }
  const half = Int32Array.from({ length: 12 }, (_, s) => s % 2);
  const pair = (from: number, equal: boolean) => ({
    from,
    to: from + 1,
    fromClass: half,
    toClass: half,
    columns: 2,
    prices: Float64Array.from(equal ? [0, Infinity, Infinity, 0] : [Infinity, 0, 0, Infinity]),
    constraint: equal ? "layouts agree" : "layouts differ",
  });
  if (kind === "layouts") {
    const transitions = [...base.transitions, pair(at, true), pair(at, false)];
    return { kind, problem: { ...base, transitions } };
  }
  const variables = base.variables.slice();
  const parity = (p: number): number[] => [...half.keys()].filter((s) => half[s] === p);
  variables[at] = {
    ...variables[at]!,
    exclusions: [{ constraint: "even only", states: parity(1) }],
  };
  variables[at + 1] = {
    ...variables[at + 1]!,
    exclusions: [{ constraint: "odd only", states: parity(0) }],
  };
  return {
    kind,
    problem: { ...base, variables, transitions: [...base.transitions, pair(at, true)] },
  };
}
