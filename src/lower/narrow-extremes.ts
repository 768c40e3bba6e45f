/**
 * Extremes of floats of 16 bits, which nests fold in f32 (region/builders/reduction.ts): on a machine that compares
 * two such floats in one instruction, what a thread has of them is accumulated as they are, and widened when its
 * elements are folded. Extremes are exact either way.
 */
import type { Expr } from "../program/statement.ts";
import type { Statement } from "../region/nest.ts";
import { dtypes, isFloatDType } from "../semantics/dtype.ts";
import { type Monoid, simpleMonoid } from "../semantics/monoids.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";

/** What a thread folds, and by what. */
export interface Accumulated {
  readonly body: readonly ScalarExpr[];
  readonly monoid: Monoid;
}

/** @param comparesPairs whether the machine compares pairs of floats of 16 bits */
export function accumulatedAs(
  { body }: Pick<Statement, "body">,
  monoid: Monoid,
  { lanes, comparesPairs }: { readonly lanes: number; readonly comparesPairs: boolean },
): Accumulated {
  const { name } = monoid;
  const [element] = body;
  if (!comparesPairs || lanes % 2 !== 0 || (name !== "max" && name !== "min")) {
    return { body, monoid };
  }
  if (element?.kind !== "cast" || element.dtype !== "f32") return { body, monoid };
  const { dtype } = element.operand;
  if (!isFloatDType(dtype) || dtypes[dtype].bits !== 16) return { body, monoid };
  return { body: [element.operand], monoid: simpleMonoid(name, dtype) };
}

/** What was accumulated, in the types of the fold. */
export function asFolded(values: readonly Expr[], { components }: Monoid): readonly Expr[] {
  return values.map((operand, i): Expr => {
    const { dtype } = components[i]!;
    const { lanes } = operand;
    return operand.dtype === dtype
      ? operand
      : { kind: "cast", dtype, lanes, saturate: false, operand };
  });
}
