/**
 * Lexicographic minima and maxima, for every parameter value (and for a map every source point), as a
 * piecewise result. Where eliminating the dimensions from the last to the first is exact, each is the
 * largest of its lower bounds given those before it: one case a bound, the equality with that bound
 * added to the piece (the rows of the other bounds say when it is the largest). Otherwise the minimum
 * is the points minus those that another point beats, exact by subtraction. Of several pieces the
 * minima beat one another likewise. No least point where there are points: "unbounded".
 */

import { isEmptyPiece, isSubsetWithin, subtractWithin } from "./compare.ts";
import { countBounds, eliminationRow, shadow, splitBounds } from "./omega.ts";
import { applyMap, compose, domain, inverse, paramsOf } from "./operations.ts";
import { minimumOfRow } from "./optimum.ts";
import { lexLess } from "./order.ts";
import { toPiece, toSystem } from "./piece.ts";
import { copySystem } from "./quantifier.ts";
import { negateRow, type Row, unitRow } from "./row.ts";
import {
  appendLocal,
  dependsOnColumn,
  divisionRows,
  type System,
  substituteEverywhere,
} from "./system.ts";
import { tighten } from "./tighten.ts";
import {
  fixedColumns,
  type IntegerMap,
  type IntegerSet,
  type Piece,
  type SetOrMap,
  sameTuple,
  type Tuple,
} from "./types.ts";
import { type Answer, answer, GiveUp, type Work } from "./work.ts";

/** The lexicographically first point of each tuple of the set, as a set over the parameters. */
export function lexMin(set: IntegerSet, limit?: number): Answer<IntegerSet> {
  return answer((work) => bestOf(set, "first", work), limit);
}

/** The lexicographically last point of each tuple. */
export function lexMax(set: IntegerSet, limit?: number): Answer<IntegerSet> {
  return answer((work) => bestOf(set, "last", work), limit);
}

/** Each source point with the first of its images in each target tuple. */
export function lexMinMap(map: IntegerMap, limit?: number): Answer<IntegerMap> {
  return answer((work) => bestOf(map, "first", work), limit);
}

/** Each source point with the last of its images in each target tuple. */
export function lexMaxMap(map: IntegerMap, limit?: number): Answer<IntegerMap> {
  return answer((work) => bestOf(map, "last", work), limit);
}

type End = "first" | "last";

function bestOf<T extends SetOrMap>(value: T, end: End, work: Work): T {
  const pieces: Piece[] = [];
  for (const group of groupByFrame(value.pieces)) {
    const best = group
      .filter((p) => !isEmptyPiece(value.params, p, work))
      .map((p) => ({ ...value, pieces: bestOfPiece(value.params, p, end, work) }));
    best.forEach((own, i) => {
      let left: T = own;
      best.forEach((other, k) => {
        if (i !== k && left.pieces.length > 0) {
          left = subtractWithin(left, beatenBy(other, end, i < k), work);
        }
      });
      for (const piece of left.pieces) pieces.push(piece);
    });
  }
  return { ...value, pieces };
}

function groupByFrame(pieces: readonly Piece[]): Piece[][] {
  const groups: Piece[][] = [];
  for (const p of pieces) {
    const own = groups.find(
      ([q]) => sameTuple(p.input, q!.input) && sameTuple(p.output, q!.output),
    );
    if (own) own.push(p);
    else groups.push([p]);
  }
  return groups;
}

/** The points that some point of `value` beats; with `ties`, its own points too. */
function beatenBy<T extends SetOrMap>(value: T, end: End, strictly: boolean): T {
  const beats = beatsOf(value, end);
  const beaten =
    value.kind === "set" ? applyMap(beats, value) : (compose(value, beats) as SetOrMap);
  const ties = strictly ? [] : value.pieces;
  return { ...value, params: beaten.params, pieces: [...beaten.pieces, ...ties] };
}

/** Pairs (better, worse) on the output tuples. */
function beatsOf(value: SetOrMap, end: End): IntegerMap {
  const tuples: Tuple[] = [];
  for (const { output } of value.pieces) {
    if (!tuples.some((t) => sameTuple(t, output))) tuples.push(output);
  }
  const pieces = tuples.flatMap((t) => {
    const less = lexLess(t, value.params);
    return (end === "first" ? less : inverse(less)).pieces;
  });
  return { kind: "map", params: value.params, pieces };
}

/** The optimum of an inhabited piece. */
function bestOfPiece(params: readonly string[], piece: Piece, end: End, work: Work): Piece[] {
  const apart = separateOutputs(params, piece);
  if (apart) return [bestPoint(params, piece, { ...apart, end, work })];
  return bestByBounds(params, piece, end, work) ?? bestBySubtraction(params, piece, end, work);
}

interface Apart {
  /** The rows that say nothing of outputs. */
  readonly equalities: readonly Row[];
  readonly inequalities: readonly Row[];
}

/**
 * The rows about parameters and sources, when no row or definition ties those to outputs, directly or
 * through locals: the optimum is then one point.
 */
function separateOutputs(params: readonly string[], piece: Piece): Apart | undefined {
  const fixed = fixedColumns(params, piece);
  const first = fixed - piece.output.dims.length;
  const { equalities, inequalities, locals } = piece;
  const reached = new Set<number>();
  for (let c = first; c < fixed; c++) reached.add(c);
  const ties: Row[] = [...equalities, ...inequalities];
  locals.forEach((d, i) => {
    if (!d) return;
    const tie = d.numerator.slice();
    tie[fixed + i] = 1;
    ties.push(tie);
  });
  const touches = (row: Row): boolean => row.some((v, c) => v !== 0 && reached.has(c));
  for (let size = 0; size < reached.size; ) {
    size = reached.size;
    for (const row of ties.filter(touches)) {
      for (let c = 0; c < row.length - 1; c++) if (row[c] !== 0) reached.add(c);
    }
  }
  for (let c = 0; c < first; c++) if (reached.has(c)) return undefined;
  const others = (rows: readonly Row[]): Row[] => rows.filter((r) => !touches(r));
  return { equalities: others(equalities), inequalities: others(inequalities) };
}

/** The point of outputs that do not depend on anything: one dimension's extreme after the other. */
function bestPoint(
  params: readonly string[],
  piece: Piece,
  { end, work, ...apart }: Apart & { readonly end: End; readonly work: Work },
): Piece {
  const system = toSystem(params, piece);
  const first = system.fixed - piece.output.dims.length;
  const width = system.fixed + system.locals.length + 1;
  const sign = end === "first" ? 1 : -1;
  const pinned: number[][] = [];
  for (let c = first; c < system.fixed; c++) {
    const least = minimumOfRow(system, unitRow(width, c, sign), work);
    if (least.kind !== "value") throw new GiveUp("unbounded");
    const row = unitRow(width, c);
    row[width - 1] = 0 - sign * least.value;
    system.equalities.push(row);
    pinned.push(row);
  }
  const point = {
    ...system,
    equalities: [...(apart.equalities as number[][]), ...pinned],
    inequalities: apart.inequalities as number[][],
  };
  return toPiece(piece, point)!;
}

function bestBySubtraction(params: readonly string[], p: Piece, end: End, work: Work): Piece[] {
  const value: SetOrMap = p.input
    ? { kind: "map", params, pieces: [p] }
    : { kind: "set", params, pieces: [p] };
  const best = subtractWithin<SetOrMap>(value, beatenBy(value, end, true), work);
  const sources = (v: SetOrMap): IntegerSet => (v.kind === "map" ? domain(v) : paramsOf(v));
  if (!isPlainlyBounded(params, p, end) && !isSubsetWithin(sources(value), sources(best), work)) {
    throw new GiveUp("unbounded");
  }
  return [...best.pieces];
}

/** Whether a row bounds each output dimension on the searched side by parameters and inputs alone. */
function isPlainlyBounded(params: readonly string[], p: Piece, end: End): boolean {
  const last = fixedColumns(params, p);
  const first = last - p.output.dims.length;
  return p.output.dims.every((_, i) =>
    p.inequalities.some((row) => {
      const sign = end === "first" ? row[first + i]! : -row[first + i]!;
      return sign > 0 && row.slice(first, -1).every((v, c) => c === i || v === 0);
    }),
  );
}

/** undefined when an elimination is not exact, or a division depends on an output. */
function bestByBounds(
  params: readonly string[],
  piece: Piece,
  end: End,
  work: Work,
): Piece[] | undefined {
  const last = fixedColumns(params, piece);
  const first = last - piece.output.dims.length;
  const system = toSystem(params, piece);
  const levels = exactLevels(system, first, work);
  if (!levels) return undefined;
  let cases: System[] = [copySystem(system)];
  for (let column = first; column < last; column++) {
    const bounds = boundsAt(levels[column - first]!, column, end, last);
    if (bounds.length === 0) throw new GiveUp("unbounded");
    cases = cases.flatMap((c) => bounds.map((bound) => withBound(c, bound, column)));
    work.spend(cases.length);
    if (cases.length > mostCases) return undefined;
  }
  return cases.flatMap((c) => {
    useEqualities(c, first, last);
    const own = toPiece(piece, c);
    return own && !isEmptyPiece(params, own, work) ? [own] : [];
  });
}

/** Puts what equalities say of outputs into the other rows, for short results. */
function useEqualities(system: System, first: number, last: number): void {
  for (let column = last - 1; column >= first; column--) {
    const row = system.equalities.find((r) => Math.abs(r[column]!) === 1);
    if (!row || dependsOnColumn(system, row, column)) continue;
    const others = system.equalities.filter((r) => r !== row);
    system.equalities = others;
    substituteEverywhere(system, column, eliminationRow(row, column));
    system.equalities = [...system.equalities, row];
  }
}

/** More cases than this are left to subtraction. */
const mostCases = 24;

/**
 * levels[i]: rows over the columns up to output i, an exact projection of the system. Equalities are
 * pairs of rows here.
 */
function exactLevels(system: System, first: number, work: Work): Row[][] | undefined {
  const { fixed, locals } = system;
  const usesOutput = (row: Row): boolean => row.slice(first, fixed).some((v) => v !== 0);
  if (locals.some((d) => d === null || usesOutput(d.numerator))) return undefined;
  const all = [
    ...system.inequalities,
    ...system.equalities,
    ...system.equalities.map(negateRow),
    ...divisionRows(system),
  ];
  let rows = all.map((r) => r.slice());
  const levels: Row[][] = [];
  for (let column = fixed - 1; column >= first; column--) {
    const tight = tighten(rows);
    if (!tight) return undefined;
    rows = [...tight.inequalities, ...tight.equalities, ...tight.equalities.map(negateRow)];
    levels[column - first] = rows;
    if (!countBounds(rows, column).exact) return undefined;
    rows = shadow(splitBounds(rows, column), column, "real", work);
  }
  return levels;
}

/** The rows that bound the column on the searched side. */
function boundsAt(rows: readonly Row[], column: number, end: End, last: number): Row[] {
  return rows.filter((row) => {
    const sign = end === "first" ? row[column]! : -row[column]!;
    for (let c = column + 1; c < last; c++) if (row[c] !== 0) return false;
    return sign > 0;
  });
}

/** The system where the column equals the bound, rounded inwards. */
function withBound(system: System, bound: Row, column: number): System {
  const copy = copySystem(system);
  const a = bound[column]!;
  // Locals appended to the system stand behind those that the bound knows.
  const extra = system.locals.length - (bound.length - 1 - system.fixed);
  const row = [...bound.slice(0, -1), ...new Array<number>(extra).fill(0), bound.at(-1)!];
  if (Math.abs(a) === 1) {
    copy.equalities.push(row);
    return copy;
  }
  const numerator = a > 0 ? negateRow(row) : row.slice();
  numerator[column] = 0;
  if (a > 0) numerator[numerator.length - 1]! += a - 1;
  const index = appendLocal(copy, { numerator, divisor: Math.abs(a) });
  const equality = new Array<number>(row.length + 1).fill(0);
  equality[column] = 1;
  equality[system.fixed + index] = -1;
  copy.equalities.push(equality);
  return copy;
}
