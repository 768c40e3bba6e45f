/** Extents that nothing bounds: what is refused where sizes must be known beforehand. */

import { variablesOf } from "../semantics/index-expr.ts";
import { type Diagnostic, diagnostic } from "../support/diagnostic.ts";
import type { Graph } from "./graph.ts";

/** Undefined when every symbol of the graph has an upper bound. */
export function unboundedSymbols(graph: Graph): Diagnostic | undefined {
  const open = graph.symbols.filter((s) => s.max === Infinity).map((s) => s.name);
  // Sizes that data decide are bounded by those of the inputs: these are what can be given.
  const given = variablesOf(...graph.inputs.flatMap((v) => graph.values[v]!.type.shape));
  const own = open.filter((name) => given.has(name));
  const names = own.length > 0 ? own : open;
  const [first] = names;
  if (first === undefined) return undefined;
  return diagnostic("CLI005", `extents without an upper bound: ${names.join(", ")}`, {
    help: `give each a value or a range, for example --shape ${first}=32 or --shape ${first}=32..960`,
  });
}
