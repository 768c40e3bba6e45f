/**
 * Traces of a cooperative kernel: what each thread does, in order, with all loops run and all
 * expressions evaluated. Possible only where control flow and places depend on constants (parameters of
 * a given value, grid, copy, thread and loop variables); everything else is refused as too large to prove.
 * Values are not computed: an access is a list of byte ranges of an object.
 */
import { dtypes } from "../../semantics/dtype.ts";
import type { IndexExpr } from "../../semantics/index-expr.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { TileIntrinsic, TileOperand } from "../intrinsics.ts";
import type { Buffer, Kernel, Role } from "../program.ts";
import { printStatements } from "../program-text.ts";
import type { Completion, Expr, IntrinsicOperand, Statement } from "../statement.ts";
import { ownExprs, visitExpr } from "../walk.ts";
import { compileIndex, type IndexReader } from "./compile-index.ts";
import type { LaunchView } from "./launch-view.ts";
import { jumpPeriods, LoopPeriods } from "./periods.ts";
import type { Report } from "./report.ts";
import { placeOf } from "./shared-part.ts";
import type { CounterPlace, KernelTraces, ThreadTrace, TraceEvent } from "./trace-events.ts";
import { type Box, type BufferPlace, type Touch, TracedObjects } from "./traced-objects.ts";

const mostEvents = 400_000;
const mostPartEvents = 2_000_000;
/** What parts begin with; writes of less make them smaller. */
const largeGranules = { memory: 16, shared: 16, private: 1024 };

/** A part of a kernel (split-proof.ts): some instances, long loops in their first and last trips. */
export interface TracedPart {
  readonly instances: readonly number[];
  /** Buffers of the kernel that are looked at. */
  readonly kept: ReadonlySet<string>;
}

const texts = new WeakMap<Statement, string>();

/** The statement's first line; printed once for all threads and trips. */
function textOf(s: Statement): string {
  const known = texts.get(s);
  if (known !== undefined) return known;
  const text = printStatements([s]).trim().split("\n")[0]!.slice(0, 90);
  texts.set(s, text);
  return text;
}

/** Threads of one instruction, counted from the first of them. */
const meetingThreads = { warp: 32, copy: 128, role: 1, thread: 1 } as const;

/** Thrown to leave the walk; the reason has been reported. */
class NotConstant extends Error {}

/** The traces for these parameter values, or undefined after a report of why there are none. */
export function traceKernel(
  view: LaunchView,
  given: ReadonlyMap<string, number>,
  report: Report,
  part?: TracedPart,
): KernelTraces | undefined {
  try {
    return new Tracer(view, report, part).run(given);
  } catch (error) {
    if (error instanceof NotConstant) return undefined;
    throw error;
  }
}

interface Activation {
  readonly role: Role;
  readonly instance: number;
  readonly copy: number;
  readonly number: number;
  readonly env: Map<string, number>;
  readonly events: TraceEvent[];
  /** Trips of the loops around, for labels. */
  readonly loops: string[];
  readonly places: Map<Buffer, BufferPlace>;
  /** What each access of a single range did last, by its number. */
  readonly last: TouchEvent[];
  /** What the operands of instructions were last, and where. */
  readonly tiles: Map<IntrinsicOperand, TracedTile>;
}

interface TracedTile {
  readonly index: readonly number[];
  readonly touches: readonly Touch[];
}

type TouchEvent = Extract<TraceEvent, { kind: "touch" }>;

/** A load or a store of a statement, ready to be evaluated; numbered within the kernel. */
interface Site {
  readonly number: number;
  readonly buffer: Buffer;
  readonly index: readonly IndexReader[];
  readonly guard: readonly { readonly isZero: boolean; readonly read: IndexReader }[];
  /** Elements of the buffer from the index on. */
  readonly span: number;
  readonly write: boolean;
  readonly text: string;
}

interface Sites {
  readonly loads: readonly Site[];
  readonly store: Site | undefined;
}

/** A loop's trips that come again: what each phase of a period did. */
interface Again {
  readonly head: number;
  readonly end: number;
  readonly period: number;
  readonly events: (readonly TraceEvent[])[];
}

class Tracer {
  readonly #view: LaunchView;
  readonly #report: Report;
  readonly #objects: TracedObjects;
  readonly #sites = new Map<Statement, Sites>();
  #siteCount = 0;
  readonly #part: TracedPart | undefined;
  readonly #periods: LoopPeriods | undefined;
  readonly #readers = new WeakMap<IndexExpr, IndexReader>();
  #events = 0;

  constructor(view: LaunchView, report: Report, part: TracedPart | undefined) {
    this.#view = view;
    this.#report = report;
    this.#part = part;
    this.#periods = part && new LoopPeriods(view);
    const tools = {
      value: (e: IndexExpr, env: ReadonlyMap<string, number>) => this.#value(e, env),
      refuse: (what: string) => this.#refuse(what),
      outside: (what: string) => this.#outside(what),
    };
    this.#objects = new TracedObjects(view, tools, part && largeGranules);
  }

  get #kernel(): Kernel {
    return this.#view.kernel;
  }

  run(given: ReadonlyMap<string, number>): KernelTraces {
    const env = new Map(given);
    for (const [name, range] of this.#view.facts.ranges) {
      if (range.min === range.max) env.set(name, range.min);
    }
    for (const axis of this.#kernel.grid.axes) env.delete(axis.name);
    const extents = this.#kernel.grid.axes.map((a) => this.#value(a.extent, env));
    const instances = extents.reduce((a, b) => a * b, 1);
    const threads: ThreadTrace[] = [];
    const names = this.#kernel.grid.axes.map((a) => a.name);
    for (let i = 0; i < (this.#part?.instances.length ?? instances); i++) {
      const instance = this.#part?.instances[i] ?? i;
      const at = new Map([...env, ...placeOf(instance, names, extents)]);
      for (const role of this.#kernel.roles) this.#role(role, instance, at, threads);
    }
    return { threads, objects: this.#objects.infos, instances };
  }

  #refuse(what: string): never {
    this.#report.add("PRG060", `${what} in cooperative kernel ${this.#kernel.name}`, {
      notes: ["threads that synchronise are proved by running all of them on constants"],
      help: "fix the parameter (min = max), or narrow it to a few values",
    });
    throw new NotConstant();
  }

  #value(e: IndexExpr, env: ReadonlyMap<string, number>): number {
    return this.#reader(e)(env);
  }

  #reader(e: IndexExpr): IndexReader {
    let read = this.#readers.get(e);
    if (!read) {
      read = compileIndex(e, (name) => this.#refuse(`${e.key} depends on ${name}`));
      this.#readers.set(e, read);
    }
    return read;
  }

  #role(
    role: Role,
    instance: number,
    outer: ReadonlyMap<string, number>,
    threads: ThreadTrace[],
  ): void {
    for (let copy = 0; copy < role.copies; copy++) {
      for (let number = 0; number < role.threads; number++) {
        const env = new Map(outer);
        const loops: string[] = [];
        if (role.copyVariable !== undefined) env.set(role.copyVariable, copy);
        if (role.threadVariable !== undefined) env.set(role.threadVariable, number);
        const events: TraceEvent[] = [];
        const own = { places: new Map(), last: [], tiles: new Map() };
        this.#body(role.body, { role, instance, copy, number, env, events, loops, ...own });
        const label = `${role.name}[${copy}].${number} of instance ${instance}`;
        threads.push({ label, role: role.name, instance, copy, number, events });
      }
    }
  }

  #body(body: readonly Statement[], thread: Activation): void {
    for (const s of body) this.#statement(s, thread);
  }

  #push(thread: Activation, event: TraceEvent): void {
    const most = this.#part ? mostPartEvents : mostEvents;
    if (++this.#events > most) this.#refuse(`more than ${most} steps`);
    thread.events.push(event);
  }

  #statement(s: Statement, thread: Activation): void {
    const { env } = thread;
    const { loads, store } = this.#sitesOf(s);
    for (const load of loads) if (holds(load, env)) this.#touch(load, thread);
    switch (s.kind) {
      case "for":
        this.#loop(s, thread);
        return;
      case "if": {
        const isSo = s.conditions.every((c) => {
          const value = this.#value(c.expr, env);
          return c.kind === "zero" ? value === 0 : value >= 0;
        });
        this.#body(isSo ? s.then : s.else, thread);
        return;
      }
      case "when":
      case "letIndex":
        this.#refuse(`${s.kind} (control by data)`);
        return;
      case "let":
        return;
      case "store":
        this.#touch(store!, thread);
        return;
      case "intrinsic":
        this.#intrinsic(s, thread);
        return;
      case "launchDependents":
      case "awaitPrerequisites":
        // They order launches, not threads of one.
        return;
      default:
        this.#push(thread, this.#sync(s, thread));
    }
  }

  #loop(s: Extract<Statement, { kind: "for" }>, thread: Activation): void {
    const { env } = thread;
    const extent = this.#value(s.extent, env);
    let [from, to] = [0, extent];
    const { mode } = s;
    if (mode.kind === "grid") {
      const axis = this.#kernel.grid.axes.find((a) => a.name === mode.axis)!;
      const chunk = Math.ceil(extent / this.#value(axis.extent, env));
      from = chunk * env.get(axis.name)!;
      to = Math.min(extent, from + chunk);
    }
    const jump = this.#jump(s, extent);
    const again = this.#again(s, extent);
    for (let i = from; i < to; i++) {
      env.set(s.variable, i);
      if (jump && i >= jump.from - jump.period && i <= jump.from) {
        const label = `${s.variable} of ${thread.loops.join()}`;
        if (i === jump.from - jump.period) this.#cut(thread, label, false);
        if (i === jump.from) {
          this.#cut(thread, label, true);
          i = jump.to;
          if (i >= to) break;
          env.set(s.variable, i);
        }
      }
      this.#trip(s, i, thread, again);
    }
    env.delete(s.variable);
  }

  /** One trip; what a period before it did is done again without being evaluated. */
  #trip(
    s: Extract<Statement, { kind: "for" }>,
    trip: number,
    thread: Activation,
    again: Again | undefined,
  ): void {
    const isInside = again !== undefined && trip >= again.head && trip < again.end;
    const phase = isInside ? (trip - again.head) % again.period : -1;
    const known = isInside ? again.events[phase] : undefined;
    if (known) {
      for (const event of known) this.#push(thread, event);
      return;
    }
    const start = thread.events.length;
    thread.loops.push(`${s.variable}=${trip}`);
    this.#body(s.body, thread);
    thread.loops.pop();
    if (!isInside) return;
    const events = thread.events.slice(start);
    if (!events.some((e) => e.kind === "cut")) again.events[phase] = events;
  }

  #again(s: Extract<Statement, { kind: "for" }>, trips: number): Again | undefined {
    const found = this.#periods?.of(s.variable, trips);
    return found && { ...found, end: trips - found.tail, events: [] };
  }

  #cut(thread: Activation, loop: string, closes: boolean): void {
    const label = `${closes ? "end" : "start"} of a period of ${loop}`;
    this.#push(thread, { kind: "cut", label, loop, closes });
  }

  /** The trips that need not be run: from `from` on, the trip `to` finds the same state. */
  #jump(
    s: Extract<Statement, { kind: "for" }>,
    trips: number,
  ): { readonly from: number; readonly to: number; readonly period: number } | undefined {
    const found = this.#periods?.of(s.variable, trips);
    if (!found) return undefined;
    const { period, head, tail } = found;
    const from = head + jumpPeriods * period;
    const to = from + Math.floor((trips - tail - from) / period) * period;
    return to > from ? { from, to, period } : undefined;
  }

  #sync(
    s: Extract<
      Statement,
      { kind: "commitGroup" | "waitGroup" | "wait" | "signal" | "expect" | "barrier" | "fence" }
    >,
    thread: Activation,
  ): TraceEvent {
    const { env } = thread;
    const text = textOf(s);
    switch (s.kind) {
      case "commitGroup":
        return { kind: "commit", group: s.group, pending: 0 };
      case "waitGroup":
        return { kind: "await", group: s.group, pending: s.pending };
      case "wait":
        return { kind: "wait", place: this.#cell(s, env), value: this.#value(s.value, env), text };
      case "signal": {
        const amount = this.#value(s.amount, env);
        const cluster = s.scope === "cluster";
        return { kind: "signal", place: this.#cell(s, env), amount, cluster, text };
      }
      case "expect": {
        const amount = this.#value(s.bytes, env);
        return { kind: "expect", place: this.#cell(s, env), amount, cluster: false, text };
      }
      case "barrier":
        return { kind: "barrier", scope: s.scope };
      case "fence":
        return { kind: "fence", scope: s.scope };
    }
  }

  #cell(
    s: { readonly counter: string; readonly index: readonly IndexExpr[] },
    env: ReadonlyMap<string, number>,
  ): CounterPlace {
    const counter = this.#kernel.counters.find((c) => c.name === s.counter);
    if (!counter) this.#refuse(`counter ${s.counter} of scope memory`);
    let at = 0;
    for (const [axis, e] of counter.shape.entries()) {
      const extent = this.#value(e, env);
      const i = this.#value(s.index[axis]!, env);
      if (i < 0 || i >= extent) this.#outside(`${s.counter}[${i}]`);
      at = at * extent + i;
    }
    return { counter: s.counter, at };
  }

  #outside(what: string): never {
    this.#report.add("PRG010", `${what} in kernel ${this.#kernel.name}`);
    throw new NotConstant();
  }

  #sitesOf(s: Statement): Sites {
    const known = this.#sites.get(s);
    if (known) return known;
    const loads: Site[] = [];
    for (const expr of ownExprs(s)) {
      visitExpr(expr, (e) => {
        if (e.kind === "load") loads.push(this.#site(s, { ...e, write: false }));
      });
    }
    const store =
      s.kind === "store"
        ? this.#site(s, { ...s, guard: [], lanes: s.value.lanes, write: true })
        : undefined;
    const sites = { loads, store };
    this.#sites.set(s, sites);
    return sites;
  }

  #site(
    s: Statement,
    access: Pick<Extract<Expr, { kind: "load" }>, "buffer" | "index" | "guard" | "lanes"> & {
      readonly write: boolean;
    },
  ): Site {
    const buffer = this.#view.buffers.get(access.buffer)!;
    return {
      number: this.#siteCount++,
      buffer,
      index: access.index.map((e) => this.#reader(e)),
      guard: access.guard.map((c) => ({ isZero: c.kind === "zero", read: this.#reader(c.expr) })),
      span: access.lanes / buffer.lanes,
      write: access.write,
      text: textOf(s),
    };
  }

  #touch(site: Site, thread: Activation): void {
    const { buffer, index, span, write, text } = site;
    const place = this.#objects.placeOf(buffer, thread);
    const { shape } = place;
    const last = shape.length - 1;
    let offset = 0;
    for (let axis = 0; axis <= last; axis++) {
      const i = index[axis]!(thread.env);
      const extent = shape[axis]!;
      if (i < 0 || i + (axis === last ? span : 1) > extent) this.#failAt(site, thread);
      offset = offset * extent + i;
    }
    const range = this.#objects.rangeOf(place, offset, offset + (last < 0 ? 1 : span));
    const before = thread.last[site.number];
    if (before && before.touch.ranges[0]!.from === range.from) {
      this.#push(thread, before);
      return;
    }
    const event: TouchEvent = { kind: "touch", touch: { write, ranges: [range] }, text };
    thread.last[site.number] = event;
    if (write) this.#objects.narrow(event.touch.ranges);
    this.#push(thread, event);
  }

  #failAt({ buffer, index: readers, span }: Site, thread: Activation): never {
    const index = readers.map((read) => read(thread.env));
    const extents = index.map((_, axis) => (axis === index.length - 1 ? span : 1));
    const { shape } = this.#objects.placeOf(buffer, thread);
    return this.#objects.fail(buffer, { index, extents, clips: false }, shape);
  }

  #intrinsic(s: Extract<Statement, { kind: "intrinsic" }>, thread: Activation): void {
    const row = findTileIntrinsic(s.intrinsic)!;
    const touches = s.operands.flatMap((o, i) => this.#operand(row, i, { given: o, thread }));
    const { completion } = s;
    const place = completion.kind === "signals" ? this.#cell(completion, thread.env) : undefined;
    const text = textOf(s);
    const peer = this.#peer(completion, thread.env);
    const [first] = s.operands;
    const bytes = first ? this.#boxBytes(first) : 0;
    this.#push(thread, { kind: "tile", row, touches, completion, place, peer, bytes, text });
  }

  #peer(completion: Completion, env: ReadonlyMap<string, number>): number | undefined {
    if (completion.kind !== "signals" || completion.peer === undefined) return undefined;
    const rank = this.#value(completion.peer, env);
    const { clusterSize } = this.#kernel.grid;
    if (rank < 0 || rank >= clusterSize) this.#outside(`peer ${rank} of ${clusterSize}`);
    return rank;
  }

  /** Of a tile that a warp or a copy of a role moves together only the first thread's word counts. */
  #isTold(
    { scope }: Buffer,
    { fragment }: TileOperand,
    row: TileIntrinsic,
    first: number,
  ): boolean {
    if (fragment !== undefined || scope !== "shared") return true;
    return first % meetingThreads[row.collective] === 0;
  }

  #boxBytes(operand: IntrinsicOperand): number {
    if (operand.kind !== "tile") return 0;
    const { dtype } = this.#view.buffers.get(operand.buffer)!;
    return (operand.extents.reduce((a, b) => a * b, 1) * dtypes[dtype].bits) / 8;
  }

  #operand(
    row: TileIntrinsic,
    number: number,
    { given, thread }: { readonly given: IntrinsicOperand; readonly thread: Activation },
  ): readonly Touch[] {
    const wanted = row.operands[number]!;
    if (given.kind !== "tile") return [];
    if (this.#part && !this.#part.kept.has(given.buffer)) return [];
    const buffer = this.#view.buffers.get(given.buffer)!;
    const isTold = this.#isTold(buffer, wanted, row, thread.number);
    if (this.#part && !isTold) return [];
    const before = thread.tiles.get(given);
    if (before && this.#isAt(given.index, before.index, thread.env)) return before.touches;
    const index = given.index.map((e) => this.#value(e, thread.env));
    const box = { index, extents: given.extents, clips: wanted.mayHangOver };
    const touches = isTold ? this.#touchesOf(wanted, buffer, box, thread) : [];
    if (!isTold) this.#objects.checkBox(buffer, box, thread);
    thread.tiles.set(given, { index, touches });
    return touches;
  }

  /** Whether all index expressions have these values. */
  #isAt(
    index: readonly IndexExpr[],
    values: readonly number[],
    env: ReadonlyMap<string, number>,
  ): boolean {
    for (let axis = 0; axis < index.length; axis++) {
      if (this.#value(index[axis]!, env) !== values[axis]) return false;
    }
    return true;
  }

  #touchesOf(
    { access }: TileOperand,
    buffer: Buffer,
    box: Box,
    thread: Activation,
  ): readonly Touch[] {
    const ranges = this.#objects.boxOf(buffer, box, thread);
    if (access !== "read") this.#objects.narrow(ranges);
    const read = { write: false, ranges };
    const write = { write: true, ranges };
    if (access === "readWrite") return [read, write];
    return [access === "read" ? read : write];
  }
}

function holds({ guard }: Site, env: ReadonlyMap<string, number>): boolean {
  for (const { isZero, read } of guard) {
    const value = read(env);
    if (isZero ? value !== 0 : value < 0) return false;
  }
  return true;
}
