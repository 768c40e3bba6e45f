/** Ops whose operands are all constant, computed at import through their references. */
import { type AnyAttrs, attrParts } from "../../../graph/attr-schema.ts";
import type { OpAttrs, OpKind, TensorType } from "../../../graph/graph.ts";
import { infoOf, schemaOf } from "../../../graph/op-table.ts";
import type { CoreOpKind } from "../../../semantics/core-ops.ts";
import { constantValue, type IndexExpr } from "../../../semantics/index-expr.ts";
import { runReference } from "../../../semantics/references/references.ts";
import { elementCount } from "../../../semantics/shape.ts";
import { toRef } from "../../../semantics/tensor.ts";
import { DiagnosticError } from "../../../support/diagnostic.ts";
import { invariant } from "../../../support/invariant.ts";
import type { Origin } from "./emitter.ts";
import { constantFromRef, type Operand } from "./operand.ts";

/** Results that grow beyond their operands are only computed up to this size. */
export const smallResult = 4096;

export interface FoldCall<K extends OpKind> {
  readonly op: K;
  readonly inputs: readonly Operand[];
  readonly attrs: OpAttrs[K];
}

export interface FoldContext {
  /** Elements of each result. */
  readonly counts: readonly number[];
  readonly types: readonly TensorType[];
  readonly origin: Origin;
  readonly budget: FoldBudget;
}

/** What may be computed at import, so that no model keeps it busy: one for the whole model. */
export interface FoldBudget {
  /** Elements of operands and of results up to which one op is computed. */
  readonly elements: number;
  /** Arithmetic operations that are left, over all ops. */
  operations: number;
}

/** Arithmetic operations that one import spends on constants: about a second of references. */
export const foldOperations = 2 ** 28;

/** Whether the budget covers the op; if so it is charged. */
function charge<K extends OpKind>(
  { op, inputs, attrs }: FoldCall<K>,
  { types, budget }: FoldContext,
  moved: number,
): boolean {
  const call = { inputs: inputs.map((o) => o.type), outputs: types, attrs, ranges: new Map() };
  const flops = infoOf(op).flops?.(call);
  const cost = moved + (flops ? (constantValue(flops) ?? Infinity) : 0);
  if (cost > budget.operations) return false;
  budget.operations -= cost;
  return true;
}

/** The results, or undefined where the op had better stay in the graph. */
export function foldConstants<K extends OpKind>(
  fold: FoldCall<K>,
  context: FoldContext,
): readonly Operand[] | undefined {
  const { op, inputs, attrs } = fold;
  const { counts, origin, budget } = context;
  const { dims } = attrParts(schemaOf(op), attrs as AnyAttrs);
  if (dims.some((d) => constantValue(d) === undefined)) return undefined;
  const before = inputs.map((o) =>
    elementCount(o.kind === "value" ? [] : o.type.shape.map((d) => d.constant)),
  );
  const [read, made] = [before, counts].map((c) => c.reduce((a, b) => a + b, 0)) as [
    number,
    number,
  ];
  if (Math.max(read, made) > budget.elements) return undefined;
  if (made > smallResult && made > 2 * read) return undefined;
  if (!charge(fold, context, read + made)) return undefined;
  const tensors = inputs.map((o) => {
    invariant(o.kind === "constant", () => "only constants fold");
    return toRef(o.source.read());
  });
  const evaluate = (e: IndexExpr): number => e.constant;
  const call = { kind: op as CoreOpKind, attrs: attrs as never, inputs: tensors, evaluate };
  const results = runReference(call, {
    runSubgraph: () => ({ ok: false, diagnostics: [] }),
    subgraphOutputTypes: () => [],
  });
  if (results.ok) return results.value.map((r) => constantFromRef(r));
  const { at } = origin;
  throw new DiagnosticError(results.diagnostics.map((d) => ({ ...d, at })));
}
