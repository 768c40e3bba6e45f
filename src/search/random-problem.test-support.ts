/** Small random problems for tests: hard pairs, classes, exclusions, budgets, negative prices. */
import type { Rng } from "../support/rng.ts";
import type { Budget, Problem, Transition, Variable } from "./problem.ts";

export interface RandomOptions {
  readonly variables: number;
  readonly states: number;
  readonly edges: number;
  /** Chance that a pair is forbidden. */
  readonly hard: number;
  readonly budgets: number;
  readonly chain?: boolean;
}

export function randomProblem(rng: Rng, options: RandomOptions): Problem {
  const variables = Array.from({ length: options.variables }, (_, i): Variable => {
    const size = rng.integer(1, options.states);
    const prices = Float64Array.from({ length: size }, () => rng.integer(-20, 60));
    const exclude = size > 2 && rng.uniform() < 0.2;
    const exclusions = exclude
      ? [{ constraint: `rule${i}`, states: [rng.integer(0, size - 1)] }]
      : [];
    return { name: `v${i}`, prices, exclusions };
  });
  const sizeOf = (i: number): number => variables[i]!.prices.length;
  const transitions = Array.from(
    { length: options.chain ? options.variables - 1 : options.edges },
    (_, e) => randomTransition(rng, options, pair(rng, options, e), sizeOf),
  );
  const budgets = Array.from({ length: options.budgets }, (_, k) =>
    randomBudget(rng, k, variables),
  );
  return { name: "random", variables, transitions, budgets, offset: rng.integer(-5, 5) };
}

function pair(rng: Rng, { variables, chain }: RandomOptions, e: number): [number, number] {
  if (chain) return rng.uniform() < 0.5 ? [e, e + 1] : [e + 1, e];
  const from = rng.integer(0, variables - 1);
  return [from, (from + rng.integer(1, variables - 1)) % variables];
}

function randomTransition(
  rng: Rng,
  { hard }: RandomOptions,
  [from, to]: readonly [number, number],
  sizeOf: (i: number) => number,
): Transition {
  const classed = rng.uniform() < 0.5;
  const rows = classed ? rng.integer(1, sizeOf(from)) : sizeOf(from);
  const columns = classed ? rng.integer(1, sizeOf(to)) : sizeOf(to);
  const prices = Float64Array.from({ length: rows * columns }, () =>
    rng.uniform() < hard ? Infinity : rng.integer(-10, 40),
  );
  const ends = { from, to, columns, prices, constraint: "pair" };
  if (!classed) return ends;
  const classes = (size: number, count: number): Int32Array =>
    Int32Array.from({ length: size }, () => rng.integer(0, count - 1));
  return { ...ends, fromClass: classes(sizeOf(from), rows), toClass: classes(sizeOf(to), columns) };
}

function randomBudget(rng: Rng, k: number, variables: readonly Variable[]): Budget {
  const uses = variables.flatMap((v, variable) =>
    rng.uniform() < 0.7
      ? [{ variable, amounts: Float64Array.from(v.prices, () => rng.integer(0, 20)) }]
      : [],
  );
  const least = uses.reduce((sum, u) => sum + Math.min(...u.amounts), 0);
  const most = uses.reduce((sum, u) => sum + Math.max(...u.amounts), 0);
  return { name: `budget${k}`, capacity: rng.integer(Math.floor(least * 0.9), most), uses };
}
