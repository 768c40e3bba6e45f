/**
 * A region with directives applied: per statement the loops in their order with a mode each, and how
 * every original loop variable follows from them. Purely structural; whether the result is legal is
 * decided by legality.ts, how it is spelled as loops by lower/.
 *
 * A split that does not divide its extent leaves a `ragged` condition over the new loops; lowering
 * turns it into a short last trip, a guarded tail or guarded stores.
 */
import type { Region, Statement } from "../region/nest.ts";
import type { Condition } from "../semantics/condition.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { IndexRanges } from "../semantics/index-range.ts";
import type { LayoutMap } from "../semantics/layout.ts";
import type { AttentionForm } from "./attention/attention-form.ts";
import {
  type AttendDirective,
  type GridLevel,
  gridLevels,
  type MemoryScope,
  type MultiplyDirective,
  type RowsDirective,
  type Schedule,
  type TurnDirective,
} from "./directive.ts";
import type { ProductForm } from "./products/product-form.ts";
import type { RowsForm } from "./rows/rows-form.ts";
import type { TreeSchedule } from "./tree/tree-schedule.ts";
import type { TurnForm } from "./turns/turn-form.ts";

/** `grid`: dealt out to threads in chunks; a level of the grid: one iteration each. */
export type ScheduledMode = "serial" | "unroll" | "vector" | "grid" | GridLevel;

/** Whether different iterations run on different threads. */
export function isSpread({ mode }: Pick<ScheduledLoop, "mode">): boolean {
  return mode === "grid" || isBound(mode);
}

export function isBound(mode: ScheduledMode): mode is GridLevel {
  return (gridLevels as readonly ScheduledMode[]).includes(mode);
}

export interface ScheduledLoop {
  readonly name: string;
  /** Trips when nothing is ragged; a constant for loops made as the inner half of a split. */
  readonly extent: IndexExpr;
  readonly kind: "space" | "reduce" | "scan";
  readonly mode: ScheduledMode;
  /** The loop of the statement that it descends from. */
  readonly origin: string;
}

export interface ScheduledStatement {
  readonly statement: Statement;
  /** Outermost first. */
  readonly loops: readonly ScheduledLoop[];
  /** Original loop variable in terms of the loops. */
  readonly index: ReadonlyMap<string, IndexExpr>;
  /** What must hold besides the loops' ranges for a trip to be a point of the domain. */
  readonly ragged: readonly Condition[];
}

/** The statement runs inside `into`: its first `depth` loops are the other's first `depth` loops. */
export interface FusedStatement {
  readonly statement: string;
  readonly into: string;
  readonly depth: number;
}

export interface PlacedTensor {
  readonly tensor: string;
  readonly scope: MemoryScope;
  readonly statement: string;
  /** Number of loops of `statement` outside the placed tile. */
  readonly depth: number;
}

export interface StagedTensor extends PlacedTensor {
  readonly copies: number;
}

export interface ScheduledRegion {
  readonly region: Region;
  readonly schedule: Schedule;
  readonly statements: readonly ScheduledStatement[];
  readonly fused: readonly FusedStatement[];
  readonly placed: readonly PlacedTensor[];
  readonly staged: readonly StagedTensor[];
  readonly layouts: ReadonlyMap<string, LayoutMap>;
  /** Where a directive changes loops as only trees can say: the order, instead of the statements'. */
  readonly tree?: TreeSchedule;
  /** Statements that blocks compute as matrix products, and how. */
  readonly products: readonly ScheduledProduct[];
  /** Present where all statements are one kernel over rows. */
  readonly rows?: ScheduledRows;
  /** Present where all statements are one kernel of attention. */
  readonly attention?: ScheduledAttention;
  /** Present where the only statement turns what it reads. */
  readonly turn?: ScheduledTurn;
  /** Few rows run as many do: the forms that they have of their own were not proved. */
  readonly plainRows?: true;
}

export interface ScheduledAttention {
  readonly form: AttentionForm;
  readonly directive: AttendDirective;
}

export interface ScheduledRows {
  readonly form: RowsForm;
  readonly directive: RowsDirective;
}

export interface ScheduledTurn {
  readonly form: TurnForm;
  readonly directive: TurnDirective;
}

export interface ScheduledProduct {
  readonly form: ProductForm;
  readonly directive: MultiplyDirective;
}

/** Ranges of the region's symbols, for proofs about extents. */
export function symbolRanges(region: Region): IndexRanges {
  return new Map(region.symbols.map((s) => [s.name, s.range]));
}

export function findScheduled(region: ScheduledRegion, statement: string): ScheduledStatement {
  const found = region.statements.find((s) => s.statement.name === statement);
  if (!found) throw new RangeError(`no statement ${statement}`);
  return found;
}
