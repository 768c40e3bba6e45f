/**
 * Exact counting of points. `countInParams` gives a quasi-polynomial in the parameters, in closed form
 * at every size (symbolic-count.ts); `countPoints` a number, by the same way first and, where that
 * splits too often, by enumeration within the budget. Beyond it a count is "unknown".
 */
import { spannedPoints } from "./bounded-search.ts";
import { makeDisjointWithin } from "./compare.ts";
import { visitPoints } from "./enumerate.ts";
import { allInequalities, definePiece, toSystem } from "./piece.ts";
import { type Count, countOfParts } from "./quasi-polynomial.ts";
import { constantCount, countSystem } from "./symbolic-count.ts";
import { type IntegerSet, type Piece, rowWidth } from "./types.ts";
import { type Answer, answer, GiveUp, type Work } from "./work.ts";

/** Work units of a count: enough to enumerate a million points. */
const countingWork = 10_000_000;
/** Work units for the closed form before points are enumerated. */
const closedFormWork = 200_000;

/** The number of points of a set without parameters (fixParams; with them, countInParams). */
export function countPoints(set: IntegerSet, limit = countingWork): Answer<number> {
  return answer((work) => {
    if (set.params.length > 0) throw new GiveUp("parametric");
    const disjoint = set.pieces.length > 1 ? makeDisjointWithin(set, work) : set;
    let total = 0n;
    for (const piece of disjoint.pieces)
      total += countPiece(piece, Math.min(limit, closedWorkFor(piece)), work);
    const count = Number(total);
    if (!Number.isSafeInteger(count)) throw new GiveUp("overflow");
    return count;
  }, limit);
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

function countPiece(piece: Piece, closedWork: number, work: Work): bigint {
  const closed = answer((own) => {
    let count = 0n;
    for (const p of disjointlyDefined({ kind: "set", params: [], pieces: [piece] }, own)) {
      for (const part of countSystem(toSystem([], p), 0, own)) {
        count += constantCount(part);
      }
    }
    return count;
  }, closedWork);
  if (closed.kind === "known") return closed.value;
  if (closed.reason === "unbounded") throw new GiveUp("unbounded");
  let count = 0n;
  visitPoints(piece, work, () => {
    count++;
  });
  return count;
}
