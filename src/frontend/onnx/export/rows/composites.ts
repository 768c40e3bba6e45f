/**
 * Composites with an operator of ONNX that means the same; all others, and those whose operator does not
 * take the element type, are written by their definitions.
 */
import { definitionGraph } from "../../../../graph/builder.ts";
import { type CompositeKind, compositeTable } from "../../../../graph/composite-table.ts";
import { takesParameter } from "../../../../graph/composites/recurrent-activations.ts";
import type { OpAttrs } from "../../../../graph/graph.ts";
import { sameShape } from "../../../../graph/tensor-type.ts";
import { type ExportCall, type ExportRow, type ExportRows, flag } from "../export-row.ts";
import type { Attributes, GraphSink } from "../graph-sink.ts";
import { reduced } from "./reductions.ts";
import { windowAttributes } from "./windows.ts";

/** Gives undefined where the operator does not fit this call. */
type NativeRow<K extends CompositeKind> = (
  call: ExportCall<K>,
  sink: GraphSink,
) => readonly string[] | undefined;

type NativeRows = { readonly [K in CompositeKind]?: NativeRow<K> };

/** The element type that all runtimes have for these operators. */
function isSingle({ types }: ExportCall<CompositeKind>): boolean {
  return types[0]!.dtype === "f32";
}

function named<K extends CompositeKind>(
  op: string,
  attributes: (attrs: OpAttrs[K]) => Attributes = () => ({}),
): NativeRow<K> {
  return (call, sink) =>
    isSingle(call) ? [sink.op(op, call.inputs, attributes(call.attrs))] : undefined;
}

const alpha = ({ alpha: value }: { readonly alpha: number }): Attributes => ({ alpha: value });
const epsilon = ({ epsilon: value }: { readonly epsilon: number }): Attributes => ({
  epsilon: value,
});
const axis = ({ axis: value }: { readonly axis: number }): Attributes => ({ axis: BigInt(value) });

function reduction<K extends "logSumExp" | "reduceMean" | "reduceL1" | "reduceL2">(
  op: string,
): NativeRow<K> {
  return (call, sink) => {
    const { attrs, inputs } = call;
    const fits = isSingle(call) && attrs.axes.length > 0;
    return fits ? [reduced(sink, op, inputs[0]!, attrs)] : undefined;
  };
}

/** Operands that a flag says are there, in the places where ONNX has them. */
function placed(inputs: readonly string[], first: number, flags: readonly boolean[]) {
  let next = first;
  const rest = flags.map((given) => (given ? inputs[next++]! : ""));
  return [...inputs.slice(0, first), ...rest];
}

const activationNames = {
  sigmoid: "Sigmoid",
  tanh: "Tanh",
  relu: "Relu",
  softsign: "Softsign",
  softplus: "Softplus",
  hardSigmoid: "HardSigmoid",
  affine: "Affine",
  leakyRelu: "LeakyRelu",
  thresholdedRelu: "ThresholdedRelu",
  scaledTanh: "ScaledTanh",
  elu: "Elu",
} as const satisfies Record<OpAttrs["rnn"]["activations"][number], string>;

/** The numbers of those activations that take the parameter, in their order. */
function taken(attrs: OpAttrs["rnn"], parameter: "alpha" | "beta"): Attributes {
  const numbers = (attrs[parameter] ?? []).filter((_, i) =>
    takesParameter(attrs.activations[i]!, parameter),
  );
  return numbers.length === 0 ? {} : { [`activation_${parameter}`]: numbers };
}

function recurrentAttributes(attrs: OpAttrs["rnn"]): Attributes {
  return {
    hidden_size: BigInt(attrs.hiddenSize),
    direction: attrs.direction,
    activations: attrs.activations.map((a) => activationNames[a]),
    ...taken(attrs, "alpha"),
    ...taken(attrs, "beta"),
    ...(attrs.clip !== undefined && { clip: attrs.clip }),
  };
}

const lstm: NativeRow<"lstm"> = (call, sink) => {
  const { attrs, inputs } = call;
  if (!isSingle(call)) return undefined;
  const flags = [
    attrs.bias,
    attrs.lengths,
    attrs.initialHidden,
    attrs.initialCell,
    attrs.peepholes,
  ];
  const attributes = { ...recurrentAttributes(attrs), input_forget: flag(attrs.inputForget) };
  return sink.ops("LSTM", placed(inputs, 3, flags), attributes, 3);
};

const gru: NativeRow<"gru"> = (call, sink) => {
  const { attrs, inputs } = call;
  if (!isSingle(call)) return undefined;
  const flags = [attrs.bias, attrs.lengths, attrs.initialHidden];
  const attributes = {
    ...recurrentAttributes(attrs),
    linear_before_reset: flag(attrs.linearBeforeReset),
  };
  return sink.ops("GRU", placed(inputs, 3, flags), attributes, 2);
};

const rnn: NativeRow<"rnn"> = (call, sink) => {
  const { attrs, inputs } = call;
  if (!isSingle(call)) return undefined;
  const flags = [attrs.bias, attrs.lengths, attrs.initialHidden];
  return sink.ops("RNN", placed(inputs, 3, flags), recurrentAttributes(attrs), 2);
};

/** Runtimes want scale and bias in the shape of the normalised axes. */
const layerNorm: NativeRow<"layerNorm"> = (call, sink) => {
  const { attrs, inputs, types } = call;
  const inner = types[0]!.shape.slice(attrs.axis);
  const fits = types.slice(1).every((t) => sameShape(t.shape, inner));
  if (!isSingle(call) || !fits) return undefined;
  return [sink.op("LayerNormalization", inputs, { ...axis(attrs), ...epsilon(attrs) })];
};

/** x * sigmoid(x): the operator is younger than the version that is written. */
const silu: NativeRow<"silu"> = ({ inputs }, sink) => {
  const [x] = inputs as [string];
  return [sink.op("Mul", [x, sink.op("Sigmoid", [x])])];
};

const clip: NativeRow<"clip"> = ({ attrs, inputs }, sink) => [
  sink.op("Clip", placed(inputs, 1, [attrs.low, attrs.high])),
];

const oneHot: NativeRow<"oneHot"> = ({ attrs, inputs }, sink) => [
  sink.op("OneHot", [inputs[0]!, sink.scalar(attrs.depth), inputs[1]!], axis(attrs)),
];

const trilu: NativeRow<"trilu"> = ({ attrs, inputs }, sink) => [
  sink.op("Trilu", [inputs[0]!, sink.numbers("i64", [attrs.diagonal])], {
    upper: flag(attrs.upper),
  }),
];

const globalAveragePool: NativeRow<"globalAveragePool"> = (call, sink) => {
  const fits = isSingle(call) && call.types[0]!.shape.length > 2;
  return fits ? [sink.op("GlobalAveragePool", call.inputs)] : undefined;
};

/** Runtimes take 8-bit integers with zero points of the whole or per column. */
function isByte(call: ExportCall<CompositeKind>): boolean {
  return call.types.every(({ dtype }) => dtype === "u8" || dtype === "i8");
}

const matMulInteger: NativeRow<"matMulInteger"> = (call, sink) => {
  const { attrs, inputs } = call;
  if (!isByte(call)) return undefined;
  return [sink.op("MatMulInteger", placed(inputs, 2, [attrs.aZero, attrs.bZero]))];
};

const convInteger: NativeRow<"convInteger"> = (call, sink) => {
  const { attrs, inputs } = call;
  if (!isByte(call)) return undefined;
  const operands = placed(inputs, 2, [attrs.xZero, attrs.wZero]);
  return [
    sink.op("ConvInteger", operands, { ...windowAttributes(attrs), group: BigInt(attrs.groups) }),
  ];
};

const native: NativeRows = {
  silu,
  gelu: named("Gelu", ({ approximate }) => ({ approximate })),
  hardSigmoid: named("HardSigmoid", ({ alpha: a, beta }) => ({ alpha: a, beta })),
  hardSwish: named("HardSwish"),
  leakyRelu: named("LeakyRelu", alpha),
  prelu: named("PRelu"),
  elu: named("Elu", alpha),
  selu: named("Selu", ({ alpha: a, gamma }) => ({ alpha: a, gamma })),
  celu: named("Celu", alpha),
  softplus: named("Softplus"),
  softsign: named("Softsign"),
  mish: named("Mish"),
  thresholdedRelu: named("ThresholdedRelu", alpha),
  clip,
  softmax: named("Softmax", axis),
  logSoftmax: named("LogSoftmax", axis),
  layerNorm,
  batchNorm: named("BatchNormalization", epsilon),
  instanceNorm: named("InstanceNormalization", epsilon),
  groupNorm: named("GroupNormalization", ({ epsilon: e, groups }) => ({
    epsilon: e,
    num_groups: BigInt(groups),
  })),
  lrn: named("LRN", ({ size, alpha: a, beta, bias }) => ({
    size: BigInt(size),
    alpha: a,
    beta,
    bias,
  })),
  lpNormalization: named("LpNormalization", ({ axis: a, p }) => ({
    axis: BigInt(a),
    p: BigInt(p),
  })),
  logSumExp: reduction("ReduceLogSumExp"),
  reduceMean: reduction("ReduceMean"),
  reduceL1: reduction("ReduceL1"),
  reduceL2: reduction("ReduceL2"),
  globalAveragePool,
  oneHot,
  depthToSpace: named("DepthToSpace", ({ blockSize, mode }) => ({
    blocksize: BigInt(blockSize),
    mode: mode.toUpperCase(),
  })),
  spaceToDepth: named("SpaceToDepth", ({ blockSize }) => ({ blocksize: BigInt(blockSize) })),
  trilu,
  lstm,
  gru,
  rnn,
  dynamicQuantizeLinear: (call, sink) =>
    isSingle(call) ? sink.ops("DynamicQuantizeLinear", call.inputs, {}, 3) : undefined,
  matMulInteger,
  convInteger,
};

function compositeRow(op: CompositeKind): ExportRow<CompositeKind> {
  return (call, sink) => {
    const row = native[op] as NativeRow<CompositeKind> | undefined;
    const written = row?.(call, sink);
    if (written) return written;
    const { ranges } = sink.space;
    const definition = definitionGraph(op, call.types, call.attrs as never, {
      ranges,
      at: sink.at,
    });
    return sink.inline(definition, call.inputs);
  };
}

export const compositeRows = Object.fromEntries(
  (Object.keys(compositeTable) as CompositeKind[]).map((op) => [op, compositeRow(op)]),
) as unknown as ExportRows<CompositeKind>;
