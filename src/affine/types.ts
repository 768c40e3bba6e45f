/**
 * The values of the library: integer sets and maps as finite unions of pieces. A piece is
 * { x : exists locals: equalities = 0 and inequalities >= 0 } over integer columns laid out as
 *
 *   [ parameters | input dimensions | output dimensions | locals | constant ]
 *
 * A set is a map without input. Pieces of one set may live in different named tuples
 * (`{ S[i]; T[j] }`), so one type serves single and union sets. Parameters are shared by all pieces
 * and matched by name between operands. All values are immutable; piece.ts does the arithmetic.
 */
import type { Row } from "./row.ts";

/** A named tuple of dimensions, `S[i, j]`. Dimension names only serve building and printing. */
export interface Tuple {
  /** "" for an anonymous tuple. */
  readonly name: string;
  readonly dims: readonly string[];
  /** `S[A[i] -> B[j]]`: the pair that the tuple wraps; `dims` are then those of both, in order. */
  readonly nested?: NestedPair;
}

export interface NestedPair {
  readonly from: Tuple;
  readonly to: Tuple;
}

/** floor(numerator / divisor), the definition of a local; the numerator spans all columns. */
export interface Division {
  readonly numerator: Row;
  readonly divisor: number;
}

/** One basic set or map. */
export interface Piece {
  /** undefined for a set. */
  readonly input: Tuple | undefined;
  readonly output: Tuple;
  /**
   * Existentially quantified columns: null is any integer, a Division is that value. A definition
   * uses only parameters, dimensions and defined locals before it.
   */
  readonly locals: readonly (Division | null)[];
  /** Rows that are 0 on every point. */
  readonly equalities: readonly Row[];
  /** Rows that are at least 0 on every point. */
  readonly inequalities: readonly Row[];
}

interface Relation {
  readonly params: readonly string[];
  readonly pieces: readonly Piece[];
}

/** A finite union of basic sets; every piece lacks an input. */
export interface IntegerSet extends Relation {
  readonly kind: "set";
}

/** A finite union of basic maps; every piece has an input. */
export interface IntegerMap extends Relation {
  readonly kind: "map";
}

/** Either; operations that treat both alike return what they were given. */
export type SetOrMap = IntegerSet | IntegerMap;

/** A point of a set with its parameter values, or a pair of points of a map. */
export interface Point {
  readonly params: Readonly<Record<string, number>>;
  readonly tuple: string;
  readonly values: readonly number[];
}

export interface PointPair {
  readonly params: Readonly<Record<string, number>>;
  readonly from: { readonly tuple: string; readonly values: readonly number[] };
  readonly to: { readonly tuple: string; readonly values: readonly number[] };
}

/** Columns of parameters and dimensions: everything that is not a local. */
export function fixedColumns(params: readonly string[], piece: Piece): number {
  return params.length + (piece.input?.dims.length ?? 0) + piece.output.dims.length;
}

/** Row length of a piece: all columns and the constant. */
export function rowWidth(params: readonly string[], piece: Piece): number {
  return fixedColumns(params, piece) + piece.locals.length + 1;
}

/** Whether two tuples hold the same kind of point. */
export function sameTuple(a: Tuple | undefined, b: Tuple | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a === b) return true;
  return a.name === b.name && a.dims.length === b.dims.length && sameNesting(a.nested, b.nested);
}

function sameNesting(a: NestedPair | undefined, b: NestedPair | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return sameTuple(a.from, b.from) && sameTuple(a.to, b.to);
}
