/**
 * The mutable form in which a piece is worked on: constraint rows over fixed columns (parameters and
 * dimensions) and locals, with `simplify` that keeps it small and `defineLocals` that turns every
 * local into an integer division of fixed columns (exact quantifier elimination by Euclidean column
 * changes, parametric minima and, last, Omega splinters). piece.ts converts from and to values.
 */

import { countBounds, eliminationRow, shadow, splitBounds, tighten } from "./omega.ts";
import {
  coefficientGcd,
  floorDiv,
  gcd,
  isZeroRow,
  modulo,
  type Row,
  substitute,
  tightenEquality,
} from "./row.ts";
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
  system.locals.forEach((d, i) => {
    if (d) rows.push(...boundsOfDivision(d, system.fixed + i));
  });
  return rows;
}

export function boundsOfDivision(division: Division, column: number): number[][] {
  const low = division.numerator.slice();
  low[column]! -= division.divisor;
  const high = low.map((v) => (v === 0 ? 0 : -v));
  high[high.length - 1]! += division.divisor - 1;
  return [low, high];
}

/** Makes local `index` a free integer: its definition becomes two inequalities. */
export function undefineLocal(system: System, index: number): void {
  const division = system.locals[index];
  if (!division) return;
  system.inequalities.push(...boundsOfDivision(division, system.fixed + index));
  system.locals[index] = null;
}

/** Replaces `column` everywhere by `value`, in definitions too; all of it or, on overflow, nothing. */
export function substituteEverywhere(system: System, column: number, value: Row): void {
  const equalities = system.equalities.map((r) => substitute(r, column, value, "equality"));
  const inequalities = system.inequalities.map((r) => substitute(r, column, value, "inequality"));
  system.locals = system.locals.map(
    (d) =>
      d && {
        numerator: substitute(d.numerator, column, value, "value"),
        divisor: d.divisor,
      },
  );
  system.equalities = equalities;
  system.inequalities = inequalities;
}

/**
 * Restores the invariant that definitions use only fixed columns and defined locals before them:
 * a definition that (also indirectly) uses a free local, or itself, becomes inequalities; the rest
 * are put in order, defined ones first.
 */
export function settleLocals(system: System): void {
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

/** Keeps the locals listed in `order`, in that order. Dropped ones must not be in use. */
export function arrangeLocals(system: System, order: readonly number[]): void {
  const { fixed } = system;
  const move = (row: Row): number[] => {
    const out = row.slice(0, fixed);
    for (const from of order) out.push(row[fixed + from]!);
    out.push(row[row.length - 1]!);
    return out;
  };
  system.equalities = system.equalities.map(move);
  system.inequalities = system.inequalities.map(move);
  system.locals = order.map((from) => {
    const d = system.locals[from]!;
    return d && { numerator: move(d.numerator), divisor: d.divisor };
  });
}

/** Appends a zero column for a new local and returns its index. */
export function appendLocal(system: System, division: Division | null): number {
  const index = system.locals.length;
  const widen = (row: Row): number[] => {
    const out = row.slice();
    out.splice(system.fixed + index, 0, 0);
    return out;
  };
  system.equalities = system.equalities.map(widen);
  system.inequalities = system.inequalities.map(widen);
  system.locals = system.locals.map(
    (d) => d && { numerator: widen(d.numerator), divisor: d.divisor },
  );
  system.locals.push(
    division && { numerator: widen(division.numerator), divisor: division.divisor },
  );
  return index;
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
    if (eliminateFreeLocal(system)) continue;
    if (mergeEqualDivisions(system)) continue;
    dropUnusedLocals(system);
    return true;
  }
}

function tightenRows(system: System): boolean {
  const tight = tighten(system.inequalities.map((r) => r.slice()));
  if (!tight) return false;
  const equalities: number[][] = [];
  for (const row of [...system.equalities, ...tight.equalities]) {
    const copy = row.slice();
    if (!tightenEquality(copy)) return false;
    const columns = copy.length - 1;
    if (isZeroRow(copy, columns)) continue;
    makeLeadingPositive(copy);
    if (!equalities.some((e) => e.every((v, i) => v === copy[i]))) equalities.push(copy);
  }
  system.equalities = equalities;
  system.inequalities = tight.inequalities;
  return true;
}

function makeLeadingPositive(row: number[]): void {
  const lead = row.find((v) => v !== 0);
  if (lead !== undefined && lead < 0) {
    for (let i = 0; i < row.length; i++) row[i] = row[i]! === 0 ? 0 : -row[i]!;
  }
}

/**
 * floor(f / m) with f = m*s + r becomes s + floor(r / m) by a change of the local, gcds are divided
 * out, and floor(f / 1) is replaced by f.
 */
function normalizeDivisions(system: System): void {
  for (let i = 0; i < system.locals.length; i++) {
    const d = system.locals[i];
    if (!d) continue;
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
    if (isZeroRow(rest, last)) substituteEverywhere(system, column, unitlessZero(last + 1));
  }
}

function unitlessZero(width: number): number[] {
  return new Array<number>(width).fill(0);
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
  const seen = new Set<number>();
  const visit = (r: Row): boolean => {
    for (let k = 0; k < system.locals.length; k++) {
      if (r[system.fixed + k] === 0 || system.fixed + k === column || seen.has(k)) continue;
      seen.add(k);
      const d = system.locals[k];
      if (d && (d.numerator[column] !== 0 || visit(d.numerator))) return true;
    }
    return false;
  };
  return visit(row);
}

/** Removes a free local by Fourier-Motzkin where that is exact and adds no rows; true if it did. */
function eliminateFreeLocal(system: System): boolean {
  for (let i = 0; i < system.locals.length; i++) {
    if (system.locals[i] !== null) continue;
    const column = system.fixed + i;
    if (system.equalities.some((r) => r[column] !== 0)) continue;
    const { lower, upper, exact } = countBounds(system.inequalities, column);
    if (lower + upper === 0 || !exact || lower * upper > lower + upper) continue;
    eliminateExactly(system, column);
    return true;
  }
  return false;
}

function eliminateExactly(system: System, column: number, work = new Work(Infinity)): void {
  const split = splitBounds(system.inequalities, column);
  system.inequalities = shadow(split, column, "real", work);
}

/** Gives two locals with the same definition one column; true if it did. */
function mergeEqualDivisions(system: System): boolean {
  const { locals, fixed } = system;
  for (let i = 0; i < locals.length; i++) {
    for (let k = 0; k < i; k++) {
      const a = locals[i];
      const b = locals[k];
      if (!a || !b || a.divisor !== b.divisor) continue;
      if (!a.numerator.every((v, c) => v === b.numerator[c])) continue;
      const value = unitlessZero(a.numerator.length);
      value[fixed + k] = 1;
      locals[i] = null;
      substituteEverywhere(system, fixed + i, value);
      return true;
    }
  }
  return false;
}

function dropUnusedLocals(system: System): void {
  const used = new Set<number>();
  for (let i = system.locals.length - 1; i >= 0; i--) {
    const column = system.fixed + i;
    const inUse =
      system.equalities.some((r) => r[column] !== 0) ||
      system.inequalities.some((r) => r[column] !== 0) ||
      system.locals.some((d, k) => used.has(k) && d !== null && d.numerator[column] !== 0);
    if (inUse) used.add(i);
  }
  if (used.size === system.locals.length) return;
  arrangeLocals(
    system,
    system.locals.map((_, i) => i).filter((i) => used.has(i)),
  );
}
