/**
 * Accelerators that take jobs: each runs one job at a time, the ones it has accepted wait in its queue.
 * A job's memory is reserved from the moment it is accepted until it ends. State only; who gets a job is
 * a strategy's decision (strategies.ts), when things happen is the dispatcher's (dispatcher.ts).
 */
import type { Diagnostic } from "../../support/diagnostic.ts";
import { checkNumber } from "../number.ts";

export interface Accelerator {
  readonly name: string;
  readonly memoryBytes: number;
  /** Work a nanosecond, against the device that jobs' work is stated for. */
  readonly speed: number;
  /** Jobs that may wait behind the running one. */
  readonly queueDepth: number;
}

export interface Job {
  readonly id: number;
  /** Nanoseconds on a device of speed 1. */
  readonly work: number;
  readonly memoryBytes: number;
  /** The higher goes first, where the strategy heeds it. */
  readonly priority: number;
  /** Index of the only device that it may run on. */
  readonly preferred?: number;
}

/** Numbers that would make a fleet's sums, or the order of who waits, meaningless. */
export function checkJob({ id, work, memoryBytes, priority }: Job): Diagnostic | undefined {
  const amount = { least: 0, most: 1e18 };
  return (
    checkNumber("PLN001", `the work of job ${id}`, work, amount) ??
    checkNumber("PLN001", `the memory of job ${id}`, memoryBytes, amount) ??
    checkNumber("PLN001", `the priority of job ${id}`, priority, { least: -1e18, most: 1e18 }) ??
    checkNumber("PLN001", "the number of a job", id, { least: -1e18, most: 1e18 })
  );
}

export class Fleet {
  readonly devices: readonly Accelerator[];
  readonly freeBytes: Float64Array;
  /** Jobs accepted and not ended. */
  readonly depth: Int32Array;
  /** Nanoseconds of accepted work that is not done, the running job counted whole. */
  readonly pendingNs: Float64Array;

  constructor(devices: readonly Accelerator[]) {
    this.devices = devices;
    this.freeBytes = Float64Array.from(devices, (d) => d.memoryBytes);
    this.depth = new Int32Array(devices.length);
    this.pendingNs = new Float64Array(devices.length);
  }

  /** Room for a job now: memory, and a place in the queue. */
  accepts(device: number, job: Job): boolean {
    return (
      job.memoryBytes <= this.freeBytes[device]! &&
      this.depth[device]! <= this.devices[device]!.queueDepth &&
      (job.preferred === undefined || job.preferred === device)
    );
  }

  /** Whether the job could run on the device if it were empty. */
  couldHold(device: number, job: Job): boolean {
    if (job.preferred !== undefined && job.preferred !== device) return false;
    return job.memoryBytes <= this.devices[device]!.memoryBytes;
  }

  serviceNs(device: number, job: Job): number {
    return job.work / this.devices[device]!.speed;
  }

  reserve(device: number, job: Job): void {
    this.freeBytes[device]! -= job.memoryBytes;
    this.depth[device]!++;
    this.pendingNs[device]! += this.serviceNs(device, job);
  }

  release(device: number, job: Job): void {
    this.freeBytes[device]! += job.memoryBytes;
    this.depth[device]!--;
    // Sums and differences of many times leave a rest: an empty device has none.
    const pending = this.pendingNs[device]! - this.serviceNs(device, job);
    this.pendingNs[device] = this.depth[device] === 0 ? 0 : pending;
  }
}
