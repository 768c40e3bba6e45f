/** Extents that nothing bounds: what is refused where sizes must be known beforehand. */

import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import type { Graph } from "./graph.ts";

/** Undefined when every symbol of the graph has an upper bound. */
export function unboundedSymbols(graph: Graph): Diagnostic | undefined {
  const names = graph.symbols.filter((s) => s.max === Infinity).map((s) => s.name);
  const [first] = names;
  if (first === undefined) return undefined;
  return diagnostic("CLI005", `extents without an upper bound: ${names.join(", ")}`, {
    help: `give each a value or a range, for example --shape ${first}=32 or --shape ${first}=32..960`,
  });
}
