/**
 * A scan, or a loop that a carried value ends, as tasks: what is carried is copied into the buffers that hold it,
 * then the tasks of one step are repeated, and at the end of each the next values are copied over the old ones
 * and what is collected into its row. The number of the step is an index variable that kernels of the step leave free; launches bind it.
 */
import type { Buffer, Kernel, Task } from "../program/program.ts";
import type { Expr, Statement } from "../program/statement.ts";
import { exprIndices, ownExprs, ownIndices, visitExpr, visitStatements } from "../program/walk.ts";
import type { NestTensor } from "../region/nest.ts";
import { zeroOf } from "../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  variable,
  variablesOf,
} from "../semantics/index-expr.ts";
import { threadGrid } from "./thread-grid.ts";

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
    readonly vectorBytes: number;
  },
): LoweredPart {
  const { name, outputs, tensorOf, vectorBytes } = at;
  const start = copies(
    `start.${name}`,
    plan.carried.map(({ initial, state }) => copy(tensorOf(initial), state, vectorBytes)),
  );
  const ends = [
    ...plan.collected.map(({ element, into, axis, position }) =>
      copy(tensorOf(outputs[element]!), into, vectorBytes, { axis, position }),
    ),
    ...plan.carried.map(({ state, next }) => copy(tensorOf(outputs[next]!), state, vectorBytes)),
  ];
  const end = copies(`step.${name}`, ends);
  const kernels = [...(plan.carried.length > 0 ? [start] : []), ...step.kernels, end];
  const byName = new Map(kernels.map((k) => [k.name, k]));
  const tasks = [...step.tasks, launch(end.name)];
  const before = plan.carried.length > 0 ? [launch(start.name)] : [];
  const all = [...before, repeated(plan.trips, tasks, byName)];
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

/** Statements, whose loops are called as the prefix says. */
type Copy = (prefix: string) => readonly Statement[];

/** The elements of a tensor into another buffer; `row` says where along a further axis. */
function copy(
  { name, dtype, shape }: NestTensor,
  to: string,
  vectorBytes: number,
  row?: { readonly axis: number; readonly position: IndexExpr },
): Copy {
  const width = vectorBytes / 4;
  const last = constantValue(shape.at(-1) ?? constant(0)) ?? 0;
  const isDense = isOfLanes(dtype) && (row?.axis ?? 0) < Math.max(1, shape.length);
  const inLanes = isDense ? Math.floor(last / width) : 0;
  /** So many iterations along the last axis, from `start`. */
  const part = (prefix: string, start: number, extent: IndexExpr, lanes: number): Statement => {
    const extents = [...shape.slice(0, -1), ...(shape.length > 0 ? [extent] : [])];
    const loops = extents.map((e, i) => ({ name: `${prefix}${i}`, extent: e }));
    const index = loops.map((l) => variable(l.name));
    if (index.length > 0) index.push(add(start, mul(lanes, index.pop()!)));
    const into = row
      ? [...index.slice(0, row.axis), row.position, ...index.slice(row.axis)]
      : index;
    const value: Expr = {
      ...{ kind: "load", dtype, lanes, buffer: name, index },
      ...{ guard: [], fill: zeroOf(dtype) },
    };
    return loops.reduceRight<Statement>(
      (inner, l) => ({
        ...{ kind: "for", variable: l.name, extent: l.extent },
        ...{ mode: { kind: "serial" }, body: [inner] },
      }),
      { kind: "store", buffer: to, index: into, value },
    );
  };
  return (prefix) => {
    if (inLanes === 0) return [part(prefix, 0, shape.at(-1) ?? constant(1), 1)];
    const whole = part(`${prefix}v`, 0, constant(inLanes), width);
    const left = last - inLanes * width;
    if (left === 0) return [whole];
    return [whole, part(`${prefix}r`, inLanes * width, constant(left), 1)];
  };
}

function isOfLanes(dtype: NestTensor["dtype"]): boolean {
  return dtype === "f32" || dtype === "i32";
}

/** One kernel, of one thread, for all copies. */
function copies(name: string, all: readonly Copy[]): Kernel {
  const body = all.flatMap((make, i) => make(`c${i}x`));
  return {
    name,
    grid: threadGrid(false),
    buffers: [],
    counters: [],
    roles: [{ name: "main", copies: 1, threads: 1, body }],
    region: name,
  };
}
