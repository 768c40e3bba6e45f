/**
 * Separation: accesses by different grid instances, role copies or threads touch different elements.
 *
 * An access along an axis has the form c v + (terms of variables already known equal) + origin + rest,
 * with 0 <= rest and rest + span <= c: two accesses of this form that touch one element agree in v.
 * Applied to one variable after another (and to serial loops around, where that helps), this shows that
 * only the same instance touches an element twice; of a loop of one trip there is only one. All
 * accesses to a buffer must have the same form: that is their signature. The origin is a constant that
 * they share, where a part of a buffer begins. Sound for any pair with equal signatures; no signature,
 * no proof.
 */
import { type IndexExpr, splitLinear, sub, variablesOf } from "../../semantics/index-expr.ts";
import type { Facts } from "./facts.ts";

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
    for (const [axis, e] of place.index.entries()) {
      const text = windowOf(e, v, { place, axis, ...known });
      if (text !== undefined) return { name: v.name, text };
    }
  }
  return undefined;
}

function windowOf(
  e: IndexExpr,
  v: SpreadVariable,
  at: Known & { readonly place: Place; readonly axis: number },
): string | undefined {
  const { place, axis } = at;
  const linear = splitLinear(e, v.name);
  if (!linear || linear.coefficient <= 0) return undefined;
  const origin = at.origins[axis] ?? 0;
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
  const span = place.spans[axis]!;
  const inside = facts.atLeast(rest, 0) && facts.atLeast(linear.coefficient - span, rest);
  if (!inside || variablesOf(rest).has(v.name)) return undefined;
  return `${v.identity}@${axis}:${linear.coefficient}+${origin}+${fixed.sort().join("+")}`;
}
