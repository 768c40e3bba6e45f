/**
 * The oracle of programs: runs one on real bytes, slowly and suspiciously. All grid instances and
 * roles are coroutines under a seeded scheduler; asynchronous intrinsics take effect at a seeded time,
 * as late as their completion allows; vector clocks find every pair of unordered accesses of the run,
 * a shadow finds reads of what was never written, bounds are checked at each access, threads that can
 * never go on are a deadlock. What a run does not show is not proved: that is the validator's work
 * (program/validate/), which this judges independently.
 *
 * In: a program, bytes of its inputs, weights and states, parameter values, a thread count, a seed.
 * Out: bytes of outputs and states, or the first fault.
 */
import {
  type BufferTable,
  type Program,
  type Task,
  type TaskCondition,
  threadCountName,
} from "../program/program.ts";
import { evaluate, type IndexExpr } from "../semantics/index-expr.ts";
import { invariant } from "../support/invariant.ts";
import { Rng } from "../support/rng.ts";
import { allocateBuffers } from "./program-buffers.ts";
import {
  type Agent,
  copyKnowledge,
  emptyKnowledge,
  fenceAll,
  join,
  type Knowledge,
  share,
} from "./program-clock.ts";
import type { Steps } from "./program-compile.ts";
import { cellAt } from "./program-effects.ts";
import { type Fault, FaultError, raise } from "./program-fault.ts";
import { allocateCounters, startLaunch } from "./program-launch.ts";
import { type Block, Machine, type Runnable } from "./program-machine.ts";
import type { View } from "./program-memory.ts";
import { WaitQueue } from "./program-sync.ts";
import type { CounterArray } from "./program-thread.ts";

export interface ProgramRun {
  readonly parameters: Readonly<Record<string, number>>;
  /** Contents by buffer name, in storage format and in the buffer's own layout. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
  /** Value of the reserved variable `threads`. */
  readonly threads: number;
  readonly seed: number;
}

export type ProgramOutcome =
  /** Bytes of every output and state buffer by name. */
  | { readonly kind: "finished"; readonly contents: ReadonlyMap<string, Uint8Array> }
  | { readonly kind: "fault"; readonly fault: Fault };

/** Runs the program once. */
export function runProgram(program: Program, run: ProgramRun): ProgramOutcome {
  try {
    const host = new Host(program, run);
    return { kind: "finished", contents: host.run() };
  } catch (error) {
    if (error instanceof FaultError) return { kind: "fault", fault: error.fault };
    throw error;
  }
}

type Launch = Extract<Task, { kind: "launch" }>;

/** What surrounds a task: repeat variables and the rows that table names stand for. */
interface Surroundings {
  readonly bindings: ReadonlyMap<string, number>;
  readonly views: ReadonlyMap<string, View>;
}

/** A launch that may still run. */
interface LaunchUnderWay {
  /** What its instances knew when they ended. */
  readonly knows: Knowledge;
  /** Whether one that is after its start may begin. */
  hasStarted: boolean;
  hasEnded: boolean;
}

/** Walks the tasks and keeps account of launches under way. */
class Host {
  readonly #program: Program;
  readonly #machine: Machine;
  readonly #bindings: ReadonlyMap<string, number>;
  readonly #views: Map<string, View>;
  readonly #counters: ReadonlyMap<string, CounterArray>;
  readonly #agent: Agent;
  /** Since the host last waited for all. */
  #underWay: LaunchUnderWay[] = [];
  readonly #idle = new WaitQueue<Runnable>();
  #stopped = false;

  constructor(program: Program, run: ProgramRun) {
    this.#program = program;
    this.#machine = new Machine(new Rng(run.seed));
    const bindings = new Map(Object.entries(run.parameters));
    this.#checkParameters(bindings);
    bindings.set(threadCountName, run.threads);
    this.#bindings = bindings;
    const isOnBlocks = program.kernels.some((k) => k.grid.unit === "blocks");
    this.#views = allocateBuffers(program.buffers, bindings, new Map(), isOnBlocks);
    const place = { machine: this.#machine, owner: program.name };
    this.#counters = allocateCounters(program.counters, bindings, place);
    this.#agent = this.#machine.newAgent("host", emptyKnowledge());
    this.#fill(run.contents);
    fenceAll(this.#agent.knows);
  }

  run(): ReadonlyMap<string, Uint8Array> {
    const surroundings = { bindings: this.#bindings, views: this.#views };
    this.#machine.start({
      label: "host",
      steps: this.#walkAll(surroundings),
      blockedOn: undefined,
      onEnd: () => {},
    });
    this.#machine.run();
    return this.#collect();
  }

  #checkParameters(bindings: ReadonlyMap<string, number>): void {
    for (const { name, min, max } of this.#program.parameters) {
      const value = bindings.get(name);
      if (value === undefined || !(value >= min && value <= max)) {
        raise("requirement", `${name} = ${value}, allowed ${min} to ${max}`);
      }
    }
    for (const { kind, expr } of this.#program.requires) {
      const value = evaluate(expr, bindings);
      const holds = kind === "zero" ? value === 0 : value >= 0;
      if (!holds) raise("requirement", `${expr.key} is ${value}`);
    }
  }

  #fill(contents: ReadonlyMap<string, Uint8Array>): void {
    for (const [name, bytes] of contents) {
      const view = this.#views.get(name);
      invariant(view, () => `no buffer ${name} to fill`);
      invariant(
        bytes.length === view.byteCount,
        () => `${name} holds ${view.byteCount} bytes, given ${bytes.length}`,
      );
      view.note(this.#agent, "write", 0, view.count);
      view.storage.bytes.set(bytes, view.byteOffset);
    }
  }

  #collect(): ReadonlyMap<string, Uint8Array> {
    const result = new Map<string, Uint8Array>();
    for (const buffer of this.#program.buffers) {
      if (buffer.kind !== "output" && buffer.kind !== "state") continue;
      const view = this.#views.get(buffer.name)!;
      const { span } = view;
      const missing = buffer.kind === "output" ? view.storage.firstUnwritten(span) : -1;
      if (missing >= 0) {
        const byte = Math.floor((missing - span.from) / 8);
        raise("unwrittenOutput", `byte ${byte} of ${buffer.name}`);
      }
      result.set(buffer.name, view.bytes.slice());
    }
    return result;
  }

  *#walkAll(surroundings: Surroundings): Steps {
    yield* this.#walk(this.#program.tasks, surroundings);
    yield* this.#waitForAll();
  }

  *#walk(tasks: readonly Task[], around: Surroundings): Steps {
    for (const task of tasks) {
      if (this.#stopped) return;
      switch (task.kind) {
        case "stop":
          this.#stopped = true;
          return;
        case "launch":
          yield* this.#launch(task, around);
          break;
        case "if": {
          const holds = yield* this.#test(task.condition, around);
          yield* this.#walk(holds ? task.then : task.else, around);
          break;
        }
        case "while":
          yield* this.#while(task, around);
          break;
        case "repeat":
          yield* this.#repeat(task, around);
          break;
      }
    }
  }

  *#while(task: Extract<Task, { kind: "while" }>, around: Surroundings): Steps {
    const most = evaluate(task.maxTrips, around.bindings);
    for (let trip = 0; !this.#stopped && (yield* this.#test(task.condition, around)); trip++) {
      if (trip >= most) raise("tooManyTrips", `while loop of at most ${most} trips`);
      yield* this.#walk(task.body, around);
    }
  }

  *#repeat(task: Extract<Task, { kind: "repeat" }>, around: Surroundings): Steps {
    const count = evaluate(task.count, around.bindings);
    for (let i = 0; i < count && !this.#stopped; i++) {
      const bindings = new Map(around.bindings).set(task.variable, i);
      const views = new Map(around.views);
      for (const table of task.tables) views.set(table.name, rowOf(table, i, around.views));
      yield* this.#walk(task.body, { bindings, views });
    }
  }

  /** An element condition waits for all earlier tasks, an index condition for nothing. */
  *#test(condition: TaskCondition, around: Surroundings): Generator<Block<Runnable>, boolean> {
    if (condition.kind === "index") {
      return condition.conditions.every(({ kind, expr }) => {
        const value = evaluate(expr, around.bindings);
        return kind === "zero" ? value === 0 : value >= 0;
      });
    }
    yield* this.#waitForAll();
    const view = around.views.get(condition.buffer)!;
    const offset = view.offsetOf(at(condition.index, around.bindings), 1);
    view.note(this.#agent, "read", offset, 1);
    const isSet = Number(view.readAt(offset)) !== 0;
    return isSet !== condition.negated;
  }

  *#waitForAll(): Steps {
    const all = this.#underWay;
    const isReady = (): boolean => all.every((l) => l.hasEnded);
    yield { queue: this.#idle, isReady, what: "end of all launches" };
    learnEnds(this.#agent.knows, all);
    this.#underWay = [];
  }

  *#launch(task: Launch, around: Surroundings): Steps {
    if (task.after === "previous") yield* this.#waitForAll();
    // A launch waits for the one before it alone; whether that one waited is a matter of its threads.
    const last = this.#underWay.at(-1);
    if (task.after === "started") {
      const isReady = (): boolean => last === undefined || last.hasStarted || last.hasEnded;
      yield { queue: this.#idle, isReady, what: "start of the launch before" };
    }
    const own = { knows: emptyKnowledge(), hasStarted: false, hasEnded: false };
    this.#underWay.push(own);
    const knows = copyKnowledge(this.#agent.knows);
    const steps = this.#startWhenReady(task, around, { knows, last, own });
    const label = `launch of ${task.kernel}`;
    this.#machine.start({ label, steps, blockedOn: undefined, onEnd: () => {} });
  }

  *#startWhenReady(task: Launch, around: Surroundings, { knows, last, own }: LaunchOrder): Steps {
    for (const wait of task.waits) {
      const cell = this.#monotone(wait.counter, at(wait.index, around.bindings));
      const threshold = evaluate(wait.threshold, around.bindings);
      const what = `wait ${cell.label} for ${threshold}`;
      yield { queue: cell.queue, isReady: () => cell.value >= threshold, what };
      cell.acquire(threshold, knows);
    }
    const kernel = this.#program.kernels.find((k) => k.name === task.kernel);
    invariant(kernel, () => `no kernel ${task.kernel}`);
    const bindings = new Map(this.#bindings);
    for (const [name, value] of task.bindings) bindings.set(name, evaluate(value, around.bindings));
    share(knows);
    startLaunch({
      machine: this.#machine,
      kernel,
      bindings,
      views: around.views,
      counters: this.#counters,
      knows,
      prerequisites: { queue: this.#idle, isReady: () => last?.hasEnded ?? true },
      learn: (into) => learnEnds(into, last ? [last] : []),
      onDependents: () => {
        own.hasStarted = true;
        this.#machine.wake(this.#idle);
      },
      onInstanceEnd: (ended) => {
        fenceAll(ended);
        join(own.knows, ended);
        this.#signalAll(task, around, ended);
      },
      onEnd: () => {
        own.hasEnded = true;
        this.#machine.wake(this.#idle);
      },
    });
  }

  #signalAll(task: Launch, around: Surroundings, knows: Knowledge): void {
    for (const signal of task.signals) {
      const cell = this.#monotone(signal.counter, at(signal.index, around.bindings));
      cell.signal(evaluate(signal.amount, around.bindings), knows);
      this.#machine.wake(cell.queue);
    }
  }

  #monotone(name: string, index: readonly number[]) {
    const array = this.#counters.get(name);
    invariant(array, () => `no counter ${name}`);
    const cell = cellAt(array, index);
    invariant("value" in cell, () => `counter ${name} is not monotone`);
    return cell;
  }
}

/** What a launch stands behind, and its own account. */
interface LaunchOrder {
  readonly knows: Knowledge;
  readonly last: LaunchUnderWay | undefined;
  readonly own: LaunchUnderWay;
}

function learnEnds(knows: Knowledge, ended: readonly LaunchUnderWay[]): void {
  for (const launch of ended) {
    share(launch.knows);
    join(knows, launch.knows);
  }
  fenceAll(knows);
}

function at(index: readonly IndexExpr[], bindings: ReadonlyMap<string, number>): number[] {
  return index.map((e) => evaluate(e, bindings));
}

function rowOf(table: BufferTable, i: number, views: ReadonlyMap<string, View>): View {
  const row = table.rows[i];
  if (row === undefined) raise("outOfBounds", `table ${table.name} has no row ${i}`);
  return views.get(row)!;
}
