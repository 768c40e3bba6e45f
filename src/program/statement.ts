/**
 * Statements and expressions of a kernel: structured loops over typed scalars and short vectors.
 *
 * Index variables (loops, roles, grid axes, repeat variables, integer lets) and parameters appear in
 * index expressions; values appear in expressions. A vector of `lanes` elements is loaded and stored
 * contiguously along the last axis of a buffer, its index names lane 0.
 */
import type { Condition } from "../semantics/condition.ts";
import type { DType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { ScalarOp } from "../semantics/scalar-expr.ts";

export interface ValueType {
  readonly dtype: DType;
  readonly lanes: number;
}

export type Expr = ValueType &
  (
    | { readonly kind: "literal"; readonly value: number | bigint }
    /** An index expression as a value (lane l of a vector: expr + l * laneStep). */
    | { readonly kind: "index"; readonly expr: IndexExpr; readonly laneStep: number }
    /**
     * One element, or `lanes` contiguous ones along the last axis. Where the guard fails nothing is
     * read and every lane is `fill`.
     */
    | {
        readonly kind: "load";
        readonly buffer: string;
        readonly index: readonly IndexExpr[];
        readonly guard: readonly Condition[];
        readonly fill: number | bigint;
      }
    /** A value bound by let. */
    | { readonly kind: "local"; readonly name: string }
    /** Lanewise; operands have the lanes of the result. */
    | { readonly kind: "apply"; readonly op: ScalarOp; readonly operands: readonly Expr[] }
    | { readonly kind: "cast"; readonly saturate: boolean; readonly operand: Expr }
    /** A scalar in every lane, or a short vector again and again. */
    | { readonly kind: "splat"; readonly operand: Expr }
    /** A vector from `lanes` scalars. */
    | { readonly kind: "pack"; readonly operands: readonly Expr[] }
    | { readonly kind: "extract"; readonly operand: Expr; readonly lane: number }
    /** A value intrinsic (intrinsics.ts) such as fma; sync, no memory effect. */
    | { readonly kind: "call"; readonly intrinsic: string; readonly operands: readonly Expr[] }
  );

/**
 * An operand of a statement intrinsic: a tile of a buffer given by its first element and extents, or
 * a value.
 */
export type IntrinsicOperand =
  | {
      readonly kind: "tile";
      readonly buffer: string;
      readonly index: readonly IndexExpr[];
      /** Extents along the last axes of the buffer; leading axes have extent 1. */
      readonly extents: readonly number[];
    }
  | { readonly kind: "value"; readonly value: Expr };

/** When the effect of an asynchronous intrinsic may be seen. */
export type Completion =
  | { readonly kind: "sync" }
  /** After a waitGroup of the named group that leaves it no longer pending. */
  | { readonly kind: "group"; readonly group: string }
  /**
   * After a wait on the phase of the counter that the transferred bytes complete. With scope
   * `cluster` the copy lands at the same place of every instance of the cluster and counts on each
   * one's own counter (multicast); with `peer`, in the instance of that rank alone, on its counter.
   */
  | {
      readonly kind: "signals";
      readonly counter: string;
      readonly index: readonly IndexExpr[];
      readonly scope: "instance" | "cluster";
      readonly peer?: IndexExpr;
    };

/** How the iterations of a loop run: in order, copied out, or dealt out over a grid axis. */
export type LoopMode =
  | { readonly kind: "serial" }
  | { readonly kind: "unrolled" }
  /**
   * Contiguous chunks of ceil(extent / instances) iterations per instance of the axis. Where a program cannot
   * tell (dealing.ts), threads may take smaller ones as they come.
   */
  | { readonly kind: "grid"; readonly axis: string };

export type Statement =
  /** 0 <= variable < extent */
  | {
      readonly kind: "for";
      readonly variable: string;
      readonly extent: IndexExpr;
      readonly mode: LoopMode;
      readonly body: readonly Statement[];
    }
  | {
      readonly kind: "if";
      readonly conditions: readonly Condition[];
      readonly then: readonly Statement[];
      readonly else: readonly Statement[];
    }
  /** As `if`, on a bool scalar. */
  | {
      readonly kind: "when";
      readonly condition: Expr;
      readonly then: readonly Statement[];
      readonly else: readonly Statement[];
    }
  /** Binds a value for the rest of the enclosing body. */
  | { readonly kind: "let"; readonly name: string; readonly value: Expr }
  /**
   * Binds an integer scalar as an index variable. It lies in 0 <= name < extent: `proved` by the
   * maker, or `checked` when run (a value outside ends the run with an error). Negative values count
   * from the end when `wraps`.
   */
  | {
      readonly kind: "letIndex";
      readonly name: string;
      readonly value: Expr;
      readonly extent: IndexExpr;
      readonly wraps: boolean;
      readonly range: "proved" | "checked";
    }
  /** Stores value.lanes contiguous elements along the last axis. */
  | {
      readonly kind: "store";
      readonly buffer: string;
      readonly index: readonly IndexExpr[];
      readonly value: Expr;
    }
  | {
      readonly kind: "intrinsic";
      readonly intrinsic: string;
      readonly operands: readonly IntrinsicOperand[];
      readonly completion: Completion;
    }
  /** Closes the asynchronous work issued so far under `group` into one batch. */
  | { readonly kind: "commitGroup"; readonly group: string }
  /** Blocks until at most `pending` batches of the group are unfinished. */
  | { readonly kind: "waitGroup"; readonly group: string; readonly pending: number }
  /** monotone: until counter >= value; phase: until the phase with parity value mod 2 has completed. */
  | {
      readonly kind: "wait";
      readonly counter: string;
      readonly index: readonly IndexExpr[];
      readonly value: IndexExpr;
    }
  /** `scope`: whose counter: this instance's, or that of every instance of the cluster. */
  | {
      readonly kind: "signal";
      readonly counter: string;
      readonly index: readonly IndexExpr[];
      readonly amount: IndexExpr;
      readonly scope: "instance" | "cluster";
    }
  /** Announces bytes that asynchronous copies will bring before the phase can complete; arrives once. */
  | {
      readonly kind: "expect";
      readonly counter: string;
      readonly index: readonly IndexExpr[];
      readonly bytes: IndexExpr;
    }
  /** All threads of the role copy, role, instance, cluster or grid meet; orders their memory effects. */
  | {
      readonly kind: "barrier";
      readonly scope: "copy" | "role" | "instance" | "cluster" | "grid";
    }
  /** Makes earlier ordinary writes visible to asynchronous intrinsics (proxy fence). */
  | { readonly kind: "fence"; readonly scope: "shared" | "memory" }
  /** The next launch, if it is after `started`, may begin once every instance has said so or ended. */
  | { readonly kind: "launchDependents" }
  /** Until all earlier launches have ended; what they wrote is visible behind it. */
  | { readonly kind: "awaitPrerequisites" };

/** Statements that start, order or await effects between threads. */
export type SyncStatement = Extract<
  Statement,
  {
    kind:
      | "intrinsic"
      | "commitGroup"
      | "waitGroup"
      | "wait"
      | "signal"
      | "expect"
      | "barrier"
      | "fence"
      | "launchDependents"
      | "awaitPrerequisites";
  }
>;
