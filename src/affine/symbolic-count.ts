/**
 * The number of points of a system as a sum of guarded polynomials in its parameters and floors of
 * them: a quasi-polynomial. Floors of dimensions go by splitting a dimension into residues
 * (x = m*x' + r), equalities by unimodular changes of the dimensions, and dimensions one after the
 * other by Faulhaber's formula between each pair of bounds, where that pair is the tightest. A bound
 * a*x + f >= 0 becomes x + floor(f / a) >= 0, again after splitting what keeps a from dividing f's
 * dimensions. Complete for bounded systems; the budget ends what splits too often (compare
 * S. Verdoolaege et al., "Counting integer points in parametric polytopes", 2007).
 */

import { findPoint, splitBounds } from "./omega.ts";
import { evaluateAt, one, type Polynomial, substituteColumn, sumBetween } from "./polynomial.ts";
import { copySystem } from "./quantifier.ts";
import { combine, floorDiv, gcd, negateRow, type Row, tightEquality, unitRow } from "./row.ts";
import {
  appendLocal,
  divisionRows,
  type System,
  simplify,
  substituteEverywhere,
  undefineLocal,
} from "./system.ts";
import { tighten } from "./tighten.ts";
import type { Division } from "./types.ts";
import { GiveUp, type Work } from "./work.ts";

/** So many points wherever the rows of the system, which are about parameters alone, hold. */
export interface CountPart {
  readonly system: System;
  readonly weight: Polynomial;
}

/** A system whose first `params` columns are parameters and whose locals are divisions. */
export function countSystem(system: System, params: number, work: Work): CountPart[] {
  return splitFloors(copySystem(system), params, work).flatMap((s) => {
    const reduced = removeEqualities(s, summedColumns(s, params), work);
    return reduced ? sumDims({ ...reduced, weight: one }, work) : [];
  });
}

/** Dimensions, and the locals that used to be floors of them: one value a point. */
function summedColumns({ fixed, locals }: System, params: number): number[] {
  const dims = Array.from({ length: fixed - params }, (_, i) => params + i);
  return dims.concat(locals.flatMap((d, i) => (d === null ? [fixed + i] : [])));
}

/** The count of a part without parameters; its floors, if any, are of numbers. */
export function constantCount({ system, weight }: CountPart): bigint {
  const { fixed, locals } = system;
  const values = new Array<bigint>(fixed + locals.length).fill(0n);
  locals.forEach((d, i) => {
    if (d) values[fixed + i] = floorAt(d, values);
  });
  return evaluateAt(weight, values);
}

function floorAt({ numerator, divisor }: Division, values: readonly bigint[]): bigint {
  const constant = BigInt(numerator.at(-1)!);
  const value = values.reduce((sum, v, c) => sum + v * BigInt(numerator[c]!), constant);
  const by = BigInt(divisor);
  const rest = ((value % by) + by) % by;
  return (value - rest) / by;
}

interface Sum {
  readonly system: System;
  /** Columns still to be summed over. */
  readonly dims: readonly number[];
  readonly weight: Polynomial;
}

/** Systems with disjoint points and the same count in all whose divisions use parameters alone. */
function splitFloors(system: System, params: number, work: Work): System[] {
  const done: System[] = [];
  const pending = [system];
  for (let next = pending.pop(); next; next = pending.pop()) {
    work.spend(20 * (1 + next.inequalities.length));
    if (!simplify(next)) continue;
    if (dropNamedFloor(next)) {
      pending.push(next);
      continue;
    }
    const floor = dimInFloor(next, params);
    const parts = floor ? residues(next, floor.column, floor.step, work) : [];
    for (const part of parts) pending.push(part);
    if (!floor) done.push(next);
  }
  return done;
}

/** A floor that an equality names (t = floor(i / 32)) is rather stated by inequalities. */
function dropNamedFloor(system: System): boolean {
  const index = system.locals.findIndex(
    (d, i) => d && system.equalities.some((r) => Math.abs(r[system.fixed + i]!) === 1),
  );
  if (index < 0) return false;
  undefineLocal(system, index);
  return true;
}

function dimInFloor(system: System, params: number): { column: number; step: number } | undefined {
  for (const d of system.locals) {
    if (!d) continue;
    for (let column = params; column < system.fixed; column++) {
      const c = d.numerator[column]!;
      if (c !== 0) return { column, step: d.divisor / gcd(c, d.divisor) };
    }
  }
  return undefined;
}

/** column = step * column' + r for every residue r. */
function residues(system: System, column: number, step: number, work: Work): System[] {
  work.spend(step * (1 + system.inequalities.length));
  return Array.from({ length: step }, (_, r) => {
    const copy = copySystem(system);
    substituteEverywhere(copy, column, residueRow(system, column, step, r));
    return copy;
  });
}

function residueRow(system: System, column: number, step: number, r: number): number[] {
  const row = unitRow(system.fixed + system.locals.length + 1, column, step);
  row[row.length - 1] = r;
  return row;
}

/** Uses up all equalities that hold dimensions; undefined when one has no solution. */
function removeEqualities(
  system: System,
  dims: readonly number[],
  work: Work,
): { system: System; dims: readonly number[] } | undefined {
  let left = dims;
  for (;;) {
    work.spend(1);
    if (!tightenEqualities(system)) return undefined;
    const row = system.equalities.find((r) => left.some((c) => r[c] !== 0));
    if (!row) return { system, dims: left };
    const used = left.filter((c) => row[c] !== 0);
    const column = used.reduce((a, b) => (Math.abs(row[b]!) < Math.abs(row[a]!) ? b : a));
    if (used.length > 1 && Math.abs(row[column]!) > 1) {
      substituteEverywhere(system, column, euclideanStep(row, column, used));
      continue;
    }
    substituteEverywhere(system, column, solved(system, row, column));
    left = left.filter((c) => c !== column);
  }
}

/** False when an equality has no solution. */
function tightenEqualities(system: System): boolean {
  const kept: number[][] = [];
  for (const row of system.equalities) {
    const tight = tightEquality(row);
    if (tight === null) return false;
    if (tight) kept.push(tight);
  }
  system.equalities = kept;
  return true;
}

/** x := x - sum of quotients, so that the other dimensions' coefficients become remainders. */
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
 * The column's value by a*column + f = 0: -f / a, a new floor of parameters when a is no unit (the
 * equality itself stays behind as its condition).
 */
function solved(system: System, row: Row, column: number): number[] {
  const a = row[column]!;
  const value = a > 0 ? negateRow(row) : row.slice();
  value[column] = 0;
  if (Math.abs(a) === 1) return value;
  const index = appendLocal(system, { numerator: value, divisor: Math.abs(a) });
  return unitRow(row.length + 1, system.fixed + index);
}

/** Sums the weight over all dimensions. */
function sumDims(sum: Sum, work: Work): CountPart[] {
  const { system, dims, weight } = sum;
  work.spend(20 * (1 + system.inequalities.length));
  const tight = tighten(system.inequalities);
  if (!tight) return [];
  const rows = [...tight.inequalities, ...tight.equalities, ...tight.equalities.map(negateRow)];
  const current: System = { ...system, inequalities: rows };
  if (dims.length === 0) return isInhabited(current, work) ? [{ system: current, weight }] : [];
  const column = easiestColumn(rows, dims);
  const rough = rows.find((r) => Math.abs(r[column]!) > 1);
  if (rough) return splitBound({ ...sum, system: current }, rough, column, work);
  return sumColumn({ ...sum, system: current }, column, work);
}

function isInhabited(system: System, work: Work): boolean {
  const rows = [...system.inequalities, ...divisionRows(system)];
  return findPoint(system.equalities, rows, system.fixed + system.locals.length, work) !== null;
}

/** Makes the column's coefficient in a bound a unit: by residues of the others, then by a floor. */
function splitBound(sum: Sum, bound: Row, column: number, work: Work): CountPart[] {
  const { system, dims, weight } = sum;
  const a = Math.abs(bound[column]!);
  const other = dims.find((c) => c !== column && bound[c]! % a !== 0);
  if (other !== undefined) {
    const step = a / gcd(bound[other]!, a);
    return residues(system, other, step, work).flatMap((copy, r) => {
      const by = residueRow(system, other, step, r);
      return sumDims({ system: copy, dims, weight: substituteColumn(weight, other, by) }, work);
    });
  }
  return sumDims({ ...sum, system: withUnitBound(system, bound, dims, a) }, work);
}

/** a*x + a*h + k >= 0 is x + h + floor(k / a) >= 0. */
function withUnitBound(system: System, bound: Row, dims: readonly number[], a: number): System {
  const copy = copySystem(system);
  copy.inequalities = copy.inequalities.filter((r) => r !== bound);
  const rest = bound.map((v, c) => (dims.includes(c) ? 0 : v));
  const index = appendLocal(copy, { numerator: rest, divisor: a });
  const row = new Array<number>(bound.length + 1).fill(0);
  for (const c of dims) row[c] = bound[c]! === 0 ? 0 : bound[c]! / a;
  row[system.fixed + index] = 1;
  copy.inequalities.push(row);
  return copy;
}

function sumColumn({ system, dims, weight }: Sum, column: number, work: Work): CountPart[] {
  const { lower, upper, rest } = splitBounds(system.inequalities, column);
  if (lower.length === 0 || upper.length === 0) {
    if (isInhabited(system, work)) throw new GiveUp("unbounded");
    return [];
  }
  const left = dims.filter((c) => c !== column);
  const out: CountPart[] = [];
  for (let i = 0; i < lower.length; i++) {
    for (let k = 0; k < upper.length; k++) {
      const low = boundOf(lower[i]!, column);
      const high = boundOf(upper[k]!, column);
      const inequalities = [
        ...rest,
        ...tightest(lower, i, column, 1),
        ...tightest(upper, k, column, -1),
        minusRows(high, low),
      ];
      const sum = sumBetween(weight, column, low, high);
      const next = { system: { ...system, inequalities }, dims: left, weight: sum };
      for (const part of sumDims(next, work)) out.push(part);
    }
  }
  return out;
}

/** Fewest cases first, unit bounds before others. */
function easiestColumn(rows: readonly number[][], columns: readonly number[]): number {
  const cost = (c: number): number => {
    let lower = 0;
    let upper = 0;
    let rough = 0;
    for (const row of rows) {
      if (row[c]! > 0) lower++;
      else if (row[c]! < 0) upper++;
      if (Math.abs(row[c]!) > 1) rough += Math.abs(row[c]!);
    }
    return lower * upper + 1000 * rough;
  };
  return columns.reduce((best, c) => (cost(c) < cost(best) ? c : best));
}

/** x + f >= 0 as x >= -f; -x + f >= 0 as x <= f. */
function boundOf(row: Row, column: number): number[] {
  const out = row[column]! > 0 ? negateRow(row) : row.slice();
  out[column] = 0;
  return out;
}

/** Exactly: bounds may lie further apart than each from 0. */
function minusRows(a: Row, b: Row): number[] {
  return combine(1, a, -1, b, "value");
}

/** Bound `index` beats the others: strictly those before it, so that the cases do not overlap. */
function tightest(
  bounds: readonly number[][],
  index: number,
  column: number,
  sign: 1 | -1,
): number[][] {
  const own = boundOf(bounds[index]!, column);
  return bounds.flatMap((b, i) => {
    if (i === index) return [];
    const other = boundOf(b, column);
    const row = sign > 0 ? minusRows(own, other) : minusRows(other, own);
    if (i < index) row[row.length - 1]! -= 1;
    return [row];
  });
}
