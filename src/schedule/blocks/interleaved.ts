/**
 * Accesses of a statement that together take every place of a vector: of pairs, the first elements and the second
 * ones (2 i and 2 i + 1). In lanes along i neither is a vector, both are one; without lanes, those of one thread are.
 * In: accesses, the loop that is lanes or threads. Out: for each such access, where the vector begins and which of
 * its elements are its own.
 */
import type { Access, Write } from "../../region/nest.ts";
import {
  type IndexBindings,
  type IndexExpr,
  splitLinear,
  sub,
  substitute,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { ScheduledStatement } from "../scheduled-region.ts";

/** Elements from lane to lane, at most. */
const widestStep = 4;

interface Placed {
  readonly tensor: string;
  readonly index: readonly IndexExpr[];
  readonly guard?: readonly unknown[];
}

export interface Interleaved {
  /** The access with the first element of the vector, in the statement's own variables. */
  readonly first: readonly IndexExpr[];
  /** Elements from lane to lane: accesses that share the vector. */
  readonly step: number;
  /** Of so many neighbours, the access's own. */
  readonly at: number;
}

/** Of a statement on blocks: along its lanes, or where it has none, from thread to thread. */
export function interleavedIn({
  statement: { reads, writes },
  index,
  loops,
}: ScheduledStatement): ReadonlyMap<Access | Write, Interleaved> {
  const vectors = loops.filter((l) => l.mode === "vector");
  const along =
    vectors.length > 0
      ? vectors.find((l) => l.kind === "space")
      : loops.find((l) => l.mode === "threads");
  if (!along || writes.some((w) => w.combine !== "overwrite")) return new Map();
  const found = [reads, writes].flatMap((accesses) => [
    ...interleavedOf<Access | Write>(accesses, index, along.name),
  ]);
  // Alone, three elements begin at no multiple of what one instruction moves.
  return new Map(found.filter(([, { step }]) => vectors.length > 0 || step % 2 === 0));
}

/** @param index the statement's variables in terms of the schedule's loops */
export function interleavedOf<T extends Placed>(
  accesses: readonly T[],
  index: IndexBindings,
  lane: string,
): ReadonlyMap<T, Interleaved> {
  const found = new Map<T, Interleaved>();
  const families = new Map<string, { readonly access: T; readonly last: IndexExpr }[]>();
  for (const access of accesses) {
    const step = stepOf(access, index, lane);
    if (step === undefined) continue;
    const outer = access.index.slice(0, -1).map((e) => e.key);
    const last = access.index.at(-1)!;
    const key = [access.tensor, step, ...outer, sub(last, last.constant).key].join(" ");
    const family = families.get(key);
    if (family) family.push({ access, last });
    else families.set(key, [{ access, last }]);
  }
  for (const [key, family] of families) {
    const step = Number(key.split(" ")[1]);
    const sorted = family.toSorted((a, b) => a.last.constant - b.last.constant);
    for (let i = 0; i + step <= sorted.length; i++) {
      const run = sorted.slice(i, i + step);
      const isWhole = run.every(({ last }, at) => last.constant === run[0]!.last.constant + at);
      if (!isWhole) continue;
      run.forEach(({ access }, at) => {
        found.set(access, { first: run[0]!.access.index, step, at });
      });
      i += step - 1;
    }
  }
  return found;
}

/** How far it is from lane to lane along the last axis; undefined where that is no vector of several accesses. */
function stepOf(access: Placed, index: IndexBindings, lane: string): number | undefined {
  if ((access.guard?.length ?? 0) > 0) return undefined;
  const places = access.index.map((e) => substitute(e, index));
  if (places.slice(0, -1).some((e) => variablesOf(e).has(lane))) return undefined;
  const step = places.length > 0 ? splitLinear(places.at(-1)!, lane)?.coefficient : undefined;
  return step !== undefined && step > 1 && step <= widestStep ? step : undefined;
}
