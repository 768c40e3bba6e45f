/**
 * Sets and maps from names and expressions: the programmatic door beside the notation
 * (notation.ts). A name is looked up among the dimensions first, then among the parameters; one that
 * is neither becomes a parameter. Floors become division locals, equal ones shared.
 */
import { reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import {
  type Affine,
  type AffineLike,
  add,
  affine,
  atomKey,
  type Floor,
  minus,
} from "./expression.ts";
import { rememberFunction } from "./function-rows.ts";
import { type Frame, seemsEmpty, toPiece } from "./piece.ts";
import type { Division, IntegerMap, IntegerSet, Piece, Tuple } from "./types.ts";

/** `expression >= 0` or `expression = 0`. */
export interface Constraint {
  readonly kind: "inequality" | "equality";
  readonly expression: Affine;
}

/** a <= b */
export function atMost(a: AffineLike, b: AffineLike): Constraint {
  return { kind: "inequality", expression: minus(b, a) };
}

/** a < b */
export function below(a: AffineLike, b: AffineLike): Constraint {
  return { kind: "inequality", expression: add(minus(b, a), -1) };
}

/** a = b */
export function equals(a: AffineLike, b: AffineLike): Constraint {
  return { kind: "equality", expression: minus(a, b) };
}

/** low <= x < end */
export function within(low: AffineLike, x: AffineLike, end: AffineLike): Constraint[] {
  return [atMost(low, x), below(x, end)];
}

export interface SetParts {
  /** Parameters to list first; others found in expressions are appended. */
  readonly params?: readonly string[];
  readonly tuple?: string;
  readonly dims: readonly string[];
  readonly where?: readonly Constraint[];
}

/** { tuple[dims] : where } */
export function makeSet(parts: SetParts): IntegerSet {
  const output: Tuple = { name: parts.tuple ?? "", dims: parts.dims };
  const builder = new PieceBuilder({ input: undefined, output }, parts.params ?? []);
  const piece = builder.build(parts.where ?? []);
  return { kind: "set", params: builder.params, pieces: piece ? [piece] : [] };
}

export interface BoxParts {
  readonly params?: readonly string[];
  readonly tuple?: string;
  readonly dims: readonly string[];
  /** Inclusive lower bounds, 0 where absent. */
  readonly low?: readonly AffineLike[];
  /** Exclusive upper bounds. */
  readonly end: readonly AffineLike[];
}

/** { tuple[dims] : low <= dims < end } */
export function makeBox(parts: BoxParts): IntegerSet {
  const { dims, low, end } = parts;
  invariant(end.length === dims.length, () => `${dims.length} dims, ${end.length} bounds`);
  const where = dims.flatMap((d, i) => within(low?.[i] ?? 0, d, end[i]!));
  return makeSet({ ...parts, where });
}

/** Parameter values that satisfy constraints, for intersectParams and the `context` of queries. */
export function makeContext(where: readonly Constraint[], params?: readonly string[]): IntegerSet {
  return makeSet({ ...(params && { params }), dims: [], where });
}

export interface MapParts {
  readonly params?: readonly string[];
  readonly from: { readonly tuple?: string; readonly dims: readonly string[] };
  /** Target coordinates as expressions in the source dimensions and parameters. */
  readonly to: {
    readonly tuple?: string;
    /** Names of the target's dimensions, where they matter. */
    readonly dims?: readonly string[];
    readonly values: readonly AffineLike[];
  };
  /** Constraints on source dimensions and parameters. */
  readonly where?: readonly Constraint[];
}

/** { from[dims] -> to[values] : where }, a map that gives each point at most one image. */
export function makeMap(parts: MapParts): IntegerMap {
  if (parts.where !== undefined && parts.where.length > 0) return mapAsRelation(parts);
  const tuple: Tuple = { name: parts.from.tuple ?? "", dims: parts.from.dims };
  const builder = new PieceBuilder({ input: undefined, output: tuple }, parts.params ?? []);
  const rows = builder.rows(parts.to.values.map(affine));
  let pieces: readonly Piece[] | undefined;
  const map: IntegerMap = {
    kind: "map",
    params: builder.params,
    // Schedules are mostly asked for their rows alone.
    get pieces() {
      pieces ??= mapAsRelation(parts).pieces;
      return pieces;
    },
  };
  rememberFunction(map, {
    input: tuple,
    output: parts.to.tuple ?? "",
    rows: { ...rows, equalities: [], inequalities: [] },
  });
  return map;
}

function mapAsRelation(parts: MapParts): IntegerMap {
  const names = parts.to.dims ?? parts.to.values.map((_, i) => freshName(`o${i}`, parts.from.dims));
  const values = parts.to.values.map((value, i) => equals(names[i]!, value));
  return makeRelation({
    ...(parts.params && { params: parts.params }),
    from: parts.from,
    to: { ...(parts.to.tuple !== undefined && { tuple: parts.to.tuple }), dims: names },
    where: [...values, ...(parts.where ?? [])],
  });
}

/** A dimension name that cannot be meant by an expression. */
function freshName(name: string, taken: readonly string[]): string {
  return taken.includes(name) ? freshName(`${name}'`, taken) : `${name}'`;
}

export interface RelationParts {
  readonly params?: readonly string[];
  readonly from: { readonly tuple?: string; readonly dims: readonly string[] };
  readonly to: { readonly tuple?: string; readonly dims: readonly string[] };
  readonly where?: readonly Constraint[];
}

/** { from[dims] -> to[dims] : where }; dimension names must differ between source and target. */
export function makeRelation(parts: RelationParts): IntegerMap {
  const input: Tuple = { name: parts.from.tuple ?? "", dims: parts.from.dims };
  const output: Tuple = { name: parts.to.tuple ?? "", dims: parts.to.dims };
  const builder = new PieceBuilder({ input, output }, parts.params ?? []);
  const piece = builder.build(parts.where ?? []);
  return { kind: "map", params: builder.params, pieces: piece ? [piece] : [] };
}

/** Coefficients of a piece, zeros included. */
const mostNumbers = 400_000;
/** More names than this are found by a table. */
const fewNames = 16;

/** Resolves names to columns and floors to locals while rows are still sparse. */
export class PieceBuilder {
  readonly params: string[];
  readonly #frame: Frame;
  readonly #dims: readonly string[];
  readonly #floors = new Map<string, number>();
  readonly #divisions: { row: SparseRow; divisor: number }[] = [];
  readonly #dimOf: Map<string, number> | undefined;
  readonly #paramOf: Map<string, number> | undefined;
  #free = 0;

  constructor(frame: Frame, params: readonly string[]) {
    this.#frame = frame;
    this.#dims = [...(frame.input?.dims ?? []), ...frame.output.dims];
    this.params = [...params];
    this.#dimOf = this.#dims.length > fewNames ? placesOf(this.#dims) : undefined;
    this.#paramOf = params.length > fewNames ? placesOf(params) : undefined;
    const distinct = new Set(this.#dims).size === this.#dims.length;
    invariant(distinct, () => `repeated dimension name in [${this.#dims}]`);
  }

  /** The piece of all constraints, or undefined when they obviously contradict. */
  build(where: readonly Constraint[], existentials: readonly string[] = []): Piece | undefined {
    const quantified = new Map(existentials.map((name, index) => [name, index]));
    const rows = where.map((c) => ({
      kind: c.kind,
      row: this.#sparse(c.expression, quantified),
    }));
    this.#free = existentials.length;
    this.#requireSmall(rows.length);
    const dense = (row: SparseRow): number[] => this.#dense(row);
    const divisions = this.#divisions.map(
      (d): Division => ({ numerator: dense(d.row), divisor: d.divisor }),
    );
    const piece = toPiece(this.#frame, {
      fixed: this.params.length + this.#dims.length,
      locals: [...existentials.map(() => null), ...divisions],
      equalities: rows.filter((r) => r.kind === "equality").map((r) => dense(r.row)),
      inequalities: rows.filter((r) => r.kind === "inequality").map((r) => dense(r.row)),
    });
    return piece && !seemsEmpty(this.params, piece) ? piece : undefined;
  }

  /** AFF003 where rows over all columns would be too many numbers. */
  #requireSmall(constraints: number): void {
    const rows = constraints + 2 * this.#divisions.length;
    const columns = this.params.length + this.#dims.length + this.#free + this.#divisions.length;
    if (rows * columns <= mostNumbers) return;
    reject("AFF003", `${rows} conditions over ${columns} variables and floors are too many`, {
      help: `state sets of at most ${mostNumbers} coefficients, zeros included`,
    });
  }

  /** One expression as a row over [parameters | dimensions | its divisions | constant]. */
  row(expression: Affine): { row: number[]; locals: Division[] } {
    const sparse = this.#sparse(expression, none);
    const locals = this.#divisions.map(
      (d): Division => ({ numerator: this.#dense(d.row), divisor: d.divisor }),
    );
    return { row: this.#dense(sparse), locals };
  }

  /** Several expressions as such rows. */
  rows(expressions: readonly Affine[]): { outputs: number[][]; locals: Division[] } {
    const sparse = expressions.map((e) => this.#sparse(e, none));
    const locals = this.#divisions.map(
      (d): Division => ({ numerator: this.#dense(d.row), divisor: d.divisor }),
    );
    return { outputs: sparse.map((row) => this.#dense(row)), locals };
  }

  #sparse(e: Affine, existentials: Existentials): SparseRow {
    const row: SparseRow = { constant: e.constant, entries: [] };
    for (const { coefficient, atom } of e.terms) {
      const place =
        typeof atom === "string"
          ? this.#placeOf(atom, existentials)
          : this.#floorPlace(atom, existentials);
      row.entries.push({ in: place.in, index: place.index, coefficient });
    }
    return row;
  }

  #placeOf(name: string, existentials: Existentials): Place {
    const local = existentials.get(name);
    if (local !== undefined) return { in: "existential", index: local };
    const dim = this.#dimOf ? (this.#dimOf.get(name) ?? -1) : this.#dims.indexOf(name);
    if (dim >= 0) return { in: "dim", index: dim };
    const param = this.#paramOf ? (this.#paramOf.get(name) ?? -1) : this.params.indexOf(name);
    if (param >= 0) return { in: "param", index: param };
    const index = this.params.push(name) - 1;
    this.#paramOf?.set(name, index);
    return { in: "param", index };
  }

  #floorPlace(floor: Floor, existentials: Existentials): Place {
    const key = atomKey(floor);
    const known = this.#floors.get(key);
    if (known !== undefined) return { in: "floor", index: known };
    const row = this.#sparse(floor.numerator, existentials);
    const index = this.#divisions.push({ row, divisor: floor.divisor }) - 1;
    this.#floors.set(key, index);
    return { in: "floor", index };
  }

  #dense(sparse: SparseRow): number[] {
    const fixed = this.params.length + this.#dims.length;
    const row = new Array<number>(fixed + this.#free + this.#divisions.length + 1).fill(0);
    const start = {
      param: 0,
      dim: this.params.length,
      existential: fixed,
      floor: fixed + this.#free,
    };
    for (const e of sparse.entries) row[start[e.in] + e.index]! += e.coefficient;
    row[row.length - 1] = sparse.constant;
    return row;
  }
}

type Existentials = ReadonlyMap<string, number>;

const none: Existentials = new Map();

function placesOf(names: readonly string[]): Map<string, number> {
  return new Map(names.map((name, i) => [name, i]));
}

interface Place {
  readonly in: "param" | "dim" | "existential" | "floor";
  readonly index: number;
}

interface SparseRow {
  readonly constant: number;
  readonly entries: (Place & { readonly coefficient: number })[];
}
