/** Parts of index expressions that proofs about them take apart and put together again. */
import {
  add,
  atomOperands,
  constant,
  constantValue,
  evaluate,
  type IndexAtom,
  type IndexExpr,
  type IndexTerm,
  mul,
  sub,
  toIndex,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { Assignment } from "./linear-facts.ts";

/** The value, `missing` variables being 0. */
export function valueAt(e: IndexExpr, at: Assignment, missing: readonly string[]): number {
  if (missing.length === 0) return evaluate(e, at);
  return evaluate(e, new Map([...at, ...missing.map((name) => [name, 0] as const)]));
}

/** The key of an expression without its constant. */
export function termsKey({ key, constant: c }: IndexExpr): string {
  return c === 0 ? key : key.slice(0, key.length - String(Math.abs(c)).length - 3);
}

export function hasProducts(e: IndexExpr): boolean {
  return e.terms.some((t) => t.atoms.length > 1);
}

/** What names the fewest variables first: it leads straight to the end of a proof. */
export function fewestVariables(exprs: readonly IndexExpr[]): readonly IndexExpr[] {
  const counted = exprs.map((e) => [e, variablesOf(e).size] as const);
  return counted.sort(([, a], [, b]) => a - b).map(([e]) => e);
}

/** What is left between a variable and the end of its range. */
export function roomOf(name: string, extent: IndexExpr): IndexExpr {
  return sub(extent, add(variable(name), 1));
}

export function mentions(atom: IndexAtom, name: string): boolean {
  if (atom.kind === "variable") return atom.name === name;
  return atomOperands(atom).some((o) => variablesOf(o).has(name));
}

export function soleAtom(term: IndexTerm): IndexAtom | undefined {
  return term.atoms.length === 1 ? term.atoms[0] : undefined;
}

export function productOf(coefficient: number, atoms: readonly IndexAtom[]): IndexExpr {
  if (atoms.length === 0) return constant(coefficient);
  const key = atoms.map((a) => a.key).join("*");
  const unit: IndexExpr = { constant: 0, terms: [{ coefficient: 1, atoms, key }], key };
  return mul(coefficient, unit);
}

/** floorDiv(n, d) + rest >= 0 means n + d rest >= 0, and rest - floorDiv(n, d) >= 0 likewise. */
export function withoutDivision(e: IndexExpr): readonly IndexExpr[] {
  for (const term of e.terms) {
    const atom = soleAtom(term);
    if (atom?.kind !== "floorDiv" || Math.abs(term.coefficient) !== 1) continue;
    const { numerator, denominator } = atom;
    if (constantValue(denominator) === undefined) continue;
    const rest = mul(denominator, replaceTerm(e, term, constant(0)));
    const whole =
      term.coefficient === 1 ? add(rest, numerator) : add(sub(rest, numerator), denominator, -1);
    return [whole];
  }
  return [];
}

export function replaceTerm(e: IndexExpr, term: IndexTerm, by: IndexExpr): IndexExpr {
  const others = e.terms.filter((t) => t !== term).map((t) => productOf(t.coefficient, t.atoms));
  return add(toIndex(e.constant), ...others, by);
}
