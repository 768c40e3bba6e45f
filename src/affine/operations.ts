/**
 * The operations on sets and maps that always succeed: building blocks, intersection, union,
 * projection, domain, range, inverse, composition and image. They introduce existential locals where
 * needed and never decide anything; what needs a decision (emptiness, subtraction, comparison) is in
 * compare.ts, optimisation in lexicographic.ts and bounds.ts.
 */
import { reject } from "../support/diagnostic.ts";
import {
  addPlaced,
  alignPiece,
  blankSystem,
  type Frame,
  projectOnto,
  systemParts,
  toPiece,
  toSystem,
  universePiece,
} from "./piece.ts";
import { requireInteger, unitRow } from "./row.ts";
import type { System } from "./system.ts";
import {
  fixedColumns,
  type IntegerMap,
  type IntegerSet,
  type Piece,
  rowWidth,
  type SetOrMap,
  sameTuple,
  type Tuple,
} from "./types.ts";

export function emptySet(params: readonly string[] = []): IntegerSet {
  return { kind: "set", params, pieces: [] };
}

export function emptyMap(params: readonly string[] = []): IntegerMap {
  return { kind: "map", params, pieces: [] };
}

/** All integer points of one tuple. */
export function universeSet(tuple: Tuple, params: readonly string[] = []): IntegerSet {
  return { kind: "set", params, pieces: [universePiece({ input: undefined, output: tuple })] };
}

/** All pairs of points of two tuples. */
export function universeMap(
  input: Tuple,
  output: Tuple,
  params: readonly string[] = [],
): IntegerMap {
  return { kind: "map", params, pieces: [universePiece({ input, output })] };
}

/** The same value over a list of parameters that begins with `params`. */
export function alignParams<T extends SetOrMap>(value: T, params: readonly string[]): T {
  if (sameParams(value.params, params)) return { ...value, params };
  const known = new Set(params);
  const missing = value.params.filter((p) => !known.has(p));
  const all = missing.length === 0 ? params : [...params, ...missing];
  return {
    ...value,
    params: all,
    pieces: value.pieces.map((p) => alignPiece(value.params, all, p)),
  };
}

function sameParams(a: readonly string[], b: readonly string[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Both values over the same parameters: the first's, then those only the second has. */
export function alignBoth<A extends SetOrMap, B extends SetOrMap>(a: A, b: B): [A, B] {
  if (sameParams(a.params, b.params)) return [a, b];
  const params = alignParams(b, a.params).params;
  return [alignParams(a, params), alignParams(b, params)];
}

export function union<T extends SetOrMap>(a: T, b: T): T {
  const [x, y] = alignBoth(a, b);
  return { ...x, pieces: x.pieces.concat(y.pieces) };
}

export function intersect<T extends SetOrMap>(a: T, b: T): T {
  const [x, y] = alignBoth(a, b);
  const pieces: Piece[] = [];
  for (const p of x.pieces) {
    for (const q of y.pieces) {
      if (!sameTuple(p.input, q.input) || !sameTuple(p.output, q.output)) continue;
      const both = intersectPieces(x.params, p, q);
      if (both) pieces.push(both);
    }
  }
  return { ...x, pieces };
}

/** The common points of two pieces of the same tuples, in the frame of the first. */
export function intersectPieces(params: readonly string[], p: Piece, q: Piece): Piece | undefined {
  const fixed = fixedColumns(params, p);
  const columns = identityColumns(fixed);
  return toPiece(p, joined(fixed, params, [p, columns], [q, columns]));
}

function identityColumns(n: number): number[] {
  const out = new Array<number>(n);
  for (let i = 0; i < n; i++) out[i] = i;
  return out;
}

type Placed = readonly [piece: Piece, columns: readonly number[]];

/** Both pieces' constraints in one system; each comes with the new place of its fixed columns. */
function joined(fixed: number, params: readonly string[], first: Placed, second: Placed): System {
  const before = first[0].locals.length;
  const locals = before + second[0].locals.length;
  const system = blankSystem(fixed, locals);
  addPlaced(system, params, first[0], { target: first[1], fixed, before: 0, locals });
  addPlaced(system, params, second[0], { target: second[1], fixed, before, locals });
  return system;
}

/** Pairs whose source lies in `set`. */
export function intersectDomain(map: IntegerMap, set: IntegerSet): IntegerMap {
  return restrict(map, set, "input");
}

/** Pairs whose target lies in `set`. */
export function intersectRange(map: IntegerMap, set: IntegerSet): IntegerMap {
  return restrict(map, set, "output");
}

function restrict(map: IntegerMap, set: IntegerSet, side: "input" | "output"): IntegerMap {
  const [m, s] = alignBoth(map, set);
  const pieces: Piece[] = [];
  for (const p of m.pieces) {
    const fixed = fixedColumns(m.params, p);
    const start = m.params.length + (side === "input" ? 0 : p.input!.dims.length);
    for (const q of s.pieces) {
      if (!sameTuple(p[side], q.output)) continue;
      const target = columnsOf(m.params.length, start, q.output.dims.length);
      const both = toPiece(p, joined(fixed, m.params, [p, identityColumns(fixed)], [q, target]));
      if (both) pieces.push(both);
    }
  }
  return { ...m, pieces };
}

/** Parameter columns followed by `count` columns from `start`. */
function columnsOf(params: number, start: number, count: number): number[] {
  const out = identityColumns(params);
  for (let i = 0; i < count; i++) out.push(start + i);
  return out;
}

/**
 * Keeps the points whose parameters satisfy `context`, a set over the anonymous tuple without
 * dimensions (`[N] -> { : N >= 1 }`).
 */
export function intersectParams<T extends SetOrMap>(value: T, context: IntegerSet): T {
  const [v, c] = alignBoth(value, context);
  const pieces: Piece[] = [];
  for (const p of v.pieces) {
    const fixed = fixedColumns(v.params, p);
    for (const q of c.pieces) {
      const target = identityColumns(v.params.length);
      const both = toPiece(p, joined(fixed, v.params, [p, identityColumns(fixed)], [q, target]));
      if (both) pieces.push(both);
    }
  }
  return { ...v, pieces };
}

/** The parameter values for which the set or map has a point. */
export function paramsOf(value: SetOrMap): IntegerSet {
  const output: Tuple = { name: "", dims: [] };
  return projected(value, { input: undefined, output }, () => []);
}

/** A set whose pieces keep, beside the parameters, the columns that `dims` lists. */
function projected(
  value: SetOrMap,
  frame: Frame | ((p: Piece) => Frame),
  dims: (p: Piece) => readonly number[],
): IntegerSet {
  const pieces: Piece[] = [];
  for (const p of value.pieces) {
    const keep = identityColumns(value.params.length).concat(dims(p));
    const target = typeof frame === "function" ? frame(p) : frame;
    const piece = toPiece(target, projectOnto(toSystem(value.params, p), keep));
    if (piece) pieces.push(piece);
  }
  return { kind: "set", params: value.params, pieces };
}

export function domain(map: IntegerMap): IntegerSet {
  const n = map.params.length;
  return projected(
    map,
    (p) => ({ input: undefined, output: p.input! }),
    (p) => p.input!.dims.map((_, i) => n + i),
  );
}

export function range(map: IntegerMap): IntegerSet {
  const n = map.params.length;
  return projected(
    map,
    (p) => ({ input: undefined, output: p.output }),
    (p) => p.output.dims.map((_, i) => n + p.input!.dims.length + i),
  );
}

/** Projects the dimensions at these positions away: the points that some value of them completes. */
export function projectOut(set: IntegerSet, positions: readonly number[]): IntegerSet {
  if (positions.length === 0) return set;
  const most = Math.max(...set.pieces.map((p) => p.output.dims.length));
  const stray = positions.find((i) => !Number.isInteger(i) || i < 0 || i >= most);
  if (set.pieces.length > 0 && stray !== undefined) {
    reject("AFF004", `no dimension ${stray} in a set of at most ${most}`, {
      help: `name dimensions from 0 to ${most - 1}`,
    });
  }
  const kept = (p: Piece): number[] =>
    p.output.dims.map((_, i) => i).filter((i) => !positions.includes(i));
  return projected(
    set,
    (p) => ({
      input: undefined,
      output: { name: p.output.name, dims: kept(p).map((i) => p.output.dims[i]!) },
    }),
    (p) => kept(p).map((i) => set.params.length + i),
  );
}

/** Projects parameters away: the points that exist for some value of them. */
export function projectParams<T extends SetOrMap>(value: T, names: readonly string[]): T {
  const kept = value.params.flatMap((p, i) => (names.includes(p) ? [] : [i]));
  const n = value.params.length;
  if (kept.length === n) return value;
  const pieces: Piece[] = [];
  for (const p of value.pieces) {
    const dims = Array.from({ length: fixedColumns([], p) }, (_, i) => n + i);
    const piece = toPiece(p, projectOnto(toSystem(value.params, p), [...kept, ...dims]));
    if (piece) pieces.push(piece);
  }
  return { ...value, params: kept.map((i) => value.params[i]!), pieces };
}

/** Gives parameters numbers; they disappear from the parameter list. */
export function fixParams<T extends SetOrMap>(
  value: T,
  numbers: Readonly<Record<string, number>>,
): T {
  const names = value.params.filter((p) => numbers[p] !== undefined);
  for (const name of names) requireInteger(numbers[name]!);
  if (names.length === 0) return value;
  const pieces = value.pieces.map((p) => {
    const rows = names.map((name) => {
      const row = unitRow(rowWidth(value.params, p), value.params.indexOf(name));
      row[row.length - 1] = -numbers[name]!;
      return row;
    });
    return { ...p, equalities: [...p.equalities, ...rows] };
  });
  return projectParams({ ...value, pieces }, names);
}

export function inverse(map: IntegerMap): IntegerMap {
  const n = map.params.length;
  const pieces = map.pieces.map((p): Piece => {
    const inputs = p.input!.dims.length;
    const outputs = p.output.dims.length;
    const fixed = n + inputs + outputs;
    const target = columnsOf(n, n + outputs, inputs);
    for (let i = 0; i < outputs; i++) target.push(n + i);
    const system = blankSystem(fixed, p.locals.length);
    addPlaced(system, map.params, p, { target, fixed, before: 0, locals: p.locals.length });
    return { input: p.output, output: p.input!, ...systemParts(system) };
  });
  return { ...map, pieces };
}

/** First `first`, then `second`: pairs (x, z) with (x, y) in first and (y, z) in second. */
export function compose(first: IntegerMap, second: IntegerMap): IntegerMap {
  const [f, s] = alignBoth(first, second);
  const pieces: Piece[] = [];
  for (const p of f.pieces) {
    for (const q of s.pieces) {
      const piece = sameTuple(p.output, q.input) ? composePieces(f.params, p, q) : undefined;
      if (piece) pieces.push(piece);
    }
  }
  return { ...f, pieces };
}

/** Columns: parameters, x, z, y; y is projected away. `p` may be a set (then x has no columns). */
function composePieces(params: readonly string[], p: Piece, q: Piece): Piece | undefined {
  const n = params.length;
  const x = p.input?.dims.length ?? 0;
  const y = p.output.dims.length;
  const z = q.output.dims.length;
  const targetP = columnsOf(n, n, x);
  for (let i = 0; i < y; i++) targetP.push(n + x + z + i);
  const targetQ = columnsOf(n, n + x + z, y);
  for (let i = 0; i < z; i++) targetQ.push(n + x + i);
  const system = joined(n + x + y + z, params, [p, targetP], [q, targetQ]);
  const kept = identityColumns(n + x + z);
  return toPiece({ input: p.input, output: q.output }, projectOnto(system, kept));
}

/** The image of a set under a map. */
export function applyMap(map: IntegerMap, set: IntegerSet): IntegerSet {
  const [m, s] = alignBoth(map, set);
  const pieces: Piece[] = [];
  for (const p of s.pieces) {
    for (const q of m.pieces) {
      const piece = sameTuple(p.output, q.input) ? composePieces(m.params, p, q) : undefined;
      if (piece) pieces.push(piece);
    }
  }
  return { kind: "set", params: m.params, pieces };
}

/** { x -> x : x in set }. */
export function identityMap(set: IntegerSet): IntegerMap {
  const n = set.params.length;
  const pieces = set.pieces.map((p): Piece => {
    const d = p.output.dims.length;
    const fixed = n + 2 * d;
    const system = blankSystem(fixed, p.locals.length);
    const target = identityColumns(n + d);
    addPlaced(system, set.params, p, { target, fixed, before: 0, locals: p.locals.length });
    for (let i = 0; i < d; i++) {
      const row = unitRow(fixed + p.locals.length + 1, n + i);
      row[n + d + i] = -1;
      system.equalities.push(row);
    }
    return { input: p.output, output: p.output, ...systemParts(system) };
  });
  return { kind: "map", params: set.params, pieces };
}

/** All pairs of a point of `from` and a point of `to`. */
export function pairsOf(from: IntegerSet, to: IntegerSet): IntegerMap {
  const [a, b] = alignBoth(from, to);
  const n = a.params.length;
  const pieces: Piece[] = [];
  for (const p of a.pieces) {
    for (const q of b.pieces) {
      const x = p.output.dims.length;
      const y = q.output.dims.length;
      const system = joined(
        n + x + y,
        a.params,
        [p, columnsOf(n, n, x)],
        [q, columnsOf(n, n + x, y)],
      );
      const piece = toPiece({ input: p.output, output: q.output }, system);
      if (piece) pieces.push(piece);
    }
  }
  return { kind: "map", params: a.params, pieces };
}

/** The differences target - source of a map's pairs; pieces with unequal tuple sizes have none. */
export function deltas(map: IntegerMap): IntegerSet {
  const n = map.params.length;
  const pieces: Piece[] = [];
  for (const p of map.pieces) {
    const d = p.input!.dims.length;
    if (p.output.dims.length !== d) continue;
    const fixed = n + 3 * d;
    const system = blankSystem(fixed, p.locals.length);
    const target = identityColumns(n + 2 * d);
    addPlaced(system, map.params, p, { target, fixed, before: 0, locals: p.locals.length });
    for (let i = 0; i < d; i++) {
      const row = unitRow(fixed + p.locals.length + 1, n + i);
      row[n + d + i] = -1;
      row[n + 2 * d + i] = 1;
      system.equalities.push(row);
    }
    const keep = columnsOf(n, n + 2 * d, d);
    const piece = toPiece({ input: undefined, output: p.output }, projectOnto(system, keep));
    if (piece) pieces.push(piece);
  }
  return { kind: "set", params: map.params, pieces };
}

/** Another name for every piece's (output) tuple. */
export function renameTuple<T extends SetOrMap>(value: T, name: string): T {
  return {
    ...value,
    pieces: value.pieces.map((p) => ({ ...p, output: { ...p.output, name } })),
  };
}
