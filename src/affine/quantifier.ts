/**
 * Exact quantifier elimination: rewrites a system with free locals into finitely many systems whose
 * locals are all integer divisions of other columns, so that each can be complemented by negating
 * its rows. Locals in equalities are made unique by Euclidean column changes (each becomes a
 * division); one whose lower (or upper) bounds use no other free local equals the largest of their
 * roundings, one case per bound; what is left splits into dark shadow and splinters (W. Pugh,
 * "The Omega test", 1991).
 */
import { countBounds, findPoint, shadow, splinters, splitBounds } from "./omega.ts";
import { floorDiv, negateRow, type Row } from "./row.ts";
import {
  divisionRows,
  type System,
  settleLocals,
  simplify,
  substituteEverywhere,
} from "./system.ts";
import type { Work } from "./work.ts";

/** Systems without free locals whose union is `system`. Consumes its argument. */
export function defineLocals(system: System, work: Work): System[] {
  const done: System[] = [];
  const pending = [system];
  for (let next = pending.pop(); next; next = pending.pop()) {
    work.spend(1 + next.inequalities.length);
    if (!simplify(next) || !isInhabited(next, work)) continue;
    const free = freeColumns(next);
    if (free.length === 0) done.push(next);
    else for (const part of eliminateOne(next, free, work)) pending.push(part);
  }
  return done;
}

function isInhabited(system: System, work: Work): boolean {
  const rows = [...system.inequalities, ...divisionRows(system)];
  const columns = system.fixed + system.locals.length;
  return findPoint(system.equalities, rows, columns, work) !== null;
}

function freeColumns(system: System): number[] {
  const out: number[] = [];
  system.locals.forEach((d, i) => {
    if (d === null) out.push(system.fixed + i);
  });
  return out;
}

/** Makes progress on one free local. */
function eliminateOne(system: System, free: readonly number[], work: Work): System[] {
  const equality = system.equalities.find((r) => free.some((c) => r[c] !== 0));
  if (equality) {
    defineByEquality(system, system.equalities.indexOf(equality), free);
    return [system];
  }
  const column = cheapestColumn(system, free);
  if (countBounds(system.inequalities, column).exact) {
    system.inequalities = shadow(splitBounds(system.inequalities, column), column, "real", work);
    return [system];
  }
  return defineByBounds(system, column, free) ?? splitByShadows(system, column, work);
}

function cheapestColumn(system: System, free: readonly number[]): number {
  const cost = (column: number): number => {
    const { lower, upper, exact, largest } = countBounds(system.inequalities, column);
    return lower * upper - lower - upper + (exact ? 0 : 1000 + largest);
  };
  return free.reduce((best, c) => (cost(c) < cost(best) ? c : best));
}

/**
 * Gathers the free locals of one equality into a single one (x_k := t - sum q_i x_i, the Euclidean
 * algorithm on their coefficients), which the equality then determines: a*t = -f gives
 * t = floor(-f / a).
 */
function defineByEquality(system: System, index: number, free: readonly number[]): void {
  for (;;) {
    const row = system.equalities[index]!;
    const used = free.filter((c) => row[c] !== 0);
    const column = used.reduce((a, b) => (Math.abs(row[b]!) < Math.abs(row[a]!) ? b : a));
    if (used.length > 1) {
      substituteEverywhere(system, column, euclideanStep(row, column, used));
      continue;
    }
    const a = row[column]!;
    const numerator = a > 0 ? negateRow(row) : row.slice();
    numerator[column] = 0;
    system.locals[column - system.fixed] = { numerator, divisor: Math.abs(a) };
    settleLocals(system);
    return;
  }
}

function euclideanStep(row: Row, column: number, used: readonly number[]): number[] {
  const a = row[column]!;
  const by = new Array<number>(row.length).fill(0);
  for (const c of used) {
    const q = floorDiv(row[c]!, Math.abs(a));
    by[c] = q === 0 ? 0 : a > 0 ? -q : q;
  }
  by[column] = 1;
  return by;
}

/**
 * When all bounds on one side use only defined columns, some solution has the column equal to
 * one of them rounded inwards: one system per bound. undefined when both sides use other free locals.
 */
function defineByBounds(
  system: System,
  column: number,
  free: readonly number[],
): System[] | undefined {
  const { lower, upper } = splitBounds(system.inequalities, column);
  const closed = (rows: readonly Row[]): boolean =>
    rows.every((r) => free.every((c) => c === column || r[c] === 0));
  const sides = [lower, upper].filter(closed).sort((a, b) => a.length - b.length);
  const side = sides[0];
  if (!side) return undefined;
  return side.map((bound) => {
    const copy = copySystem(system);
    copy.locals[column - system.fixed] = roundedBound(bound, column);
    settleLocals(copy);
    return copy;
  });
}

/** a*x + f >= 0 as x = ceil(-f / a), or for negative a as x = floor(f / -a). */
function roundedBound(bound: Row, column: number): { numerator: number[]; divisor: number } {
  const a = bound[column]!;
  const numerator = a > 0 ? negateRow(bound) : bound.slice();
  numerator[column] = 0;
  if (a > 0) numerator[numerator.length - 1]! += a - 1;
  return { numerator, divisor: Math.abs(a) };
}

function splitByShadows(system: System, column: number, work: Work): System[] {
  const split = splitBounds(system.inequalities, column);
  const dark = copySystem(system);
  dark.inequalities = shadow(split, column, "dark", work);
  const slivers = splinters(split, column, work).map((equality) => {
    const copy = copySystem(system);
    copy.equalities.push(equality);
    return copy;
  });
  return [dark, ...slivers];
}

/** A copy whose lists can be changed; rows and definitions are never changed in place. */
export function copySystem(system: System): System {
  return {
    fixed: system.fixed,
    locals: system.locals.slice(),
    equalities: system.equalities.slice(),
    inequalities: system.inequalities.slice(),
  };
}
