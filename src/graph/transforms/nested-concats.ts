/**
 * A concatenation that begins, or ends, with all that an earlier one of the graph joins takes that one's result in
 * their place: exporters of densely connected networks list every feature map again for each layer. Equal to the
 * last bit. What is left is a copy of one tensor, which regions may do without (region/growing-joins.ts).
 */
import type { Graph, NodeOf, ValueId } from "../graph.ts";
import { type Rebuilt, rebuildGraph } from "./rebuild.ts";

type Concat = NodeOf<"concat">;

interface Joined {
  readonly node: Concat;
  readonly position: number;
}

/** The concatenations of a graph by what they begin with and by what they end with. */
interface Joins {
  readonly byFirst: ReadonlyMap<ValueId, readonly Joined[]>;
  readonly byLast: ReadonlyMap<ValueId, readonly Joined[]>;
  readonly positions: ReadonlyMap<number, number>;
}

export function nestConcats(graph: Graph): Rebuilt {
  const known = new Map<Graph, Joins>();
  return rebuildGraph(graph, {
    node: ({ b, node, old, newValue }) => {
      if (node.op !== "concat") return undefined;
      const joins = known.get(old) ?? joinsOf(old);
      known.set(old, joins);
      const concat = node as Concat;
      const { inputs } = concat;
      const begin = longest(joins.byFirst.get(inputs[0]!), concat, joins, "begin");
      if (begin) {
        const rest = inputs.slice(begin.inputs.length);
        return [b.node("concat", [begin.outputs[0]!, ...rest].map(newValue), concat.attrs)];
      }
      const end = longest(joins.byLast.get(inputs.at(-1)!), concat, joins, "end");
      if (!end) return undefined;
      const rest = inputs.slice(0, -end.inputs.length);
      return [b.node("concat", [...rest, end.outputs[0]!].map(newValue), concat.attrs)];
    },
  });
}

function joinsOf({ nodes }: Graph): Joins {
  const [byFirst, byLast] = [new Map<ValueId, Joined[]>(), new Map<ValueId, Joined[]>()];
  const positions = new Map<number, number>();
  for (const [position, node] of nodes.entries()) {
    if (node.op !== "concat" || node.inputs.length < 2) continue;
    positions.set(node.id, position);
    const joined = { node: node as Concat, position };
    for (const [table, at] of [
      [byFirst, 0],
      [byLast, -1],
    ] as const) {
      const id = node.inputs.at(at)!;
      table.set(id, [...(table.get(id) ?? []), joined]);
    }
  }
  return { byFirst, byLast, positions };
}

/** Of the earlier concatenations along the same axis that are a part of this one, that of the most operands. */
function longest(
  candidates: readonly Joined[] = [],
  { id, inputs, attrs }: Concat,
  { positions }: Joins,
  side: "begin" | "end",
): Concat | undefined {
  const own = positions.get(id) ?? 0;
  let found: Concat | undefined;
  for (const { node, position } of candidates) {
    const count = node.inputs.length;
    if (position >= own || count >= inputs.length || node.attrs.axis !== attrs.axis) continue;
    const from = side === "begin" ? 0 : inputs.length - count;
    const isPart = node.inputs.every((input, i) => input === inputs[from + i]);
    if (isPart && count > (found?.inputs.length ?? 1)) found = node;
  }
  return found;
}
