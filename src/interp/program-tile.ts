/**
 * Execution of tile intrinsics by their reference bodies. A statement's operands become places
 * (tiles of views, or fragments over the registers of a group of threads); the shadow is told of
 * every access of the whole tile first, then the body runs once per element of the first operand.
 */
import type { TileIntrinsic, TileOperand } from "../program/intrinsics.ts";
import type { Expr, Statement } from "../program/statement.ts";
import type { ScalarValue } from "../semantics/scalar-meaning.ts";
import { invariant } from "../support/invariant.ts";
import type { Agent } from "./program-clock.ts";
import {
  compileConditions,
  compileExpr,
  compileIndex,
  type ExprContext,
  type Frame,
  type ValueCode,
} from "./program-expr.ts";
import type { View } from "./program-memory.ts";

/** Elements of an operand by index relative to the tile. */
export interface Place {
  readonly extents: readonly number[];
  readonly read: (index: readonly number[]) => ScalarValue;
  readonly write: (index: readonly number[], value: ScalarValue) => void;
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
  const { view, at, extents } = span;
  const { layout, mayHangOver } = operand;
  const swizzle =
    layout === "buffer" || layout === "fragment" ? view.swizzleBytes : swizzles[layout];
  const lead = at.length - extents.length;
  const absolute = (index: readonly number[]): number[] =>
    at.map((first, axis) => (axis < lead ? first : first + index[axis - lead]!));
  return {
    extents,
    read: (index) => {
      const place = absolute(index);
      if (mayHangOver && !view.contains(place)) return view.zero;
      return view.readAt(view.offsetOf(place, 1), swizzle);
    },
    write: (index, value) => {
      const place = absolute(index);
      if (mayHangOver && !view.contains(place)) return;
      view.writeAt(view.offsetOf(place, 1), value, swizzle);
    },
    note: (agent) => {
      forEachBox(extents, (index) => {
        const place = absolute(index);
        if (mayHangOver && !view.contains(place)) return;
        const offset = view.offsetOf(place, 1);
        view.note(agent, operand.access === "read" ? "read" : "write", offset, 1);
      });
    },
  };
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
  const slots = new Map<string, number>([
    ["e0", 0],
    ["e1", 1],
  ]);
  const thread = compileIndex(fragment.thread, (name) => slots.get(name)!);
  const register = compileIndex(fragment.register, (name) => slots.get(name)!);
  const locate = (index: readonly number[]): readonly [View, number] => {
    const span = spans[thread(index)]!;
    const at = span.at.slice();
    at[at.length - 1] = at[at.length - 1]! + register(index);
    return [span.view, span.view.offsetOf(at, 1)];
  };
  return {
    extents: fragment.extents,
    read: (index) => {
      const [view, offset] = locate(index);
      return view.readAt(offset);
    },
    write: (index, value) => {
      const [view, offset] = locate(index);
      view.writeAt(offset, value);
    },
    note: (agent) => {
      const access = operand.access === "read" ? "read" : "write";
      for (const [i, { view, at, extents }] of spans.entries()) {
        const who = owners ? { ...owners[i]!, label: agent.label, proxy: agent.proxy } : agent;
        if (operand.access === "readWrite")
          view.note(who, "read", view.offsetOf(at, 1), extents[0]!);
        view.note(who, access, view.offsetOf(at, 1), extents[0]!);
      }
    },
  };
}

/** Registers that an instruction reads as it is issued, by the thread that issues it. */
export function capturedPlace({ extents, read, note }: Place, agent: Agent): Place {
  note(agent);
  const values = new Map<string, ScalarValue>();
  forEachBox(extents, (index) => values.set(index.join(), read(index)));
  return {
    extents,
    read: (index) => values.get(index.join())!,
    write: () => invariant(false, () => "an operand that is only read"),
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

interface TileFrame extends Frame {
  readonly places: readonly Place[];
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
  const frame: TileFrame = { ints: [], values: [], places };
  forEachBox(first.extents, (index) => {
    for (const [axis, i] of index.entries()) frame.ints[axis] = i;
    run(frame);
  });
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
    load: (load) => compileLoad(load, placeOf(load.buffer), int),
  };
  const compileList = (body: readonly Statement[]): TileCode => {
    const codes = body.map(compileOne);
    return (frame) => {
      for (const code of codes) code(frame);
    };
  };
  const compileOne = (s: Statement): TileCode => {
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
        const place = placeOf(s.buffer);
        const index = s.index.map((e) => compileIndex(e, int));
        const value = compileExpr(s.value, context);
        return (frame) =>
          frame.places[place]!.write(
            index.map((code) => code(frame.ints)),
            value(frame)[0]!,
          );
      }
      default:
        return invariant(false, () => `${row.name}: ${s.kind} in a reference body`) ?? (() => {});
    }
  };
  return compileList(row.body);
}

function compileLoad(
  load: Extract<Expr, { kind: "load" }>,
  place: number,
  int: (name: string) => number,
): ValueCode<TileFrame> {
  const index = load.index.map((e) => compileIndex(e, int));
  return (frame) => [frame.places[place]!.read(index.map((code) => code(frame.ints)))];
}
