/**
 * What products of quantised values are made of, as integer-products.ts asks of a graph: which operands are bytes
 * with one scale, what of them is constant, and which products an instruction sums.
 */
import { type DType, dtypes } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { numbersOf, type RefTensor, toRef } from "../../semantics/tensor.ts";
import type { Graph, Node, NodeOf, ValueId, WeightStore } from "../graph.ts";
import type { OpTraits } from "../op-info.ts";
import { traitsOf } from "../op-table.ts";

/** Channels from which sums over them are worth their own instruction. */
export const leastDepth = 8;
/** Elements of a row, and of a depth where nothing else is said, whose products one instruction sums. */
const usualTerms = 4;
/** Share of a row that is no filling, from which sums along rows are worth the instruction. */
const leastFull = 0.75;

/** What a machine's instruction for products of bytes is given as data: unsigned bytes, any, or numbers of 16 bits. */
export type ProductData = "u8" | "bytes" | "i16";

export interface ProductOptions {
  readonly data: ProductData;
  /** The same of contractions, which read their data as often as there are vectors of results; default: `data`. */
  readonly contracted?: ProductData;
  /** Products that one instruction sums in each lane; default: four. */
  readonly terms?: number;
  /** One instruction sums four bytes of each lane: worth it along rows too, where channels are few. Default: no. */
  readonly sumsRows?: boolean;
  /** Weights may be numbers of 16 bits, as unsigned bytes less their zero point can be. Default: no. */
  readonly takesWideWeights?: boolean;
}

/** Matrix products of whatever operator are contractions. */
export type ProductKind = "convolution" | "contract";

/** What a graph's values are made of. */
export class Operands {
  readonly producers: ReadonlyMap<ValueId, Node>;
  /** Whether neighbours of a row are summed where channels are few. */
  readonly sumsRows: boolean;
  readonly takesWideWeights: boolean;
  readonly #graph: Graph;
  readonly #weights: WeightStore;
  readonly #data: Pick<ProductOptions, "data" | "contracted" | "terms">;
  /** Quantised values that products read in 16 bits. */
  readonly #widened: ReadonlySet<ValueId>;
  /** Readers of each value; an output of the graph is one. */
  readonly #readers = new Map<ValueId, number>();

  constructor(graph: Graph, weights: WeightStore, options: ProductOptions) {
    this.#graph = graph;
    this.#weights = weights;
    this.#data = options;
    this.sumsRows = options.sumsRows ?? false;
    this.takesWideWeights = options.takesWideWeights ?? false;
    this.producers = new Map(graph.nodes.flatMap((n) => n.outputs.map((id) => [id, n] as const)));
    this.#widened = new Set(graph.nodes.flatMap((n) => this.#widenedBy(n)));
    for (const id of [...graph.nodes.flatMap((n) => n.inputs), ...graph.outputs]) {
      this.#readers.set(id, (this.#readers.get(id) ?? 0) + 1);
    }
  }

  /** What data are multiplied as. */
  dataOf(product: ProductKind): ProductData {
    const { data, contracted = data } = this.#data;
    return product === "contract" ? contracted : data;
  }

  /**
   * The depth of a contraction that instructions fill; undefined: it would have to be filled up, which matrix units do
   * for themselves.
   */
  wholeDepth(depth: number): number | undefined {
    const { terms = usualTerms } = this.#data;
    const whole = Math.ceil(depth / terms) * terms;
    return whole === depth || this.dataOf("contract") !== "bytes" ? whole : undefined;
  }

  isReadOnce(id: ValueId): boolean {
    return this.#readers.get(id) === 1;
  }

  /** What a relu that only one reads is of, where the value is one. */
  withoutRelu(id: ValueId): ValueId {
    const node = this.producers.get(id);
    return node?.op === "relu" && this.isReadOnce(id) ? node.inputs[0]! : id;
  }

  typeOf(id: ValueId): Graph["values"][number]["type"] {
    return this.#graph.values[id]!.type;
  }

  traits(node: Node): OpTraits {
    return traitsOf(node, this.#graph);
  }

  isConstant(id: ValueId): boolean {
    return this.#graph.weights.some((w) => w.value === id);
  }

  constant(id: ValueId): RefTensor | undefined {
    const source = this.#graph.weights.find((w) => w.value === id)?.source;
    if (!source) return undefined;
    return toRef(source.kind === "inline" ? source.tensor : this.#weights.read(source.key));
  }

  dequantized(id: ValueId): NodeOf<"dequantize"> | undefined {
    const node = this.producers.get(id);
    return node?.op === "dequantize" && node.attrs.blockSize === undefined ? node : undefined;
  }

  /** Whether a quantised value is there in 16 bits, without its zero point, for a product. */
  isWidened(id: ValueId): boolean {
    return this.#widened.has(id);
  }

  #widenedBy(node: Node): readonly ValueId[] {
    if (node.op !== "convolution" && node.op !== "contract") return [];
    if (this.dataOf(node.op) !== "i16") return [];
    const [left, right] = node.inputs.map((id) => this.dequantized(id));
    if (!left || !right || !isWhole(left, this)) return [];
    const weights = this.constant(right.inputs[0]!);
    if (!weights) return [];
    const sums = node.op === "contract" || isSummed(weights.shape, node.attrs, this.sumsRows);
    return sums ? [left.inputs[0]!] : [];
  }
}

/** Whether an instruction for products sums a convolution of weights of such a shape: over channels, or along rows. */
export function isSummed(
  shape: readonly number[],
  { groups, dilations }: Pick<NodeOf<"convolution">["attrs"], "groups" | "dilations">,
  sumsRows: boolean,
): boolean {
  if (groups !== 1) return false;
  if (shape[1]! >= leastDepth) return true;
  const row = shape.at(-1)!;
  return sumsRows && dilations.at(-1) === 1 && row >= leastFull * wholeRow(row);
}

/** Elements of a row of weights that is filled up for instructions. */
export function wholeRow(length: number): number {
  return Math.ceil(length / usualTerms) * usualTerms;
}

/** One operand of a product as bytes: values minus a zero point, one for all. */
export interface Bytes {
  readonly x: ValueId;
  readonly zero: ValueId | undefined;
}

/** Weights without a zero point: signed bytes, or numbers of 16 bits where some do not fit. */
export interface Weights {
  readonly shape: readonly number[];
  readonly values: Int8Array | Int16Array;
  /** The old value, where it is these bytes. */
  readonly same?: ValueId;
}

export function weightsOf(
  operands: Operands,
  id: ValueId,
  zero: ValueId | undefined,
  axis: number | undefined,
): Weights | undefined {
  const tensor = operands.constant(id);
  const points = zero === undefined ? undefined : operands.constant(zero);
  if (!tensor || !isByte(tensor.dtype)) return undefined;
  if (zero !== undefined && !points) return undefined;
  const data = numbersOf(tensor);
  const shift = points ? numbersOf(points) : [0];
  const inner = axis === undefined ? 1 : product(tensor.shape.slice(axis + 1));
  const count = axis === undefined ? 1 : tensor.shape[axis]!;
  if (shift.length !== 1 && shift.length !== count) return undefined;
  const wide = new Int16Array(data.length);
  let isSame = tensor.dtype === "i8";
  let fits = true;
  for (let i = 0; i < data.length; i++) {
    const by = shift[shift.length === 1 ? 0 : Math.floor(i / inner) % count]!;
    const value = data[i]! - by;
    fits &&= value >= dtypes.i8.min && value <= dtypes.i8.max;
    isSame &&= by === 0;
    wide[i] = value;
  }
  if (!fits && !operands.takesWideWeights) return undefined;
  const values = fits ? Int8Array.from(wide) : wide;
  return { shape: tensor.shape, values, ...(isSame && { same: id }) };
}

export function product(extents: readonly number[]): number {
  return extents.reduce((a, b) => a * b, 1);
}

export function isByte(dtype: DType): boolean {
  return dtype === "u8" || dtype === "i8";
}

/** A single zero point where it is known ahead: 0 where there is none. */
export function knownZero(operands: Operands, zero: ValueId | undefined): number | undefined {
  if (zero === undefined) return 0;
  const known = operands.constant(zero);
  return known && numbersOf(known)[0];
}

export function isSingle(operands: Operands, id: ValueId | undefined): boolean {
  return id === undefined || operands.typeOf(id).shape.every((d) => constantValue(d) === 1);
}

/** Bytes with one scale and one zero point. */
export function isWhole(
  { attrs, inputs: [x, ...rest] }: NodeOf<"dequantize">,
  operands: Operands,
): boolean {
  if (attrs.axis !== undefined || attrs.blockSize !== undefined) return false;
  return isByte(operands.typeOf(x!).dtype) && rest.every((id) => isSingle(operands, id));
}

/** Ops between a dequantisation and a product that only move elements or convert them. */
const onTheWay: ReadonlySet<string> = new Set(["cast", "transpose", "reshape", "broadcast"]);

/**
 * Dequantised weights that contractions alone read, as they are, moved or converted: elements may stay as they are
 * stored, for the product to dequantise.
 */
export function dequantizedOperands(graph: Graph): ReadonlySet<ValueId> {
  const stored = new Set(graph.weights.map((w) => w.value));
  const readers = new Map<ValueId, Node[]>();
  for (const node of graph.nodes) {
    for (const id of node.inputs) readers.set(id, [...(readers.get(id) ?? []), node]);
  }
  const outputs = new Set(graph.outputs);
  const isMultiplied = (id: ValueId): boolean => {
    const all = readers.get(id) ?? [];
    return (
      all.length > 0 &&
      !outputs.has(id) &&
      all.every((n) => n.op === "contract" || (onTheWay.has(n.op) && isMultiplied(n.outputs[0]!)))
    );
  };
  const found = graph.nodes.filter(
    (n) => n.op === "dequantize" && stored.has(n.inputs[0]!) && isMultiplied(n.outputs[0]!),
  );
  return new Set(found.map((n) => n.outputs[0]!));
}
