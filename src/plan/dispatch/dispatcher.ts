/**
 * Jobs to accelerators over time. A job is assigned when a device accepts it, waits when all that could
 * hold it are full, and is refused when none ever could or
 * its numbers make no sense. Waiting jobs are taken in the order of arrival
 * or priority; jobs for one device wait for that one alone and hold up nobody else.
 */
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import { type Accelerator, checkJob, Fleet, type Job } from "./fleet.ts";
import { JobHeap } from "./job-heap.ts";
import type { Strategy } from "./strategies.ts";

export type Submission =
  | { readonly kind: "assigned"; readonly device: number }
  | { readonly kind: "waiting" }
  /** No device could ever hold it or, where a fault is named, its numbers make no sense. */
  | { readonly kind: "refused"; readonly fault?: Diagnostic };

export type Completion =
  | { readonly kind: "completed" }
  | { readonly kind: "refused"; readonly fault: Diagnostic };

function notOn({ id }: Job, device: number, on: number | undefined): Diagnostic {
  const where =
    on === undefined
      ? "is complete or was never submitted"
      : on < 0
        ? "waits"
        : `is on device ${on}`;
  const help = "call complete once for each job, with the device that it was assigned to";
  return diagnostic("PLN008", `job ${id} is not on device ${device}: it ${where}`, { help });
}

/** Told of each job that got a device: at once, or later from waiting. */
export type Assigned = (job: Job, device: number) => void;

export class Dispatcher {
  readonly fleet: Fleet;
  readonly #strategy: Strategy;
  readonly #assigned: Assigned;
  readonly #anywhere: JobHeap;
  readonly #pinned: readonly JobHeap[];
  /** Device of each job that is accepted and not complete, -1 where it waits. */
  readonly #open = new Map<number, { readonly job: Job; readonly device: number }>();

  constructor(devices: readonly Accelerator[], strategy: Strategy, assigned: Assigned) {
    this.fleet = new Fleet(devices);
    this.#strategy = strategy;
    this.#assigned = assigned;
    this.#anywhere = new JobHeap(strategy.byPriority);
    this.#pinned = devices.map(() => new JobHeap(strategy.byPriority));
  }

  get waiting(): number {
    return this.#pinned.reduce((sum, heap) => sum + heap.size, this.#anywhere.size);
  }

  submit(job: Job): Submission {
    const fault = checkJob(job) ?? this.#checkNew(job);
    if (fault) return { kind: "refused", fault };
    if (!this.fleet.devices.some((_, d) => this.fleet.couldHold(d, job)))
      return { kind: "refused" };
    const line = this.#lineOf(job);
    // Nobody overtakes: who waits in the same line goes first.
    const device = line.size === 0 ? this.#strategy.choose(this.fleet, job) : -1;
    if (device < 0) {
      line.push(job);
      this.#open.set(job.id, { job, device: -1 });
      return { kind: "waiting" };
    }
    this.#assign(job, device);
    return { kind: "assigned", device };
  }

  /**
   * A job has ended: its memory is free, and who waited may come. A job that is not on the device, or has
   * ended before, changes nothing and is named.
   */
  complete(job: Job, device: number): Completion {
    const accepted = this.#open.get(job.id);
    if (accepted?.device !== device || device < 0) {
      return { kind: "refused", fault: notOn(job, device, accepted?.device) };
    }
    this.#open.delete(job.id);
    this.fleet.release(device, accepted.job);
    this.#drain(this.#pinned[device]!);
    this.#drain(this.#anywhere);
    return { kind: "completed" };
  }

  #checkNew({ id }: Job): Diagnostic | undefined {
    if (!this.#open.has(id)) return undefined;
    const help = "give each job a number of its own until it is complete";
    return diagnostic("PLN008", `job ${id} is submitted already`, { help });
  }

  #lineOf(job: Job): JobHeap {
    return job.preferred === undefined ? this.#anywhere : this.#pinned[job.preferred]!;
  }

  #drain(line: JobHeap): void {
    for (let job = line.first; job; job = line.first) {
      const device = this.#strategy.choose(this.fleet, job);
      if (device < 0) return;
      line.pop();
      this.#assign(job, device);
    }
  }

  #assign(job: Job, device: number): void {
    this.#open.set(job.id, { job, device });
    this.fleet.reserve(device, job);
    this.#assigned(job, device);
  }
}
