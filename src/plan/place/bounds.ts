/**
 * Lower bounds on the makespan.
 *
 * The longest path of shortest times needs no device at all. For memory and load there is one Lagrangian
 * relaxation: with multipliers u_d >= 0 on the memory limits and weights l_d on the devices' times,
 *   makespan >= sum_t min_d (a_td + u_d memory_t) - sum_d u_d capacity_d
 * where a_td is the time of t on d for the tasks of one path (they run one after another, wherever they
 * are), or l_d x time with sum l_d = 1 for all tasks (the busiest device is at least the weighted mean).
 * It holds for every choice of multipliers (Held and Karp 1970; Fisher 1981); subgradient steps look
 * for good ones. Transfers are left out: the bound is valid, not always tight.
 */
import type { PlaceProblem } from "./problem.ts";

/** Shortest time of a task over the devices that it fits on. */
export function shortestTimes({ tasks, devices }: PlaceProblem): readonly number[] {
  return tasks.map((task) =>
    task.timeNs.reduce(
      (least, time, d) =>
        task.memoryBytes <= devices[d]!.memoryBytes ? Math.min(least, time) : least,
      Infinity,
    ),
  );
}

/** Time from the start of each task to the end of all that needs it, by `timesNs` alone. */
export function tails({ tasks }: PlaceProblem, timesNs: readonly number[]): number[] {
  const tail = [...timesNs];
  for (let t = tasks.length - 1; t >= 0; t--) {
    for (const { from } of tasks[t]!.inputs) {
      tail[from] = Math.max(tail[from]!, timesNs[from]! + tail[t]!);
    }
  }
  return tail;
}

/** The tasks of a longest path. */
function longestPath(problem: PlaceProblem, timesNs: readonly number[]): readonly number[] {
  const tail = tails(problem, timesNs);
  const next = problem.tasks.map(() => -1);
  problem.tasks.forEach((task, t) => {
    for (const { from } of task.inputs) {
      if (next[from]! < 0 || tail[t]! > tail[next[from]!]!) next[from] = t;
    }
  });
  let at = tail.reduce((best, _, t) => (tail[t]! > tail[best]! ? t : best), 0);
  const path: number[] = [];
  while (at >= 0) {
    path.push(at);
    at = next[at]!;
  }
  return path;
}

export function lowerBoundNs(problem: PlaceProblem): number {
  const times = shortestTimes(problem);
  const path = longestPath(problem, times);
  const longest = path.reduce((sum, t) => sum + times[t]!, 0);
  const onPath = new Set(path);
  const count = problem.devices.length;
  const weights = equalizingWeights(problem);
  return Math.max(
    longest,
    relax(problem, (t, d) => (onPath.has(t) ? problem.tasks[t]!.timeNs[d]! : 0)),
    relax(problem, (t, d) => problem.tasks[t]!.timeNs[d]! / count),
    relax(problem, (t, d) => problem.tasks[t]!.timeNs[d]! * weights[d]!),
  );
}

/** Weights by speed: a device twice as fast counts each of its nanoseconds twice. */
function equalizingWeights({ tasks, devices }: PlaceProblem): readonly number[] {
  const speeds = devices.map((_, d) => {
    let sum = 0;
    for (const task of tasks) {
      const least = Math.min(...task.timeNs);
      const time = task.timeNs[d]!;
      sum += time === Infinity ? 0 : time === 0 ? 1 : least / time;
    }
    return sum;
  });
  const total = speeds.reduce((a, b) => a + b, 0);
  return speeds.map((s) => s / total);
}

const steps = 120;

/** The best value found of the relaxation for costs a_td. */
function relax(problem: PlaceProblem, cost: (task: number, device: number) => number): number {
  const { tasks, devices } = problem;
  const multipliers = devices.map(() => 0);
  let best = 0;
  for (let step = 0; step < steps; step++) {
    const taken = devices.map((d) => -d.memoryBytes);
    let value = 0;
    tasks.forEach((task, t) => {
      let least = Infinity;
      let where = 0;
      for (let d = 0; d < devices.length; d++) {
        if (task.timeNs[d] === Infinity || task.memoryBytes > devices[d]!.memoryBytes) continue;
        const price = cost(t, d) + multipliers[d]! * task.memoryBytes;
        if (price < least) [least, where] = [price, d];
      }
      value += least;
      taken[where]! += task.memoryBytes;
    });
    devices.forEach((d, i) => {
      value -= multipliers[i]! * d.memoryBytes;
    });
    best = Math.max(best, value);
    const length = taken.reduce((sum, g, d) => sum + (multipliers[d]! > 0 || g > 0 ? g * g : 0), 0);
    if (length === 0 || !Number.isFinite(value)) break;
    const size = (Math.abs(best) * 0.5 + 1) / length / (1 + step / 8);
    taken.forEach((g, d) => {
      multipliers[d] = Math.max(0, multipliers[d]! + size * g);
    });
  }
  return best;
}
