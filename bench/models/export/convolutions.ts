/**
 * Layers of convolutional networks as PyTorch exports them after `eval()`: batch norms are in the
 * convolutions' weights and biases already. With `quantized` the same in QDQ form as onnxruntime's
 * `quantize_static` writes it: activations uint8 with one scale a value, weights int8 with one scale an
 * output channel, biases int32, a QuantizeLinear and DequantizeLinear after each layer and none between
 * a layer and its activation.
 *
 * Ranges are not measured: with weights N(0, 1/fan-in) mean and variance of every value are known well
 * enough (He et al., 2015, with the moments of a rectified normal number), and 4.5 deviations around
 * the mean are the range.
 */
import { tensorOf } from "../../../src/frontend/onnx/model-writer.ts";
import { erf } from "../../../src/semantics/erf.ts";
import { fanIn } from "./layers.ts";
import type { ModelBuilder, ValueName } from "./model-builder.ts";
import { quantizeRows } from "./quantize-rows.ts";

/** Mean and variance of the elements of a value. */
interface Moments {
  readonly mean: number;
  readonly variance: number;
}

/** A value, its moments, and the range it is quantised to. */
export interface Feature extends Moments {
  readonly value: ValueName;
  readonly range: readonly [number, number];
  /** Scale of the quantised value. */
  readonly scale: number;
}

export interface ConvShape {
  readonly from: number;
  readonly to: number;
  readonly kernel: number;
  readonly stride?: number;
  readonly groups?: number;
}

export type Activation = "none" | "relu" | "relu6";

const rangeDeviations = 4.5;

export class Convolutions {
  readonly #b: ModelBuilder;
  readonly #quantized: boolean;

  constructor(b: ModelBuilder, quantized: boolean) {
    this.#b = b;
    this.#quantized = quantized;
  }

  /** A normalised picture. */
  input(name: string, shape: readonly (number | string)[]): Feature {
    const moments = { mean: 0, variance: 1 };
    return this.#settle(this.#b.input(name, "f32", shape), moments, spreadOf(moments));
  }

  conv(path: string, x: Feature, shape: ConvShape, activation: Activation = "none"): Feature {
    const { from, to, kernel, stride = 1, groups = 1 } = shape;
    const pad = BigInt(Math.floor(kernel / 2));
    const attributes = {
      dilations: [1n, 1n],
      group: BigInt(groups),
      kernel_shape: [BigInt(kernel), BigInt(kernel)],
      pads: [pad, pad, pad, pad],
      strides: [BigInt(stride), BigInt(stride)],
    };
    const dims = [to, from / groups, kernel, kernel];
    return this.#b.within(path, () => {
      const operands = [x.value, ...this.#parameters(dims, x.scale)];
      const value = this.#b.op("Conv", operands, attributes);
      return this.#activate(value, summed(x, dims[1]! * kernel * kernel), activation);
    });
  }

  /** torch.nn.Linear on two axes: Gemm with the weight as it is stored. */
  dense(path: string, x: Feature, [from, to]: readonly [number, number]): Feature {
    return this.#b.within(path, () => {
      const operands = [x.value, ...this.#parameters([to, from], x.scale)];
      const value = this.#b.op("Gemm", operands, { alpha: 1, beta: 1, transB: 1n });
      return this.#activate(value, summed(x, from), "none");
    });
  }

  add(x: Feature, y: Feature, activation: Activation = "none"): Feature {
    const value = this.#b.op("Add", [x.value, y.value]);
    const moments = { mean: x.mean + y.mean, variance: x.variance + y.variance };
    return this.#activate(value, moments, activation);
  }

  /** Of 3×3 places that a rectifier has passed, every second one; keeps their range. */
  maxPool(x: Feature): Feature {
    const [k, s, pad] = [3n, 2n, 1n];
    // The rectified half of N(0, 1) has the mean 0.399; the largest of nine 1.485 and variance 0.357.
    const deviation = x.mean / 0.399;
    const moments = { mean: 1.485 * deviation, variance: 0.357 * deviation ** 2 };
    const attributes = { kernel_shape: [k, k], pads: [pad, pad, pad, pad], strides: [s, s] };
    return this.#settle(this.#b.op("MaxPool", [x.value], attributes), moments, x.range);
  }

  /** Mean over both spatial axes, which go. */
  globalMean(x: Feature): Feature {
    const mean = this.#b.op("GlobalAveragePool", [x.value]);
    // Channels keep about half of the spread.
    const moments = { mean: x.mean, variance: x.variance / 2 };
    const range = [0, spreadOf(moments)[1]] as const;
    const pooled = this.#settle(mean, moments, range);
    const flat = this.#b.op("Flatten", [pooled.value], { axis: 1n });
    return this.#settle(flat, moments, range);
  }

  #activate(value: ValueName, moments: Moments, activation: Activation): Feature {
    const [low, high] = spreadOf(moments);
    if (activation === "none") return this.#settle(value, moments, [low, high]);
    const b = this.#b;
    const positive =
      activation === "relu"
        ? b.op("Relu", [value])
        : b.op("Clip", [value, b.scalar(0), b.scalar(6)]);
    const top = activation === "relu6" ? Math.min(6, high) : high;
    return this.#settle(positive, rectified(moments), [0, top]);
  }

  /** The value itself, or what is left of it after quantising. */
  #settle(
    value: ValueName,
    { mean, variance }: Moments,
    range: readonly [number, number],
  ): Feature {
    const scale = Math.fround((range[1] - range[0]) / 255);
    if (!this.#quantized) return { value, mean, variance, range, scale };
    const b = this.#b;
    const zero = Math.round(-range[0] / scale);
    const parameters = [
      b.buffer(`${value}_scale`, tensorOf("f32", [], Float32Array.of(scale))),
      b.buffer(`${value}_zero_point`, tensorOf("u8", [], Uint8Array.of(zero))),
    ];
    const narrow = b.op("QuantizeLinear", [value, ...parameters]);
    const wide = b.op("DequantizeLinear", [narrow, ...parameters]);
    return { value: wide, mean, variance, range, scale };
  }

  /** Weight and bias of a layer whose output channels are the first axis. */
  #parameters(dims: readonly number[], inputScale: number): ValueName[] {
    const terms = dims.slice(1).reduce((a, n) => a * n, 1);
    const draw = fanIn(terms);
    const b = this.#b;
    if (!this.#quantized)
      return [b.weight("weight", dims, draw), b.weight("bias", [dims[0]!], draw)];
    const weight = quantizeRows(b.drawn(b.pathOf("weight"), dims, draw), terms);
    const bias = b.drawn(b.pathOf("bias"), [dims[0]!], draw);
    const biasScales = weight.scales.map((s) => s * inputScale);
    const rounded = Int32Array.from(bias, (x, i) => Math.round(x / biasScales[i]!));
    return [
      this.#dequantized("weight", tensorOf("i8", dims, weight.values), weight.scales),
      this.#dequantized("bias", tensorOf("i32", [dims[0]!], rounded), biasScales),
    ];
  }

  #dequantized(name: string, tensor: ReturnType<typeof tensorOf>, scales: Float32Array): ValueName {
    const b = this.#b;
    const zeros =
      tensor.dtype === "i8" ? new Int8Array(scales.length) : new Int32Array(scales.length);
    const operands = [
      b.buffer(`${name}_quantized`, tensor),
      b.buffer(`${name}_scale`, tensorOf("f32", [scales.length], scales)),
      b.buffer(`${name}_zero_point`, tensorOf(tensor.dtype, [scales.length], zeros)),
    ];
    return b.op("DequantizeLinear", operands, { axis: 0n });
  }
}

/** Of a sum of `terms` products with weights N(0, 1/terms), and a bias drawn alike. */
function summed({ mean, variance }: Moments, terms: number): Moments {
  return { mean: 0, variance: variance + mean * mean + 1 / terms };
}

/** Of the positive part of a normal number. */
function rectified({ mean, variance }: Moments): Moments {
  const deviation = Math.sqrt(variance);
  const ratio = mean / deviation;
  const density = Math.exp((-ratio * ratio) / 2) / Math.sqrt(2 * Math.PI);
  const share = (1 + erf(ratio / Math.SQRT2)) / 2;
  const positive = mean * share + deviation * density;
  const square = (mean * mean + variance) * share + mean * deviation * density;
  return { mean: positive, variance: square - positive * positive };
}

function spreadOf({ mean, variance }: Moments): readonly [number, number] {
  const spread = rangeDeviations * Math.sqrt(variance);
  return [mean - spread, mean + spread];
}
