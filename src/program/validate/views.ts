/**
 * What several launches write of a buffer, through one view of it. In: parts, each through its own view; out: the same
 * stores with indices of one shape.
 */
import {
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mul,
  sub,
} from "../../semantics/index-expr.ts";
import { flatIndex } from "../addresses.ts";
import type { Buffer } from "../program.ts";
import type { Statement } from "../statement.ts";
import { mapStatements } from "../walk.ts";
import type { Access } from "./sequential.ts";

/** What one launch writes of a buffer. */
export interface Part {
  readonly body: readonly Statement[];
  readonly buffer: Buffer;
  /** The stores into the buffer, with what is known where they stand. */
  readonly stores: readonly Access[];
}

/** The parts through one view: theirs, or that without axes of one element; undefined: through several. */
export function inOneView(parts: readonly Part[]): readonly Part[] | undefined {
  const { buffer } = parts[0]!;
  if (parts.every((part) => part.buffer === buffer)) return parts;
  if (parts.some(({ buffer: b }) => b.lanes !== buffer.lanes || b.layout)) return undefined;
  const long = parts.map((part) => seenBy(part, withoutUnits(part.buffer)));
  const keys = long.map((part) => part.buffer.shape.map((e) => e.key).join());
  return keys.every((key) => key === keys[0]) ? long : undefined;
}

/**
 * The parts through the view whose axes, joined, are those of each: known sizes of which one divides the next, counted
 * in elements. Stores are in bounds, so an axis' index has the digits that the view's axes are. Undefined: there is none.
 */
export function refined(parts: readonly Part[]): readonly Part[] | undefined {
  const { buffer } = parts[0]!;
  if (parts.some(({ buffer: b }) => b.lanes !== buffer.lanes || b.layout)) return undefined;
  const strides = parts.map((part) => stridesOf(part.buffer));
  if (strides.some((s) => s === undefined || s[0] !== strides[0]![0])) return undefined;
  const all = [...new Set(strides.flatMap((s) => s!))].sort((a, b) => b - a);
  const sizes = all.slice(1).map((inner, i) => all[i]! / inner);
  if (!sizes.every(Number.isInteger)) return undefined;
  const shape = sizes.map((n) => constant(n));
  return parts.map((part, i) => {
    const own = strides[i]!;
    const index = (at: readonly IndexExpr[]): readonly IndexExpr[] =>
      at.flatMap((e, axis) => digits(e, own[axis + 1]!, all.slice(all.indexOf(own[axis]!))));
    return seenBy(part, { shape, index });
  });
}

/** Elements in all, then behind each axis. */
function stridesOf({ shape }: Buffer): readonly number[] | undefined {
  const strides = [1];
  for (const extent of [...shape].reverse()) {
    const size = constantValue(extent);
    if (size === undefined || size < 1) return undefined;
    strides.unshift(strides[0]! * size);
  }
  return strides;
}

/** The digits of an index along an axis: from the first of some strides, which is the axis' end, to its step. */
function digits(index: IndexExpr, step: number, strides: readonly number[]): readonly IndexExpr[] {
  const within = strides.slice(1, strides.indexOf(step) + 1).map((s) => s / step);
  const quotients = within.map((s) => floorDiv(index, s));
  return quotients.map((q, i) =>
    i === 0 ? q : sub(q, mul(quotients[i - 1]!, within[i - 1]! / within[i]!)),
  );
}

/** A row-major buffer seen in another shape. */
interface Seen {
  readonly shape: readonly IndexExpr[];
  readonly index: (at: readonly IndexExpr[]) => readonly IndexExpr[];
}

/** Without the axes of one element, where every index is 0. */
function withoutUnits({ shape }: Buffer): Seen {
  const kept = (_: IndexExpr, axis: number): boolean => constantValue(shape[axis]!) !== 1;
  return { shape: shape.filter(kept), index: (at) => at.filter(kept) };
}

export function flat(buffer: Buffer): Seen {
  return { shape: [mul(1, ...buffer.shape)], index: (at) => [flatIndex(buffer, at)] };
}

const commonName = "one view";

export function seenBy({ body, buffer, stores }: Part, { shape, index }: Seen): Part {
  const seen = mapStatements(body, (s) =>
    s.kind === "store" && s.buffer === buffer.name
      ? [{ ...s, buffer: commonName, index: index(s.index) }]
      : [s],
  );
  return { body: seen, buffer: { ...buffer, name: commonName, shape }, stores };
}
