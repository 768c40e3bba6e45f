/**
 * What is done with the states that a sweep chose: budgets are repaired and single variables improved before
 * they are offered; and the prices of the budgets follow by how much the states pass the capacities
 * (subgradient steps of Polyak's length).
 */
import { type DualState, setMultiplier } from "./dual.ts";
import { descend, neighbourhoodOf, repairBudgets, solveWindow, Usage } from "./local.ts";
import { toProblemStates } from "./network.ts";
import type { Recorder } from "./outcome.ts";

/** Offers the states of a sweep; they are changed on the way. */
export function offerRounded(dual: DualState, states: Int32Array, recorder: Recorder): void {
  const { network } = dual;
  if (network.budgets.length > 0 && !repairBudgets(network, states)) return;
  descend(network, states);
  recorder.offer(toProblemStates(network, states));
}

/** Variables that are freed together, how far apart such windows begin, and what solving one may touch. */
const windowSize = 24;
const windowStep = 16;
const windowLimit = 100_000;

/** Re-solves windows of the best solution exactly, one after the other, each with the rest held. */
export function polish(dual: DualState, recorder: Recorder): void {
  const { network } = dual;
  const { solution } = recorder;
  if (solution === undefined || network.budgets.length > 0) return;
  const states = Int32Array.from(network.variables, (v, i) =>
    network.origin[i]!.indexOf(solution[v]!),
  );
  for (let start = 0; start < states.length && !recorder.stops(); start += windowStep) {
    const window = neighbourhoodOf(network, start, windowSize);
    recorder.work += solveWindow(network, states, window, windowLimit);
  }
  recorder.offer(toProblemStates(network, states));
}

export function moveMultipliers(dual: DualState, states: Int32Array, recorder: Recorder): void {
  const { budgets } = dual.network;
  if (budgets.length === 0) return;
  const { used } = new Usage(dual.network, states);
  const over = used.map((u, k) => u - budgets[k]!.capacity);
  // A budget that is kept and free of charge does not move.
  const moving = over.map((o, k) => (o > 0 || dual.multipliers[k]! > 0 ? o : 0));
  const norm = moving.reduce((sum, o) => sum + o * o, 0);
  if (norm === 0) return;
  const best = recorder.objective * dual.scale;
  const gap = best === Infinity ? Math.abs(dual.bound) * 0.05 + dual.scale : best - dual.bound;
  const length = (0.8 * Math.max(gap, 0)) / norm;
  moving.forEach((o, k) => {
    const next = Math.max(0, dual.multipliers[k]! + length * o);
    if (next !== dual.multipliers[k]) setMultiplier(dual, k, next);
  });
}
