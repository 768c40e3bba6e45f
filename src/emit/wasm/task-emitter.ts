/**
 * The tasks of a program as the body of `run(thread, threads)`: launches over the grid, conditions and
 * repeats. Where the program allows it, threads claim the parts of a launch and go on when all of them are
 * finished (program/dealing.ts); else each has its fixed share, with a barrier where a task has to see what
 * earlier ones wrote. Control flow depends only on parameters and on memory read between two barriers, so
 * all threads go the same way.
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
import { abortCodes, controlBlock } from "./control-block.ts";
import type { DealFunctions } from "./deal.ts";
import type { FunctionBuilder, FunctionIndex, Label, Local } from "./function-builder.ts";
import type { IndexScope } from "./index-scope.ts";
import { storageBytes } from "./lanes.ts";

/**
 * A kernel's function. It takes the grid coordinates, the thread count, the bindings, the addresses of
 * the tables' buffers, the first of its trips and their end where these are dealt out, and the number of the
 * thread that runs it.
 */
export interface KernelFunction {
  readonly index: FunctionIndex;
  readonly kernel: Kernel;
  readonly takesTrips: boolean;
  readonly bindings: readonly string[];
  readonly tables: readonly string[];
}

interface TaskContext {
  readonly f: FunctionBuilder;
  readonly scope: IndexScope;
  readonly barrier: FunctionIndex;
  /** Of a program whose parts are claimed. */
  readonly dealing: { readonly deals: Deals; readonly functions: DealFunctions } | undefined;
  readonly program: Program;
  readonly kernels: ReadonlyMap<string, KernelFunction>;
  readonly checks: string[];
}

/** Parts of a launch: from the first up to the end. */
interface Parts {
  readonly first: Local;
  readonly end: Local;
}

interface Call {
  readonly task: Launch;
  readonly fn: KernelFunction;
  readonly coordinates: readonly Local[];
  readonly tables: Tables;
  /** Where the function takes them. */
  readonly trips?: Parts | undefined;
}

export class TaskEmitter {
  readonly #context: TaskContext;
  readonly #indices: TaskIndices;
  readonly #meetings: ReadonlySet<Task>;
  /** Number of the launch that is dealt out, the same for all threads. */
  readonly #launchNumber: Local;
  /** Whether what is emitted is one part, which one thread runs. */
  #isInPart = false;

  constructor(context: TaskContext) {
    this.#context = context;
    const { buffers, kernels } = context.program;
    this.#indices = new TaskIndices(buffers, kernels);
    this.#meetings = meetingsOf(context.program);
    this.#launchNumber = context.f.local("i32");
  }

  emit(): void {
    const { program, scope, dealing } = this.#context;
    const extents = dealing ? [...dealing.deals.values()].map((d) => d.extent) : [];
    scope.open([...this.#indices.all(program.tasks), ...extents]);
    this.#tasks(program.tasks, new Map());
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
      case "if":
        this.#condition(task.condition);
        f.if(
          () => this.#tasks(task.then, tables),
          task.else.length > 0 ? () => this.#tasks(task.else, tables) : undefined,
        );
        return;
      case "while":
        this.#while(task, tables);
        return;
      case "repeat":
        this.#meetBefore(task);
        this.#repeat(task, tables);
        return;
      case "stop":
        f.op("return");
    }
  }

  /** Parts that are claimed are all finished before the next launch, without a barrier. */
  #meetBefore(task: Task): void {
    if (!this.#context.dealing && this.#meetings.has(task)) this.#barrier();
  }

  /** Leaves the run when it was given up. */
  #barrier(): void {
    const { f, barrier } = this.#context;
    f.get(f.param(1)).call(barrier);
    f.if(() => {
      f.op("return");
    });
  }

  #launch(task: Launch, tables: Tables): void {
    const fn = this.#context.kernels.get(task.kernel);
    invariant(fn, () => `launch of unknown kernel ${task.kernel}`);
    const [first, ...inner] = fn.kernel.grid.axes;
    invariant(first, () => `kernel ${task.kernel} has no grid axis`);
    const coordinates: Local[] = [];
    const nest = (axes: typeof inner, trips?: Parts): void => {
      const [axis, ...rest] = axes;
      if (!axis) this.#call({ task, fn, coordinates, tables, trips });
      else
        this.#forEach(axis.extent, (i) => {
          coordinates.push(i);
          nest(rest);
          coordinates.pop();
        });
    };
    const runInstance = (instance: Local, trips?: Parts): void => {
      coordinates.push(instance);
      nest(inner, trips);
      coordinates.pop();
    };
    const { dealing, f } = this.#context;
    if (!dealing) this.#forOwnInstances(first.extent, runInstance);
    else if (this.#isInPart) this.#forEach(first.extent, (i) => runInstance(i));
    else
      this.#dealOut(extentOf(task, dealing.deals), (parts) => {
        if (fn.takesTrips) runInstance(f.param(0), parts);
        else this.#forParts(parts, (i) => runInstance(i));
      });
  }

  /**
   * Runs the parts that this thread claims and waits until all are finished; leaves the run when it was
   * given up. A thread that is alone has them all at once.
   */
  #dealOut(extent: ix.IndexExpr, body: (parts: Parts) => void): void {
    const { f, scope, dealing } = this.#context;
    const { claim, finish, settle } = dealing!.functions;
    const [thread, threads, launch] = [f.param(0), f.param(1), this.#launchNumber];
    const [first, end, count] = [f.local("i32"), f.local("i32"), f.local("i32")];
    const claimed = f.local("i64");
    f.get(launch).i32Const(1).op("i32.add").set(launch);
    scope.push(extent);
    f.set(count);
    const isAlone = () => f.get(threads).i32Const(1).op("i32.eq");
    f.block((leave) => {
      f.loop((again) => {
        isAlone().if(
          () => f.i32Const(0).set(first).get(count).set(end),
          () => {
            f.get(thread).get(threads).get(launch).get(count).call(claim).tee(claimed);
            f.i64Const(0n).op("i64.lt_s").brIf(leave);
            f.get(claimed).op("i32.wrap_i64").set(first);
            f.get(claimed).i64Const(32n).op("i64.shr_u").op("i32.wrap_i64").set(end);
          },
        );
        body({ first, end });
        isAlone().brIf(leave);
        f.get(launch).get(end).get(first).op("i32.sub").get(count).call(finish).br(again);
      });
    });
    isAlone().op("i32.eqz");
    f.if(() => {
      f.get(launch).get(count).call(settle);
      f.if(() => f.op("return"));
    });
    f.release(first, end, count, claimed);
  }

  /** Counts a local over the parts. */
  #forParts({ first, end }: Parts, body: (i: Local) => void): void {
    const { f } = this.#context;
    const i = f.local("i32");
    f.get(first).set(i);
    f.block((leave) => {
      f.loop((again) => {
        f.get(i).get(end).op("i32.ge_s").brIf(leave);
        body(i);
        f.get(i).i32Const(1).op("i32.add").set(i).br(again);
      });
    });
    f.release(i);
  }

  /** Instances thread, thread + threads, …: exactly one each where the extent is the thread count. */
  #forOwnInstances(extent: ix.IndexExpr, body: (instance: Local) => void): void {
    const { f, scope } = this.#context;
    if (extent.key === threadCountName) {
      body(f.param(0));
      return;
    }
    const instance = f.local("i32");
    f.get(f.param(0)).set(instance);
    f.block((leave) => {
      f.loop((again) => {
        f.get(instance);
        scope.push(extent);
        f.op("i32.ge_s").brIf(leave);
        body(instance);
        f.get(instance).get(f.param(1)).op("i32.add").set(instance).br(again);
      });
    });
    f.release(instance);
  }

  /** Counts a local from 0 to the extent. */
  #forEach(extent: ix.IndexExpr, body: (i: Local, again: Label) => void): void {
    const { f, scope } = this.#context;
    const i = f.local("i32");
    f.i32Const(0).set(i);
    f.block((leave) => {
      f.loop((again) => {
        f.get(i);
        scope.push(extent);
        f.op("i32.ge_s").brIf(leave);
        body(i, again);
        f.get(i).i32Const(1).op("i32.add").set(i).br(again);
      });
    });
    f.release(i);
  }

  #call({ task, fn, coordinates, tables, trips }: Call): void {
    const { f, scope } = this.#context;
    for (const coordinate of coordinates) f.get(coordinate);
    f.get(f.param(1));
    for (const name of fn.bindings) {
      const bound = task.bindings.find(([n]) => n === name);
      scope.push(bound?.[1] ?? ix.constant(0));
    }
    for (const name of fn.tables) this.#pushTableAddress(tables.get(name));
    if (trips) f.get(trips.first).get(trips.end);
    f.get(f.param(0)).call(fn.index);
  }

  /** The address of the row that the repeat's variable chooses. */
  #pushTableAddress(table: { variable: string; rows: readonly string[] } | undefined): void {
    const { f, scope } = this.#context;
    const address = (row: string) => this.#indices.addressOf(row);
    const [first, ...others] = table?.rows ?? [];
    if (!table || first === undefined) {
      f.i32Const(0);
      return;
    }
    scope.push(address(first));
    others.forEach((row, i) => {
      scope.push(address(row));
      scope.push(ix.variable(table.variable));
      f.i32Const(i + 1)
        .op("i32.lt_s")
        .op("select");
    });
  }

  #condition(condition: TaskCondition): void {
    const { f, scope, program } = this.#context;
    if (condition.kind === "index") {
      f.i32Const(1);
      for (const { kind, expr } of condition.conditions) {
        scope.pushCondition(kind, expr);
        f.op("i32.and");
      }
      return;
    }
    const buffer = program.buffers.find((b) => b.name === condition.buffer);
    invariant(buffer, () => `condition on unknown buffer ${condition.buffer}`);
    this.#barrier();
    scope.push(this.#indices.elementAddress(condition));
    const bytes = storageBytes(buffer.dtype);
    if (bytes === 1) f.memory("i32.load8_u");
    else if (bytes === 2) f.memory("i32.load16_u");
    else if (bytes === 4) f.memory("i32.load");
    else if (bytes === 8) f.memory("i64.load").op("i64.eqz").op("i32.eqz");
    else reject("EMT001", `WebAssembly has no spelling for a condition on ${buffer.dtype}`);
    // All bits but the sign of a float: -0 counts as zero.
    if (buffer.dtype === "f32") f.i32Const(1).op("i32.shl");
    f.op("i32.eqz");
    if (!condition.negated) f.op("i32.eqz");
    const value = f.local("i32");
    f.set(value);
    // Nobody may write the element before everyone has read it.
    this.#barrier();
    f.get(value).release(value);
  }

  #while(task: TaskOf<"while">, tables: Tables): void {
    const { f, scope, checks } = this.#context;
    const trips = f.local("i32");
    const check = checks.push(`while task of ${this.#context.program.name}`) - 1;
    f.i32Const(0).set(trips);
    f.block((leave) => {
      f.loop((again) => {
        this.#condition(task.condition);
        f.op("i32.eqz").brIf(leave).get(trips);
        scope.push(task.maxTrips);
        f.op("i32.ge_s");
        f.if(() => {
          f.i32Const(0).i32Const(check).memory("i32.store", controlBlock.faultStatement);
          f.i32Const(0).i32Const(abortCodes.none).i32Const(abortCodes.tooManyTrips);
          f.memory("i32.atomic.rmw.cmpxchg", controlBlock.abort).op("drop").op("return");
        });
        this.#tasks(task.body, tables);
        f.get(trips).i32Const(1).op("i32.add").set(trips).br(again);
      });
    });
    f.release(trips);
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
