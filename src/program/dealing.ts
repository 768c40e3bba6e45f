/**
 * How the work of a program is dealt out to threads while it runs. Where no launch cares which thread runs which
 * part of it, threads claim parts, first of their own share and then of what others have left, and go on
 * to the next launch once all parts of the last one are finished, whoever finished them: a thread that has no
 * processor holds up the others with at most the part that it had begun. In: a program. Out: for each
 * kernel what its parts are; nothing for a program whose threads have to meet.
 */
import type { Condition } from "../semantics/condition.ts";
import {
  add,
  constant,
  type IndexExpr,
  max,
  min,
  mul,
  negate,
  sub,
  substitute,
  variablesOf,
} from "../semantics/index-expr.ts";
import type { Launch } from "./launches.ts";
import { type Kernel, type Program, type Task, threadCountName } from "./program.ts";
import type { Statement } from "./statement.ts";
import { exprIndices, ownIndices, visitExprs, visitStatements } from "./walk.ts";

/** Parts 0 <= p < extent that any threads may run in any order. */
export interface Deal {
  /** `trips`: of the one loop over the grid that a run comes to; `instances`: of the grid's first axis. */
  readonly by: "trips" | "instances";
  readonly extent: IndexExpr;
}

/** By the names of kernels. */
export type Deals = ReadonlyMap<string, Deal>;

export function dealsOf({ kernels, tasks }: Program): Deals | undefined {
  const deals = new Map<string, Deal>();
  for (const kernel of kernels) {
    const deal = dealOf(kernel);
    if (!deal) return undefined;
    deals.set(kernel.name, deal);
  }
  return tasks.every(isSettled) ? deals : undefined;
}

/** Parts of a launch in terms of what is known around it. */
export function extentOf({ kernel, bindings }: Launch, deals: Deals): IndexExpr {
  return substitute(deals.get(kernel)!.extent, new Map(bindings));
}

/** Whether all of a task is one part: whoever claims it runs it from beginning to end. */
export function isOnePart(task: Task, deals: Deals): boolean {
  if (task.kind === "repeat") return task.body.every((inner) => isOnePart(inner, deals));
  if (task.kind !== "launch") return false;
  const { by, extent } = deals.get(task.kernel)!;
  return by === "instances" && extent.key === "1";
}

/** Tasks in order, those that follow each other and are one part each as one list. */
export function sectionsOf(tasks: readonly Task[], deals: Deals): readonly (readonly Task[])[] {
  const sections: Task[][] = [];
  let isOpen = false;
  for (const task of tasks) {
    const isOne = isOnePart(task, deals);
    if (isOne && isOpen) sections.at(-1)!.push(task);
    else sections.push([task]);
    isOpen = isOne;
  }
  return sections;
}

/** The way through the task does not depend on what is computed, and nothing in it waits for counters. */
function isSettled(task: Task): boolean {
  switch (task.kind) {
    case "launch":
      return task.waits.length === 0 && task.signals.length === 0;
    case "if":
      return task.condition.kind === "index" && [...task.then, ...task.else].every(isSettled);
    case "repeat":
      return task.body.every(isSettled);
    case "while":
      return false;
    case "stop":
      return true;
  }
}

function dealOf({ grid, roles }: Kernel): Deal | undefined {
  const [axis, ...inner] = grid.axes;
  const [role, ...others] = roles;
  if (grid.unit !== "threads" || !axis || !role) return undefined;
  if (others.length > 0 || role.copies * role.threads !== 1) return undefined;
  const [first, ...rest] = role.body;
  if (axis.extent.key !== threadCountName) {
    const extents = grid.axes.map((a) => a.extent);
    if (variablesOf(...extents).has(threadCountName)) return undefined;
    return isFree(role.body, [threadCountName])
      ? { by: "instances", extent: axis.extent }
      : undefined;
  }
  if (inner.length > 0 || rest.length > 0 || !first) return undefined;
  const extent = tripsOf(first, axis.name);
  return extent && { by: "trips", extent };
}

/** Trips of the one loop over the grid that the statement comes to, whichever way it goes; nothing where it is more. */
function tripsOf(s: Statement, axis: string): IndexExpr | undefined {
  const named = [axis, threadCountName];
  const isFixed = (...indices: readonly IndexExpr[]): boolean => {
    const found = variablesOf(...indices);
    return !named.some((name) => found.has(name));
  };
  if (s.kind === "for") {
    const { mode, extent, body } = s;
    if (mode.kind !== "grid" || mode.axis !== axis) return undefined;
    return isFixed(extent) && isFree(body, named) ? extent : undefined;
  }
  // Code for few rows and for many has loops of its own: which one runs is known before the launch.
  if (s.kind !== "if" || !isFixed(...s.conditions.map((c) => c.expr))) return undefined;
  const [then, otherwise] = [s.then, s.else].map((body) => {
    const [only, ...others] = body;
    if (others.length > 0) return undefined;
    return only ? tripsOf(only, axis) : constant(0);
  });
  if (!then || !otherwise) return undefined;
  const holds = mul(1, ...s.conditions.map(indicator));
  return add(otherwise, mul(holds, sub(then, otherwise)));
}

/** 1 where the condition holds, else 0. */
function indicator({ kind, expr }: Condition): IndexExpr {
  const isNonNegative = (e: IndexExpr) => min(1, max(0, add(e, 1)));
  return kind === "nonNegative"
    ? isNonNegative(expr)
    : mul(isNonNegative(expr), isNonNegative(negate(expr)));
}

/** No statement meets others, deals out a loop or mentions one of the names. */
function isFree(body: readonly Statement[], names: readonly string[]): boolean {
  let free = true;
  const look = (indices: readonly IndexExpr[]): void => {
    const found = variablesOf(...indices);
    if (names.some((name) => found.has(name))) free = false;
  };
  visitStatements(body, (s) => {
    if (s.kind === "barrier" || (s.kind === "for" && s.mode.kind === "grid")) free = false;
    look(ownIndices(s));
  });
  visitExprs(body, (e) => look(exprIndices(e)));
  return free;
}
