/**
 * What the reference body of a tile intrinsic computes, as code over the elements of its operands. Bodies
 * that move elements or multiply and add them up run over tables of elements, made once for the extents of
 * the operands; any other is run statement by statement, once for each element of the first operand.
 *
 * In: a row, the extents of each operand. Out: code that changes values in place.
 */
import type { TileIntrinsic } from "../program/intrinsics.ts";
import type { Statement } from "../program/statement.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { invariant } from "../support/invariant.ts";
import {
  compileConditions,
  compileIndex,
  compileOne,
  type ExprContext,
  type Frame,
} from "./program-expr.ts";
import {
  compileTables,
  type Extents,
  forEachBox,
  type Tile,
  type TileCode,
} from "./tile-tables.ts";

/** The code for the extents that came last: most rows have no others. */
const compiled = new WeakMap<
  TileIntrinsic,
  { readonly extents: Extents; readonly code: TileCode }
>();

/** The code of a row, for the extents of its operands. */
export function tileCodeOf(row: TileIntrinsic, extents: Extents): TileCode {
  const known = compiled.get(row);
  if (known && areEqual(known.extents, extents)) return known.code;
  const code = compileTables(row, extents) ?? compileStatements(row);
  compiled.set(row, { extents, code });
  return code;
}

function areEqual(a: Extents, b: Extents): boolean {
  for (let o = 0; o < a.length; o++) {
    const [x, y] = [a[o]!, b[o]!];
    if (x.length !== y.length) return false;
    for (let axis = 0; axis < x.length; axis++) if (x[axis] !== y[axis]) return false;
  }
  return true;
}

/** Operands while the body runs. */
interface TileFrame extends Frame {
  readonly tiles: readonly Tile[];
}

type FrameCode = (frame: TileFrame) => void;

/** The body of any row. */
export function compileStatements(row: TileIntrinsic): TileCode {
  const body = compileBody(row);
  return (tiles) => {
    const frame: TileFrame = { ints: [], values: [], tiles };
    forEachBox(tiles[0]!.extents, (index) => {
      for (const [axis, i] of index.entries()) frame.ints[axis] = i;
      body(frame);
    });
  };
}

/** Slots: e0 … e4 first, then the loops of the body. */
function compileBody(row: TileIntrinsic): FrameCode {
  const ints = new Map<string, number>(
    Array.from({ length: 5 }, (_, axis) => [`e${axis}`, axis] as const),
  );
  const int = (name: string): number => {
    const slot = ints.get(name);
    invariant(slot !== undefined, () => `${row.name}: ${name} is unbound`);
    return slot;
  };
  const placeOf = (name: string): number => row.operands.findIndex((o) => o.name === name);
  const context: ExprContext<TileFrame> = {
    int,
    value: (name) => invariant(false, () => `${row.name}: local ${name}`) ?? 0,
    load: (load) => invariant(false, () => `${row.name}: ${load.lanes} lanes`) ?? (() => []),
    loadOne: (load) => {
      const tile = placeOf(load.buffer);
      const place = compilePlace(load.index, tile, int);
      return (frame) => frame.tiles[tile]!.values[place(frame)]!;
    },
  };
  const compileList = (body: readonly Statement[]): FrameCode => {
    const codes = body.map(compileStatement);
    return (frame) => {
      for (const code of codes) code(frame);
    };
  };
  const compileStatement = (s: Statement): FrameCode => {
    switch (s.kind) {
      case "for": {
        const slot = ints.size;
        ints.set(s.variable, slot);
        const extent = compileIndex(s.extent, int);
        const body = compileList(s.body);
        return (frame) => {
          const end = extent(frame.ints);
          for (let i = 0; i < end; i++) {
            frame.ints[slot] = i;
            body(frame);
          }
        };
      }
      case "if": {
        const test = compileConditions(s.conditions, int);
        const [then, otherwise] = [compileList(s.then), compileList(s.else)];
        return (frame) => (test(frame.ints) ? then(frame) : otherwise(frame));
      }
      case "store": {
        const tile = placeOf(s.buffer);
        const place = compilePlace(s.index, tile, int);
        const value = compileOne(s.value, context);
        return (frame) => {
          frame.tiles[tile]!.values[place(frame)] = value(frame);
        };
      }
      default:
        return invariant(false, () => `${row.name}: ${s.kind} in a reference body`) ?? (() => {});
    }
  };
  return compileList(row.body);
}

/** Number of an element of a tile. */
function compilePlace(
  index: readonly IndexExpr[],
  tile: number,
  int: (name: string) => number,
): (frame: TileFrame) => number {
  const codes = index.map((e) => compileIndex(e, int));
  return ({ ints, tiles }) => {
    const { extents } = tiles[tile]!;
    let at = 0;
    for (let axis = 0; axis < codes.length; axis++) at = at * extents[axis]! + codes[axis]!(ints);
    return at;
  };
}
