/**
 * What the compiler knows of an op: a row of the op table (op-table.ts). Passes read these rows,
 * never op names. Inference throws its diagnostics (`refuse`) to whoever adds or checks the node.
 */
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { IndexRange, IndexRanges } from "../semantics/index-range.ts";
import type { ScalarOp } from "../semantics/scalar-expr.ts";
import type { AttrSchema } from "./attr-schema.ts";
import type { CompositeAttrs } from "./composites.ts";
import type { OpAttrs, OpKind, TensorType } from "./graph.ts";

/** What inference may ask and tell. */
export interface InferContext {
  /** Ranges of the symbols in scope. */
  readonly ranges: IndexRanges;
  /** The node, for diagnostics. */
  readonly at: string;
  /** Records that two extents, which cannot be proved equal or different, must be equal. */
  requireEqual(left: IndexExpr, right: IndexExpr): void;
  /** A new symbol for an extent that only the data decide. */
  freshSymbol(hint: string, range: IndexRange): IndexExpr;
  /** Types of a composite's outputs, from its definition. */
  inferDefinition<K extends keyof CompositeAttrs>(
    op: K,
    inputs: readonly TensorType[],
    attrs: CompositeAttrs[K],
  ): readonly TensorType[];
}

/** A use of an op: operand and result types with attributes. */
export interface OpCall<K extends OpKind> {
  readonly inputs: readonly TensorType[];
  readonly outputs: readonly TensorType[];
  readonly attrs: OpAttrs[K];
  readonly ranges: IndexRanges;
}

export interface OpTraits {
  /** One scalar operator per element, operands broadcast. */
  readonly elementwise?: ScalarOp;
  /** Each output element is a copy of one operand element at a position that the shapes decide. */
  readonly dataMovement?: true;
  /** Each output element is the operand's element in another type. */
  readonly conversion?: true;
  /** Elements of operand 1 are positions along these axes of operand 0. */
  readonly positions?: readonly number[];
  /** Elements of this operand are put into operand 0: where it has none, the result is operand 0. */
  readonly updates?: number;
  /** Operand 0 is reduced over these axes. */
  readonly reduction?: readonly number[];
  /** Operands are multiplied and summed. */
  readonly contraction?: true;
  /** `jointly`: f(a x + b y) = a f(x) + b f(y) over all operands together; `each`: in each alone. */
  readonly linear?: "jointly" | "each";
  /** The operands may be exchanged. */
  readonly commutative?: true;
  readonly hasSubgraph?: true;
  /** Some output extent depends on element values. */
  readonly dataDependentShape?: true;
  /** Data decide how much is read for one element, without a bound: no nest says it. */
  readonly dataDependentWork?: true;
  /** Different nodes with equal attributes and operands may not be merged. */
  readonly random?: true;
  /** Defined by other ops (composite-table.ts). */
  readonly composite?: true;
}

export interface OpInfo<K extends OpKind> {
  /** Least and greatest number of operands. */
  readonly arity: readonly [number, number];
  readonly schema: AttrSchema<OpAttrs[K]>;
  /** Types of the outputs; operand count and attribute types are already checked. */
  readonly infer: (
    inputs: readonly TensorType[],
    attrs: OpAttrs[K],
    ctx: InferContext,
  ) => readonly TensorType[];
  readonly traits: OpTraits | ((attrs: OpAttrs[K], inputs: readonly TensorType[]) => OpTraits);
  /** Arithmetic operations; absent: none. Conventions in counts.ts. */
  readonly flops?: (call: OpCall<K>) => IndexExpr;
  /** Bytes of operands that any implementation must read; absent: all of every operand. */
  readonly bytesRead?: (call: OpCall<K>) => IndexExpr;
}

/** Rows for some of the ops. */
export type OpRows<K extends OpKind> = { readonly [P in K]: OpInfo<P> };
