/**
 * Execution of tile intrinsics by their reference bodies. A statement's operands become places
 * (tiles of views, or fragments over the registers of a group of threads); the shadow is told of
 * every access of the whole tile first, then the body runs once per element of the first operand.
 */
import type { FragmentMap, TileIntrinsic, TileOperand } from "../program/intrinsics.ts";
import type { ScalarValue } from "../semantics/scalar-meaning.ts";
import { invariant } from "../support/invariant.ts";
import type { Agent } from "./program-clock.ts";
import { compileIndex } from "./program-expr.ts";
import type { View } from "./program-memory.ts";
import { tileCodeOf } from "./tile-code.ts";
import { forEachBox } from "./tile-tables.ts";

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

/** Of orders that say it; the others have what the buffer states. */
const swizzles: Readonly<Partial<Record<TileOperand["layout"], number>>> = {
  ...{ rowMajor: 0, swizzle32: 32, swizzle64: 64, swizzle128: 128 },
};

function rowBytes({ shape, elementBits }: View): number {
  return ((shape.at(-1) ?? 1) * elementBits) / 8;
}

/** A tile in memory or shared scope. */
export function memoryPlace(operand: TileOperand, span: TileSpan): Place {
  const { view, extents } = span;
  // As wide as the rows, whatever the buffer was filled by.
  const own = operand.layout === "swizzled" ? rowBytes(view) : view.swizzleBytes;
  const swizzle = swizzles[operand.layout] ?? own;
  const { offsets, runs } = tileElements(operand, span);
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
      for (const { first, count } of runs) view.note(agent, access, first, count);
    },
  };
}

/** Scalars of the view. */
interface TileElements {
  /** Of each element of the tile; -1 of those beyond the view's edge where the tile may hang over. */
  readonly offsets: readonly number[];
  /** Those of the view beside each other, in order. */
  readonly runs: readonly { readonly first: number; readonly count: number }[];
}

function tileElements({ mayHangOver }: TileOperand, { view, at, extents }: TileSpan): TileElements {
  const lead = at.length - extents.length;
  const offsets: number[] = [];
  const runs: { first: number; count: number }[] = [];
  const place = at.slice();
  const add = (count: number): void => {
    const first = view.offsetOf(place, count);
    for (let i = 0; i < count; i++) offsets.push(first + i);
    runs.push({ first, count });
  };
  const addEach = (count: number): void => {
    const start = place.at(-1)!;
    for (let i = 0; i < count; i++) {
      place[place.length - 1] = start + i;
      if (mayHangOver && !view.contains(place)) offsets.push(-1);
      else add(1);
    }
  };
  const line = extents.at(-1) ?? 1;
  const last = lead + extents.length - 1;
  forEachBox(extents.slice(0, -1), (index) => {
    for (const [axis, i] of index.entries()) place[lead + axis] = at[lead + axis]! + i;
    if (last >= 0) place[last] = at[last]!;
    if (view.lanes === 1 && view.contains(place, line)) add(line);
    else addEach(line);
  });
  return { offsets, runs };
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

/** Tells the shadow of all accesses, then computes. */
export function performTile(row: TileIntrinsic, places: readonly Place[], agent: Agent): void {
  if (places.length === 0) return;
  for (const place of places) place.note(agent);
  const run = tileCodeOf(
    row,
    places.map((place) => place.extents),
  );
  const tiles = places.map(({ extents, load }, o) => ({
    extents,
    values: row.operands[o]!.access === "write" ? [] : load(),
  }));
  run(tiles);
  for (const [o, { access }] of row.operands.entries()) {
    if (access !== "read") places[o]!.store(tiles[o]!.values);
  }
}
