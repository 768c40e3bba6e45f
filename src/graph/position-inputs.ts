/**
 * Inputs whose elements are positions along an axis (token ids, places to gather from): what is drawn for them at
 * random has to be within its extent. Followed back from the operators that take positions through those that only
 * move or convert elements.
 */
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { Graph, ValueId } from "./graph.ts";
import { traitsOf } from "./op-table.ts";

/** By input the extents that each of its elements must be less than. */
export function positionInputs(graph: Graph): ReadonlyMap<ValueId, readonly IndexExpr[]> {
  const limits = new Map<ValueId, Set<IndexExpr>>();
  const add = (value: ValueId, extents: Iterable<IndexExpr>): void => {
    const known = limits.get(value) ?? new Set<IndexExpr>();
    for (const extent of extents) known.add(extent);
    limits.set(value, known);
  };
  for (const node of [...graph.nodes].reverse()) {
    const { positions, dataMovement, conversion } = traitsOf(node, graph);
    const [first, second] = node.inputs;
    if (positions) {
      const { shape } = graph.values[first!]!.type;
      add(
        second!,
        positions.map((axis) => shape[axis]!),
      );
    }
    const below = node.outputs.flatMap((v) => [...(limits.get(v) ?? [])]);
    if (below.length === 0) continue;
    // What positions pick from is copied.
    if (positions) add(first!, below);
    else if (dataMovement || conversion) for (const input of node.inputs) add(input, below);
  }
  return new Map(
    graph.inputs.flatMap((v) => (limits.has(v) ? [[v, [...limits.get(v)!]] as const] : [])),
  );
}
