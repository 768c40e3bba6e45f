/**
 * Exact counting of points. `countInParams` gives a quasi-polynomial in the parameters, in closed form
 * at every size (symbolic-count.ts); `countPoints` a number, by the same way first and, where that
 * splits too often, by listing the points, however far apart they lie (enumerate.ts), up to some
 * millions. Beyond that a count is "unknown".
 */
import { spannedPoints } from "./bounded-search.ts";
import { makeDisjointWithin } from "./compare.ts";
import { visitSet } from "./enumerate.ts";
import { planWalk } from "./lattice-plan.ts";
import { countLattice } from "./lattice-walk.ts";
import { allInequalities, definePiece, toSystem } from "./piece.ts";
import { type Count, countOfParts } from "./quasi-polynomial.ts";
import { constantCount, countSystem } from "./symbolic-count.ts";
import { type IntegerSet, type Piece, rowWidth } from "./types.ts";
import { type Answer, answer, GiveUp, type Work } from "./work.ts";

/** Work units of a count: enough to list some millions of points. */
const countingWork = 12_000_000;
/** Work units for the closed form before points are listed, and for the first, short try of either. */
const closedFormWork = 200_000;
const shortWork = 10_000;
/** Work units for a list of all points, before pieces are listed by themselves. */
const listingWork = 8_000_000;
/** More points than this are not remembered. */
const mostListed = 2_000_000;
/** Work units for counting the values of coordinates instead of listing points. */
const walkingWork = 1_000_000;

/** The number of points of a set without parameters (fixParams; with them, countInParams). */
export function countPoints(set: IntegerSet, limit = countingWork): Answer<number> {
  return answer((work) => {
    if (set.params.length > 0) throw new GiveUp("parametric");
    const count = Number(
      countDisjoint(set, work, closedWithin(shortWork)) ??
        countListed(set, shortWork, work) ??
        countDisjoint(set, work, closedWithin(closedFormWork)) ??
        countAnyhow(set, work),
    );
    if (!Number.isSafeInteger(count)) throw new GiveUp("overflow");
    return count;
  }, limit);
}

type PieceCounter = (piece: Piece, work: Work) => bigint | undefined;

/** The sum over pieces that do not overlap; undefined where one has no count, or there are no such pieces. */
function countDisjoint(set: IntegerSet, work: Work, countPiece: PieceCounter): bigint | undefined {
  let { pieces } = set;
  const separated = work.attempt(closedFormWork, (own) => {
    if (pieces.length > 1) pieces = makeDisjointWithin(set, own).pieces;
  });
  if (separated !== "done") return undefined;
  let total = 0n;
  for (const piece of pieces) {
    const count = countPiece(piece, work);
    if (count === undefined) return undefined;
    total += count;
  }
  return total;
}

/** The number of points in closed form; undefined where that splits too often. */
function closedWithin(limit: number): PieceCounter {
  return (piece, work) => {
    let count = 0n;
    const closed = work.attempt(Math.min(limit, closedWorkFor(piece)), (own) => {
      for (const p of disjointlyDefined({ kind: "set", params: [], pieces: [piece] }, own)) {
        for (const part of countSystem(toSystem([], p), 0, own)) count += constantCount(part);
      }
    });
    if (closed === "unbounded") throw new GiveUp("unbounded");
    return closed === "done" ? count : undefined;
  };
}

/** The number of points by listing them all; undefined where they are too many. */
function countListed(set: IntegerSet, limit: number, work: Work): bigint | undefined {
  let count = 0n;
  const listed = work.attempt(limit, (own) => {
    count = set.pieces.length === 1 ? countOne(set.pieces[0]!, own) : countEach(set, own);
  });
  if (listed === "unbounded") throw new GiveUp("unbounded");
  return listed === "done" ? count : undefined;
}

/** With all the work there is. */
function countAnyhow(set: IntegerSet, work: Work): bigint {
  const [only, ...others] = set.pieces;
  if (only && others.length === 0) return countOne(only, work);
  const listed = countListed(set, listingWork, work) ?? countDisjoint(set, work, countOne);
  if (listed === undefined) throw new GiveUp("budget");
  return listed;
}

/** The number of points: in closed form, by walking through them, where each is met once, or by listing them. */
function countOne(piece: Piece, work: Work): bigint {
  let count = closedWithin(shortWork)(piece, work);
  if (count !== undefined) return count;
  work.attempt(walkingWork, (own) => {
    const plan = planWalk(toSystem([], piece), false, own);
    if (!plan) count = 0n;
    else if (plan.distinct) count = countLattice(plan, own);
  });
  return count ?? countEach({ kind: "set", params: [], pieces: [piece] }, work);
}

function countEach(set: IntegerSet, work: Work): bigint {
  let count = 0;
  visitSet(set, work, () => {
    if (++count > mostListed) work.spend(Infinity);
  });
  return BigInt(count);
}

/** Few points are listed in less work than a closed form that splits often. */
function closedWorkFor(piece: Piece): number {
  if (piece.locals.length > 0) return closedFormWork;
  const rows = allInequalities([], piece);
  const [columns, fixed] = [rowWidth([], piece) - 1, piece.output.dims.length];
  const spanned = spannedPoints(piece.equalities, rows, columns, fixed);
  return Math.min(closedFormWork, 1000 + 4 * spanned);
}

/** The number of points for all parameter values. */
export function countInParams(set: IntegerSet, limit?: number): Answer<Count> {
  return answer((work) => {
    const { params } = set;
    const parts = disjointlyDefined(set, work).flatMap((piece) =>
      countSystem(toSystem(params, piece), params.length, work),
    );
    return countOfParts(params, parts);
  }, limit);
}

/** Pieces without free locals that do not overlap. */
function disjointlyDefined(set: IntegerSet, work: Work): readonly Piece[] {
  const defined = set.pieces.flatMap((p) => definePiece(set.params, p, work));
  if (defined.length <= 1) return defined;
  return makeDisjointWithin({ ...set, pieces: defined }, work).pieces;
}
