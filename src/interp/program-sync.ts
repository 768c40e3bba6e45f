/**
 * Synchronisation objects of a run: counters (monotone and phase), barriers, asynchronous operations.
 * Each carries what its releasers knew (program-clock.ts), so that whoever waits successfully learns
 * exactly that. Phase counters follow mbarrier (PTX ISA, "Parallel Synchronization and
 * Communication Instructions: mbarrier"): a phase completes when its pending arrivals and bytes are
 * both zero; bytes may arrive before they are announced.
 */
import {
  type Agent,
  copyKnowledge,
  emptyKnowledge,
  join,
  type Knowledge,
} from "./program-clock.ts";
import { raise } from "./program-fault.ts";
import type { Runnable } from "./program-machine.ts";

/** Something that threads wait for. */
export class WaitQueue<T> {
  readonly #waiting = new Map<T, () => boolean>();

  add(thread: T, isReady: () => boolean): void {
    this.#waiting.set(thread, isReady);
  }

  /** Takes out those that may go on. */
  takeReady(): T[] {
    const ready = [...this.#waiting].filter(([, isReady]) => isReady()).map(([thread]) => thread);
    for (const thread of ready) this.#waiting.delete(thread);
    return ready;
  }
}

/** One counter of protocol monotone. */
export class MonotoneCell<T> {
  readonly label: string;
  readonly queue = new WaitQueue<T>();
  value = 0;
  readonly #history: { readonly value: number; readonly knows: Knowledge }[] = [];

  constructor(label: string) {
    this.label = label;
  }

  signal(amount: number, knows: Knowledge): void {
    this.value += amount;
    const all = copyKnowledge(this.#history.at(-1)?.knows ?? emptyKnowledge());
    join(all, knows);
    this.#history.push({ value: this.value, knows: all });
  }

  /** Learns what the signals that made up `threshold` released, and not more. */
  acquire(threshold: number, into: Knowledge): void {
    const entry = this.#history.find((h) => h.value >= threshold);
    if (entry && threshold > 0) join(into, entry.knows);
  }
}

/** One counter of protocol phase. */
export class PhaseCell<T> {
  readonly label: string;
  readonly queue = new WaitQueue<T>();
  /** Slot under which asynchronous operations that complete here leave their accesses. */
  readonly slot: number;
  readonly arrivals: number;
  completed = 0;
  #pendingArrivals: number;
  #pendingBytes = 0;
  readonly #gathered = emptyKnowledge();
  readonly #released = emptyKnowledge();

  constructor(label: string, arrivals: number, slot: number) {
    this.label = label;
    this.arrivals = arrivals;
    this.slot = slot;
    this.#pendingArrivals = arrivals;
  }

  arrive(amount: number, knows: Knowledge): void {
    join(this.#gathered, knows);
    this.#pendingArrivals -= amount;
    if (this.#pendingArrivals < 0)
      raise("deadlock", `${this.label}: more arrivals than a phase has`);
    this.#settle();
  }

  expect(bytes: number): void {
    this.#pendingBytes += bytes;
  }

  /** Bytes of an asynchronous copy have landed. */
  land(bytes: number): void {
    this.#pendingBytes -= bytes;
    this.#settle();
  }

  /** Whether the phase of this parity has completed: not the parity of the phase under way. */
  hasCompleted(parity: number): boolean {
    return this.completed % 2 !== parity;
  }

  acquire(into: Knowledge): void {
    join(into, this.#released);
  }

  #settle(): void {
    if (this.#pendingArrivals !== 0 || this.#pendingBytes !== 0) return;
    this.completed++;
    this.#pendingArrivals = this.arrivals;
    join(this.#released, this.#gathered);
    this.#released.seen.raise(this.slot, this.completed);
  }
}

/** A meeting of `expected` threads; the last one runs `action` with all of them. */
export class Meeting<T> {
  readonly expected: number;
  readonly #arrived: T[] = [];
  round = 0;
  readonly queue = new WaitQueue<Runnable>();
  /** What the threads of the current round came for; all must agree. */
  #purpose = "";

  constructor(expected: number) {
    this.expected = expected;
  }

  /** Adds a thread; gives all of them back when the round is complete. */
  arrive(thread: T, purpose: string): readonly T[] | undefined {
    if (this.#arrived.length === 0) this.#purpose = purpose;
    if (purpose !== this.#purpose) {
      raise("divergence", `threads meet at "${purpose}" and at "${this.#purpose}"`);
    }
    this.#arrived.push(thread);
    if (this.#arrived.length < this.expected) return undefined;
    this.round++;
    return this.#arrived.splice(0);
  }
}

/** An asynchronous operation that has been issued and whose effect is still to come. */
export interface AsyncOperation {
  readonly agent: Agent;
  /** Copies, or multiplies; then tells whom it concerns. */
  readonly perform: () => void;
  /** What has its effect first: matrix instructions of a group add up in order of issue. */
  readonly after?: AsyncOperation;
  done: boolean;
}
