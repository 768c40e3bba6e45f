/**
 * Index expressions for loops that run often: with the symbols' values put in, most are linear, and
 * then a step of the innermost loop is one addition. What is not linear is evaluated anew each time.
 */
import { constantValue, type IndexExpr, splitLinear, substitute } from "../semantics/index-expr.ts";
import {
  type CompiledIndex,
  compileIndex,
  type Environment,
  type Slots,
} from "./compiled-index.ts";

export interface LinearForm {
  /** The value for the variables' present values. */
  readonly value: CompiledIndex;
  /** What a step of `inner` adds; undefined when that is no constant. */
  readonly step: number | undefined;
}

/** @param inner the innermost loop's variable, if there is one */
export function compileForm(
  expr: IndexExpr,
  symbols: ReadonlyMap<string, number>,
  slots: Slots,
  inner: string | undefined,
): LinearForm {
  const known = substitute(expr, symbols);
  const step = inner === undefined ? 0 : splitLinear(known, inner)?.coefficient;
  return { value: compileLinear(known, slots) ?? compileIndex(known, slots), step };
}

function compileLinear(expr: IndexExpr, slots: Slots): CompiledIndex | undefined {
  const places: number[] = [];
  const steps: number[] = [];
  let rest = expr;
  for (const [name, slot] of slots) {
    const split = splitLinear(rest, name);
    if (!split) return undefined;
    if (split.coefficient === 0) continue;
    places.push(slot);
    steps.push(split.coefficient);
    rest = split.rest;
  }
  const constant = constantValue(rest);
  if (constant === undefined) return undefined;
  const [p, s] = [Int32Array.from(places), Float64Array.from(steps)];
  return (env: Environment) => {
    let total = constant;
    for (let i = 0; i < p.length; i++) total += s[i]! * env[p[i]!]!;
    return total;
  };
}
