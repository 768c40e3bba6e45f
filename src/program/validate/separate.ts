/**
 * Separation: accesses by different grid instances, role copies or threads touch different elements.
 *
 * An access along an axis has the form c v + (terms of variables already known equal) + rest, with
 * 0 <= rest and rest + span <= c: two accesses of this form that touch one element agree in v. Applied
 * to one variable after another (and to serial loops around, where that helps), this shows that only
 * the same instance touches an element twice. All accesses to a buffer must have the same form: that
 * is their signature. Sound for any pair with equal signatures; no signature, no proof.
 */
import { type IndexExpr, splitLinear, variablesOf } from "../../semantics/index-expr.ts";
import type { Facts } from "./facts.ts";

/** A variable that may differ between two unordered accesses, with the identity it has for all. */
export interface SpreadVariable {
  readonly name: string;
  /** Equal for loops that deal out the same iterations to the same instances. */
  readonly identity: string;
  /** Must be separated (grid, copy, thread), or merely may be (a serial loop). */
  readonly required: boolean;
}

export interface Place {
  readonly index: readonly IndexExpr[];
  readonly spans: readonly number[];
  readonly facts: Facts;
  readonly spread: readonly SpreadVariable[];
}

/** The signature, or undefined when some required variable is not separated. */
export function signatureOf(place: Place): string | undefined {
  const equal = new Set<string>();
  const signature: string[] = [];
  for (;;) {
    const left = place.spread.filter((v) => !equal.has(v.name));
    if (left.every((v) => !v.required)) return signature.join(" ");
    const step = firstStep(place, left, equal);
    if (!step) return undefined;
    equal.add(step.name);
    signature.push(step.text);
  }
}

function firstStep(
  place: Place,
  left: readonly SpreadVariable[],
  equal: ReadonlySet<string>,
): { readonly name: string; readonly text: string } | undefined {
  const ordered = [...left.filter((v) => v.required), ...left.filter((v) => !v.required)];
  for (const v of ordered) {
    for (const [axis, e] of place.index.entries()) {
      const text = windowOf(e, v, { ...place, axis, equal });
      if (text !== undefined) return { name: v.name, text };
    }
  }
  return undefined;
}

function windowOf(
  e: IndexExpr,
  v: SpreadVariable,
  place: Place & { readonly axis: number; readonly equal: ReadonlySet<string> },
): string | undefined {
  const linear = splitLinear(e, v.name);
  if (!linear || linear.coefficient <= 0) return undefined;
  let { rest } = linear;
  const fixed: string[] = [];
  for (const other of place.spread) {
    if (!place.equal.has(other.name)) continue;
    const part = splitLinear(rest, other.name);
    if (!part) return undefined;
    if (part.coefficient !== 0) fixed.push(`${part.coefficient}*${other.identity}`);
    rest = part.rest;
  }
  const { facts, axis } = place;
  const span = place.spans[axis]!;
  const inside = facts.atLeast(rest, 0) && facts.atLeast(linear.coefficient - span, rest);
  if (!inside || variablesOf(rest).has(v.name)) return undefined;
  return `${v.identity}@${axis}:${linear.coefficient}+${fixed.sort().join("+")}`;
}
