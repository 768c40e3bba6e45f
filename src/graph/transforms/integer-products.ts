/**
 * Products of quantised values as products of the stored bytes, for machines with an instruction for
 * them. In: convolutions and contractions of dequantised operands, ConvInteger and MatMulInteger, with
 * constant weights (of two operands that come at run time: integer-pairs.ts). Out: the sum of products of the bytes in 32 bits, exact, and one factor behind it:
 *
 *   sum (x - z) s (w - y) t  =  (sum x w' - z sum w') (s t),   w' = w - y
 *
 * Unsigned weights less their zero point may be out of the range of a signed byte: they are kept in 16 bits where the
 * machine has an instruction for such. A depth of a contraction that no instructions fill is filled up with weights that
 * are zero, and the data with as many elements.
 * Where x is padded it is padded with z, which stands for zero. Instructions for bytes multiply unsigned by
 * signed ones: signed data are taken as unsigned there, x and z both 128 more. Those for numbers of 16 bits
 * are given x - z, which is widened once where x is computed and not wherever it is multiplied; what else
 * reads x reads that. Matrix units take bytes of either sign as they are. A convolution of each channel by itself
 * has no sums for such an instruction: it is computed in f32, exactly, on the bytes as they are. What is
 * quantised behind a product is multiplied by the reciprocal of its scale, which the factor, the bias and the
 * scales of what is added take over; bytes from zero on need no relu, as they saturate. Sums are exact where
 * those of rounded products were not, factors are rounded elsewhere: the numeric class is `reassociates`.
 */
import { type DType, dtypes } from "../../semantics/dtype.ts";
import { constantValue, type IndexExpr, toIndex } from "../../semantics/index-expr.ts";
import { numbersOf, type Tensor } from "../../semantics/tensor.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Graph, NodeOf, ValueId, WeightStore } from "../graph.ts";
import { ofDequantizedPair, ofIntegerPair } from "./integer-pairs.ts";
import {
  type Bytes,
  isByte,
  isSingle,
  isSummed,
  isWhole,
  knownZero,
  leastDepth,
  Operands,
  type ProductData,
  type ProductKind,
  type ProductOptions,
  product,
  type Weights,
  weightsOf,
  wholeRow,
} from "./quantized-operands.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** Nodes between a product and where it is quantised. */
const longestChain = 12;

export function integerProducts(
  graph: Graph,
  weights: WeightStore,
  options: ProductOptions,
): Rebuilt {
  const readers = new Map<Graph, Operands>();
  return rebuildGraph(graph, {
    node: (site) => {
      const operands = readers.get(site.old) ?? new Operands(site.old, weights, options);
      readers.set(site.old, operands);
      const value = replaced(site, operands);
      return value === undefined ? undefined : [value];
    },
  });
}

function replaced(site: RebuildSite, operands: Operands): ValueId | undefined {
  const { node } = site;
  switch (node.op) {
    case "convolution":
      return ofDequantized(site, node, operands);
    case "contract":
      return ofDequantized(site, node, operands) ?? ofDequantizedPair(site, node, operands);
    case "convInteger":
      return ofIntegers(site, node, operands);
    case "matMulInteger":
      return ofIntegers(site, node, operands) ?? ofIntegerPair(site, node, operands);
    case "dequantize":
      return ofWidened(site, node, operands);
    case "quantize":
      return quantizedProduct(site, node, operands);
    default:
      return undefined;
  }
}

/** A quantised value minus its zero point, in 16 bits. */
function widened({ b, newValue }: RebuildSite, operands: Operands, { x, zero }: Bytes): ValueId {
  const value = newValue(x);
  if (knownZero(operands, zero) === 0) return b.cast(value, "i16");
  return b.sub(b.cast(value, "i16"), b.cast(b.reshape(newValue(zero!), []), "i16"));
}

/** Real values of what a product reads too: from the same 16 bits. */
function ofWidened(
  site: RebuildSite,
  node: NodeOf<"dequantize">,
  operands: Operands,
): ValueId | undefined {
  const [x, s, zero] = node.inputs as [ValueId, ValueId, ValueId | undefined];
  if (node.attrs.to !== "f32" || !operands.isWidened(x) || !isWhole(node, operands))
    return undefined;
  const { b, newValue } = site;
  const scale = b.cast(b.reshape(newValue(s), []), "f32");
  return b.mul(b.cast(widened(site, operands, { x, zero }), "f32"), scale);
}

type ProductNode = NodeOf<"convolution"> | NodeOf<"contract">;

/** @param factor of the result, met by the scales */
function ofDequantized(
  site: RebuildSite,
  node: ProductNode,
  operands: Operands,
  factor = 1,
): ValueId | undefined {
  const [left, right] = node.inputs.map((id) => operands.dequantized(id));
  if (!left || !right || operands.typeOf(node.outputs[0]!).dtype !== "f32") return undefined;
  const [x, s, zero] = left.inputs as [ValueId, ValueId, ValueId | undefined];
  const [w, t, y] = right.inputs as [ValueId, ValueId, ValueId | undefined];
  if (!isWhole(left, operands)) return undefined;
  const weights = weightsOf(operands, w, y, right.attrs.axis);
  if (!weights) return undefined;
  const made = new ProductMaker(site, operands, { x, zero }, { kind: node.op, weights });
  const place = made.placeOf(node, right.attrs.axis);
  const sums = place && (node.op === "contract" ? made.contract(node) : made.convolve(node.attrs));
  if (sums === undefined) return undefined;
  const { b, newValue } = site;
  const scales = b.cast(newValue(t), "f32");
  const scale = b.mul(b.cast(b.reshape(newValue(s), []), "f32"), b.reshape(scales, place!));
  const times = factor === 1 ? scale : b.applyNumber("mul", scale, factor);
  return b.mul(b.cast(sums, "f32"), times);
}

function ofIntegers(
  site: RebuildSite,
  node: NodeOf<"convInteger"> | NodeOf<"matMulInteger">,
  operands: Operands,
): ValueId | undefined {
  const [x, w, ...zeros] = node.inputs as [ValueId, ValueId, ...ValueId[]];
  const isConvolution = node.op === "convInteger";
  const hasZero = isConvolution ? node.attrs.xZero : node.attrs.aZero;
  const hasOther = isConvolution ? node.attrs.wZero : node.attrs.bZero;
  const zero = hasZero ? zeros[0] : undefined;
  const other = hasOther ? zeros[hasZero ? 1 : 0] : undefined;
  if (!isByte(operands.typeOf(x).dtype) || !isSingle(operands, zero)) return undefined;
  const rank = operands.typeOf(w).shape.length;
  if (!isConvolution && rank !== 2) return undefined;
  const weights = weightsOf(operands, w, other, isConvolution ? 0 : 1);
  if (!weights) return undefined;
  const kind = isConvolution ? "convolution" : "contract";
  const made = new ProductMaker(site, operands, { x, zero }, { kind, weights });
  if (isConvolution) {
    const { xZero, wZero, ...attrs } = node.attrs;
    return attrs.groups === 1 ? made.convolve(attrs) : undefined;
  }
  const rows = operands
    .typeOf(x)
    .shape.slice(0, -1)
    .map((_, i) => `r${i}`);
  const output = [...rows, "j"];
  return made.contractLabels({ lhs: [...rows, "k"], rhs: ["k", "j"], output });
}

interface Labels {
  readonly lhs: readonly string[];
  readonly rhs: readonly string[];
  readonly output: readonly string[];
}

/** What products are summed in. */
type Accumulator = "i32" | "f32";

type Window = Omit<NodeOf<"convolution">["attrs"], "accumulator">;

/** Writes the nodes of one product. */
class ProductMaker {
  readonly #site: RebuildSite;
  readonly #b: GraphBuilder;
  readonly #newValue: RebuildSite["newValue"];
  readonly #operands: Operands;
  readonly #bytes: Bytes;
  readonly #weights: Weights;
  readonly #multipliedAs: ProductData;
  /** What makes the data unsigned. */
  readonly #shift: number;

  constructor(
    site: RebuildSite,
    operands: Operands,
    bytes: Bytes,
    { kind, weights }: { readonly kind: ProductKind; readonly weights: Weights },
  ) {
    this.#site = site;
    this.#b = site.b;
    this.#newValue = site.newValue;
    this.#operands = operands;
    this.#bytes = bytes;
    this.#weights = weights;
    const isSigned = operands.typeOf(bytes.x).dtype === "i8";
    this.#multipliedAs = operands.dataOf(kind);
    this.#shift = this.#multipliedAs === "u8" && isSigned ? 128 : 0;
  }

  /** Shape in which scales along an axis of the weights meet the result; undefined: they do not. */
  placeOf(node: ProductNode, axis: number | undefined): readonly number[] | undefined {
    if (axis === undefined) return [];
    const { shape } = this.#weights;
    if (node.op === "convolution") {
      return axis === 0 ? [shape[0]!, ...shape.slice(2).map(() => 1)] : undefined;
    }
    const { output, rhs, lhs } = node.attrs;
    const at = output.indexOf(rhs[axis]!);
    if (at < 0 || lhs.includes(rhs[axis]!)) return undefined;
    return output.slice(at).map((_, i) => (i === 0 ? shape[axis]! : 1));
  }

  convolve(attrs: Window): ValueId | undefined {
    const { shape, values } = this.#weights;
    const depth = product(shape.slice(1));
    if (attrs.groups === 1) {
      // What sums along rows sums bytes alone.
      const sumsRows = this.#operands.sumsRows && values instanceof Int8Array;
      if (!isSummed(shape, attrs, sumsRows) || !this.#fits(depth, 31)) return undefined;
      const isDeep = shape[1]! >= leastDepth;
      const sums = isDeep ? this.#convolution(attrs, "i32") : this.#rowConvolution(attrs);
      return this.#withoutZero(sums, "i32", this.#channelSums());
    }
    if (shape[1] !== 1 || !this.#fits(depth, 24)) return undefined;
    const sums = this.#convolution(attrs, "f32");
    return this.#withoutZero(sums, "f32", this.#channelSums());
  }

  contract(node: NodeOf<"contract">): ValueId | undefined {
    return this.contractLabels(node.attrs);
  }

  contractLabels(labels: Labels): ValueId | undefined {
    const { lhs, rhs, output } = labels;
    const summed = rhs.filter((label) => !output.includes(label));
    const [only] = summed;
    const own = rhs.filter((label) => output.includes(label));
    const isMatrix = summed.length === 1 && own.every((label) => !lhs.includes(label));
    if (!isMatrix || lhs.at(-1) !== only || lhs.some((l) => l !== only && !output.includes(l))) {
      return undefined;
    }
    const { shape } = this.#weights;
    const depth = shape[rhs.indexOf(only!)]!;
    if (depth < leastDepth || !this.#fits(depth, 31)) return undefined;
    const whole = this.#operands.wholeDepth(depth);
    if (whole === undefined) return undefined;
    const b = this.#b;
    const isApart = own.some(
      (label, i) => i > 0 && output.indexOf(label) < output.indexOf(own[i - 1]!),
    );
    if (isApart && this.#knownZero("i32") !== 0) return undefined;
    const axis = rhs.indexOf(only!);
    const operands = [this.#filledData(whole), this.#filledWeights(axis, whole)];
    const sums = b.node("contract", operands, { lhs, rhs, output, accumulator: "i32" });
    if (isApart) return sums;
    const first = Math.min(...own.map((label) => output.indexOf(label)));
    const place = output
      .slice(first)
      .map((label) => (own.includes(label) ? shape[rhs.indexOf(label)]! : 1));
    return this.#withoutZero(sums, "i32", this.#sums(axis, place));
  }

  /** Whether sums of so many products stay exact in so many bits. */
  #fits(depth: number, bits: number): boolean {
    const { values } = this.#weights;
    const most = values instanceof Int8Array ? -dtypes.i8.min : dtypes.u8.max;
    return depth * dtypes.u8.max * most < 2 ** bits;
  }

  #convolution(attrs: Window, accumulator: Accumulator): ValueId {
    const b = this.#b;
    const padded = [...attrs.padLow, ...attrs.padHigh].some((p) => p > 0);
    let x = this.#data(accumulator);
    let window = attrs;
    if (padded && this.#knownZero(accumulator) !== 0) {
      const dims = (pads: readonly number[]): IndexExpr[] => [0, 0, ...pads].map(toIndex);
      const fill = this.#zeroPoint(accumulator, b.dtypeOf(x));
      const [low, high] = [dims(attrs.padLow), dims(attrs.padHigh)];
      x = b.node("pad", [x, fill], { low, high, mode: "constant" });
      const none = attrs.padLow.map(() => 0);
      window = { ...attrs, padLow: none, padHigh: none };
    }
    const w = this.#weightBytes();
    if (accumulator === "i32") return b.node("convolution", [x, w], { ...window, accumulator });
    return b.node("convolution", [b.cast(x, "f32"), b.cast(w, "f32")], window);
  }

  /**
   * Neighbours along a row are what an instruction sums: rows of weights are filled up with zeros, and the data
   * are padded ahead by as much.
   */
  #rowConvolution(attrs: Window): ValueId {
    const b = this.#b;
    const { shape, values } = this.#weights;
    const length = shape.at(-1)!;
    const whole = wholeRow(length);
    const rows = new Int8Array((values.length / length) * whole);
    for (let at = 0; at < values.length; at += length) {
      rows.set(values.subarray(at, at + length), (at / length) * whole);
    }
    const filled: Tensor = { dtype: "i8", shape: [...shape.slice(0, -1), whole], data: rows };
    const data = this.#data("i32");
    const fill = b.cast(this.#zeroPoint("i32", "i32"), b.dtypeOf(data));
    const dims = (pads: readonly number[]): IndexExpr[] => [0, 0, ...pads].map(toIndex);
    const last = attrs.padHigh.length - 1;
    const high = dims(attrs.padHigh.with(last, attrs.padHigh[last]! + whole - length));
    const x = b.node("pad", [data, fill], { low: dims(attrs.padLow), high, mode: "constant" });
    const none = attrs.padLow.map(() => 0);
    const window = { ...attrs, padLow: none, padHigh: none, accumulator: "i32" as const };
    return b.node("convolution", [x, b.constant(filled)], window);
  }

  #weightBytes(): ValueId {
    const { same, values, shape } = this.#weights;
    return same === undefined ? this.#storedWeights(values, shape) : this.#newValue(same);
  }

  #storedWeights(values: Int8Array | Int16Array, shape: readonly number[]): ValueId {
    const tensor: Tensor =
      values instanceof Int8Array
        ? { dtype: "i8", shape, data: values }
        : { dtype: "i16", shape, data: values };
    return this.#b.constant(tensor);
  }

  /** The weights with zeros behind their depth. */
  #filledWeights(axis: number, depth: number): ValueId {
    const { values, shape } = this.#weights;
    if (shape[axis] === depth) return this.#weightBytes();
    const inner = product(shape.slice(axis + 1));
    const [from, to] = [shape[axis]! * inner, depth * inner];
    const size = (values.length / from) * to;
    const made = values instanceof Int8Array ? new Int8Array(size) : new Int16Array(size);
    for (let at = 0; at < values.length; at += from) {
      made.set(values.subarray(at, at + from), (at / from) * to);
    }
    return this.#storedWeights(made, shape.with(axis, depth));
  }

  /** The data with as many elements behind each row; what they are meets weights that are zero. */
  #filledData(depth: number): ValueId {
    const b = this.#b;
    const data = this.#data("i32");
    const shape = b.shapeOf(data);
    const missing = depth - constantValue(shape.at(-1)!)!;
    if (missing === 0) return data;
    const fill = b.cast(
      b.constant({ dtype: "i32", shape: [], data: Int32Array.of(0) }),
      b.dtypeOf(data),
    );
    const none = shape.map(() => toIndex(0));
    const high = none.with(-1, toIndex(missing));
    return b.node("pad", [data, fill], { low: none, high, mode: "constant" });
  }

  /** Sums of each output channel's weights, beside the spatial axes of the result. */
  #channelSums(): readonly [Int32Array, readonly number[]] {
    const { shape, values } = this.#weights;
    const each = product(shape.slice(1));
    const sums = Int32Array.from({ length: shape[0]! }, (_, o) => {
      let sum = 0;
      for (let i = 0; i < each; i++) sum += values[o * each + i]!;
      return sum;
    });
    return [sums, [shape[0]!, ...shape.slice(2).map(() => 1)]];
  }

  /** Sums along one axis. */
  #sums(axis: number, place: readonly number[]): readonly [Int32Array, readonly number[]] {
    const { shape, values } = this.#weights;
    const inner = product(shape.slice(axis + 1));
    const depth = shape[axis]!;
    const sums = new Int32Array(values.length / depth);
    for (let i = 0; i < values.length; i++) {
      const at = Math.floor(i / (inner * depth)) * inner + (i % inner);
      sums[at] = sums[at]! + values[i]!;
    }
    return [sums, place];
  }

  #withoutZero(
    value: ValueId,
    accumulator: Accumulator,
    [sums, shape]: readonly [Int32Array, readonly number[]],
  ): ValueId {
    if (this.#knownZero(accumulator) === 0) return value;
    const b = this.#b;
    const total = b.cast(b.constant({ dtype: "i32", shape, data: sums }), accumulator);
    return b.sub(value, b.mul(total, this.#zeroPoint(accumulator, accumulator)));
  }

  /** The data as they are multiplied: unsigned, where an instruction for bytes sums the products. */
  #data(accumulator: Accumulator): ValueId {
    const b = this.#b;
    if (this.#isWithoutZero(accumulator)) return widened(this.#site, this.#operands, this.#bytes);
    const x = this.#newValue(this.#bytes.x);
    const by = this.#shiftOf(accumulator);
    return by === 0 ? x : b.cast(b.applyNumber("add", b.cast(x, "i32"), by), "u8");
  }

  /** Whether the zero point has left the data before they are multiplied. */
  #isWithoutZero(accumulator: Accumulator): boolean {
    return accumulator === "i32" && this.#multipliedAs === "i16";
  }

  #shiftOf(accumulator: Accumulator): number {
    return accumulator === "i32" ? this.#shift : 0;
  }

  /** What stands for zero in the data; undefined: it is not known ahead. */
  #knownZero(accumulator: Accumulator): number | undefined {
    if (this.#isWithoutZero(accumulator)) return 0;
    const known = knownZero(this.#operands, this.#bytes.zero);
    return known === undefined ? undefined : known + this.#shiftOf(accumulator);
  }

  #zeroPoint(accumulator: Accumulator, dtype: DType): ValueId {
    const b = this.#b;
    const known = this.#knownZero(accumulator);
    if (known !== undefined) {
      return b.cast(b.constant({ dtype: "i32", shape: [], data: Int32Array.of(known) }), dtype);
    }
    const point = b.reshape(this.#newValue(this.#bytes.zero!), []);
    const by = this.#shiftOf(accumulator);
    if (by === 0) return b.cast(point, dtype);
    return b.cast(b.applyNumber("add", b.cast(point, "i32"), by), dtype);
  }
}

/** By the reciprocal of a constant scale, where a product is what is quantised. */
function quantizedProduct(
  site: RebuildSite,
  { inputs: [x, scale, zero], attrs }: NodeOf<"quantize">,
  operands: Operands,
): ValueId | undefined {
  const { b, newValue, inputs } = site;
  const [value] = inputs;
  const step = operands.constant(scale!);
  if (!step || attrs.axis !== undefined || numbersOf(step).length !== 1) return undefined;
  if (!isByte(attrs.to) || b.dtypeOf(value!) !== "f32" || step.dtype !== "f32") return undefined;
  if (!isMadeOfProduct(x!, operands, longestChain)) return undefined;
  const factor = 1 / numbersOf(step)[0]!;
  if (!Number.isFinite(Math.fround(factor))) return undefined;
  const isFromZero = knownZero(operands, zero) === 0;
  const above = attrs.to === "u8" && attrs.saturate && isFromZero && factor > 0;
  const from = above ? operands.withoutRelu(x!) : x!;
  const times = scaled(site, operands, from, factor);
  const plain = from === x ? value! : newValue(from);
  const rounded = b.apply("round", times ?? b.applyNumber("mul", plain, factor));
  const point = zero === undefined ? undefined : b.cast(b.reshape(newValue(zero), []), "f32");
  const shifted = isFromZero ? rounded : b.add(rounded, point!);
  return b.node("cast", [shifted], { to: attrs.to, saturate: attrs.saturate });
}

/**
 * A value times a positive factor, which the constants that it is made with take over; undefined: it has none that
 * only this reader needs.
 */
function scaled(
  site: RebuildSite,
  operands: Operands,
  id: ValueId,
  factor: number,
): ValueId | undefined {
  const { b, newValue } = site;
  if (!(factor > 0)) return undefined;
  if (operands.constant(id)) return b.applyNumber("mul", newValue(id), factor);
  const node = operands.producers.get(id);
  if (!node || !operands.isReadOnce(id)) return undefined;
  switch (node.op) {
    case "convolution":
    case "contract":
      return ofDequantized(site, node, operands, factor);
    case "dequantize":
      return dequantizedTimes(site, node, operands, factor);
    case "relu": {
      const x = scaled(site, operands, node.inputs[0]!, factor);
      return x === undefined ? undefined : b.apply("relu", x);
    }
    case "add": {
      const terms = node.inputs.map((x) => scaled(site, operands, x, factor));
      if (terms.every((x) => x === undefined)) return undefined;
      const all = terms.map((x, i) => x ?? b.applyNumber("mul", newValue(node.inputs[i]!), factor));
      return b.add(all[0]!, all[1]!);
    }
    default:
      return undefined;
  }
}

/** Bytes with a constant scale, which is another one then. */
function dequantizedTimes(
  site: RebuildSite,
  node: NodeOf<"dequantize">,
  operands: Operands,
  factor: number,
): ValueId | undefined {
  const { b, newValue } = site;
  const [x, s, zero] = node.inputs as [ValueId, ValueId, ValueId | undefined];
  const scale = operands.constant(s);
  if (scale?.dtype !== "f32" || node.attrs.to !== "f32" || !isWhole(node, operands))
    return undefined;
  const data = Float32Array.of(numbersOf(scale)[0]! * factor);
  const by = b.constant({ dtype: "f32", shape: scale.shape, data });
  if (operands.isWidened(x)) {
    return b.mul(b.cast(widened(site, operands, { x, zero }), "f32"), b.reshape(by, []));
  }
  const rest = zero === undefined ? [] : [newValue(zero)];
  return b.node("dequantize", [newValue(x), by, ...rest], node.attrs);
}

/** Whether a value is computed element by element from a product. */
function isMadeOfProduct(id: ValueId, operands: Operands, left: number): boolean {
  const node = operands.producers.get(id);
  if (!node || left === 0) return false;
  const { contraction, elementwise } = operands.traits(node);
  if (contraction) return true;
  const passes = node.op === "clip" || node.op === "dequantize" || node.op === "quantize";
  if (elementwise === undefined && !passes) return false;
  return node.inputs.some((i) => isMadeOfProduct(i, operands, left - 1));
}
