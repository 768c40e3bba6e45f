/**
 * Private buffers of a role (registers and local memory): every element that is read has been written on
 * every way that leads there. A walk in program order with the set of elements surely written; a loop's
 * body counts only where it surely runs, a branch's where the other one writes as well. Elements are named
 * by constant indices; what is not constant is refused. A loop is walked twice: its first trip, in which conditions on
 * its variable are decided, then any later one.
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  constantValue,
  evaluate,
  type IndexExpr,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { findTileIntrinsic } from "../intrinsic-table.ts";
import type { Buffer, Role } from "../program.ts";
import type { Expr, Statement } from "../statement.ts";
import { ownExprs, visitExpr } from "../walk.ts";
import { constantIndex, type LaunchView } from "./launch-view.ts";
import type { Report } from "./report.ts";

export function checkRegisters(view: LaunchView, role: Role, report: Report): void {
  new RegisterWalk(view, role, report).list(role.body, new Set());
}

interface Place {
  readonly buffer: string;
  readonly index: Extract<Expr, { kind: "load" }>["index"];
}

class RegisterWalk {
  readonly #private: ReadonlyMap<string, Buffer>;
  readonly #report: Report;
  readonly #where: { readonly at: string };
  /** Loops in their first trip. */
  readonly #first = new Map<string, number>();

  constructor(view: LaunchView, role: Role, report: Report) {
    const own = view.kernel.buffers.filter((b) => b.scope === "register" || b.scope === "local");
    this.#private = new Map(own.map((b) => [b.name, b]));
    this.#report = report;
    this.#where = { at: `kernel ${view.kernel.name} role ${role.name}` };
  }

  list(body: readonly Statement[], written: Set<string>): void {
    for (const s of body) this.#statement(s, written);
  }

  #statement(s: Statement, written: Set<string>): void {
    for (const value of ownExprs(s)) {
      visitExpr(value, (e) => {
        if (e.kind === "load") this.#read(e, e.lanes, written);
      });
    }
    switch (s.kind) {
      case "for": {
        const inside = new Set(written);
        this.#first.set(s.variable, 0);
        this.list(s.body, inside);
        this.#first.delete(s.variable);
        this.list(s.body, new Set(inside));
        if ((constantValue(s.extent) ?? 0) > 0) for (const key of inside) written.add(key);
        return;
      }
      case "if":
      case "when": {
        const taken = s.kind === "if" ? this.#decided(s.conditions) : undefined;
        if (taken !== undefined) {
          this.list(taken ? s.then : s.else, written);
          return;
        }
        const [yes, no] = [new Set(written), new Set(written)];
        this.list(s.then, yes);
        this.list(s.else, no);
        for (const key of yes) if (no.has(key)) written.add(key);
        return;
      }
      case "store":
        this.#write(s, s.value.lanes, written);
        return;
      case "intrinsic": {
        const { operands } = findTileIntrinsic(s.intrinsic)!;
        for (const way of ["read", "write"] as const) {
          s.operands.forEach((o, i) => {
            const access = operands[i]!.access;
            if (o.kind !== "tile" || !(access === way || access === "readWrite")) return;
            const lanes = o.extents.reduce((a, b) => a * b, 1);
            if (way === "read") this.#read(o, lanes, written);
            else this.#write(o, lanes, written);
          });
        }
      }
    }
  }

  /** Whether the conditions hold, where the first trips decide it. */
  #decided(conditions: readonly Condition[]): boolean | undefined {
    const values = conditions.map(({ kind, expr }) => {
      if ([...variablesOf(expr)].some((name) => !this.#first.has(name))) return undefined;
      const value = evaluate(expr, this.#first);
      return kind === "zero" ? value === 0 : value >= 0;
    });
    if (values.includes(false)) return false;
    return values.includes(undefined) ? undefined : true;
  }

  #read(place: Place, lanes: number, written: ReadonlySet<string>): void {
    const missing = this.#elements(place, lanes).find((key) => !written.has(key));
    if (missing === undefined) return;
    this.#report.add("PRG021", `element ${missing} of private buffer ${place.buffer}`, this.#where);
  }

  #write(place: Place, lanes: number, written: Set<string>): void {
    for (const key of this.#elements(place, lanes)) written.add(key);
  }

  /** Names of `lanes` elements from the index on. */
  #elements({ buffer: name, index }: Place, lanes: number): readonly string[] {
    const buffer = this.#private.get(name);
    if (!buffer) return [];
    const elements = privateElements(buffer, index, lanes);
    const at = constantIndex(index);
    if (!elements || !at) {
      this.#report.add("PRG011", `index of private buffer ${name}`, this.#where);
      return [];
    }
    const shape = buffer.shape.map((e) => constantValue(e)!);
    const outside = at.some((i, axis) => i < 0 || i >= shape[axis]!);
    if (outside || (at.at(-1) ?? 0) + elements.length > (shape.at(-1) ?? 1)) {
      this.#report.add("PRG010", `[${at}] and ${elements.length} elements of ${name}`, this.#where);
    }
    return elements.map((i) => `${name}:${i}`);
  }
}

/** Numbers of the elements that `lanes` lanes from the index on fill; undefined where they vary. */
export function privateElements(
  { shape, lanes: own }: Buffer,
  index: readonly IndexExpr[],
  lanes: number,
): readonly number[] | undefined {
  const at = constantIndex(index);
  const extents = shape.map((e) => constantValue(e));
  if (!at || extents.some((n) => n === undefined)) return undefined;
  const flat = at.reduce((sum, i, axis) => sum * extents[axis]! + i, 0);
  return Array.from({ length: Math.ceil(lanes / own) }, (_, i) => flat + i);
}
