/**
 * Separation: accesses by different grid instances, role copies or threads touch different elements.
 *
 * An access along an axis has the form c v + (terms of variables already known equal) + origin + rest,
 * with 0 <= rest and rest + span <= |c|: two accesses of this form that touch one element agree in v.
 * Applied to one variable after another (and to serial loops around, where that helps), this shows that
 * only the same instance touches an element twice; of a loop of one trip there is only one. All
 * accesses to a buffer must have the same form: that is their signature. Where no axis separates what is left, sums
 * of axes may (joined-axes.ts), as of a number that is split into quotient and remainder. The origin is a constant that
 * they share, where a part of a buffer begins, or lies before that by what terms that go down (a line from its
 * end) come to at most. Sound for any pair with equal signatures; no signature,
 * no proof. Accesses with different signatures must lie apart by the ranges of their indices alone.
 */
import {
  add,
  fromTerms,
  type IndexExpr,
  type IndexTerm,
  splitLinear,
  sub,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { Facts } from "./facts.ts";
import { type AxisSum, axisSums } from "./joined-axes.ts";

/** A variable that may differ between two unordered accesses, with the identity it has for all. */
export interface SpreadVariable {
  readonly name: string;
  /** Equal for loops that deal out the same iterations to the same instances. */
  readonly identity: string;
  /** Must be separated (grid, copy, thread), or merely may be (a serial loop). */
  readonly required: boolean;
  /** It has one value only. */
  readonly single?: boolean;
}

export interface Place {
  readonly index: readonly IndexExpr[];
  readonly spans: readonly number[];
  readonly facts: Facts;
  readonly spread: readonly SpreadVariable[];
}

/** Where the windows of these accesses may begin along each axis. */
export function originsOf(places: readonly Place[]): readonly number[] {
  const [first] = places;
  return (first?.index ?? []).map((_, axis) =>
    Math.min(...places.map((p) => p.index[axis]!.constant)),
  );
}

/** The signature, or undefined when some required variable is not separated. */
export function signatureOf(place: Place, origins: readonly number[] = []): string | undefined {
  const equal = new Set<string>();
  const signature: string[] = [];
  for (const { name, identity, single } of place.spread) {
    if (!single) continue;
    equal.add(name);
    signature.push(identity);
  }
  for (;;) {
    const left = place.spread.filter((v) => !equal.has(v.name));
    if (left.every((v) => !v.required)) return signature.join(" ");
    const step = firstStep(place, left, { equal, origins });
    if (!step) return undefined;
    equal.add(step.name);
    signature.push(step.text);
  }
}

/** Whether two accesses touch no element in common, whatever the variables of each are. */
export function lieApart(a: Place, b: Place): boolean {
  return a.index.some(
    (_, axis) => endsBefore(a, b, axis) || endsBefore(b, a, axis) || interleave(a, b, axis),
  );
}

/** Every window of `a` ends where the least one of `b` begins, or before. */
function endsBefore(a: Place, b: Place, axis: number): boolean {
  const begin = rangeOf(b.index[axis]!, b.facts.ranges).min;
  if (!Number.isFinite(begin)) return false;
  return a.facts.atLeast(begin, add(a.index[axis]!, a.spans[axis]!));
}

/** A term of the distance between two accesses: any multiple of `step` within the interval. */
interface Part {
  readonly step: number;
  readonly min: number;
  readonly max: number;
}

/**
 * The distance of the two is a multiple of some step plus something in an interval: apart where no
 * multiple brings it to zero.
 */
function interleave(a: Place, b: Place, axis: number): boolean {
  const parts = distanceParts(a, b, axis);
  if (!parts) return false;
  const [below, above] = [1 - a.spans[axis]!, b.spans[axis]! - 1];
  return parts.some(({ step }) => {
    if (step === 0) return false;
    const rest = parts.filter((p) => p.step === 0 || p.step % step !== 0);
    const low = below - rest.reduce((n, p) => n + p.max, 0);
    const high = above - rest.reduce((n, p) => n + p.min, 0);
    return Math.ceil(low / step) * step > high;
  });
}

function distanceParts(a: Place, b: Place, axis: number): readonly Part[] | undefined {
  let [left, right] = [a.index[axis]!, b.index[axis]!];
  const parts: Part[] = [];
  const term = (step: number, { min, max }: { min: number; max: number }): void => {
    const ends = [step * min, step * max];
    parts.push({ step: Math.abs(step), min: Math.min(...ends), max: Math.max(...ends) });
  };
  for (const name of variablesOf(left, right)) {
    const [x, y] = [splitLinear(left, name), splitLinear(right, name)];
    const range = { ...{ min: -Infinity, max: Infinity }, ...a.facts.ranges.get(name) };
    const other = { ...{ min: -Infinity, max: Infinity }, ...b.facts.ranges.get(name) };
    if (!x || !y) return undefined;
    [left, right] = [x.rest, y.rest];
    if (x.coefficient !== y.coefficient) {
      if (x.coefficient !== 0) term(x.coefficient, range);
      if (y.coefficient !== 0) term(-y.coefficient, other);
    } else if (!a.facts.isParameter(name)) {
      term(x.coefficient, { min: range.min - other.max, max: range.max - other.min });
    }
  }
  const distance = left.constant - right.constant;
  return [...parts, { step: 0, min: distance, max: distance }];
}

interface Known {
  readonly equal: ReadonlySet<string>;
  readonly origins: readonly number[];
}

function firstStep(
  place: Place,
  left: readonly SpreadVariable[],
  known: Known,
): { readonly name: string; readonly text: string } | undefined {
  const ordered = [...left.filter((v) => v.required), ...left.filter((v) => !v.required)];
  for (const v of ordered) {
    for (const [axis, index] of place.index.entries()) {
      const at = { index, span: place.spans[axis]!, origin: known.origins[axis] ?? 0 };
      const text = windowOf(v, { place, ...at, axis: `${axis}`, equal: known.equal });
      if (text !== undefined) return { name: v.name, text };
    }
  }
  for (const sum of axisSums(place.index, place.spans).slice(place.index.length)) {
    for (const v of ordered) {
      const text = windowOf(v, { place, ...alongSum(sum, known), equal: known.equal });
      if (text !== undefined) return { name: v.name, text };
    }
  }
  return undefined;
}

function alongSum({ weights, index, span }: AxisSum, { origins }: Known): Axis {
  const origin = weights.reduce((n, w, axis) => n + w * (origins[axis] ?? 0), 0);
  return { index, span, origin, axis: weights.join("/") };
}

/** What an access touches along an axis, or along a sum of some. */
interface Axis {
  readonly index: IndexExpr;
  readonly span: number;
  readonly origin: number;
  readonly axis: string;
}

function windowOf(
  v: SpreadVariable,
  at: Axis & Pick<Known, "equal"> & { readonly place: Place },
): string | undefined {
  const { place, axis, origin, span } = at;
  const linear = splitLinear(at.index, v.name);
  if (!linear || linear.coefficient === 0) return undefined;
  let rest = sub(linear.rest, origin);
  const fixed: string[] = [];
  for (const other of place.spread) {
    if (!at.equal.has(other.name)) continue;
    const part = splitLinear(rest, other.name);
    if (!part) return undefined;
    if (part.coefficient !== 0) fixed.push(`${part.coefficient}*${other.identity}`);
    rest = part.rest;
  }
  const { facts } = place;
  // What is made of parameters alone is the same for all.
  const isShared = (term: IndexTerm): boolean =>
    [...variablesOf(fromTerms(0, [term]))].every((name) => facts.isParameter(name));
  for (const { coefficient, key } of rest.terms.filter(isShared))
    fixed.push(`${coefficient}*${key}`);
  rest = fromTerms(
    rest.constant,
    rest.terms.filter((t) => !isShared(t)),
  );
  const width = Math.abs(linear.coefficient);
  if (variablesOf(rest).has(v.name)) return undefined;
  const isInside = (own: IndexExpr): boolean =>
    facts.atLeast(own, 0) && facts.atLeast(width - span, own);
  // What goes down begins where its least value is.
  const least = isInside(rest) ? 0 : rangeOf(rest, facts.ranges).min;
  if (!Number.isFinite(least) || !isInside(sub(rest, least))) return undefined;
  return `${v.identity}@${axis}:${linear.coefficient}+${origin + least}+${fixed.sort().join("+")}`;
}
