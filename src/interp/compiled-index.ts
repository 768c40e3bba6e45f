/**
 * Index expressions and conditions as functions of an environment: variables have numbered slots, so
 * that the interpreter's inner loops look up no names. Meaning: semantics/index-expr.ts.
 */
import type { Condition } from "../semantics/condition.ts";
import {
  atomOperands,
  type IndexAtom,
  type IndexExpr,
  positiveMod,
} from "../semantics/index-expr.ts";
import { invariant } from "../support/invariant.ts";

/** Values of variables by slot. */
export type Environment = Float64Array;

export type CompiledIndex = (env: Environment) => number;

/** Numbers of the variables' slots. */
export type Slots = ReadonlyMap<string, number>;

export function compileIndex(expr: IndexExpr, slots: Slots): CompiledIndex {
  const { constant } = expr;
  const terms = expr.terms.map(({ coefficient, atoms }) => ({
    coefficient,
    factors: atoms.map((atom) => compileAtom(atom, slots)),
  }));
  if (terms.length === 0) return () => constant;
  return (env) => {
    let total = constant;
    for (const { coefficient, factors } of terms) {
      let product = coefficient;
      for (const factor of factors) product *= factor(env);
      total += product;
    }
    return total;
  };
}

function compileAtom(atom: IndexAtom, slots: Slots): CompiledIndex {
  if (atom.kind === "variable") {
    const slot = slots.get(atom.name);
    invariant(slot !== undefined, () => `index variable ${atom.name} is unbound`);
    return (env) => env[slot]!;
  }
  const parts = atomOperands(atom).map((p) => compileIndex(p, slots));
  if (atom.kind === "min") return (env) => Math.min(...parts.map((p) => p(env)));
  if (atom.kind === "max") return (env) => Math.max(...parts.map((p) => p(env)));
  const [a, b] = parts as [CompiledIndex, CompiledIndex];
  return atom.kind === "floorDiv"
    ? (env) => Math.floor(a(env) / b(env))
    : (env) => positiveMod(a(env), b(env));
}

export function compileConditions(
  conditions: readonly Condition[],
  slots: Slots,
): (env: Environment) => boolean {
  const tests = conditions.map(({ kind, expr }) => ({
    isZero: kind === "zero",
    value: compileIndex(expr, slots),
  }));
  return (env) => {
    for (const { isZero, value } of tests) {
      const found = value(env);
      if (isZero ? found !== 0 : found < 0) return false;
    }
    return true;
  };
}
