/**
 * A number by which an operand of a product in f32 is multiplied, behind the sums instead (the scale of attention's
 * queries): there it is part of the product's kernel, before it a kernel of its own. The operand may be moved
 * between the two.
 */
import type { GraphBuilder } from "../builder.ts";
import type { Graph, Node, NodeOf, OpKind, ValueId } from "../graph.ts";
import { type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** Moves between a factor and the product, at most. */
const mostMoves = 4;

export function lateFactors(graph: Graph): Rebuilt {
  const makers = new Map<Graph, ReadonlyMap<ValueId, Node>>();
  const makersOf = (of: Graph): ReadonlyMap<ValueId, Node> => {
    const known = makers.get(of) ?? new Map(of.nodes.map((n) => [n.outputs[0]!, n]));
    makers.set(of, known);
    return known;
  };
  return rebuildGraph(graph, {
    node: ({ b, old, node, newValue }) => {
      if (node.op !== "contract" || node.attrs.accumulator !== "f32") return undefined;
      const factors: ValueId[] = [];
      const operands = node.inputs.map((value) => {
        const scaled = scaledBy(old, makersOf(old), value);
        if (!scaled) return newValue(value);
        factors.push(newValue(scaled.factor));
        return movedAgain(b, newValue(scaled.value), scaled.moves);
      });
      if (factors.length === 0) return undefined;
      const product = b.node("contract", operands, node.attrs);
      return [factors.reduce((x, factor) => b.mul(x, factor), product)];
    },
  });
}

interface Scaled {
  readonly value: ValueId;
  /** A constant of one element. */
  readonly factor: ValueId;
  /** From the value to the operand. */
  readonly moves: readonly Node[];
}

/** What an operand is a constant multiple of, where nobody else reads either. */
function scaledBy(
  graph: Graph,
  makers: ReadonlyMap<ValueId, Node>,
  operand: ValueId,
): Scaled | undefined {
  const moves: Node[] = [];
  for (let value = operand; moves.length <= mostMoves; ) {
    const maker = makers.get(value);
    if (!maker || graph.values[value]!.type.dtype !== "f32" || !isReadOnce(graph, value))
      return undefined;
    if (maker.op === "reshape" || maker.op === "transpose") {
      moves.unshift(maker);
      value = maker.inputs[0]!;
      continue;
    }
    if (maker.op !== "mul") return undefined;
    const factor = maker.inputs.find((x) => isNumber(graph, x));
    const other = maker.inputs.find((x) => x !== factor);
    return factor === undefined || other === undefined
      ? undefined
      : { value: other, factor, moves };
  }
  return undefined;
}

function isReadOnce({ nodes, outputs }: Graph, value: ValueId): boolean {
  const readers = nodes.reduce((n, node) => n + node.inputs.filter((x) => x === value).length, 0);
  return readers === 1 && !outputs.includes(value);
}

function isNumber({ weights, values }: Graph, value: ValueId): boolean {
  const { shape } = values[value]!.type;
  return shape.length === 0 && weights.some((w) => w.value === value && w.source.kind === "inline");
}

function movedAgain(b: GraphBuilder, value: ValueId, moves: readonly Node[]): ValueId {
  return moves.reduce((x, move) => {
    const { op, attrs } = move as NodeOf<OpKind>;
    return b.node(op, [x], attrs);
  }, value);
}
