/**
 * The launches of a program in order, for given parameter values: repeats run through, conditions decided.
 * A condition on an element of a buffer is asked of the caller, which has the device.
 */
import type { Task, TaskCondition } from "../program/program.ts";
import { evaluate } from "../semantics/index-expr.ts";
import { DiagnosticError, diagnostic } from "../support/diagnostic.ts";

export interface PlannedLaunch {
  readonly task: Extract<Task, { kind: "launch" }>;
  /** Parameters, repeat variables and what the launch binds. */
  readonly values: ReadonlyMap<string, number>;
  /** Rows that table names stand for. */
  readonly tables: ReadonlyMap<string, string>;
  /** It may start while the launch before it runs. */
  readonly dependent: boolean;
}

export type ElementCondition = Extract<TaskCondition, { kind: "element" }>;

export interface PlanRequest {
  readonly tasks: readonly Task[];
  readonly parameters: ReadonlyMap<string, number>;
  readonly launch: (planned: PlannedLaunch) => void;
  /** Whether the element is different from zero, after all that was launched. */
  readonly test: (condition: ElementCondition, values: ReadonlyMap<string, number>) => boolean;
}

/** Whether the launches are known before any of them runs. */
export function isStatic(tasks: readonly Task[]): boolean {
  return tasks.every((task) => {
    if (task.kind === "repeat") return isStatic(task.body);
    if (task.kind === "while") return task.condition.kind === "index" && isStatic(task.body);
    if (task.kind !== "if") return true;
    return task.condition.kind === "index" && isStatic([...task.then, ...task.else]);
  });
}

export function walkLaunches(request: PlanRequest): void {
  new LaunchWalk(request).list(request.tasks, {
    values: request.parameters,
    tables: new Map(),
  });
}

type Around = Pick<PlannedLaunch, "values" | "tables">;

class LaunchWalk {
  readonly #request: PlanRequest;

  constructor(request: PlanRequest) {
    this.#request = request;
  }

  /** Whether the program goes on after the list. */
  list(tasks: readonly Task[], around: Around): boolean {
    return tasks.every((task) => this.#task(task, around));
  }

  #task(task: Task, around: Around): boolean {
    switch (task.kind) {
      case "launch": {
        const values = new Map(around.values);
        for (const [name, e] of task.bindings) values.set(name, evaluate(e, around.values));
        const dependent = task.after === "started";
        this.#request.launch({ task, values, tables: around.tables, dependent });
        return true;
      }
      case "if":
        return this.list(this.#holds(task.condition, around) ? task.then : task.else, around);
      case "while":
        return this.#while(task, around);
      case "repeat":
        return this.#repeat(task, around);
      case "stop":
        return false;
    }
  }

  #while(task: Extract<Task, { kind: "while" }>, around: Around): boolean {
    const most = evaluate(task.maxTrips, around.values);
    for (let trip = 0; this.#holds(task.condition, around); trip++) {
      if (trip === most) {
        throw new DiagnosticError([diagnostic("RUN007", `a loop made more than ${most} trips`)]);
      }
      if (!this.list(task.body, around)) return false;
    }
    return true;
  }

  #repeat(task: Extract<Task, { kind: "repeat" }>, around: Around): boolean {
    const count = evaluate(task.count, around.values);
    for (let trip = 0; trip < count; trip++) {
      const values = new Map(around.values).set(task.variable, trip);
      const tables = new Map(around.tables);
      for (const { name, rows } of task.tables) tables.set(name, rows[trip]!);
      if (!this.list(task.body, { values, tables })) return false;
    }
    return true;
  }

  #holds(condition: TaskCondition, { values }: Around): boolean {
    if (condition.kind === "element") {
      return this.#request.test(condition, values) !== condition.negated;
    }
    return condition.conditions.every(({ kind, expr }) => {
      const value = evaluate(expr, values);
      return kind === "zero" ? value === 0 : value >= 0;
    });
  }
}
