/**
 * Facts about index variables as a system of linear rows, for the integer solver of affine/: decides
 * `e >= 0` by asking for a point that satisfies the facts and e <= -1. floorDiv and mod by constants
 * become a quotient between two rows; a min or max a column below or above all operands, and where
 * that is not enough one case for each operand that it may be; products and other divisions a column
 * that may be anything in its range. Every step only lets points in, so "no point" is a proof; a point
 * found is a counterexample when the facts themselves hold there, and says nothing otherwise.
 */
import { type Answer, findIntegerPoint } from "../../affine/index.ts";
import {
  constantValue,
  evaluate,
  type IndexAtom,
  type IndexExpr,
  mul,
  sub,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { type IndexRange, rangeOf } from "../../semantics/index-range.ts";

/** Values of variables, by name. */
export type Assignment = ReadonlyMap<string, number>;

/** A proof, a point where it fails, or neither. */
export type Decision =
  | { readonly kind: "proved" | "unknown" }
  | { readonly kind: "refuted"; readonly point: Assignment };

/** sum of coefficient * column, plus the constant, is at least 0. */
interface SparseRow {
  readonly columns: readonly number[];
  readonly coefficients: readonly number[];
  readonly constant: number;
}

interface Definition {
  readonly rows: SparseRow[];
  /** One row of each list holds: which operand an extremum is. */
  readonly cases: (readonly SparseRow[])[];
}

/** Work units of one question: about two milliseconds. */
const workPerQuestion = 4000;
const mostCases = 32;

export interface FactParts {
  readonly ranges: ReadonlyMap<string, IndexRange>;
  /** What says that a loop variable is less than its extent; each is >= 0. */
  readonly below: ReadonlyMap<string, readonly IndexExpr[]>;
  /** Each is >= 0. */
  readonly conditions: readonly IndexExpr[];
}

export class LinearFacts {
  readonly #facts: FactParts;
  readonly #work: number;
  readonly #columns = new Map<string, number>();
  /** Index variables by column; undefined for quotients, extrema and products. */
  readonly #names: (string | undefined)[] = [];
  /** What each column means: its range, quotient or operands. */
  readonly #definitions: Definition[] = [];
  readonly #rows: readonly SparseRow[];
  /** Variables of the facts. */
  readonly #mentioned: ReadonlySet<string>;

  /** @param work units that a question may take */
  constructor(facts: FactParts, work = workPerQuestion) {
    this.#facts = facts;
    this.#work = work;
    this.#rows = facts.conditions.map((e) => this.#row(e));
    this.#mentioned = variablesOf(...facts.conditions, ...[...facts.below.values()].flat());
  }

  /** Whether the facts imply e >= 0; a constant e asks whether they contradict each other. */
  decide(e: IndexExpr): Decision {
    const goal = this.#row(sub(-1, e));
    const { rows, cases } = this.#connected(e.terms.length === 0 ? [goal, ...this.#rows] : [goal]);
    const first = this.#solve(rows);
    if (first.kind === "unknown") return { kind: "unknown" };
    if (first.value === null) return { kind: "proved" };
    const point = this.#verified(first.value, e);
    if (point) return { kind: "refuted", point };
    return this.#byCases(rows, cases, e);
  }

  #byCases(
    rows: readonly SparseRow[],
    cases: readonly (readonly SparseRow[])[],
    e: IndexExpr,
  ): Decision {
    if (cases.length === 0 || cases.reduce((n, c) => n * c.length, 1) > mostCases) {
      return { kind: "unknown" };
    }
    let choices: readonly (readonly SparseRow[])[] = [rows];
    for (const options of cases) choices = choices.flatMap((c) => options.map((o) => [...c, o]));
    for (const choice of choices) {
      const found = this.#solve(choice);
      if (found.kind === "unknown") return { kind: "unknown" };
      if (found.value === null) continue;
      const point = this.#verified(found.value, e);
      return point ? { kind: "refuted", point } : { kind: "unknown" };
    }
    return { kind: "proved" };
  }

  /** The rows that share columns with these, directly or through others. */
  #connected(from: readonly SparseRow[]): Definition {
    const rows: SparseRow[] = [];
    const cases: (readonly SparseRow[])[] = [];
    const reached = new Set<number>();
    const left = new Set(this.#rows);
    const pending = [...from];
    for (let row = pending.pop(); row; row = pending.pop()) {
      rows.push(row);
      left.delete(row);
      const news = row.columns.filter((c) => !reached.has(c));
      if (news.length === 0) continue;
      for (const c of news) {
        reached.add(c);
        pending.push(...this.#definitions[c]!.rows);
        cases.push(...this.#definitions[c]!.cases);
      }
      for (const other of left) {
        if (!other.columns.some((c) => reached.has(c))) continue;
        left.delete(other);
        pending.push(other);
      }
    }
    return { rows, cases };
  }

  #solve(rows: readonly SparseRow[]): Answer<readonly (number | undefined)[] | null> {
    const used = [...new Set(rows.flatMap((r) => r.columns))].sort((a, b) => a - b);
    const place = new Map(used.map((column, i) => [column, i]));
    const dense = rows.map((r) => {
      const row = new Array<number>(used.length + 1).fill(0);
      for (const [i, c] of r.columns.entries()) row[place.get(c)!]! += r.coefficients[i]!;
      row[used.length] = r.constant;
      return row;
    });
    const found = findIntegerPoint(dense, used.length, this.#work);
    if (found.kind === "unknown" || found.value === null) return found;
    const values = new Array<number | undefined>(this.#names.length).fill(undefined);
    for (const [i, column] of used.entries()) values[column] = found.value[i]!;
    return { kind: "known", value: values };
  }

  /** The point by names, where all facts about its variables hold and `e` is negative. */
  #verified(values: readonly (number | undefined)[], e: IndexExpr): Assignment | undefined {
    const point = new Map<string, number>();
    for (const name of [...variablesOf(e), ...this.#mentioned]) point.set(name, 0);
    for (const [name, { min }] of this.#facts.ranges) point.set(name, min);
    for (const [column, value] of values.entries()) {
      const name = this.#names[column];
      if (name !== undefined && value !== undefined) point.set(name, value);
    }
    return holdsAt(this.#facts, point) && evaluate(e, point) < 0 ? point : undefined;
  }

  // Rows and columns.

  #row(e: IndexExpr): SparseRow {
    const columns: number[] = [];
    const coefficients: number[] = [];
    for (const term of e.terms) {
      columns.push(term.atoms.length === 1 ? this.#atom(term.atoms[0]!) : this.#product(term));
      coefficients.push(term.coefficient);
    }
    return { columns, coefficients, constant: e.constant };
  }

  #fresh(key: string, name?: string): number {
    const column = this.#names.length;
    this.#columns.set(key, column);
    this.#names.push(name);
    this.#definitions.push({ rows: [], cases: [] });
    return column;
  }

  #product(term: IndexExpr["terms"][number]): number {
    const known = this.#columns.get(term.key);
    if (known !== undefined) return known;
    const column = this.#fresh(term.key);
    const unit = { constant: 0, terms: [{ ...term, coefficient: 1 }], key: term.key };
    this.#between(column, rangeOf(unit, this.#facts.ranges));
    return column;
  }

  #between(column: number, { min, max }: IndexRange): void {
    const columns = [column];
    const { rows } = this.#definitions[column]!;
    if (Number.isSafeInteger(min)) rows.push({ columns, coefficients: [1], constant: 0 - min });
    if (Number.isSafeInteger(max)) rows.push({ columns, coefficients: [-1], constant: max });
  }

  #define(column: number, ...exprs: readonly IndexExpr[]): void {
    this.#definitions[column]!.rows.push(...exprs.map((e) => this.#row(e)));
  }

  #atom(atom: IndexAtom): number {
    const known = this.#columns.get(atom.key);
    if (known !== undefined) return known;
    if (atom.kind === "variable") return this.#variable(atom.name);
    if ("operands" in atom) return this.#extremum(atom.key, atom);
    const { key, kind, numerator, denominator } = atom;
    const divisor = constantValue(denominator);
    const column = this.#fresh(key);
    const self = variable(key);
    if (divisor === undefined) this.#between(column, rangeOf(self, this.#facts.ranges));
    else if (kind === "floorDiv") {
      const rest = sub(numerator, mul(divisor, self));
      this.#define(column, rest, sub(divisor - 1, rest));
    } else {
      // numerator - mod = divisor * quotient
      const quotient = variable(`quotient of ${key}`);
      this.#fresh(quotient.key);
      const zero = sub(sub(numerator, self), mul(divisor, quotient));
      this.#define(column, zero, sub(0, zero));
      this.#between(column, { min: 0, max: divisor - 1 });
    }
    return column;
  }

  #variable(name: string): number {
    const column = this.#fresh(name, name);
    const range = this.#facts.ranges.get(name);
    if (range) this.#between(column, range);
    this.#define(column, ...(this.#facts.below.get(name) ?? []));
    return column;
  }

  #extremum(key: string, atom: Extract<IndexAtom, { operands: readonly IndexExpr[] }>): number {
    // The column is found again under the key of a variable of that name.
    const column = this.#fresh(key);
    const self = variable(key);
    const sign = atom.kind === "min" ? 1 : -1;
    const apart = atom.operands.map((o) => mul(sign, sub(o, self)));
    this.#define(column, ...apart);
    this.#definitions[column]!.cases.push(apart.map((e) => this.#row(mul(-1, e))));
    return column;
  }
}

/** Whether all facts hold at the point, which gives every variable a value. */
export function holdsAt(facts: FactParts, point: Assignment): boolean {
  for (const [name, { min, max }] of facts.ranges) {
    const value = point.get(name)!;
    if (value < min || value > max) return false;
  }
  for (const room of facts.below.values()) {
    if (room.some((e) => evaluate(e, point) < 0)) return false;
  }
  return facts.conditions.every((c) => evaluate(c, point) >= 0);
}
