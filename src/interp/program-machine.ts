/**
 * The machine that runs threads: a seeded scheduler of coroutines, slots for vector clocks, the pool
 * of asynchronous operations. A thread runs until it waits, meets others or ends; then the scheduler
 * picks among the runnable threads and, now and then, one pending operation. The seed also decides how
 * late operations take effect: by chance, or only once nothing else can move.
 */
import type { Rng } from "../support/rng.ts";
import { type Agent, advance, copyKnowledge, type Knowledge } from "./program-clock.ts";
import { raise } from "./program-fault.ts";
import type { AsyncOperation, WaitQueue } from "./program-sync.ts";

/** Why a thread does not go on, and where it is queued. */
export interface Block<T> {
  readonly queue: WaitQueue<T>;
  readonly isReady: () => boolean;
  readonly what: string;
}

/** A coroutine known to the scheduler. */
export interface Runnable {
  readonly label: string;
  readonly steps: Iterator<Block<Runnable>, void>;
  blockedOn: string | undefined;
  readonly onEnd: () => void;
}

export class Machine {
  readonly rng: Rng;
  readonly #ready: Runnable[] = [];
  readonly #blocked = new Set<Runnable>();
  readonly #pending: AsyncOperation[] = [];
  /** Chance that a scheduling step completes an operation early. */
  readonly #haste: number;
  #slots = 0;

  constructor(rng: Rng) {
    this.rng = rng;
    this.#haste = rng.pick([0, 0, 0.1, 0.5]);
  }

  newSlot(): number {
    return this.#slots++;
  }

  /** An ordinary agent that knows what `from` knows. */
  newAgent(label: string, from: Knowledge): Agent {
    const slot = this.newSlot();
    const agent: Agent = { label, slot, clock: 0, knows: copyKnowledge(from), proxy: "ordinary" };
    advance(agent);
    return agent;
  }

  start(thread: Runnable): void {
    this.#ready.push(thread);
  }

  /** Puts the threads that `queue` lets go back to the runnable ones. */
  wake(queue: WaitQueue<Runnable>): void {
    for (const thread of queue.takeReady()) {
      thread.blockedOn = undefined;
      this.#blocked.delete(thread);
      this.#ready.push(thread);
    }
  }

  issue(operation: AsyncOperation): void {
    this.#pending.push(operation);
  }

  /** Makes an operation's effect happen now, if it has not. */
  complete(operation: AsyncOperation): void {
    if (operation.done) return;
    if (operation.after) this.complete(operation.after);
    operation.done = true;
    const at = this.#pending.indexOf(operation);
    if (at >= 0) this.#pending.splice(at, 1);
    operation.perform();
  }

  /** Runs until nothing is left; a fault when threads are left that can never go on. */
  run(): void {
    for (;;) {
      if (this.#pending.length > 0 && this.#takesOperation()) {
        this.complete(this.rng.pick(this.#pending));
      } else if (this.#ready.length > 0) this.#step();
      else if (this.#blocked.size > 0) this.#reportDeadlock();
      else return;
    }
  }

  #takesOperation(): boolean {
    return this.#ready.length === 0 || this.rng.uniform() < this.#haste;
  }

  #step(): void {
    const at = this.rng.integer(0, this.#ready.length - 1);
    const thread = this.#ready[at]!;
    this.#ready[at] = this.#ready.at(-1)!;
    this.#ready.pop();
    const result = thread.steps.next();
    if (result.done) {
      thread.onEnd();
      return;
    }
    const { queue, isReady, what } = result.value;
    if (isReady()) {
      this.#ready.push(thread);
      return;
    }
    thread.blockedOn = what;
    this.#blocked.add(thread);
    queue.add(thread, isReady);
  }

  #reportDeadlock(): never {
    const stuck = [...this.#blocked].slice(0, 6).map((t) => `${t.label} at ${t.blockedOn}`);
    return raise("deadlock", `${this.#blocked.size} wait for ever: ${stuck.join("; ")}`);
  }
}
