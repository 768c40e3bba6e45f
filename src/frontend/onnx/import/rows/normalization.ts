/** Softmax and the norms. */
import type { DType } from "../../../../semantics/dtype.ts";
import { mul } from "../../../../semantics/index-expr.ts";
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

/** Before version 13 the operand is taken as a matrix of prod(shape[:axis]) rows. */
function softmax(op: "softmax" | "logSoftmax") {
  return (node: NodeView): Operand => {
    const x = node.input(0);
    const { shape } = x.type;
    const axis = node.axis(
      node.attributes.int("axis") ?? (node.version < 13 ? 1 : -1),
      shape.length,
    );
    if (node.version >= 13 || axis === shape.length - 1) return node.emit(op, [x], { axis });
    const flat = node.reshape(x, [mul(...shape.slice(0, axis)), mul(...shape.slice(axis))]);
    return node.reshape(node.emit(op, [flat], { axis: 1 }), shape);
  };
}

function batchNorm(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const momentum = attributes.float("momentum") ?? 0.9;
  const epsilon = attributes.float("epsilon") ?? 1e-5;
  if (node.version < 9 && !attributes.flag("spatial", true)) attributes.refuse("spatial", 0, "1");
  const x = node.input(0);
  const { dtype } = x.type;
  const parameters = [1, 2, 3, 4].map((i) => node.cast(node.input(i), dtype));
  const training = node.version >= 14 && attributes.flag("training_mode", false);
  if (!training) return [node.emit("batchNorm", [x, ...parameters], { epsilon })];
  const current = batchMoments(node, x);
  const y = node.emit("batchNorm", [x, ...parameters.slice(0, 2), ...current], { epsilon });
  const running = current.map((now, i) => {
    const before = parameters[i + 2]!;
    const old = node.emit("mul", [before, node.splat(dtype, momentum)], {});
    const fresh = node.emit("mul", [now, node.splat(dtype, 1 - momentum)], {});
    return node.emit("add", [old, fresh], {});
  });
  return [y, ...running];
}

/** Mean and variance of each channel over the batch. */
function batchMoments(node: NodeView, x: Operand): readonly Operand[] {
  const axes = x.type.shape.flatMap((_, i) => (i === 1 ? [] : [i]));
  const mean = (o: Operand, keepDims: boolean) => node.emit("reduceMean", [o], { axes, keepDims });
  const centred = node.emit("sub", [x, mean(x, true)], {});
  return [mean(x, false), mean(node.emit("mul", [centred, centred], {}), false)];
}

function instanceNorm(node: NodeView): Operand {
  node.attributes.ignore("consumed_inputs");
  const epsilon = node.attributes.float("epsilon") ?? 1e-5;
  return node.emit("instanceNorm", [node.input(0), node.input(1), node.input(2)], { epsilon });
}

/** Up to version 20 scale and bias are per group. */
function groupNorm(node: NodeView): Operand {
  const { attributes } = node;
  attributes.ignore("stash_type");
  const groups = attributes.int("num_groups") ?? 0;
  const x = node.input(0);
  const channels = node.fixedExtent(x.type.shape[1] ?? one, "the number of channels");
  if (groups < 1 || channels % groups !== 0) {
    attributes.refuse("num_groups", groups, `a divisor of the ${channels} channels`);
  }
  const perChannel = (p: Operand): Operand => {
    if (node.version >= 21) return p;
    const each = channels / groups;
    node.checkRank(p, 1, "a scale or bias");
    const column = node.reshape(p, [p.type.shape[0]!, one]);
    const spread = node.emit("broadcast", [column], { shape: [p.type.shape[0]!, mul(each, one)] });
    return node.reshape(spread, [mul(each, p.type.shape[0]!)]);
  };
  const operands = [x, perChannel(node.input(1)), perChannel(node.input(2))];
  return node.emit("groupNorm", operands, { groups, epsilon: attributes.float("epsilon") ?? 1e-5 });
}

/** Mean and inverse deviation are computed in the stash type when they are wanted. */
function layerNorm(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const x = node.input(0);
  const rank = x.type.shape.length;
  const axis = node.axis(attributes.int("axis") ?? -1, rank);
  const epsilon = attributes.float("epsilon") ?? 1e-5;
  const stash = node.dtype(attributes.int("stash_type") ?? 1);
  const bias = node.optional(2);
  const operands = [x, node.input(1), ...(bias ? [bias] : [])];
  const normed = node.emit("layerNorm", operands, { axis, epsilon });
  if (!node.wants(1) && !node.wants(2)) return [normed];
  return [normed, ...moments(node, x, { axis, epsilon, stash })];
}

function moments(
  node: NodeView,
  x: Operand,
  { axis, epsilon, stash }: { axis: number; epsilon: number; stash: DType },
): readonly Operand[] {
  const axes = x.type.shape.map((_, i) => i).slice(axis);
  const wide = node.cast(x, stash);
  const mean = node.emit("reduceMean", [wide], { axes, keepDims: true });
  const centred = node.emit("sub", [wide, mean], {});
  const square = node.emit("mul", [centred, centred], {});
  const variance = node.emit("reduceMean", [square], { axes, keepDims: true });
  const shifted = node.emit("add", [variance, node.splat(stash, epsilon)], {});
  const deviation = node.emit("sqrt", [shifted], {});
  return [mean, node.emit("reciprocal", [deviation], {})];
}

function rmsNorm(node: NodeView): Operand {
  const { attributes } = node;
  attributes.ignore("stash_type");
  const x = node.input(0);
  const axis = node.axis(attributes.int("axis") ?? -1, x.type.shape.length);
  const epsilon = attributes.float("epsilon") ?? 1e-5;
  return node.emit("rmsNorm", [x, node.input(1)], { axis, epsilon });
}

function lrn(node: NodeView): Operand {
  const { attributes } = node;
  return node.emit("lrn", [node.input(0)], {
    size: attributes.int("size") ?? 1,
    alpha: attributes.float("alpha") ?? 0.0001,
    beta: attributes.float("beta") ?? 0.75,
    bias: attributes.float("bias") ?? 1,
  });
}

function lpNormalization(node: NodeView): Operand {
  const x = node.input(0);
  const axis = node.axis(node.attributes.int("axis") ?? -1, x.type.shape.length);
  return node.emit("lpNormalization", [x], { axis, p: node.attributes.int("p") ?? 2 });
}

function meanVarianceNormalization(node: NodeView): Operand {
  const x = node.input(0);
  const axes = node.axes(node.attributes.ints("axes") ?? [0, 2, 3], x.type.shape.length);
  return node.emit("meanVarianceNormalization", [x], { axes });
}

export const normalizationRows = {
  Softmax: { since: [1, 11, 13], convert: softmax("softmax") },
  LogSoftmax: { since: [1, 11, 13], convert: softmax("logSoftmax") },
  BatchNormalization: { since: [7, 9, 14, 15], convert: batchNorm },
  InstanceNormalization: { since: [6, 22], convert: instanceNorm },
  GroupNormalization: { since: [18, 21], convert: groupNorm },
  LayerNormalization: { since: [17], convert: layerNorm },
  RMSNormalization: { since: [23], convert: rmsNorm },
  // Of ONNX Runtime, in the default domain.
  SimplifiedLayerNormalization: { since: [1], convert: rmsNorm },
  LRN: { since: [1, 13], convert: lrn },
  LpNormalization: { since: [1, 22], convert: lpNormalization },
  MeanVarianceNormalization: { since: [9, 13], convert: meanVarianceNormalization },
} satisfies OperatorTable;
