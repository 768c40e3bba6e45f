/**
 * The state of a protocol run in a form that is equal for two states from which everything goes on alike.
 * Clocks only grow, so two moments of a pipeline never have equal ones; but what is decided from them is
 * only who knows of which access. Each mark is therefore written as the set of those who know it, with
 * what distance there is to the present of counters and groups. Joins of knowledge and new marks act on
 * these sets alone: equal forms stay equal.
 */
import type { Clocks, Known } from "./clocks.ts";
import type { Granule, Mark } from "./shadow.ts";

/** One party that knows of marks. */
export interface Knower {
  readonly known: Known;
}

export interface RunnerState extends Knower {
  readonly slot: number;
  readonly arrived: boolean;
  /** Where it waits, unless it stands at the cut. */
  readonly waitsAt: number | undefined;
  readonly issued: readonly {
    readonly group: string;
    readonly slot: number;
    readonly age: number;
  }[];
}

export interface CellState {
  readonly label: string;
  readonly slot: number;
  readonly completed: number;
  readonly left: number;
  readonly bytes: number;
  readonly gathered: Known;
  readonly released: Known;
  readonly waiters: readonly { readonly slot: number; readonly clock: number }[];
}

export interface RunState {
  readonly runners: readonly RunnerState[];
  readonly cells: readonly CellState[];
  /** Threads that have come to a meeting, by meeting. */
  readonly meetings: readonly string[];
  readonly granules: Iterable<readonly [string, readonly (Granule | undefined)[]]>;
  /** Where a slot of a counter or a group has come to; undefined for a thread. */
  readonly present: (slot: number) => number | undefined;
}

export function snapshotOf(state: RunState): string {
  return new Snapshot(state).text();
}

/** Phases behind the present from which on all are alike: too old. */
const tooOld = 2;

class Snapshot {
  readonly #state: RunState;
  readonly #marks = new Map<string, string>();
  readonly #table: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #parties: readonly Known[];
  /** Those who await a group, by its slot. */
  readonly #awaiting = new Map<number, Known[]>();

  constructor(state: RunState) {
    this.#state = state;
    for (const { known, issued } of state.runners) {
      for (const slot of new Set(issued.map((i) => i.slot)))
        this.#awaiting.set(slot, [...(this.#awaiting.get(slot) ?? []), known]);
    }
    this.#parties = state.cells.flatMap((c) => [c.gathered, c.released]);
  }

  text(): string {
    const { runners, cells, meetings, granules } = this.#state;
    const lines: string[] = [];
    for (const [object, list] of granules) {
      const parts: string[] = [];
      for (let g = 0; g < list.length; g++) {
        const granule = list[g];
        parts.push(granule ? this.#granule(granule) : "");
      }
      lines.push(`${object} ${parts.join()}`);
    }
    for (const r of runners) {
      const issued = r.issued.map((i) => `${i.group}@${i.slot}-${i.age}`).join();
      const phases = cells.map((c) => this.#behind(r.known.causal, c)).join("");
      lines.push(`${r.slot} ${r.arrived} ${r.waitsAt} ${issued} ${phases}`);
    }
    for (const c of cells) lines.push(this.#cell(c));
    return [...lines, ...meetings, ...this.#table].join("\n");
  }

  #cell(c: CellState): string {
    const waiters = c.waiters.map((w) => this.#knowers(w, "causal")).sort();
    const phases = this.#state.cells.map((other) =>
      [c.gathered, c.released].map((k) => this.#behind(k.causal, other)).join(""),
    );
    return `${c.label} ${c.completed % 2} ${c.left} ${c.bytes} ${waiters.join()} ${phases.join()}`;
  }

  /** How many phases of the counter are not known of. */
  #behind(causal: Clocks, cell: CellState): number {
    return Math.min(tooOld, cell.completed - (causal[cell.slot] ?? 0));
  }

  #granule({ write, reads }: Granule): string {
    // Kinds are numbered as they come: the order in which reads were noted may not show in the numbers.
    const read = reads.map((r) => this.#kindOf(r)).sort();
    const numbers = read.map((kind) => this.#numberOf(kind));
    return `${write ? this.#numberOf(this.#kindOf(write)) : "-"}:${numbers.join("+")}`;
  }

  /** What is alike of two marks from which everything goes on alike. */
  #kindOf(mark: Mark): string {
    const key = `${mark.slot} ${mark.clock} ${mark.isAsync}`;
    const known = this.#marks.get(key);
    if (known !== undefined) return known;
    const seen = this.#knowers(mark, "seen");
    const fenced = mark.isAsync ? "" : this.#knowers(mark, "shared");
    const everywhere = seen === "all" && (mark.isAsync || fenced === "all");
    const present = this.#state.present(mark.slot);
    // What all know of needs no more waiting, nor do those who alone can wait for a group: how long it lies back
    // decides nothing.
    const own = this.#awaiting.get(mark.slot);
    const isAwaited = own?.every(({ seen }) => (seen[mark.slot] ?? 0) >= mark.clock) ?? false;
    const age = present === undefined || seen === "all" || isAwaited ? "" : present - mark.clock;
    const kind = everywhere ? "old" : `${mark.slot} ${mark.isAsync} ${age} ${seen} ${fenced}`;
    this.#marks.set(key, kind);
    return kind;
  }

  /** Kinds stand once in the text, and by their number elsewhere. */
  #numberOf(kind: string): number {
    let number = this.#numbers.get(kind);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(kind, number);
      this.#table.push(kind);
    }
    return number;
  }

  /** Who knows that a slot has come to a clock: all threads, or each party's bit. */
  #knowers(
    { slot, clock }: { readonly slot: number; readonly clock: number },
    what: "seen" | "causal" | "shared",
  ): string {
    const knows = (known: Known): boolean => {
      const clocks = what === "shared" ? known.fenced.shared : known[what];
      return (clocks[slot] ?? 0) >= clock;
    };
    const { runners } = this.#state;
    if (runners.every((r) => knows(r.known))) return "all";
    const bits = [...runners.map((r) => r.known), ...this.#parties];
    return bits.map((k) => (knows(k) ? "1" : "0")).join("");
  }
}
