/** What emitters read of a program's tasks: launches, the tables around them, index expressions. */
import * as ix from "../semantics/index-expr.ts";
import { invariant } from "../support/invariant.ts";
import { baseOf, elementBytes, flatIndex } from "./addresses.ts";
import type { Buffer, BufferTable, Kernel, Task, TaskCondition } from "./program.ts";

export type TaskOf<K extends Task["kind"]> = Extract<Task, { kind: K }>;
export type Launch = TaskOf<"launch">;

/** Tables of the repeats around a task: buffer name -> rows and the repeat's variable. */
export type Tables = ReadonlyMap<
  string,
  { readonly variable: string; readonly rows: BufferTable["rows"] }
>;

/** All launches with the tables they see. */
export function launchesOf(
  tasks: readonly Task[],
  tables: Tables,
): { readonly task: Launch; readonly tables: Tables }[] {
  return tasks.flatMap((task) => {
    if (task.kind === "launch") return [{ task, tables }];
    if (task.kind === "if") return launchesOf([...task.then, ...task.else], tables);
    if (task.kind === "while") return launchesOf(task.body, tables);
    return task.kind === "repeat" ? launchesOf(task.body, withTables(tables, task)) : [];
  });
}

export function withTables(tables: Tables, { variable, tables: own }: TaskOf<"repeat">): Tables {
  return new Map([...tables, ...own.map((t) => [t.name, { variable, rows: t.rows }] as const)]);
}

/** The index expressions that tasks evaluate. */
export class TaskIndices {
  readonly #buffers: ReadonlyMap<string, Buffer>;
  readonly #kernels: ReadonlyMap<string, Kernel>;

  constructor(buffers: readonly Buffer[], kernels: readonly Kernel[]) {
    this.#buffers = new Map(buffers.map((b) => [b.name, b]));
    this.#kernels = new Map(kernels.map((k) => [k.name, k]));
  }

  all(tasks: readonly Task[], tables: Tables = new Map()): ix.IndexExpr[] {
    return tasks.flatMap((task) => this.#ofTask(task, tables));
  }

  /** Address of the element that a condition reads. */
  elementAddress(condition: Extract<TaskCondition, { kind: "element" }>): ix.IndexExpr {
    const buffer = this.buffer(condition.buffer);
    const flat = flatIndex(buffer, condition.index);
    return ix.add(baseOf(buffer, this.#buffers), ix.mul(flat, elementBytes(buffer)));
  }

  addressOf(name: string): ix.IndexExpr {
    return baseOf(this.buffer(name), this.#buffers);
  }

  #ofTask(task: Task, tables: Tables): readonly ix.IndexExpr[] {
    switch (task.kind) {
      case "launch":
        return [
          ...task.bindings.map(([, value]) => value),
          ...this.#kernels.get(task.kernel)!.grid.axes.map((a) => a.extent),
          ...[...tables.values()].flatMap((t) => t.rows.map((r) => this.addressOf(r))),
        ];
      case "if": {
        const branches = this.all([...task.then, ...task.else], tables);
        return [...this.#ofCondition(task.condition), ...branches];
      }
      case "while": {
        const own = this.#ofCondition(task.condition);
        return [task.maxTrips, ...own, ...this.all(task.body, tables)];
      }
      case "repeat":
        return [task.count, ...this.all(task.body, withTables(tables, task))];
      case "stop":
        return [];
    }
  }

  #ofCondition(condition: TaskCondition): readonly ix.IndexExpr[] {
    if (condition.kind === "element") return [this.elementAddress(condition)];
    return condition.conditions.map((c) => ix.withoutConstant(c.expr));
  }

  buffer(name: string): Buffer {
    const buffer = this.#buffers.get(name);
    invariant(buffer, () => `unknown buffer ${name}`);
    return buffer;
  }
}
