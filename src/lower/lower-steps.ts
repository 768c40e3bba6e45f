/**
 * A scan, or a loop that a carried value ends, as tasks: what is carried is copied into the buffers that hold it,
 * then the tasks of one step are repeated, and at the end of each the next values are copied over the old ones
 * and what is collected into its row. The number of the step is an index variable that kernels of the step leave free; launches bind it.
 */
import type { Buffer, Kernel, Task } from "../program/program.ts";
import { exprIndices, ownExprs, ownIndices, visitExpr, visitStatements } from "../program/walk.ts";
import type { NestTensor } from "../region/nest.ts";
import { constant, type IndexExpr, variable, variablesOf } from "../semantics/index-expr.ts";
import type { Target } from "../target/target.ts";
import { copies } from "./step-copies.ts";

/** How often the step runs. */
export type StepTrips =
  /** The index variable that is the number of the step, and how many there are. */
  | { readonly kind: "count"; readonly variable: string; readonly count: IndexExpr }
  /** As long as this carried value is true. */
  | { readonly kind: "while"; readonly condition: string; readonly most: number };

/** What is carried and collected, by names of tensors around the scan; the step's own by position. */
export interface StepPlan {
  readonly trips: StepTrips;
  readonly carried: readonly {
    readonly initial: string;
    readonly state: string;
    readonly next: number;
  }[];
  readonly collected: readonly {
    readonly element: number;
    readonly into: string;
    readonly axis: number;
    readonly position: IndexExpr;
  }[];
}

/** Kernels, tasks and buffers of a part of a program. */
export interface LoweredPart {
  readonly kernels: readonly Kernel[];
  readonly tasks: readonly Task[];
  readonly buffers: readonly Buffer[];
}

/**
 * The tasks of all steps. `outputs` are the step's results by position; `tensorOf` finds tensors of the step
 * and around it.
 */
export function repeatSteps(
  plan: StepPlan,
  step: LoweredPart,
  at: {
    readonly name: string;
    readonly outputs: readonly string[];
    readonly tensorOf: (name: string) => NestTensor;
    readonly target: Target;
  },
): LoweredPart {
  const { name, outputs, tensorOf, target } = at;
  const starts = plan.carried.map(({ initial, state }) => ({ from: tensorOf(initial), to: state }));
  const ends = [
    ...plan.collected.map(({ element, into, ...row }) => {
      return { from: tensorOf(outputs[element]!), to: into, row };
    }),
    ...plan.carried.map(({ state, next }) => ({ from: tensorOf(outputs[next]!), to: state })),
  ];
  const [before, behind] = [
    copies(`start.${name}`, starts, target),
    copies(`step.${name}`, ends, target),
  ];
  const kernels = [...before, ...step.kernels, ...behind];
  const byName = new Map(kernels.map((k) => [k.name, k]));
  const launches = (list: readonly Kernel[]): readonly Task[] => list.map((k) => launch(k.name));
  const tasks = [...step.tasks, ...launches(behind)];
  const all = [...launches(before), repeated(plan.trips, tasks, byName)];
  return { kernels, tasks: all, buffers: step.buffers };
}

function repeated(
  trips: StepTrips,
  tasks: readonly Task[],
  kernels: ReadonlyMap<string, Kernel>,
): Task {
  if (trips.kind === "while") {
    const at = { buffer: trips.condition, index: [], negated: false } as const;
    const condition = { kind: "element", ...at } as const;
    return { kind: "while", condition, maxTrips: constant(trips.most), body: tasks };
  }
  const { variable, count } = trips;
  return {
    kind: "repeat",
    variable,
    count,
    tables: [],
    body: bindVariable(tasks, variable, kernels),
  };
}

export function launch(kernel: string): Task {
  return { kind: "launch", kernel, after: "previous", bindings: [], waits: [], signals: [] };
}

/** Launches of kernels that mention the variable bind it to the one of the repeat around them. */
function bindVariable(
  tasks: readonly Task[],
  name: string,
  kernels: ReadonlyMap<string, Kernel>,
): readonly Task[] {
  const within = (list: readonly Task[]) => bindVariable(list, name, kernels);
  const bind = (task: Task): Task => {
    if (task.kind === "stop") return task;
    if (task.kind === "if") return { ...task, then: within(task.then), else: within(task.else) };
    if (task.kind !== "launch") return { ...task, body: within(task.body) };
    if (!mentions(kernels.get(task.kernel)!, name)) return task;
    return { ...task, bindings: [...task.bindings, [name, variable(name)]] };
  };
  return tasks.map(bind);
}

function mentions({ roles }: Kernel, name: string): boolean {
  let found = false;
  const look = (indices: readonly IndexExpr[]): void => {
    found ||= variablesOf(...indices).has(name);
  };
  for (const { body } of roles) {
    visitStatements(body, (s) => {
      look(ownIndices(s));
      for (const e of ownExprs(s)) visitExpr(e, (x) => look(exprIndices(x)));
    });
  }
  return found;
}
