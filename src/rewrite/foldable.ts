/**
 * Whether a node over constants is computed ahead: what a graph with it may then count on. The limits are
 * those of memory and time that folding may take; a copy that grows (a broadcast) stays in the program.
 */
import { type AnyAttrs, attrParts } from "../graph/attr-schema.ts";
import type { OpAttrs, OpKind, TensorType } from "../graph/graph.ts";
import { infoOf, isComposite, schemaOf } from "../graph/op-table.ts";
import { elementsOf } from "../graph/tensor-type.ts";
import { constantValue } from "../semantics/index-expr.ts";

export interface FoldCall {
  readonly op: OpKind;
  readonly attrs: AnyAttrs;
  readonly inputs: readonly TensorType[];
  readonly outputs: readonly TensorType[];
}

/** Elements of an operand or result, and arithmetic operations of one node. */
const mostElements = 2 ** 27;
const mostFlops = 2 ** 31;
/** Copies may grow up to this many elements; those that add what is new may grow further. */
const smallElements = 1024;
const growing: ReadonlySet<OpKind> = new Set(["concat", "pad"] as const);

export function isFoldable({ op, attrs, inputs, outputs }: FoldCall): boolean {
  if (isComposite(op) || inputs.length === 0) return false;
  const info = infoOf<OpKind>(op);
  const traits =
    typeof info.traits === "function" ? info.traits(attrs as OpAttrs[OpKind], inputs) : info.traits;
  if (traits.random || traits.dataDependentShape || traits.hasSubgraph) return false;
  const { dims } = attrParts(schemaOf(op), attrs);
  if (dims.some((d) => constantValue(d) === undefined)) return false;
  const [read, written] = [inputs, outputs].map((types) =>
    types.map((t) => constantValue(elementsOf(t)) ?? Infinity),
  ) as [number[], number[]];
  if ([...read, ...written].some((n) => n > mostElements)) return false;
  const grows = Math.max(...written) > Math.max(smallElements, ...read);
  if (grows && traits.dataMovement && !growing.has(op)) return false;
  const call = { inputs, outputs, attrs: attrs as OpAttrs[OpKind], ranges: new Map() };
  const flops = info.flops ? constantValue(info.flops(call)) : 0;
  return flops !== undefined && flops <= mostFlops;
}
