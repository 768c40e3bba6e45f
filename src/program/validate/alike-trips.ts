/**
 * Coverage by trips that are alike: a loop whose stores each trip moves by one step along an axis, under conditions
 * that hold in a trip where they hold in a later one, writes in every trip what it writes in a later one, moved.
 * So the last trip, which a box may end within, and the one before it answer for all, and are listed
 * (listed-cover.ts). In: statements that lead to stores into one buffer, and a box. Out: whether every element of the
 * box was written; false where there is no such loop. Exact for what it looks at, whatever the number of trips.
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  constant,
  constantValue,
  type IndexExpr,
  splitLinear,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { Statement } from "../statement.ts";
import { substituteStatements } from "../walk.ts";
import { coversByListing, type ListingOptions } from "./listed-cover.ts";

/** Along each axis. */
interface ConstantBox {
  readonly lo: readonly number[];
  readonly hi: readonly number[];
}

interface Question extends ListingOptions {
  /** Boxes that are looked at, at most. */
  readonly left: { boxes: number };
}

const mostBoxes = 32;

export function coversByTrips(
  body: readonly Statement[],
  box: { readonly lo: readonly IndexExpr[]; readonly hi: readonly IndexExpr[] },
  options: ListingOptions,
): boolean {
  const [lo, hi] = [box.lo.map(constantValue), box.hi.map(constantValue)];
  if (lo.includes(undefined) || hi.includes(undefined)) return false;
  const whole = { lo: lo as number[], hi: hi as number[] };
  return tripsCover(body, whole, { ...options, left: { boxes: mostBoxes } });
}

function coversBox(body: readonly Statement[], box: ConstantBox, q: Question): boolean {
  if (q.left.boxes-- <= 0) return false;
  const listed = { lo: box.lo.map((e) => constant(e)), hi: box.hi.map((e) => constant(e)) };
  return coversByListing(body, listed, q) || tripsCover(body, box, q);
}

function tripsCover(body: readonly Statement[], box: ConstantBox, q: Question): boolean {
  const [loop, ...others] = body;
  if (others.length > 0 || loop?.kind !== "for") return false;
  const trips = constantValue(loop.extent) ?? 0;
  return movesOf(loop.body, loop.variable).some((move) => {
    const { axis, step } = move;
    const [lo, hi] = [box.lo[axis]!, box.hi[axis]!];
    const needed = Math.ceil((hi - lo) / step);
    if (needed < 1 || needed > trips) return false;
    const alike = alikeOf(loop.body, loop.variable, move);
    return [needed - 1, needed - 2].every((trip) => {
      if (trip < 0) return true;
      const from = lo + step * trip;
      const part = {
        lo: box.lo.with(axis, from),
        hi: box.hi.with(axis, Math.min(hi, from + step)),
      };
      const at = new Map([[loop.variable, constant(trip)]]);
      return coversBox(substituteStatements(alike, at), part, q);
    });
  });
}

/** How a trip moves a store. */
interface Move {
  readonly axis: number;
  readonly step: number;
}

/** The move of a store; undefined where it is not by one step along one axis. */
function moveOf(index: readonly IndexExpr[], variable: string): Move | undefined {
  const axes = [...index.keys()].filter((axis) => variablesOf(index[axis]!).has(variable));
  const [axis, ...others] = axes;
  if (axis === undefined || others.length > 0) return undefined;
  const step = splitLinear(index[axis]!, variable)?.coefficient ?? 0;
  return step > 0 ? { axis, step } : undefined;
}

/** The moves of all stores, each once. */
function movesOf(body: readonly Statement[], variable: string): readonly Move[] {
  const found = new Map<string, Move>();
  for (const s of body) {
    const inner =
      s.kind === "store"
        ? [moveOf(s.index, variable)]
        : s.kind === "if"
          ? movesOf([...s.then, ...s.else], variable)
          : s.kind === "for"
            ? movesOf(s.body, variable)
            : [];
    for (const move of inner) if (move) found.set(`${move.axis} ${move.step}`, move);
  }
  return [...found.values()];
}

/** Of the statements those that a trip runs where a later one does, with the stores that it moves so. */
function alikeOf(body: readonly Statement[], variable: string, move: Move): readonly Statement[] {
  const inside = (inner: readonly Statement[]) => alikeOf(inner, variable, move);
  return body.flatMap((s): readonly Statement[] => {
    if (s.kind === "store") {
      const own = moveOf(s.index, variable);
      return own?.axis === move.axis && own.step === move.step ? [s] : [];
    }
    if (s.kind === "for") {
      const isAlike = s.variable !== variable && !variablesOf(s.extent).has(variable);
      return isAlike ? [{ ...s, body: inside(s.body) }] : [];
    }
    if (s.kind !== "if") return [];
    if (s.conditions.every((c) => !variablesOf(c.expr).has(variable)))
      return [{ ...s, then: inside(s.then), else: inside(s.else) }];
    const holds = s.conditions.every((c) => holdsBefore(c, variable));
    return holds ? [{ ...s, then: inside(s.then), else: [] }] : [];
  });
}

/** Whether a condition holds in a trip where it holds in a later one. */
function holdsBefore({ kind, expr }: Condition, variable: string): boolean {
  if (!variablesOf(expr).has(variable)) return true;
  const linear = kind === "nonNegative" ? splitLinear(expr, variable) : undefined;
  return linear !== undefined && linear.coefficient <= 0;
}
