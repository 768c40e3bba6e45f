/**
 * Inputs that say of each element whether it counts: what is drawn for them at random has to be 0 or 1. Followed back
 * from where a very negative number is put in place of what does not count (a score that softmax makes 0 of), by a
 * product with it or by a choice, through what moves, converts, inverts, tests and combines such inputs.
 */
import type { Graph, Node, ValueId } from "./graph.ts";
import { traitsOf } from "./op-table.ts";
import { type PlainValue, plainValues } from "./plain-values.ts";
import { positionInputs } from "./position-inputs.ts";

/** Numbers up to this are put in place of a score: -10000 is the one of BERT, others are beyond. */
const least = -1e4;

/** Inputs that hold positions are none, whatever is tested of them (a token of padding). */
export function maskInputs(graph: Graph): ReadonlySet<ValueId> {
  const plain = plainValues(graph);
  const masks = new Set<ValueId>();
  for (const node of [...graph.nodes].reverse()) {
    for (const value of hiding(node, graph, plain)) masks.add(value);
    if (!node.outputs.some((v) => masks.has(v))) continue;
    for (const value of combined(node, graph, plain)) masks.add(value);
  }
  const positions = positionInputs(graph);
  return new Set(graph.inputs.filter((v) => masks.has(v) && !positions.has(v)));
}

type Plain = ReadonlyMap<ValueId, PlainValue>;

/** Operands that decide where a very negative number is. */
function hiding(node: Node, graph: Graph, plain: Plain): readonly ValueId[] {
  const [a, b, c] = node.inputs as readonly [ValueId, ValueId, ValueId];
  const isLow = (v: ValueId): boolean => (plain.get(v)?.number ?? 0) <= least;
  switch (traitsOf(node, graph).elementwise) {
    case "mul":
      if (isLow(b)) return [a];
      return isLow(a) ? [b] : [];
    case "select":
      return isLow(b) !== isLow(c) ? [a] : [];
    default:
      return [];
  }
}

/** Operands that a mask is made of by this node. */
function combined(node: Node, graph: Graph, plain: Plain): readonly ValueId[] {
  const { dataMovement, conversion, elementwise } = traitsOf(node, graph);
  const open = node.inputs.filter((v) => plain.get(v)?.number === undefined);
  if (dataMovement || conversion) return node.inputs;
  switch (elementwise) {
    case "not":
    case "and":
    case "or":
    case "mul":
      return open;
    // Of two that are not known the one is no mask, or both are something else (places that are compared).
    case "sub":
    case "equal":
    case "less":
    case "lessEqual":
      return open.length === 1 ? open : [];
    default:
      return [];
  }
}
