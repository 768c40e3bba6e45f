/**
 * What is left of a loop that is cut into tiles, where its extent is known: 196 rows in sixes end with
 * four. In: a tile's loops, the conditions that its points must meet, ranges of what is bound outside.
 * Out: a loop of the tile, the outer loop whose last trip alone is not whole, and how many rows that trip
 * has; every row up to there is inside the domain.
 */
import type { ScheduledLoop } from "../schedule/scheduled-region.ts";
import type { Condition } from "../semantics/condition.ts";
import {
  constantValue,
  type IndexExpr,
  splitLinear,
  substitute,
  variablesOf,
} from "../semantics/index-expr.ts";
import type { IndexRanges } from "../semantics/index-range.ts";
import { hullOf, mentionsAny } from "./conditions.ts";

export interface LastTile {
  readonly loop: ScheduledLoop;
  /** Place of the condition that holds for the smaller tile, and for whole ones. */
  readonly condition: number;
  /** Holds where the tile is whole. */
  readonly hull: Condition;
  /** The outer variable, and its value where the tile is not whole. */
  readonly outer: string;
  readonly last: number;
  /** Trips of the loop there. */
  readonly rest: number;
}

export function lastTile(
  tile: readonly ScheduledLoop[],
  conditions: readonly Condition[],
  ranges: IndexRanges,
): LastTile | undefined {
  const names = tile.map((l) => l.name);
  for (const loop of tile) {
    if (loop.mode !== "unroll") continue;
    const own = conditions.flatMap((c, i) => (mentionsAny(c, [loop.name]) ? [i] : []));
    const [condition] = own;
    if (own.length !== 1 || conditions[condition!]!.kind !== "nonNegative") continue;
    const found = endOf(loop, conditions[condition!]!, { tile, names, ranges });
    if (found) return { loop, condition: condition!, ...found };
  }
  return undefined;
}

interface TilePlace {
  readonly tile: readonly ScheduledLoop[];
  readonly names: readonly string[];
  readonly ranges: IndexRanges;
}

function endOf(
  loop: ScheduledLoop,
  condition: Condition,
  { tile, names, ranges }: TilePlace,
): Omit<LastTile, "loop" | "condition"> | undefined {
  const [outer, another] = [...variablesOf(condition.expr)].filter((v) => !names.includes(v));
  const last = outer === undefined ? undefined : ranges.get(outer)?.max;
  if (another !== undefined || outer === undefined || last === undefined) return undefined;
  const hull = hullOf(condition, new Map(tile.map((l) => [l.name, l.extent])));
  const step = splitLinear(condition.expr, loop.name)?.coefficient;
  const move = hull && splitLinear(hull.expr, outer)?.coefficient;
  if (!hull || !Number.isFinite(last) || step === undefined || step >= 0) return undefined;
  if (move === undefined || move >= 0) return undefined;
  const at = (e: IndexExpr, value: number): number =>
    constantValue(substitute(e, new Map([[outer, value]]))) ?? Number.NaN;
  // Only the last trip is cut short.
  if (!(at(hull.expr, last) < 0 && at(hull.expr, last - 1) >= 0)) return undefined;
  const others = tile.filter((l) => l !== loop);
  const worst = hullOf(condition, new Map(others.map((l) => [l.name, l.extent])));
  if (!worst) return undefined;
  const rows = (count: number): number =>
    at(substitute(worst.expr, new Map([[loop.name, count]])), last);
  const rest = Math.floor(rows(0) / -step) + 1;
  if (!(rest >= 1)) return undefined;
  const zeros = new Map([...others.map((l) => [l.name, 0] as const), [loop.name, rest]]);
  const beyond = at(substitute(condition.expr, zeros), last);
  return beyond < 0 ? { hull, outer, last, rest } : undefined;
}
