/**
 * One run over the traces of a cooperative kernel with vector clocks; see protocol.ts for what it
 * proves. Asynchronous operations take effect where they are issued: for the order of accesses only
 * what is known of them counts, and that comes with the wait.
 */
import type { DiagnosticCode } from "../../support/diagnostic-codes.ts";
import type { Kernel } from "../program.ts";
import { emptyKnown, join, joinClocks, type Known, learn, takeOver } from "./clocks.ts";
import type { Report } from "./report.ts";
import type { Footprint } from "./sequential.ts";
import { Shadow } from "./shadow.ts";
import { type RunnerState, type RunState, snapshotOf } from "./snapshot.ts";
import type { CounterPlace, KernelTraces, ThreadTrace, TraceEvent } from "./trace-events.ts";

interface Issued {
  readonly group: string;
  readonly batch: number;
  readonly slot: number;
  readonly clock: number;
}

interface Runner {
  readonly trace: ThreadTrace;
  readonly slot: number;
  readonly known: Known;
  /** Places of the cuts in the trace, by label. */
  readonly cuts: ReadonlyMap<string, number>;
  at: number;
  /** It has arrived at a meeting that it has not yet left. */
  arrived: boolean;
  /** The round of that meeting. */
  round: number;
  readonly meetings: Map<string, Meeting>;
  readonly committed: Map<string, number>;
  issued: Issued[];
}

interface Cell {
  readonly label: string;
  /** Whose counter it is. */
  readonly instance: number;
  readonly slot: number;
  readonly arrivals: number;
  completed: number;
  left: number;
  bytes: number;
  /** The last phase that an asynchronous copy into the instance counts for; 0: none does. */
  copied: number;
  readonly gathered: Known;
  readonly released: Known;
  /** Waits satisfied by the last completed phase: the next one must come after them. */
  waiters: { readonly slot: number; readonly clock: number; readonly label: string }[];
}

type CutEvent = Extract<TraceEvent, { kind: "cut" }>;

interface Meeting {
  readonly size: number;
  readonly present: Runner[];
  /** How often all have come. */
  rounds: number;
}

/** Threads that an instruction with fragments is one of. */
const threadsOf = { warp: 32, copy: 128, role: 128, thread: 1 } as const;

export class ProtocolRun {
  readonly #kernel: Kernel;
  readonly #traces: KernelTraces;
  readonly #report: Report;
  readonly #at: string;
  readonly #shadow: Shadow;
  readonly #runners: Runner[];
  readonly #cells = new Map<string, Cell>();
  readonly #meetings = new Map<string, Meeting>();
  #slots = 0;

  constructor(
    kernel: Kernel,
    traces: KernelTraces,
    place: {
      readonly ready: ReadonlySet<string>;
      readonly report: Report;
      /** Parameter values of this run. */
      readonly at: string;
    },
  ) {
    this.#kernel = kernel;
    this.#traces = traces;
    this.#report = place.report;
    this.#at = place.at === "" ? "" : ` at ${place.at}`;
    this.#shadow = new Shadow(traces.objects, place.ready, (code, text) => this.#fault(code, text));
    this.#runners = traces.threads.map((trace) => this.#runner(trace));
  }

  run(): Footprint {
    let moved = true;
    while (moved && this.#report.isClean) {
      moved = false;
      for (const runner of this.#runners) if (this.#advance(runner)) moved = true;
      if (!moved && this.#report.isClean) moved = this.#passCut();
    }
    if (this.#report.isClean) this.#checkEnds();
    return this.#shadow.footprint();
  }

  // Induction over the trips of loops.

  readonly #states = new Map<string, string>();

  /**
   * All threads that come by some cut stand there, the others where they wait: the state is taken, or
   * compared. Whether those go on.
   */
  #passCut(): boolean {
    const waiting = this.#runners.flatMap((r) => {
      const event = r.trace.events[r.at];
      return event?.kind === "cut" ? [event] : [];
    });
    const [first] = waiting;
    if (!first) return false;
    const missing = ({ label }: CutEvent): readonly Runner[] =>
      this.#runners.filter((r) => (r.cuts.get(label) ?? -1) > r.at);
    const labels = new Map(waiting.map((c) => [c.label, c]));
    const cut = [...labels.values()].find((c) => missing(c).length === 0) ?? first;
    const there = this.#runners.filter((r) => r.cuts.get(cut.label) === r.at);
    const stuck = missing(cut).slice(0, 8);
    if (stuck.length > 0) {
      this.#report.add("PRG040", `threads do not come round a loop together (${cut.label})`, {
        at: `kernel ${this.#kernel.name}${this.#at}`,
        notes: stuck.map((r) => `${r.trace.label} at ${describe(r.trace.events[r.at]!)}`),
        help: "check thresholds, parities, the number of arrivals and the bytes announced",
      });
      return false;
    }
    const state = snapshotOf(this.#state(new Set(there)));
    const before = this.#states.get(cut.loop);
    if (!cut.closes) this.#states.set(cut.loop, state);
    else if (before !== state) {
      this.#fault("PRG060", `loop ${cut.loop} does not come back to the state of a period before`);
      return false;
    }
    for (const r of there) r.at++;
    return true;
  }

  #state(there: ReadonlySet<Runner>): RunState {
    const presents = new Map<number, number>();
    const runners = this.#runners.map((r): RunnerState => {
      const issued = r.issued.map(({ group, slot, batch }) => {
        const age = (r.committed.get(group) ?? 0) - batch;
        presents.set(slot, r.committed.get(group) ?? 0);
        return { group, slot, age };
      });
      const { slot, known, arrived } = r;
      return { slot, known, arrived, issued, waitsAt: there.has(r) ? undefined : r.at };
    });
    const cells = [...this.#cells.values()];
    for (const c of cells) presents.set(c.slot, c.completed);
    const meetings = [...this.#meetings].map(
      ([key, m]) => `${key} ${m.present.map((r) => r.slot).join()}`,
    );
    const { granules } = this.#shadow;
    return { runners, cells, meetings, granules, present: (slot) => presents.get(slot) };
  }

  #fault(code: DiagnosticCode, text: string): void {
    this.#report.add(code, text, { at: `kernel ${this.#kernel.name}${this.#at}` });
  }

  #runner(trace: ThreadTrace): Runner {
    const slot = this.#slots++;
    const known = emptyKnown();
    learn(known, slot, 1);
    const cuts = new Map<string, number>();
    for (const [i, e] of trace.events.entries()) if (e.kind === "cut") cuts.set(e.label, i);
    const start = { at: 0, arrived: false, round: 0, committed: new Map(), issued: [] };
    return { trace, slot, known, cuts, meetings: new Map(), ...start };
  }

  /** Begins a new interval of the thread: what it does now is not part of earlier releases. */
  #tick({ known, slot }: Runner): void {
    learn(known, slot, known.seen[slot]! + 1);
  }

  /** Runs a thread until it cannot go on; whether it moved. */
  #advance(runner: Runner): boolean {
    const start = runner.at;
    while (runner.at < runner.trace.events.length && this.#report.isClean) {
      if (!this.#step(runner, runner.trace.events[runner.at]!)) break;
      runner.at++;
    }
    return runner.at > start;
  }

  /** Whether the event is over. */
  #step(runner: Runner, event: TraceEvent): boolean {
    switch (event.kind) {
      case "touch": {
        const clock = runner.known.seen[runner.slot]!;
        const by = { slot: runner.slot, clock, known: runner.known, isAsync: false };
        this.#shadow.touch(event.touch, by, () => `${event.text} by ${runner.trace.label}`);
        return true;
      }
      case "tile":
        return this.#tile(runner, event);
      case "commit":
        runner.committed.set(event.group, (runner.committed.get(event.group) ?? 0) + 1);
        return true;
      case "await":
        this.#await(runner, event);
        return true;
      case "wait":
        return this.#wait(runner, event);
      case "signal":
      case "expect":
        this.#arrive(runner, event);
        return true;
      case "barrier":
        return this.#meet(runner, event.scope, `barrier ${event.scope}`);
      case "fence":
        {
          const { fenced, seen } = runner.known;
          fenced[event.scope] = joinClocks(fenced[event.scope], seen);
        }
        this.#tick(runner);
        return true;
      case "cut":
        return false;
    }
  }

  #await(runner: Runner, event: Extract<TraceEvent, { kind: "commit" | "await" }>): void {
    const last = (runner.committed.get(event.group) ?? 0) - event.pending;
    runner.issued = runner.issued.filter((i) => {
      const over = i.group === event.group && i.batch <= last;
      if (over) learn(runner.known, i.slot, i.clock);
      return !over;
    });
  }

  // Counters.

  #cell(place: CounterPlace, instance: number): Cell {
    const key = `${place.counter}[${place.at}]@${instance}`;
    let cell = this.#cells.get(key);
    if (!cell) {
      const counter = this.#kernel.counters.find((c) => c.name === place.counter)!;
      const arrivals = counter.arrivals ?? 0;
      if (counter.protocol !== "phase") {
        this.#fault("PRG060", `monotone counter ${counter.name} inside a kernel`);
      }
      const state = { completed: 0, left: arrivals, bytes: 0, copied: 0, waiters: [] };
      const knowledge = { gathered: emptyKnown(), released: emptyKnown() };
      cell = { label: key, instance, slot: this.#slots++, arrivals, ...state, ...knowledge };
      this.#cells.set(key, cell);
    }
    return cell;
  }

  #wait(runner: Runner, event: Extract<TraceEvent, { kind: "wait" }>): boolean {
    const cell = this.#cell(event.place, runner.trace.instance);
    const parity = ((event.value % 2) + 2) % 2;
    if (cell.completed % 2 === parity) return false;
    const knew = runner.known.causal[cell.slot] ?? 0;
    if (knew < cell.completed - 1) {
      const text = `${event.text} by ${runner.trace.label} could be satisfied by an older phase`;
      this.#fault("PRG041", `${text} (knows ${knew}, completed ${cell.completed})`);
    }
    join(runner.known, cell.released);
    const clock = runner.known.seen[runner.slot]!;
    cell.waiters.push({ slot: runner.slot, clock: clock + 1, label: runner.trace.label });
    this.#tick(runner);
    return true;
  }

  #targets(runner: Runner, cluster: boolean): readonly number[] {
    const own = runner.trace.instance;
    if (!cluster) return [own];
    const size = this.#kernel.grid.clusterSize;
    const first = Math.floor(own / size) * size;
    const last = Math.min(first + size, this.#traces.instances);
    return Array.from({ length: last - first }, (_, i) => first + i);
  }

  #arrive(runner: Runner, event: Extract<TraceEvent, { kind: "signal" | "expect" }>): void {
    for (const target of this.#targets(runner, event.cluster)) {
      const cell = this.#cell(event.place, target);
      this.#checkPhase(runner, cell, event.text);
      if (event.kind === "expect") cell.bytes += event.amount;
      cell.left -= event.kind === "expect" ? 1 : event.amount;
      if (cell.left < 0) {
        this.#fault(
          "PRG040",
          `${event.text} by ${runner.trace.label}: more arrivals than a phase has`,
        );
      }
      join(cell.gathered, runner.known);
      this.#settle(cell);
    }
    this.#tick(runner);
  }

  #checkPhase(runner: Runner, cell: Cell, text: string): void {
    const knew = runner.known.causal[cell.slot] ?? 0;
    if (knew === cell.completed) return;
    this.#fault(
      "PRG041",
      `${text} by ${runner.trace.label} may count in another phase of ${cell.label}`,
    );
  }

  #settle(cell: Cell): void {
    if (cell.left !== 0 || cell.bytes !== 0) return;
    for (const waiter of cell.waiters) {
      if ((cell.gathered.causal[waiter.slot] ?? 0) >= waiter.clock) continue;
      this.#fault(
        "PRG041",
        `${cell.label} may complete a phase before ${waiter.label} has seen the last one`,
      );
    }
    cell.waiters = [];
    cell.completed++;
    cell.left = cell.arrivals;
    join(cell.released, cell.gathered);
    learn(cell.released, cell.slot, cell.completed);
  }

  // Meetings: barriers and collective intrinsics.

  /** Whether everybody has come; the last one to come lets all go on. */
  #meet(
    runner: Runner,
    unit: string,
    purpose: string,
    action: (all: readonly Runner[]) => void = () => {},
  ): boolean {
    const meeting = this.#meeting(runner, unit);
    if (runner.arrived) {
      // Where the last one has come since, the event is over.
      if (meeting.rounds === runner.round) return false;
      runner.arrived = false;
      return true;
    }
    meeting.present.push(runner);
    runner.arrived = true;
    runner.round = meeting.rounds;
    if (meeting.present.length < meeting.size) return false;
    meeting.rounds++;
    const all = meeting.present.splice(0);
    const purposes = new Set(all.map((r) => purposeOf(r)));
    if (purposes.size > 1) {
      this.#fault("PRG040", `threads meet for ${[...purposes].join(" and for ")} (${purpose})`);
    }
    // Instructions of a warp wait for each other's threads, but order no memory (only bar.warp.sync would).
    if (unit !== "warp") {
      const together = emptyKnown();
      for (const other of all) join(together, other.known);
      for (const other of all) {
        takeOver(other.known, together);
        this.#tick(other);
      }
    }
    action(all);
    runner.arrived = false;
    return true;
  }

  #meeting(runner: Runner, unit: string): Meeting {
    const known = runner.meetings.get(unit);
    if (known) return known;
    const { instance, role, copy, number } = runner.trace;
    const keys: Readonly<Record<string, string>> = {
      warp: `${instance}.${role}.${copy}.${Math.floor(number / 32)}`,
      copy: `${instance}.${role}.${copy}`,
      role: `${instance}.${role}`,
      instance: `${instance}`,
      cluster: `${Math.floor(instance / this.#kernel.grid.clusterSize)}`,
      grid: "",
    };
    const key = `${unit} ${keys[unit]}`;
    let meeting = this.#meetings.get(key);
    if (!meeting) {
      meeting = { size: this.#sizeOf(runner, unit), present: [], rounds: 0 };
      this.#meetings.set(key, meeting);
    }
    runner.meetings.set(unit, meeting);
    return meeting;
  }

  #sizeOf(runner: Runner, unit: string): number {
    const { role, number } = runner.trace;
    const { threads, copies } = this.#kernel.roles.find((r) => r.name === role)!;
    const all = this.#kernel.roles.reduce((n, r) => n + r.copies * r.threads, 0);
    const first = Math.floor(number / 32) * 32;
    const sizes: Readonly<Record<string, number>> = {
      warp: Math.min(32, threads - first),
      copy: threads,
      role: threads * copies,
      instance: all,
      cluster: all * this.#targets(runner, true).length,
      grid: all * this.#traces.instances,
    };
    return sizes[unit]!;
  }

  // Tile intrinsics.

  #tile(runner: Runner, event: Extract<TraceEvent, { kind: "tile" }>): boolean {
    const { row } = event;
    if (row.collective === "thread") {
      this.#perform([runner], event);
      return true;
    }
    return this.#meet(runner, row.collective, row.name, (present) => {
      // Traces of parts hold what all share with the first thread only, whoever came first.
      const all = present.toSorted((a, b) => a.trace.number - b.trace.number);
      const fragments = row.operands.some((o) => o.fragment !== undefined);
      const expected = threadsOf[row.collective];
      if (fragments && all.length !== expected) {
        this.#fault("PRG003", `${row.name} by ${all.length} threads, not ${expected}`);
      }
      this.#perform(all, all[0]!.trace.events[all[0]!.at] as typeof event);
    });
  }

  #perform(all: readonly Runner[], event: Extract<TraceEvent, { kind: "tile" }>): void {
    const { completion } = event;
    const [leader] = all;
    if (completion.kind === "signals") {
      const all = this.#targets(
        leader!,
        completion.scope === "cluster" || event.peer !== undefined,
      );
      for (const target of event.peer === undefined ? all : [all[event.peer]!]) {
        this.#signalling(leader!, event, target);
      }
      return;
    }
    if (completion.kind === "sync") {
      this.#touchAll(all, event, undefined);
      return;
    }
    const { group } = completion;
    const batch = (leader!.committed.get(group) ?? 0) + 1;
    const slot = this.#groupSlot(leader!, event, group);
    this.#touchAll(all, event, { slot, clock: batch });
    for (const runner of all) {
      if ((runner.committed.get(group) ?? 0) + 1 !== batch) {
        this.#fault("PRG040", `${event.text}: threads of the group are in different batches`);
      }
      runner.issued.push({ group, batch, slot, clock: batch });
    }
  }

  readonly #groupSlots = new Map<string, number>();

  #groupSlot(leader: Runner, event: Extract<TraceEvent, { kind: "tile" }>, group: string): number {
    const { instance, role, copy, number } = leader.trace;
    const thread = { thread: number, warp: Math.floor(number / 32), copy: 0, role: 0 };
    const unit = event.row.collective;
    const key = `${unit} ${group} ${instance}.${role}.${copy}.${thread[unit]}`;
    let slot = this.#groupSlots.get(key);
    if (slot === undefined) {
      slot = this.#slots++;
      this.#groupSlots.set(key, slot);
    }
    return slot;
  }

  #touchAll(
    all: readonly Runner[],
    event: Extract<TraceEvent, { kind: "tile" }>,
    /** Of an asynchronous operation; a synchronous one is what each thread does itself. */
    operation: { readonly slot: number; readonly clock: number } | undefined,
  ): void {
    const isAsync = event.row.proxy === "async";
    const issued = operation && { ...operation, known: all[0]!.known, isAsync };
    for (const runner of all) {
      const { slot, known } = runner;
      const own = runner.trace.events[runner.at];
      if (own?.kind !== "tile" || own.touches.length === 0) continue;
      const by = issued ?? { slot, clock: known.seen[slot]!, known, isAsync };
      const what = (): string => `${own.text} by ${runner.trace.label}`;
      for (const touch of own.touches) {
        // Tiles that are not dealt out over the threads are touched once, as the first thread says.
        const [range] = touch.ranges;
        if (runner !== all[0] && range && !this.#shadow.isPrivate(range.object)) continue;
        this.#shadow.touch(touch, by, what);
      }
    }
  }

  #signalling(runner: Runner, event: Extract<TraceEvent, { kind: "tile" }>, target: number): void {
    const cell = this.#cell(event.place!, target);
    this.#checkPhase(runner, cell, event.text);
    const { known } = runner;
    const isAsync = event.row.proxy === "async";
    const by = { slot: cell.slot, clock: cell.completed + 1, known, isAsync };
    // Registers are an instruction's operands, read as it is issued (PTX ISA, "st.async"): the thread itself reads them.
    const itself = { ...by, slot: runner.slot, clock: known.seen[runner.slot]! };
    for (const touch of event.touches) {
      const isOperand = touch.ranges.every((r) => this.#shadow.isPrivate(r.object));
      const moved = touch.write
        ? { ...touch, ranges: touch.ranges.map((r) => elsewhere(r, runner, target)) }
        : touch;
      const who = isOperand && !touch.write ? itself : by;
      this.#shadow.touch(moved, who, () => `${event.text} by ${runner.trace.label}`);
    }
    cell.gathered.causal = joinClocks(cell.gathered.causal, known.causal);
    cell.bytes -= event.bytes;
    cell.copied = cell.completed + 1;
    this.#settle(cell);
  }

  #checkEnds(): void {
    const stuck = this.#runners.filter((r) => r.at < r.trace.events.length);
    if (stuck.length > 0) {
      const notes = stuck
        .slice(0, 8)
        .map((r) => `${r.trace.label} at ${describe(r.trace.events[r.at]!)}`);
      this.#report.add("PRG040", `${stuck.length} threads wait for ever`, {
        at: `kernel ${this.#kernel.name}`,
        notes,
        help: "check thresholds, parities, the number of arrivals and the bytes announced",
      });
      return;
    }
    for (const runner of this.#runners) {
      const [left] = runner.issued;
      if (!left) continue;
      this.#fault("PRG031", `${runner.trace.label} ends before group ${left.group} is awaited`);
      return;
    }
    this.#checkLanded();
  }

  /** A block that ends gives its shared memory away: what is copied there has to be awaited by one of its own threads. */
  #checkLanded(): void {
    const cells = [...this.#cells.values()].filter(({ copied }) => copied > 0);
    const left = cells.find(({ slot, instance, copied }) =>
      this.#runners.every((r) => {
        return r.trace.instance !== instance || (r.known.causal[slot] ?? 0) < copied;
      }),
    );
    if (left)
      this.#fault("PRG031", `the block ends before copies that ${left.label} counts are awaited`);
  }
}

/** A shared object of another instance of the cluster. */
function elsewhere<R extends { readonly object: string }>(
  range: R,
  runner: Runner,
  target: number,
): R {
  const suffix = `@${runner.trace.instance}`;
  if (!range.object.endsWith(suffix)) return range;
  return { ...range, object: `${range.object.slice(0, -suffix.length)}@${target}` };
}

function purposeOf(runner: Runner): string {
  return describe(runner.trace.events[runner.at]!);
}

function describe(event: TraceEvent): string {
  if (event.kind === "barrier") return `barrier ${event.scope}`;
  return event.kind === "tile" ? event.row.name : "text" in event ? event.text : event.kind;
}
