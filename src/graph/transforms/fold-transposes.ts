/**
 * Transposes in front of contractions as orders of their labels, for machines whose products take operands in
 * any order of axes:
 *
 *   contract {lhs: "i k", …} (transpose x, y)  =  contract {lhs: "k i", …} (x, y)
 *
 * In: a graph of core ops. Out: the same, where such an operand is read as it lies. What maps each element by
 * itself between the two (conversions, factors that are one number) maps the elements as they lie, and a
 * reshape that adds or drops axes of one element is no obstacle. A transpose that others read as well stays for
 * them; the contraction then reads what it is of only where that is in memory anyway.
 *
 * An order is kept where the machine would lose by the other: where elements have to lie along the depth, where
 * neighbours would be problems of a batch, where lines would no longer begin at multiples of what one copy moves,
 * and where both operands are matrices that copies bring and would not be. Extents have to be known for that.
 * Nothing is computed otherwise: the numeric class is exact.
 */
import { type DType, dtypes, isIntegerDType } from "../../semantics/dtype.ts";
import { constantValue, type IndexExpr, indexEquals } from "../../semantics/index-expr.ts";
import type { Graph, Node, NodeOf, TensorType, ValueId } from "../graph.ts";
import { traitsOf } from "../op-table.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** How a machine's products take their operands. */
export interface ProductOrders {
  /** Types whose elements may lie along the depth or across it, at one price. */
  readonly eitherWay: ReadonlySet<DType>;
  /** Types whose elements are multiplied along the depth, and turned first where they lie otherwise. */
  readonly alongDepth: ReadonlySet<DType>;
  /** Bytes that one copy of a line's elements moves at most. */
  readonly lineBytes: number;
  /** Whether copies bring tiles of a tensor's last two axes. */
  readonly copiesMatrices: boolean;
}

/** What a contraction reads, with the labels of its axes; undefined: of an axis of one element that it has not. */
interface Read {
  /** An old value. */
  readonly value: ValueId;
  readonly labels: readonly (string | undefined)[];
  /** What maps its elements before they are multiplied, the last first. */
  readonly maps: readonly ElementMap[];
}

/** A node that maps each element of one operand by itself. */
interface ElementMap {
  readonly node: Node;
  /** The operand, an old value. */
  readonly of: ValueId;
}

type Role = "own" | "batch" | "depth";

export function foldTransposes(graph: Graph, orders: ProductOrders): Rebuilt {
  const known = new Map<Graph, Uses>();
  return rebuildGraph(graph, {
    node: (site) => {
      const { node, old } = site;
      if (node.op !== "contract") return undefined;
      const uses = known.get(old) ?? new Uses(old);
      known.set(old, uses);
      const folded = new Operands(node, uses, orders).folded();
      if (!folded) return undefined;
      const [left, right] = folded.map((read) => rebuilt(site, read));
      const labels = { lhs: left!.labels, rhs: right!.labels };
      return site.b.nodes("contract", [left!.value, right!.value], { ...node.attrs, ...labels });
    },
  });
}

/** The operand in the new graph, with a label for each of its axes. */
function rebuilt({ b, newValue }: RebuildSite, { read, before }: { read: Read; before: Read }) {
  const value = read.maps.toReversed().reduce((mapped, { node, of }) => {
    const rank = b.rankOf(mapped);
    const number = (id: ValueId) => (b.rankOf(id) > rank ? b.reshape(id, []) : id);
    const inputs = node.inputs.map((id) => (id === of ? mapped : number(newValue(id))));
    return b.nodes(node.op, inputs, node.attrs as never)[0]!;
  }, newValue(read.value));
  const kept = new Set(read.labels);
  const added = before.labels.flatMap((label) => (kept.has(label) ? [] : [label!]));
  const own = read.labels.flatMap((label, axis) => (label === undefined ? [] : [{ label, axis }]));
  const shape = b.shapeOf(value);
  const extents = [...added.map(() => 1), ...own.map(({ axis }) => shape[axis]!)];
  return { value: b.reshape(value, extents), labels: [...added, ...own.map(({ label }) => label)] };
}

/** Who makes and who reads each value of a graph. */
class Uses {
  readonly producers: ReadonlyMap<ValueId, Node>;
  readonly #graph: Graph;
  readonly #readers = new Map<ValueId, Node[]>();

  constructor(graph: Graph) {
    this.#graph = graph;
    this.producers = new Map(graph.nodes.map((n) => [n.outputs[0]!, n] as const));
    for (const node of graph.nodes) {
      for (const id of new Set(node.inputs)) {
        const readers = this.#readers.get(id);
        if (readers) readers.push(node);
        else this.#readers.set(id, [node]);
      }
    }
  }

  typeOf(id: ValueId): TensorType {
    return this.#graph.values[id]!.type;
  }

  /** What may be read in place of an operand: what each transpose on the way back is of. */
  readsBefore(read: Read, reader: Node): readonly Read[] {
    const found: Read[] = [];
    let from = reader;
    for (let at: Read | undefined = read; at; ) {
      const node = this.producers.get(at.value);
      const next: Read | undefined = node && this.#before(at, node, from);
      if (next && node!.op === "transpose") found.push(next);
      if (node) from = node;
      at = next;
    }
    return found;
  }

  #before(read: Read, node: Node, reader: Node): Read | undefined {
    if (node.outputs.length > 1) return undefined;
    const others = this.#readersBeside(read.value, reader);
    const [x] = node.inputs;
    if (node.op === "transpose" || node.op === "reshape") {
      const isLeft = others.some((n) => n?.op !== "contract");
      if (isLeft && !this.#isStored(x!)) return undefined;
      const labels = node.op === "transpose" ? labelsBefore(read, node) : this.#widened(read, x!);
      return labels && { ...read, value: x!, labels };
    }
    const mapped = others.length === 0 ? this.#mappedBy(node) : undefined;
    return mapped === undefined
      ? undefined
      : { ...read, value: mapped, maps: [...read.maps, { node, of: mapped }] };
  }

  /** Readers but for one; undefined is the caller of the graph. */
  #readersBeside(id: ValueId, reader: Node): readonly (Node | undefined)[] {
    const others = (this.#readers.get(id) ?? []).filter((n) => n.outputs[0] !== reader.outputs[0]);
    return this.#graph.outputs.includes(id) ? [...others, undefined] : others;
  }

  /** Whether a value is in memory whatever becomes of its transposes. */
  #isStored(id: ValueId): boolean {
    const { inputs, outputs, weights } = this.#graph;
    if (inputs.includes(id) || outputs.includes(id)) return true;
    const isFactor = (this.#readers.get(id) ?? []).some(
      (n) => traitsOf(n, this.#graph).contraction,
    );
    return isFactor || weights.some((w) => w.value === id);
  }

  /** The one operand whose elements a node maps each by itself, the others being single numbers. */
  #mappedBy(node: Node): ValueId | undefined {
    const { elementwise, conversion } = traitsOf(node, this.#graph);
    if (!elementwise && !conversion) return undefined;
    const [mapped, ...others] = node.inputs.filter((id) => !this.#isNumber(id));
    if (mapped === undefined || others.length > 0) return undefined;
    const { shape } = this.typeOf(mapped);
    const fits = node.inputs.every((id) => this.typeOf(id).shape.length <= shape.length);
    return fits && node.inputs.filter((id) => id === mapped).length === 1 ? mapped : undefined;
  }

  #isNumber(id: ValueId): boolean {
    return this.typeOf(id).shape.every(isOne);
  }

  /** Labels of what a reshape is of, where it only adds or drops axes of one element. */
  #widened({ value, labels }: Read, of: ValueId): Read["labels"] | undefined {
    const [to, from] = [this.typeOf(value).shape, this.typeOf(of).shape];
    const wide = (shape: readonly IndexExpr[]) => shape.flatMap((d, i) => (isOne(d) ? [] : [i]));
    const [kept, axes] = [wide(to), wide(from)];
    const isSame = (axis: number, i: number): boolean => indexEquals(from[axis]!, to[kept[i]!]!);
    if (kept.length !== axes.length || !axes.every(isSame)) return undefined;
    return from.map((_, axis) =>
      axes.includes(axis) ? labels[kept[axes.indexOf(axis)]!] : undefined,
    );
  }
}

function labelsBefore({ labels }: Read, { attrs }: NodeOf<"transpose">): Read["labels"] {
  return attrs.permutation.map((_, axis) => labels[attrs.permutation.indexOf(axis)]);
}

function isOne(extent: IndexExpr): boolean {
  return constantValue(extent) === 1;
}

/** Both operands of one contraction, and which orders its products take. */
class Operands {
  readonly #node: NodeOf<"contract">;
  readonly #uses: Uses;
  readonly #orders: ProductOrders;

  constructor(node: NodeOf<"contract">, uses: Uses, orders: ProductOrders) {
    this.#node = node;
    this.#uses = uses;
    this.#orders = orders;
  }

  /** What to read in place of the operands; undefined: they stay. */
  folded(): readonly { readonly read: Read; readonly before: Read }[] | undefined {
    const { attrs, inputs } = this.#node;
    const asRead = [attrs.lhs, attrs.rhs].map(
      (labels, i): Read => ({ value: inputs[i]!, labels, maps: [] }),
    );
    const found = asRead.map((read) => this.#uses.readsBefore(read, this.#node));
    if (found.every((reads) => reads.length === 0) || !this.#isKnown()) return undefined;
    // What keeps its neighbours is read as it lies without being asked for (region/groups.ts).
    const near = asRead.map(
      (read, i) => found[i]!.findLast((r) => this.#near(r) === this.#near(read)) ?? read,
    );
    const areMatrices = this.#orders.copiesMatrices && near.every((read) => this.#isMatrix(read));
    const chosen = near.map(
      (read, i) => found[i]!.findLast((r) => this.#isTaken(r, read, areMatrices)) ?? read,
    );
    if (chosen.every((read, i) => read === asRead[i])) return undefined;
    return chosen.map((read, i) => ({ read, before: asRead[i]! }));
  }

  #isKnown(): boolean {
    const shapes = this.#node.inputs.flatMap((id) => this.#uses.typeOf(id).shape);
    return shapes.every((d) => constantValue(d) !== undefined);
  }

  /** Whether a product gains or loses nothing by reading `next` in place of `read`, but for the transpose. */
  #isTaken(next: Read, read: Read, areMatrices: boolean): boolean {
    const dtype = this.#multiplied(next);
    const [before, after] = [this.#role(this.#near(read)), this.#role(this.#near(next))];
    const isAlong = this.#orders.alongDepth.has(dtype);
    if (!isAlong && !this.#orders.eitherWay.has(dtype)) return false;
    if (isAlong && before === "depth" && after !== "depth") return false;
    if (after === "batch" && before !== "batch") return false;
    if (this.#alignment(next) < this.#alignment(read)) return false;
    return !areMatrices || this.#isMatrix(next);
  }

  /** The type in which elements are read: short integers are made wider in the product. */
  #multiplied({ value, maps: [last] }: Read): DType {
    if (!last) return this.#uses.typeOf(value).dtype;
    const { dtype } = this.#uses.typeOf(last.node.outputs[0]!);
    const isWidened = last.node.op === "cast" && isIntegerDType(dtype);
    return isWidened ? this.#uses.typeOf(last.of).dtype : dtype;
  }

  #role(label: string | undefined): Role {
    const { lhs, rhs, output } = this.#node.attrs;
    if (label === undefined || !output.includes(label)) return "depth";
    return lhs.includes(label) && rhs.includes(label) ? "batch" : "own";
  }

  /** Labels of the axes of more than one element, the last first. */
  #wide({ value, labels }: Read): readonly (string | undefined)[] {
    const { shape } = this.#uses.typeOf(value);
    return labels.filter((_, axis) => !isOne(shape[axis]!)).toReversed();
  }

  #near(read: Read): string | undefined {
    return this.#wide(read)[0];
  }

  /** Whether the last two axes are a matrix whose lines begin where copies may. */
  #isMatrix(read: Read): boolean {
    const roles = this.#wide(read)
      .slice(0, 2)
      .map((label) => this.#role(label));
    const isPair = roles.includes("own") && roles.includes("depth");
    return isPair && this.#alignment(read) === this.#orders.lineBytes;
  }

  /** Bytes of which all lines' beginnings are multiples. */
  #alignment(read: Read): number {
    const { shape } = this.#uses.typeOf(read.value);
    const extent = constantValue(shape.findLast((d) => !isOne(d)) ?? shape[0]!) ?? 1;
    const bytes = Math.max(1, (extent * dtypes[this.#multiplied(read)].bits) / 8);
    let most = this.#orders.lineBytes;
    while (bytes % most !== 0) most /= 2;
    return most;
  }
}
