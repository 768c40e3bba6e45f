/**
 * What a cooperative kernel does in shared scope and to its counters, and nothing else: what is left when
 * stores to memory, arithmetic and registers of one thread are taken out. Blocks that do the same there form a class,
 * and one block (or cluster) of each class is enough to be run.
 *
 * A copy that is guarded, `if c { issue cp.async d, s } else { store d = zero }`, stands as the copy alone:
 * whatever is ordered for the asynchronous write is ordered for the plain one, which is seen no later.
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  constant,
  constantValue,
  evaluate,
  type IndexExpr,
  mod,
  substitute,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { guardedCopy } from "../guarded-copy.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { GridAxis, Kernel } from "../program.ts";
import type { Expr, Statement } from "../statement.ts";
import {
  childBodies,
  completionIndices,
  exprIndices,
  mapBodies,
  ownExprs,
  ownIndices,
  visitExpr,
  visitStatements,
} from "../walk.ts";
import type { LaunchView } from "./launch-view.ts";
import { withParameterAxes } from "./parameter-axes.ts";
import { LoopPeriods } from "./periods.ts";

/** The view with the kernel reduced, and one instance of each class; undefined where blocks differ by more. */
export interface SharedPart {
  readonly view: LaunchView;
  readonly instances: readonly number[];
  readonly kept: ReadonlySet<string>;
}

const mostInstances = 1 << 20;
/** Expressions of threads and blocks into which numbers of blocks are put. */
const mostSubstitutions = 1 << 16;

export function sharedPart(view: LaunchView): SharedPart | undefined {
  const kept = keptBuffers(view.kernel);
  const prune = new Pruning(kept);
  const roles = view.kernel.roles.map((r) => ({ ...r, body: prune.list(r.body) }));
  const alike = withoutBlocks({ ...view.kernel, roles });
  const told = alike.roles.flatMap((r) => expressionsOf(r.body));
  const open = withParameterAxes({ ...view, kernel: alike }, [...told, ...openAxes(alike)]);
  const reduced = { ...open, kernel: atMost(open) };
  const instances = classes(reduced.kernel, new LoopPeriods(reduced), open.kernel.grid.axes);
  return instances && { view: reduced, instances, kept };
}

/** Extents of axes that are known at run time. */
function openAxes({ grid }: Kernel): readonly IndexExpr[] {
  return grid.axes.map((a) => a.extent).filter((e) => constantValue(e) === undefined);
}

/** The kernel with as many blocks along each axis as there can be, if no cluster lies along one that is open. */
function atMost({ kernel, facts }: LaunchView): Kernel {
  if (kernel.grid.clusterSize > 1) return kernel;
  const axes = kernel.grid.axes.map((a) => {
    const { max } = rangeOf(a.extent, facts.ranges);
    return Number.isSafeInteger(max) ? { ...a, extent: constant(max) } : a;
  });
  return { ...kernel, grid: { ...kernel.grid, axes } };
}

/** Of blocks whose number is open, where none does anything of its own, one. */
function withoutBlocks(kernel: Kernel): Kernel {
  const { axes, clusterSize } = kernel.grid;
  if (clusterSize > 1) return kernel;
  const told = variablesOf(...kernel.roles.flatMap((r) => expressionsOf(r.body)));
  const isOne = ({ name, extent }: GridAxis): boolean =>
    constantValue(extent) === undefined && !told.has(name);
  const one = axes.map((a) => (isOne(a) ? { ...a, extent: constant(1) } : a));
  return { ...kernel, grid: { ...kernel.grid, axes: one } };
}

/** Shared buffers: registers are one thread's (register-order.ts). */
function keptBuffers(kernel: Kernel): ReadonlySet<string> {
  return new Set(kernel.buffers.filter((b) => b.scope === "shared").map((b) => b.name));
}

class Pruning {
  readonly #kept: ReadonlySet<string>;

  constructor(kept: ReadonlySet<string>) {
    this.#kept = kept;
  }

  list(body: readonly Statement[]): readonly Statement[] {
    return body.flatMap((s) => this.#statement(s));
  }

  #statement(s: Statement): readonly Statement[] {
    switch (s.kind) {
      case "if": {
        const copy = guardedCopy(s);
        if (copy) return [copy];
        return this.#around(s);
      }
      case "for":
      case "when":
        return this.#around(s);
      case "let":
      case "letIndex":
        return this.#loads(s.value, s.kind);
      case "store": {
        const loads = this.#loads(s.value, s.kind);
        if (!this.#kept.has(s.buffer)) return loads;
        const { dtype, lanes } = s.value;
        const zero = dtype === "i64" || dtype === "u64" ? 0n : 0;
        return [...loads, { ...s, value: { kind: "literal", dtype, lanes, value: zero } }];
      }
      case "intrinsic": {
        const touches = s.operands.some((o) => o.kind === "tile" && this.#kept.has(o.buffer));
        return touches || s.completion.kind !== "sync" ? [s] : [];
      }
      default:
        return [s];
    }
  }

  #around(s: Statement): readonly Statement[] {
    const inside = mapBodies(s, (b) => this.list(b));
    return childBodies(inside).some((b) => b.length > 0) ? [inside] : [];
  }

  /** The loads of a value from kept buffers, each by itself. */
  #loads(value: Expr, name: string): readonly Statement[] {
    const found: Statement[] = [];
    visitExpr(value, (e) => {
      if (e.kind === "load" && this.#kept.has(e.buffer))
        found.push({ kind: "let", name, value: e });
    });
    return found;
  }
}

/** Whatever of the statements places, counts or control depend on. */
function expressionsOf(body: readonly Statement[]): readonly IndexExpr[] {
  const found: IndexExpr[] = [];
  visitStatements(body, (s) => found.push(...ownExpressions(s)));
  return found;
}

/** The same of one statement, without what is inside it. */
function ownExpressions(s: Statement): readonly IndexExpr[] {
  const found: IndexExpr[] = [];
  if (s.kind === "intrinsic") {
    const row = findTileIntrinsic(s.intrinsic)!;
    s.operands.forEach((o, i) => {
      const near = !row.operands[i]?.scopes.includes("memory");
      if (o.kind === "tile" && near) found.push(...o.index);
    });
    found.push(...completionIndices(s.completion));
  } else if (s.kind === "wait") found.push(...s.index, mod(s.value, 2));
  else found.push(...ownIndices(s));
  for (const value of ownExprs(s)) visitExpr(value, (e) => found.push(...exprIndices(e)));
  return found;
}

/**
 * One instance a class, each with the rest of its cluster; undefined where they are too many. Blocks are alike
 * that say the same once the numbers of their axes are put in.
 *
 * @param asGiven axes with extents over the axes before them, where a launch may have fewer blocks
 */
function classes(
  kernel: Kernel,
  periods: LoopPeriods,
  asGiven: readonly GridAxis[],
): readonly number[] | undefined {
  const { axes, clusterSize } = kernel.grid;
  const names = axes.map((a) => a.name);
  const extents = axes.map((a) => constantValue(a.extent) ?? Infinity);
  const count = extents.reduce((n, e) => n * e, 1);
  if (!Number.isSafeInteger(count) || count % clusterSize !== 0) return undefined;
  const telling = tellingOf(kernel, names);
  const parts = [...telling.values()];
  const extent = lastExtent(kernel, telling);
  const counts = extentsOf(kernel, telling, periods);
  const isOfBlocks = (e: IndexExpr): boolean => [...variablesOf(e)].every((n) => names.includes(n));
  const isMixed = parts.some(({ expr }) => !isOfBlocks(expr));
  const fewer = asGiven.filter((a) => constantValue(a.extent) === undefined);
  const open = openExtents(kernel, extents, usedNames(parts, fewer));
  const kinds = open.reduce((n, e) => n * e, 1);
  if (kinds > mostInstances) return undefined;
  if (isMixed && kinds * parts.length > mostSubstitutions) return undefined;
  const told = parts.filter((t) => keyOf(t) !== extent);
  const value = ({ expr: e, asks }: Telling, at: ReadonlyMap<string, number>): string | number => {
    if (asks && isOfBlocks(e)) {
      const n = evaluate(e, at);
      return asks === "zero" ? Number(n === 0) : Number(n >= 0);
    }
    if (isMixed) return substitute(e, at).key;
    const count = counts.get(e.key);
    return count === undefined ? evaluate(e, at) : periods.alike(count, evaluate(e, at));
  };
  const isThere = (at: ReadonlyMap<string, number>): boolean =>
    fewer.every((a) => at.get(a.name)! < evaluate(a.extent, at));
  const found = new Longest();
  for (let first = 0; first < kinds; first += clusterSize) {
    const blocks = Array.from({ length: parts.length === 0 ? 0 : clusterSize }, (_, rank) =>
      placeOf(first + rank, names, open),
    );
    if (!blocks.every(isThere)) continue;
    const key = blocks.map((at) => told.map((e) => value(e, at)).join()).join(";");
    const trips = blocks.map((at) =>
      extent === undefined ? 0 : evaluate(telling.get(extent)!.expr, at),
    );
    found.add(key, trips, instanceAt(placeOf(first, names, open), names, extents));
    if (parts.length === 0) break;
  }
  return found.instances.flatMap((first) =>
    Array.from({ length: clusterSize }, (_, rank) => first + rank),
  );
}

/** An expression by which blocks may differ; of a condition only whether it holds is asked. */
interface Telling {
  readonly expr: IndexExpr;
  readonly asks?: Condition["kind"];
}

/** The expression's own key where its value counts. */
function keyOf({ expr, asks }: Telling): string {
  return asks ? `${expr.key} ${asks}` : expr.key;
}

/** What a kernel's statements say of the numbers of its blocks, by key. */
function tellingOf(kernel: Kernel, names: readonly string[]): ReadonlyMap<string, Telling> {
  const telling = new Map<string, Telling>();
  for (const { body } of kernel.roles) {
    visitStatements(body, (s) => {
      for (const told of tellingsOf(s)) {
        const used = variablesOf(told.expr);
        if (names.some((name) => used.has(name))) telling.set(keyOf(told), told);
      }
    });
  }
  return telling;
}

function tellingsOf(s: Statement): readonly Telling[] {
  if (s.kind === "if") return s.conditions.map(({ kind, expr }) => ({ expr, asks: kind }));
  return ownExpressions(s).map((expr) => ({ expr }));
}

/** Axes that tell, and those by which how many such blocks there are is told. */
function usedNames(parts: readonly Telling[], fewer: readonly GridAxis[]): ReadonlySet<string> {
  const used = variablesOf(...parts.map((t) => t.expr));
  const extents = fewer.filter((a) => used.has(a.name)).map((a) => a.extent);
  return new Set([...used, ...variablesOf(...extents)]);
}

/** Extents of the axes; those that tell nothing stand at their beginning, if no cluster lies along them. */
function openExtents(
  { grid: { axes, clusterSize } }: Kernel,
  extents: readonly number[],
  used: ReadonlySet<string>,
): readonly number[] {
  const isWithinLast = clusterSize === 1 || (extents.at(-1) ?? 1) % clusterSize === 0;
  return axes.map(({ name }, axis) => {
    const isFree = isWithinLast && !(clusterSize > 1 && axis === axes.length - 1);
    return isFree && !used.has(name) ? Math.min(1, extents[axis]!) : extents[axis]!;
  });
}

/** Of clusters that say the same those that none has as many trips as, block by block. */
class Longest {
  readonly #found = new Map<string, { first: number; trips: readonly number[] }[]>();

  add(key: string, trips: readonly number[], first: number): void {
    const known = this.#found.get(key) ?? [];
    const covers = (a: readonly number[], b: readonly number[]) => a.every((n, i) => n >= b[i]!);
    if (known.some((k) => covers(k.trips, trips))) return;
    this.#found.set(key, [...known.filter((k) => !covers(trips, k.trips)), { first, trips }]);
  }

  get instances(): readonly number[] {
    return [...this.#found.values()].flatMap((of) => of.map(({ first }) => first));
  }
}

/**
 * The extents of a loop of a lone role that are all that tells blocks apart, where what stands behind it shares
 * no buffer and no counter with what stands up to its end: of two such blocks the one with fewer trips does the
 * first part of what the other does, since only barriers of the block hold its threads up, and behind the
 * loop both do the same, among accesses whose order comes from there alone. So the one with the most trips
 * says everything.
 */
function lastExtent(kernel: Kernel, telling: ReadonlyMap<string, Telling>): string | undefined {
  const [role, ...others] = kernel.roles;
  if (!role || others.length > 0) return undefined;
  const { body } = role;
  const end = body.findLastIndex((s) => s.kind === "for" && telling.has(s.extent.key));
  const last = body[end];
  if (last?.kind !== "for" || last.mode.kind !== "serial") return undefined;
  const [until, behind] = [body.slice(0, end + 1), body.slice(end + 1)];
  const [before, after] = [touchedOf(until), touchedOf(behind)];
  if (kernel.counters.some((c) => before.has(c.name))) return undefined;
  if ([...after].some((name) => before.has(name))) return undefined;
  let meetsOthers = false;
  visitStatements(until, (s) => {
    if (s.kind === "barrier" && (s.scope === "cluster" || s.scope === "grid")) meetsOthers = true;
  });
  const { key } = last.extent;
  const elsewhere = [body.slice(0, end), last.body, behind].flatMap(expressionsOf);
  return !meetsOthers && elsewhere.every((e) => e.key !== key) ? key : undefined;
}

/** Buffers and counters that statements name. */
function touchedOf(body: readonly Statement[]): ReadonlySet<string> {
  const found = new Set<string>();
  visitStatements(body, (s) => {
    for (const value of ownExprs(s))
      visitExpr(value, (e) => {
        if (e.kind === "load") found.add(e.buffer);
      });
    if (s.kind === "store") found.add(s.buffer);
    if (s.kind === "wait" || s.kind === "signal" || s.kind === "expect") found.add(s.counter);
    if (s.kind !== "intrinsic") return;
    for (const o of s.operands) if (o.kind === "tile") found.add(o.buffer);
    if (s.completion.kind === "signals") found.add(s.completion.counter);
  });
  return found;
}

/**
 * The variables of loops whose extents tell blocks apart and are nothing but extents, each of loops of one
 * variable: of such numbers of trips those are alike between which whole periods lie.
 */
function extentsOf(
  kernel: Kernel,
  telling: ReadonlyMap<string, Telling>,
  periods: LoopPeriods,
): ReadonlyMap<string, string> {
  const [loops, others] = [new Set<string>(), new Set<string>()];
  for (const role of kernel.roles) {
    visitStatements(role.body, (s) => {
      if (s.kind === "for") loops.add(s.extent.key);
      else for (const e of ownExpressions(s)) others.add(e.key);
    });
  }
  return new Map(
    [...telling].flatMap(([key, { expr }]) => {
      const names = loops.has(key) && !others.has(key) ? periods.variablesOf(expr) : [];
      return names.length === 1 ? [[key, names[0]!] as const] : [];
    }),
  );
}

function instanceAt(
  at: ReadonlyMap<string, number>,
  names: readonly string[],
  extents: readonly number[],
): number {
  return names.reduce((n, name, axis) => n * extents[axis]! + at.get(name)!, 0);
}

/** Values of the axes of an instance, the last one fastest. */
export function placeOf(
  instance: number,
  names: readonly string[],
  extents: readonly number[],
): Map<string, number> {
  const at = new Map<string, number>();
  let rest = instance;
  for (let axis = names.length - 1; axis >= 0; axis--) {
    at.set(names[axis]!, rest % extents[axis]!);
    rest = Math.floor(rest / extents[axis]!);
  }
  return at;
}
