/**
 * Execution of tile intrinsics by their reference bodies. A statement's operands become places
 * (tiles of views, or fragments over the registers of a group of threads); the shadow is told of
 * every access of the whole tile first, then the body runs once per element of the first operand.
 */
import type { FragmentMap, TileIntrinsic, TileOperand } from "../program/intrinsics.ts";
import type { Statement } from "../program/statement.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { ScalarValue } from "../semantics/scalar-meaning.ts";
import { invariant } from "../support/invariant.ts";
import type { Agent } from "./program-clock.ts";
import {
  compileConditions,
  compileIndex,
  compileOne,
  type ExprContext,
  type Frame,
} from "./program-expr.ts";
import type { View } from "./program-memory.ts";

/** Elements of an operand, row-major over its extents. */
export interface Place {
  readonly extents: readonly number[];
  readonly load: () => ScalarValue[];
  /** Writes those elements that have a value. */
  readonly store: (values: readonly (ScalarValue | undefined)[]) => void;
  readonly note: (agent: Agent) => void;
}

/** A tile of one view: `at` is its first element, `extents` cover the last axes. */
export interface TileSpan {
  readonly view: View;
  readonly at: readonly number[];
  readonly extents: readonly number[];
}

const swizzles = { rowMajor: 0, swizzle32: 32, swizzle64: 64, swizzle128: 128 } as const;

/** A tile in memory or shared scope. */
export function memoryPlace(operand: TileOperand, span: TileSpan): Place {
  const { view, extents } = span;
  const { layout } = operand;
  const swizzle =
    layout === "buffer" || layout === "fragment" ? view.swizzleBytes : swizzles[layout];
  const offsets = tileOffsets(operand, span);
  return {
    extents,
    load: () => offsets.map((offset) => (offset < 0 ? view.zero : view.readAt(offset, swizzle))),
    store: (values) => {
      for (const [i, offset] of offsets.entries()) {
        const value = values[i];
        if (offset >= 0 && value !== undefined) view.writeAt(offset, value, swizzle);
      }
    },
    note: (agent) => {
      const access = operand.access === "read" ? "read" : "write";
      for (const offset of offsets) if (offset >= 0) view.note(agent, access, offset, 1);
    },
  };
}

/** The number of each element's scalar in the view, or -1 of those beyond its edge where the tile may hang over. */
function tileOffsets({ mayHangOver }: TileOperand, { view, at, extents }: TileSpan): number[] {
  const lead = at.length - extents.length;
  const offsets: number[] = [];
  const place = at.slice();
  forEachBox(extents, (index) => {
    for (const [axis, i] of index.entries()) place[lead + axis] = at[lead + axis]! + i;
    offsets.push(mayHangOver && !view.contains(place) ? -1 : view.offsetOf(place, 1));
  });
  return offsets;
}

/** Thread and register of each element of a fragment, in turns, row-major. */
const fragmentTables = new WeakMap<FragmentMap, readonly number[]>();

function fragmentTable(fragment: FragmentMap): readonly number[] {
  const known = fragmentTables.get(fragment);
  if (known) return known;
  const slots = new Map<string, number>([
    ["e0", 0],
    ["e1", 1],
  ]);
  const thread = compileIndex(fragment.thread, (name) => slots.get(name)!);
  const register = compileIndex(fragment.register, (name) => slots.get(name)!);
  const table: number[] = [];
  forEachBox(fragment.extents, (index) => table.push(thread(index), register(index)));
  fragmentTables.set(fragment, table);
  return table;
}

/**
 * A fragment: `spans[thread]` is the register tile of each thread of the group, in order. With `owners`
 * each thread accesses its own registers, as it does where the instruction has ended when it is left.
 */
export function fragmentPlace(
  operand: TileOperand,
  spans: readonly TileSpan[],
  owners?: readonly Agent[],
): Place {
  const { fragment } = operand;
  invariant(fragment, () => `${operand.name} is no fragment`);
  const table = fragmentTable(fragment);
  const firsts = spans.map(({ view, at, extents }) => view.offsetOf(at, extents[0]!));
  const viewAt = (i: number): View => spans[table[2 * i]!]!.view;
  const offsetAt = (i: number): number => firsts[table[2 * i]!]! + table[2 * i + 1]!;
  const count = table.length / 2;
  return {
    extents: fragment.extents,
    load: () => Array.from({ length: count }, (_, i) => viewAt(i).readAt(offsetAt(i))),
    store: (values) => {
      for (let i = 0; i < count; i++) {
        const value = values[i];
        if (value !== undefined) viewAt(i).writeAt(offsetAt(i), value);
      }
    },
    note: (agent) => {
      const access = operand.access === "read" ? "read" : "write";
      for (const [i, { view, extents }] of spans.entries()) {
        const who = owners ? { ...owners[i]!, label: agent.label, proxy: agent.proxy } : agent;
        if (operand.access === "readWrite") view.note(who, "read", firsts[i]!, extents[0]!);
        view.note(who, access, firsts[i]!, extents[0]!);
      }
    },
  };
}

/** Registers that an instruction reads as it is issued, by the thread that issues it. */
export function capturedPlace({ extents, load, note }: Place, agent: Agent): Place {
  note(agent);
  const values = load();
  return {
    extents,
    load: () => values,
    store: () => invariant(false, () => "an operand that is only read"),
    note: () => {},
  };
}

function forEachBox(extents: readonly number[], visit: (index: readonly number[]) => void): void {
  if (extents.some((e) => e === 0)) return;
  const index = extents.map(() => 0);
  for (;;) {
    visit(index);
    let axis = index.length - 1;
    while (axis >= 0 && ++index[axis]! === extents[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

/** Operands while the body runs: their elements, read before and written back after it. */
interface TileFrame extends Frame {
  readonly tiles: readonly {
    readonly extents: readonly number[];
    readonly values: (ScalarValue | undefined)[];
  }[];
}

type TileCode = (frame: TileFrame) => void;

const compiled = new WeakMap<TileIntrinsic, TileCode>();

/** Tells the shadow of all accesses, then computes. */
export function performTile(row: TileIntrinsic, places: readonly Place[], agent: Agent): void {
  const [first] = places;
  if (!first) return;
  for (const place of places) place.note(agent);
  let code = compiled.get(row);
  if (!code) {
    code = compileBody(row);
    compiled.set(row, code);
  }
  const run = code;
  const tiles = places.map(({ extents, load }, o) => ({
    extents,
    values: row.operands[o]!.access === "write" ? [] : load(),
  }));
  const frame: TileFrame = { ints: [], values: [], tiles };
  forEachBox(first.extents, (index) => {
    for (const [axis, i] of index.entries()) frame.ints[axis] = i;
    run(frame);
  });
  for (const [o, { access }] of row.operands.entries()) {
    if (access !== "read") places[o]!.store(tiles[o]!.values);
  }
}

/** Slots: e0 … e4 first, then the loops of the body. */
function compileBody(row: TileIntrinsic): TileCode {
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
  const compileList = (body: readonly Statement[]): TileCode => {
    const codes = body.map(compileStatement);
    return (frame) => {
      for (const code of codes) code(frame);
    };
  };
  const compileStatement = (s: Statement): TileCode => {
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
