/**
 * The problem as a mixed-integer linear program: a binary a state, a continuous variable a pair of classes, the
 * local marginal polytope between them, budgets as rows. The text is CPLEX LP format; whoever calls brings the
 * solver (HiGHS), so that nothing is loaded here.
 */
import { makeConsistent } from "./consistency.ts";
import { type Edge, type Network, networkOf, toProblemStates } from "./network.ts";
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import type { Problem } from "./problem.ts";

export interface MilpAnswer {
  readonly status: "optimal" | "infeasible" | "stopped";
  /** By variable name; absent means 0. */
  readonly values: ReadonlyMap<string, number>;
}

/** Solves a text in CPLEX LP format within a number of seconds. */
export type MilpSolver = (text: string, seconds: number | undefined) => MilpAnswer;

export interface MilpOptions extends SolveOptions {
  readonly milp?: MilpSolver;
  readonly seconds?: number;
}

/** Pairs of one problem that the program may name. */
const mostPairs = 400_000;

export function milp(problem: Problem, options: MilpOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const network = makeConsistent(networkOf(problem));
  if (network === undefined) {
    recorder.raise(Infinity);
    return recorder.finish("milp", "the hard constraints leave a variable without a state");
  }
  if (options.milp === undefined) return recorder.finish("milp", "no linear solver was given");
  const pairs = network.edges.reduce((sum, e) => sum + e.table.length, 0);
  if (pairs > mostPairs)
    return recorder.finish("milp", `${pairs} pairs are too many for a program`);
  const answer = options.milp(printLp(network), options.seconds);
  recorder.work += pairs;
  if (answer.status === "infeasible") {
    recorder.raise(Infinity);
    return recorder.finish("milp", "the linear solver proved that there is no solution");
  }
  const states = Int32Array.from(network.unary, (prices, i) => {
    const values = Array.from(prices, (_, s) => answer.values.get(`x${i}_${s}`) ?? 0);
    return values.indexOf(Math.max(...values));
  });
  recorder.offer(toProblemStates(network, states));
  if (answer.status === "optimal") recorder.raise(recorder.objective);
  const proven = answer.status === "optimal";
  return recorder.finish(
    "milp",
    proven ? "the linear solver's proof" : "the linear solver stopped",
  );
}

/** The program; prices are kept whole. */
export function printLp(network: Network): string {
  const objective: string[] = [];
  const rows: string[] = [];
  const binaries: string[] = [];
  network.unary.forEach((prices, i) => {
    const names = Array.from(prices, (_, s) => `x${i}_${s}`);
    binaries.push(...names);
    prices.forEach((p, s) => {
      objective.push(term(p, names[s]!));
    });
    rows.push(`${names.join(" + ")} = 1`);
  });
  network.edges.forEach((edge, e) => {
    addPairs(edge, e, objective, rows);
  });
  network.budgets.forEach((b) => {
    const terms = Array.from(b.variables, (i, at) =>
      Array.from(b.amounts[at]!, (a, s) => (a === 0 ? "" : term(a, `x${i}_${s}`))).join(" "),
    );
    if (terms.some((t) => t.trim() !== "")) rows.push(`${terms.join(" ")} <= ${b.capacity}`);
  });
  const labelled = rows.map((row, k) => ` r${k}: ${row}`);
  return [
    "Minimize",
    ` obj: ${objective.join("\n ")}`,
    "Subject To",
    ...labelled,
    "Binary",
    ...binaries.map((b) => ` ${b}`),
    "End",
    "",
  ].join("\n");
}

function term(factor: number, name: string): string {
  return `${factor < 0 ? "-" : "+"} ${Math.abs(factor)} ${name}`;
}

/** Each class's share of pairs is the share of its states, at both ends. */
function addPairs(edge: Edge, e: number, objective: string[], rows: string[]): void {
  const name = (r: number, c: number): string => `y${e}_${r}_${c}`;
  const allowed = (r: number, c: number): boolean => edge.table[r * edge.columns + c] !== Infinity;
  const sum = (names: readonly string[]): string =>
    names.length > 0 ? names.join(" + ") : "0 x0_0";
  const states = (classes: Int32Array, k: number, i: number): string =>
    Array.from(classes, (c, s) => (c === k ? ` - x${i}_${s}` : "")).join("");
  const count = (n: number): readonly number[] => Array.from({ length: n }, (_, k) => k);
  for (const r of count(edge.rows)) {
    const pairs = count(edge.columns).filter((c) => allowed(r, c));
    for (const c of pairs) objective.push(term(edge.table[r * edge.columns + c]!, name(r, c)));
    rows.push(`${sum(pairs.map((c) => name(r, c)))}${states(edge.classA, r, edge.a)} = 0`);
  }
  for (const c of count(edge.columns)) {
    const pairs = count(edge.rows).filter((r) => allowed(r, c));
    rows.push(`${sum(pairs.map((r) => name(r, c)))}${states(edge.classB, c, edge.b)} = 0`);
  }
}
