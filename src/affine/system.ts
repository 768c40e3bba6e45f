/**
 * The mutable form in which a piece is worked on: constraint rows over fixed columns (parameters and
 * dimensions) and locals, with `simplify` that keeps it small and `defineLocals` that turns every
 * local into an integer division of fixed columns (exact quantifier elimination by Euclidean column
 * changes, parametric minima and, last, Omega splinters). piece.ts converts from and to values.
 */

import { countBounds, eliminationRow, shadow, splitBounds } from "./omega.ts";
import {
  coefficientGcd,
  combine,
  floorDiv,
  gcd,
  isZeroRow,
  modulo,
  negateRow,
  type Row,
  type RowKind,
  substitute,
  tightEquality,
  zeroRow,
} from "./row.ts";
import { tighten } from "./tighten.ts";
import type { Division } from "./types.ts";
import { Work } from "./work.ts";

export interface System {
  /** Columns before the locals. */
  readonly fixed: number;
  locals: (Division | null)[];
  equalities: number[][];
  inequalities: number[][];
}

/** floor bounds of every defined local: 0 <= numerator - divisor * local <= divisor - 1. */
export function divisionRows(system: System): number[][] {
  const rows: number[][] = [];
  for (let i = 0; i < system.locals.length; i++) {
    const d = system.locals[i];
    if (d) pushBounds(rows, d, system.fixed + i);
  }
  return rows;
}

function pushBounds(rows: number[][], division: Division, column: number): void {
  const low = division.numerator.slice();
  low[column]! -= division.divisor;
  const high = negateRow(low);
  high[high.length - 1]! += division.divisor - 1;
  rows.push(low, high);
}

/** Makes local `index` a free integer: its definition becomes two inequalities. */
export function undefineLocal(system: System, index: number): void {
  const division = system.locals[index];
  if (!division) return;
  pushBounds(system.inequalities, division, system.fixed + index);
  system.locals[index] = null;
}

/** Replaces `column` everywhere by `value`, in definitions too; all of it or, on overflow, nothing. */
export function substituteEverywhere(system: System, column: number, value: Row): void {
  const equalities = substituteRows(system.equalities, column, value, "equality");
  const inequalities = substituteRows(system.inequalities, column, value, "inequality");
  const locals = system.locals.slice();
  for (let i = 0; i < locals.length; i++) {
    const d = locals[i];
    if (!d || d.numerator[column] === 0) continue;
    locals[i] = {
      numerator: substitute(d.numerator, column, value, "value"),
      divisor: d.divisor,
    };
  }
  system.equalities = equalities;
  system.inequalities = inequalities;
  system.locals = locals;
}

function substituteRows(
  rows: readonly number[][],
  column: number,
  value: Row,
  kind: RowKind,
): number[][] {
  const out = new Array<number[]>(rows.length);
  for (let i = 0; i < rows.length; i++) out[i] = substitute(rows[i]!, column, value, kind);
  return out;
}

/**
 * Restores the invariant that definitions use only fixed columns and defined locals before them:
 * a definition that (also indirectly) uses a free local, or itself, becomes inequalities; the rest
 * are put in order, defined ones first.
 */
export function settleLocals(system: System): void {
  if (areSettled(system)) return;
  const { fixed, locals } = system;
  const order: number[] = [];
  const placed = new Set<number>();
  let progress = true;
  while (progress) {
    progress = false;
    locals.forEach((d, i) => {
      if (!d || placed.has(i)) return;
      const ready = locals.every((_, k) => d.numerator[fixed + k] === 0 || placed.has(k));
      if (!ready) return;
      placed.add(i);
      order.push(i);
      progress = true;
    });
  }
  for (let i = 0; i < locals.length; i++) {
    if (placed.has(i)) continue;
    undefineLocal(system, i);
    order.push(i);
  }
  if (order.some((from, to) => from !== to)) arrangeLocals(system, order);
}

/** Whether defined locals come first and each uses only those before it. */
function areSettled({ fixed, locals }: System): boolean {
  let defined = 0;
  while (defined < locals.length && locals[defined] !== null) defined++;
  for (let i = defined; i < locals.length; i++) if (locals[i] !== null) return false;
  for (let i = 0; i < defined; i++) {
    const { numerator } = locals[i]!;
    for (let k = i; k < locals.length; k++) if (numerator[fixed + k] !== 0) return false;
  }
  return true;
}

/** Keeps the locals listed in `order`, in that order. Dropped ones must not be in use. */
export function arrangeLocals(system: System, order: readonly number[]): void {
  const { fixed } = system;
  system.equalities = system.equalities.map((r) => rearranged(r, fixed, order));
  system.inequalities = system.inequalities.map((r) => rearranged(r, fixed, order));
  system.locals = order.map((from) => {
    const d = system.locals[from]!;
    return d && { numerator: rearranged(d.numerator, fixed, order), divisor: d.divisor };
  });
}

function rearranged(row: Row, fixed: number, order: readonly number[]): number[] {
  const out = new Array<number>(fixed + order.length + 1);
  for (let c = 0; c < fixed; c++) out[c] = row[c]!;
  for (let k = 0; k < order.length; k++) out[fixed + k] = row[fixed + order[k]!]!;
  out[fixed + order.length] = row[row.length - 1]!;
  return out;
}

/** Appends a zero column for a new local and returns its index. */
export function appendLocal(system: System, division: Division | null): number {
  const index = system.locals.length;
  const at = system.fixed + index;
  system.equalities = system.equalities.map((r) => widened(r, at));
  system.inequalities = system.inequalities.map((r) => widened(r, at));
  system.locals = system.locals.map((d) => widenedDivision(d, at));
  system.locals.push(widenedDivision(division, at));
  return index;
}

function widenedDivision(division: Division | null, at: number): Division | null {
  return division && { numerator: widened(division.numerator, at), divisor: division.divisor };
}

/** The row with a zero before position `at`. */
function widened(row: Row, at: number): number[] {
  const out = new Array<number>(row.length + 1);
  for (let c = 0; c < at; c++) out[c] = row[c]!;
  out[at] = 0;
  for (let c = at; c < row.length; c++) out[c + 1] = row[c]!;
  return out;
}

/**
 * Brings a system into a small form: gcd-reduced rows, no duplicates, opposite inequalities as
 * equalities, locals eliminated where one step does it exactly, unused locals gone. Returns false
 * when it is seen to be empty. Polynomial: a full decision is omega.ts.
 */
export function simplify(system: System): boolean {
  // Without locals there is nothing to eliminate.
  if (system.locals.length === 0) return tightenRows(system);
  for (;;) {
    normalizeDivisions(system);
    settleLocals(system);
    if (!tightenRows(system)) return false;
    if (eliminateByEquality(system)) continue;
    if (eliminateFloor(system) || eliminateFreeLocal(system)) continue;
    if (mergeEqualDivisions(system)) continue;
    dropUnusedLocals(system);
    return true;
  }
}

function tightenRows(system: System): boolean {
  const tight = tighten(system.inequalities);
  if (!tight) return false;
  const equalities: number[][] = [];
  if (!addEqualities(equalities, system.equalities)) return false;
  if (!addEqualities(equalities, tight.equalities)) return false;
  system.equalities = equalities;
  system.inequalities = tight.inequalities;
  return true;
}

/** Adds tightened equalities that are not there yet; false when one never holds. */
function addEqualities(to: number[][], rows: readonly Row[]): boolean {
  for (const row of rows) {
    const tight = tightEquality(row);
    if (tight === null) return false;
    if (tight === undefined) continue;
    const positive = withLeadingPositive(tight);
    if (!to.some((e) => areSameRows(e, positive))) to.push(positive);
  }
  return true;
}

function withLeadingPositive(row: number[]): number[] {
  let lead = 0;
  while (row[lead] === 0) lead++;
  return row[lead]! < 0 ? negateRow(row) : row;
}

function areSameRows(a: Row, b: Row): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * floor(f / m) with f = m*s + r becomes s + floor(r / m) by a change of the local, gcds are divided
 * out, and floor(f / 1) is replaced by f.
 */
function normalizeDivisions(system: System): void {
  for (let i = 0; i < system.locals.length; i++) {
    const d = system.locals[i];
    if (!d) continue;
    if (isNormalDivision(d)) continue;
    const column = system.fixed + i;
    const g = gcd(coefficientGcd(d.numerator), d.divisor);
    const last = d.numerator.length - 1;
    const divisor = d.divisor / g;
    const numerator = d.numerator.map((v, k) => (k === last ? floorDiv(v, g) : v / g));
    const whole = numerator.map((v) => floorDiv(v, divisor));
    const rest = numerator.map((v) => modulo(v, divisor));
    if (whole.some((v) => v !== 0)) {
      system.locals[i] = null;
      whole[column] = isZeroRow(rest, last) ? 0 : 1;
      substituteEverywhere(system, column, whole);
    }
    system.locals[i] = isZeroRow(rest, last) ? null : { numerator: rest, divisor };
    if (isZeroRow(rest, last)) substituteEverywhere(system, column, zeroRow(last + 1));
  }
}

/** Remainders, not all zero, over a divisor that shares no factor with them. */
function isNormalDivision({ numerator, divisor }: Division): boolean {
  const last = numerator.length - 1;
  if (isZeroRow(numerator, last)) return false;
  let g = divisor;
  for (let c = 0; c < last; c++) {
    const v = numerator[c]!;
    if (v < 0 || v >= divisor) return false;
    if (v !== 0 && g !== 1) g = v === 1 ? 1 : gcd(g, v);
  }
  return g === 1 && numerator[last]! >= 0 && numerator[last]! < divisor;
}

/**
 * Substitutes a free local that an equality gives with coefficient 1; true if it did. Divisions are
 * kept: they cost the solver one substitution and keep `t = floor(i/32)` readable as such.
 */
function eliminateByEquality(system: System): boolean {
  for (const row of system.equalities) {
    for (let i = system.locals.length - 1; i >= 0; i--) {
      const column = system.fixed + i;
      if (system.locals[i] !== null || Math.abs(row[column]!) !== 1) continue;
      substituteEverywhere(system, column, eliminationRow(row, column));
      return true;
    }
  }
  return false;
}

/** Whether `row` uses a local whose definition uses `column`, directly or through others. */
export function dependsOnColumn(system: System, row: Row, column: number): boolean {
  const { fixed, locals } = system;
  if (locals.length === 0) return false;
  const seen = new Set<number>();
  const open: Row[] = [row];
  for (let next = open.pop(); next; next = open.pop()) {
    for (let k = 0; k < locals.length; k++) {
      const d = locals[k];
      if (!d || next[fixed + k] === 0 || fixed + k === column || seen.has(k)) continue;
      if (d.numerator[column] !== 0) return true;
      seen.add(k);
      open.push(d.numerator);
    }
  }
  return false;
}

/** Removes a free local by Fourier-Motzkin where that is exact and adds no rows; true if it did. */
function eliminateFreeLocal(system: System): boolean {
  for (let i = 0; i < system.locals.length; i++) {
    if (system.locals[i] !== null) continue;
    const column = system.fixed + i;
    if (usesColumn(system.equalities, column)) continue;
    const { lower, upper, exact } = countBounds(system.inequalities, column);
    if (lower + upper === 0 || !exact || lower * upper > lower + upper) continue;
    const split = splitBounds(system.inequalities, column);
    system.inequalities = shadow(split, column, "real", unlimited);
    return true;
  }
  return false;
}

/**
 * Removes a division that is used with coefficients 1 and -1 in inequalities alone: floor(f / m) >= g
 * is f >= m * g, and floor(f / m) <= g is f <= m * g + m - 1. True if it did.
 */
function eliminateFloor(system: System): boolean {
  for (let i = 0; i < system.locals.length; i++) {
    const d = system.locals[i];
    if (!d || !isUsedBySteps(system, i)) continue;
    const column = system.fixed + i;
    const upper = negateRow(d.numerator);
    upper[upper.length - 1]! += d.divisor - 1;
    system.inequalities = system.inequalities.map((row) => {
      const c = row[column]!;
      if (c === 0) return row;
      const out = combine(1, c > 0 ? d.numerator : upper, d.divisor, row, "inequality");
      out[column] = 0;
      return out;
    });
    system.locals[i] = null;
    dropUnusedLocals(system);
    return true;
  }
  return false;
}

/** Whether a local occurs in inequalities alone, each time with coefficient 1 or -1. */
function isUsedBySteps(system: System, index: number): boolean {
  const column = system.fixed + index;
  if (usesColumn(system.equalities, column)) return false;
  for (const d of system.locals) if (d && d.numerator[column] !== 0) return false;
  return system.inequalities.every((r) => Math.abs(r[column]!) <= 1);
}

const unlimited = new Work(Infinity);

function usesColumn(rows: readonly Row[], column: number): boolean {
  for (let i = 0; i < rows.length; i++) if (rows[i]![column] !== 0) return true;
  return false;
}

/** Gives two locals with the same definition one column; true if it did. */
function mergeEqualDivisions(system: System): boolean {
  const { locals, fixed } = system;
  for (let i = 0; i < locals.length; i++) {
    const a = locals[i];
    for (let k = 0; a && k < i; k++) {
      const b = locals[k];
      if (!b || a.divisor !== b.divisor) continue;
      if (!areSameRows(a.numerator, b.numerator)) continue;
      const value = zeroRow(a.numerator.length);
      value[fixed + k] = 1;
      locals[i] = null;
      substituteEverywhere(system, fixed + i, value);
      return true;
    }
  }
  return false;
}

function dropUnusedLocals(system: System): void {
  const used: boolean[] = [];
  const defined = system.locals.some((d) => d !== null);
  let unused = 0;
  for (let i = system.locals.length - 1; i >= 0; i--) {
    const column = system.fixed + i;
    let inUse = usesColumn(system.equalities, column) || usesColumn(system.inequalities, column);
    for (let k = i + 1; defined && k < system.locals.length && !inUse; k++) {
      inUse = used[k]! && system.locals[k] !== null && system.locals[k]!.numerator[column] !== 0;
    }
    used[i] = inUse;
    if (!inUse) unused++;
  }
  if (unused === 0) return;
  const kept: number[] = [];
  for (let i = 0; i < used.length; i++) if (used[i]) kept.push(i);
  arrangeLocals(system, kept);
}
