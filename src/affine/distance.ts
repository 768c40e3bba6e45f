/**
 * The fast path of legality: a proof by intervals, without the solver. Per time dimension the step
 * time(sink) - time(source) is written as a linear form plus differences of floors; equalities of the
 * dependence make most of it cancel (uniform distances), floor((f + g)/m) - floor(f/m) lies between
 * floor(g/m) and ceil(g/m), and what a dimension leaves tied becomes a fact for the next. A step that
 * is at least 1 proves the pairs ordered; anything unclear is left to the exact path in legality.ts,
 * so this file can only accept what is legal.
 */
import { eliminationRow } from "./omega.ts";
import { coefficientGcd, combine, floorDiv, type Row, substitute } from "./row.ts";
import type { TimedPairs } from "./timed-pairs.ts";

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Whether every pair is ordered before any marked or tied dimension separates it. */
export function isProvedLegal(pairs: TimedPairs, marks: readonly (string | undefined)[]): boolean {
  const prover = new StepBounds(pairs);
  for (let k = 0; k < pairs.depth; k++) {
    const step = prover.step(k);
    const { low, high } = prover.bounds(step);
    if (low < 0) return false;
    if (low === 0 && high === 0) continue;
    if (marks[k] !== undefined) return false;
    if (low >= 1) return true;
    prover.tie(step);
  }
  return false;
}

/**
 * Whether no pair is separated by a dimension marked parallel: proved where every step up to the last
 * such mark is 0, or some step before it is never 0.
 */
export function isProvedApart(pairs: TimedPairs, marks: readonly (string | undefined)[]): boolean {
  const prover = new StepBounds(pairs);
  for (let k = 0; k <= marks.lastIndexOf("parallel"); k++) {
    const step = prover.step(k);
    const { low, high } = prover.bounds(step);
    if (low === 0 && high === 0) continue;
    if (marks[k] === "parallel") return false;
    if (low >= 1 || high <= -1) return true;
    prover.tie(step);
  }
  return true;
}

/** Whether step k is provably at least 0 for all pairs tied in the dimensions before `first`. */
export function isProvedForward(pairs: TimedPairs, first: number, k: number): boolean {
  return stepInterval(pairs, first, k).low >= 0;
}

/** Whether step k is provably 0 for all pairs tied in the dimensions before `first`. */
export function isProvedCoincident(pairs: TimedPairs, first: number, k: number): boolean {
  const { low, high } = stepInterval(pairs, first, k);
  return low === 0 && high === 0;
}

function stepInterval(pairs: TimedPairs, first: number, k: number): Interval {
  if (k >= pairs.depth) return { low: 0, high: 0 };
  const prover = new StepBounds(pairs);
  for (let i = 0; i < Math.min(first, pairs.depth); i++) prover.tie(prover.step(i));
  return prover.bounds(prover.step(k));
}

/** coefficient * (floor(plus / m) - floor(minus / m)), or one floor alone. */
interface FloorTerm {
  readonly coefficient: number;
  readonly plus: Form;
  readonly minus: Form | undefined;
  readonly divisor: number;
}

/** A linear row over fixed columns and constant, plus floor terms. */
interface Form {
  readonly row: Row;
  readonly floors: readonly FloorTerm[];
}

interface ZeroFloors {
  readonly plus: Form;
  readonly minus: Form;
  readonly divisor: number;
}

class StepBounds {
  readonly #pairs: TimedPairs;
  readonly #replaced: { column: number; value: Row }[] = [];
  /** Inequalities over fixed columns only, reduced. */
  readonly #rows: Row[] = [];
  readonly #zeroFloors: ZeroFloors[] = [];
  readonly #locals: (Form | undefined)[] = [];

  constructor(pairs: TimedPairs) {
    this.#pairs = pairs;
    for (const row of pairs.equalities) this.#useEquality(row);
    for (const row of pairs.inequalities) {
      if (this.#usesLocal(row)) continue;
      this.#rows.push(this.#cut(this.#reduce(row)));
    }
    pairs.locals.forEach((d, i) => {
      this.#locals[i] = d ? this.#form(d.numerator) : undefined;
    });
  }

  /** The step of time dimension k. */
  step(k: number): Form {
    const { sinkTime, sourceTime } = this.#pairs;
    return this.#form(combine(1, sinkTime[k]!, -1, sourceTime[k]!, "value"));
  }

  bounds(form: Form): Interval {
    let { low, high } = this.#rowBounds(form.row);
    for (const f of form.floors) {
      const one = this.#floorBounds(f);
      const [a, b] =
        f.coefficient > 0
          ? [one.low * f.coefficient, one.high * f.coefficient]
          : [one.high * f.coefficient, one.low * f.coefficient];
      low = exactLow(low + exactLow(a));
      high = exactHigh(high + exactHigh(b));
    }
    return { low, high };
  }

  /** From here on `form` is known to be zero. */
  tie(form: Form): void {
    if (!isExact(form.row)) return;
    const single = form.floors.length === 1 ? form.floors[0]! : undefined;
    if (!single) {
      if (form.floors.length > 0 || isZero(form.row)) return;
      this.#rows.push(form.row, form.row.map(opposite));
    } else if (isZero(form.row) && single.minus && Math.abs(single.coefficient) === 1) {
      const { plus, minus, divisor } = single;
      this.#zeroFloors.push({ plus, minus, divisor });
      const apart = difference(plus, minus);
      if (apart.floors.length > 0) return;
      // Equal floors: the numerators are less than the divisor apart.
      const facts = [apart.row, apart.row.map(opposite)].map((row) => shifted(row, divisor - 1));
      if (isExact(apart.row)) this.#rows.push(...facts.filter(isExact));
    }
  }

  #useEquality(row: Row): void {
    if (this.#usesLocal(row)) return;
    const reduced = this.#reduce(row);
    const { params, sourceDims, sinkDims } = this.#pairs;
    const first = params.length;
    for (let c = first + sourceDims + sinkDims - 1; c >= first; c--) {
      if (Math.abs(reduced[c]!) !== 1) continue;
      const value = eliminationRow(reduced, c);
      for (const r of this.#replaced) r.value = substitute(r.value, c, value, "value");
      this.#replaced.push({ column: c, value });
      return;
    }
  }

  #usesLocal(row: Row): boolean {
    for (let c = this.#pairs.fixed; c < row.length - 1; c++) if (row[c] !== 0) return true;
    return false;
  }

  #reduce(row: Row): Row {
    let out = row;
    for (const { column, value } of this.#replaced) out = substitute(out, column, value, "value");
    return out;
  }

  #cut(row: Row): number[] {
    const out = row.slice(0, this.#pairs.fixed);
    out.push(row[row.length - 1]!);
    return out;
  }

  #form(row: Row): Form {
    const reduced = this.#reduce(row);
    const floors: { coefficient: number; local: Form; divisor: number }[] = [];
    for (let i = 0; i < this.#pairs.locals.length; i++) {
      const coefficient = reduced[this.#pairs.fixed + i]!;
      if (coefficient === 0) continue;
      const local = this.#locals[i];
      const divisor = this.#pairs.locals[i]?.divisor;
      if (local && divisor) addFloor(floors, { coefficient, local, divisor });
      else floors.push({ coefficient, local: unbounded, divisor: 1 });
    }
    return { row: this.#cut(reduced), floors: paired(floors) };
  }

  #floorBounds(term: FloorTerm): Interval {
    const { plus, minus, divisor } = term;
    if (plus === unbounded || !Number.isSafeInteger(term.coefficient)) return everything;
    if (!minus) {
      const { low, high } = this.bounds(plus);
      return { low: floorOf(low, divisor), high: floorOf(high, divisor) };
    }
    const zero = this.#zeroFloors.some(
      (z) =>
        z.divisor === divisor &&
        ((sameForm(z.plus, plus) && sameForm(z.minus, minus)) ||
          (sameForm(z.plus, minus) && sameForm(z.minus, plus))),
    );
    if (zero) return { low: 0, high: 0 };
    const apart = difference(plus, minus);
    const { low, high } = this.bounds(apart);
    return { low: floorOf(low, divisor), high: -floorOf(-high, divisor) };
  }

  /** From a constraint parallel to the row, else from the bounds of its variables one by one. */
  #rowBounds(row: Row): Interval {
    if (!isExact(row)) return everything;
    const constant = row[row.length - 1]!;
    const g = coefficientGcd(row);
    if (g === 0) return { low: constant, high: constant };
    let low = -Infinity;
    let high = Infinity;
    for (const r of this.#rows) {
      const side = parallel(row, g, r);
      if (side === 1) low = Math.max(low, -r[r.length - 1]!);
      if (side === -1) high = Math.min(high, r[r.length - 1]!);
    }
    if (low === -Infinity || high === Infinity) {
      const sum = this.#sumBounds(row, g);
      low = Math.max(low, sum.low);
      high = Math.min(high, sum.high);
    }
    return {
      low: exactLow(exactLow(low * g) + constant),
      high: exactHigh(exactHigh(high * g) + constant),
    };
  }

  #sumBounds(row: Row, g: number): Interval {
    let used = 0;
    for (let c = 0; c < row.length - 1; c++) if (row[c] !== 0) used++;
    if (used === 1) return everything;
    let low = 0;
    let high = 0;
    for (let c = 0; c < row.length - 1; c++) {
      const v = row[c]! / g;
      if (v === 0) continue;
      const one = this.#variableBounds(c, row.length);
      low = exactLow(low + exactLow(v > 0 ? v * one.low : v * one.high));
      high = exactHigh(high + exactHigh(v > 0 ? v * one.high : v * one.low));
    }
    return { low, high };
  }

  #variableBounds(column: number, width: number): Interval {
    const row = new Array<number>(width).fill(0);
    row[column] = 1;
    return this.#rowBounds(row);
  }
}

const everything: Interval = { low: -Infinity, high: Infinity };
const unbounded: Form = { row: [], floors: [] };

/** A lower bound, or none where it may have been rounded. */
function exactLow(bound: number): number {
  return Number.isSafeInteger(bound) ? bound : -Infinity;
}

function exactHigh(bound: number): number {
  return Number.isSafeInteger(bound) ? bound : Infinity;
}

function isExact(row: Row): boolean {
  return row.every((v) => Number.isSafeInteger(v));
}

function opposite(v: number): number {
  return v === 0 ? 0 : -v;
}

function floorOf(value: number, divisor: number): number {
  return Number.isFinite(value) ? floorDiv(value, divisor) : value;
}

function isZero(row: Row): boolean {
  return row.every((v) => v === 0);
}

function shifted(row: Row, by: number): number[] {
  const out = row.slice();
  out[out.length - 1]! += by;
  return out;
}

/** 1: the coefficients of r are row's divided by g; -1: their opposites; 0: neither. */
function parallel(row: Row, g: number, r: Row): number {
  let same = true;
  let turned = true;
  for (let c = 0; c < row.length - 1; c++) {
    const v = row[c]!;
    const w = r[c]! * g;
    if (v !== w) same = false;
    if (v !== -w) turned = false;
    if (!same && !turned) return 0;
  }
  return same ? 1 : -1;
}

/** Adds a floor, merging it with an equal one. */
function addFloor(
  floors: { coefficient: number; local: Form; divisor: number }[],
  added: { coefficient: number; local: Form; divisor: number },
): void {
  const same = floors.find((f) => f.divisor === added.divisor && sameForm(f.local, added.local));
  if (same) same.coefficient += added.coefficient;
  else floors.push(added);
}

/** Joins floors of one divisor with opposite coefficients into differences. */
function paired(
  floors: readonly { coefficient: number; local: Form; divisor: number }[],
): FloorTerm[] {
  const rest = floors.filter((f) => f.coefficient !== 0);
  const out: FloorTerm[] = [];
  for (let f = rest.shift(); f; f = rest.shift()) {
    const first = f;
    const at = rest.findIndex(
      (r) => r.divisor === first.divisor && r.coefficient === -first.coefficient,
    );
    const minus = at >= 0 ? rest.splice(at, 1)[0]!.local : undefined;
    out.push({ coefficient: f.coefficient, plus: f.local, minus, divisor: f.divisor });
  }
  return out;
}

function difference(a: Form, b: Form): Form {
  const floors: { coefficient: number; local: Form; divisor: number }[] = [];
  const collect = (terms: readonly FloorTerm[], sign: number): void => {
    for (const t of terms) {
      const { divisor, coefficient } = t;
      addFloor(floors, { coefficient: sign * coefficient, local: t.plus, divisor });
      if (t.minus) addFloor(floors, { coefficient: -sign * coefficient, local: t.minus, divisor });
    }
  };
  collect(a.floors, 1);
  collect(b.floors, -1);
  return { row: a.row.map((v, i) => v - b.row[i]!), floors: paired(floors) };
}

function sameForm(a: Form, b: Form): boolean {
  if (a === b) return true;
  if (a.row.length !== b.row.length || a.floors.length !== b.floors.length) return false;
  return (
    a.row.every((v, i) => v === b.row[i]) &&
    a.floors.every((f, i) => {
      const g = b.floors[i]!;
      return (
        f.coefficient === g.coefficient &&
        f.divisor === g.divisor &&
        sameForm(f.plus, g.plus) &&
        (f.minus && g.minus ? sameForm(f.minus, g.minus) : f.minus === g.minus)
      );
    })
  );
}
