/**
 * A day of arrivals played through a strategy: how busy each device was and how long jobs waited for
 * their device to start them. Events in order of time; at equal times endings come before arrivals.
 */
import { invariant } from "../../support/invariant.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { Accelerator, Job } from "./fleet.ts";
import { makeStrategy, type StrategyName } from "./strategies.ts";

export interface Arrival extends Job {
  readonly atNs: number;
}

export interface DispatchReport {
  readonly strategy: StrategyName;
  readonly served: number;
  /** Larger than any device, or than the one it must have; or of a number that another still has. */
  readonly refused: number;
  readonly endNs: number;
  readonly devices: readonly {
    readonly name: string;
    readonly jobs: number;
    /** Part of the time that it worked. */
    readonly utilisation: number;
    readonly mostBytes: number;
  }[];
  readonly wait: WaitReport;
  /** Waits of the jobs of each priority, the highest first. */
  readonly byPriority: readonly { readonly priority: number; readonly wait: WaitReport }[];
}

export interface WaitReport {
  readonly jobs: number;
  readonly meanNs: number;
  readonly medianNs: number;
  readonly p95Ns: number;
  readonly p99Ns: number;
  readonly mostNs: number;
}

/** Arrivals in order of time. */
export function simulateDispatch(
  devices: readonly Accelerator[],
  arrivals: readonly Arrival[],
  name: StrategyName,
): DispatchReport {
  const play = new Play(devices, arrivals.length, name);
  for (const job of arrivals) {
    play.runUntil(job.atNs);
    play.arrive(job);
  }
  play.runUntil(Infinity);
  return play.report();
}

class Play {
  readonly #devices: readonly Accelerator[];
  readonly #name: StrategyName;
  readonly #dispatcher: Dispatcher;
  readonly #queues: Arrival[][];
  readonly #heads: Int32Array;
  readonly #endNs: Float64Array;
  readonly #busyNs: Float64Array;
  readonly #jobs: Int32Array;
  readonly #mostBytes: Float64Array;
  readonly #waits: Float64Array;
  readonly #priorities: Float64Array;
  #served = 0;
  #refused = 0;
  #now = 0;
  #last = 0;

  constructor(devices: readonly Accelerator[], count: number, name: StrategyName) {
    this.#devices = devices;
    this.#name = name;
    this.#dispatcher = new Dispatcher(devices, makeStrategy(name), (job, device) =>
      this.#accept(job as Arrival, device),
    );
    this.#queues = devices.map(() => []);
    this.#heads = new Int32Array(devices.length);
    this.#endNs = new Float64Array(devices.length).fill(Infinity);
    this.#busyNs = new Float64Array(devices.length);
    this.#jobs = new Int32Array(devices.length);
    this.#mostBytes = new Float64Array(devices.length);
    this.#waits = new Float64Array(count);
    this.#priorities = new Float64Array(count);
  }

  arrive(job: Arrival): void {
    this.#now = job.atNs;
    if (this.#dispatcher.submit(job).kind === "refused") this.#refused++;
  }

  /** All endings up to a time. */
  runUntil(time: number): void {
    for (;;) {
      let next = 0;
      for (let d = 1; d < this.#endNs.length; d++)
        if (this.#endNs[d]! < this.#endNs[next]!) next = d;
      const end = this.#endNs[next]!;
      if (end > time || end === Infinity) return;
      this.#finish(next, end);
    }
  }

  #finish(device: number, end: number): void {
    this.#now = end;
    this.#last = end;
    const queue = this.#queues[device]!;
    const job = queue[this.#heads[device]!++]!;
    if (this.#heads[device]! > 4096) {
      queue.splice(0, this.#heads[device]!);
      this.#heads[device] = 0;
    }
    this.#endNs[device] = Infinity;
    if (this.#heads[device]! < queue.length) this.#start(device);
    const done = this.#dispatcher.complete(job, device);
    invariant(
      done.kind === "completed",
      () => `job ${job.id} ended on a device that it was not on`,
    );
  }

  #accept(job: Arrival, device: number): void {
    const { freeBytes } = this.#dispatcher.fleet;
    const used = this.#devices[device]!.memoryBytes - freeBytes[device]!;
    this.#mostBytes[device] = Math.max(this.#mostBytes[device]!, used);
    this.#queues[device]!.push(job);
    if (this.#endNs[device] === Infinity) this.#start(device);
  }

  #start(device: number): void {
    const job = this.#queues[device]![this.#heads[device]!]!;
    const service = job.work / this.#devices[device]!.speed;
    this.#waits[this.#served] = this.#now - job.atNs;
    this.#priorities[this.#served++] = job.priority;
    this.#jobs[device]!++;
    this.#busyNs[device]! += service;
    this.#endNs[device] = this.#now + service;
  }

  report(): DispatchReport {
    const waits = this.#waits.subarray(0, this.#served);
    const priorities = this.#priorities.subarray(0, this.#served);
    const levels = [...new Set(priorities)].sort((a, b) => b - a);
    return {
      strategy: this.#name,
      served: this.#served,
      refused: this.#refused,
      endNs: this.#last,
      devices: this.#devices.map(({ name }, d) => ({
        name,
        jobs: this.#jobs[d]!,
        utilisation: this.#last > 0 ? this.#busyNs[d]! / this.#last : 0,
        mostBytes: this.#mostBytes[d]!,
      })),
      wait: waitReport(waits),
      byPriority: levels.map((priority) => ({
        priority,
        wait: waitReport(waits.filter((_, i) => priorities[i] === priority)),
      })),
    };
  }
}

function waitReport(waits: Float64Array): WaitReport {
  const sorted = waits.slice().sort();
  const at = (part: number): number =>
    sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? 0;
  const sum = sorted.reduce((a, b) => a + b, 0);
  return {
    jobs: sorted.length,
    meanNs: sorted.length > 0 ? sum / sorted.length : 0,
    medianNs: at(0.5),
    p95Ns: at(0.95),
    p99Ns: at(0.99),
    mostNs: sorted.at(-1) ?? 0,
  };
}
