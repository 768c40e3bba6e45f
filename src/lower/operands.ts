/**
 * From accesses to loads and stores. An operand says which buffer holds a tensor here (the tensor
 * itself, a packed weight, a tile in a nearer scope) and how a logical index becomes a position in it.
 * With a lane variable an access becomes a contiguous vector, a splat, or lane by lane, whichever its
 * index map allows.
 */
import type { Expr, Statement } from "../program/statement.ts";
import type { Access, Write } from "../region/nest.ts";
import type { Interleaved } from "../schedule/blocks/interleaved.ts";
import type { Condition } from "../semantics/condition.ts";
import { type DType, zeroOf } from "../semantics/dtype.ts";
import {
  type IndexBindings,
  type IndexExpr,
  linearCoefficient,
  splitLinear,
  sub,
  substitute,
} from "../semantics/index-expr.ts";
import { type IndexRanges, simplify, withoutRemainders } from "../semantics/index-range.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";
import { invariant, unreachable } from "../support/invariant.ts";
import type { Block } from "./block.ts";
import { isProved, mentionsAny, reduceConditions, substituteConditions } from "./conditions.ts";

/** Where a tensor's elements are found. */
export interface Operand {
  readonly buffer: string;
  readonly dtype: DType;
  /** Position in the buffer of a logical index. */
  readonly position: (index: readonly IndexExpr[]) => readonly IndexExpr[];
}

/** A loop whose iterations are the lanes of vectors. */
export interface LaneLoop {
  readonly name: string;
  readonly lanes: number;
}

/** What the lowering of one access needs to know about its place. */
export interface Site {
  /** Statement variables, in terms of the loops; unrolled loops are bound to constants. */
  readonly bindings: IndexBindings;
  /** The schedule's loops, in terms of program variables and constants. */
  readonly loops: ReadonlyMap<string, IndexExpr>;
  readonly ranges: IndexRanges;
  readonly lane: LaneLoop | undefined;
  readonly operand: (tensor: string) => Operand;
  /** Keys of conditions known to hold here although the ranges do not prove them. */
  readonly assumed: ReadonlySet<string>;
  /** The whole tile is inside: no access of it needs its guard. */
  readonly unguarded: boolean;
  /** Accesses whose elements are a vector together with those of others; absent: none. */
  readonly interleaved?: ReadonlyMap<Access | Write, Interleaved>;
  readonly block: Block;
}

export function conditionKey(c: Condition): string {
  return `${c.kind}:${c.expr.key}`;
}

/** The guard of an access in terms of the loops, without what is proved or assumed here. */
export function openGuard(access: Access, site: Site): readonly Condition[] {
  if (site.unguarded) return [];
  const bound = substituteConditions(access.guard, site.bindings);
  return reduceConditions(bound, site.ranges).filter((c) => !site.assumed.has(conditionKey(c)));
}

/** The value of an access: bound in the site's block, one lane or all lanes of the site. */
export function loadAccess(access: Access, site: Site): Expr {
  const operand = site.operand(access.tensor);
  const shared = site.interleaved?.get(access);
  if (shared) return loadInterleaved(operand, shared, site);
  const logical = access.index.map((e) => simplify(substitute(e, site.bindings), site.ranges));
  const index = operand.position(logical).map((e) => simplify(e, site.ranges));
  return loadAt(operand, index, { guard: openGuard(access, site), fill: access.fill }, site);
}

/** The lanes of one access, or its only element, out of the vector that it is with others. */
function loadInterleaved(operand: Operand, { first, step, at }: Interleaved, site: Site): Expr {
  const { dtype, buffer } = operand;
  const lanes = site.lane?.lanes ?? 1;
  const index = placeOfFirst(operand, first, site);
  const fill = zeroOf(dtype);
  const load = {
    kind: "load",
    dtype,
    lanes: step * lanes,
    buffer,
    index,
    guard: [],
    fill,
  } as const;
  const both = site.block.bind(load);
  const operands = Array.from({ length: lanes }, (_, l): Expr => {
    return { kind: "extract", dtype, lanes: 1, operand: both, lane: l * step + at };
  });
  const [only] = operands;
  return site.block.bind(lanes === 1 ? only! : { kind: "pack", dtype, lanes, operands });
}

/** Where the vector of interleaved accesses begins. */
function placeOfFirst(
  operand: Operand,
  first: readonly IndexExpr[],
  { lane, bindings, ranges }: Site,
): readonly IndexExpr[] {
  const logical = first.map((e) => simplify(substitute(e, bindings), ranges));
  const place = operand.position(logical);
  return lane ? bindLane(place, lane.name, 0, ranges) : place.map((e) => simplify(e, ranges));
}

/** Stores the values of all writes that are one vector with the one at `at`, with the first of them. */
export function storeInterleaved(
  writes: readonly Write[],
  at: number,
  values: readonly Expr[],
  site: Site,
): void {
  const own = site.interleaved!.get(writes[at]!)!;
  if (own.at > 0) return;
  const together = new Array<Expr>(own.step);
  writes.forEach((write, i) => {
    const other = site.interleaved!.get(write);
    if (other?.first === own.first) together[other.at] = site.block.bind(values[i]!);
  });
  const operand = site.operand(writes[at]!.tensor);
  const { buffer, dtype } = operand;
  const lanes = site.lane?.lanes ?? 1;
  const operands = Array.from({ length: lanes * own.step }, (_, n): Expr => {
    const whole = together[n % own.step]!;
    if (lanes === 1) return whole;
    if (whole.kind === "literal") return { ...whole, lanes: 1 };
    return { kind: "extract", dtype, lanes: 1, operand: whole, lane: Math.floor(n / own.step) };
  });
  const value = site.block.bind({ kind: "pack", dtype, lanes: operands.length, operands });
  site.block.push({ kind: "store", buffer, index: placeOfFirst(operand, own.first, site), value });
}

interface Guarded {
  readonly guard: readonly Condition[];
  readonly fill: number | bigint;
}

function loadAt(operand: Operand, place: readonly IndexExpr[], guarded: Guarded, site: Site): Expr {
  const { lane, block, ranges } = site;
  const isPlain = !lane || laneStride(place, lane.name) !== undefined;
  const index = isPlain ? place : place.map((e) => withoutRemainders(e, ranges));
  const { buffer, dtype } = operand;
  const load = (at: readonly IndexExpr[], lanes: number, guard: readonly Condition[]): Expr => {
    return { kind: "load", dtype, lanes, buffer, index: at, guard, fill: guarded.fill };
  };
  const make = (...of: Parameters<typeof load>): Expr => block.bind(load(...of));
  if (!lane) return make(index, 1, guarded.guard);
  const guardVaries = guarded.guard.some((c) => mentionsAny(c, [lane.name]));
  const stride = guardVaries ? undefined : laneStride(index, lane.name);
  // One instruction loads and spreads an element.
  if (stride === "uniform") return splatOf(load(index, 1, guarded.guard), lane.lanes, block);
  if (stride === "contiguous") {
    return make(bindLane(index, lane.name, 0, site.ranges), lane.lanes, guarded.guard);
  }
  const operands = Array.from({ length: lane.lanes }, (_, l) => {
    const guard = substituteConditions(guarded.guard, new Map([[lane.name, l]]));
    return make(
      bindLane(index, lane.name, l, site.ranges),
      1,
      reduceConditions(guard, site.ranges),
    );
  });
  return block.bind({ kind: "pack", dtype, lanes: lane.lanes, operands });
}

/** How an index moves from lane to lane: not at all, by one along the last axis, or otherwise. */
export function laneStride(
  index: readonly IndexExpr[],
  lane: string,
): "uniform" | "contiguous" | undefined {
  const linear = index.map((e) => linearCoefficient(e, lane));
  if (linear.every((c) => c === 0)) return "uniform";
  const outer = linear.slice(0, -1);
  return linear.at(-1) === 1 && outer.every((c) => c === 0) ? "contiguous" : undefined;
}

export function bindLane(
  index: readonly IndexExpr[],
  lane: string,
  value: number,
  ranges: IndexRanges,
): readonly IndexExpr[] {
  const binding = new Map([[lane, value]]);
  return index.map((e) => simplify(substitute(e, binding), ranges));
}

export function splatOf(value: Expr, lanes: number, block: Block): Expr {
  if (lanes === 1 || value.lanes === lanes) return value;
  if (value.kind === "literal") return { ...value, lanes };
  return block.bind({ kind: "splat", dtype: value.dtype, lanes, operand: value });
}

/**
 * A scalar expression over given argument values, in the lanes of the site. Operands are bound in the
 * block, so that shared parts are computed once; the root is left for the caller to place.
 */
export function lowerScalar(
  expr: ScalarExpr,
  args: readonly Expr[],
  site: Pick<Site, "lane" | "block" | "bindings" | "ranges">,
  done: Map<ScalarExpr, Expr> = new Map(),
): Expr {
  const lanes = site.lane?.lanes ?? 1;
  const operand = (o: ScalarExpr): Expr => {
    const known = done.get(o);
    if (known) return known;
    const bound = site.block.bind(lowerScalar(o, args, site, done));
    done.set(o, bound);
    return bound;
  };
  switch (expr.kind) {
    case "literal":
      return { kind: "literal", dtype: expr.dtype, lanes, value: expr.value };
    case "argument": {
      const value = args[expr.index];
      invariant(value, () => `argument ${expr.index} has no value`);
      return value;
    }
    case "index":
      return lowerIndexValue(expr.expr, expr.dtype, site);
    case "cast": {
      const { dtype, saturate } = expr;
      return { kind: "cast", dtype, lanes, saturate, operand: operand(expr.operand) };
    }
    case "apply": {
      const { dtype, op } = expr;
      return { kind: "apply", dtype, lanes, op, operands: expr.operands.map(operand) };
    }
    default:
      return unreachable(expr, "lowerScalar");
  }
}

function lowerIndexValue(
  source: IndexExpr,
  dtype: DType,
  site: Pick<Site, "lane" | "bindings" | "ranges">,
): Expr {
  const { lane, ranges } = site;
  const expr = simplify(substitute(source, site.bindings), ranges);
  if (!lane) return { kind: "index", dtype, lanes: 1, expr, laneStep: 0 };
  const linear = splitLinear(expr, lane.name);
  if (linear) {
    const { rest, coefficient } = linear;
    return { kind: "index", dtype, lanes: lane.lanes, expr: rest, laneStep: coefficient };
  }
  const operands = Array.from({ length: lane.lanes }, (_, l): Expr => {
    const [at] = bindLane([expr], lane.name, l, ranges);
    return { kind: "index", dtype, lanes: 1, expr: at!, laneStep: 0 };
  });
  return { kind: "pack", dtype, lanes: lane.lanes, operands };
}

const combineOps = { add: "add", mul: "mul", max: "max", min: "min" } as const;

/**
 * Stores a value where a write says, lane by lane when the lanes are not contiguous. `storeGuard` are
 * conditions without which an element must not be touched (padding lanes of a ragged tile).
 */
export function storeWrite(
  write: Write,
  value: Expr,
  storeGuard: readonly Condition[],
  site: Site,
): void {
  const { lane, block, ranges } = site;
  const operand = site.operand(write.tensor);
  const logical = write.index.map((e) => simplify(substitute(e, site.bindings), ranges));
  const index = operand.position(logical).map((e) => simplify(e, ranges));
  const guard = reduceConditions(storeGuard, ranges);
  const contiguous = lane !== undefined && laneStride(index, lane.name) === "contiguous";
  const varies = lane !== undefined && guard.some((c) => mentionsAny(c, [lane.name]));
  if (!lane || (contiguous && !varies)) {
    const at = lane ? bindLane(index, lane.name, 0, ranges) : index;
    block.branch(guard, (b) => b.push(...storeOne(operand, at, value, write)));
    return;
  }
  const whole = block.bind(value);
  for (let l = 0; l < lane.lanes; l++) {
    const at = bindLane(index, lane.name, l, ranges);
    const lanewise = substituteConditions(guard, new Map([[lane.name, l]]));
    const element: Expr =
      whole.kind === "literal"
        ? { ...whole, lanes: 1 }
        : { kind: "extract", dtype: whole.dtype, lanes: 1, operand: whole, lane: l };
    const open = lanewise.filter((c) => !isProved(c, ranges));
    block.branch(open, (b) => b.push(...storeOne(operand, at, element, write)));
  }
}

function storeOne(
  operand: Operand,
  index: readonly IndexExpr[],
  value: Expr,
  write: Write,
): readonly Statement[] {
  const { buffer, dtype } = operand;
  if (write.combine === "overwrite") return [{ kind: "store", buffer, index, value }];
  const { lanes } = value;
  const fill = zeroOf(dtype);
  const old: Expr = { kind: "load", dtype, lanes, buffer, index, guard: [], fill };
  const op = combineOps[write.combine];
  const combined: Expr = { kind: "apply", dtype, lanes, op, operands: [old, value] };
  return [{ kind: "store", buffer, index, value: combined }];
}

/** An operand for a tile of a tensor whose element `offset` stands at position 0. */
export function tileOperand(base: Operand, buffer: string, offset: readonly IndexExpr[]): Operand {
  return {
    buffer,
    dtype: base.dtype,
    position: (index) => index.map((e, axis) => sub(e, offset[axis]!)),
  };
}

/** Whether an operator applied to the accumulator and a term can be one fused multiply-add. */
export function multiplyOperands(value: Expr): readonly Expr[] | undefined {
  const isProduct = value.kind === "apply" && value.op === "mul" && value.dtype === "f32";
  return isProduct ? value.operands : undefined;
}
