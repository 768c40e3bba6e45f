/** Waiting jobs: the highest priority first where that counts, else and among equals the earliest. */
import type { Job } from "./fleet.ts";

export class JobHeap {
  readonly #byPriority: boolean;
  readonly #items: Job[] = [];
  /** Without priorities a plain queue: the items before this one are gone. */
  #head = 0;

  constructor(byPriority: boolean) {
    this.#byPriority = byPriority;
  }

  get size(): number {
    return this.#items.length - this.#head;
  }

  get first(): Job | undefined {
    return this.#items[this.#head];
  }

  #before(a: Job, b: Job): boolean {
    return a.priority === b.priority ? a.id < b.id : a.priority > b.priority;
  }

  push(job: Job): void {
    const items = this.#items;
    let at = items.push(job) - 1;
    if (!this.#byPriority) return;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!this.#before(items[at]!, items[up]!)) return;
      [items[at], items[up]] = [items[up]!, items[at]!];
      at = up;
    }
  }

  pop(): void {
    if (!this.#byPriority) this.#popFront();
    else this.#popTop();
  }

  #popFront(): void {
    this.#head++;
    if (this.#head < 1024 || this.#head * 2 < this.#items.length) return;
    this.#items.splice(0, this.#head);
    this.#head = 0;
  }

  #popTop(): void {
    const items = this.#items;
    const last = items.pop();
    if (last === undefined || items.length === 0) return;
    items[0] = last;
    for (let at = 0; ; ) {
      let best = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < items.length && this.#before(items[child]!, items[best]!)) best = child;
      }
      if (best === at) return;
      [items[at], items[best]] = [items[best]!, items[at]!];
      at = best;
    }
  }
}
