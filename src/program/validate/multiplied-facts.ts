/**
 * Facts about products. A fact c >= 0 times what is not negative is a fact too; where it is multiplied by what a
 * product of a goal has beside a term of c, it bounds that product by others (Handelman, "Representing polynomials
 * by positive linear functions on compact convex polyhedra", 1988). In: the goal and facts, each >= 0. Out: more
 * facts, in which an integer solver may take each product for a variable of its own.
 */
import {
  constant,
  type IndexAtom,
  type IndexExpr,
  type IndexTerm,
  mul,
} from "../../semantics/index-expr.ts";
import { type IndexRange, rangeOf } from "../../semantics/index-range.ts";
import { productOf } from "./index-terms.ts";

type Ranges = ReadonlyMap<string, IndexRange>;

/** Beyond so many facts the solver does not come to an end within its work. */
const mostRows = 40;

/**
 * Facts times what makes, of one of their negative terms, a product that the goal takes away; what such a fact
 * has to spare is taken away in turn.
 */
export function multiplied(
  goal: IndexExpr,
  facts: readonly IndexExpr[],
  ranges: Ranges,
): readonly IndexExpr[] {
  const rows = new Map<string, IndexExpr>();
  const pending = goal.terms.filter((t) => isProduct(t) && t.coefficient < 0);
  const known = new Set(pending.map((t) => t.key));
  const plain = facts.filter((f) => f.terms.every((t) => t.atoms.every(isVariable)));
  for (let term = pending.shift(); term; term = pending.shift()) {
    for (const fact of plain) {
      for (const part of fact.terms) {
        const factor = part.coefficient < 0 && cofactor(term, part, ranges);
        if (!factor) continue;
        const row = mul(factor, fact);
        if (rows.has(row.key)) continue;
        if (rows.size === mostRows) return [...rows.values()];
        rows.set(row.key, row);
        const news = row.terms.filter(
          (t) => isProduct(t) && t.coefficient > 0 && !known.has(t.key),
        );
        for (const t of news) known.add(t.key);
        pending.push(...news);
      }
    }
  }
  return [...rows.values()];
}

function isVariable({ kind }: IndexAtom): boolean {
  return kind === "variable";
}

function isProduct(term: IndexTerm): boolean {
  return term.atoms.length > 1;
}

/** The product of the atoms of `term` beside those of `part`; undefined where it may be negative. */
export function cofactor(term: IndexTerm, part: IndexTerm, ranges: Ranges): IndexExpr | undefined {
  if (term.key === part.key) return one;
  if (part.atoms.length >= term.atoms.length) return undefined;
  const rest = [...term.atoms];
  for (const { key } of part.atoms) {
    const at = rest.findIndex((a) => a.key === key);
    if (at < 0) return undefined;
    rest.splice(at, 1);
  }
  const factor = productOf(1, rest);
  return rangeOf(factor, ranges).min >= 0 ? factor : undefined;
}

const one = constant(1);
