/**
 * Fewer pieces for the same points: empty pieces go, pieces inside another go, and two pieces become
 * one when the rows of each that hold on both describe exactly their union (the idea of S. Verdoolaege,
 * "Integer set coalescing", 2015). The rows of P that do not hold on Q are the ones that Q crosses;
 * the rows that hold on both describe the union exactly when no point of theirs lies beyond a crossed
 * row of P and beyond one of Q. Joining has a budget of its own: when it is used up the pieces left
 * are right, only more than need be. A piece alone in its tuple stays as it is.
 */
import { isEmptyPiece, pointSeen } from "./compare.ts";
import { findPoint } from "./omega.ts";
import { addPlaced, blankSystem, toPiece, toSystem } from "./piece.ts";
import { removeRedundant } from "./redundancy.ts";
import { negateInequality, negateRow, type Row } from "./row.ts";
import { divisionRows, type System } from "./system.ts";
import { fixedColumns, type Piece, type SetOrMap, sameTuple } from "./types.ts";
import { type Answer, answer, GiveUp, Work } from "./work.ts";

/** Work units for joining pieces. */
const joiningWork = 50_000;

/** The same points in fewer pieces. */
export function coalesce<T extends SetOrMap>(value: T, limit?: number): Answer<T> {
  if (!hasPair(value.pieces)) return { kind: "known", value };
  return answer((work) => {
    const { params } = value;
    const inhabited = value.pieces.filter((p) => !isEmptyPiece(params, p, work));
    const joined = joinAll(params, inhabited, new Work(joiningWork));
    const slim = joined.map((p) => (inhabited.includes(p) ? p : removeRedundant(params, p, work)));
    return { ...value, pieces: slim };
  }, limit);
}

/** Whether two pieces are of the same tuples. */
function hasPair(pieces: readonly Piece[]): boolean {
  for (let i = 1; i < pieces.length; i++) {
    for (let k = 0; k < i; k++) if (areOfOneFrame(pieces[i]!, pieces[k]!)) return true;
  }
  return false;
}

function areOfOneFrame(p: Piece, q: Piece): boolean {
  return sameTuple(p.input, q.input) && sameTuple(p.output, q.output);
}

/** Every pair is tried once; a piece that results is tried against all again. */
function joinAll(params: readonly string[], pieces: readonly Piece[], work: Work): Piece[] {
  const done: Piece[] = [];
  for (const piece of pieces) {
    let own = piece;
    for (let k = 0; k < done.length; k++) {
      const joined = joinWithin(params, done[k]!, own, work);
      if (!joined) continue;
      own = joined;
      done.splice(k, 1);
      k = -1;
    }
    done.push(own);
  }
  return done;
}

/** undefined also when the budget is used up or a number grows too large. */
function joinWithin(params: readonly string[], p: Piece, q: Piece, work: Work): Piece | undefined {
  if (!areOfOneFrame(p, q)) return undefined;
  try {
    return joinTwo(params, p, q, work);
  } catch (error) {
    if (!(error instanceof GiveUp)) throw error;
    return undefined;
  }
}

/** Two pieces over the same columns. */
interface Pair {
  readonly fixed: number;
  readonly columns: number;
  /** Bounds of both pieces' divisions, which hold everywhere for some values of them. */
  readonly floors: number[][];
}

/** One piece for the union of two, if their common rows describe it. */
function joinTwo(params: readonly string[], p: Piece, q: Piece, work: Work): Piece | undefined {
  const fixed = fixedColumns(params, p);
  const locals = p.locals.length + q.locals.length;
  const first = placed(params, p, { fixed, before: 0, locals });
  const second = placed(params, q, { fixed, before: p.locals.length, locals });
  const pair = {
    fixed,
    columns: fixed + locals,
    floors: locals === 0 ? [] : divisionRows(first).concat(divisionRows(second)),
  };
  const [ofFirst, ofSecond] = [rowsOf(first), rowsOf(second)];
  const onSecond = divideRows(p, ofFirst, { piece: q, rows: ofSecond, pair, work });
  if (onSecond?.crossed.length === 0) return p;
  const onFirst = divideRows(q, ofSecond, { piece: p, rows: ofFirst, pair, work });
  if (onFirst?.crossed.length === 0) return q;
  if (!onFirst || !onSecond) return undefined;
  const common = onSecond.valid.concat(onFirst.valid);
  const context = pair.floors.concat(common);
  for (const r of onSecond.crossed) {
    const beyondFirst = context.concat([negateInequality(r)]);
    for (const s of onFirst.crossed) {
      const beyond = beyondFirst.concat([negateInequality(s)]);
      if (findPoint([], beyond, pair.columns, work)) return undefined;
    }
  }
  const whole = blankSystem(fixed, locals);
  whole.inequalities.push(...common);
  whole.locals = first.locals.map((d, k) => d ?? second.locals[k]!);
  return toPiece(p, whole);
}

function placed(
  params: readonly string[],
  piece: Piece,
  to: { readonly fixed: number; readonly before: number; readonly locals: number },
): System {
  if (to.locals === 0) return toSystem(params, piece);
  const system = blankSystem(to.fixed, to.locals);
  const target = Array.from({ length: to.fixed }, (_, c) => c);
  addPlaced(system, params, piece, { ...to, target });
  return system;
}

/** All rows as inequalities. */
function rowsOf({ equalities, inequalities }: System): readonly number[][] {
  if (equalities.length === 0) return inequalities;
  return [...inequalities, ...equalities, ...equalities.map(negateRow)];
}

interface Other {
  readonly piece: Piece;
  readonly rows: readonly number[][];
  readonly pair: Pair;
  readonly work: Work;
}

/**
 * A piece's rows that hold on all of the other piece, and those that do not. undefined when the piece
 * has free locals, whose rows cannot be negated one by one.
 */
function divideRows(
  piece: Piece,
  rows: readonly number[][],
  other: Other,
): { valid: number[][]; crossed: number[][] } | undefined {
  if (piece.locals.includes(null)) return undefined;
  const valid: number[][] = [];
  const crossed: number[][] = [];
  for (const row of rows) (holdsOn(row, other) ? valid : crossed).push(row);
  return { valid, crossed };
}

function holdsOn(row: Row, { piece, rows, pair, work }: Other): boolean {
  for (let r = 0; r < rows.length; r++) if (isAtLeastAsStrong(rows[r]!, row)) return true;
  const point = pointSeen(piece);
  if (point && isBeyond(row, point, pair)) return false;
  const outside = pair.floors.concat(rows);
  outside.push(negateInequality(row));
  return findPoint([], outside, pair.columns, work) === null;
}

/** Whether a point of the other piece, whose locals are not those of the row, violates the row. */
function isBeyond(row: Row, point: readonly number[], { fixed, columns }: Pair): boolean {
  for (let c = fixed; c < columns; c++) if (row[c] !== 0) return false;
  let sum = row[columns]!;
  for (let c = 0; c < fixed; c++) sum += row[c]! * point[c]!;
  return sum < 0 && sum >= -Number.MAX_SAFE_INTEGER;
}

/** Whether `r` is parallel to `row` and implies it. */
function isAtLeastAsStrong(r: Row, row: Row): boolean {
  const last = row.length - 1;
  for (let c = 0; c < last; c++) if (r[c] !== row[c]) return false;
  return r[last]! <= row[last]!;
}
