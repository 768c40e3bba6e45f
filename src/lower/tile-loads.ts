/**
 * Loads of the copies that a tile makes of a statement. Copies that differ in loops which an access does not follow
 * load the same element: its place is worked out for the first of them. In: accesses, the tile's loops. Out: the
 * values that `loadAccess` gives for each copy.
 */

import type { Expr } from "../program/statement.ts";
import type { ScheduledStatement } from "../schedule/scheduled-region.ts";
import { variablesOf } from "../semantics/index-expr.ts";
import { loadAccess, type Site } from "./operands.ts";

export class TileLoads {
  readonly #scheduled: ScheduledStatement;
  /** By read: the loops that its element hangs on; absent where index tensors decide it. */
  readonly #follows: readonly (readonly string[])[] | undefined;
  /** Of one block: what is bound in another may be out of reach. */
  #known = new Map<string, Expr>();
  #block: Site["block"] | undefined;

  constructor(scheduled: ScheduledStatement, loops: readonly { readonly name: string }[]) {
    this.#scheduled = scheduled;
    const { statement, index } = scheduled;
    if (statement.indirects.length > 0) return;
    this.#follows = statement.reads.map((access) => {
      const own = variablesOf(...access.index, ...access.guard.map((c) => c.expr));
      const outside = [...own].flatMap((name) => index.get(name) ?? []);
      const all = variablesOf(...outside);
      return loops.map((l) => l.name).filter((name) => all.has(name));
    });
  }

  /** The reads of a copy, whose site differs from other copies' in the constants of the tile's loops alone. */
  of(site: Site): readonly Expr[] {
    const { reads } = this.#scheduled.statement;
    const follows = this.#follows;
    if (!follows) return reads.map((access) => loadAccess(access, site));
    if (site.block !== this.#block) this.#known = new Map();
    this.#block = site.block;
    return reads.map((access, i) => {
      const key = `${i} ${follows[i]!.map((name) => site.loops.get(name)?.key ?? name).join()}`;
      const value = this.#known.get(key) ?? loadAccess(access, site);
      this.#known.set(key, value);
      return value;
    });
  }
}
