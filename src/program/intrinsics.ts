/**
 * Intrinsics: instructions as rows of data. A row states operands with scope and layout, the
 * capability of the target it needs, when its effect may be seen, and a reference body, so that the
 * interpreter executes it and the validator orders it without knowing its name. Adding an instruction
 * is a row here and its spelling in one emitter.
 *
 * The rows: value-rows.ts (lanewise arithmetic) and tile-rows.ts (copies and matrix instructions);
 * looked up by name through intrinsic-table.ts.
 */
import type { DType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";
import type { Scope } from "./program.ts";
import type { Statement } from "./statement.ts";

/**
 * A value intrinsic: lanewise, sync. Lane l of the result depends on `ratios[o]` lanes of operand o,
 * those from `l * ratios[o]` on (1 for plain lanewise ones, 4 for a dot product of bytes). The
 * arguments of `body` are these lanes, operand after operand.
 */
export interface ValueIntrinsic {
  readonly kind: "value";
  readonly name: string;
  readonly needs: string;
  readonly operands: readonly DType[];
  readonly ratios: readonly number[];
  readonly result: DType;
  readonly lanes: number;
  readonly body: ScalarExpr;
  /** `body` is add(mul(x, y), z) rounded once instead of after each operator. */
  readonly fused: boolean;
}

/**
 * How the elements of a collective operand are dealt out to the registers of the threads of the
 * group: element (e0, e1) stands in thread `thread` of the group, at element `register` of the
 * thread's tile. Both over e0, e1.
 */
export interface FragmentMap {
  readonly extents: readonly number[];
  readonly thread: IndexExpr;
  readonly register: IndexExpr;
}

export interface TileOperand {
  readonly name: string;
  readonly access: "read" | "write" | "readWrite";
  readonly scopes: readonly Scope[];
  /** `any`: one dtype for all operands that say so. */
  readonly dtype: DType | "any";
  /** Extents of the tile as the statement gives it; per thread for fragments. */
  readonly extents: readonly number[] | "any";
  /**
   * Order of the elements that the instruction expects: plain row-major, a swizzle in bytes that the
   * buffer has to state, one as wide as the buffer's rows (`swizzled`), whatever the buffer states (`buffer`),
   * or a fragment over threads.
   */
  readonly layout:
    | "rowMajor"
    | "swizzle32"
    | "swizzle64"
    | "swizzle128"
    | "swizzled"
    | "buffer"
    | "fragment";
  readonly fragment?: FragmentMap;
  /** The tile may hang over the buffer's edge: elements outside read as zero or are not written. */
  readonly mayHangOver: boolean;
}

/**
 * A statement intrinsic on tiles. `body` is a program over buffers named like the operands, run once
 * for each value of the index variables e0, e1, … below the extents of the first tile (of the whole
 * fragment where it is one); indices are relative to each tile. Collective ones run once per group of
 * threads: all threads of a warp (32 consecutive ones), role copy or role meet there.
 */
export interface TileIntrinsic {
  readonly kind: "tile";
  readonly name: string;
  readonly needs: string;
  readonly operands: readonly TileOperand[];
  readonly collective: "thread" | "warp" | "copy" | "role";
  readonly completion: "sync" | "group" | "signals";
  /** It writes into the shared memory of the instance of the cluster that its completion names. */
  readonly toPeer?: true;
  /**
   * `async`: accesses memory and shared scope past the ordinary path of loads and stores, so that a
   * fence must stand between ordinary writes and it (PTX ISA, "Async proxy").
   */
  readonly proxy: "ordinary" | "async";
  readonly body: readonly Statement[];
}

export type Intrinsic = ValueIntrinsic | TileIntrinsic;
