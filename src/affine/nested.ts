/**
 * Products: tuples that wrap a pair, `{ [S[i] -> A[j]] }`: a map as a set, and the projections from such a set
 * to both halves. They let a relation speak of accesses (an instance with the element it touches)
 * rather than of instances; flow-question.ts is built on them. And
 * the flat product that joins time vectors.
 */
import { alignBoth } from "./operations.ts";
import { addPlaced, blankSystem, systemParts, toPiece } from "./piece.ts";
import { unitRow } from "./row.ts";
import { type IntegerMap, type IntegerSet, type Piece, sameTuple, type Tuple } from "./types.ts";

/** { [x -> y] : (x, y) in map }. */
export function wrap(map: IntegerMap): IntegerSet {
  const pieces = map.pieces.map((p): Piece => {
    return { ...p, input: undefined, output: wrappedTuple(p.input!, p.output) };
  });
  return { kind: "set", params: map.params, pieces };
}

function wrappedTuple(from: Tuple, to: Tuple): Tuple {
  return { name: "", dims: [...from.dims, ...to.dims], nested: { from, to } };
}

/** The pairs of the wrapped tuples of a set; its other tuples have none. */
export function unwrap(set: IntegerSet): IntegerMap {
  const pieces = set.pieces.flatMap((p): Piece[] => {
    const { nested } = p.output;
    return nested ? [{ ...p, input: nested.from, output: nested.to }] : [];
  });
  return { kind: "map", params: set.params, pieces };
}

/** { [x -> y] -> x : (x, y) in map }. */
export function domainMap(map: IntegerMap): IntegerMap {
  return halfOf(map, "from");
}

/** { [x -> y] -> y : (x, y) in map }. */
export function rangeMap(map: IntegerMap): IntegerMap {
  return halfOf(map, "to");
}

function halfOf(map: IntegerMap, half: "from" | "to"): IntegerMap {
  const n = map.params.length;
  const pieces = map.pieces.map((p): Piece => {
    const input = wrappedTuple(p.input!, p.output);
    const output = half === "from" ? p.input! : p.output;
    const start = n + (half === "from" ? 0 : p.input!.dims.length);
    const wrapped = n + input.dims.length;
    const fixed = wrapped + output.dims.length;
    const system = blankSystem(fixed, p.locals.length);
    const target = Array.from({ length: wrapped }, (_, i) => i);
    addPlaced(system, map.params, p, { target, fixed, before: 0, locals: p.locals.length });
    output.dims.forEach((_, i) => {
      const row = unitRow(fixed + p.locals.length + 1, start + i);
      row[wrapped + i] = -1;
      system.equalities.push(row);
    });
    return { input, output, ...systemParts(system) };
  });
  return { ...map, pieces };
}

/** { x -> [a, b] : x -> [a] in first and x -> [b] in second }, in an anonymous tuple. */
export function flatRangeProduct(first: IntegerMap, second: IntegerMap): IntegerMap {
  const [f, s] = alignBoth(first, second);
  const pieces: Piece[] = [];
  for (const p of f.pieces) {
    for (const q of s.pieces) {
      const piece = sameTuple(p.input, q.input) ? joinPieces(f.params, p, q) : undefined;
      if (piece) pieces.push(piece);
    }
  }
  return { ...f, pieces };
}

function joinPieces(params: readonly string[], p: Piece, q: Piece): Piece | undefined {
  const n = params.length + p.input!.dims.length;
  const [a, b] = [p.output.dims.length, q.output.dims.length];
  const fixed = n + a + b;
  const locals = p.locals.length + q.locals.length;
  const system = blankSystem(fixed, locals);
  const span = (start: number, count: number): number[] =>
    Array.from({ length: count }, (_, i) => start + i);
  addPlaced(system, params, p, { target: span(0, n + a), fixed, before: 0, locals });
  const target = [...span(0, n), ...span(n + a, b)];
  addPlaced(system, params, q, { target, fixed, before: p.locals.length, locals });
  const dims = span(0, a + b).map((i) => `o${i}`);
  return toPiece({ input: p.input, output: { name: "", dims } }, system);
}
