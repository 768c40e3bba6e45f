/**
 * A statement and its loops as plain numbers at the upper ends of the symbols: extents, steps of every
 * access along every axis, work per point. In: a region and one of its statements. Prices of thousands
 * of schedules are computed from these without applying any of them (cost/); a schedule is then no more
 * than a list of LoopFigures (`loopFigures` reads them off a scheduled statement, tile-choice.ts makes
 * the same from its knobs).
 */
import type { Access, Region, Statement, Write } from "../../region/nest.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import {
  add,
  constantValue,
  type IndexExpr,
  splitLinear,
  substitute,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import type { LayoutMap } from "../../semantics/layout.ts";
import {
  type ScalarExpr,
  scalarCost,
  scalarOperands,
  scalarOps,
  widenedOperands,
} from "../../semantics/scalar-expr.ts";
import { type ScheduledMode, type ScheduledStatement, symbolRanges } from "../scheduled-region.ts";

/** One axis of an access: how far a trip of each loop of the statement moves along it. */
export interface AxisFigures {
  readonly extent: number;
  readonly steps: Float64Array;
  /** Steps are fractions of this: the index is the whole part of what they add up to. */
  readonly divisor: number;
  /** It is a place in a block, which begins anew where the block ends. */
  readonly wraps: boolean;
  /** The distance of neighbours along it is known only when the program runs. */
  readonly open: boolean;
}

export interface AccessFigures {
  readonly tensor: string;
  readonly use: "read" | "finish" | "write";
  readonly role: string;
  readonly bytes: number;
  /** Instructions that widen a vector of it, where its elements are floats of 16 bits. */
  readonly widening: number;
  readonly axes: readonly AxisFigures[];
  /** Distance in elements of neighbours along each axis, row-major. */
  readonly strides: readonly number[];
  /** Some axis is no linear function of the loops: where it goes is not known. */
  readonly scattered: boolean;
  /** A condition decides whether it is read. */
  readonly guarded: boolean;
  /** Loops that its guards mention. */
  readonly guardLoops: readonly number[];
}

export interface LoopShape {
  readonly name: string;
  /** At the upper ends of what symbols can be, and at their lower ones; one at least. */
  readonly extent: number;
  readonly leastExtent: number;
  readonly kind: "space" | "reduce" | "scan";
  /** Known when the program is made. */
  readonly constant: boolean;
}

export interface NestFigures {
  readonly loops: readonly LoopShape[];
  readonly accesses: readonly AccessFigures[];
  /**
   * Arithmetic per point of the domain, in multiply-adds; what a fold combines is `combine`, what loads widen
   * `widening` of the access.
   */
  readonly body: number;
  readonly combine: number;
  /** Arithmetic once per result. */
  readonly finish: number;
  /** The part of `body` and of `finish` in functions that are evaluated by series. */
  readonly bodyCalls: number;
  readonly finishCalls: number;
  /** The body is one product that a sum folds: one instruction where multiply-adds are fused. */
  readonly isProduct: boolean;
  readonly components: number;
  readonly reduces: boolean;
  readonly indirect: boolean;
  /** Constants that the body and the epilogue keep in registers. */
  readonly literals: number;
}

/** One loop of a schedule: `trips` steps of `unit` iterations of the statement's loop `origin`. */
export interface LoopFigures {
  readonly origin: number;
  readonly unit: number;
  readonly trips: number;
  readonly mode: ScheduledMode;
}

/** Blocks of `width` along an axis of a tensor, stored one after the other. */
export interface PackedAxis {
  readonly tensor: string;
  readonly axis: number;
  readonly width: number;
  /** An axis of which so many neighbours as a dot product sums stand beside each element of a block. */
  readonly depth?: { readonly axis: number; readonly terms: number };
}

export function nestFigures(region: Region, statement: Statement): NestFigures {
  const ranges = symbolRanges(region);
  const names = statement.loops.map((l) => l.name);
  const found = rowsFound(statement);
  const access = (use: AccessFigures["use"]) => (a: Access | Write) =>
    accessFigures({ region, ranges, names, use, found }, a);
  const { reduction, body, finish = [] } = statement;
  const [root] = body;
  return {
    loops: statement.loops.map(({ name, extent, kind }) => ({
      name,
      extent: upperEnd(extent, ranges),
      leastExtent: Math.max(1, rangeOf(extent, ranges).min),
      kind,
      constant: constantValue(extent) !== undefined,
    })),
    accesses: [
      ...statement.reads.map(access("read")),
      ...statement.finishReads.map(access("finish")),
      ...statement.writes.map(access("write")),
    ],
    body: totalCost(body) - totalCost(body, widenedOperands),
    combine: totalCost(reduction?.monoid.combine ?? []),
    finish: totalCost(finish),
    bodyCalls: totalCost(body, callCost),
    finishCalls: totalCost(finish, callCost),
    isProduct: reduction?.monoid.name === "sum" && root!.kind === "apply" && root!.op === "mul",
    components: reduction?.monoid.components.length ?? 0,
    reduces: reduction !== undefined,
    indirect: statement.indirects.length > 0,
    literals: new Set([...body, ...finish].flatMap(literalsOf)).size,
  };
}

/** Operators from this cost on are series with a table of constants, not a few instructions. */
const leastCallCost = 10;

function totalCost(exprs: readonly ScalarExpr[], of = scalarCost): number {
  return exprs.reduce((sum, e) => sum + of(e), 0);
}

function callCost(e: ScalarExpr): number {
  const own = e.kind === "apply" ? scalarOps[e.op].cost : 0;
  return scalarOperands(e).reduce((n, o) => n + callCost(o), own >= leastCallCost ? own : 0);
}

function literalsOf(e: ScalarExpr): readonly (number | bigint)[] {
  return e.kind === "literal" ? [e.value] : scalarOperands(e).flatMap(literalsOf);
}

function upperEnd(extent: IndexExpr, ranges: IndexRanges): number {
  return Math.max(1, rangeOf(extent, ranges).max);
}

/** One conversion; bf16 is spread over words and moved up. */
const widenings: Partial<Record<DType, number>> = { f16: 1, bf16: 2 };

interface AccessContext {
  readonly region: Region;
  readonly ranges: IndexRanges;
  readonly names: readonly string[];
  readonly use: AccessFigures["use"];
  readonly found: ReadonlyMap<string, IndexExpr>;
}

/**
 * Indices that are loaded, as if they went on with the loops that they are loaded in: each trip finds another row,
 * wherever it lies.
 */
function rowsFound({ loops, indirects }: Statement): ReadonlyMap<string, IndexExpr> {
  const found = new Map<string, IndexExpr>();
  for (const { name, access } of indirects) {
    const used = variablesOf(...access.index.map((e) => substitute(e, found)));
    found.set(name, add(...loops.filter((l) => used.has(l.name)).map((l) => variable(l.name))));
  }
  return found;
}

function accessFigures(context: AccessContext, a: Access | Write): AccessFigures {
  const { region, ranges, names, use, found } = context;
  const { shape, dtype, role } = region.tensors.get(a.tensor)!;
  const guard = "guard" in a ? a.guard : [];
  const mentioned = variablesOf(...guard.map((c) => c.expr));
  let scattered = "combine" in a && a.combine !== "overwrite";
  const known = new Set([...names, ...ranges.keys()]);
  const index = found.size === 0 ? a.index : a.index.map((e) => substitute(e, found));
  const axes = index.map((e, axis) => {
    scattered ||= [...variablesOf(e)].some((name) => !known.has(name));
    const steps = Float64Array.from(names, (name) => {
      const linear = splitLinear(e, name);
      scattered ||= linear === undefined;
      return linear?.coefficient ?? 0;
    });
    const open = shape.slice(axis + 1).some((e) => constantValue(e) === undefined);
    return { extent: upperEnd(shape[axis]!, ranges), steps, divisor: 1, wraps: false, open };
  });
  return {
    tensor: a.tensor,
    use,
    role,
    bytes: dtypes[dtype].bits / 8,
    widening: widenings[dtype] ?? 0,
    axes,
    strides: axes.map((_, i) => axes.slice(i + 1).reduce((n, x) => n * x.extent, 1)),
    scattered,
    guarded: guard.length > 0,
    guardLoops: names.flatMap((name, i) => (mentioned.has(name) ? [i] : [])),
  };
}

/** The loops of a scheduled statement, outermost first. */
export function loopFigures(figures: NestFigures, s: ScheduledStatement): readonly LoopFigures[] {
  return s.loops.map((loop) => {
    const origin = figures.loops.findIndex((l) => l.name === loop.origin);
    const { extent } = figures.loops[origin]!;
    const unit = splitLinear(s.index.get(loop.origin)!, loop.name)!.coefficient;
    // Only what is left outermost of a loop has an extent of symbols.
    const trips = constantValue(loop.extent) ?? Math.ceil(extent / unit);
    return { origin, unit, trips, mode: loop.mode };
  });
}

/** The axis that a layout of blocks cuts; undefined for other layouts. */
export function packedAxis(tensor: string, layout: LayoutMap): PackedAxis | undefined {
  const inner = layout.stored.at(-1);
  const [term] = inner?.terms ?? [];
  if (inner?.terms.length === 2) return dotPackedAxis(tensor, layout);
  const [atom] = term?.atoms ?? [];
  if (inner?.terms.length !== 1 || atom?.kind !== "mod") return undefined;
  const width = constantValue(layout.shape.at(-1)!);
  const axis = layout.logical.findIndex((_, i) => variablesOf(atom.numerator).has(`l${i}`));
  return width === undefined || axis < 0 ? undefined : { tensor, axis, width };
}

/** An access to groups of neighbours along an axis as single elements. */
function groupedAccess(
  a: AccessFigures,
  { axis: depth, terms }: NonNullable<PackedAxis["depth"]>,
): AccessFigures {
  const axes = a.axes.map((x, axis) =>
    axis === depth
      ? {
          ...x,
          extent: Math.ceil(x.extent / terms),
          steps: x.steps.map((s) => s / terms),
          divisor: terms,
        }
      : x,
  );
  return { ...a, axes, bytes: a.bytes * terms };
}

/** Blocks along one axis, groups of neighbours along another (dot-form.ts). */
function dotPackedAxis(tensor: string, layout: LayoutMap): PackedAxis | undefined {
  const of = (coefficient: number): number => {
    const term = layout.stored.at(-1)!.terms.find((t) => t.coefficient === coefficient);
    const [atom] = term?.atoms ?? [];
    if (atom?.kind !== "mod") return -1;
    return layout.logical.findIndex((_, i) => variablesOf(atom.numerator).has(`l${i}`));
  };
  const terms = Math.max(...layout.stored.at(-1)!.terms.map((t) => t.coefficient));
  const [axis, depth] = [of(terms), of(1)];
  const bytes = constantValue(layout.shape.at(-1)!);
  if (axis < 0 || depth < 0 || bytes === undefined) return undefined;
  return { tensor, axis, width: bytes / terms, depth: { axis: depth, terms } };
}

/** The access in the blocked storage: panels outermost, then the other axes, then the block. */
export function packedAccess(whole: AccessFigures, by: PackedAxis): AccessFigures {
  const { axis, width, depth } = by;
  const a = depth === undefined ? whole : groupedAccess(whole, depth);
  const cut = a.axes[axis]!;
  const steps = cut.steps.map((s) => s / width);
  const panels = {
    extent: Math.ceil(cut.extent / width),
    steps,
    divisor: width,
    wraps: false,
    open: false,
  };
  const block = { extent: width, steps: cut.steps, divisor: 1, wraps: true, open: false };
  const axes = [panels, ...a.axes.filter((_, i) => i !== axis), block];
  const strides = axes.map((_, i) => axes.slice(i + 1).reduce((n, x) => n * x.extent, 1));
  return { ...a, axes, strides };
}
