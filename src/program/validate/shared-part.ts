/**
 * What a cooperative kernel does in shared scope and to its counters, and nothing else: what is left when
 * stores to memory, arithmetic and registers of one thread are taken out. Blocks that do the same there form a class,
 * and one block (or cluster) of each class is enough to be run. Registers stay where an asynchronous
 * instruction works on them, for then their order is a question too.
 *
 * A copy that is guarded, `if c { issue cp.async d, s } else { store d = zero }`, stands as the copy alone:
 * whatever is ordered for the asynchronous write is ordered for the plain one, which is seen no later.
 */
import {
  constant,
  constantValue,
  evaluate,
  type IndexExpr,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { guardedCopy } from "../guarded-copy.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { Kernel } from "../program.ts";
import type { Expr, Statement } from "../statement.ts";
import {
  childBodies,
  exprIndices,
  mapBodies,
  ownExprs,
  ownIndices,
  visitExpr,
  visitStatements,
} from "../walk.ts";
import type { LaunchView } from "./launch-view.ts";

/** The view with the kernel reduced, and one instance of each class; undefined where blocks differ by more. */
export interface SharedPart {
  readonly view: LaunchView;
  readonly instances: readonly number[];
  readonly kept: ReadonlySet<string>;
}

const mostInstances = 1 << 20;

export function sharedPart(view: LaunchView): SharedPart | undefined {
  const kept = keptBuffers(view.kernel);
  const prune = new Pruning(view.kernel, kept);
  const roles = view.kernel.roles.map((r) => ({ ...r, body: prune.list(r.body) }));
  const kernel = withoutBlocks({ ...view.kernel, roles });
  const instances = classes(kernel);
  return instances && { view: { ...view, kernel }, instances, kept };
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

/** Shared buffers, and private ones that asynchronous instructions read or write. */
function keptBuffers(kernel: Kernel): ReadonlySet<string> {
  const kept = new Set(kernel.buffers.filter((b) => b.scope === "shared").map((b) => b.name));
  for (const role of kernel.roles) {
    visitStatements(role.body, (s) => {
      if (s.kind !== "intrinsic" || s.completion.kind === "sync") return;
      for (const o of s.operands) {
        if (o.kind === "tile" && kernel.buffers.some((b) => b.name === o.buffer))
          kept.add(o.buffer);
      }
    });
  }
  return kept;
}

class Pruning {
  readonly #kept: ReadonlySet<string>;
  readonly #registers: ReadonlySet<string>;

  constructor(kernel: Kernel, kept: ReadonlySet<string>) {
    this.#kept = kept;
    const registers = kernel.buffers.filter((b) => b.scope === "register");
    this.#registers = new Set(registers.map((b) => b.name));
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

  /** Branches that only read registers stand without their conditions: reading more is no easier to order. */
  #around(s: Statement): readonly Statement[] {
    const inside = mapBodies(s, (b) => this.list(b));
    const all = childBodies(inside).flat();
    if (s.kind !== "for" && all.every((inner) => this.#readsRegisters(inner))) return all;
    return childBodies(inside).some((b) => b.length > 0) ? [inside] : [];
  }

  #readsRegisters(s: Statement): boolean {
    return s.kind === "let" && s.value.kind === "load" && this.#registers.has(s.value.buffer);
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
  visitStatements(body, (s) => {
    if (s.kind === "intrinsic") {
      const row = findTileIntrinsic(s.intrinsic)!;
      s.operands.forEach((o, i) => {
        const near = !row.operands[i]?.scopes.includes("memory");
        if (o.kind === "tile" && near) found.push(...o.index);
      });
      if (s.completion.kind === "signals") found.push(...s.completion.index);
    } else found.push(...ownIndices(s));
    for (const value of ownExprs(s)) visitExpr(value, (e) => found.push(...exprIndices(e)));
  });
  return found;
}

/** One instance a class, each with the rest of its cluster; undefined where an index mixes block and thread. */
function classes(kernel: Kernel): readonly number[] | undefined {
  const { axes, clusterSize } = kernel.grid;
  const names = new Set(axes.map((a) => a.name));
  const extents = axes.map((a) => constantValue(a.extent));
  const count = extents.reduce<number>((n, e) => n * (e ?? Infinity), 1);
  if (!(count <= mostInstances) || count % clusterSize !== 0) return undefined;
  const telling = new Map<string, IndexExpr>();
  for (const role of kernel.roles) {
    for (const e of expressionsOf(role.body)) {
      const used = [...variablesOf(e)];
      if (!used.some((name) => names.has(name))) continue;
      if (used.every((name) => names.has(name))) telling.set(e.key, e);
      else return undefined;
    }
  }
  const found = new Map<string, number>();
  const parts = [...telling.values()];
  for (let first = 0; first < count; first += clusterSize) {
    let key = "";
    for (let rank = 0; rank < clusterSize && parts.length > 0; rank++) {
      const at = placeOf(
        first + rank,
        axes.map((a) => a.name),
        extents as number[],
      );
      key += `${parts.map((e) => evaluate(e, at)).join()};`;
    }
    if (!found.has(key)) found.set(key, first);
    if (parts.length === 0) break;
  }
  return [...found.values()].flatMap((first) =>
    Array.from({ length: clusterSize }, (_, rank) => first + rank),
  );
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
