/**
 * Launches that start while the one before still runs (program dependent launch; PTX ISA, "griddepcontrol"):
 * numbers of threads, barriers and copies of weights are then hidden behind the end of the kernel before. Of
 * launches in a row, all but the first. Each block lets the next launch begin at once, which takes effect when
 * the last block of the grid has started, so that no block of a kernel waits for room that those of a later
 * one hold; a thread waits for the earlier launches right before it first touches what launches write.
 */
import type { Kernel, Program, Role, Task } from "../program/program.ts";
import type { Statement } from "../program/statement.ts";
import { madeByLaunches, touches } from "../program/validate/dependents.ts";
import { childBodies } from "../program/walk.ts";
import { variablesOf } from "../semantics/index-expr.ts";

export function withDependentLaunches(program: Program): Program {
  const made = madeByLaunches(program);
  const first = new Set<string>();
  const next = new Set<string>();
  const tasks = program.tasks.map((task, i): Task => {
    const before = i > 0 ? program.tasks[i - 1] : undefined;
    const isNext = task.kind === "launch" && before?.kind === "launch";
    if (!isNext || task.after !== "previous") return task;
    first.add(before.kernel);
    next.add(task.kernel);
    return { ...task, after: "started" };
  });
  const kernels = program.kernels.map((kernel) => {
    const waiting = next.has(kernel.name) ? withWaits(kernel, made) : kernel;
    if (!first.has(kernel.name)) return waiting;
    const roles = waiting.roles.map((r) => ({ ...r, body: [begin, ...r.body] }));
    return { ...waiting, roles };
  });
  return { ...program, tasks, kernels };
}

const begin: Statement = { kind: "launchDependents" };
const wait: Statement = { kind: "awaitPrerequisites" };

/** Somewhere all threads of a role come by a wait, if only at its end. */
function withWaits(kernel: Kernel, made: ReadonlySet<string>): Kernel {
  const placed = kernel.roles.map((role) => placeWait(role.body, role, made));
  const waits = placed.some((p) => p.waits);
  const roles = kernel.roles.map((role, i) => {
    const { body } = placed[i]!;
    return { ...role, body: waits || i > 0 ? body : [...body, wait] };
  });
  return { ...kernel, roles };
}

/** The body with its waits, and whether every thread comes by one. */
function placeWait(
  body: readonly Statement[],
  role: Role,
  made: ReadonlySet<string>,
): { readonly body: readonly Statement[]; readonly waits: boolean } {
  const first = body.findIndex((s) => touchesInside(s, made) && !isChoice(s, role));
  const end = first < 0 ? body.length : first;
  const before = body.slice(0, end).map((s): Statement => {
    if (s.kind !== "if" || !touchesInside(s, made)) return s;
    const [then, other] = [placeWait(s.then, role, made), placeWait(s.else, role, made)];
    return { ...s, then: then.body, else: other.body };
  });
  if (first < 0) return { body: before, waits: false };
  return { body: [...before, wait, ...body.slice(first)], waits: true };
}

/** Whether it is a choice among the threads of a block, whose ways wait by themselves. */
function isChoice(s: Statement, { threadVariable }: Role): boolean {
  if (s.kind !== "if" || threadVariable === undefined) return false;
  const names = variablesOf(...s.conditions.map((c) => c.expr));
  return [...names].every((name) => name === threadVariable);
}

function touchesInside(s: Statement, made: ReadonlySet<string>): boolean {
  return touches(s, made) || childBodies(s).some((b) => b.some((x) => touchesInside(x, made)));
}
