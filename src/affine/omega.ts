/**
 * The integer solver: a point of { x : equalities = 0, inequalities >= 0 } or the proof that there is
 * none, over all integers, by the Omega test (W. Pugh, "The Omega test", 1991): equalities are
 * removed by Euclidean changes of variable, variables by Fourier-Motzkin with integer tightening,
 * which is exact when all lower or all upper coefficients of the variable are 1; otherwise the dark
 * shadow is tried, then the real shadow as a refutation, then the splinters in between.
 * Rows keep their width: an eliminated column is simply zero. Every row formed spends one unit.
 */
import { isRefuted, searchQuickly } from "./bounded-search.ts";
import {
  combine,
  evaluateRow,
  floorDiv,
  type Row,
  type RowKind,
  substitute,
  tightEquality,
} from "./row.ts";
import { tighten } from "./tighten.ts";
import { type Answer, answer, Work } from "./work.ts";

/** How to recover an eliminated variable from the values of the others. */
type Step = Substitution | { readonly column: number; readonly bounds: readonly Row[] };

/** The column is worth the value, where the value's own entry at the column is 0 or its new variable's. */
export interface Substitution {
  readonly column: number;
  readonly value: Row;
}

/** Some integer point of the system over `columns` variables, or null when it has none. */
export function findPoint(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
  work: Work,
): number[] | null {
  const quick = searchQuickly(equalities, inequalities, columns);
  work.spend(1 + equalities.length + inequalities.length);
  if (quick !== undefined) return quick;
  return solveExactly(equalities, inequalities, columns, work);
}

/** As findPoint, by the Omega test alone. */
export function solveExactly(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
  work: Work,
): number[] | null {
  return solve(equalities as number[][], inequalities as number[][], columns, work);
}

/** Some integer point where all rows (coefficients, then a constant) are at least 0, or null. */
export function findIntegerPoint(
  inequalities: readonly Row[],
  columns: number,
  limit?: number,
): Answer<readonly number[] | null> {
  return answer((work) => findPoint([], inequalities, columns, work), limit);
}

/**
 * Whether intervals, before or after the equalities are used up, show that there is no point: what is
 * asked of every set that is read, without the eliminations that may cost much.
 */
export function isPlainlyEmpty(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
): boolean {
  if (isRefuted(equalities, inequalities, columns)) return true;
  const rows = withoutEqualities(equalities, inequalities, [], new Work());
  return rows === null || isRefuted([], rows, columns);
}

/**
 * Inequalities that say the same once all equalities, given ones and those that opposite inequalities
 * turn out to be, have replaced columns; null when they are seen to contradict. `trail` tells how the
 * replaced columns are recovered, last step first.
 */
export function withoutEqualities(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  trail: Substitution[],
  work: Work,
): number[][] | null {
  let rows = inequalities as number[][];
  let equal = equalities as number[][];
  for (;;) {
    const reduced = removeEqualities(equal, rows, trail, work);
    const tight = reduced && tighten(reduced);
    if (!tight) return null;
    rows = tight.inequalities;
    equal = tight.equalities;
    if (equal.length === 0) return rows;
  }
}

function solve(
  equalities: number[][],
  inequalities: number[][],
  columns: number,
  work: Work,
): number[] | null {
  const trail: Step[] = [];
  let rows = inequalities;
  let equal = equalities;
  for (;;) {
    const reduced = withoutEqualities(equal, rows, trail as Substitution[], work);
    if (!reduced) return null;
    rows = reduced;
    equal = [];
    if (rows.length === 0) return replay(trail, new Array<number>(columns).fill(0));
    const choice = chooseVariable(rows, columns);
    if (!choice.exact) {
      const point = solveInexactly(rows, choice.column, columns, work);
      return point && replay(trail, point);
    }
    const split = splitBounds(rows, choice.column);
    trail.push({ column: choice.column, bounds: [...split.lower, ...split.upper] });
    rows = shadow(split, choice.column, "real", work);
  }
}

/**
 * Removes all equalities by substitution; null when one has no solution. With a unit coefficient the
 * variable is replaced by the rest; otherwise x_k := t - sum q_i x_i makes every other coefficient a
 * remainder below |a_k| (the Euclidean algorithm on columns; t takes x_k's column).
 */
function removeEqualities(
  equalities: number[][],
  inequalities: number[][],
  trail: Substitution[],
  work: Work,
): number[][] | null {
  const pending = equalities.slice();
  const rows = inequalities.slice();
  while (pending.length > 0) {
    const row = tightEquality(pending.pop()!);
    if (row === null) return null;
    if (row === undefined) continue;
    const column = smallestCoefficient(row);
    const value = eliminationRow(row, column);
    if (Math.abs(row[column]!) !== 1) pending.push(row);
    trail.push({ column, value });
    work.spend(1 + rows.length + pending.length);
    substituteAll(pending, column, value, "equality");
    substituteAll(rows, column, value, "inequality");
  }
  return rows;
}

function substituteAll(rows: number[][], column: number, value: Row, kind: RowKind): void {
  for (let i = 0; i < rows.length; i++) {
    if (rows[i]![column] !== 0) rows[i] = substitute(rows[i]!, column, value, kind);
  }
}

/** The expression that replaces `column`, by the equality `row` (see removeEqualities). */
export function eliminationRow(row: Row, column: number): number[] {
  const a = row[column]!;
  const sign = a > 0 ? -1 : 1;
  const out = new Array<number>(row.length);
  const magnitude = Math.abs(a);
  for (let i = 0; i < row.length; i++) {
    const q = magnitude === 1 ? row[i]! : floorDiv(row[i]!, magnitude);
    out[i] = sign * q + 0;
  }
  out[column] = magnitude === 1 ? 0 : 1;
  return out;
}

function smallestCoefficient(row: Row): number {
  let best = -1;
  let size = Infinity;
  for (let i = 0; i < row.length - 1; i++) {
    const m = Math.abs(row[i]!);
    if (m !== 0 && m < size) {
      size = m;
      best = i;
    }
  }
  return best;
}

/** The cheapest variable to eliminate; exact ones first. */
function chooseVariable(rows: readonly Row[], columns: number): { column: number; exact: boolean } {
  let best = -1;
  let bestExact = false;
  let bestCost = Infinity;
  for (let column = 0; column < columns; column++) {
    const { lower, upper, exact, largest } = countBounds(rows, column);
    if (lower + upper === 0) continue;
    const cost = lower * upper - lower - upper + (exact ? 0 : largest);
    if ((exact && !bestExact) || (exact === bestExact && cost < bestCost)) {
      best = column;
      bestExact = exact;
      bestCost = cost;
    }
  }
  return { column: best, exact: bestExact };
}

/** How `column` is bounded, and whether Fourier-Motzkin on it is exact over the integers. */
export function countBounds(
  rows: readonly Row[],
  column: number,
): { lower: number; upper: number; exact: boolean; largest: number } {
  let lower = 0;
  let upper = 0;
  let largestLower = 0;
  let largestUpper = 0;
  for (const row of rows) {
    const c = row[column]!;
    if (c > 0) {
      lower++;
      if (c > largestLower) largestLower = c;
    } else if (c < 0) {
      upper++;
      if (-c > largestUpper) largestUpper = -c;
    }
  }
  const exact = largestLower <= 1 || largestUpper <= 1;
  return { lower, upper, exact, largest: Math.max(largestLower, largestUpper) };
}

/** Inequalities by the sign of one column. */
export interface BoundSplit {
  readonly lower: number[][];
  readonly upper: number[][];
  readonly rest: number[][];
}

export function splitBounds(rows: readonly number[][], column: number): BoundSplit {
  const split: BoundSplit = { lower: [], upper: [], rest: [] };
  for (const row of rows) {
    const c = row[column]!;
    (c > 0 ? split.lower : c < 0 ? split.upper : split.rest).push(row);
  }
  return split;
}

/**
 * The constraints on the other variables: for every pair a*x >= l and b*x <= u the real shadow
 * a*u - b*l >= 0, or the dark shadow a*u - b*l >= (a - 1)(b - 1), under which x always exists.
 */
export function shadow(
  split: BoundSplit,
  column: number,
  kind: "real" | "dark",
  work: Work,
): number[][] {
  const rows = split.rest.slice();
  work.spend(1 + split.lower.length * split.upper.length);
  for (const low of split.lower) {
    for (const high of split.upper) {
      const a = low[column]!;
      const b = -high[column]!;
      const g = a === 1 || b === 1 ? 1 : gcdOf(a, b);
      const dark = kind === "dark" ? (a - 1) * (b - 1) : 0;
      // The dark shadow's slack is stated for the undivided pair.
      const row =
        dark === 0
          ? combine(b / g, low, a / g, high, "inequality")
          : combine(b, low, a, high, "value");
      row[column] = 0;
      if (dark !== 0) row[row.length - 1]! -= dark;
      rows.push(row);
    }
  }
  return rows;
}

function gcdOf(a: number, b: number): number {
  return b === 0 ? a : gcdOf(b, a % b);
}

/** Dark shadow, then the real shadow as a refutation, then splinters. */
function solveInexactly(
  rows: number[][],
  column: number,
  columns: number,
  work: Work,
): number[] | null {
  const split = splitBounds(rows, column);
  const bounds = [...split.lower, ...split.upper];
  const inDark = solve([], shadow(split, column, "dark", work), columns, work);
  if (inDark) return replay([{ column, bounds }], inDark);
  if (!solve([], shadow(split, column, "real", work), columns, work)) return null;
  for (const equality of splinters(split, column, work)) {
    work.spend(1);
    const point = solve([equality], rows, columns, work);
    if (point) return point;
  }
  return null;
}

/**
 * Equalities one of which every solution outside the dark shadow satisfies: with a the largest upper
 * coefficient, b*x = l + j for some lower bound b*x >= l and 0 <= j <= (a*b - a - b) / a. The side
 * that gives fewer of them is used (upper bounds are lower bounds of -x).
 */
export function splinters(split: BoundSplit, column: number, work: Work): number[][] {
  const ofUpper = largestCoefficient(split.upper, column);
  const ofLower = largestCoefficient(split.lower, column);
  const fromLower = countSplinters(split.lower, ofUpper, column);
  const fromUpper = countSplinters(split.upper, ofLower, column);
  work.spend(Math.min(fromLower, fromUpper));
  return fromLower <= fromUpper
    ? splintersOf(split.lower, ofUpper, column)
    : splintersOf(split.upper, ofLower, column);
}

/** The greatest j for a bound with coefficient b against a. */
function lastSplinter(a: number, b: number): number {
  return Math.floor((a * b - a - b) / a);
}

function countSplinters(bounds: readonly Row[], a: number, column: number): number {
  let count = 0;
  for (const bound of bounds) count += Math.max(0, lastSplinter(a, Math.abs(bound[column]!)) + 1);
  return count;
}

function splintersOf(bounds: readonly Row[], a: number, column: number): number[][] {
  const out: number[][] = [];
  for (const bound of bounds) {
    const most = lastSplinter(a, Math.abs(bound[column]!));
    for (let j = 0; j <= most; j++) {
      const row = bound.slice();
      row[row.length - 1]! -= j;
      out.push(row);
    }
  }
  return out;
}

function largestCoefficient(rows: readonly Row[], column: number): number {
  let m = 1;
  for (const row of rows) m = Math.max(m, Math.abs(row[column]!));
  return m;
}

/** Undoes the eliminations, last first, filling in one variable each. */
function replay(trail: readonly Step[], values: number[]): number[] {
  for (let i = trail.length - 1; i >= 0; i--) {
    const step = trail[i]!;
    values[step.column] =
      "value" in step
        ? evaluateRow(step.value, values)
        : pickWithin(step.bounds, step.column, values);
  }
  return values;
}

/** An integer within all bounds: the least one, else the greatest, else 0. */
function pickWithin(bounds: readonly Row[], column: number, values: number[]): number {
  let low = -Infinity;
  let high = Infinity;
  values[column] = 0;
  for (const row of bounds) {
    const c = row[column]!;
    const rest = evaluateRow(row, values);
    if (c > 0) low = Math.max(low, -floorDiv(rest, c));
    else high = Math.min(high, floorDiv(rest, -c));
  }
  const picked = low !== -Infinity ? low : high !== Infinity ? high : 0;
  return picked === 0 ? 0 : picked;
}
