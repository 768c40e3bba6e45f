/**
 * What loops have to visit for one piece of a statement's instances: the values of the loops around it
 * as inequalities and congruences, and the instance as expressions of the loops. The time of an instance
 * is inverted here: equalities with a coefficient of one give dimensions and floors by the loops,
 * others by an exact division with a congruence; a dimension that no loop counts is a further loop
 * inside the others.
 */
import { type Constraint, equals, makeMap } from "../build.ts";
import { makeDisjointWithin } from "../compare.ts";
import { type Affine, add, affine, floorDivide, remainder, scale } from "../expression.ts";
import { domainOf, type NestStatement } from "../nest.ts";
import { eliminationRow, shadow, splitBounds } from "../omega.ts";
import { alignParams, applyMap, intersectParams } from "../operations.ts";
import { definePiece, toSystem } from "../piece.ts";
import {
  coefficientGcd,
  combine,
  negateRow,
  type Row,
  substitute,
  tightInequality,
} from "../row.ts";
import { divisionRows, type System } from "../system.ts";
import type { IntegerSet, Piece } from "../types.ts";
import type { Work } from "../work.ts";
import type { TimePart } from "./flatten.ts";

export interface ScanUnit {
  readonly statement: NestStatement;
  /** All loops around the instances, outermost first; further ones last. */
  readonly loops: readonly string[];
  /** What holds for the parameters and the first k loops, without regard to those inside: not less. */
  readonly within: readonly (readonly Constraint[])[];
  /** Exactly what has to hold, at the innermost place. */
  readonly exact: readonly Constraint[];
  readonly congruences: readonly Congruence[];
  readonly values: readonly Affine[];
}

/** `expression` is a multiple of `modulus`. */
export interface Congruence {
  readonly expression: Affine;
  readonly modulus: number;
}

export function congruenceConstraint({ expression, modulus }: Congruence): Constraint {
  return equals(remainder(expression, modulus), 0);
}

export interface ScanOptions {
  readonly context: IntegerSet | undefined;
  /** Of all statements. */
  readonly params: readonly string[];
  readonly work: Work;
}

/** The units of a statement, with no instance in two of them. */
export function scanUnits(
  statement: NestStatement,
  parts: readonly TimePart[],
  { context, params: all, work }: ScanOptions,
): readonly ScanUnit[] {
  const own = domainOf(statement);
  const domain = alignParams(context ? intersectParams(own, context) : own, all);
  const counted = parts.filter((p) => p.loop !== undefined);
  const to = { values: [...counted.map((p) => p.value), ...statement.dims] };
  const timed = applyMap(
    makeMap({ from: { tuple: statement.name, dims: statement.dims }, to }),
    domain,
  );
  const { params } = timed;
  const defined = timed.pieces.flatMap((p) => definePiece(params, p, work));
  const apart = makeDisjointWithin<IntegerSet>({ ...timed, pieces: defined }, work);
  const loops = distinct(
    counted.map((p) => p.loop!),
    params,
  );
  return apart.pieces
    .flatMap((p) => definePiece(params, p, work))
    .map((piece) => new Solver(statement, loops, { params, piece }).unit(work));
}

/** Loops' names that no parameter has. */
function distinct(loops: readonly string[], params: readonly string[]): readonly string[] {
  const names: string[] = [];
  for (const loop of loops) {
    let name = loop;
    while (params.includes(name) || names.includes(name)) name += "'";
    names.push(name);
  }
  return names;
}

interface Place {
  readonly params: readonly string[];
  readonly piece: Piece;
}

/** Columns are [parameters | loops | dimensions | divisions | constant]. */
class Solver {
  readonly #statement: NestStatement;
  readonly #params: readonly string[];
  readonly #system: System;
  /** First columns of the dimensions, of the divisions, and of the constant. */
  readonly #dims: number;
  readonly #divisions: number;
  readonly #end: number;
  readonly #names: (string | undefined)[];
  /** column = row / divisor, exactly. */
  readonly #solved = new Map<number, { readonly row: Row; readonly divisor: number }>();
  readonly #congruences: Congruence[] = [];
  #equalities: number[][];
  #rows: number[][];
  readonly #loops: string[];

  constructor(statement: NestStatement, loops: readonly string[], { params, piece }: Place) {
    this.#statement = statement;
    this.#params = params;
    this.#loops = [...loops];
    this.#system = toSystem(params, piece);
    this.#dims = params.length + loops.length;
    this.#divisions = this.#dims + statement.dims.length;
    this.#end = this.#divisions + this.#system.locals.length;
    this.#names = [...params, ...loops];
    this.#equalities = this.#system.equalities.map((r) => r.slice());
    this.#rows = [...this.#system.inequalities, ...divisionRows(this.#system)];
  }

  unit(work: Work): ScanUnit {
    this.#solveUnits();
    this.#solveMultiples();
    this.#scanRest();
    for (const e of this.#equalities) this.#rows.push(e, negateRow(e));
    const values = this.#statement.dims.map((_, i) => this.#valueOf(this.#dims + i));
    return {
      statement: this.#statement,
      loops: this.#loops,
      within: this.#projections(work),
      exact: this.#rows.flatMap((r) => this.#constraint(r)),
      congruences: this.#congruences,
      values,
    };
  }

  #unknown(): readonly number[] {
    const all = Array.from({ length: this.#end - this.#dims }, (_, i) => this.#dims + i);
    return all.filter((c) => !this.#solved.has(c) && this.#names[c] === undefined);
  }

  #solveUnits(): void {
    for (;;) {
      const unknown = this.#unknown();
      const usable = (r: Row): number | undefined => unknown.find((c) => Math.abs(r[c]!) === 1);
      const equality = this.#equalities.find((r) => usable(r) !== undefined);
      if (!equality) return;
      const column = usable(equality)!;
      const row = eliminationRow(equality, column);
      this.#solved.set(column, { row, divisor: 1 });
      const rest = this.#equalities.filter((e) => e !== equality);
      this.#equalities = rest.map((r) => substitute(r, column, row, "equality"));
      this.#rows = this.#rows.map((r) => substitute(r, column, row, "inequality"));
    }
  }

  /** a*u + f = 0 with one unknown: u = -f/a where f is a multiple of a. */
  #solveMultiples(): void {
    for (;;) {
      const unknown = this.#unknown();
      const alone = (r: Row): boolean => unknown.filter((c) => r[c] !== 0).length === 1;
      const equality = this.#equalities.find(alone);
      if (!equality) return;
      const column = unknown.find((c) => equality[c] !== 0)!;
      const a = equality[column]!;
      const rest = equality.with(column, 0);
      const row = a > 0 ? negateRow(rest) : rest;
      const divisor = Math.abs(a);
      this.#solved.set(column, { row, divisor });
      this.#congruences.push({ expression: this.#expression(row), modulus: divisor });
      const without = (r: number[], kind: "equality" | "inequality"): number[] => {
        const c = r[column]!;
        return c === 0 ? r : combine(divisor, r, -c * Math.sign(a), equality, kind);
      };
      this.#equalities = this.#equalities
        .filter((e) => e !== equality)
        .map((r) => without(r, "equality"));
      this.#rows = this.#rows.map((r) => without(r, "inequality"));
    }
  }

  /** Dimensions that nothing gives are loops; divisions that depend on nothing but loops are spelled. */
  #scanRest(): void {
    for (const column of this.#unknown()) {
      if (column >= this.#divisions && this.#isSpelled(column, [])) continue;
      const dim = this.#statement.dims[column - this.#dims] ?? `q${column - this.#divisions}`;
      let name = dim;
      while (this.#names.includes(name)) name += "'";
      this.#names[column] = name;
      this.#loops.push(name);
    }
  }

  /** Whether a division can be written with the loops, without itself. */
  #isSpelled(column: number, above: readonly number[]): boolean {
    if (this.#names[column] !== undefined) return true;
    if (above.includes(column)) return false;
    const row = this.#solved.get(column)?.row ?? this.#numeratorOf(column);
    if (!row) return false;
    const inner = [...above, column];
    return row.every((v, c) => v === 0 || c >= this.#end || this.#isSpelled(c, inner));
  }

  #numeratorOf(column: number): Row | undefined {
    return this.#system.locals[column - this.#divisions]?.numerator;
  }

  #valueOf(column: number): Affine {
    const name = this.#names[column];
    if (name !== undefined) return affine(name);
    const solved = this.#solved.get(column);
    if (solved) {
      const value = this.#expression(solved.row);
      return solved.divisor === 1 ? value : floorDivide(value, solved.divisor);
    }
    const { numerator, divisor } = this.#system.locals[column - this.#divisions]!;
    return floorDivide(this.#expression(numerator), divisor);
  }

  #expression(row: Row): Affine {
    const terms = row.flatMap((v, c) =>
      v === 0 || c >= this.#end ? [] : [scale(v, this.#valueOf(c))],
    );
    return add(row.at(-1)!, ...terms);
  }

  #constraint(row: Row): readonly Constraint[] {
    const tight = tightInequality(row);
    if (tight === undefined) return [];
    return [{ kind: "inequality", expression: this.#expression(tight ?? row) }];
  }

  /** From the innermost loop outwards, the real shadow on the loops that are left. */
  #projections(work: Work): readonly (readonly Constraint[])[] {
    const columns = this.#loops.map((l) => this.#names.indexOf(l));
    const others = Array.from({ length: this.#end }, (_, c) => c).filter(
      (c) => c >= this.#params.length && !columns.includes(c),
    );
    let rows = this.#rows;
    for (const c of others) rows = project(rows, c, work);
    const levels = [rows];
    for (const c of columns.toReversed()) {
      rows = project(rows, c, work);
      levels.unshift(rows);
    }
    return levels.map((level) => level.flatMap((r) => this.#constraint(r)));
  }
}

function project(rows: number[][], column: number, work: Work): number[][] {
  if (rows.every((r) => r[column] === 0)) return rows;
  return withoutRepeats(shadow(splitBounds(rows, column), column, "real", work));
}

/** Of rows with equal coefficients the strictest. */
function withoutRepeats(rows: readonly number[][]): number[][] {
  const strictest = new Map<string, number[]>();
  for (const row of rows) {
    const tight = coefficientGcd(row) > 1 ? (tightInequality(row) ?? row) : row;
    const key = tight.slice(0, -1).join();
    const known = strictest.get(key);
    if (!known || tight.at(-1)! < known.at(-1)!) strictest.set(key, tight);
  }
  return [...strictest.values()];
}
