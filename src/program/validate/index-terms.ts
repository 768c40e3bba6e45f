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

const mostQuotientTerms = 8;

/** e / d where that is an expression without division, by dividing polynomials; else undefined. */
export function exactQuotient(e: IndexExpr, d: IndexExpr): IndexExpr | undefined {
  const byConstant = constantValue(d);
  const parts = d.terms.map((term) => ({ term, degree: term.atoms.length }));
  const lead = parts.sort((a, b) => b.degree - a.degree)[0]?.term;
  let quotient = constant(0);
  let rest = e;
  for (let i = 0; i < mostQuotientTerms && rest.key !== "0"; i++) {
    const next = byConstant === undefined ? leading(rest, lead!) : constantPart(rest, byConstant);
    if (!next) return undefined;
    quotient = add(quotient, next);
    rest = sub(rest, mul(next, d));
  }
  return rest.key === "0" ? quotient : undefined;
}

/** The product that takes the divisor's leading term to a term of the rest. */
function leading(rest: IndexExpr, lead: IndexTerm): IndexExpr | undefined {
  const degree = Math.max(0, ...rest.terms.map((t) => t.atoms.length));
  for (const term of rest.terms) {
    if (term.atoms.length < degree || term.coefficient % lead.coefficient !== 0) continue;
    const left = [...term.atoms];
    const isPart = lead.atoms.every(({ key }) => {
      const at = left.findIndex((a) => a.key === key);
      if (at >= 0) left.splice(at, 1);
      return at >= 0;
    });
    if (isPart) return productOf(term.coefficient / lead.coefficient, left);
  }
  return undefined;
}

function constantPart(rest: IndexExpr, divisor: number): IndexExpr | undefined {
  const [term] = rest.terms;
  if (divisor === 0) return undefined;
  const coefficient = (term?.coefficient ?? rest.constant) / divisor;
  return Number.isInteger(coefficient) ? productOf(coefficient, term?.atoms ?? []) : undefined;
}
