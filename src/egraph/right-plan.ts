/**
 * How a rule's right side is built: nodes in the order of their making, each over columns of the match
 * and earlier nodes. The last node of each right side joins the class of its left root. Shared by
 * compile-applier.ts and interpret-applier.ts.
 */
import { invariant } from "../support/invariant.ts";
import type { RowLayout } from "./match-plan.ts";
import type { Pattern } from "./pattern.ts";
import type { HeadId, OpId, Vocabulary } from "./vocabulary.ts";

/** A column of the row, or a node made before. */
export type Operand =
  | { readonly kind: "column"; readonly column: number }
  | { readonly kind: "made"; readonly index: number };

/** Where the payload of a node comes from, when its head is not fixed. */
export type PayloadSource =
  | { readonly kind: "column"; readonly column: number }
  | { readonly kind: "computed"; readonly name: string };

export interface MakeStep {
  readonly op: OpId;
  /** -1 where the payload is not fixed. */
  readonly head: HeadId;
  readonly payload: PayloadSource | undefined;
  readonly operands: readonly Operand[];
  /** Left root whose class the node joins; -1 for an inner node. */
  readonly root: number;
}

export interface RightPlan {
  readonly steps: readonly MakeStep[];
  /** Right sides that are a bare variable: the column to unite with the root. */
  readonly bare: readonly { readonly root: number; readonly column: number }[];
}

export function planRight(
  right: readonly Pattern[],
  layout: RowLayout,
  vocabulary: Vocabulary,
): RightPlan {
  const steps: MakeStep[] = [];
  const columnOf = (name: string): number => {
    const column = layout.classColumns.get(name);
    invariant(column !== undefined, () => `?${name} is not bound`);
    return column;
  };
  const payloadOf = (name: string): PayloadSource => {
    const column = layout.payloadColumns.get(name);
    return column === undefined ? { kind: "computed", name } : { kind: "column", column };
  };
  const make = (pattern: Pattern, root: number): Operand => {
    if (pattern.kind === "variable") return { kind: "column", column: columnOf(pattern.name) };
    const operands = pattern.children.map((child) => make(child, -1));
    const op = vocabulary.op(pattern.op);
    const { payload } = pattern;
    const fixed = payload.kind === "key" ? vocabulary.payload(payload.key) : -1;
    const head = fixed >= 0 ? vocabulary.head(op, fixed, operands.length) : -1;
    const source = payload.kind === "variable" ? payloadOf(payload.name) : undefined;
    steps.push({ op, head, payload: source, operands, root });
    return { kind: "made", index: steps.length - 1 };
  };
  const bare: { root: number; column: number }[] = [];
  for (const [root, pattern] of right.entries()) {
    const made = make(pattern, root);
    if (made.kind === "column") bare.push({ root, column: made.column });
  }
  return { steps, bare };
}
