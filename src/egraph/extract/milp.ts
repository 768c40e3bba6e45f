/**
 * Extraction of one block as an integer program, for a solver that the caller injects (HiGHS, for one):
 * a 0-1 variable a node, every root chosen, a chosen node has each of its child classes chosen. Circles
 * are cut off when a solution has them. Programs are in CPLEX's LP format, which solvers read.
 */
import type { Choice, ExtractionProblem } from "./problem.ts";
import { type Improved, tolerance, trim } from "./ruin-recreate.ts";

/** Solves a program; `relaxed` asks for the linear relaxation. */
export type SolveMilp = (program: string, relaxed: boolean) => MilpAnswer;

export interface MilpAnswer {
  readonly status: "optimal" | "infeasible" | "unfinished";
  readonly objective: number;
  /** Values by the name of the variable; absent ones are 0. */
  readonly values: ReadonlyMap<string, number>;
}

export interface MilpResult {
  readonly best: Improved;
  readonly bound: number;
}

/** Solutions with circles that are cut off before giving up. */
const mostCuts = 60;

export function solveByMilp(
  problem: ExtractionProblem,
  solve: SolveMilp,
  incumbent: Improved,
): MilpResult {
  const cuts: string[] = [];
  const relaxed = solve(writeProgram(problem, cuts, true), true);
  let bound = relaxed.status === "optimal" ? relaxed.objective : 0;
  if (bound >= incumbent.cost - tolerance(incumbent.cost)) return { best: incumbent, bound };
  for (let round = 0; round < mostCuts; round++) {
    const answer = solve(writeProgram(problem, cuts, false), false);
    if (answer.status !== "optimal") break;
    bound = Math.max(bound, answer.objective);
    const choice = readChoice(problem, answer.values);
    const circles = findCircles(problem, choice);
    if (circles.length === 0) {
      const found = trim(problem, choice);
      return { best: found.cost < incumbent.cost ? found : incumbent, bound };
    }
    for (const circle of circles) {
      const sum = circle.map((node) => `x${node}`).join(" + ");
      cuts.push(`${sum} <= ${circle.length - 1}`);
    }
  }
  return { best: incumbent, bound: Math.min(bound, incumbent.cost) };
}

/** The program's text; long sums are broken into lines, which the format wants. */
export function writeProgram(
  problem: ExtractionProblem,
  cuts: readonly string[],
  relaxed: boolean,
): string {
  const { classStart, childStart, children, cost, nodeClass, roots } = problem;
  const members = (c: number): string =>
    sum(Array.from({ length: classStart[c + 1]! - classStart[c]! }, (_, i) => classStart[c]! + i));
  const rows = roots.map((root) => `${members(root)} >= 1`);
  // Nodes of one class exclude each other, so those that need a class may share the row.
  const needing = new Map<string, number[]>();
  for (let n = 0; n < cost.length; n++) {
    for (let k = childStart[n]!; k < childStart[n + 1]!; k++) {
      const key = `${nodeClass[n]} ${children[k]}`;
      const nodes = needing.get(key);
      if (nodes) nodes.push(n);
      else needing.set(key, [n]);
    }
  }
  for (const [key, nodes] of needing) {
    const child = Number(key.split(" ")[1]);
    rows.push(`${members(child)} - ${nodes.map((n) => `x${n}`).join(" - ")} >= 0`);
  }
  const names = Array.from(cost, (_, n) => `x${n}`);
  const goal = Array.from(cost, (price, n) => (price === 0 ? "" : `+ ${price} x${n}`));
  const body = [...rows, ...cuts].map((row, i) => ` r${i}: ${row}`);
  const bounds = names.map((name) => ` 0 <= ${name} <= 1`);
  const kind = relaxed ? ["Bounds", ...bounds] : ["Binary", ...names.map((name) => ` ${name}`)];
  const goalText = goal.filter((part) => part !== "").join(" ");
  const text = ["Minimize", ` goal: ${goalText === "" ? "0 x0" : goalText}`, "Subject To", ...body];
  return [...text, ...kind, "End", ""].join("\n").replace(/(.{200,240}) ([+-])/g, "$1\n $2");
}

function sum(nodes: readonly number[]): string {
  return nodes.map((n) => `x${n}`).join(" + ");
}

function readChoice(problem: ExtractionProblem, values: ReadonlyMap<string, number>): Choice {
  const choice = new Int32Array(problem.classCount).fill(-1);
  for (const [name, value] of values) {
    const node = Number(name.slice(1));
    if (value > 0.5) choice[problem.nodeClass[node]!] = node;
  }
  return choice;
}

/** Circles among the chosen nodes that the roots reach, as lists of nodes. */
function findCircles(problem: ExtractionProblem, choice: Choice): number[][] {
  const { children, childStart, classCount, roots } = problem;
  const circles: number[][] = [];
  const state = new Uint8Array(classCount);
  const path: number[] = [];
  const next = new Int32Array(classCount);
  const enter = (c: number): void => {
    state[c] = onPath;
    next[c] = childStart[choice[c]!]!;
    path.push(c);
  };
  for (const root of roots) {
    if (state[root] === 0) enter(root);
    while (path.length > 0) {
      const c = path[path.length - 1]!;
      if (next[c]! === childStart[choice[c]! + 1]!) {
        state[c] = done;
        path.pop();
        continue;
      }
      const child = children[next[c]!]!;
      next[c] = next[c]! + 1;
      if (state[child] === 0) enter(child);
      else if (state[child] === onPath) {
        circles.push(path.slice(path.indexOf(child)).map((member) => choice[member]!));
      }
    }
  }
  return circles;
}

const onPath = 1;
const done = 2;
