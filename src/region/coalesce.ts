/**
 * Fewer, longer loops: loops of one trip vanish, and two neighbouring loops become one where every
 * access either uses both as neighbouring axes of a row-major tensor or neither. A tensor whose axes
 * are joined is seen through a view. Long contiguous loops are what lanes and threads want; the
 * computation is the same, point for point. In a region over rows, what the outer loop alone picks of a tensor
 * that it only reads (the scale of a channel) is picked by a digit of the joined one, and the outer loop may be a
 * part of its axis (the channels of a group).
 */
import type { Condition } from "../semantics/condition.ts";
import {
  add,
  constant,
  constantValue,
  floorDiv,
  type IndexExpr,
  mul,
  splitLinear,
  substitute,
  variable,
  variablesOf,
} from "../semantics/index-expr.ts";
import { mapScalar, type ScalarExpr, scalarOperands } from "../semantics/scalar-expr.ts";
import type { Access, Loop, Region, Statement, View, Write } from "./nest.ts";

export interface CoalescedRegion {
  readonly region: Region;
  /** Views that the statements now use, with the tensors behind them. */
  readonly views: readonly View[];
}

/**
 * The region with the loops of its statements joined as far as possible: of several statements, those in
 * one place of all of them, so that they still run over the same loops.
 * @param asMatrices whether a fold or scan alone sees its tensors without axes of one element, so that a batch of
 *   one is a matrix, and a map alone sees elements of a short last axis, each a write of its own, as neighbours
 */
export function coalesceRegion(region: Region, asMatrices = false): CoalescedRegion {
  const tensors = new Map(region.tensors);
  const views: View[] = [];
  let statements = region.statements.map(dropUnitLoops);
  if (asMatrices && statements.length === 1 && foldsOrScans(statements[0]!))
    statements = [dropUnitAxes(statements[0]!, tensors, views)];
  if (asMatrices && statements.length === 1 && !statements[0]!.reduction)
    statements = [joinConstantAxes(statements[0]!, tensors, views)];
  const pairAt = ({ loops }: Statement, at: number): readonly [Loop, Loop] | undefined =>
    at + 1 < loops.length ? [loops[at]!, loops[at + 1]!] : undefined;
  const most = Math.max(...statements.map((s) => s.loops.length));
  const written = new Set(statements.flatMap((s) => s.writes.map((w) => w.tensor)));
  const { overRows = false } = region;
  const mayPick = (tensor: string): boolean => overRows && !written.has(tensor);
  for (let at = 0; at + 1 < most; ) {
    const pairs = statements.map((s) => pairAt(s, at));
    const all = statements.every((s, i) => {
      const pair = pairs[i];
      return pair ? mayJoin(s, pair, tensors, { mayPick, overRows }) : isApart(s, at, statements);
    });
    if (all && pairs.some((p) => p) && isSeenAlike(statements, pairs)) {
      statements = statements.map((s, i) => {
        const pair = pairs[i];
        return pair ? join(s, pair, tensors, views) : s;
      });
    } else at++;
  }
  return { region: { ...region, statements, tensors }, views };
}

/** Whether a statement that has no such pair has the loops before it alone, as what is computed once a row. */
function isApart({ loops }: Statement, at: number, statements: readonly Statement[]): boolean {
  return statements.length > 1 && loops.length <= at;
}

/** Whether all statements see what one of them writes, and others read, through the same view. */
function isSeenAlike(
  statements: readonly Statement[],
  pairs: readonly (readonly [Loop, Loop] | undefined)[],
): boolean {
  const written = new Set(statements.flatMap((s) => s.writes.map((w) => w.tensor)));
  const seen = new Map<string, number>();
  return statements.every((s, i) =>
    [...accessesOf(s), ...s.writes].every(({ tensor, index }) => {
      if (!written.has(tensor)) return true;
      const pair = pairs[i];
      const axis = pair ? index.findIndex((e) => isPart(e, pair[0].name)) : -1;
      const first = seen.get(tensor) ?? axis;
      seen.set(tensor, first);
      return first === axis;
    }),
  );
}

type Tensors = Map<string, Region["tensors"] extends ReadonlyMap<string, infer T> ? T : never>;

export function dropUnitLoops(statement: Statement): Statement {
  const unit = statement.loops.filter((l) => constantValue(l.extent) === 1);
  if (unit.length === 0 || unit.length === statement.loops.length) return statement;
  const zero = new Map(unit.map((l) => [l.name, constant(0)]));
  const kept = statement.loops.filter((l) => !unit.includes(l));
  // A reduction keeps a loop to fold over.
  const folds = statement.reduction !== undefined && !kept.some((l) => l.kind === "reduce");
  if (folds) return statement;
  return { ...mapIndices(statement, (e) => substitute(e, zero)), loops: kept };
}

interface OverRows {
  readonly overRows: boolean;
  /** Whether a digit of the joined loop may pick of the tensor. */
  readonly mayPick: (tensor: string) => boolean;
}

function mayJoin(
  statement: Statement,
  [a, b]: readonly [Loop, Loop],
  tensors: Tensors,
  { mayPick, overRows }: OverRows,
): boolean {
  if (a.kind !== b.kind || a.kind === "scan" || statement.indirects.length > 0) return false;
  // A loop without trips has no digit of a joined one.
  if (constantValue(b.extent) === 0) return false;
  const used = (exprs: readonly IndexExpr[]): boolean => {
    const names = variablesOf(...exprs);
    return names.has(a.name) || names.has(b.name);
  };
  const conditions = [...statement.guard, ...accessesOf(statement).flatMap((x) => x.guard)];
  if (used(conditions.map((c) => c.expr)) || used(statement.loops.map((l) => l.extent)))
    return false;
  const values = [...statement.body, ...(statement.finish ?? [])];
  if (used(values.flatMap(indexValues))) return false;
  // Some rows of an open width as one run: whether other rows make it whole cannot be shown of the tensor.
  const leavesPart = ({ tensor, index }: Write): boolean => {
    const axis = index.findIndex((e) => e.key === a.name);
    return axis >= 0 && tensors.get(tensor)!.shape[axis]!.key !== a.extent.key;
  };
  const isKnown = constantValue(b.extent) !== undefined;
  if (!isKnown && statement.writes.some(leavesPart)) return false;
  return [...accessesOf(statement), ...statement.writes].every(({ tensor, index }) => {
    const axis = index.findIndex(
      (e) => e.key === a.name || (overRows && isKnown && isPart(e, a.name)),
    );
    if (!used(index)) return true;
    if (isKnown && mayPick(tensor) && !variablesOf(...index).has(b.name)) return true;
    const rest = index.filter((_, i) => i !== axis && i !== axis + 1);
    const extent = tensors.get(tensor)!.shape[axis + 1];
    const neighbours = axis >= 0 && index[axis + 1]?.key === b.name;
    return neighbours && !used(rest) && extent?.key === b.extent.key;
  });
}

/** Whether neighbours along a loop are neighbours along an axis. */
function isPart(place: IndexExpr, loop: string): boolean {
  return splitLinear(place, loop)?.coefficient === 1;
}

function join(
  statement: Statement,
  [a, b]: readonly [Loop, Loop],
  tensors: Tensors,
  views: View[],
): Statement {
  const digit = new Map([[a.name, floorDiv(variable(a.name), b.extent)]]);
  const joinAxes = <T extends Access | Write>(access: T): T => {
    const axis = access.index.findIndex((e) => isPart(e, a.name));
    if (axis < 0 || access.index[axis + 1]?.key !== b.name)
      return { ...access, index: access.index.map((e) => substitute(e, digit)) };
    const { rest } = splitLinear(access.index[axis]!, a.name)!;
    const place = add(mul(rest, b.extent), variable(a.name));
    const tensor = viewOf(access.tensor, axis, tensors, views);
    return { ...access, tensor, index: access.index.toSpliced(axis, 2, place) };
  };
  const at = statement.loops.indexOf(a);
  const joined: Loop = { ...a, extent: mul(a.extent, b.extent) };
  return {
    ...statement,
    loops: statement.loops.toSpliced(at, 2, joined),
    reads: statement.reads.map(joinAxes),
    finishReads: statement.finishReads.map(joinAxes),
    writes: statement.writes.map(joinAxes),
  };
}

/**
 * The statement over views in which the last axis of a result, where each place is a constant, is one with the axis
 * before it: results that are interleaved are neighbours in memory.
 */
function joinConstantAxes(statement: Statement, tensors: Tensors, views: View[]): Statement {
  const isConstant = ({ index }: Write): boolean =>
    index.length > 1 && constantValue(index.at(-1)!) !== undefined;
  const count = (tensor: string): number => {
    const own = statement.writes.filter((w) => w.tensor === tensor);
    return own.every(isConstant) ? own.length : 0;
  };
  const writes = statement.writes.map((w) => {
    const { shape } = tensors.get(w.tensor)!;
    if (shape.length < 2) return w;
    const [last, extent] = [w.index.length - 1, constantValue(shape.at(-1)!)];
    if (extent === undefined || extent === 1 || count(w.tensor) !== extent) return w;
    const place = add(mul(w.index[last - 1]!, extent), w.index[last]!);
    const tensor = viewOf(w.tensor, last - 1, tensors, views);
    return { ...w, tensor, index: [...w.index.slice(0, last - 1), place] };
  });
  return { ...statement, writes };
}

/** Whether it is a fold, or a scan that meets what it writes at one place of an axis of one element. */
function foldsOrScans({ reduction, loops, writes, reads }: Statement): boolean {
  if (reduction) return true;
  const places = (index: readonly IndexExpr[]): string =>
    index.map((e) => constantValue(e) ?? "").join(" ");
  const isAlike = writes.every((w) =>
    [...reads, ...writes].every(
      (a) => a.tensor !== w.tensor || places(a.index) === places(w.index),
    ),
  );
  return isAlike && loops.some((l) => l.kind === "scan");
}

/** The statement over views without the axes of one element that it meets at 0. */
function dropUnitAxes(statement: Statement, tensors: Tensors, views: View[]): Statement {
  const drop = <T extends Access | Write>(access: T): T => {
    const { shape } = tensors.get(access.tensor)!;
    const isUnit = (e: IndexExpr, axis: number): boolean =>
      constantValue(shape[axis]!) === 1 && constantValue(e) === 0;
    const axis = access.index.length < 2 ? -1 : access.index.findIndex(isUnit);
    if (axis < 0) return access;
    const tensor = viewOf(access.tensor, Math.min(axis, shape.length - 2), tensors, views);
    return drop({ ...access, tensor, index: access.index.toSpliced(axis, 1) });
  };
  return {
    ...statement,
    reads: statement.reads.map(drop),
    finishReads: statement.finishReads.map(drop),
    writes: statement.writes.map(drop),
  };
}

/** The tensor with axes `axis` and `axis + 1` as one, made once. */
function viewOf(name: string, axis: number, tensors: Tensors, views: View[]): string {
  const tensor = tensors.get(name)!;
  const joint = mul(tensor.shape[axis]!, tensor.shape[axis + 1]!);
  const shape = tensor.shape.toSpliced(axis, 2, joint);
  const view = `${name}.j${axis}`;
  if (!tensors.has(view)) {
    const role = tensor.role === "local" ? "local" : "intermediate";
    tensors.set(view, { ...tensor, name: view, shape, role });
    views.push({ tensor: view, of: name });
  }
  return view;
}

function accessesOf(statement: Statement): readonly Access[] {
  return [...statement.reads, ...statement.finishReads];
}

function indexValues(expr: ScalarExpr): readonly IndexExpr[] {
  if (expr.kind === "index") return [expr.expr];
  return scalarOperands(expr).flatMap(indexValues);
}

/** Every index expression of the statement, replaced. */
export function mapIndices(statement: Statement, change: (e: IndexExpr) => IndexExpr): Statement {
  const condition = (c: Condition): Condition => ({ ...c, expr: change(c.expr) });
  const access = (x: Access): Access => ({
    ...x,
    index: x.index.map(change),
    guard: x.guard.map(condition),
  });
  const value = (e: ScalarExpr): ScalarExpr =>
    mapScalar(e, (leaf) => (leaf.kind === "index" ? { ...leaf, expr: change(leaf.expr) } : leaf));
  return {
    ...statement,
    guard: statement.guard.map(condition),
    indirects: statement.indirects.map((i) => ({
      ...i,
      access: access(i.access),
      extent: change(i.extent),
    })),
    reads: statement.reads.map(access),
    finishReads: statement.finishReads.map(access),
    body: statement.body.map(value),
    ...(statement.finish && { finish: statement.finish.map(value) }),
    writes: statement.writes.map((w) => ({ ...w, index: w.index.map(change) })),
  };
}
