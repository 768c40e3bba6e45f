/**
 * Launches that start while earlier ones still run. A thread of such a kernel may touch what no launch
 * writes (inputs and weights) at any time; everything else only behind its own wait for the earlier launches
 * (PTX ISA, "griddepcontrol.wait"). Some thread has to wait in any case, so that the end of a launch is also
 * the end of all before it: those behind it wait for its end alone.
 */
import { constantValue } from "../../semantics/index-expr.ts";
import type { Buffer, Kernel, Program, Task } from "../program.ts";
import { printStatements } from "../program-text.ts";
import type { Statement } from "../statement.ts";
import { ownExprs, visitExpr } from "../walk.ts";
import { rootOf } from "./launch-view.ts";
import type { Report } from "./report.ts";

/** Names of what launches write: buffers of the program, of its tables and its counters. */
export function madeByLaunches(
  program: Pick<Program, "buffers" | "counters" | "tasks">,
): ReadonlySet<string> {
  const { buffers, counters, tasks } = program;
  const byName = new Map(buffers.map((b) => [b.name, b]));
  const isGiven = ({ name }: Buffer): boolean => {
    const { kind } = byName.get(rootOf(buffers, name))!;
    return kind === "input" || kind === "weight";
  };
  const made = buffers.filter((b) => !isGiven(b)).map((b) => b.name);
  return new Set([...made, ...counters.map((c) => c.name), ...tableNames(tasks)]);
}

function tableNames(tasks: readonly Task[]): readonly string[] {
  return tasks.flatMap((t) => {
    if (t.kind === "if") return [...tableNames(t.then), ...tableNames(t.else)];
    if (t.kind === "while") return tableNames(t.body);
    if (t.kind === "repeat") return [...t.tables.map((x) => x.name), ...tableNames(t.body)];
    return [];
  });
}

/** Whether the statement by itself, without those inside it, touches one of the names. */
export function touches(s: Statement, names: ReadonlySet<string>): boolean {
  if (s.kind === "store" && names.has(s.buffer)) return true;
  if ((s.kind === "wait" || s.kind === "signal") && names.has(s.counter)) return true;
  if (s.kind === "intrinsic" && s.operands.some((o) => o.kind === "tile" && names.has(o.buffer)))
    return true;
  let found = false;
  for (const expr of ownExprs(s)) {
    visitExpr(expr, (e) => {
      found ||= e.kind === "load" && names.has(e.buffer);
    });
  }
  return found;
}

export function checkDependents(program: Program, report: Report): void {
  const made = madeByLaunches(program);
  const seen = new Set<string>();
  const list = (tasks: readonly Task[]): void => {
    tasks.forEach((task, i) => {
      if (task.kind === "launch") {
        if (task.after !== "started") return;
        if (tasks[i - 1]?.kind !== "launch") {
          report.add("PRG030", `launch of ${task.kernel} starts after no launch`, {
            help: "launch it after previous",
          });
        }
        if (!seen.has(task.kernel)) {
          seen.add(task.kernel);
          checkKernel(program.kernels.find((k) => k.name === task.kernel)!, made, report);
        }
      } else if (task.kind === "if") {
        list(task.then);
        list(task.else);
      } else if (task.kind !== "stop") list(task.body);
    });
  };
  list(program.tasks);
}

function checkKernel(kernel: Kernel, made: ReadonlySet<string>, report: Report): void {
  const early = (s: Statement, role: string): void => {
    const [text] = printStatements([s]).trim().split("\n");
    report.add("PRG030", `${text} while earlier launches may still run`, {
      at: `kernel ${kernel.name} role ${role}`,
      help: "wait until the prerequisites end before it",
    });
  };
  const ends = kernel.roles.map(({ body, name }) =>
    walk(body, { made, early: (s) => early(s, name) }, false),
  );
  if (ends.some((waited) => waited)) return;
  report.add("PRG030", "no thread surely waits for the earlier launches", {
    at: `kernel ${kernel.name}`,
    help: "wait until the prerequisites end at the end of a role",
  });
}

interface Walk {
  readonly made: ReadonlySet<string>;
  readonly early: (s: Statement) => void;
}

/** Whether the thread has surely waited behind the statements. */
function walk(body: readonly Statement[], at: Walk, before: boolean): boolean {
  let waited = before;
  for (const s of body) {
    if (!waited && touches(s, at.made)) at.early(s);
    if (s.kind === "awaitPrerequisites") waited = true;
    else if (s.kind === "for") {
      const inside = walk(s.body, at, waited);
      if (s.mode.kind !== "grid" && (constantValue(s.extent) ?? 0) > 0) waited = inside;
    } else if (s.kind === "if" || s.kind === "when") {
      const [yes, no] = [walk(s.then, at, waited), walk(s.else, at, waited)];
      waited = yes && no;
    }
  }
  return waited;
}
