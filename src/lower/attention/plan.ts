/**
 * What the lowering of one attention needs to know in numbers: tiles, steps and the trips that need masks,
 * and how operands lie in shared memory. Keys and values lie as they lie in memory, in panels as wide as a
 * swizzle spans (the widest, and of warpgroups such as divide what is left), so that copies move whole vectors:
 *
 *   along an element   [slot, panel, column, element]
 *   along columns      [slot, panel, element, column]
 *
 * Steps go from the last columns to the first: those on the diagonal, or past the end, are the first trips in
 * every block, and the number of trips alone says where a block ends.
 */
import type { Buffer } from "../../program/program.ts";
import { movesAhead } from "../../schedule/attention/attention-bounds.ts";
import {
  type AttentionForm,
  type AttentionOperand,
  columnName,
  isMultiple,
} from "../../schedule/attention/attention-form.ts";
import {
  isTriangular,
  linePanels,
  type Panels,
  sharesOf,
  stepsAhead,
  stepsOfOne,
  stepsOfTile,
  valuePanels,
  windowSteps,
} from "../../schedule/attention/attention-limits.ts";
import type { AttendDirective } from "../../schedule/directive.ts";
import { dtypes } from "../../semantics/dtype.ts";
import {
  add,
  ceilDiv,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  sub,
} from "../../semantics/index-expr.ts";
import { invariant } from "../../support/invariant.ts";
import type { Operand } from "../operands.ts";
import { ownName } from "../own-names.ts";
import { type BlockPlace, groupThreads, sharedTile } from "../tiles.ts";

/** Where a block stands: its tile and first row, loops of the form over it. */
export interface AttentionPlace extends BlockPlace {
  readonly tile: IndexExpr;
  readonly firstRow: IndexExpr;
  /**
   * Where data says which columns are met: the last step of the tile, its trips behind the first one, and where
   * it says so of each row, those that have to ask (reach.ts).
   */
  readonly reach?: {
    readonly last: IndexExpr;
    readonly further: IndexExpr;
    readonly early?: IndexExpr;
    readonly late?: IndexExpr;
  };
  /** Which of the parts of the columns is the block's. */
  readonly part: IndexExpr;
  readonly operand: (tensor: string) => Operand;
}

/** Panels of one width, in a buffer of their own. */
export interface StagedPanels extends Panels {
  readonly buffer: string;
}

/** An operand in shared memory. */
export interface Staged {
  readonly operand: AttentionOperand;
  /** Rows of the tile (or columns of the scores), and elements of each. */
  readonly lines: number;
  readonly elements: number;
  /** Whether neighbours are elements of one line. */
  readonly isAlong: boolean;
  /** One buffer where warps multiply. */
  readonly panels: readonly StagedPanels[];
  readonly slots: number;
}

export interface AttentionPlan {
  readonly form: AttentionForm;
  readonly directive: AttendDirective;
  readonly rows: number;
  readonly columns: number;
  /** Tiles of rows at most, and as a run has them. */
  readonly tiles: number;
  readonly tileCount: IndexExpr;
  /** Threads of a copy of the role that multiplies, its copies, and rows of a warp. */
  readonly threads: number;
  readonly groups: number;
  readonly warpRows: number;
  readonly stages: number;
  /** Whether tiles leave out the steps right of the diagonal. */
  readonly isTriangular: boolean;
  /** Whether tiles further down have more trips. */
  readonly growsDown: boolean;
  /** Trips of every tile, where those before a band are left out. */
  readonly windowTrips: number | undefined;
  /** Trips in which not all rows meet all columns of the step: the first ones, and from one on those behind a band. */
  readonly maskedTrips: number;
  readonly maskedFrom: number;
  readonly query: Staged;
  readonly key: Staged;
  readonly value: Staged;
}

export function planAttention(form: AttentionForm, directive: AttendDirective): AttentionPlan {
  const [rows, columns] = directive.tile;
  const { by, warps, stages } = directive;
  const triangular = isTriangular(directive, form);
  const staged = (
    operand: AttentionOperand,
    stem: "queries" | "keys" | "values",
    [lines, elements, slots]: readonly [number, number, number],
  ): Staged => {
    const isAlong = operand.along !== columnName;
    const near = isAlong ? elements : lines;
    const found = stem === "values" ? valuePanels(directive, near) : linePanels(directive, near);
    const panels = found.map((p, i) => ({ ...p, buffer: ownName(i === 0 ? stem : `${stem}Rest`) }));
    return { operand, lines, elements, isAlong, panels, slots };
  };
  return {
    form,
    directive,
    rows,
    columns,
    tiles: Math.ceil(form.rows / rows),
    tileCount: ceilDiv(form.rowCount, rows),
    threads: by === "wgmma" ? groupThreads : 32 * warps,
    groups: by === "wgmma" ? warps / 4 : 1,
    warpRows: rows / warps,
    stages,
    isTriangular: triangular,
    growsDown: triangular || (form.reach !== undefined && movesAhead(form.reach)),
    windowTrips: windowSteps(directive, form),
    maskedTrips: maskedTrips(form, directive, triangular),
    maskedFrom: maskedFrom(form, directive, triangular),
    query: staged(form.query, "queries", [rows, form.depth, 1]),
    key: staged(form.key, "keys", [columns, form.depth, stages]),
    value: staged(form.value, "values", [columns, form.width, stages]),
  };
}

function maskedTrips(
  form: AttentionForm,
  { tile: [rows, columns] }: AttendDirective,
  isTriangular: boolean,
): number {
  const { ahead, reach } = form;
  if (reach) return tripsAcross(movesAhead(reach) ? rows : 1, columns);
  if (ahead === undefined) return isMultiple(form.columnCount, columns) ? 0 : 1;
  const all = Math.ceil(form.columns / columns);
  if (!isTriangular) return all;
  const isEven = rows % columns === 0 && isMultiple(add(form.columnCount, ahead), columns);
  return isEven ? Math.ceil(rows / columns) : tripsAcross(rows, columns);
}

/** Steps at one end of a tile in which its rows may not all meet all columns, wherever the end is in a step. */
function tripsAcross(rows: number, columns: number): number {
  return Math.ceil((rows + columns - 2) / columns);
}

/** The first trip in which a row may not meet a column because data says that it begins later; undefined: none. */
export function maskedBehind(
  { form, rows, columns }: AttentionPlan,
  { further }: NonNullable<AttentionPlace["reach"]>,
): IndexExpr | undefined {
  const { starts } = form.reach!;
  if (starts.length === 0) return undefined;
  const moves = starts.some((b) => b.moves);
  return sub(add(further, 1), tripsAcross(moves ? rows : 1, columns));
}

/** The first trip in which a row may not meet a column because it is too far behind. */
function maskedFrom(
  form: AttentionForm,
  directive: AttendDirective,
  isTriangular: boolean,
): number {
  const [tall, wide] = directive.tile;
  const { behind } = form;
  // Without a triangle no trip is said to be whole.
  if (behind === undefined || !isTriangular) return 0;
  const end = form.rows <= tall ? stepsOfOne(directive, form) : stepsAhead(directive, form);
  return Math.max(0, end - Math.ceil((tall - 1 - behind) / wide));
}

type Stand = Pick<AttentionPlace, "tile" | "reach">;

/**
 * Trips of a block: steps that its rows meet, or its part of them. Where data says how many there are, they go
 * round among the parts, so that each has as many as any other, or one less.
 */
export function tripsOf(plan: AttentionPlan, place: Stand & { part: IndexExpr }): IndexExpr {
  const { tile, reach, part } = place;
  const parts = sharesOf(plan.directive);
  if (reach) return floorDiv(sub(add(reach.further, parts), part), parts);
  if (parts > 1) return constant(stepsOfTile(plan.directive, plan.form) / parts);
  return plan.windowTrips === undefined ? stepsUpTo(plan, tile) : constant(plan.windowTrips);
}

/** Trips of a block at most. */
export function mostTrips(plan: AttentionPlan): number {
  const parts = sharesOf(plan.directive);
  if (plan.form.reach) return Math.ceil(stepsOfAll(plan) / parts);
  const trips = tripsOf(plan, { tile: constant(plan.tiles - 1), part: constant(0) });
  return constantValue(trips) ?? stepsOfAll(plan);
}

/** The number of a block's trip among those of all parts of the columns. */
export function tripOfAll(
  { directive, form }: AttentionPlan,
  { part }: Pick<AttentionPlace, "part">,
  own: IndexExpr,
): IndexExpr {
  const parts = sharesOf(directive);
  if (parts === 1) return own;
  if (form.reach) return add(mul(parts, own), part);
  return add(own, mul(stepsOfTile(directive, form) / parts, part));
}

/** Steps of all columns, at most. */
export function stepsOfAll({ form, columns }: AttentionPlan): number {
  return Math.ceil(form.columns / columns);
}

/** Steps from the first column to the last one that a tile's rows meet. */
function stepsUpTo(plan: AttentionPlan, tile: IndexExpr): IndexExpr {
  const { form, rows, columns } = plan;
  if (!plan.isTriangular) return ceilDiv(form.columnCount, columns);
  if (plan.tiles === 1) return constant(stepsOfOne(plan.directive, form));
  return add(mul(rows / columns, tile), stepsAhead(plan.directive, form));
}

/** The first column of a trip of a tile. */
export function firstColumn(
  plan: AttentionPlan,
  { tile, reach }: Stand,
  trip: IndexExpr,
): IndexExpr {
  const last = reach?.last ?? sub(stepsUpTo(plan, tile), 1);
  return mul(plan.columns, sub(last, trip));
}

/** Of rows of so many bytes. */
const swizzles: Readonly<Record<number, 32 | 64 | 128>> = { 32: 32, 64: 64, 128: 128 };

export function sharedBuffers({ form }: AttentionPlan, staged: Staged): readonly Buffer[] {
  const { lines, elements, isAlong, panels, slots } = staged;
  const far = isAlong ? lines : elements;
  return panels.map(({ buffer, elements: near, panel }) => {
    const shape = [slots, Math.ceil(near / panel), far, panel];
    const bytes = (panel * dtypes[form.dtype].bits) / 8;
    return sharedTile(buffer, form.dtype, shape, swizzles[bytes] ?? 0);
  });
}

/** Place in a buffer of an element of a line; which buffer is known where there are several. */
export function sharedPlace(
  { isAlong, panels }: Staged,
  slot: IndexExpr,
  line: IndexExpr,
  element: IndexExpr,
): { readonly buffer: string; readonly index: readonly IndexExpr[] } {
  const [near, far] = isAlong ? [element, line] : [line, element];
  const at = constantValue(near);
  invariant(at !== undefined || panels.length === 1, () => "an element of any of several buffers");
  const { buffer, first, panel } = panels.findLast((p) => p.first <= (at ?? 0))!;
  const own = sub(near, first);
  return { buffer, index: [slot, floorDiv(own, panel), far, mod(own, panel)] };
}
