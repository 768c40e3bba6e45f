/**
 * One row where a schedule has tiles of several. How many rows there are may be known only at run time (tokens
 * of a request): a tile of them is then there for many, and of one row only its columns are left, whose few
 * sums wait for each other. Instead the one row has several neighbouring tiles of columns at once. In: a
 * statement's loops. Out: those for one row, and when there is one. Prices are those of many rows.
 */
import type { ScheduledLoop, ScheduledStatement } from "../schedule/scheduled-region.ts";
import { atMost, type Condition } from "../semantics/condition.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  substitute,
  variable,
} from "../semantics/index-expr.ts";
import { substituteConditions } from "./conditions.ts";

export interface RowAlone {
  readonly scheduled: ScheduledStatement;
  /** Holds where there is one row, or none: that one is then outside the domain. */
  readonly when: Condition;
}

/** Tiles of columns that a row has at once, the most first. */
const tileCounts = [8, 4, 2] as const;

/**
 * @param mostSums vectors of sums that a row may have
 * @returns undefined where rows are known, are no tile, or fill the registers by themselves
 */
export function rowAlone(scheduled: ScheduledStatement, mostSums: number): RowAlone | undefined {
  const rows = rowsOf(scheduled);
  const columns = rows && columnsOf(scheduled, rows.origin);
  if (!rows || !columns) return undefined;
  const own = scheduled.loops.filter((l) => !rows.loops.includes(l));
  const sums = own
    .filter((l) => l.kind === "space" && l.mode === "unroll")
    .reduce((n, l) => n * constantValue(l.extent)!, 1);
  const trips = constantValue(columns.extent)!;
  const count = tileCounts.find((n) => n * sums <= mostSums && trips % n === 0);
  if (count === undefined) return undefined;
  const next: ScheduledLoop = {
    ...{ name: nextName(scheduled), origin: columns.origin, kind: "space", mode: "unroll" },
    extent: constant(count),
  };
  const fewer = { ...columns, extent: constant(trips / count) };
  const last = own.findLastIndex((l) => l.kind === "reduce");
  const loops = own.map((l) => (l === columns ? fewer : l)).toSpliced(last + 1, 0, next);
  const moved = new Map<string, IndexExpr>(rows.loops.map((l) => [l.name, constant(0)]));
  moved.set(columns.name, add(mul(count, variable(columns.name)), variable(next.name)));
  const index = new Map([...scheduled.index].map(([name, e]) => [name, substitute(e, moved)]));
  const ragged = substituteConditions(scheduled.ragged, moved);
  return {
    scheduled: { ...scheduled, loops, index, ragged },
    when: atMost(rows.extent, 1),
  };
}

interface Rows {
  readonly origin: string;
  /** Of the statement, before it was cut into tiles. */
  readonly extent: IndexExpr;
  readonly loops: readonly ScheduledLoop[];
}

/** The space loop whose extent is open and that was cut into a loop and a tile outside and inside a reduction. */
function rowsOf({ statement, loops }: ScheduledStatement): Rows | undefined {
  const reduce = loops.findIndex((l) => l.kind === "reduce");
  if (reduce < 0 || statement.indirects.length > 0) return undefined;
  for (const { name, extent } of statement.loops) {
    const own = loops.filter((l) => l.origin === name);
    const [outer, tile] = own;
    if (own.length !== 2 || constantValue(extent) !== undefined) continue;
    const isOutside = outer!.mode === "serial" && loops.indexOf(outer!) < reduce;
    if (isOutside && tile!.kind === "space" && tile!.mode === "unroll")
      return { origin: name, extent, loops: own };
  }
  return undefined;
}

/** The loop over tiles of columns, which end in a vector. */
function columnsOf({ loops }: ScheduledStatement, rows: string): ScheduledLoop | undefined {
  const reduce = loops.findIndex((l) => l.kind === "reduce");
  const lane = loops.find((l) => l.mode === "vector" && l.kind === "space");
  if (!lane || lane.origin === rows) return undefined;
  const outer = loops.filter((l, at) => at < reduce && l.origin === lane.origin);
  const [columns] = outer;
  const isOne = outer.length === 1 && (columns!.mode === "serial" || columns!.mode === "grid");
  return isOne && constantValue(columns!.extent) !== undefined ? columns : undefined;
}

/** Of a loop that no directive made. */
function nextName({ loops }: ScheduledStatement): string {
  const taken = new Set(loops.map((l) => l.name));
  let name = "next";
  while (taken.has(name)) name += "_";
  return name;
}
