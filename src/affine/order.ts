/**
 * Lexicographic order: comparing time vectors of statements under schedule maps, as relations
 * between their instances, and the plain order relation on one tuple.
 */

import { addFunction, type KnownFunction, readFunctions } from "./function-rows.ts";
import { alignBoth, intersect } from "./operations.ts";
import { addPlaced, blankSystem, projectOnto, toPiece } from "./piece.ts";
import { copySystem } from "./quantifier.ts";
import { isZeroRow, type Row, unitRow } from "./row.ts";
import { type IntegerMap, type IntegerSet, type Piece, sameTuple, type Tuple } from "./types.ts";

/** { x -> y : first(x) lexicographically before second(y) }; shorter vectors are padded with 0. */
export function orderedBefore(first: IntegerMap, second: IntegerMap): IntegerMap {
  const [f, s] = alignBoth(first, second);
  const [known, others] = [readFunctions(f), readFunctions(s)];
  if (!known || !others) {
    const pieces = f.pieces.flatMap((p) => s.pieces.flatMap((q) => piecesBefore(f.params, p, q)));
    return { kind: "map", params: f.params, pieces };
  }
  const columns = f.params.map((_, i) => i);
  const pieces = known.flatMap((p) =>
    others.flatMap((q) =>
      functionsBefore(f.params, { ...p, columns }, { ...q, columns }, undefined),
    ),
  );
  return { kind: "map", params: f.params, pieces };
}

/** Whether the first time dimension alone puts every instance of the first behind all of the second. */
export function neverBefore(first: IntegerMap, second: IntegerMap): boolean {
  const [a, b] = [first, second].map(constantStart);
  return a !== undefined && b !== undefined && a > b;
}

function constantStart(map: IntegerMap): number | undefined {
  const known = readFunctions(map);
  const start = known?.length === 1 ? known[0]!.rows.outputs[0] : undefined;
  return start && isZeroRow(start, start.length - 1) ? start.at(-1) : undefined;
}

/** The pairs that `orderedBefore` holds as well. */
export function inOrder(pairs: IntegerMap, first: IntegerMap, second: IntegerMap): IntegerMap {
  const [known, others] = [readFunctions(first), readFunctions(second)];
  const { params } = pairs;
  const isOwn = (name: string): boolean => params.includes(name);
  const own = first.params.every(isOwn) && second.params.every(isOwn);
  if (!own || known?.length !== 1 || others?.length !== 1) {
    return intersect(pairs, orderedBefore(first, second));
  }
  const p = { ...known[0]!, columns: first.params.map((name) => params.indexOf(name)) };
  const q = { ...others[0]!, columns: second.params.map((name) => params.indexOf(name)) };
  const pieces = pairs.pieces.flatMap((piece) => functionsBefore(params, p, q, piece));
  return { ...pairs, pieces };
}

/** A function, and where its parameters stand among all. */
interface PlacedFunction extends KnownFunction {
  readonly columns: readonly number[];
}

/** The relation of two functions (function-rows.ts) within a piece, stated directly on their rows. */
function functionsBefore(
  params: readonly string[],
  { input, rows: first, columns: firstParams }: PlacedFunction,
  { input: output, rows: second, columns: secondParams }: PlacedFunction,
  within: Piece | undefined,
): Piece[] {
  const n = params.length;
  const [x, y] = [input.dims.length, output.dims.length];
  const fixed = n + x + y;
  const inside = within?.locals.length ?? 0;
  const locals = inside + first.locals.length + second.locals.length;
  const columns = Array.from({ length: fixed }, (_, i) => i);
  const toFirst = {
    target: [...firstParams, ...columns.slice(n, n + x)],
    fixed,
    before: inside,
    locals,
  };
  const toSecond = {
    target: [...secondParams, ...columns.slice(n + x)],
    fixed,
    before: inside + first.locals.length,
    locals,
  };
  const base = blankSystem(fixed, locals);
  if (within) addPlaced(base, params, within, { target: columns, fixed, before: 0, locals });
  const given = base.equalities.slice();
  const early = addFunction(base, first, toFirst);
  const late = addFunction(base, second, toSecond);
  const out: Piece[] = [];
  const tied: number[][] = [];
  for (let level = 0; level < Math.max(early.length, late.length); level++) {
    const step = stepOf(early[level], late[level]);
    const always = constantStep(step, given);
    if (always === 0) continue;
    const system = copySystem(base);
    system.equalities.push(...tied);
    const ahead = step.slice();
    ahead[ahead.length - 1]! -= 1;
    if (always === undefined) system.inequalities.push(ahead);
    // A constant step other than zero decides every pair.
    const piece =
      always === undefined || always > 0 ? toPiece({ input, output }, system) : undefined;
    if (piece) out.push(piece);
    tied.push(step);
    if (always !== undefined) break;
  }
  return out;
}

/** The value of a step wherever it is one: by itself, or since an equality is parallel to it. */
function constantStep(step: Row, equalities: readonly Row[]): number | undefined {
  const last = step.length - 1;
  if (isZeroRow(step, last)) return step[last];
  for (const row of equalities) {
    const sign = parallelSign(step, row);
    if (sign !== 0) return step[last]! - sign * row[last]!;
  }
  return undefined;
}

/** 1 or -1 where the coefficients of a are b's or their opposites, else 0. */
function parallelSign(a: Row, b: Row): -1 | 0 | 1 {
  let sign: -1 | 0 | 1 = 0;
  for (let c = 0; c < a.length - 1; c++) {
    const [v, w] = [a[c]!, b[c]!];
    if (v === 0 && w === 0) continue;
    if (sign === 0) sign = v === w ? 1 : v === -w ? -1 : 0;
    if (sign === 0 || v !== sign * w) return 0;
  }
  return sign;
}

function stepOf(early: Row | undefined, late: Row | undefined): number[] {
  const width = (early ?? late)!.length;
  return Array.from({ length: width }, (_, i) => (late?.[i] ?? 0) - (early?.[i] ?? 0));
}

/** A function of the points of a domain; the parameters are the function's. */
export interface FunctionOn {
  readonly domain: IntegerSet;
  readonly params: readonly string[];
  readonly known: KnownFunction;
}

/** { x -> y : first(x) = second(y) }. */
export function equalValues(first: FunctionOn, second: FunctionOn): IntegerMap {
  const sides = [first, second] as const;
  const params = [...new Set(sides.flatMap((f) => [...f.params, ...f.domain.params]))];
  const [length, other] = sides.map((f) => f.known.rows.outputs.length);
  if (length !== other) return { kind: "map", params, pieces: [] };
  const width = sides.map((f) => f.known.input.dims.length);
  const fixed = params.length + width[0]! + width[1]!;
  const frame = { input: first.known.input, output: second.known.input };
  const columnsAt = (names: readonly string[], side: number): number[] => {
    const start = params.length + (side === 0 ? 0 : width[0]!);
    const own = Array.from({ length: width[side]! }, (_, i) => start + i);
    return [...names.map((name) => params.indexOf(name)), ...own];
  };
  const pieces: Piece[] = [];
  const own = ({ domain, known }: FunctionOn): readonly Piece[] =>
    domain.pieces.filter((p) => sameTuple(p.output, known.input));
  for (const p of own(first)) {
    for (const q of own(second)) {
      const parts = [p, first.known.rows, q, second.known.rows];
      const locals = parts.reduce((sum, part) => sum + part.locals.length, 0);
      const system = blankSystem(fixed, locals);
      let before = 0;
      const values = sides.map(({ domain, known, params: names }, side) => {
        const piece = side === 0 ? p : q;
        const target = columnsAt(domain.params, side);
        addPlaced(system, domain.params, piece, { target, fixed, before, locals });
        before += piece.locals.length;
        const to = { target: columnsAt(names, side), fixed, before, locals };
        before += known.rows.locals.length;
        return addFunction(system, known.rows, to);
      });
      values[0]!.forEach((row, i) => {
        system.equalities.push(stepOf(row, values[1]![i]!));
      });
      const piece = toPiece(frame, system);
      if (piece) pieces.push(piece);
    }
  }
  return { kind: "map", params, pieces };
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
