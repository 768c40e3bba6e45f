/**
 * Two iterations that need each other and that loops on threads would separate, in words: the witness of
 * refusals that the form of a schedule decides before any order is looked at.
 */
import * as affine from "../affine/index.ts";
import { bridgeRegion } from "../region/affine-bridge.ts";
import { orderOf } from "./refusal.ts";
import type { ScheduledRegion } from "./scheduled-region.ts";

/** `threads` says which thread runs an iteration of a statement; undefined where no such pair is found. */
export function separatedPair(
  region: ScheduledRegion,
  threads: ReadonlyMap<string, affine.AffineLike>,
): string | undefined {
  const { affine: statements, context, approximated } = bridgeRegion(region.region);
  const found = affine.findDependences(statements);
  if (approximated.length > 0 || found.kind === "unknown") return undefined;
  const times = new Map(
    region.region.statements.flatMap(({ name, loops }) => {
      const value = threads.get(name);
      if (value === undefined) return [];
      const from = { tuple: name, dims: loops.map((l) => l.name) };
      return [[name, affine.makeMap({ from, to: { values: [value] } })] as const];
    }),
  );
  const schedule = { times, marks: [{ dimension: 0, kind: "parallel" as const }] };
  for (const d of found.value) {
    if (!times.has(d.source) || !times.has(d.sink)) continue;
    const one = affine.checkApart(schedule, d, { context });
    if (one.kind === "illegal") return orderOf(region, one.witness);
  }
  return undefined;
}
