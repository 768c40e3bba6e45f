/**
 * Inputs whose elements are positions along an axis (token ids, places to gather from): what is drawn for them at
 * random has to be within its extent. Followed back from the operators that take positions through those that
 * move or convert elements, and through arithmetic that leaves positions which are not negative as they are
 * (plain-values.ts) or makes them no larger.
 */
import { type IndexExpr, sub } from "../semantics/index-expr.ts";
import type { Graph, Node, ValueId } from "./graph.ts";
import { traitsOf } from "./op-table.ts";
import { type PlainValue, plainValues } from "./plain-values.ts";

/** By input the extents that each of its elements must be less than. */
export function positionInputs(graph: Graph): ReadonlyMap<ValueId, readonly IndexExpr[]> {
  const limits = new Map<ValueId, Set<IndexExpr>>();
  const add = (value: ValueId, extents: Iterable<IndexExpr>): void => {
    const known = limits.get(value) ?? new Set<IndexExpr>();
    for (const extent of extents) known.add(extent);
    limits.set(value, known);
  };
  const plain = plainValues(graph);
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
    else
      for (const { value, offset } of carriersOf(node, graph, plain)) {
        add(value, offset === 0 ? below : below.map((extent) => sub(extent, offset)));
      }
  }
  return new Map(
    graph.inputs.flatMap((v) => (limits.has(v) ? [[v, [...limits.get(v)!]] as const] : [])),
  );
}

/** An operand that the result is, up to an offset, or that it is no larger than. */
interface Carrier {
  readonly value: ValueId;
  readonly offset: number;
}

function carriersOf(
  node: Node,
  graph: Graph,
  plain: ReadonlyMap<ValueId, PlainValue>,
): readonly Carrier[] {
  const [a, b, c] = node.inputs;
  const number = (v: ValueId | undefined): number | undefined => plain.get(v!)?.number;
  const as = (...values: readonly (ValueId | undefined)[]): readonly Carrier[] =>
    values.map((value) => ({ value: value!, offset: 0 }));
  if (node.op === "clip") return as(a);
  switch (traitsOf(node, graph).elementwise) {
    case "add": {
      const [x, y] = [number(a), number(b)];
      if (y !== undefined && y >= 0) return [{ value: a!, offset: y }];
      return x !== undefined && x >= 0 ? [{ value: b!, offset: x }] : [];
    }
    case "sub":
      return number(b) === 0 ? as(a) : [];
    case "mul":
      if (number(b) === 1) return as(a);
      return number(a) === 1 ? as(b) : [];
    case "select": {
      const condition = number(a);
      return condition === undefined ? as(b, c) : as(condition === 0 ? c : b);
    }
    case "max":
    case "min":
      return as(a, b);
    case "abs":
    case "relu":
    case "mod":
    case "floorMod":
      return as(a);
    default:
      return [];
  }
}
