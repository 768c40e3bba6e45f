/**
 * Bounds and boxes: for each dimension of a set affine lower and upper bounds in the parameters, the
 * widest extent as a number, and footprints, the box of elements that a map accesses over a tile.
 * Bounds come from Fourier-Motzkin projection (valid always, attained when it was exact); numbers
 * from the exact optimiser (optimum.ts).
 */

import { isEmptyPiece } from "./compare.ts";
import { type Affine, add, ceilDivide, floorDivide, formatAffine, scale } from "./expression.ts";
import { eliminationRow, shadow, splitBounds } from "./omega.ts";
import { intersectDomain, pairsOf, range } from "./operations.ts";
import { minimumOfRow, negated, withExpression } from "./optimum.ts";
import { projectOnto, toPiece, toSystem } from "./piece.ts";
import { copySystem } from "./quantifier.ts";
import { negateInequality, negateRow, type Row, substitute } from "./row.ts";
import { divisionRows, type System } from "./system.ts";
import { tighten } from "./tighten.ts";
import { type IntegerMap, type IntegerSet, type Piece, sameTuple, type Tuple } from "./types.ts";
import { type Answer, answer, type Work } from "./work.ts";

/** What is known about one dimension. */
export interface DimensionBounds {
  /** Each is at most the dimension on every point; in parameters, with floors. */
  readonly lower: readonly Affine[];
  /** Each is at least the dimension on every point. */
  readonly upper: readonly Affine[];
  /** greatest - least + 1 for the worst parameter values; undefined when that is unbounded. */
  readonly extent: number | undefined;
}

export interface Box {
  readonly tuple: Tuple;
  readonly dims: readonly DimensionBounds[];
}

/** The smallest boxes, one a tuple, around the points of a set; empty pieces have none. */
export function hullBoxes(set: IntegerSet, limit?: number): Answer<readonly Box[]> {
  return answer((work) => hullBoxesWithin(set, work), limit);
}

/** The elements, one box an array, that `access` touches from the instances in `tile`. */
export function footprintBoxes(
  access: IntegerMap,
  tile: IntegerSet,
  limit?: number,
): Answer<readonly Box[]> {
  return hullBoxes(range(intersectDomain(access, tile)), limit);
}

function hullBoxesWithin(set: IntegerSet, work: Work): Box[] {
  const boxes: Box[] = [];
  const pieces = set.pieces.filter((p) => !isEmptyPiece(set.params, p, work));
  for (const { output: tuple } of pieces) {
    if (boxes.some((b) => sameTuple(b.tuple, tuple))) continue;
    const own = pieces.filter((p) => sameTuple(p.output, tuple));
    const dims = tuple.dims.map((_, i) => boundsOfDimension(set.params, own, i, work));
    boxes.push({ tuple, dims });
  }
  return boxes;
}

function boundsOfDimension(
  params: readonly string[],
  pieces: readonly Piece[],
  index: number,
  work: Work,
): DimensionBounds {
  const column = params.length + index;
  if (params.length === 0) return constantBounds(pieces, column, work);
  const rows = pieces.map((p) => boundRows(params, p, column, work));
  const valid = rows.map((own, i) => keepCommon(own, params, pieces, { i, column, work }));
  const bounds = distinctRows(valid.flat());
  const lower = bounds.filter((r) => r[params.length]! > 0);
  const upper = bounds.filter((r) => r[params.length]! < 0);
  return {
    lower: lower.map((r) => boundExpression(r, params)),
    upper: upper.map((r) => boundExpression(r, params)),
    extent: extentOf(params, pieces, column, { lower, upper, work }),
  };
}

function constantBounds(pieces: readonly Piece[], column: number, work: Work): DimensionBounds {
  let low = Infinity;
  let high = -Infinity;
  for (const piece of pieces) {
    const system = toSystem([], piece);
    const row = unit(system, column);
    const least = minimumOfRow(system, row, work);
    const most = negated(minimumOfRow(system, negateRow(row), work));
    low = Math.min(low, least.kind === "value" ? least.value : -Infinity);
    high = Math.max(high, most.kind === "value" ? most.value : Infinity);
  }
  const known = (value: number): Affine[] =>
    Number.isFinite(value) ? [{ constant: value, terms: [] }] : [];
  const extent = high - low + 1;
  return {
    lower: known(low),
    upper: known(high),
    extent: Number.isFinite(extent) ? extent : undefined,
  };
}

function unit(system: System, column: number): number[] {
  const row = new Array<number>(system.fixed + system.locals.length + 1).fill(0);
  row[column] = 1;
  return row;
}

/** Rows over [parameters | the dimension | constant] that the piece's points satisfy. */
function boundRows(
  params: readonly string[],
  piece: Piece,
  column: number,
  work: Work,
): number[][] {
  const keep = [...params.map((_, i) => i), column];
  const system = copySystem(projectOnto(toSystem(params, piece), keep));
  const rows = [...system.inequalities, ...divisionRows(system)];
  const free = eliminateEqualities(system.equalities, rows, system.fixed);
  const projected = eliminateRationally(free, system.fixed, work);
  const out = projected.map((r) => [...r.slice(0, system.fixed), r[r.length - 1]!]);
  return out.filter((r) => r[params.length] !== 0);
}

/** Uses equalities to remove locals with unit coefficients; states the others as two inequalities. */
function eliminateEqualities(
  equalities: readonly number[][],
  inequalities: readonly number[][],
  fixed: number,
): number[][] {
  let pending = equalities.map((r) => r.slice());
  let rows = inequalities.map((r) => r.slice());
  const plain: number[][] = [];
  for (let row = pending.pop(); row; row = pending.pop()) {
    const last = row.length - 1;
    const column = row.findIndex((v, c) => c >= fixed && c < last && Math.abs(v) === 1);
    if (column < 0) {
      plain.push(row.slice(), negateRow(row));
      continue;
    }
    const value = eliminationRow(row, column);
    const replace = (r: number[]): number[] => substitute(r, column, value, "inequality");
    pending = pending.map((r) => substitute(r, column, value, "equality"));
    rows = rows.map(replace);
    for (let i = 0; i < plain.length; i++) plain[i] = replace(plain[i]!);
  }
  return [...rows, ...plain];
}

function eliminateRationally(rows: number[][], fixed: number, work: Work): number[][] {
  let current = rows;
  const width = rows[0]?.length ?? 0;
  for (let column = fixed; column < width - 1; column++) {
    const tight = tighten(shadow(splitBounds(current, column), column, "real", work));
    if (!tight) return [];
    current = [...tight.inequalities, ...tight.equalities, ...tight.equalities.map(negateRow)];
  }
  return current;
}

/** The bounds of piece `i` that hold on all the other pieces too. */
function keepCommon(
  rows: readonly number[][],
  params: readonly string[],
  pieces: readonly Piece[],
  at: { readonly i: number; readonly column: number; readonly work: Work },
): number[][] {
  return rows.filter((row) =>
    pieces.every((piece, k) => {
      if (k === at.i) return true;
      const system = toSystem(params, piece);
      const full = unit(system, at.column).map((v, c) => {
        if (v === 1) return row[params.length]!;
        return c < params.length ? row[c]! : 0;
      });
      full[full.length - 1] = row[row.length - 1]!;
      system.inequalities.push(negateInequality(full));
      const outside = toPiece(piece, system);
      return !outside || isEmptyPiece(params, outside, at.work);
    }),
  );
}

function distinctRows(rows: readonly number[][]): number[][] {
  const seen = new Map<string, number[]>();
  for (const row of rows) seen.set(row.join(), row);
  return [...seen.values()];
}

/** a*x + f >= 0 as the bound ceil(-f / a), or floor(f / -a) for negative a. */
function boundExpression(row: Row, params: readonly string[]): Affine {
  const a = row[params.length]!;
  const f = add(row[row.length - 1]!, ...params.map((p, i) => scale(row[i]!, p)));
  return a > 0 ? ceilDivide(scale(-1, f), a) : floorDivide(f, -a);
}

interface ExtentParts {
  readonly lower: readonly Row[];
  readonly upper: readonly Row[];
  readonly work: Work;
}

/** Constant when one lower and one upper bound differ by a constant; else the largest difference. */
function extentOf(
  params: readonly string[],
  pieces: readonly Piece[],
  column: number,
  parts: ExtentParts,
): number | undefined {
  const [low, high] = [parts.lower[0], parts.upper[0]];
  const n = params.length;
  const single = parts.lower.length === 1 && parts.upper.length === 1 && pieces.length === 1;
  if (single && low && high && low[n] === 1 && high[n] === -1) {
    const width = low.map((v, i) => v + high[i]!);
    if (width.slice(0, -1).every((v) => v === 0)) return width[width.length - 1]! + 1;
  }
  let widest = 0;
  for (const p of pieces) {
    for (const q of pieces) {
      const one = widestDifference(params, [p, q], column, parts.work);
      if (one === undefined) return undefined;
      widest = Math.max(widest, one + 1);
    }
  }
  return widest;
}

/** The greatest value of (column in q) - (column in p) for common parameters. */
function widestDifference(
  params: readonly string[],
  [p, q]: readonly [Piece, Piece],
  column: number,
  work: Work,
): number | undefined {
  const set = (piece: Piece, prefix: string): IntegerSet => {
    const names = piece.output.dims.map((_, i) => `${prefix}${i}`);
    return {
      kind: "set",
      params,
      pieces: [{ ...piece, output: { name: piece.output.name, dims: names } }],
    };
  };
  const index = column - params.length;
  const pairs = pairsOf(set(p, "p'"), set(q, "q'"));
  let most = -1;
  for (const pair of pairs.pieces) {
    const difference = add(`q'${index}`, scale(-1, `p'${index}`));
    const { system, row } = withExpression(pairs.params, pair, difference);
    const extreme = negated(minimumOfRow(system, negateRow(row), work));
    if (extreme.kind === "unbounded") return undefined;
    if (extreme.kind === "value") most = Math.max(most, extreme.value);
  }
  return most;
}

/** `max(a, b) <= x <= min(c, d)` for messages and reports. */
export function formatBounds(bounds: DimensionBounds, name: string): string {
  const side = (list: readonly Affine[], of: string): string =>
    list.length === 1 ? formatAffine(list[0]!) : `${of}(${list.map(formatAffine).join(", ")})`;
  const low = bounds.lower.length > 0 ? `${side(bounds.lower, "max")} <= ` : "";
  const high = bounds.upper.length > 0 ? ` <= ${side(bounds.upper, "min")}` : "";
  return `${low}${name}${high}`;
}
