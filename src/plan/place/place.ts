/**
 * Placement of a graph on devices with a certificate: the makespan, a bound below every makespan, and
 * whether the two meet. Small graphs are searched to the end; larger ones get a heuristic answer. It is
 * never worse than the best single device that holds everything.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { lowerBoundNs } from "./bounds.ts";
import { searchExactly } from "./exact.ts";
import { placeByHeuristic } from "./heuristic.ts";
import { checkProblem, type PlaceProblem } from "./problem.ts";
import { fitsMemory, memoryUse, type TimedPlacement, timePlacement } from "./schedule.ts";

export interface PlacePlan extends TimedPlacement {
  readonly memoryBytes: readonly number[];
  readonly boundNs: number;
  /** makespan / bound - 1; 0 when it is proved to be the best. */
  readonly gap: number;
  readonly optimal: boolean;
  /** Makespan on each device alone; Infinity where it does not fit or a task cannot run. */
  readonly aloneNs: readonly number[];
}

export interface PlaceBudget {
  /** Nodes of the exact search. */
  readonly nodes: number;
  /** Placements that the heuristic may time. */
  readonly timings: number;
  /** Graphs above this many tasks are not searched exactly. */
  readonly exactTasks: number;
}

export const defaultBudget: PlaceBudget = { nodes: 400_000, timings: 20_000, exactTasks: 14 };

export function place(problem: PlaceProblem, budget = defaultBudget): Result<PlacePlan> {
  const checked = checkProblem(problem);
  if (!checked.ok) return checked;
  const lacking = shortfallBytes(problem);
  if (lacking > 0) return fail(doesNotFit(problem, lacking));
  const found = placeByHeuristic(problem, budget.timings);
  const exact =
    problem.tasks.length <= budget.exactTasks
      ? searchExactly(problem, found?.makespanNs ?? Infinity, budget.nodes)
      : { proved: false };
  const best = exact.placement ? timePlacement(problem, exact.placement) : found;
  if (!best) return fail(doesNotFit(problem, unplacedBytes(problem), exact.proved));
  const bound = exact.proved ? best.makespanNs : Math.min(best.makespanNs, lowerBoundNs(problem));
  return ok({
    ...best,
    memoryBytes: memoryUse(problem, best.deviceOf),
    boundNs: bound,
    gap: bound > 0 ? best.makespanNs / bound - 1 : 0,
    optimal: exact.proved || best.makespanNs <= bound,
    aloneNs: aloneNs(problem, best.order),
  });
}

function aloneNs(problem: PlaceProblem, order: readonly number[]): readonly number[] {
  return problem.devices.map((_, d) => {
    const deviceOf = problem.tasks.map(() => d);
    if (!fitsMemory(problem, deviceOf)) return Infinity;
    return timePlacement(problem, { deviceOf, order }).makespanNs;
  });
}

/** Bytes missing whatever the placement: in all, or for the largest task. */
function shortfallBytes({ tasks, devices }: PlaceProblem): number {
  const needed = tasks.reduce((sum, t) => sum + t.memoryBytes, 0);
  const there = devices.reduce((sum, d) => sum + d.memoryBytes, 0);
  const single = tasks.map((task) => {
    const room = devices.map((d, i) => (task.timeNs[i] === Infinity ? 0 : d.memoryBytes));
    return task.memoryBytes - Math.max(...room);
  });
  return Math.max(needed - there, ...single);
}

/** What is left over when the largest tasks are put first where they fit. */
function unplacedBytes({ tasks, devices }: PlaceProblem): number {
  const left = devices.map((d) => d.memoryBytes);
  let over = 0;
  for (const task of [...tasks].sort((a, b) => b.memoryBytes - a.memoryBytes)) {
    const d = left.findIndex((room, i) => room >= task.memoryBytes && task.timeNs[i] !== Infinity);
    if (d < 0) over += task.memoryBytes;
    else left[d]! -= task.memoryBytes;
  }
  return over;
}

function doesNotFit({ tasks, devices }: PlaceProblem, bytes: number, proved = true) {
  const needed = tasks.reduce((sum, t) => sum + t.memoryBytes, 0);
  const there = devices.reduce((sum, d) => sum + d.memoryBytes, 0);
  const how = proved ? "does not fit" : "was not found to fit";
  return diagnostic("PLN006", `it ${how}: ${bytes} bytes have no place`, {
    notes: [`needed ${needed} bytes in all, the devices have ${there}`],
    help: "add a device or memory, or make the tasks smaller (a smaller weight format)",
  });
}
