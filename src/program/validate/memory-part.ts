/**
 * What one role of a cooperative kernel does in memory, as a kernel whose threads never meet: barriers,
 * waits and everything in nearer scopes are left out, loads from there stand as zeros, asynchronous copies
 * become plain loads and stores. Its bounds, races and coverage are then those of sequential.ts, which
 * counts no two threads as ordered: what it proves holds under any synchronisation. Meant for kernels that
 * read no memory which they write.
 *
 * The numbers of threads and blocks are taken apart into digits wherever they are divided, each an axis of
 * the grid, so that indices are linear; and that of a tile where blocks go on from tile to tile
 * (tile-turns.ts).
 */
import { type Condition, inRange } from "../../semantics/condition.ts";
import { dtypes } from "../../semantics/dtype.ts";
import {
  add,
  atomOperands,
  constant,
  constantValue,
  floorDiv,
  type IndexAtom,
  type IndexExpr,
  mul,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { type IndexRanges, simplify } from "../../semantics/index-range.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { Buffer, GridAxis, Role } from "../program.ts";
import type { Expr, IntrinsicOperand, Statement } from "../statement.ts";
import {
  childBodies,
  exprIndices,
  mapBodies,
  mapConditions,
  mapExpr,
  mapOwn,
  mapStatements,
  ownIndices,
  substituteStatements,
  visitExpr,
  visitExprs,
  visitStatements,
} from "../walk.ts";
import type { LaunchView } from "./launch-view.ts";
import { overSharedRound } from "./shared-round.ts";
import { overTiles } from "./tile-turns.ts";

type Tile = Extract<IntrinsicOperand, { kind: "tile" }>;

export function memoryPart(view: LaunchView, role: Role): LaunchView {
  const inOrder = new MemoryPart(view).list(role.body);
  const { axes: blocks } = view.kernel.grid;
  const tiled =
    overTiles(blocks, inOrder, role) ??
    overSharedRound(blocks, inOrder, rangesOf(view.facts.ranges, role));
  const body = tiled?.body ?? inOrder;
  const axes = new Map<string, readonly GridAxis[]>();
  const bindings = new Map<string, IndexExpr>();
  const copies = tiled?.isOneCopy ? 1 : role.copies;
  const isOpen = (a: GridAxis): boolean => constantValue(a.extent) === undefined;
  const all = tiled?.axes ?? blocks;
  const ordered = [...all.filter(isOpen), ...all.filter((a) => !isOpen(a))];
  const spread = [
    ...ordered.map((a) => [a.name, a.extent] as const),
    [role.copyVariable, constant(copies)],
    [role.threadVariable, constant(role.threads)],
  ] as const;
  for (const [name, count] of spread) {
    if (name === undefined || (name === role.copyVariable && copies < role.copies)) continue;
    const digits = digitsOf(name, count, body);
    axes.set(name, digits.axes);
    bindings.set(name, digits.value);
  }
  const own = [...axes.values()].flat();
  let { facts } = view;
  for (const axis of own) facts = facts.withVariable(axis.name, axis.extent);
  const index = (e: IndexExpr): IndexExpr => simplify(simplify(e, facts.ranges), facts.ranges);
  const kernel = {
    ...view.kernel,
    grid: { ...view.kernel.grid, axes: own },
    buffers: [],
    counters: [],
    roles: [
      {
        name: role.name,
        copies: 1,
        threads: 1,
        body: mapIndices(substituteStatements(body, bindings), index),
      },
    ],
  };
  return { ...view, kernel, facts };
}

/** With the numbers of the role's copies and threads. */
function rangesOf(
  ranges: IndexRanges,
  { copies, copyVariable, threads, threadVariable }: Role,
): IndexRanges {
  const all = new Map(ranges);
  if (copyVariable !== undefined) all.set(copyVariable, { min: 0, max: copies - 1 });
  if (threadVariable !== undefined) all.set(threadVariable, { min: 0, max: threads - 1 });
  return all;
}

/** Whether the role stores to memory. */
export function writesMemory(view: LaunchView, role: Role): boolean {
  let found = false;
  visitStatements(role.body, (s) => {
    if (s.kind === "store" && view.roots.has(s.buffer)) found = true;
    if (s.kind !== "intrinsic") return;
    const row = findTileIntrinsic(s.intrinsic)!;
    s.operands.forEach((o, i) => {
      if (o.kind === "tile" && view.roots.has(o.buffer) && row.operands[i]!.access !== "read")
        found = true;
    });
  });
  return found;
}

function mapIndices(
  body: readonly Statement[],
  index: (e: IndexExpr) => IndexExpr,
): readonly Statement[] {
  const expr = (e: Expr): Expr =>
    mapExpr(e, (leaf) => {
      if (leaf.kind === "index") return { ...leaf, expr: index(leaf.expr) };
      if (leaf.kind !== "load") return leaf;
      return { ...leaf, index: leaf.index.map(index), guard: mapConditions(leaf.guard, index) };
    });
  return mapStatements(body, (s) => [mapOwn(s, { index, expr })]);
}

class MemoryPart {
  readonly #view: LaunchView;
  #copies = 0;

  constructor(view: LaunchView) {
    this.#view = view;
  }

  list(body: readonly Statement[]): readonly Statement[] {
    return body.flatMap((s) => this.#statement(s));
  }

  #statement(s: Statement): readonly Statement[] {
    switch (s.kind) {
      case "for":
      case "if": {
        const kept = mapBodies(s, (body) => this.list(body));
        return childBodies(kept).some((b) => b.length > 0) ? [kept] : [];
      }
      case "let":
      case "letIndex":
        return [{ ...s, value: this.#value(s.value) }];
      case "store":
        if (this.#view.roots.has(s.buffer)) return [{ ...s, value: this.#value(s.value) }];
        return this.#loadsOf(s.value);
      case "intrinsic":
        return s.operands.flatMap((operand, i) => {
          const { access, mayHangOver } = findTileIntrinsic(s.intrinsic)!.operands[i]!;
          if (operand.kind !== "tile" || !this.#view.roots.has(operand.buffer)) return [];
          return [
            ...(access === "write" ? [] : this.#box(operand, mayHangOver, "read")),
            ...(access === "read" ? [] : this.#box(operand, mayHangOver, "write")),
          ];
        });
      default:
        return [];
    }
  }

  /** The value with zeros for what nearer scopes hold. */
  #value(value: Expr): Expr {
    return mapExpr(value, (e) => {
      if (e.kind !== "load" || this.#view.roots.has(e.buffer)) return e;
      const { dtype, lanes } = e;
      return { kind: "literal", dtype, lanes, value: zeroLike(dtype) };
    });
  }

  /** What a store into a nearer scope reads of memory. */
  #loadsOf(value: Expr): readonly Statement[] {
    let reads = false;
    visitExpr(value, (e) => {
      if (e.kind === "load" && this.#view.roots.has(e.buffer)) reads = true;
    });
    if (!reads) return [];
    return [{ kind: "let", name: `copy.${this.#copies++}`, value: this.#value(value) }];
  }

  /** Every element of a box, inside the buffer where it may hang over. */
  #box(tile: Tile, mayHangOver: boolean, access: "read" | "write"): readonly Statement[] {
    const buffer = this.#view.buffers.get(tile.buffer)!;
    const lead = tile.index.length - tile.extents.length;
    const names = tile.extents.map((_, i) => `e${i}.${this.#copies}`);
    this.#copies++;
    const index = tile.index.map((e, axis) =>
      axis < lead ? e : add(e, variable(names[axis - lead]!)),
    );
    const conditions: readonly Condition[] = mayHangOver
      ? index.flatMap((e, axis) => inRange(e, buffer.shape[axis]!))
      : [];
    const touch = this.#touch(buffer, index, access);
    let body: readonly Statement[] =
      conditions.length === 0 ? [touch] : [{ kind: "if", conditions, then: [touch], else: [] }];
    for (const [i, name] of [...names.entries()].reverse()) {
      const extent = constant(tile.extents[i]!);
      body = [{ kind: "for", variable: name, extent, mode: { kind: "serial" }, body }];
    }
    return body;
  }

  #touch(buffer: Buffer, index: readonly IndexExpr[], access: "read" | "write"): Statement {
    const { dtype } = buffer;
    const fill = zeroLike(dtype);
    if (access === "write") {
      const value = { kind: "literal", dtype, lanes: 1, value: fill } as const;
      return { kind: "store", buffer: buffer.name, index, value };
    }
    const place = { buffer: buffer.name, index, guard: [], fill };
    const value: Expr = { kind: "load", dtype, lanes: 1, ...place };
    return { kind: "let", name: `copy.${this.#copies++}`, value };
  }
}

function zeroLike(dtype: Buffer["dtype"]): number | bigint {
  return dtypes[dtype].bits === 64 && dtype !== "f64" ? 0n : 0;
}

/**
 * The variable as a sum of digits to the bases that it is divided by, where each divides the next; else to
 * those that it is divided by alone: a sum with other variables is often divided only to name a row and a
 * column of one number, which needs no digits; else to those of them that divide its count.
 */
function digitsOf(
  name: string,
  count: IndexExpr,
  body: readonly Statement[],
): { readonly axes: readonly GridAxis[]; readonly value: IndexExpr } {
  const whole = { axes: [{ name, extent: count }], value: variable(name) };
  const most = constantValue(count) ?? Infinity;
  const divides = (n: number): boolean =>
    [count.constant, ...count.terms.map((t) => t.coefficient)].every((c) => c % n === 0);
  const [any, alone] = (["any", "alone"] as const).map((which) =>
    divisorsOf(name, body, which).filter((n) => n < most),
  );
  const bases = [any!, alone!, alone!.filter(divides)]
    .map((found) => [1, ...found])
    .find(
      (found) =>
        found.every((b, i) => i === 0 || b % found[i - 1]! === 0) && divides(found.at(-1)!),
    );
  if (!bases) return whole;
  const axes: GridAxis[] = [];
  let value = constant(0);
  for (const [i, base] of bases.entries()) {
    const next = bases[i + 1];
    const extent = next === undefined ? floorDiv(count, base) : constant(next / base);
    if (extent.key === "1") continue;
    const digit = `${name}.${base}`;
    axes.push({ name: digit, extent });
    value = add(value, mul(base, variable(digit)));
  }
  return axes.length > 0 ? { axes, value } : whole;
}

/** Units of the variable at which a floorDiv or mod, of it alone or of any sum, cuts it, ascending. */
function divisorsOf(
  name: string,
  body: readonly Statement[],
  which: "any" | "alone",
): readonly number[] {
  const found = new Set<number>();
  const visit = (e: IndexExpr): void => {
    for (const atom of e.terms.flatMap((t) => t.atoms)) {
      const operands = atomOperands(atom);
      const counts = which === "any" || variablesOf(...operands).size === 1;
      const divides = atom.kind === "floorDiv" || atom.kind === "mod";
      const divisor = counts && divides ? constantValue(operands[1]!) : undefined;
      const unit = divisor === undefined ? undefined : unitOf(operands[0]!, name);
      if (unit !== undefined) found.add(unit * divisor!);
      operands.forEach(visit);
    }
  };
  visitStatements(body, (s) => {
    ownIndices(s).forEach(visit);
  });
  visitExprs(body, (e) => {
    exprIndices(e).forEach(visit);
  });
  return [...found].filter((n) => Number.isInteger(n)).sort((a, b) => a - b);
}

/** What one step of the expression is in steps of the variable; undefined where it has none of it. */
function unitOf(e: IndexExpr, name: string): number | undefined {
  const term = e.terms.find((t) => t.atoms.some((a) => namesOf(a).has(name)));
  const [atom] = term?.atoms ?? [];
  if (!term || !atom || term.atoms.length > 1) return undefined;
  if (atom.kind === "variable") return 1 / term.coefficient;
  const [inner, by] = atomOperands(atom);
  const unit = unitOf(inner!, name);
  const divisor = atom.kind === "floorDiv" ? constantValue(by!) : 1;
  if (unit === undefined || divisor === undefined) return undefined;
  return (unit * divisor) / term.coefficient;
}

function namesOf(atom: IndexAtom): ReadonlySet<string> {
  if (atom.kind === "variable") return new Set([atom.name]);
  return variablesOf(...atomOperands(atom));
}
