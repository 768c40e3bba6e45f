/**
 * Judges of placements, written apart from the planner: an event simulator that plays a placement from
 * its device queues, and the best makespan by trying every placement and every order.
 */
import type { PlaceProblem } from "../src/plan/place/problem.ts";
import type { Rng } from "../src/support/rng.ts";

interface Arrival {
  readonly time: number;
  readonly task: number;
}

/** Plays queues of tasks per device; answers the time at which the last task ends. */
export function simulate(
  { tasks, transfers }: PlaceProblem,
  deviceOf: readonly number[],
  queues: readonly (readonly number[])[],
): number {
  const missing = tasks.map((t) => t.inputs.length);
  const head = queues.map(() => 0);
  const busy = queues.map(() => false);
  const events: { time: number; kind: "done" | "data"; task: number }[] = [];
  const arrivals: Arrival[] = [];
  let now = 0;
  let ended = 0;
  const startWhatCan = (): void => {
    queues.forEach((queue, d) => {
      const task = queue[head[d]!];
      if (busy[d] || task === undefined || missing[task]! > 0) return;
      busy[d] = true;
      events.push({ time: now + tasks[task]!.timeNs[d]!, kind: "done", task });
    });
  };
  startWhatCan();
  while (events.length > 0) {
    const next = events.reduce((a, b) => (b.time < a.time ? b : a));
    events.splice(events.indexOf(next), 1);
    now = next.time;
    if (next.kind === "data") {
      missing[next.task]!--;
      arrivals.push({ time: now, task: next.task });
    } else {
      ended++;
      const device = deviceOf[next.task]!;
      busy[device] = false;
      head[device]!++;
      tasks.forEach((user, t) => {
        for (const input of user.inputs) {
          if (input.from !== next.task) continue;
          const to = deviceOf[t]!;
          const way = transfers[device]![to]!;
          const delay = to === device ? 0 : way.latencyNs + input.bytes / way.bytesPerNs;
          events.push({ time: now + delay, kind: "data", task: t });
        }
      });
    }
    startWhatCan();
  }
  if (ended !== tasks.length) throw new Error("the queues stand still");
  return now;
}

/** Queues in the order in which a placement starts its tasks. */
export function queuesOf(
  deviceCount: number,
  deviceOf: readonly number[],
  order: readonly number[],
): number[][] {
  return Array.from({ length: deviceCount }, (_, d) => order.filter((t) => deviceOf[t] === d));
}

/** The best makespan over all placements that fit and all orders; Infinity when none fits. */
export function bestMakespan(problem: PlaceProblem): number {
  const { tasks, devices } = problem;
  const orders = allOrders(problem);
  let best = Infinity;
  const assignments = devices.length ** tasks.length;
  for (let code = 0; code < assignments; code++) {
    const deviceOf = tasks.map((_, i) => Math.floor(code / devices.length ** i) % devices.length);
    const used = devices.map((_, d) =>
      tasks.reduce((sum, t, i) => sum + (deviceOf[i] === d ? t.memoryBytes : 0), 0),
    );
    if (used.some((u, d) => u > devices[d]!.memoryBytes)) continue;
    if (tasks.some((t, i) => t.timeNs[deviceOf[i]!] === Infinity)) continue;
    const tried = new Set<string>();
    for (const order of orders) {
      const queues = queuesOf(devices.length, deviceOf, order);
      const key = queues.join("|");
      if (tried.has(key)) continue;
      tried.add(key);
      best = Math.min(best, simulate(problem, deviceOf, queues));
    }
  }
  return best;
}

/** Every order with inputs first. */
function allOrders({ tasks }: PlaceProblem): number[][] {
  const found: number[][] = [];
  const walk = (done: readonly number[]): void => {
    if (done.length === tasks.length) found.push([...done]);
    tasks.forEach((task, t) => {
      if (done.includes(t) || task.inputs.some((i) => !done.includes(i.from))) return;
      walk([...done, t]);
    });
  };
  walk([]);
  return found;
}

/** Random graphs over random devices: times, transfers and memory that matter against each other. */
export function randomProblem(rng: Rng, mostTasks: number, mostDevices: number): PlaceProblem {
  const deviceCount = rng.integer(1, mostDevices);
  const taskCount = rng.integer(1, mostTasks);
  // Devices of the same size and ways, times the same or not: the planner treats equal ones as one.
  const same = rng.uniform() < 0.5;
  const sameTimes = rng.uniform() < 0.3;
  const tight = rng.uniform();
  const tasks = Array.from({ length: taskCount }, (_, t) => {
    const inputs = Array.from({ length: t }, (_, from) => from)
      .filter(() => rng.uniform() < 1.5 / taskCount)
      .map((from) => ({ from, bytes: rng.integer(0, 40) }));
    const time = rng.integer(0, 30);
    const timeNs = Array.from({ length: deviceCount }, () => {
      if (sameTimes) return time;
      return rng.uniform() < 0.05 && deviceCount > 1 ? Infinity : rng.integer(0, 30);
    });
    if (timeNs.every((n) => n === Infinity)) timeNs[0] = time;
    return { name: `t${t}`, inputs, timeNs, memoryBytes: rng.integer(0, 20) };
  });
  const needed = tasks.reduce((sum, t) => sum + t.memoryBytes, 0);
  const room = Math.ceil((needed * (0.8 + tight)) / deviceCount);
  const devices = Array.from({ length: deviceCount }, (_, d) => ({
    name: `d${d}`,
    memoryBytes: same ? room : Math.ceil(room * (0.5 + rng.uniform())),
  }));
  const latencyNs = rng.integer(0, 10);
  const transfers = devices.map(() =>
    devices.map(() => ({
      latencyNs: same ? latencyNs : rng.integer(0, 10),
      bytesPerNs: rng.integer(1, 8),
    })),
  );
  if (same) {
    for (const row of transfers) for (const way of row) way.bytesPerNs = 4;
  }
  return { tasks, devices, transfers };
}
