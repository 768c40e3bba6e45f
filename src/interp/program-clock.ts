/**
 * Vector clocks (Mattern 1988; used for race detection as in FastTrack, Flanagan and Freund 2009).
 * A slot is a thread of the run or a source of asynchronous effects (a group of a thread, a counter);
 * an access carries (slot, clock) and is ordered before whoever knows at least that clock of the slot.
 *
 * `seen` is what an agent knows; `fenced` is the part of it that lies before a proxy fence on the way,
 * per memory scope: what asynchronous accesses may rely on.
 */
export class Clock {
  /** What is known by slot, shared with others and never changed: most of it is from before the launch. */
  #shared: readonly number[] = nothing;
  /** What is known beyond it, from slot `#first` on. */
  #own: number[] = [];
  #first = 0;

  of(slot: number): number {
    const own = slot < this.#first ? 0 : (this.#own[slot - this.#first] ?? 0);
    return Math.max(own, this.#shared[slot] ?? 0);
  }

  raise(slot: number, clock: number): void {
    this.#widen(slot, slot + 1);
    const at = slot - this.#first;
    if (clock > this.#own[at]!) this.#own[at] = clock;
  }

  join(from: Clock): void {
    this.#shared = merged(this.#shared, from.#shared);
    const own = from.#own;
    if (own.length === 0) return;
    this.#widen(from.#first, from.#first + own.length);
    const by = from.#first - this.#first;
    for (let i = 0; i < own.length; i++) {
      if (own[i]! > this.#own[i + by]!) this.#own[i + by] = own[i]!;
    }
  }

  copy(): Clock {
    const made = new Clock();
    made.#shared = this.#shared;
    made.#own = this.#own.slice();
    made.#first = this.#first;
    return made;
  }

  /** Makes all of it what copies share. */
  share(): void {
    if (this.#own.length === 0) return;
    const before = new Array<number>(this.#first).fill(0);
    this.#shared = merged(this.#shared, [...before, ...this.#own]);
    this.#own = [];
    this.#first = 0;
  }

  /** Knows from now on what `from` does, which covers what it knew and has nothing that is not shared. */
  adopt(from: Clock): void {
    this.#shared = from.#shared;
    this.#own = [];
    this.#first = 0;
  }

  /** Room for slots from `from` to before `to`. */
  #widen(from: number, to: number): void {
    if (this.#own.length === 0) this.#first = from;
    if (from < this.#first) {
      this.#own = [...new Array<number>(this.#first - from).fill(0), ...this.#own];
      this.#first = from;
    }
    while (this.#own.length < to - this.#first) this.#own.push(0);
  }
}

const nothing: readonly number[] = [];
/** All threads of a launch merge the same two. */
const known = new WeakMap<readonly number[], WeakMap<readonly number[], readonly number[]>>();

function merged(a: readonly number[], b: readonly number[]): readonly number[] {
  if (a === b || b === nothing) return a;
  if (a === nothing) return b;
  const others = known.get(a) ?? new WeakMap<readonly number[], readonly number[]>();
  known.set(a, others);
  const made = others.get(b) ?? largest(a, b);
  others.set(b, made);
  return made;
}

/** The larger of each slot; one of the two where the other says no more. */
function largest(a: readonly number[], b: readonly number[]): readonly number[] {
  const covers = (x: readonly number[], y: readonly number[]): boolean =>
    y.every((clock, slot) => clock <= (x[slot] ?? 0));
  if (covers(a, b)) return a;
  if (covers(b, a)) return b;
  return Array.from({ length: Math.max(a.length, b.length) }, (_, slot) =>
    Math.max(a[slot] ?? 0, b[slot] ?? 0),
  );
}

export interface Knowledge {
  readonly seen: Clock;
  readonly fencedShared: Clock;
  readonly fencedMemory: Clock;
}

export function emptyKnowledge(): Knowledge {
  return { seen: new Clock(), fencedShared: new Clock(), fencedMemory: new Clock() };
}

export function copyKnowledge(from: Knowledge): Knowledge {
  return {
    seen: from.seen.copy(),
    fencedShared: from.fencedShared.copy(),
    fencedMemory: from.fencedMemory.copy(),
  };
}

/** Makes what is known cheap to copy: to be called before many do. */
export function share({ seen, fencedShared, fencedMemory }: Knowledge): void {
  for (const clock of [seen, fencedShared, fencedMemory]) clock.share();
}

/** Learns all that `from` knows. */
export function join(into: Knowledge, from: Knowledge): void {
  into.seen.join(from.seen);
  into.fencedShared.join(from.fencedShared);
  into.fencedMemory.join(from.fencedMemory);
}

/** All of them know from now on what any of them did. */
export function joinAll(all: readonly Knowledge[]): void {
  const joined = emptyKnowledge();
  for (const knows of all) join(joined, knows);
  share(joined);
  for (const { seen, fencedShared, fencedMemory } of all) {
    seen.adopt(joined.seen);
    fencedShared.adopt(joined.fencedShared);
    fencedMemory.adopt(joined.fencedMemory);
  }
}

/** A proxy fence: all that is known now may be relied on by asynchronous accesses. */
export function fence(knowledge: Knowledge, scope: "shared" | "memory"): void {
  const fenced = scope === "shared" ? knowledge.fencedShared : knowledge.fencedMemory;
  fenced.join(knowledge.seen);
}

/** Both fences: what the end of a launch does. */
export function fenceAll(knowledge: Knowledge): void {
  fence(knowledge, "shared");
  fence(knowledge, "memory");
}

/** Who accesses memory: an ordinary thread, or an asynchronous operation with what its issuer knew. */
export interface Agent {
  readonly label: string;
  slot: number;
  clock: number;
  readonly knows: Knowledge;
  readonly proxy: "ordinary" | "async";
}

/** Starts a new interval: what the agent does from here on is not covered by earlier releases. */
export function advance(agent: Agent): void {
  agent.clock++;
  agent.knows.seen.raise(agent.slot, agent.clock);
}
