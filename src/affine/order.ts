/**
 * Lexicographic order: comparing time vectors of statements under schedule maps, as relations
 * between their instances, and the plain order relation on one tuple.
 */

import { addFunction, readFunction } from "./function-rows.ts";
import { alignBoth } from "./operations.ts";
import { addPlaced, blankSystem, projectOnto, toPiece } from "./piece.ts";
import { copySystem } from "./quantifier.ts";
import { type Row, unitRow } from "./row.ts";
import type { IntegerMap, Piece, Tuple } from "./types.ts";

/** { x -> y : first(x) lexicographically before second(y) }; shorter vectors are padded with 0. */
export function orderedBefore(first: IntegerMap, second: IntegerMap): IntegerMap {
  const [f, s] = alignBoth(first, second);
  const pieces: Piece[] = [];
  for (const p of f.pieces) {
    for (const q of s.pieces) {
      pieces.push(...(functionsBefore(f.params, p, q) ?? piecesBefore(f.params, p, q)));
    }
  }
  return { ...f, pieces };
}

/** The relation of two functions (function-rows.ts), stated directly on their rows. */
function functionsBefore(params: readonly string[], p: Piece, q: Piece): Piece[] | undefined {
  const [first, second] = [readFunction(params, p), readFunction(params, q)];
  if (!first || !second) return undefined;
  const n = params.length;
  const [x, y] = [p.input!.dims.length, q.input!.dims.length];
  const fixed = n + x + y;
  const locals = first.locals.length + second.locals.length;
  const columns = Array.from({ length: fixed }, (_, i) => i);
  const toFirst = { target: columns.slice(0, n + x), fixed, before: 0, locals };
  const toSecond = {
    target: [...columns.slice(0, n), ...columns.slice(n + x)],
    fixed,
    before: first.locals.length,
    locals,
  };
  const base = blankSystem(fixed, locals);
  const early = addFunction(base, first, toFirst);
  const late = addFunction(base, second, toSecond);
  const out: Piece[] = [];
  const tied: number[][] = [];
  for (let level = 0; level < Math.max(early.length, late.length); level++) {
    const step = stepOf(early[level], late[level]);
    const system = copySystem(base);
    system.equalities.push(...tied);
    const ahead = step.slice();
    ahead[ahead.length - 1]! -= 1;
    system.inequalities.push(ahead);
    const piece = toPiece({ input: p.input, output: q.input! }, system);
    if (piece) out.push(piece);
    tied.push(step);
    // A constant step other than zero decides every pair.
    if (step.slice(0, -1).every((v) => v === 0) && step[step.length - 1] !== 0) break;
  }
  return out;
}

function stepOf(early: Row | undefined, late: Row | undefined): number[] {
  const width = (early ?? late)!.length;
  return Array.from({ length: width }, (_, i) => (late?.[i] ?? 0) - (early?.[i] ?? 0));
}

/** The relation of any two maps, one piece a level. */
function piecesBefore(params: readonly string[], p: Piece, q: Piece): Piece[] {
  const depth = Math.max(p.output.dims.length, q.output.dims.length);
  return Array.from({ length: depth }, (_, level) => beforeAtLevel(params, p, q, level)).filter(
    (piece) => piece !== undefined,
  );
}

/** Pairs with equal time before `level` and a smaller source time there. */
function beforeAtLevel(
  params: readonly string[],
  p: Piece,
  q: Piece,
  level: number,
): Piece | undefined {
  const n = params.length;
  const [x, y] = [p.input!.dims.length, q.input!.dims.length];
  const [u, v] = [p.output.dims.length, q.output.dims.length];
  const fixed = n + x + y + u + v;
  const locals = p.locals.length + q.locals.length;
  const columns = (start: number, count: number): number[] =>
    Array.from({ length: count }, (_, i) => start + i);
  const system = blankSystem(fixed, locals);
  const targetP = [...columns(0, n), ...columns(n, x), ...columns(n + x + y, u)];
  const targetQ = [...columns(0, n), ...columns(n + x, y), ...columns(n + x + y + u, v)];
  addPlaced(system, params, p, { target: targetP, fixed, before: 0, locals });
  addPlaced(system, params, q, { target: targetQ, fixed, before: p.locals.length, locals });
  for (let k = 0; k <= level; k++) {
    const row = new Array<number>(fixed + locals + 1).fill(0);
    if (k < u) row[n + x + y + k] = -1;
    if (k < v) row[n + x + y + u + k] = 1;
    if (k < level) system.equalities.push(row);
    else {
      row[row.length - 1] = -1;
      system.inequalities.push(row);
    }
  }
  const frame = { input: p.input, output: q.input! };
  return toPiece(frame, projectOnto(system, columns(0, n + x + y)));
}

/** { x -> y : x lexicographically before y } on a tuple. */
export function lexLess(tuple: Tuple, params: readonly string[] = []): IntegerMap {
  const d = tuple.dims.length;
  const n = params.length;
  const pieces: Piece[] = [];
  for (let level = 0; level < d; level++) {
    const equalities: number[][] = [];
    const inequalities: number[][] = [];
    for (let k = 0; k <= level; k++) {
      const row = unitRow(n + 2 * d + 1, n + k, -1);
      row[n + d + k] = 1;
      if (k === level) row[row.length - 1] = -1;
      (k < level ? equalities : inequalities).push(row);
    }
    pieces.push({ input: tuple, output: tuple, locals: [], equalities, inequalities });
  }
  return { kind: "map", params, pieces };
}
