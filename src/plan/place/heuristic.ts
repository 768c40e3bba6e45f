/**
 * Good placements of large graphs: list scheduling by the longest remaining path (Topcuoglu, Hariri and
 * Wu 2002, HEFT) under the memory limits, every single device that holds all, then moves of single
 * tasks and of runs of tasks for as long as they help and the budget lasts.
 */
import { shortestTimes, tails } from "./bounds.ts";
import { type PlaceProblem, transferNs } from "./problem.ts";
import { fitsMemory, memoryUse, type TimedPlacement, timePlacement } from "./schedule.ts";

/** Undefined: no placement was found that fits. */
export function placeByHeuristic(
  problem: PlaceProblem,
  budget: number,
): TimedPlacement | undefined {
  const times = shortestTimes(problem);
  const tail = tails(problem, times);
  const order = priorityOrder(problem, tail);
  const starts = [
    ...problem.devices.map((_, d) => problem.tasks.map(() => d)),
    earliestFinish(problem, order),
    bestFit(problem),
    contiguous(problem),
  ].filter((deviceOf) => deviceOf !== undefined);
  const usable = starts
    .filter((deviceOf) => canRun(problem, deviceOf) && fitsMemory(problem, deviceOf))
    .map((deviceOf) => timePlacement(problem, { deviceOf, order }))
    .filter((p) => Number.isFinite(p.makespanNs))
    .sort((a, b) => a.makespanNs - b.makespanNs);
  return usable[0] && improve(problem, usable[0], budget);
}

function canRun({ tasks }: PlaceProblem, deviceOf: readonly number[]): boolean {
  return tasks.every((task, i) => task.timeNs[deviceOf[i]!] !== Infinity);
}

/** Inputs first; among the ready the one with most behind it, then the earlier one. */
function priorityOrder({ tasks }: PlaceProblem, tail: readonly number[]): readonly number[] {
  const waiting = tasks.map((t) => t.inputs.length);
  const users: number[][] = tasks.map(() => []);
  tasks.forEach((task, t) => {
    for (const { from } of task.inputs) users[from]!.push(t);
  });
  const heap = new ReadyHeap(tail);
  waiting.forEach((n, t) => {
    if (n === 0) heap.push(t);
  });
  const order: number[] = [];
  for (let t = heap.pop(); t !== undefined; t = heap.pop()) {
    order.push(t);
    for (const user of users[t]!) if (--waiting[user]! === 0) heap.push(user);
  }
  return order;
}

/** A binary heap of tasks, the longest tail on top, equals by number. */
class ReadyHeap {
  readonly #tail: readonly number[];
  readonly #items: number[] = [];

  constructor(tail: readonly number[]) {
    this.#tail = tail;
  }

  #before(a: number, b: number): boolean {
    const difference = this.#tail[a]! - this.#tail[b]!;
    return difference !== 0 ? difference > 0 : a < b;
  }

  push(task: number): void {
    const items = this.#items;
    let at = items.push(task) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!this.#before(items[at]!, items[up]!)) break;
      [items[at], items[up]] = [items[up]!, items[at]!];
      at = up;
    }
  }

  pop(): number | undefined {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (top === undefined || last === undefined || items.length === 0) return top;
    items[0] = last;
    for (let at = 0; ; ) {
      let best = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < items.length && this.#before(items[child]!, items[best]!)) best = child;
      }
      if (best === at) return top;
      [items[at], items[best]] = [items[best]!, items[at]!];
      at = best;
    }
  }
}

/** Each task on the device where it ends first, among those with room. */
function earliestFinish(problem: PlaceProblem, order: readonly number[]): number[] | undefined {
  const { tasks, devices } = problem;
  const left = devices.map((d) => d.memoryBytes);
  const free = devices.map(() => 0);
  const finish = tasks.map(() => 0);
  const deviceOf = tasks.map(() => -1);
  for (const t of order) {
    const task = tasks[t]!;
    let best = Infinity;
    let where = -1;
    for (let d = 0; d < devices.length; d++) {
      if (task.memoryBytes > left[d]!) continue;
      let start = free[d]!;
      for (const { from, bytes } of task.inputs) {
        const way = transferNs(problem, deviceOf[from]!, d, bytes);
        start = Math.max(start, finish[from]! + way);
      }
      if (start + task.timeNs[d]! < best) [best, where] = [start + task.timeNs[d]!, d];
    }
    if (where < 0) return undefined;
    deviceOf[t] = where;
    finish[t] = best;
    free[where] = best;
    left[where]! -= task.memoryBytes;
  }
  return deviceOf;
}

/** The largest tasks first, each where it leaves least: finds room where little is left over. */
function bestFit({ tasks, devices }: PlaceProblem): number[] | undefined {
  const left = devices.map((d) => d.memoryBytes);
  const deviceOf = tasks.map(() => -1);
  const bySize = tasks
    .map((_, t) => t)
    .sort((a, b) => tasks[b]!.memoryBytes - tasks[a]!.memoryBytes || a - b);
  for (const t of bySize) {
    const task = tasks[t]!;
    let where = -1;
    for (let d = 0; d < devices.length; d++) {
      if (task.memoryBytes > left[d]! || task.timeNs[d] === Infinity) continue;
      if (where < 0 || left[d]! < left[where]!) where = d;
    }
    if (where < 0) return undefined;
    deviceOf[t] = where;
    left[where]! -= task.memoryBytes;
  }
  return deviceOf;
}

/** Tasks in their given order, filling the fastest devices first: few transfers along a chain. */
function contiguous({ tasks, devices }: PlaceProblem): number[] | undefined {
  const work = devices.map((_, d) => tasks.reduce((sum, t) => sum + t.timeNs[d]!, 0));
  const ranked = devices.map((_, d) => d).sort((a, b) => work[a]! - work[b]! || a - b);
  const deviceOf: number[] = [];
  let at = 0;
  let left = devices[ranked[0]!]!.memoryBytes;
  for (const task of tasks) {
    while (task.memoryBytes > left) {
      at++;
      if (at >= ranked.length) return undefined;
      left = devices[ranked[at]!]!.memoryBytes;
    }
    deviceOf.push(ranked[at]!);
    left -= task.memoryBytes;
  }
  return deviceOf;
}

/** Moves of runs of neighbours in the order, long ones first; the budget counts timings. */
function improve(problem: PlaceProblem, start: TimedPlacement, budget: number): TimedPlacement {
  let best = start;
  const { tasks, devices } = problem;
  const longest = 2 ** Math.floor(Math.log2(tasks.length));
  for (let better = true; better && budget > 0; ) {
    better = false;
    for (let run = longest; run >= 1 && budget > 0; run = Math.floor(run / 2)) {
      for (let at = 0; at < tasks.length && budget > 0; at += run) {
        for (let d = 0; d < devices.length && budget > 0; d++) {
          budget--;
          const moved = moveRun(problem, best, { at, run, to: d });
          if (!moved || moved.makespanNs >= best.makespanNs) continue;
          best = moved;
          better = true;
        }
      }
    }
  }
  return best;
}

function moveRun(
  problem: PlaceProblem,
  { deviceOf, order }: TimedPlacement,
  { at, run, to }: { readonly at: number; readonly run: number; readonly to: number },
): TimedPlacement | undefined {
  const moved = [...deviceOf];
  let changed = false;
  for (const t of order.slice(at, at + run)) {
    if (moved[t] === to) continue;
    if (problem.tasks[t]!.timeNs[to] === Infinity) return undefined;
    moved[t] = to;
    changed = true;
  }
  if (!changed || memoryUse(problem, moved)[to]! > problem.devices[to]!.memoryBytes)
    return undefined;
  return timePlacement(problem, { deviceOf: moved, order });
}
