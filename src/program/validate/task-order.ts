/**
 * Launches that wait for counters instead of for everything before them. The tasks are written out,
 * trip by trip (counts must be constants), and for each launch it is derived which others must have
 * ended before it starts:
 * - after `previous`: all earlier ones;
 * - a wait for a threshold T: each launch without one of whose signals T cannot be reached, counting
 *   all signals of launches that are not known to start later. Signals of later launches are left out
 *   only where those in turn need this one: at the first signal that came too early, its launch would
 *   have started against its own prerequisites, which hold until then.
 * Required: thresholds can be reached by launches that come before in the text (so running in program
 * order is one way to finish, and no cycle of waits exists), and any two launches that touch a buffer,
 * one of them writing, or two buffers that share bytes, are ordered.
 */
import { constantValue, evaluate, type IndexExpr } from "../../semantics/index-expr.ts";
import type { Program, Task } from "../program.ts";
import { rootOf, someStatement } from "./launch-view.ts";
import type { Report } from "./report.ts";
import type { TaskRecords } from "./tasks.ts";

interface Signal {
  readonly cell: string;
  readonly amount: number;
  readonly instances: number;
}

interface Flat {
  readonly kernel: string;
  readonly label: string;
  readonly after: "previous" | "started" | "counters";
  readonly waits: readonly { readonly cell: string; readonly threshold: number }[];
  readonly signals: readonly Signal[];
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
  /** May be left out by a condition on data. */
  readonly maybe: boolean;
}

const mostLaunches = 3000;

/** Thrown to leave the walk; the reason has been reported. */
class NotFlat extends Error {}

export function checkTaskOrder(program: Program, records: TaskRecords, report: Report): void {
  if (!usesCounters(program.tasks)) return;
  try {
    const flat = new Flattening(program, records, report).run();
    checkOrder(flat, report);
  } catch (error) {
    if (!(error instanceof NotFlat)) throw error;
  }
}

/** Whether some launch waits for counters only. */
export function usesCounters(tasks: readonly Task[]): boolean {
  return tasks.some((t) => {
    if (t.kind === "launch") return t.after === "counters" || t.waits.length > 0;
    if (t.kind === "if") return usesCounters(t.then) || usesCounters(t.else);
    return t.kind !== "stop" && usesCounters(t.body);
  });
}

class Flattening {
  readonly #program: Program;
  readonly #records: TaskRecords;
  readonly #report: Report;
  readonly #flat: Flat[] = [];
  #position = 0;

  constructor(program: Program, records: TaskRecords, report: Report) {
    this.#program = program;
    this.#records = records;
    this.#report = report;
  }

  run(): readonly Flat[] {
    const env = new Map<string, number>();
    for (const p of this.#program.parameters) if (p.min === p.max) env.set(p.name, p.min);
    this.#list(this.#program.tasks, { env, rows: new Map(), maybe: false });
    return this.#flat;
  }

  #refuse(what: string): never {
    this.#report.add("PRG060", `${what}, among launches that wait for counters`, {
      help: "make it a constant, or order the launches after the previous ones",
    });
    throw new NotFlat();
  }

  #value(e: IndexExpr, env: ReadonlyMap<string, number>): number {
    const known = constantValue(e);
    if (known !== undefined) return known;
    const names = e.terms.flatMap((t) => t.atoms).map((a) => (a.kind === "variable" ? a.name : ""));
    if (names.some((name) => !env.has(name))) this.#refuse(`${e.key} varies`);
    return evaluate(e, env);
  }

  #list(tasks: readonly Task[], at: Around): void {
    for (const task of tasks) this.#task(task, at);
  }

  #task(task: Task, at: Around): void {
    switch (task.kind) {
      case "stop":
        return;
      case "launch":
        this.#launch(task, at);
        return;
      case "if": {
        const maybe = { ...at, maybe: true };
        this.#list(task.then, maybe);
        this.#list(task.else, maybe);
        return;
      }
      case "while":
        if (usesCounters(task.body) || signalsAny(task.body)) this.#refuse("a while loop");
        this.#list(task.body, { ...at, maybe: true });
        return;
      case "repeat":
        this.#repeat(task, at);
    }
  }

  #repeat(task: Extract<Task, { kind: "repeat" }>, at: Around): void {
    const count = this.#value(task.count, at.env);
    const first = this.#position;
    for (let i = 0; i < count; i++) {
      this.#position = first;
      const rows = new Map(at.rows);
      for (const t of task.tables) rows.set(t.name, t.rows[i] ?? t.name);
      this.#list(task.body, { ...at, env: new Map(at.env).set(task.variable, i), rows });
    }
    if (count === 0) this.#position = first + launchesIn(task.body);
  }

  #launch(task: Extract<Task, { kind: "launch" }>, at: Around): void {
    const record = this.#records.launches[this.#position++]!;
    if (this.#flat.length >= mostLaunches) this.#refuse(`more than ${mostLaunches} launches`);
    const { kernel } = record.view;
    const inside = (s: { readonly kind: string }): boolean => s.kind === "wait";
    if (kernel.roles.some((r) => someStatement(r.body, inside)) && kernel.counters.length === 0) {
      this.#refuse("a kernel that waits for a counter of scope memory");
    }
    const instances = kernel.grid.axes.reduce(
      (n, a) => n * (task.signals.length > 0 ? this.#value(a.extent, at.env) : 1),
      1,
    );
    const index = (e: readonly IndexExpr[]): string => e.map((x) => this.#value(x, at.env)).join();
    const { buffers } = this.#program;
    const own = (roots: ReadonlySet<string>): Set<string> => {
      const tables = [...at.rows.keys()].map((name) => record.view.roots.get(name) ?? []);
      const others = new Set(tables.flat());
      const kept = [...roots].filter((r) => !others.has(r));
      const rows = [...at.rows].flatMap(([name, row]) =>
        (record.view.roots.get(name) ?? []).some((r) => roots.has(r)) ? [rootOf(buffers, row)] : [],
      );
      return new Set([...kept, ...rows]);
    };
    this.#flat.push({
      kernel: kernel.name,
      label: `launch ${this.#flat.length} (${kernel.name}${[...at.env].map(([n, v]) => ` ${n}=${v}`).join("")})`,
      after: task.after,
      waits: task.waits.map((w) => ({
        cell: `${w.counter}[${index(w.index)}]`,
        threshold: this.#value(w.threshold, at.env),
      })),
      signals: task.signals.map((s) => ({
        cell: `${s.counter}[${index(s.index)}]`,
        amount: this.#value(s.amount, at.env),
        instances,
      })),
      reads: own(record.footprint.reads),
      writes: own(record.footprint.writes),
      maybe: at.maybe,
    });
  }
}

interface Around {
  readonly env: ReadonlyMap<string, number>;
  /** Row that each table stands for in this trip. */
  readonly rows: ReadonlyMap<string, string>;
  readonly maybe: boolean;
}

function launchesIn(tasks: readonly Task[]): number {
  return tasks.reduce((n, t) => {
    if (t.kind === "launch") return n + 1;
    if (t.kind === "if") return n + launchesIn(t.then) + launchesIn(t.else);
    return t.kind === "stop" ? n : n + launchesIn(t.body);
  }, 0);
}

function signalsAny(tasks: readonly Task[]): boolean {
  return tasks.some((t) => {
    if (t.kind === "launch") return t.signals.length > 0;
    if (t.kind === "if") return signalsAny(t.then) || signalsAny(t.else);
    return t.kind !== "stop" && signalsAny(t.body);
  });
}

function checkOrder(flat: readonly Flat[], report: Report): void {
  checkReachable(flat, report);
  const before = prerequisites(flat);
  for (const [j, b] of flat.entries()) {
    for (let i = 0; i < j; i++) {
      const a = flat[i]!;
      const shared = conflict(a, b);
      if (shared === undefined || before[j]!.has(i)) continue;
      report.add("PRG030", `${a.label} and ${b.label} may run at once and both touch ${shared}`, {
        help: "wait for a counter that the first one signals, with the threshold of all its signals",
      });
    }
  }
}

function conflict(a: Flat, b: Flat): string | undefined {
  for (const root of a.writes) if (b.writes.has(root) || b.reads.has(root)) return root;
  for (const root of b.writes) if (a.reads.has(root)) return root;
  return undefined;
}

function total(launch: Flat, cell: string): number {
  return launch.signals
    .filter((s) => s.cell === cell)
    .reduce((n, s) => n + s.amount * s.instances, 0);
}

/** Every threshold is reached by what surely runs before in program order. */
function checkReachable(flat: readonly Flat[], report: Report): void {
  const sure = new Map<string, number>();
  for (const launch of flat) {
    for (const { cell, threshold } of launch.waits) {
      const have = sure.get(cell) ?? 0;
      if (have >= threshold) continue;
      report.add("PRG040", `${launch.label} waits for ${cell} >= ${threshold}`, {
        notes: [`launches before it in program order surely signal ${have}`],
        help: "lower the threshold, or move the launch after those that signal",
      });
    }
    if (launch.maybe) continue;
    for (const { cell, amount, instances } of launch.signals) {
      sure.set(cell, (sure.get(cell) ?? 0) + amount * instances);
    }
  }
}

/** For each launch those that have surely ended when it starts (transitively). */
function prerequisites(flat: readonly Flat[]): readonly ReadonlySet<number>[] {
  const extra = flat.map(() => new Set<number>());
  for (;;) {
    const before = flat.map((_, j) => new Set<number>(directly(flat, j, extra[j]!)));
    close(before);
    let grown = false;
    for (const [j, launch] of flat.entries()) {
      for (const { cell } of launch.waits) {
        for (let k = j + 1; k < flat.length; k++) {
          if (extra[j]!.has(k) || before[k]!.has(j) || total(flat[k]!, cell) === 0) continue;
          extra[j]!.add(k);
          grown = true;
        }
      }
    }
    if (!grown) return before;
  }
}

function directly(flat: readonly Flat[], j: number, extra: ReadonlySet<number>): number[] {
  const launch = flat[j]!;
  // What starts before others have ended awaits them before it touches what they do (dependents.ts).
  if (launch.after !== "counters") return Array.from({ length: j }, (_, i) => i);
  const needed = new Set<number>();
  // Whatever is ordered after `previous` earlier on has ended before anything later starts.
  for (let i = j - 1; i >= 0; i--) {
    if (flat[i]!.after === "counters") continue;
    for (let p = 0; p < i; p++) needed.add(p);
    break;
  }
  for (const { cell, threshold } of launch.waits) {
    const able = [...Array(j).keys(), ...extra].filter((i) => total(flat[i]!, cell) > 0);
    const all = able.reduce((n, i) => n + total(flat[i]!, cell), 0);
    for (const i of able) {
      const smallest = Math.min(
        ...flat[i]!.signals.filter((s) => s.cell === cell).map((s) => s.amount),
      );
      if (all - smallest < threshold) needed.add(i);
    }
  }
  return [...needed];
}

function close(before: readonly Set<number>[]): void {
  for (const set of before) for (const i of [...set]) for (const p of before[i] ?? []) set.add(p);
}
