/**
 * Who writes and who reads each tensor of a nest program, by position of the item. A view is another
 * name: its readers count as readers of what it is a view of. A statement that updates a tensor in
 * place counts as a reader of it, and the caller of the program as a reader after everything.
 */
import { variablesOf } from "../semantics/index-expr.ts";
import type { NestProgram, Statement } from "./nest.ts";

/** What a reader is: an item by position, or the caller after the last item. */
export interface Uses {
  readonly statementAt: ReadonlyMap<string, number>;
  readonly writers: ReadonlyMap<string, readonly number[]>;
  /** Sorted positions; `items.length` stands for the caller and `aliased` readers count too. */
  readonly readers: ReadonlyMap<string, readonly number[]>;
  /** Tensors that somebody reads under another name. */
  readonly aliased: ReadonlySet<string>;
  /** What each view is a view of, in the end. */
  readonly roots: ReadonlyMap<string, string>;
}

/** Names of the tensors that a statement reads, each once. */
export function tensorsRead(statement: Statement): ReadonlySet<string> {
  const { reads, finishReads, indirects } = statement;
  const accesses = [...reads, ...finishReads, ...indirects.map((v) => v.access)];
  return new Set(accesses.map((a) => a.tensor));
}

/** Whether the statement changes elements that others wrote. */
export function updatesInPlace(statement: Statement): boolean {
  const loaded = new Set(statement.indirects.map((v) => v.name));
  return statement.writes.some(
    (w) => w.combine !== "overwrite" || [...variablesOf(...w.index)].some((n) => loaded.has(n)),
  );
}

/** The first of ascending positions that is greater than `after`; undefined where none is. */
export function firstBehind(positions: readonly number[], after: number): number | undefined {
  return positions[countUpTo(positions, after)];
}

/** How many of ascending positions are not greater than `last`. */
export function countUpTo(positions: readonly number[], last: number): number {
  let [from, to] = [0, positions.length];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (positions[middle]! <= last) from = middle + 1;
    else to = middle;
  }
  return from;
}

export function findUses(program: NestProgram): Uses {
  const statementAt = new Map<string, number>();
  const writers = new Map<string, number[]>();
  const readers = new Map<string, number[]>();
  const roots = new Map<string, string>();
  const aliased = new Set<string>();
  const push = (map: Map<string, number[]>, tensor: string, at: number): void => {
    const root = roots.get(tensor) ?? tensor;
    const list = map.get(root) ?? [];
    if (list.at(-1) !== at) list.push(at);
    map.set(root, list);
    if (map === readers && root !== tensor) aliased.add(root);
  };
  for (const [at, item] of program.items.entries()) {
    if (item.kind === "view") {
      roots.set(item.view.tensor, roots.get(item.view.of) ?? item.view.of);
    } else if (item.kind === "routine") {
      for (const tensor of item.routine.reads) push(readers, tensor, at);
      for (const tensor of item.routine.writes) push(writers, tensor, at);
    } else {
      const { statement } = item;
      statementAt.set(statement.name, at);
      for (const tensor of tensorsRead(statement)) push(readers, tensor, at);
      for (const { tensor } of statement.writes) {
        push(writers, tensor, at);
        if (updatesInPlace(statement)) push(readers, tensor, at);
      }
    }
  }
  for (const output of program.outputs) push(readers, output, program.items.length);
  return { statementAt, writers, readers, aliased, roots };
}
