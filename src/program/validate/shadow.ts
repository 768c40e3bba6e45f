/**
 * Who wrote and read each granule of memory last, in a run over traces: finds unordered accesses,
 * asynchronous effects not waited for, missing proxy fences, reads of what was never written.
 */
import type { DiagnosticCode } from "../../support/diagnostic-codes.ts";
import type { Known } from "./clocks.ts";
import type { Footprint } from "./sequential.ts";
import type { ObjectInfo, Touch } from "./traced-objects.ts";

export interface Toucher {
  readonly slot: number;
  readonly clock: number;
  readonly known: Known;
  readonly isAsync: boolean;
}

export interface Mark {
  readonly slot: number;
  readonly clock: number;
  readonly isAsync: boolean;
}

export interface Granule {
  write: Mark | undefined;
  reads: Mark[];
}

type Fault = readonly [DiagnosticCode, string];

/** Granules that nobody has read since they were written share it; it is never changed. */
const none: Mark[] = [];

export class Shadow {
  readonly #objects: ReadonlyMap<string, ObjectInfo>;
  readonly #granules = new Map<string, (Granule | undefined)[]>();
  readonly #ready: ReadonlySet<string>;
  readonly #fault: (code: DiagnosticCode, text: string) => void;
  readonly #reads = new Set<string>();
  readonly #writes = new Set<string>();

  constructor(
    objects: ReadonlyMap<string, ObjectInfo>,
    ready: ReadonlySet<string>,
    fault: (code: DiagnosticCode, text: string) => void,
  ) {
    this.#objects = objects;
    this.#ready = ready;
    this.#fault = fault;
  }

  /** By object, in the order in which they were first touched. */
  get granules(): ReadonlyMap<string, readonly (Granule | undefined)[]> {
    return this.#granules;
  }

  isPrivate(object: string): boolean {
    return this.#objects.get(object)!.scope === "private";
  }

  touch(touch: Touch, by: Toucher, what: () => string): void {
    const mark: Mark = { slot: by.slot, clock: by.clock, isAsync: by.isAsync };
    for (const { object, from, to } of touch.ranges) {
      const info = this.#objects.get(object)!;
      if (info.root !== undefined) (touch.write ? this.#writes : this.#reads).add(info.root);
      let list = this.#granules.get(object);
      if (!list) {
        list = [];
        this.#granules.set(object, list);
      }
      const last = Math.floor((to - 1) / info.granule);
      for (let g = Math.floor(from / info.granule); g <= last; g++) {
        let granule = list[g];
        if (!granule) {
          granule = { write: undefined, reads: none };
          list[g] = granule;
        }
        const fault = touch.write
          ? this.#write(granule, mark, by, info)
          : this.#read(granule, mark, by, info);
        if (fault) {
          this.#fault(fault[0], `${fault[1]}: byte ${g * info.granule} of ${object} at ${what()}`);
          return;
        }
      }
    }
  }

  #read(granule: Granule, mark: Mark, by: Toucher, info: ObjectInfo): Fault | undefined {
    const { write: old, reads } = granule;
    if (old) {
      const fault = this.#afterWrite(old, by, info);
      if (fault) return fault;
    } else if (info.root === undefined || !this.#ready.has(info.root)) {
      return ["PRG021", "read of what nothing has written"];
    }
    if (reads.length === 0) granule.reads = [mark];
    else if (reads.length === 1 && isKnown(reads[0]!, by, info)) reads[0] = mark;
    else if (!isAmong(reads, mark)) reads.push(mark);
    return undefined;
  }

  #write(granule: Granule, mark: Mark, by: Toucher, info: ObjectInfo): Fault | undefined {
    const { write: old, reads } = granule;
    if (old) {
      const fault = this.#afterWrite(old, by, info);
      if (fault) return fault;
    }
    for (let i = 0; i < reads.length; i++) {
      const read = reads[i]!;
      if (isKnown(read, by, info)) continue;
      return read.isAsync
        ? ["PRG031", "write over what an asynchronous operation may still read"]
        : ["PRG030", "write that is not ordered after a read"];
    }
    granule.write = mark;
    if (reads.length > 0) granule.reads = none;
    return undefined;
  }

  #afterWrite(old: Mark, by: Toucher, info: ObjectInfo): Fault | undefined {
    if (!isKnown(old, by, info)) {
      return old.isAsync
        ? ["PRG031", "asynchronous effect that is not waited for"]
        : ["PRG030", "access that is not ordered after a write"];
    }
    if (!by.isAsync || old.isAsync || info.scope === "private") return undefined;
    const fenced = by.known.fenced[info.scope][old.slot] ?? 0;
    if (old.clock <= fenced) return undefined;
    return ["PRG032", "asynchronous access to an ordinary write without a fence between"];
  }

  /** Roots read and written, and those written completely. */
  footprint(): Footprint {
    const covered = new Set<string>();
    for (const [object, info] of this.#objects) {
      if (info.root === undefined || !this.#writes.has(info.root)) continue;
      const list = this.#granules.get(object) ?? [];
      const count = Math.ceil(info.byteCount / info.granule);
      let whole = true;
      for (let g = 0; g < count && whole; g++) whole = list[g]?.write !== undefined;
      if (whole) covered.add(info.root);
    }
    return { reads: this.#reads, writes: this.#writes, covered };
  }
}

function isAmong(marks: readonly Mark[], { slot, clock }: Mark): boolean {
  for (let i = marks.length - 1; i >= 0; i--) {
    const mark = marks[i]!;
    if (mark.slot === slot && mark.clock === clock) return true;
  }
  return false;
}

/** Ordered before; matrix instructions of one group see each other's registers in order of issue. */
function isKnown(mark: Mark, by: Toucher, info: ObjectInfo): boolean {
  if (info.scope === "private" && mark.slot === by.slot) return true;
  return mark.clock <= (by.known.seen[mark.slot] ?? 0);
}
