/**
 * The tasks of a program as the function that every thread runs: launches over the grid, conditions and
 * repeats. Where the program allows it, threads claim the parts of a launch and go on when all of them are
 * finished (program/dealing.ts); else each has its fixed share, with a barrier where a task has to see what
 * earlier ones wrote. Control flow depends only on parameters and on memory read between two barriers, so
 * all threads go the same way. A barrier orders more than counters ask for, so waits become barriers and
 * signals nothing.
 */

import { type Deals, extentOf, isOnePart, sectionsOf } from "../../program/dealing.ts";
import {
  type Launch,
  type Tables,
  TaskIndices,
  type TaskOf,
  withTables,
} from "../../program/launches.ts";
import { meetingsOf } from "../../program/meetings.ts";
import {
  type Kernel,
  type Program,
  type Task,
  type TaskCondition,
  threadCountName,
} from "../../program/program.ts";
import * as ix from "../../semantics/index-expr.ts";
import { reject } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { abortCodes, threadBlock } from "./context-block.ts";
import { contextPointer, type FunctionCode, scratchA } from "./function-code.ts";
import type { IndexScope } from "./index-scope.ts";
import { emitAbort } from "./kernel-emitter.ts";
import { storageBytes } from "./lanes.ts";
import { type Label, memory, type Register, sized } from "./operand.ts";
import type { DealCode } from "./thread-code.ts";

/**
 * A kernel's function. It finds grid coordinates, bindings and table addresses in the thread's block, and the trips
 * that the thread has claimed, where these are dealt out.
 */
export interface KernelFunction {
  readonly entry: Label;
  readonly kernel: Kernel;
  readonly takesTrips: boolean;
  readonly bindings: readonly string[];
  readonly tables: readonly string[];
}

interface TaskContext {
  readonly f: FunctionCode;
  readonly scope: IndexScope;
  readonly barrier: Label;
  /** Of a program whose parts are claimed. */
  readonly dealing: { readonly deals: Deals; readonly code: DealCode } | undefined;
  readonly program: Program;
  readonly kernels: ReadonlyMap<string, KernelFunction>;
  readonly checks: string[];
}

export class TaskEmitter {
  readonly #context: TaskContext;
  readonly #indices: TaskIndices;
  readonly #meetings: ReadonlySet<Task>;
  /** Whether what is emitted is one part, which one thread runs. */
  #isInPart = false;

  constructor(context: TaskContext) {
    this.#context = context;
    const { buffers, kernels } = context.program;
    this.#indices = new TaskIndices(buffers, kernels);
    this.#meetings = meetingsOf(context.program);
  }

  emit(): void {
    const { program, scope, f, dealing } = this.#context;
    const extents = dealing ? [...dealing.deals.values()].map((d) => d.extent) : [];
    scope.open([...this.#indices.all(program.tasks), ...extents]);
    if (dealing) {
      const none = f.gpr();
      f.emit("xor", none, none).emit("mov", memory(contextPointer, threadBlock.launch), none);
    }
    this.#tasks(program.tasks, new Map());
    f.emit("ret");
  }

  #tasks(tasks: readonly Task[], tables: Tables): void {
    const { dealing } = this.#context;
    if (!dealing || this.#isInPart) {
      for (const task of tasks) this.#task(task, tables);
      return;
    }
    for (const section of sectionsOf(tasks, dealing.deals)) {
      const [task] = section;
      if (isOnePart(task!, dealing.deals)) this.#onePart(section, tables);
      else this.#task(task!, tables);
    }
  }

  /** Tasks that one thread runs, whoever claims them. */
  #onePart(tasks: readonly Task[], tables: Tables): void {
    this.#dealOut(ix.constant(1), () => {
      this.#isInPart = true;
      this.#tasks(tasks, tables);
      this.#isInPart = false;
    });
  }

  #task(task: Task, tables: Tables): void {
    const { f } = this.#context;
    switch (task.kind) {
      case "launch":
        f.mark(`launch ${task.kernel}`);
        this.#meetBefore(task);
        this.#launch(task, tables);
        return;
      case "if": {
        const [otherwise, end] = [f.label(), f.label()];
        this.#branchUnless(task.condition, otherwise);
        this.#tasks(task.then, tables);
        f.emit("jmp", end).place(otherwise);
        this.#tasks(task.else, tables);
        f.place(end);
        return;
      }
      case "while":
        this.#while(task, tables);
        return;
      case "repeat":
        this.#meetBefore(task);
        this.#repeat(task, tables);
        return;
      case "stop":
        f.emit("ret");
    }
  }

  /** Parts that are claimed are all finished before the next launch, without a barrier. */
  #meetBefore(task: Task): void {
    if (!this.#context.dealing && this.#meetings.has(task)) this.#barrier();
  }

  /** Leaves the run when it was given up. */
  #barrier(): void {
    this.#meetAt(this.#context.barrier);
  }

  /** Calls a function that gives the abort word. */
  #meetAt(meeting: Label): void {
    const { f } = this.#context;
    const on = f.label();
    f.call(meeting);
    f.emit("test", sized(scratchA, 32), sized(scratchA, 32)).emit("je", on).emit("ret").place(on);
  }

  #launch(task: Launch, tables: Tables): void {
    const fn = this.#context.kernels.get(task.kernel);
    invariant(fn, () => `launch of unknown kernel ${task.kernel}`);
    const [first, ...inner] = fn.kernel.grid.axes;
    invariant(first, () => `kernel ${task.kernel} has no grid axis`);
    const coordinates: Register[] = [];
    const nest = (axes: typeof inner): void => {
      const [axis, ...rest] = axes;
      if (!axis) this.#call(task, fn, coordinates, tables);
      else
        this.#forEach(axis.extent, (i) => {
          coordinates.push(i);
          nest(rest);
          coordinates.pop();
        });
    };
    const runInstance = (instance: Register): void => {
      coordinates.push(instance);
      nest(inner);
      coordinates.pop();
    };
    const { dealing } = this.#context;
    if (!dealing) this.#forOwnInstances(first.extent, runInstance);
    else if (this.#isInPart) this.#forEach(first.extent, runInstance);
    else
      this.#dealOut(extentOf(task, dealing.deals), () => {
        if (fn.takesTrips) runInstance(this.#word(threadBlock.thread));
        else this.#forParts(runInstance);
      });
  }

  /**
   * Runs the parts that this thread claims and waits until all are finished; leaves the run when it was
   * given up. A thread that is alone has them all at once.
   */
  #dealOut(extent: ix.IndexExpr, body: () => void): void {
    const { f, scope, dealing } = this.#context;
    const { claim, finish, settle } = dealing!.code;
    const own = (word: number) => memory(contextPointer, word);
    const [again, shared, run, settled, done] = [1, 2, 3, 4, 5].map(() => f.label()) as [
      ...[Label, Label, Label, Label, Label],
    ];
    const [launch, none] = [this.#word(threadBlock.launch), f.gpr()];
    const count = scope.value(extent);
    f.emit("add", launch, 1).emit("mov", own(threadBlock.launch), launch);
    f.emit("mov", own(threadBlock.extent), count).place(again);
    f.emit("cmp", this.#word(threadBlock.threads), 1).emit("jne", shared);
    f.emit("xor", none, none).emit("mov", own(threadBlock.firstPart), none);
    f.emit("mov", own(threadBlock.endPart), this.#word(threadBlock.extent)).emit("jmp", run);
    f.place(shared).call(claim);
    f.emit("test", sized(scratchA, 32), sized(scratchA, 32)).emit("je", settled).place(run);
    f.inLoop(() => {
      body();
      f.emit("cmp", this.#word(threadBlock.threads), 1).emit("je", done);
      f.call(finish).emit("jmp", again);
    });
    f.place(settled);
    this.#meetAt(settle);
    f.place(done);
  }

  /** Counts a register over the parts that were claimed. */
  #forParts(body: (i: Register) => void): void {
    const { f } = this.#context;
    const i = this.#word(threadBlock.firstPart);
    const [again, done] = [f.label(), f.label()];
    f.place(again).emit("cmp", i, memory(contextPointer, threadBlock.endPart)).emit("jge", done);
    f.inLoop(() => {
      body(i);
      f.emit("add", i, 1).emit("jmp", again);
    });
    f.place(done);
  }

  #word(offset: number): Register {
    const r = this.#context.f.gpr();
    this.#context.f.emit("mov", r, memory(contextPointer, offset));
    return r;
  }

  /** Instances thread, thread + threads, …: exactly one each where the extent is the thread count. */
  #forOwnInstances(extent: ix.IndexExpr, body: (instance: Register) => void): void {
    const { f, scope } = this.#context;
    const thread = this.#word(threadBlock.thread);
    if (extent.key === threadCountName) {
      body(thread);
      return;
    }
    const instance = f.gpr();
    const [again, done] = [f.label(), f.label()];
    f.emit("mov", instance, thread).place(again);
    f.emit("cmp", instance, scope.operand(extent)).emit("jge", done);
    f.inLoop(() => {
      body(instance);
      f.emit("add", instance, memory(contextPointer, threadBlock.threads)).emit("jmp", again);
    });
    f.place(done);
  }

  /** Counts a register from 0 to the extent. */
  #forEach(extent: ix.IndexExpr, body: (i: Register) => void): void {
    const { f, scope } = this.#context;
    const i = f.gpr();
    const [again, done] = [f.label(), f.label()];
    f.emit("xor", i, i).place(again).emit("cmp", i, scope.operand(extent)).emit("jge", done);
    f.inLoop(() => {
      body(i);
      f.emit("add", i, 1).emit("jmp", again);
    });
    f.place(done);
  }

  #call(task: Launch, fn: KernelFunction, coordinates: readonly Register[], tables: Tables): void {
    const { f, scope } = this.#context;
    const values = [
      ...coordinates,
      ...fn.bindings.map((name) => {
        const bound = task.bindings.find(([n]) => n === name);
        return scope.value(bound?.[1] ?? ix.constant(0));
      }),
      ...fn.tables.map((name) => this.#tableAddress(tables.get(name))),
    ];
    if (values.length > threadBlock.argumentCount) {
      reject("EMT001", `kernel ${task.kernel} takes ${values.length} arguments`, {
        help: `at most ${threadBlock.argumentCount} grid axes, bindings and tables`,
      });
    }
    values.forEach((value, i) => {
      f.emit("mov", memory(contextPointer, threadBlock.arguments + 8 * i), value);
    });
    f.call(fn.entry);
  }

  /** The address of the row that the repeat's variable chooses. */
  #tableAddress(table: { variable: string; rows: readonly string[] } | undefined): Register {
    const { f, scope } = this.#context;
    const [first, ...others] = table?.rows ?? [];
    const r = f.gpr();
    if (!table || first === undefined) {
      f.emit("xor", r, r);
      return r;
    }
    f.emit("mov", r, scope.value(this.#indices.addressOf(first)));
    others.forEach((row, i) => {
      const address = scope.value(this.#indices.addressOf(row));
      f.emit("cmp", scope.value(ix.variable(table.variable)), i + 1).emit("cmovge", r, address);
    });
    return r;
  }

  #branchUnless(condition: TaskCondition, otherwise: Label): void {
    const { f, scope } = this.#context;
    if (condition.kind === "index") {
      for (const { kind, expr } of condition.conditions) scope.branchUnless(kind, expr, otherwise);
      return;
    }
    const { dtype } = this.#indices.buffer(condition.buffer);
    this.#barrier();
    const from = scope.address(this.#indices.elementAddress(condition));
    const bytes = storageBytes(dtype);
    const value = f.gpr();
    if (bytes === 1) f.emit("movzx8", sized(value, 32), from);
    else if (bytes === 2) f.emit("movzx16", sized(value, 32), from);
    else if (bytes === 4) f.emit("mov", sized(value, 32), from);
    else if (bytes === 8) f.emit("mov", value, from);
    else reject("EMT001", `x86-64 has no spelling for a condition on ${dtype}`);
    // All bits but the sign of a float: -0 counts as zero.
    if (dtype === "f32") f.emit("shl", sized(value, 32), 1);
    if (dtype === "f64") f.emit("shl", value, 1);
    // Nobody may write the element before everyone has read it.
    this.#barrier();
    f.emit("test", value, value).emit(condition.negated ? "jne" : "je", otherwise);
  }

  #while(task: TaskOf<"while">, tables: Tables): void {
    const { f, scope, checks } = this.#context;
    const trips = f.gpr();
    const check = checks.push(`while task of ${this.#context.program.name}`) - 1;
    const [again, done, fine] = [f.label(), f.label(), f.label()];
    f.emit("xor", trips, trips).place(again);
    this.#branchUnless(task.condition, done);
    f.emit("cmp", trips, scope.operand(task.maxTrips)).emit("jl", fine);
    emitAbort(f, abortCodes.tooManyTrips, check, undefined);
    f.place(fine);
    f.inLoop(() => {
      this.#tasks(task.body, tables);
      f.emit("add", trips, 1).emit("jmp", again);
    });
    f.place(done);
  }

  #repeat(task: TaskOf<"repeat">, tables: Tables): void {
    const { scope } = this.#context;
    this.#forEach(task.count, (i) => {
      scope.declare(task.variable, { min: 0, max: Number.POSITIVE_INFINITY });
      scope.enter(task.variable, i, []);
      this.#tasks(task.body, withTables(tables, task));
      scope.leave();
    });
  }
}
