/**
 * Index variables that a kernel binds to data (`letIndex`): lengths of sequences, places in tables. Where all
 * threads of a block bind one alike, because its value is made of constants, the block's number and memory
 * that the kernel does not write, it is to them what the number of the block is: a number that any block may
 * have. What threads of a block do together is then proved for each of its values as for a further axis of
 * the grid; of what goes to memory the values stay open.
 */
import { constantValue, variablesOf } from "../../semantics/index-expr.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { GridAxis } from "../program.ts";
import type { Expr, Statement } from "../statement.ts";
import { childBodies, exprIndices, mapExpr, visitExpr, visitStatements } from "../walk.ts";
import { type LaunchView, someStatement } from "./launch-view.ts";

/** The view with such variables as axes, the slowest of the grid; undefined where one is another in each thread. */
export function withDataAxes(view: LaunchView): LaunchView | undefined {
  const binds = (s: Statement): boolean => s.kind === "letIndex";
  if (!view.kernel.roles.some((r) => someStatement(r.body, binds))) return view;
  const reader = new AxisReader(view);
  if (!view.kernel.roles.every((r) => reader.body(r.body, new Map(), false))) return undefined;
  const own = [...reader.axes.values()].map((a) => a.axis);
  const { kernel } = view;
  let { facts } = view;
  for (const axis of own) facts = facts.withVariable(axis.name, axis.extent);
  const grid = { ...kernel.grid, axes: [...own, ...kernel.grid.axes] };
  return { ...view, kernel: { ...kernel, grid }, facts };
}

interface Bound {
  readonly axis: GridAxis;
  /** Of its value; equal in all roles that bind it. */
  readonly key: string;
}

class AxisReader {
  readonly axes = new Map<string, Bound>();
  readonly #view: LaunchView;
  readonly #written: ReadonlySet<string>;
  readonly #given: ReadonlySet<string>;

  constructor(view: LaunchView) {
    this.#view = view;
    this.#written = rootsWritten(view);
    this.#given = new Set(view.kernel.grid.axes.map((a) => a.name));
  }

  /** Whether every index that the statements bind is one of a block; `lets` are the values in scope. */
  body(body: readonly Statement[], lets: ReadonlyMap<string, Expr>, isInLoop: boolean): boolean {
    const own = new Map(lets);
    return body.every((s) => {
      if (s.kind === "let") own.set(s.name, s.value);
      if (s.kind === "letIndex" && (isInLoop || !this.#bind(s, own))) return false;
      const inside = isInLoop || s.kind === "for";
      return childBodies(s).every((b) => this.body(b, own, inside));
    });
  }

  #bind(s: Extract<Statement, { kind: "letIndex" }>, lets: ReadonlyMap<string, Expr>): boolean {
    const value = withLets(s.value, lets);
    if (constantValue(s.extent) === undefined || !this.#isOfBlock(value)) return false;
    const key = JSON.stringify([s.extent.key, s.wraps, value], (_, v) =>
      typeof v === "bigint" ? `${v}n` : v,
    );
    const known = this.axes.get(s.name);
    this.axes.set(s.name, { axis: { name: s.name, extent: s.extent }, key });
    return known === undefined || known.key === key;
  }

  #isOfBlock(value: Expr): boolean {
    let isOwn = true;
    visitExpr(value, (e) => {
      const used = variablesOf(...exprIndices(e));
      if ([...used].some((name) => !this.#given.has(name))) isOwn = false;
      if (e.kind === "local") isOwn = false;
      if (e.kind !== "load") return;
      const roots = this.#view.roots.get(e.buffer);
      if (!roots || roots.some((root) => this.#written.has(root))) isOwn = false;
    });
    return isOwn;
  }
}

/** A value with those of its locals that are known in their places. */
function withLets(value: Expr, lets: ReadonlyMap<string, Expr>): Expr {
  return mapExpr(value, (e) => {
    const known = e.kind === "local" ? lets.get(e.name) : undefined;
    return known ? withLets(known, lets) : e;
  });
}

function rootsWritten({ kernel, roots }: LaunchView): ReadonlySet<string> {
  const names: string[] = [];
  for (const { body } of kernel.roles) {
    visitStatements(body, (s) => {
      if (s.kind === "store") names.push(s.buffer);
      if (s.kind !== "intrinsic") return;
      const { operands } = findTileIntrinsic(s.intrinsic)!;
      s.operands.forEach((o, i) => {
        if (o.kind === "tile" && operands[i]!.access !== "read") names.push(o.buffer);
      });
    });
  }
  return new Set(names.flatMap((name) => roots.get(name) ?? []));
}
