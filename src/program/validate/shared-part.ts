/**
 * What a cooperative kernel does in shared scope and to its counters, and nothing else: what is left when
 * stores to memory, arithmetic and registers of one thread are taken out. Blocks that do the same there form a class,
 * and one block (or cluster) of each class is enough to be run.
 *
 * A copy that is guarded, `if c { issue cp.async d, s } else { store d = zero }`, stands as the copy alone:
 * whatever is ordered for the asynchronous write is ordered for the plain one, which is seen no later.
 */
import {
  constant,
  constantValue,
  evaluate,
  type IndexExpr,
  mod,
  substitute,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { guardedCopy } from "../guarded-copy.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { Kernel } from "../program.ts";
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
  const kernel = withoutBlocks({ ...view.kernel, roles });
  const reduced = { ...view, kernel };
  const instances = classes(kernel, new LoopPeriods(reduced));
  return instances && { view: reduced, instances, kept };
}

/** Of blocks whose number is open, where none does anything of its own, one. */
function withoutBlocks(kernel: Kernel): Kernel {
  const { axes, clusterSize } = kernel.grid;
  const names = new Set(axes.map((a) => a.name));
  const isOpen = axes.some((a) => constantValue(a.extent) === undefined) && clusterSize === 1;
  const tells = (e: IndexExpr): boolean => [...variablesOf(e)].some((name) => names.has(name));
  if (!isOpen || kernel.roles.some((r) => expressionsOf(r.body).some(tells))) return kernel;
  const one = axes.map((a) => ({ ...a, extent: constant(1) }));
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
 */
function classes(kernel: Kernel, periods: LoopPeriods): readonly number[] | undefined {
  const { axes, clusterSize } = kernel.grid;
  const names = axes.map((a) => a.name);
  const extents = axes.map((a) => constantValue(a.extent) ?? Infinity);
  const count = extents.reduce((n, e) => n * e, 1);
  if (!Number.isSafeInteger(count) || count % clusterSize !== 0) return undefined;
  const telling = new Map<string, IndexExpr>();
  for (const role of kernel.roles) {
    for (const e of expressionsOf(role.body)) {
      const used = variablesOf(e);
      if (names.some((name) => used.has(name))) telling.set(e.key, e);
    }
  }
  const parts = [...telling.values()];
  const extent = lastExtent(kernel, telling);
  const counts = extentsOf(kernel, telling, periods);
  const isMixed = parts.some((e) => [...variablesOf(e)].some((name) => !names.includes(name)));
  const used = variablesOf(...parts);
  // Without clusters, axes that tell nothing stand at their beginning.
  const open = names.map((name, axis) =>
    clusterSize > 1 || used.has(name) ? extents[axis]! : Math.min(1, extents[axis]!),
  );
  const kinds = open.reduce((n, e) => n * e, 1);
  if (kinds > mostInstances) return undefined;
  if (isMixed && kinds * parts.length > mostSubstitutions) return undefined;
  const found = new Map<string, { readonly first: number; readonly trips: number }>();
  for (let first = 0; first < kinds; first += clusterSize) {
    const keys: string[] = [];
    let trips = 0;
    for (let rank = 0; rank < clusterSize && parts.length > 0; rank++) {
      const at = placeOf(first + rank, names, open);
      const told = parts.filter((e) => e.key !== extent);
      if (extent !== undefined) trips = evaluate(telling.get(extent)!, at);
      keys.push(
        told
          .map((e) => {
            if (isMixed) return substitute(e, at).key;
            const value = evaluate(e, at);
            const count = counts.get(e.key);
            return count === undefined ? value : periods.alike(count, value);
          })
          .join(),
      );
    }
    const key = keys.join(";");
    const known = found.get(key);
    if (!known || known.trips < trips) {
      found.set(key, { first: instanceAt(placeOf(first, names, open), names, extents), trips });
    }
    if (parts.length === 0) break;
  }
  return [...found.values()].flatMap(({ first }) =>
    Array.from({ length: clusterSize }, (_, rank) => first + rank),
  );
}

/**
 * The extents of the last loop of a lone role without counters, where they are all that tells blocks apart: of
 * two such blocks the one with fewer trips does the first part of what the other does, and only barriers hold
 * its threads up, so the one with the most trips says everything.
 */
function lastExtent(kernel: Kernel, telling: ReadonlyMap<string, IndexExpr>): string | undefined {
  const [role, ...others] = kernel.roles;
  // What a thread has on its way it waits for by itself.
  const end = role?.body.findLastIndex((s) => s.kind !== "waitGroup");
  const last = role?.body[end ?? -1];
  if (!role || others.length > 0 || kernel.counters.length > 0) return undefined;
  if (last?.kind !== "for" || last.mode.kind !== "serial") return undefined;
  const { key } = last.extent;
  const elsewhere = [...expressionsOf(role.body.slice(0, end)), ...expressionsOf(last.body)];
  return telling.has(key) && elsewhere.every((e) => e.key !== key) ? key : undefined;
}

/**
 * The variables of loops whose extents tell blocks apart and are nothing but extents, each of loops of one
 * variable: of such numbers of trips those are alike between which whole periods lie.
 */
function extentsOf(
  kernel: Kernel,
  telling: ReadonlyMap<string, IndexExpr>,
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
    [...telling].flatMap(([key, e]) => {
      const names = loops.has(key) && !others.has(key) ? periods.variablesOf(e) : [];
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
