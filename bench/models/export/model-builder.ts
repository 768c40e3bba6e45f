/**
 * Builds the exported models: nodes in order, weights drawn by seed and handed to a sink as they are
 * made, so that a model is never in memory as a whole. Names follow PyTorch's TorchScript exporter:
 * a value is `/scope/Op_output_0`, a weight its parameter's path.
 *
 * Precisions: `f32`; `f16` and `bf16` as `model.half()` and `model.bfloat16()` before the export give them
 * (PyTorch itself keeps the statistics of norms in f32); `f16-converted` as onnxconverter-common's `convert_float_to_float16`
 * with `keep_io_types` makes it out of the f32 graph: every float value is f16, constants are cut to
 * [1e-7, 1e4] in magnitude, and Casts stand at floating inputs and outputs.
 *
 * A weight's numbers depend on its name and the seed alone: a tied weight is equal wherever it is used.
 */

import type { TensorProto } from "../../../src/frontend/onnx/generated/onnx_pb.ts";
import type {
  AttributeValue,
  NodeSpec,
  ValueSpec,
} from "../../../src/frontend/onnx/model-writer.ts";
import { tensorOf, writeModel } from "../../../src/frontend/onnx/model-writer.ts";
import type { DType } from "../../../src/semantics/dtype.ts";
import { encodeFloatArray } from "../../../src/semantics/float-codec.ts";
import type { Tensor } from "../../../src/semantics/tensor.ts";
import { fillNormal, seedOf } from "./normal-fill.ts";
import { storeTensor, type WeightSink } from "./weight-sink.ts";

export type Precision = "f32" | "f16" | "f16-converted" | "bf16";

export interface BuilderOptions {
  readonly opset: number;
  readonly precision: Precision;
  readonly seed: number;
  readonly sink: WeightSink;
}

export type ValueName = string;
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** How the elements of a weight are drawn: `mean` + N(0, deviation²). */
export interface Draw {
  readonly mean?: number;
  readonly deviation: number;
}

export class ModelBuilder {
  readonly precision: Precision;
  /** Type of weights and activations. */
  readonly dtype: "f32" | "f16" | "bf16";
  readonly opset: number;
  /** Whether values are short and PyTorch's own f32 statistics are written out. */
  readonly hasWideStatistics: boolean;
  readonly #seed: number;
  readonly #sink: WeightSink;
  readonly #inputs: ValueSpec[] = [];
  readonly #outputs: ValueSpec[] = [];
  readonly #nodes: NodeSpec[] = [];
  readonly #tensors: TensorProto[] = [];
  readonly #weights = new Set<string>();
  readonly #counts = new Map<string, number>();
  #scope: readonly string[] = [];

  constructor({ opset, precision, seed, sink }: BuilderOptions) {
    this.opset = opset;
    this.hasWideStatistics = precision === "f16" || precision === "bf16";
    this.precision = precision;
    this.dtype = precision === "f16-converted" ? "f16" : precision;
    this.#seed = seed;
    this.#sink = sink;
  }

  /** Values and weights made inside `body` are named under `name`. */
  within<T>(name: string, body: () => T): T {
    const outer = this.#scope;
    this.#scope = [...outer, name];
    const made = body();
    this.#scope = outer;
    return made;
  }

  /** An input; a floating one is cast to the model's type where the model keeps f32 at its ends. */
  input(name: string, dtype: DType, shape: ValueSpec["shape"]): ValueName {
    this.#inputs.push({ name, dtype, shape });
    return dtype === "f32" && this.dtype !== "f32" ? this.cast(name, this.dtype) : name;
  }

  /** Names a value as an output of the model; returns what further nodes read. */
  output(name: string, value: ValueName, dtype: DType, shape: ValueSpec["shape"]): ValueName {
    this.#outputs.push({ name, dtype, shape });
    const ends = { inputs: [value], outputs: [name] };
    if (dtype === "f32" && this.dtype !== "f32") {
      this.#nodes.push({ op: "Cast", ...ends, attributes: { to: onnxNumber.f32 } });
      return value;
    }
    const last = this.#nodes.at(-1);
    if (last?.outputs.length === 1 && last.outputs[0] === value) {
      this.#nodes[this.#nodes.length - 1] = { ...last, outputs: [name] };
      return name;
    }
    this.#nodes.push({ op: "Identity", ...ends });
    return value;
  }

  op(op: string, inputs: readonly ValueName[], attributes: Attributes = {}): ValueName {
    return this.ops(op, inputs, attributes, 1)[0]!;
  }

  /** A node of several outputs. */
  ops(
    op: string,
    inputs: readonly ValueName[],
    attributes: Attributes,
    count: number,
  ): ValueName[] {
    const name = this.#fresh(op);
    const outputs = Array.from({ length: count }, (_, i) => `${name}_output_${i}`);
    this.#nodes.push({ op, name, inputs, outputs, attributes });
    return outputs;
  }

  cast(value: ValueName, to: keyof typeof onnxNumber): ValueName {
    return this.op("Cast", [value], { to: onnxNumber[to] });
  }

  /** A Constant node of integers, as the exporter writes shapes, axes and indices. */
  integers(...values: readonly number[]): ValueName {
    return this.constant(tensorOf("i64", [values.length], BigInt64Array.from(values, BigInt)));
  }

  integer(value: number): ValueName {
    return this.constant(tensorOf("i64", [], BigInt64Array.of(BigInt(value))));
  }

  /** A Constant node of one float of the model's type (or `dtype`), as a converter would cut it. */
  scalar(value: number, dtype: "f32" | "f16" | "bf16" = this.dtype): ValueName {
    return this.constant(tensorOf(dtype, [], this.#encode(Float32Array.of(value), dtype)));
  }

  constant(value: Tensor): ValueName {
    return this.op("Constant", [], { value });
  }

  /** A float parameter of the model's type; `path` is taken below the scope. */
  weight(path: string, shape: readonly number[], draw: Draw): ValueName {
    return this.namedWeight(this.pathOf(path), shape, draw);
  }

  /** A float parameter whose name stands as it is; the same name twice is one weight. */
  namedWeight(name: string, shape: readonly number[], draw: Draw): ValueName {
    if (this.#weights.has(name)) return name;
    const values = this.drawn(name, shape, draw);
    this.#store(name, tensorOf(this.dtype, shape, this.#encode(values, this.dtype)));
    return name;
  }

  /** The numbers that a weight of this name has, before they are rounded to the model's type. */
  drawn(name: string, shape: readonly number[], draw: Draw): Float32Array {
    const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
    fillNormal(values, { mean: 0, ...draw, seed: seedOf(name, this.#seed) });
    return values;
  }

  /** A path below the scope, as parameters are named. */
  pathOf(path: string): string {
    return [...this.#scope, path].join(".");
  }

  /** A parameter or buffer of given contents; floats take the model's type. */
  buffer(path: string, tensor: Tensor): ValueName {
    const name = this.pathOf(path);
    if (this.#weights.has(name)) return name;
    const narrow = tensor.dtype === "f32" && this.dtype !== "f32";
    const data = narrow ? this.#encode(tensor.data as Float32Array, this.dtype) : tensor.data;
    this.#store(name, narrow ? tensorOf(this.dtype, tensor.shape, data) : tensor);
    return name;
  }

  /** The bytes of the model file; the weights have gone to the sink. */
  finish(name: string): Uint8Array {
    return writeModel({
      name,
      opset: this.opset,
      inputs: this.#inputs,
      outputs: this.#outputs,
      tensors: this.#tensors,
      nodes: this.#nodes,
    });
  }

  #fresh(op: string): string {
    const base = `/${[...this.#scope, op].join("/")}`;
    const count = this.#counts.get(base) ?? 0;
    this.#counts.set(base, count + 1);
    return count === 0 ? base : `${base}_${count}`;
  }

  #store(name: string, tensor: Tensor): void {
    this.#weights.add(name);
    this.#tensors.push(storeTensor(this.#sink, name, tensor));
  }

  #encode(values: Float32Array, dtype: "f32" | "f16" | "bf16"): Float32Array | Uint16Array {
    if (dtype === "f32") return values;
    const cut = this.precision === "f16-converted" ? values.map(cutToHalf) : values;
    const bits = new Uint16Array(values.length);
    encodeFloatArray(dtype, cut, bits);
    return bits;
  }
}

/** onnxconverter-common's `min_positive_val` and `max_finite_val`. */
function cutToHalf(x: number): number {
  if (x === 0 || Number.isNaN(x)) return x;
  return Math.sign(x) * Math.min(1e4, Math.max(1e-7, Math.abs(x)));
}

/** TensorProto.DataType of the types that exported models cast to. */
const onnxNumber = { f32: 1n, i32: 6n, i64: 7n, bool: 9n, f16: 10n, bf16: 16n } as const;
