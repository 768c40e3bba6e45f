/**
 * A quick look at a system before the exact test: interval propagation over its rows, which refutes most
 * empty systems, and three greedy dives into the box that is left (everything at its lower end, its
 * upper end, near zero), which find a point of most inhabited ones. Neither is complete; what they say
 * is exact. Numbers that could round are not tried.
 */
import type { Row } from "./row.ts";

const mostColumns = 32;
const largestCoefficient = 2 ** 16;
const largestConstant = 2 ** 48;
/** Bounds beyond this count as none. With the limits above no sum of a row leaves 2^53. */
const largestBound = 2 ** 31;
/** Passes over all rows before what is known is left as it is. */
const mostPasses = 6;

/** The columns that each row uses, as bits: equalities first. Grows; kept between calls. */
let uses = new Int32Array(64);
/** The columns whose interval has changed since rows were looked at, as bits. */
let moved = 0;
const allColumns = -1;

/** Ends of the intervals, kept between calls; `saved` is the box before a dive. */
const low = new Float64Array(mostColumns);
const high = new Float64Array(mostColumns);
const savedLow = new Float64Array(mostColumns);
const savedHigh = new Float64Array(mostColumns);

/** A point, null when there is none, undefined when this does not find out. */
export function searchQuickly(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
): number[] | null | undefined {
  if (!canSearch(equalities, inequalities, columns)) return undefined;
  openAll(columns);
  if (!propagate(equalities, inequalities, allColumns)) return null;
  if (isContradicted(equalities, inequalities)) return null;
  for (let c = 0; c < columns; c++) {
    savedLow[c] = low[c]!;
    savedHigh[c] = high[c]!;
  }
  for (let dive = 0; dive < 3; dive++) {
    if (dive > 0) {
      for (let c = 0; c < columns; c++) {
        low[c] = savedLow[c]!;
        high[c] = savedHigh[c]!;
      }
    }
    if (diveTowards(dive, equalities, inequalities, columns)) return pointFound(columns);
  }
  return undefined;
}

/** Whether intervals alone show that there is no point. */
export function isRefuted(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
): boolean {
  if (!canSearch(equalities, inequalities, columns)) return false;
  openAll(columns);
  return !propagate(equalities, inequalities, allColumns);
}

/** How many points the intervals of the first `count` columns span; infinite where one is open. */
export function spannedPoints(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
  count: number,
): number {
  if (!canSearch(equalities, inequalities, columns)) return Infinity;
  openAll(columns);
  if (!propagate(equalities, inequalities, allColumns)) return 0;
  let points = 1;
  for (let c = 0; c < count; c++) points *= high[c]! - low[c]! + 1;
  return points;
}

/** Whether a row is a multiple of an equality but for the constant, and fails: open intervals do not show it. */
function isContradicted(equalities: readonly Row[], inequalities: readonly Row[]): boolean {
  for (let e = 0; e < equalities.length; e++) {
    const equality = equalities[e]!;
    const last = equality.length - 1;
    let lead = 0;
    while (lead < last && equality[lead] === 0) lead++;
    if (lead === last) continue;
    for (let r = 0; r < inequalities.length; r++) {
      const row = inequalities[r]!;
      if (row[lead] === 0 || row[lead]! % equality[lead]! !== 0) continue;
      const times = row[lead]! / equality[lead]!;
      let c = lead + 1;
      while (c < last && row[c] === times * equality[c]!) c++;
      if (c < last || !isZeroBefore(row, lead)) continue;
      const constant = times * equality[last]!;
      if (Number.isSafeInteger(constant) && row[last]! < constant) return true;
    }
  }
  return false;
}

function isZeroBefore(row: Row, end: number): boolean {
  for (let c = 0; c < end; c++) if (row[c] !== 0) return false;
  return true;
}

function openAll(columns: number): void {
  for (let c = 0; c < columns; c++) {
    low[c] = -Infinity;
    high[c] = Infinity;
  }
}

/** Also notes which columns the rows use. */
function canSearch(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
): boolean {
  if (columns > mostColumns) return false;
  const rows = equalities.length + inequalities.length;
  if (rows > uses.length) uses = new Int32Array(2 * rows);
  return noteSmall(equalities, 0) && noteSmall(inequalities, equalities.length);
}

/** False where a number is large. */
function noteSmall(rows: readonly Row[], first: number): boolean {
  for (let r = 0; r < rows.length; r++) {
    const row = rows[r]!;
    const last = row.length - 1;
    let used = 0;
    for (let c = 0; c < last; c++) {
      const v = row[c]!;
      if (v === 0) continue;
      if (v > largestCoefficient || v < -largestCoefficient) return false;
      used |= 1 << c;
    }
    const constant = row[last]!;
    if (constant > largestConstant || constant < -largestConstant) return false;
    uses[first + r] = used;
  }
  return true;
}

/** Fixes one column after the other, narrowest first; false when that leads nowhere. */
function diveTowards(
  dive: number,
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
): boolean {
  for (;;) {
    const column = narrowestOpen(columns);
    if (column < 0) return allHold(equalities, inequalities);
    const value = valueFor(dive, low[column]!, high[column]!);
    low[column] = value;
    high[column] = value;
    if (!propagate(equalities, inequalities, 1 << column)) return false;
  }
}

function narrowestOpen(columns: number): number {
  let best = -1;
  let width = Infinity;
  for (let c = 0; c < columns; c++) {
    const w = high[c]! - low[c]!;
    if (w > 0 && (w < width || best < 0)) {
      best = c;
      width = w;
    }
  }
  return best;
}

function valueFor(dive: number, least: number, most: number): number {
  if (dive === 0 && least !== -Infinity) return least;
  if (dive === 1 && most !== Infinity) return most;
  return Math.max(least, Math.min(most, 0));
}

/** Whether every row holds at the point that the fixed columns are. */
function allHold(equalities: readonly Row[], inequalities: readonly Row[]): boolean {
  for (let r = 0; r < inequalities.length; r++) if (valueAtLow(inequalities[r]!) < 0) return false;
  for (let r = 0; r < equalities.length; r++) if (valueAtLow(equalities[r]!) !== 0) return false;
  return true;
}

function valueAtLow(row: Row): number {
  const last = row.length - 1;
  let sum = row[last]!;
  for (let c = 0; c < last; c++) if (row[c] !== 0) sum += row[c]! * low[c]!;
  return sum;
}

function pointFound(columns: number): number[] {
  const out = new Array<number>(columns);
  for (let c = 0; c < columns; c++) out[c] = low[c]! + 0;
  return out;
}

/**
 * Narrows the intervals until nothing changes, by the rows that use a column of `fresh` or one that has
 * changed since; by all rows, also those without columns, where `fresh` is all. False when one is empty.
 */
function propagate(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  fresh: number,
): boolean {
  let before = fresh;
  for (let pass = 0; pass < mostPasses; pass++) {
    moved = 0;
    const all = before === allColumns;
    for (let r = 0; r < equalities.length; r++) {
      const used = uses[r]!;
      if (!all && (used & (before | moved)) === 0) continue;
      if (!narrowBy(equalities[r]!, used, 1) || !narrowBy(equalities[r]!, used, -1)) return false;
    }
    for (let r = 0; r < inequalities.length; r++) {
      const used = uses[equalities.length + r]!;
      if (!all && (used & (before | moved)) === 0) continue;
      if (!narrowBy(inequalities[r]!, used, 1)) return false;
    }
    if (moved === 0) return true;
    before = moved;
  }
  return true;
}

/** Narrows by sign * row >= 0; false when that is impossible. */
function narrowBy(row: Row, used: number, sign: 1 | -1): boolean {
  let most = sign * row[row.length - 1]!;
  let open = 0;
  let openColumn = -1;
  for (let left = used; left !== 0; left &= left - 1) {
    const c = lowestColumn(left);
    const v = sign * row[c]!;
    const end = v > 0 ? high[c]! : low[c]!;
    if (end === Infinity || end === -Infinity) {
      if (++open > 1) return true;
      openColumn = c;
    } else most += v * end;
  }
  if (open === 1) return narrowColumn(openColumn, sign * row[openColumn]!, most);
  if (most < 0) return false;
  for (let left = used; left !== 0; left &= left - 1) {
    const c = lowestColumn(left);
    const v = sign * row[c]!;
    // Nothing to gain where even the column's other end satisfies the row.
    if (most >= (v > 0 ? v : -v) * (high[c]! - low[c]!)) continue;
    if (!narrowColumn(c, v, most - v * (v > 0 ? high[c]! : low[c]!))) return false;
  }
  return true;
}

function lowestColumn(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}

/** By v * column + rest >= 0. */
function narrowColumn(column: number, v: number, rest: number): boolean {
  if (v > 0) {
    const least = Math.ceil(-rest / v);
    if (least <= low[column]! || least > largestBound || least < -largestBound) {
      return least <= high[column]!;
    }
    low[column] = least;
  } else {
    const most = Math.floor(rest / -v);
    if (most >= high[column]! || most > largestBound || most < -largestBound) {
      return most >= low[column]!;
    }
    high[column] = most;
  }
  moved |= 1 << column;
  return low[column]! <= high[column]!;
}
