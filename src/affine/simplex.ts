/**
 * The least value of an affine row over the rational points of a system of which one integer point is
 * known: the simplex method on an integer tableau whose rows carry their own denominator (the form of
 * isl's tableaus). The known point is the origin, so that no first phase is needed. The answer is exact;
 * a number that would leave the range of doubles, or too many pivots, end the search without one.
 * optimum.ts makes integer optima of it.
 */
import { gcd, type Row } from "./row.ts";

export type RationalMinimum =
  | { readonly kind: "unbounded" }
  /** The least value rounded up, and whether an integer point attains it. */
  | { readonly kind: "value"; readonly ceiling: number; readonly attained: boolean };

export interface Program {
  readonly equalities: readonly Row[];
  readonly inequalities: readonly Row[];
  /** A point of the system, one value a column. */
  readonly start: readonly number[];
}

const largest = 2 ** 52;
/** Pivots of one search; more than any small program takes. */
const mostPivots = 500;

/** undefined when a number grows too large. */
export function minimizeRationally(program: Program, row: Row): RationalMinimum | undefined {
  const tableau = new Tableau(program, row);
  const ended = tableau.minimize();
  if (ended === "large") return undefined;
  if (ended === "unbounded") return { kind: "unbounded" };
  return tableau.optimum();
}

type End = "optimal" | "unbounded" | "large";

/**
 * denominator[i] * (what row i stands for) = constant + sum entry[i][j] * (what column j stands for).
 * Row 0 is the objective, then the inequalities (at least 0), then one row for each variable that has
 * left the columns. Columns stand for variables (free, at first) and then for inequalities.
 */
class Tableau {
  readonly #width: number;
  readonly #rows: Float64Array[] = [];
  /** Rows from 1 to here are inequalities. */
  readonly #bounded: number;
  /** What each column stands for: the variable c as c, an inequality as -1, nothing any more as -2. */
  readonly #columns: number[] = [];
  #pivots = 0;
  #large = false;

  constructor({ equalities, inequalities, start }: Program, objective: Row) {
    const n = start.length;
    // Entries of the columns, then the constant, then the denominator.
    this.#width = n + 2;
    for (let c = 0; c < n; c++) this.#columns.push(c);
    this.#add(objective, start);
    for (const row of inequalities) this.#add(row, start);
    this.#bounded = inequalities.length;
    for (const row of equalities) this.#eliminate(row);
  }

  /** The row around the known point. */
  #add(row: Row, start: readonly number[]): void {
    const n = start.length;
    const out = new Float64Array(this.#width);
    let sum = row[n]!;
    for (let c = 0; c < n; c++) {
      const v = row[c]!;
      if (v === 0) continue;
      out[c] = v;
      sum = this.#checked(sum + this.#checked(v * start[c]!));
    }
    out[n] = sum;
    out[n + 1] = 1;
    this.#rows.push(out);
  }

  /** Uses an equality (which holds at the origin) to remove a column. */
  #eliminate(equality: Row): void {
    const n = this.#columns.length;
    const row = new Float64Array(this.#width);
    for (let c = 0; c < n; c++) row[c] = equality[c]!;
    row[n + 1] = 1;
    // The equality over the present columns.
    for (let i = this.#bounded + 1; i < this.#rows.length; i++) {
      const own = this.#rows[i]!;
      const variable = this.#variables[i - this.#bounded - 1]!;
      const factor = row[variable]!;
      if (factor === 0) continue;
      row[variable] = 0;
      const d = own[n + 1]!;
      for (let c = 0; c <= n; c++)
        row[c] = this.#checked(row[c]! * d) + this.#checked(factor * own[c]!);
    }
    for (let c = 0; c < n; c++) {
      if (row[c] === 0 || this.#columns[c] === -2) continue;
      this.#rows.push(row);
      const at = this.#rows.length - 1;
      this.#variables.push(this.#columns[c]!);
      this.#pivot(at, c);
      this.#drop(c);
      return;
    }
  }

  /** The variables that the rows behind the inequalities stand for. */
  readonly #variables: number[] = [];

  /** The column is zero from now on. */
  #drop(column: number): void {
    this.#columns[column] = -2;
    for (const row of this.#rows) row[column] = 0;
  }

  minimize(): End {
    const n = this.#columns.length;
    for (let c = 0; c < n; c++) {
      if (this.#columns[c]! < 0) continue;
      const end = this.#enterFree(c);
      if (end) return end;
    }
    while (!this.#large) {
      const column = this.#improving();
      if (column < 0) return "optimal";
      const row = this.#blocking(column, 1);
      if (row < 0) return "unbounded";
      if (++this.#pivots > mostPivots) return "large";
      this.#pivot(row, column);
    }
    return "large";
  }

  /** A free variable takes the place of an inequality, in the direction that lowers the objective. */
  #enterFree(column: number): End | undefined {
    const slope = this.#rows[0]![column]!;
    const direction = slope > 0 ? -1 : 1;
    let row = this.#blocking(column, direction);
    if (row < 0 && slope !== 0) return "unbounded";
    if (row < 0) row = this.#blocking(column, -1);
    // A line of the system along which the objective stays: its place on it does not matter.
    if (row < 0) {
      this.#drop(column);
      return undefined;
    }
    const variable = this.#columns[column]!;
    const entering = this.#rows[row]!;
    // The inequality's row becomes the variable's, and a column the inequality's.
    this.#pivot(row, column);
    this.#columns[column] = -1;
    this.#rows.push(entering);
    this.#variables.push(variable);
    const last = new Float64Array(this.#width);
    last[this.#width - 1] = 1;
    this.#rows[row] = last;
    return this.#large ? "large" : undefined;
  }

  /** The first column along which the objective falls. */
  #improving(): number {
    const objective = this.#rows[0]!;
    for (let c = 0; c < this.#columns.length; c++) if (objective[c]! < 0) return c;
    return -1;
  }

  /** The inequality that first stops a step along the column; -1 when none does. */
  #blocking(column: number, direction: 1 | -1): number {
    const n = this.#columns.length;
    let best = -1;
    let constant = 0;
    let speed = 1;
    for (let i = 1; i <= this.#bounded; i++) {
      const row = this.#rows[i]!;
      const v = direction * row[column]!;
      if (v >= 0) continue;
      if (best < 0 || this.#checked(row[n]! * speed) < this.#checked(constant * -v)) {
        best = i;
        constant = row[n]!;
        speed = -v;
      }
    }
    return best;
  }

  /** What `row` and `column` stand for change places. */
  #pivot(row: number, column: number): void {
    const n = this.#columns.length;
    const own = this.#rows[row]!;
    const a = own[column]!;
    const size = Math.abs(a);
    const sign = a > 0 ? 1 : -1;
    const d = own[n + 1]!;
    for (let c = 0; c <= n; c++) own[c] = -sign * own[c]! + 0;
    own[column] = sign * d;
    own[n + 1] = size;
    this.#reduce(own);
    const denominator = own[n + 1]!;
    for (let i = 0; i < this.#rows.length; i++) {
      if (i === row) continue;
      const other = this.#rows[i]!;
      const factor = other[column]!;
      if (factor === 0) continue;
      other[column] = 0;
      for (let c = 0; c <= n; c++) {
        other[c] = this.#checked(other[c]! * denominator) + this.#checked(factor * own[c]!);
      }
      other[n + 1]! *= denominator;
      this.#reduce(other);
    }
  }

  #checked(product: number): number {
    if (product > largest || product < -largest) this.#large = true;
    return product;
  }

  /** Divides by what all entries, the constant and the denominator share. */
  #reduce(row: Float64Array): void {
    const n = row.length - 1;
    let g = row[n]!;
    if (g > largest) this.#large = true;
    for (let c = 0; c < n && g !== 1; c++) if (row[c] !== 0) g = gcd(g, row[c]!);
    if (g === 1) return;
    for (let c = 0; c <= n; c++) row[c]! /= g;
  }

  optimum(): RationalMinimum {
    const n = this.#columns.length;
    const objective = this.#rows[0]!;
    const ceiling = Math.ceil(objective[n]! / objective[n + 1]!) + 0;
    let attained = true;
    for (let i = this.#bounded + 1; i < this.#rows.length && attained; i++) {
      const row = this.#rows[i]!;
      attained = row[n]! % row[n + 1]! === 0;
    }
    return { kind: "value", ceiling, attained };
  }
}
