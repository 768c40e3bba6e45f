/**
 * Which buffers a task reads and which it writes: those of its kernels, those that its tables stand
 * for, the flags that it branches on. Goes in: kernels and tasks of a program; the names are as the
 * program has them, views not resolved.
 */
import { findTileIntrinsic } from "../program/intrinsic-table.ts";
import type { Kernel, Task, TaskCondition } from "../program/program.ts";
import type { Statement } from "../program/statement.ts";
import { ownExprs, visitExpr, visitStatements } from "../program/walk.ts";
import { invariant } from "../support/invariant.ts";

export interface Uses {
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
}

/** By name of the kernel. */
export function kernelUses(kernels: readonly Kernel[]): ReadonlyMap<string, Uses> {
  return new Map(kernels.map((k) => [k.name, statementUses(k.roles.flatMap((r) => r.body))]));
}

function statementUses(statements: readonly Statement[]): Uses {
  const reads = new Set<string>();
  const writes = new Set<string>();
  visitStatements(statements, (s) => {
    for (const e of ownExprs(s)) {
      visitExpr(e, (x) => {
        if (x.kind === "load") reads.add(x.buffer);
      });
    }
    if (s.kind === "store") writes.add(s.buffer);
    if (s.kind !== "intrinsic") return;
    const row = findTileIntrinsic(s.intrinsic);
    invariant(row, () => `no intrinsic ${s.intrinsic}`);
    s.operands.forEach((o, at) => {
      if (o.kind !== "tile") return;
      const { access } = row.operands[at]!;
      if (access !== "write") reads.add(o.buffer);
      if (access !== "read") writes.add(o.buffer);
    });
  });
  return { reads, writes };
}

/** Names of all buffers that statements load from or store to. */
export function buffersOf(statements: readonly Statement[]): ReadonlySet<string> {
  const { reads, writes } = statementUses(statements);
  return new Set([...reads, ...writes]);
}

export function taskUses(task: Task, kernels: ReadonlyMap<string, Uses>): Uses {
  const inside = (tasks: readonly Task[], flags: readonly string[]): Uses => {
    const all = tasks.map((t) => taskUses(t, kernels));
    return {
      reads: new Set([...flags, ...all.flatMap((u) => [...u.reads])]),
      writes: new Set(all.flatMap((u) => [...u.writes])),
    };
  };
  switch (task.kind) {
    case "launch":
      return kernels.get(task.kernel)!;
    case "if":
      return inside([...task.then, ...task.else], flagOf(task.condition));
    case "while":
      return inside(task.body, flagOf(task.condition));
    case "repeat": {
      const rows = new Map(task.tables.map((t) => [t.name, t.rows]));
      const named = (names: ReadonlySet<string>): ReadonlySet<string> =>
        new Set([...names].flatMap((name) => rows.get(name) ?? [name]));
      const { reads, writes } = inside(task.body, []);
      return { reads: named(reads), writes: named(writes) };
    }
    case "stop":
      return { reads: new Set(), writes: new Set() };
  }
}

function flagOf(condition: TaskCondition): readonly string[] {
  return condition.kind === "element" ? [condition.buffer] : [];
}
