/**
 * The symbols that a graph under construction may mention: its own and, for a subgraph, those of the
 * graphs around it. Names are unique over a graph and all its subgraphs.
 */
import type { IndexRange } from "../semantics/index-range.ts";
import { reject } from "../support/diagnostic.ts";
import type { GraphSymbol } from "./graph.ts";

export class SymbolScope {
  /** Shared with the scopes of subgraphs, since their names are unique. */
  readonly ranges: Map<string, IndexRange>;
  readonly own: GraphSymbol[] = [];

  constructor(outer?: SymbolScope) {
    this.ranges = outer ? outer.ranges : new Map();
  }

  declare(symbol: GraphSymbol): void {
    const { name, min, max } = symbol;
    if (this.ranges.has(name)) reject("GRF005", `symbol "${name}" is declared twice`);
    if (!(Number.isSafeInteger(min) && min >= 0 && min <= max && max > -Infinity)) {
      reject("GRF003", `symbol "${name}" has the range ${min} to ${max}`, {
        help: "a dimension lies between 0 and a larger or equal bound (or Infinity)",
      });
    }
    this.ranges.set(name, { min, max });
    this.own.push({ name, min, max });
  }

  /** A name that starts with `hint` and is not taken. */
  unusedName(hint: string): string {
    if (!this.ranges.has(hint)) return hint;
    for (let i = 1; ; i++) if (!this.ranges.has(`${hint}_${i}`)) return `${hint}_${i}`;
  }
}
