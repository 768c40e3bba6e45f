/**
 * A program of nests: statements, the tree of their original order, and which arrays matter outside.
 * A plan is such a program with the tree that is to run it.
 */
import { type Dependence, findDependences, type Statement } from "../dependence.ts";
import { type NestStatement, toStatement } from "../nest.ts";
import type { IntegerSet } from "../types.ts";
import type { Answer } from "../work.ts";
import { flattenTree } from "./flatten.ts";
import type { ScheduleTree } from "./tree.ts";

export interface Nest {
  readonly statements: readonly NestStatement[];
  /** The original order: without marks and sets. */
  readonly tree: ScheduleTree;
  /** Arrays that hold values before the nest runs. */
  readonly given: ReadonlySet<string>;
  /** Arrays that are read after it. */
  readonly kept: ReadonlySet<string>;
  /** What holds for the parameters. */
  readonly context?: IntegerSet;
}

export interface Plan {
  readonly nest: Nest;
  readonly tree: ScheduleTree;
}

/** The statements as dependence analysis takes them, in the order of a tree. */
export function orderedStatements(
  statements: readonly NestStatement[],
  tree: ScheduleTree,
): readonly Statement[] {
  const { times } = flattenTree(tree, statements);
  return statements.map((s) => toStatement(s, times.get(s.name)!));
}

/** Trees and statements are immutable, so the dependences of each nest are found once. */
const found = new WeakMap<Nest, Answer<readonly Dependence[]>>();

export function nestDependences(nest: Nest): Answer<readonly Dependence[]> {
  let known = found.get(nest);
  if (!known) {
    known = findDependences(orderedStatements(withoutInputs(nest.statements), nest.tree));
    found.set(nest, known);
  }
  return known;
}

/** Without the reads of arrays that no statement writes: nothing depends on them. */
function withoutInputs(statements: readonly NestStatement[]): readonly NestStatement[] {
  const written = new Set<string>();
  for (const { accesses } of statements) {
    for (const a of accesses) if (a.kind !== "read") written.add(a.array);
  }
  return statements.map((s) => ({
    ...s,
    accesses: s.accesses.filter((a) => written.has(a.array)),
  }));
}
