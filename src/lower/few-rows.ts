/**
 * Few rows where a schedule has tiles of several. How many rows there are may be known only at run time (tokens
 * of a request, or those of an expert): a tile of them is then there for many. Of one row only its columns are
 * left, whose few sums wait for each other; of few, what the tile reads of a wide operand comes from far memory in one
 * narrow stream, and what is left of a tile has few sums again. Instead one row, or two at a time, have several
 * tiles of columns at once, which lie as far apart as they can: each is a stream of its own that goes on where it
 * ended, and the next two rows find it near. That is what engines' code gains by; of machine code one row alone has a
 * form, with neighbouring tiles. In: a statement's loops. Out: those for few rows, and when there are no more. Prices
 * are those of many rows.
 */
import type { ScheduledLoop, ScheduledStatement } from "../schedule/scheduled-region.ts";
import { atMost, type Condition } from "../semantics/condition.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  type IndexExpr,
  mul,
  substitute,
  variable,
} from "../semantics/index-expr.ts";
import { mentionsAny, substituteConditions } from "./conditions.ts";

export interface FewRows {
  readonly scheduled: ScheduledStatement;
  /** Holds where there are so few rows, or none: what a tile has beyond them is outside the domain. */
  readonly when: Condition;
}

/** Tiles of columns that rows have at once, the most first. */
const tileCounts = [8, 4, 2] as const;
/** Rows that are made together where there are few. */
const pair = 2;
/** Tiles of rows that are few: beyond, what they load again from near memory outweighs what streams gain. */
const fewTiles = 4;

export interface RowLimits {
  /** Vectors of sums that rows may have at once. */
  readonly sums: number;
  /** Whether tiles of columns lie apart and are read by two rows at a time. */
  readonly streams: boolean;
}

/**
 * @returns for the fewest rows first; none where rows are known, are no tile, or fill the registers by themselves
 */
export function fewRows(scheduled: ScheduledStatement, limits: RowLimits): readonly FewRows[] {
  const rows = rowsOf(scheduled);
  const columns = rows && columnsOf(scheduled, rows);
  if (!rows || !columns) return [];
  const tile = constantValue(rows.tile.extent)!;
  const forms = [{ together: 1, most: 1 }];
  // A tile that ends outside the domain would be the last of one stream in the middle of the others.
  const own = scheduled.loops.filter((l) => l.origin === columns.origin).map((l) => l.name);
  const streams = limits.streams && !scheduled.ragged.some((c) => mentionsAny(c, own));
  if (streams && tile > pair) forms.push({ together: pair, most: fewTiles * tile });
  return forms.flatMap(({ together, most }) => {
    const form = formOf(scheduled, { rows, columns, together, limits: { ...limits, streams } });
    return form ? [{ scheduled: form, when: atMost(rows.extent, most) }] : [];
  });
}

interface FormParts {
  readonly rows: Rows;
  readonly columns: ScheduledLoop;
  readonly together: number;
  readonly limits: RowLimits;
}

function formOf(
  scheduled: ScheduledStatement,
  { rows: { outer, tile, extent }, columns, together, limits }: FormParts,
): ScheduledStatement | undefined {
  const own = scheduled.loops.filter((l) => l !== outer && l !== tile);
  const sums = own
    .filter((l) => l.kind === "space" && l.mode === "unroll")
    .reduce((n, l) => n * constantValue(l.extent)!, together);
  const trips = constantValue(columns.extent)!;
  const count = tileCounts.find((n) => n * sums <= limits.sums && trips % n === 0);
  if (count === undefined) return undefined;
  const next: ScheduledLoop = {
    ...{ name: nextName(scheduled), origin: columns.origin, kind: "space", mode: "unroll" },
    extent: constant(count),
  };
  const each = trips / count;
  const [step, apart] = limits.streams ? [1, each] : [count, 1];
  const isOne = together === 1;
  const turns = isOne ? [] : [{ ...outer, extent: ceilDiv(extent, together) }];
  const copies = isOne ? [] : [{ ...tile, extent: constant(together) }];
  const last = own.findLastIndex((l) => l.kind === "reduce");
  const lane = own.findLastIndex((l) => l.mode === "vector");
  const loops = own.flatMap((l, at) => [
    // Of more vectors than rows one is alive at a time.
    ...(at === lane ? copies : []),
    ...(l === columns ? [{ ...columns, extent: constant(each) }, ...turns] : [l]),
    ...(at === last ? [next] : []),
  ]);
  const row = add(mul(together, variable(outer.name)), variable(tile.name));
  const moved = new Map<string, IndexExpr>([
    [outer.name, constant(0)],
    [tile.name, isOne ? constant(0) : row],
    [columns.name, add(mul(step, variable(columns.name)), mul(apart, variable(next.name)))],
  ]);
  const index = new Map([...scheduled.index].map(([name, e]) => [name, substitute(e, moved)]));
  const ragged = substituteConditions(scheduled.ragged, moved);
  return { ...scheduled, loops, index, ragged };
}

interface Rows {
  readonly origin: string;
  /** Of the statement, before it was cut into tiles. */
  readonly extent: IndexExpr;
  readonly outer: ScheduledLoop;
  readonly tile: ScheduledLoop;
}

/** The space loop whose extent is open and that was cut into a loop and a tile outside and inside a reduction. */
function rowsOf({ statement, loops }: ScheduledStatement): Rows | undefined {
  const reduce = loops.findIndex((l) => l.kind === "reduce");
  if (reduce < 0 || statement.indirects.length > 0) return undefined;
  for (const { name, extent } of statement.loops) {
    const [outer, tile, ...others] = loops.filter((l) => l.origin === name);
    if (!outer || !tile || others.length > 0 || constantValue(extent) !== undefined) continue;
    const isOutside = outer.mode === "serial" && loops.indexOf(outer) < reduce;
    if (isOutside && tile.kind === "space" && tile.mode === "unroll")
      return { origin: name, extent, outer, tile };
  }
  return undefined;
}

/** The loop over tiles of columns, which end in a vector. */
function columnsOf({ loops }: ScheduledStatement, rows: Rows): ScheduledLoop | undefined {
  const reduce = loops.findIndex((l) => l.kind === "reduce");
  const lane = loops.find((l) => l.mode === "vector" && l.kind === "space");
  if (!lane || lane.origin === rows.origin) return undefined;
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
