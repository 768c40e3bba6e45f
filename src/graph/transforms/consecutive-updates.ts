/**
 * Updates that stand behind each other along an axis (new rows of a cache of keys, from where each sequence ends on)
 * as a choice between what was there and the update whose place it is: scatterElements runs in order along its axis,
 * which machines with many threads have no use for, and needs a copy of its operand before it. Each element is
 * written once, by one kernel.
 */
import { type IndexExpr, indexEquals, toIndex } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Graph, Node, NodeOf, ValueId } from "../graph.ts";
import { type Rebuilt, rebuildGraph } from "./rebuild.ts";

export function consecutiveUpdates(graph: Graph): Rebuilt {
  const makers = new Map<Graph, ReadonlyMap<ValueId, Node>>();
  const makersOf = (of: Graph): ReadonlyMap<ValueId, Node> => {
    const known = makers.get(of) ?? new Map(of.nodes.map((n) => [n.outputs[0]!, n]));
    makers.set(of, known);
    return known;
  };
  return rebuildGraph(graph, {
    node: ({ b, old, node, inputs, newValue }) => {
      if (node.op !== "scatterElements" || node.attrs.reduction !== "none") return undefined;
      const { axis } = node.attrs;
      const found = new Places(old, makersOf(old)).of(node.inputs[1]!, axis);
      if (found === undefined) return undefined;
      const [data, , updates] = inputs as [ValueId, ValueId, ValueId];
      return chosen(b, { data, updates, places: newValue(found), axis });
    },
  });
}

/** What is known of numbers of places, as the graph computes them. */
class Places {
  readonly #graph: Graph;
  readonly #makers: ReadonlyMap<ValueId, Node>;

  constructor(graph: Graph, makers: ReadonlyMap<ValueId, Node>) {
    this.#graph = graph;
    this.#makers = makers;
  }

  /** The same numbers before they are repeated, where they go up by one along the axis. */
  of(value: ValueId, axis: number): ValueId | undefined {
    if (!this.#goesUp(value, axis)) return undefined;
    const maker = this.#makers.get(value);
    const from = maker?.op === "broadcast" ? maker.inputs[0]! : value;
    return this.#shape(from).length === this.#shape(value).length ? from : value;
  }

  #shape(value: ValueId): readonly IndexExpr[] {
    return this.#graph.values[value]!.type.shape;
  }

  /** Whether each number is one more than that before it along an axis; of one number, it is. */
  #goesUp(value: ValueId, axis: number): boolean {
    const extent = this.#shape(value)[axis]!;
    if (isOne(extent)) return true;
    const maker = this.#makers.get(value);
    switch (maker?.op) {
      case "iota":
        return maker.attrs.axis === axis;
      case "cast":
        return this.#goesUp(maker.inputs[0]!, axis);
      case "broadcast": {
        const own = this.#axisOf(maker.inputs[0]!, value, axis);
        return own !== undefined && this.#goesUp(maker.inputs[0]!, own);
      }
      case "reshape": {
        const own = this.#sameAxis(maker, axis);
        return own !== undefined && this.#goesUp(maker.inputs[0]!, own);
      }
      case "add": {
        const moving = maker.inputs.filter((x) => this.#axisOf(x, value, axis) !== undefined);
        const [only, ...others] = moving;
        if (only === undefined || others.length > 0) return false;
        return this.#goesUp(only, this.#axisOf(only, value, axis)!);
      }
      default:
        return false;
    }
  }

  /** The axis of an operand that becomes an axis of the result, where it is as long. */
  #axisOf(operand: ValueId, result: ValueId, axis: number): number | undefined {
    const own = axis - (this.#shape(result).length - this.#shape(operand).length);
    return own >= 0 && !isOne(this.#shape(operand)[own]!) ? own : undefined;
  }

  /** The axis before a reshape that adds or drops axes of one element. */
  #sameAxis({ inputs, outputs }: NodeOf<"reshape">, axis: number): number | undefined {
    const [from, to] = [this.#shape(inputs[0]!), this.#shape(outputs[0]!)];
    const wide = (shape: readonly IndexExpr[]): readonly number[] =>
      shape.flatMap((d, i) => (isOne(d) ? [] : [i]));
    const [before, after] = [wide(from), wide(to)];
    const isSame =
      before.length === after.length &&
      before.every((own, i) => indexEquals(from[own]!, to[after[i]!]!));
    return isSame ? before[after.indexOf(axis)] : undefined;
  }
}

function isOne(extent: IndexExpr): boolean {
  return indexEquals(extent, toIndex(1));
}

interface Update {
  readonly data: ValueId;
  readonly updates: ValueId;
  /** Of each update along the axis, one behind the other; it may be repeated along other axes. */
  readonly places: ValueId;
  readonly axis: number;
}

/** Elements of the data, or the updates whose places they are; undefined where numbers would be many or updates none. */
function chosen(
  b: GraphBuilder,
  { data, updates, places, axis }: Update,
): readonly ValueId[] | undefined {
  const shape = b.shapeOf(data);
  const [whole, part] = [shape, b.shapeOf(updates)].map((s) => s[axis]!) as [IndexExpr, IndexExpr];
  const last = shape.length - 1;
  const isMany = axis === last || !isOne(b.shapeOf(places)[last]!);
  const isSame = shape.every((d, i) => i === axis || indexEquals(d, b.shapeOf(updates)[i]!));
  if (isMany || !isSame || rangeOf(part, b.ranges).min < 1) return undefined;
  const number = (extent: ValueId): ValueId => b.extentProduct(extent, [axis], "i64");
  const [most, count] = [number(data), number(updates)];
  const begin = b.cast(b.sliceAxis(places, axis, 0, 1), "i64");
  const along = shape.map((_, i) => (i === axis ? whole : 1));
  const place = b.iota(along, axis, "i64");
  const behind = b.sub(place, begin);
  // Negative numbers count from the end.
  const from = b.apply("floorMod", behind, most);
  const isUpdate = b.apply("less", from, count);
  // A place outside of the data stays an error of the run: no update has that number.
  const zero = b.scalar(0, "i64");
  const first = b.sub(place, behind);
  const isInside = b.apply(
    "and",
    b.apply("lessEqual", zero, b.add(first, most)),
    b.apply("lessEqual", b.add(first, count), most),
  );
  const which = b.select(isInside, b.select(isUpdate, from, zero), count);
  const everywhere = b.node("broadcast", [which], { shape });
  const update = b.node("gatherElements", [updates, everywhere], { axis });
  return [b.select(isUpdate, update, data)];
}
