/**
 * Where the threads of a program have to meet: before a launch that follows others, unless that launch and
 * everything since the last meeting run on the first thread alone. Small steps that are repeated then cost no
 * barrier. A repeat meets before its first trip where each trip is the first thread's alone.
 */
import { constantValue } from "../semantics/index-expr.ts";
import type { Kernel, Program, Task } from "./program.ts";

/** Launches and repeats before which all threads meet; conditions on elements meet by themselves. */
export function meetingsOf({ tasks, kernels }: Program): ReadonlySet<Task> {
  return new Walk(new Map(kernels.map((k) => [k.name, k]))).run(tasks);
}

class Walk {
  readonly #kernels: ReadonlyMap<string, Kernel>;
  readonly #meetings = new Set<Task>();

  constructor(kernels: ReadonlyMap<string, Kernel>) {
    this.#kernels = kernels;
  }

  run(tasks: readonly Task[]): ReadonlySet<Task> {
    this.#list(tasks, true);
    return this.#meetings;
  }

  /** Takes and gives whether all since the last meeting is the first thread's. */
  #list(tasks: readonly Task[], alone: boolean): boolean {
    return tasks.reduce((before, task) => this.#task(task, before), alone);
  }

  #task(task: Task, alone: boolean): boolean {
    switch (task.kind) {
      case "launch": {
        const isOne = this.#runsAlone(task);
        if (isWaiting(task) && alone && isOne) return true;
        if (!isWaiting(task)) return alone && isOne;
        this.#meetings.add(task);
        return isOne;
      }
      case "if": {
        const from = alone || task.condition.kind === "element";
        const [yes, no] = [this.#list(task.then, from), this.#list(task.else, from)];
        return yes && no;
      }
      case "while": {
        const meets = task.condition.kind === "element";
        this.#list(task.body, meets);
        return meets;
      }
      case "repeat": {
        const isOne = this.#isAlone(task.body);
        if (isOne && !alone) this.#meetings.add(task);
        this.#list(task.body, isOne);
        return isOne;
      }
      case "stop":
        return alone;
    }
  }

  #isAlone(tasks: readonly Task[]): boolean {
    return tasks.every((task) => {
      if (task.kind === "launch") return isWaiting(task) && this.#runsAlone(task);
      return task.kind === "repeat" && this.#isAlone(task.body);
    });
  }

  /** Instances of the first axis are dealt out to threads. */
  #runsAlone({ kernel, waits, signals }: Extract<Task, { kind: "launch" }>): boolean {
    const [first] = this.#kernels.get(kernel)!.grid.axes;
    const isOne = first !== undefined && constantValue(first.extent) === 1;
    return isOne && waits.length === 0 && signals.length === 0;
  }
}

function isWaiting({ after, waits }: Extract<Task, { kind: "launch" }>): boolean {
  return after !== "counters" || waits.length > 0;
}
