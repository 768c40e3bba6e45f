/**
 * A rewrite rule over tensors as data: one identity, its numeric class, and by name what must hold and
 * what is computed. Patterns are those of egraph/pattern.ts, in which an elementwise operator has its
 * own name: `(add ?x ?y)`, and `(map[?f] ?x)` is any of one operand. The where-text is a list of
 *
 *   condition(arguments)            a row of conditions.ts
 *   name = function(arguments)      attributes for `[?name]` on the right: a row of attributes.ts
 *
 * A rule does not apply where its right side has no type or another type than the left: shapes with
 * symbols may leave that open. The proofs (prove/) ask for more: there it must never happen.
 */
import type { NodeId } from "../egraph/index.ts";
import type { NumericClass } from "../semantics/numeric-class.ts";
import type { Site } from "./site.ts";

export interface RuleRow {
  readonly name: string;
  readonly numerics: NumericClass;
  readonly left: string;
  /** A pattern, or what writes the right side. */
  readonly right: string | BuildRight;
  readonly where?: string;
  /** Further terms that a proof needs beside the left side, over the same variables. */
  readonly beside?: readonly string[];
  /** What a proof instantiates in place of the left side, where that alone rarely meets the conditions. */
  readonly sample?: string;
  /** Of a rule that approximates: the largest error of an element over the largest element, or over 1. */
  readonly errorBound?: number;
}

export type BuildRight = (site: Site) => NodeId | undefined;

/** Shorthand for the tables: one identity a line. */
export function row(
  name: string,
  numerics: NumericClass,
  left: string,
  right: string | BuildRight,
  where?: string,
): RuleRow {
  return { name, numerics, left, right, ...(where !== undefined && { where }) };
}

/** A row with a term to prove it on. */
export function sampled(rule: RuleRow, sample: string): RuleRow {
  return { ...rule, sample };
}

export interface Clause {
  /** What it defines; absent for a condition. */
  readonly name?: string;
  readonly call: string;
  readonly args: readonly string[];
}

const clauseForm = /^(?:(\w+)\s*=\s*)?(\w+)\(([^)]*)\)$/;

export function clausesOf(where: string | undefined): readonly Clause[] {
  const texts = (where ?? "").split(";").map((t) => t.trim());
  return texts
    .filter((t) => t !== "")
    .map((text) => {
      const match = clauseForm.exec(text);
      if (!match) return { call: text, args: [] };
      const [, name, call, args] = match;
      const list = args!.split(",").map((a) => a.trim());
      return {
        ...(name !== undefined && { name }),
        call: call!,
        args: list.filter((a) => a !== ""),
      };
    });
}
