/**
 * Who wrote and read each granule of memory last, in a run over traces: finds unordered accesses,
 * asynchronous effects not waited for, missing proxy fences, reads of what was never written.
 */
import type { DiagnosticCode } from "../../support/diagnostic-codes.ts";
import type { Known } from "./clocks.ts";
import type { Footprint } from "./sequential.ts";
import type { ObjectInfo, Touch } from "./trace.ts";

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
        list[g] ??= { write: undefined, reads: [] };
        const fault = this.#check(list[g]!, touch.write, { by, info });
        if (fault) {
          this.#fault(fault[0], `${fault[1]}: byte ${g * info.granule} of ${object} at ${what()}`);
          return;
        }
      }
    }
  }

  #check(
    granule: Granule,
    write: boolean,
    { by, info }: { readonly by: Toucher; readonly info: ObjectInfo },
  ): readonly [DiagnosticCode, string] | undefined {
    const { write: old } = granule;
    const given = info.root !== undefined && this.#ready.has(info.root);
    if (!old && !write && !given) return ["PRG021", "read of what nothing has written"];
    if (old) {
      const fault = this.#afterWrite(old, by, info);
      if (fault) return fault;
    }
    const mark = { slot: by.slot, clock: by.clock, isAsync: by.isAsync };
    if (!write) {
      const { reads } = granule;
      const [only] = reads;
      if (reads.length === 1 && only && isKnown(only, by, info)) reads[0] = mark;
      else if (!reads.some((r) => r.slot === by.slot && r.clock === by.clock)) reads.push(mark);
      return undefined;
    }
    const unordered = granule.reads.find((r) => !isKnown(r, by, info));
    if (unordered) {
      return unordered.isAsync
        ? ["PRG031", "write over what an asynchronous operation may still read"]
        : ["PRG030", "write that is not ordered after a read"];
    }
    granule.write = mark;
    granule.reads = [];
    return undefined;
  }

  #afterWrite(
    old: Mark,
    by: Toucher,
    info: ObjectInfo,
  ): readonly [DiagnosticCode, string] | undefined {
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

/** Ordered before; matrix instructions of one group see each other's registers in order of issue. */
function isKnown(mark: Mark, by: Toucher, info: ObjectInfo): boolean {
  if (info.scope === "private" && mark.slot === by.slot) return true;
  return mark.clock <= (by.known.seen[mark.slot] ?? 0);
}
