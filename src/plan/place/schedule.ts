/** Times of a placement: tasks in a given order, each as early as its device and its inputs allow. */
import { type PlaceProblem, transferNs } from "./problem.ts";

/** A device for each task, and an order in which inputs come first. */
export interface Placement {
  readonly deviceOf: readonly number[];
  readonly order: readonly number[];
}

export interface TimedPlacement extends Placement {
  readonly startNs: readonly number[];
  readonly finishNs: readonly number[];
  readonly makespanNs: number;
}

export function timePlacement(problem: PlaceProblem, placement: Placement): TimedPlacement {
  const { tasks, devices } = problem;
  const startNs = tasks.map(() => 0);
  const finishNs = tasks.map(() => 0);
  const free = devices.map(() => 0);
  let makespanNs = 0;
  for (const t of placement.order) {
    const task = tasks[t]!;
    const device = placement.deviceOf[t]!;
    let start = free[device]!;
    for (const { from, bytes } of task.inputs) {
      const way = transferNs(problem, placement.deviceOf[from]!, device, bytes);
      start = Math.max(start, finishNs[from]! + way);
    }
    startNs[t] = start;
    const finish = start + task.timeNs[device]!;
    finishNs[t] = finish;
    free[device] = finish;
    makespanNs = Math.max(makespanNs, finish);
  }
  return { ...placement, startNs, finishNs, makespanNs };
}

/** Memory taken on each device. */
export function memoryUse({ tasks, devices }: PlaceProblem, deviceOf: readonly number[]): number[] {
  const used = devices.map(() => 0);
  tasks.forEach((task, i) => {
    used[deviceOf[i]!]! += task.memoryBytes;
  });
  return used;
}

export function fitsMemory(problem: PlaceProblem, deviceOf: readonly number[]): boolean {
  return memoryUse(problem, deviceOf).every((m, d) => m <= problem.devices[d]!.memoryBytes);
}
