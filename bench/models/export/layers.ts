/**
 * Layers as PyTorch's TorchScript exporter (and optimum, which calls it) writes them: shared by the
 * transformers of this folder. Which form of a layer norm is written follows the operator set, as
 * there: an operator from 17 on, before that ReduceMean, Sub, Pow, Sqrt and Div.
 */
import { tensorOf, type ValueSpec } from "../../../src/frontend/onnx/model-writer.ts";
import type { Draw, ModelBuilder, ValueName } from "./model-builder.ts";
import { quantizeRows } from "./quantize-rows.ts";

/** Weights of a layer that sums `terms` products: N(0, 1/terms). */
export function fanIn(terms: number): { readonly deviation: number } {
  return { deviation: 1 / Math.sqrt(terms) };
}

export interface LinearShape {
  readonly from: number;
  readonly to: number;
  readonly bias?: boolean;
  /** As onnxruntime's `quantize_dynamic` writes it: int8 weights with one scale, data quantised when it runs. */
  readonly isDynamic?: boolean;
  /** How weights are drawn; default: N(0, 1/from). */
  readonly draw?: Draw;
}

/** torch.nn.Linear on three axes: MatMul with the folded transpose of the weight, then the bias. */
export function linear(b: ModelBuilder, path: string, x: ValueName, shape: LinearShape): ValueName {
  const { from, to, bias = true, isDynamic = false, draw = fanIn(from) } = shape;
  return b.within(path, () => {
    const product = isDynamic
      ? dynamicProduct(b, x, { from, to, draw })
      : b.op("MatMul", [x, b.weight("weight_t", [from, to], draw)]);
    return bias ? b.op("Add", [b.weight("bias", [to], fanIn(from)), product]) : product;
  });
}

/** Values that were quantised for an earlier product: the quantiser writes each once. */
const quantizedOf = new WeakMap<ModelBuilder, Map<ValueName, readonly ValueName[]>>();

function dynamicProduct(
  b: ModelBuilder,
  x: ValueName,
  { from, to, draw }: Required<Pick<LinearShape, "from" | "to" | "draw">>,
): ValueName {
  const known = quantizedOf.get(b) ?? new Map<ValueName, readonly ValueName[]>();
  quantizedOf.set(b, known);
  const data = known.get(x) ?? b.ops("DynamicQuantizeLinear", [x], {}, 3);
  known.set(x, data);
  const [bytes, scale, zero] = data as [ValueName, ValueName, ValueName];
  const drawn = b.drawn(b.pathOf("weight_t"), [from, to], draw);
  const { values, scales } = quantizeRows(drawn, drawn.length);
  const weight = b.buffer("weight_t_quantized", tensorOf("i8", [from, to], values));
  const weightScale = b.buffer("weight_t_scale", tensorOf("f32", [], scales));
  const weightZero = b.buffer("weight_t_zero_point", tensorOf("i8", [], new Int8Array(1)));
  const sums = b.op("MatMulInteger", [bytes, weight, zero, weightZero]);
  return b.op("Mul", [b.cast(sums, "f32"), b.op("Mul", [scale, weightScale])]);
}

export interface NormShape {
  readonly width: number;
  readonly epsilon: number;
}

/** torch.nn.LayerNorm over the last axis. */
export function layerNorm(b: ModelBuilder, path: string, x: ValueName, norm: NormShape): ValueName {
  return b.within(path, () => {
    const scale = b.weight("weight", [norm.width], { mean: 1, deviation: 0.02 });
    const bias = b.weight("bias", [norm.width], { deviation: 0.02 });
    if (b.opset >= 17) {
      const attributes = { axis: -1n, epsilon: norm.epsilon };
      return b.op("LayerNormalization", [x, scale, bias], attributes);
    }
    const normal = decomposedNorm(b, x, norm.epsilon);
    return b.op("Add", [b.op("Mul", [normal, scale]), bias]);
  });
}

/** PyTorch casts the centred values of a half model to f32 and the quotient back; a converter does not. */
function decomposedNorm(b: ModelBuilder, x: ValueName, epsilon: number): ValueName {
  const wide = b.hasWideStatistics;
  const centred = b.op("Sub", [x, meanOfLast(b, x)]);
  const numerator = wide ? b.cast(centred, "f32") : centred;
  const dtype = wide ? "f32" : b.dtype;
  const variance = meanOfLast(b, b.op("Pow", [numerator, b.scalar(2, dtype)]));
  const deviation = b.op("Sqrt", [b.op("Add", [variance, b.scalar(epsilon, dtype)])]);
  const quotient = b.op("Div", [numerator, deviation]);
  return wide ? b.cast(quotient, b.dtype) : quotient;
}

/** Axes are an attribute before operator set 18 and an input from there on. */
export function meanOfLast(b: ModelBuilder, x: ValueName): ValueName {
  if (b.opset < 18) return b.op("ReduceMean", [x], { axes: [-1n], keepdims: 1n });
  return b.op("ReduceMean", [x, b.integers(-1)], { keepdims: 1n });
}

/** x/2 · (1 + erf(x/√2)): the operator from 20 on. */
export function gelu(b: ModelBuilder, x: ValueName): ValueName {
  if (b.opset >= 20) return b.op("Gelu", [x], { approximate: "none" });
  const error = b.op("Erf", [b.op("Div", [x, b.scalar(Math.SQRT2)])]);
  const doubled = b.op("Mul", [x, b.op("Add", [error, b.scalar(1)])]);
  return b.op("Mul", [doubled, b.scalar(0.5)]);
}

/** One extent of a value as a number of rank 1, the way `x.size(axis)` is written. */
export function sizeOf(b: ModelBuilder, x: ValueName, axis: number): ValueName {
  const size = b.op("Gather", [b.op("Shape", [x]), b.integer(axis)], { axis: 0n });
  return b.op("Unsqueeze", [size, b.integers(0)]);
}

/** `x.view(...)` with some extents taken from run-time sizes. */
export function view(
  b: ModelBuilder,
  x: ValueName,
  extents: readonly (number | ValueName)[],
): ValueName {
  const fixed = extents.flatMap((e) => (typeof e === "number" ? [e] : []));
  if (fixed.length === extents.length) return b.op("Reshape", [x, b.integers(...fixed)]);
  const parts = extents.map((e) => (typeof e === "number" ? b.integers(e) : e));
  return b.op("Reshape", [x, b.op("Concat", parts, { axis: 0n })]);
}

export function transpose(b: ModelBuilder, x: ValueName, ...order: readonly number[]): ValueName {
  return b.op("Transpose", [x], { perm: order.map(BigInt) });
}

export interface Heads {
  readonly count: number;
  readonly size: number;
}

/** [batch, sequence, count·size] to the axes of `order`, counted as batch, sequence, head, element. */
export function splitHeads(
  b: ModelBuilder,
  x: ValueName,
  heads: Heads,
  order: readonly number[] = [0, 2, 1, 3],
): ValueName {
  const split = view(b, x, [sizeOf(b, x, 0), sizeOf(b, x, 1), heads.count, heads.size]);
  return transpose(b, split, ...order);
}

/** [batch, head, sequence, size] to [batch, sequence, count·size]. */
export function joinHeads(b: ModelBuilder, x: ValueName, { count, size }: Heads): ValueName {
  const turned = transpose(b, x, 0, 2, 1, 3);
  return view(b, turned, [sizeOf(b, turned, 0), sizeOf(b, turned, 1), count * size]);
}

export interface AttentionOperands {
  /** [batch, head, sequence, size]. */
  readonly query: ValueName;
  /** [batch, head, size, sequence]. */
  readonly keysTurned: ValueName;
  readonly values: ValueName;
  /** Added to the scores. */
  readonly mask?: ValueName;
  readonly headSize: number;
}

/** Written out in Python ("eager"): scores over √size, mask, softmax. */
export function eagerAttention(b: ModelBuilder, a: AttentionOperands): ValueName {
  const scores = b.op("MatMul", [a.query, a.keysTurned]);
  const scaled = b.op("Div", [scores, b.scalar(Math.sqrt(a.headSize))]);
  return weighted(b, scaled, a);
}

/** torch's scaled_dot_product_attention: √scale, taken from the query's shape, on both factors. */
export function fusedAttention(b: ModelBuilder, a: AttentionOperands): ValueName {
  const last = b.op("Slice", [b.op("Shape", [a.query]), b.integers(-1), b.integers(2 ** 53 - 1)]);
  const root = b.op("Sqrt", [b.cast(last, b.dtype)]);
  const scale = b.op("Sqrt", [b.op("Div", [b.scalar(1), root])]);
  const query = b.op("Mul", [a.query, scale]);
  const keys = b.op("Mul", [a.keysTurned, scale]);
  return weighted(b, b.op("MatMul", [query, keys]), a);
}

function weighted(b: ModelBuilder, scores: ValueName, a: AttentionOperands): ValueName {
  const masked = a.mask === undefined ? scores : b.op("Add", [scores, a.mask]);
  return b.op("MatMul", [b.op("Softmax", [masked], { axis: -1n }), a.values]);
}

/** (1 - mask) · lowest, over batch, head and query: what transformers adds for padding. */
export function paddingMask(b: ModelBuilder, mask: ValueName): ValueName {
  const spread = b.op("Unsqueeze", [b.op("Unsqueeze", [mask, b.integers(1)]), b.integers(2)]);
  const inverted = b.op("Sub", [b.scalar(1), b.cast(spread, b.dtype)]);
  return b.op("Mul", [inverted, b.scalar(lowestOf(b))]);
}

/** torch.finfo(dtype).min. */
export function lowestOf(b: ModelBuilder): number {
  if (b.precision === "f16") return -65504;
  return b.precision === "bf16" ? -3.3895313892515355e38 : -3.4028234663852886e38;
}

/** Shapes of a batch of sequences. */
export const batchOfSequences: ValueSpec["shape"] = ["batch_size", "sequence_length"];
