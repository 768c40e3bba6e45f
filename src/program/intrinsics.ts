/**
 * Intrinsics: instructions as rows of data. A row states operands with scope and layout, the
 * capability of the target it needs, when its effect may be seen, and a reference body, so that the
 * interpreter executes it and the validator orders it without knowing its name. Adding an instruction
 * is a row here and its spelling in one emitter.
 */
import type { DType } from "../semantics/dtype.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";
import type { Scope } from "./program.ts";
import type { Statement } from "./statement.ts";

/** A value intrinsic: lanewise, sync; arguments of `body` are the operands' lanes. */
export interface ValueIntrinsic {
  readonly kind: "value";
  readonly name: string;
  readonly needs: string;
  readonly operands: readonly DType[];
  readonly result: DType;
  readonly lanes: number;
  readonly body: ScalarExpr;
  /** The result is rounded once (fma) instead of after each operator of the body. */
  readonly fused: boolean;
}

export interface TileOperand {
  readonly name: string;
  readonly access: "read" | "write" | "readWrite";
  readonly scopes: readonly Scope[];
  readonly dtype: DType;
  readonly extents: readonly number[] | "any";
  /** Order of the elements that the instruction expects: plain row-major or a swizzle in bytes. */
  readonly layout: "rowMajor" | "swizzle32" | "swizzle64" | "swizzle128" | "fragment";
}

/**
 * A statement intrinsic on tiles. `body` is a program over buffers named like the operands and index
 * variables e0, e1, … bound to the extents of the first tile; collective ones run once per group of
 * threads.
 */
export interface TileIntrinsic {
  readonly kind: "tile";
  readonly name: string;
  readonly needs: string;
  readonly operands: readonly TileOperand[];
  readonly collective: "thread" | "warp" | "copy" | "role";
  readonly completion: "sync" | "group" | "signals";
  readonly body: readonly Statement[];
}

export type Intrinsic = ValueIntrinsic | TileIntrinsic;
