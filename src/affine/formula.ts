/**
 * Presburger formulas over named variables, as the notation spells them, and their disjunctive normal
 * form: a list of conjunctions with their existential names, each of which becomes one piece.
 * Negation is pushed down to comparisons; a negated quantifier is refused (AFF003).
 */
import { reject } from "../support/diagnostic.ts";
import type { Constraint } from "./build.ts";
import { type AffineLike, add, affine, replaceVariables, scale } from "./expression.ts";

export type Formula =
  | { readonly kind: "and" | "or"; readonly parts: readonly Formula[] }
  | { readonly kind: "not"; readonly body: Formula }
  | { readonly kind: "exists"; readonly names: readonly string[]; readonly body: Formula }
  /** `side` has exactly one solution in the names, whatever the others are; with it, `body` holds. */
  | {
      readonly kind: "let";
      readonly names: readonly string[];
      readonly side: Formula;
      readonly body: Formula;
    }
  | { readonly kind: "constraint"; readonly constraint: Constraint };

export const alwaysTrue: Formula = { kind: "and", parts: [] };
export const alwaysFalse: Formula = { kind: "or", parts: [] };

export function conjunction(parts: readonly Formula[]): Formula {
  return parts.length === 1 ? parts[0]! : { kind: "and", parts };
}

/** All constraints hold for some values of the existential names. */
export interface Conjunction {
  readonly existentials: readonly string[];
  readonly constraints: readonly Constraint[];
}

/** More conjunctions than this in one formula are refused (AFF003). */
const mostConjunctions = 4096;

/** The disjunctive normal form of a formula; existential names are made distinct. */
export function normalForm(formula: Formula): Conjunction[] {
  let fresh = 0;
  return expand(formula, false, () => `e$${fresh++}`);
}

function expand(formula: Formula, negated: boolean, fresh: () => string): Conjunction[] {
  switch (formula.kind) {
    case "not":
      return expand(formula.body, !negated, fresh);
    case "constraint":
      return negated ? violations(formula.constraint) : [single(formula.constraint)];
    case "exists":
      return negated ? refuseNegatedExists() : expandExists(formula, fresh);
    case "let": {
      const { names, side, body } = formula;
      const held: Formula = negated ? { kind: "not", body } : body;
      return expandExists(
        { kind: "exists", names, body: { kind: "and", parts: [side, held] } },
        fresh,
      );
    }
    case "and":
    case "or": {
      const parts = formula.parts.map((p) => expand(p, negated, fresh));
      return (formula.kind === "or") === negated ? product(parts) : parts.flat();
    }
  }
}

function single(constraint: Constraint): Conjunction {
  return { existentials: [], constraints: [constraint] };
}

function refuseNegatedExists(): never {
  return reject("AFF003", "a negated `exists` is not supported in the notation", {
    help: "state the set without the negation and use subtract",
  });
}

/** not (e >= 0) is -e - 1 >= 0; not (e = 0) is e - 1 >= 0 or -e - 1 >= 0. */
function violations(constraint: Constraint): Conjunction[] {
  const minusOne = (e: AffineLike): Constraint => ({
    kind: "inequality",
    expression: add(e, -1),
  });
  const opposite = scale(-1, constraint.expression);
  if (constraint.kind === "inequality") return [single(minusOne(opposite))];
  return [single(minusOne(constraint.expression)), single(minusOne(opposite))];
}

function expandExists(
  formula: Extract<Formula, { kind: "exists" }>,
  fresh: () => string,
): Conjunction[] {
  const renamed = Object.fromEntries(formula.names.map((n) => [n, affine(fresh())]));
  const names = formula.names.map((n) => renamed[n]!.terms[0]!.atom as string);
  return expand(formula.body, false, fresh).map((c) => ({
    existentials: [...names, ...c.existentials],
    constraints: c.constraints.map((k) => ({
      kind: k.kind,
      expression: replaceVariables(k.expression, renamed),
    })),
  }));
}

function product(parts: readonly Conjunction[][]): Conjunction[] {
  // What there is but one case of is common to all: long conjunctions are of these.
  const common = parts.flatMap((part) => (part.length === 1 ? part : []));
  let out: Conjunction[] = [
    {
      existentials: common.flatMap((c) => c.existentials),
      constraints: common.flatMap((c) => c.constraints),
    },
  ];
  for (const part of parts) {
    if (part.length === 1) continue;
    out = out.flatMap((a) =>
      part.map((b) => ({
        existentials: [...a.existentials, ...b.existentials],
        constraints: [...a.constraints, ...b.constraints],
      })),
    );
    if (out.length > mostConjunctions) {
      reject("AFF003", `the formula has more than ${mostConjunctions} cases`);
    }
  }
  return out;
}
