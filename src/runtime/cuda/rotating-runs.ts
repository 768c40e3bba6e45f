/**
 * Times of a program on a device: runs on copies of its memory in turn, captured as one graph where the
 * launches are known beforehand, between two events. The host's clock and the launches from here do not
 * count.
 */
import type { CudaDevice } from "./device.ts";
import {
  type CudaEvent,
  type CudaGraph,
  type CudaStream,
  captureGraph,
  createEvent,
} from "./stream.ts";

/** What all copies together are of the L2 cache. */
const timesOfCache = 3;
/** A graph of more runs gains nothing: what is so small stays in the cache beside other work too. */
const mostCopies = 256;
/** Share of the free memory that copies may take. */
const shareOfFree = 0.5;

/** Copies of so many bytes that together leave nothing in the cache from one turn to the next. */
export function copiesFor(
  bytes: number,
  { l2Bytes, freeBytes }: { readonly l2Bytes: number; readonly freeBytes: number },
): number {
  const wanted = Math.ceil((timesOfCache * l2Bytes) / Math.max(1, bytes));
  const fitting = 1 + Math.floor((shareOfFree * freeBytes) / Math.max(1, bytes));
  return Math.max(1, Math.min(wanted, fitting, mostCopies));
}

export interface RotationParts {
  readonly device: CudaDevice;
  readonly stream: CudaStream;
  /** One run on each copy. */
  readonly enqueue: () => void;
  readonly copies: number;
  /** Whether the launches depend on nothing that a run computes. */
  readonly fixed: boolean;
  readonly dispose: () => void;
}

export class RotatingRuns {
  readonly copies: number;
  readonly #parts: RotationParts;
  readonly #graph: CudaGraph | undefined;
  readonly #start: CudaEvent;
  readonly #end: CudaEvent;

  constructor(parts: RotationParts) {
    const { device, stream, enqueue, copies, fixed } = parts;
    this.#parts = parts;
    this.copies = copies;
    [this.#start, this.#end] = [createEvent(device), createEvent(device)];
    if (fixed) this.#graph = captureGraph(device, stream, enqueue);
  }

  /** Runs at least so many times; nanoseconds of one run. */
  time(repeats: number): number {
    const { device, stream, enqueue } = this.#parts;
    device.makeCurrent();
    const rounds = Math.ceil(repeats / this.copies);
    this.#start.record(stream);
    for (let i = 0; i < rounds; i++) {
      if (this.#graph) this.#graph.launch(stream);
      else enqueue();
    }
    this.#end.record(stream);
    return (this.#end.since(this.#start) * 1e6) / (rounds * this.copies);
  }

  close(): void {
    this.#graph?.close();
    this.#start.close();
    this.#end.close();
    this.#parts.dispose();
  }
}
