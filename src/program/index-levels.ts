/**
 * At which level of a kernel's loops an index expression is settled, for emitters that compute sums as
 * far out as they can and step those that grow by the same amount every trip.
 */
import * as ix from "../semantics/index-expr.ts";

/** Level of a variable that is bound; undefined: it will be bound inside, deeper than every open level. */
export type LevelOfVariable = (name: string) => number | undefined;

/** The level of the innermost variable of a term. */
export function levelOfTerm(term: ix.IndexTerm, levelOf: LevelOfVariable): number {
  let level = 0;
  for (const atom of term.atoms) level = Math.max(level, levelOfAtom(atom, levelOf));
  return level;
}

function levelOfAtom(atom: ix.IndexAtom, levelOf: LevelOfVariable): number {
  if (atom.kind === "variable") return levelOf(atom.name) ?? Number.POSITIVE_INFINITY;
  let level = 0;
  for (const part of ix.atomOperands(atom)) {
    for (const term of part.terms) level = Math.max(level, levelOfTerm(term, levelOf));
  }
  return level;
}

/** The growth of `sum` per trip of the loop over `name` at `level`, if it is the same in all trips. */
export function growthPerTrip(
  sum: ix.IndexExpr,
  name: string,
  level: number,
  levelOf: LevelOfVariable,
): ix.IndexExpr | undefined {
  const parts: ix.IndexExpr[] = [];
  for (const term of sum.terms) {
    if (levelOfTerm(term, levelOf) < level) continue;
    const rest = term.atoms.filter((a) => !(a.kind === "variable" && a.name === name));
    if (rest.length !== term.atoms.length - 1) return undefined;
    const factors = rest.map((a) => sumOfTerms([{ coefficient: 1, atoms: [a], key: a.key }], 0));
    const factor = ix.mul(term.coefficient, ...factors);
    if (factor.terms.some((t) => levelOfTerm(t, levelOf) >= level)) return undefined;
    parts.push(factor);
  }
  return ix.add(...parts);
}

/** The sum of some terms and a constant. */
export function sumOfTerms(terms: readonly ix.IndexTerm[], constant: number): ix.IndexExpr {
  return ix.fromTerms(constant, terms);
}
