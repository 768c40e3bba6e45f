/**
 * Which instances may run after, or at the same time as, which others under a tree: the opposite of
 * "surely before". Where a dimension is unordered, whatever differs there may run either way.
 */
import { below, type Constraint, equals, makeRelation } from "../build.ts";
import { type Affine, affine, replaceVariables } from "../expression.ts";
import type { NestStatement } from "../nest.ts";
import { emptyMap, union } from "../operations.ts";
import type { IntegerMap } from "../types.ts";
import { markOf, type TimePart } from "./flatten.ts";
import { meetsAtEnd } from "./tree.ts";

/** A statement with its time dimensions; `phase` is before (-1), in (0) or behind (1) the nest. */
export interface Timed {
  readonly statement: NestStatement;
  readonly phase: number;
  readonly parts: readonly TimePart[];
}

export interface FollowDetail {
  /** Whether an instance counts as following itself: two statements of one nest never tie otherwise. */
  readonly reflexive: boolean;
  /** What else must hold between the two; dimensions are spelled by `firstName` and `secondName`. */
  readonly where?: readonly Constraint[];
}

export function firstName(dimension: string): string {
  return `${dimension}'1`;
}

export function secondName(dimension: string): string {
  return `${dimension}'2`;
}

/** An expression over a statement's dimensions in the spelling of one side. */
export function onSide(
  { dims }: NestStatement,
  value: Affine,
  name: (dimension: string) => string,
): Affine {
  return replaceVariables(value, Object.fromEntries(dims.map((d) => [d, name(d)])));
}

/** { first -> second : second may run after first, or with it }. */
export function mayFollow(first: Timed, second: Timed, detail: FollowDetail): IntegerMap {
  const within = first.phase === 0 && second.phase === 0;
  const cases = within ? casesWithin(first, second, detail) : [[]];
  let all = emptyMap();
  if (first.phase > second.phase) return all;
  const dims = (t: Timed, name: (d: string) => string): readonly string[] =>
    t.statement.dims.map(name);
  for (const where of cases) {
    const one = makeRelation({
      from: { tuple: first.statement.name, dims: dims(first, firstName) },
      to: { tuple: second.statement.name, dims: dims(second, secondName) },
      where: [...where, ...(detail.where ?? [])],
    });
    all = union(all, one);
  }
  return all;
}

function casesWithin(first: Timed, second: Timed, { reflexive }: FollowDetail): Constraint[][] {
  const cases: Constraint[][] = [];
  const tied: Constraint[] = [];
  const depth = Math.max(first.parts.length, second.parts.length);
  for (let k = 0; k < depth; k++) {
    const [a, b] = [sideOf(first, k, firstName), sideOf(second, k, secondName)];
    cases.push([...tied, below(a, b)]);
    const [p, q] = [first.parts[k], second.parts[k]];
    if (p && q && p.node === q.node && markOf(p)) cases.push([...tied, below(b, a)]);
    tied.push(equals(a, b));
  }
  if (reflexive) cases.push(tied);
  return [...cases, ...acrossGrid(first, second)];
}

/** Different iterations of a grid loop, whatever is outside it in the kernel. */
function acrossGrid(first: Timed, second: Timed): Constraint[][] {
  const kernel = first.parts.findIndex((p) => p.loop !== undefined);
  const same = Array.from({ length: Math.max(kernel, 0) }, (_, k) =>
    equals(sideOf(first, k, firstName), sideOf(second, k, secondName)),
  );
  return first.parts.flatMap((p, k) => {
    if (!p.marks.some(meetsAtEnd) || p.node !== second.parts[k]?.node) return [];
    const [a, b] = [sideOf(first, k, firstName), sideOf(second, k, secondName)];
    return [
      [...same, below(a, b)],
      [...same, below(b, a)],
    ];
  });
}

function sideOf({ statement, parts }: Timed, k: number, name: (d: string) => string): Affine {
  return onSide(statement, parts[k]?.value ?? affine(0), name);
}
