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
import { type LaunchView, rootOf } from "./launch-view.ts";
import { jumpPeriods, LoopPeriods } from "./periods.ts";
import type { Report } from "./report.ts";
import { placeOf } from "./shared-part.ts";

/** A buffer of one instance or thread, or of scope memory: the key says whose. */
export interface ByteRange {
  readonly object: string;
  readonly from: number;
  readonly to: number;
}

export interface Touch {
  readonly write: boolean;
  readonly ranges: readonly ByteRange[];
}

export interface CounterPlace {
  readonly counter: string;
  readonly at: number;
}

export type TraceEvent =
  | { readonly kind: "touch"; readonly touch: Touch; readonly text: string }
  | {
      readonly kind: "tile";
      readonly row: TileIntrinsic;
      readonly touches: readonly Touch[];
      readonly completion: Completion;
      readonly place: CounterPlace | undefined;
      /** The rank in the cluster of whose counter it is, where that is another instance's. */
      readonly peer: number | undefined;
      readonly bytes: number;
      readonly text: string;
    }
  | { readonly kind: "commit" | "await"; readonly group: string; readonly pending: number }
  | {
      readonly kind: "wait";
      readonly place: CounterPlace;
      readonly value: number;
      readonly text: string;
    }
  | {
      readonly kind: "signal" | "expect";
      readonly place: CounterPlace;
      readonly amount: number;
      readonly cluster: boolean;
      readonly text: string;
    }
  | { readonly kind: "barrier"; readonly scope: BarrierScope }
  | { readonly kind: "fence"; readonly scope: "shared" | "memory" }
  /** A place that all threads of a loop come by; `closes` where a period of the loop ends. */
  | {
      readonly kind: "cut";
      readonly label: string;
      readonly loop: string;
      readonly closes: boolean;
    };

type BarrierScope = Extract<Statement, { kind: "barrier" }>["scope"];

export interface ThreadTrace {
  readonly label: string;
  readonly role: string;
  readonly instance: number;
  readonly copy: number;
  readonly number: number;
  readonly events: readonly TraceEvent[];
}

export interface ObjectInfo {
  readonly byteCount: number;
  /** Bytes that are looked at together: every write is of whole ones. */
  granule: number;
  readonly scope: "memory" | "shared" | "private";
  /** Program buffer behind it. */
  readonly root: string | undefined;
}

export interface KernelTraces {
  readonly threads: readonly ThreadTrace[];
  readonly objects: ReadonlyMap<string, ObjectInfo>;
  readonly instances: number;
}

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
  /** The instruction whose operands are looked at. */
  readonly row?: TileIntrinsic;
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
  readonly #objects = new Map<string, ObjectInfo>();
  readonly #part: TracedPart | undefined;
  readonly #periods: LoopPeriods | undefined;
  readonly #readers = new WeakMap<IndexExpr, IndexReader>();
  #events = 0;

  constructor(view: LaunchView, report: Report, part: TracedPart | undefined) {
    this.#view = view;
    this.#report = report;
    this.#part = part;
    this.#periods = part && new LoopPeriods(view);
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
    return { threads, objects: this.#objects, instances };
  }

  #refuse(what: string): never {
    this.#report.add("PRG060", `${what} in cooperative kernel ${this.#kernel.name}`, {
      notes: ["threads that synchronise are proved by running all of them on constants"],
      help: "fix the parameter (min = max), or narrow it to a few values",
    });
    throw new NotConstant();
  }

  #value(e: IndexExpr, env: ReadonlyMap<string, number>): number {
    let read = this.#readers.get(e);
    if (!read) {
      read = compileIndex(e, (name) => this.#refuse(`${e.key} depends on ${name}`));
      this.#readers.set(e, read);
    }
    return read(env);
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
        this.#body(role.body, { role, instance, copy, number, env, events, loops });
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
    for (const expr of ownExprs(s)) this.#loads(expr, s, thread);
    switch (s.kind) {
      case "for":
        this.#loop(s, thread);
        return;
      case "if": {
        const holds = s.conditions.every((c) => {
          const value = this.#value(c.expr, env);
          return c.kind === "zero" ? value === 0 : value >= 0;
        });
        this.#body(holds ? s.then : s.else, thread);
        return;
      }
      case "when":
      case "letIndex":
        this.#refuse(`${s.kind} (control by data)`);
        return;
      case "let":
        return;
      case "store":
        this.#touch(s, { ...s, lanes: s.value.lanes, write: true }, thread);
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

  #loads(expr: Expr, s: Statement, thread: Activation): void {
    visitExpr(expr, (e) => {
      if (e.kind !== "load") return;
      const holds = e.guard.every((c) => {
        const value = this.#value(c.expr, thread.env);
        return c.kind === "zero" ? value === 0 : value >= 0;
      });
      if (holds) this.#touch(s, { ...e, write: false }, thread);
    });
  }

  #touch(
    s: Statement,
    access: {
      readonly buffer: string;
      readonly index: readonly IndexExpr[];
      readonly lanes: number;
      readonly write: boolean;
    },
    thread: Activation,
  ): void {
    const buffer = this.#view.buffers.get(access.buffer)!;
    const index = access.index.map((e) => this.#value(e, thread.env));
    const span = access.lanes / buffer.lanes;
    const extents = index.map((_, axis) => (axis === index.length - 1 ? span : 1));
    const ranges = this.#box(buffer, { index, extents, clips: false }, thread);
    if (access.write) this.#narrow(ranges);
    const text = textOf(s);
    this.#push(thread, { kind: "touch", touch: { write: access.write, ranges }, text });
  }

  /** Granules of an object become as small as the ranges that are written. */
  #narrow(ranges: readonly ByteRange[]): void {
    for (const { object, from, to } of ranges) {
      const info = this.#objects.get(object)!;
      while (from % info.granule !== 0 || to % info.granule !== 0) info.granule /= 2;
    }
  }

  /** Byte ranges of a box; outside is a fault, or left out where the operand may hang over. */
  #box(
    buffer: Buffer,
    box: {
      readonly index: readonly number[];
      readonly extents: readonly number[];
      readonly clips: boolean;
    },
    thread: Activation,
  ): ByteRange[] {
    const object = this.#object(buffer, thread);
    const shape = buffer.shape.map((e) => this.#value(e, thread.env));
    const bits = dtypes[buffer.dtype].bits * buffer.lanes;
    const lead = box.index.length - box.extents.length;
    const ranges: ByteRange[] = [];
    const visit = (axis: number, offset: number): void => {
      const extent = shape[axis];
      if (extent === undefined) {
        ranges.push({
          object,
          from: Math.floor((offset * bits) / 8),
          to: Math.ceil(((offset + 1) * bits) / 8),
        });
        return;
      }
      const first = box.index[axis]!;
      const count = axis < lead ? 1 : box.extents[axis - lead]!;
      if (!box.clips && (first < 0 || first + count > extent)) {
        this.#outside(`${buffer.name}[${box.index}] (box [${box.extents}]) of shape [${shape}]`);
      }
      const from = Math.max(0, first);
      const to = Math.min(extent, first + count);
      if (to <= from) return;
      if (axis === shape.length - 1) {
        const start = offset * extent + from;
        const end = offset * extent + to;
        ranges.push({
          object,
          from: Math.floor((start * bits) / 8),
          to: Math.ceil((end * bits) / 8),
        });
        return;
      }
      for (let i = from; i < to; i++) visit(axis + 1, offset * extent + i);
    };
    visit(0, 0);
    return ranges;
  }

  #object(buffer: Buffer, thread: Activation): string {
    const roots = this.#view.roots.get(buffer.name);
    if (roots && roots.length > 1) this.#refuse(`table ${buffer.name}`);
    const own = this.#kernel.buffers;
    const name = roots?.[0] ?? rootOf(own, buffer.name);
    const root = roots ? this.#view.buffers.get(name)! : own.find((b) => b.name === name)!;
    const whose = { memory: "", shared: `@${thread.instance}` } as const;
    const key =
      root.scope === "memory" || root.scope === "shared"
        ? `${name}${whose[root.scope]}`
        : `${name}@${thread.instance}.${thread.role.name}.${thread.copy}.${thread.number}`;
    if (this.#objects.has(key)) return key;
    const count = root.shape.reduce((n, e) => n * this.#value(e, thread.env), root.lanes);
    const byteCount = Math.ceil((count * dtypes[root.dtype].bits) / 8);
    if (byteCount > 1 << 24) this.#refuse(`${name} of ${byteCount} bytes`);
    const sizes = [...this.#view.buffers.values()].map((b) =>
      Math.max(1, dtypes[b.dtype].bits / 8),
    );
    const scope = root.scope === "memory" || root.scope === "shared" ? root.scope : "private";
    const granule = this.#part ? largeGranules[scope] : Math.min(4, ...sizes);
    this.#objects.set(key, { byteCount, granule, scope, root: roots ? name : undefined });
    return key;
  }

  #intrinsic(s: Extract<Statement, { kind: "intrinsic" }>, thread: Activation): void {
    const row = findTileIntrinsic(s.intrinsic)!;
    const within = { ...thread, row };
    const touches = s.operands.flatMap((o, i) => this.#operand(row.operands[i]!, o, within));
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
  #isTold({ scope }: Buffer, { fragment }: TileOperand, { number, row }: Activation): boolean {
    if (fragment !== undefined || scope !== "shared" || !row) return true;
    return number % meetingThreads[row.collective] === 0;
  }

  #boxBytes(operand: IntrinsicOperand): number {
    if (operand.kind !== "tile") return 0;
    const { dtype } = this.#view.buffers.get(operand.buffer)!;
    return (operand.extents.reduce((a, b) => a * b, 1) * dtypes[dtype].bits) / 8;
  }

  #operand(wanted: TileOperand, given: IntrinsicOperand, thread: Activation): readonly Touch[] {
    if (given.kind !== "tile") return [];
    if (this.#part && !this.#part.kept.has(given.buffer)) return [];
    const buffer = this.#view.buffers.get(given.buffer)!;
    if (this.#part && !this.#isTold(buffer, wanted, thread)) return [];
    const index = given.index.map((e) => this.#value(e, thread.env));
    const box = { index, extents: given.extents, clips: wanted.mayHangOver };
    const ranges = this.#box(buffer, box, thread);
    if (wanted.access !== "read") this.#narrow(ranges);
    const read = { write: false, ranges };
    const write = { write: true, ranges };
    if (wanted.access === "readWrite") return [read, write];
    return [wanted.access === "read" ? read : write];
  }
}
