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
  if (!propagate(equalities, inequalities)) return null;
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
  return !propagate(equalities, inequalities);
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
  if (!propagate(equalities, inequalities)) return 0;
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

function canSearch(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
): boolean {
  return columns <= mostColumns && areSmall(equalities) && areSmall(inequalities);
}

function areSmall(rows: readonly Row[]): boolean {
  for (let r = 0; r < rows.length; r++) {
    const row = rows[r]!;
    const last = row.length - 1;
    for (let c = 0; c < last; c++) {
      const v = row[c]!;
      if (v > largestCoefficient || v < -largestCoefficient) return false;
    }
    const constant = row[last]!;
    if (constant > largestConstant || constant < -largestConstant) return false;
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
    if (!propagate(equalities, inequalities)) return false;
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

/** Narrows the intervals by all rows until nothing changes; false when one is empty. */
function propagate(equalities: readonly Row[], inequalities: readonly Row[]): boolean {
  for (let pass = 0; pass < mostPasses; pass++) {
    let changed = false;
    for (let r = 0; r < equalities.length; r++) {
      const upper = narrowBy(equalities[r]!, 1);
      if (upper < 0) return false;
      const lower = narrowBy(equalities[r]!, -1);
      if (lower < 0) return false;
      if (upper + lower > 0) changed = true;
    }
    for (let r = 0; r < inequalities.length; r++) {
      const found = narrowBy(inequalities[r]!, 1);
      if (found < 0) return false;
      if (found > 0) changed = true;
    }
    if (!changed) return true;
  }
  return true;
}

/** Narrows by sign * row >= 0: -1 when that is impossible, 1 when an interval changed, else 0. */
function narrowBy(row: Row, sign: 1 | -1): -1 | 0 | 1 {
  const last = row.length - 1;
  let most = sign * row[last]!;
  let open = 0;
  let openColumn = -1;
  for (let c = 0; c < last; c++) {
    const v = sign * row[c]!;
    if (v === 0) continue;
    const end = v > 0 ? high[c]! : low[c]!;
    if (end === Infinity || end === -Infinity) {
      if (++open > 1) return 0;
      openColumn = c;
    } else most += v * end;
  }
  if (open === 1) return narrowColumn(openColumn, sign * row[openColumn]!, most);
  if (most < 0) return -1;
  let changed: 0 | 1 = 0;
  for (let c = 0; c < last; c++) {
    const v = sign * row[c]!;
    if (v === 0) continue;
    // Nothing to gain where even the column's other end satisfies the row.
    if (most >= (v > 0 ? v : -v) * (high[c]! - low[c]!)) continue;
    const found = narrowColumn(c, v, most - v * (v > 0 ? high[c]! : low[c]!));
    if (found < 0) return -1;
    if (found > 0) changed = 1;
  }
  return changed;
}

/** By v * column + rest >= 0. */
function narrowColumn(column: number, v: number, rest: number): -1 | 0 | 1 {
  if (v > 0) {
    const least = Math.ceil(-rest / v);
    if (least <= low[column]! || least > largestBound || least < -largestBound) {
      return least > high[column]! ? -1 : 0;
    }
    low[column] = least;
  } else {
    const most = Math.floor(rest / -v);
    if (most >= high[column]! || most > largestBound || most < -largestBound) {
      return most < low[column]! ? -1 : 0;
    }
    high[column] = most;
  }
  return low[column]! > high[column]! ? -1 : 1;
}
