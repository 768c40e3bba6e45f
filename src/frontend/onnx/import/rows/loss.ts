/** Losses, which exported training graphs contain. */
import { type NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

/** -weight[target] * logProbability[n, target, …], summed or averaged over what is not ignored. */
function likelihoodLoss(node: NodeView, logProbability: Operand): Operand {
  const { attributes } = node;
  const { dtype } = logProbability.type;
  const target = node.cast(node.input(1), "i64");
  node.checkRank(target, Math.max(1, logProbability.type.shape.length - 1), "a target");
  const weight = node.optional(2);
  const ignored = attributes.int("ignore_index");
  const reduction = attributes.choice("reduction", "mean", "none", "sum");
  const skip =
    ignored === undefined
      ? undefined
      : node.emit("equal", [target, node.splat("i64", ignored)], {});
  const index = skip ? node.emit("select", [skip, node.splat("i64", 0), target], {}) : target;
  const [batch, ...rest] = target.type.shape;
  const column = node.reshape(index, [batch!, one, ...rest]);
  const picked = node.emit("gatherElements", [logProbability, column], { axis: 1 });
  const negative = node.emit("neg", [node.reshape(picked, target.type.shape)], {});
  const importance = weight
    ? node.emit("gather", [weight, index], { axis: 0 })
    : node.emit("broadcast", [node.splat(dtype, 1)], { shape: target.type.shape });
  const counted = skip
    ? node.emit("select", [skip, node.splat(dtype, 0), importance], {})
    : importance;
  const loss = node.emit("mul", [counted, negative], {});
  const axes = target.type.shape.map((_, i) => i);
  const sum = (x: Operand) => node.emit("reduce", [x], { kind: "sum", axes, keepDims: false });
  if (reduction === "none") return loss;
  return reduction === "sum" ? sum(loss) : node.emit("div", [sum(loss), sum(counted)], {});
}

function softmaxCrossEntropy(node: NodeView): readonly Operand[] {
  const x = node.input(0);
  const logProbability = node.emit("logSoftmax", [x], { axis: node.axis(1, x.type.shape.length) });
  return [likelihoodLoss(node, logProbability), logProbability];
}

export const lossRows = {
  NegativeLogLikelihoodLoss: {
    since: [12, 13, 22],
    convert: (node) => likelihoodLoss(node, node.input(0)),
  },
  SoftmaxCrossEntropyLoss: { since: [12, 13], convert: softmaxCrossEntropy },
} satisfies OperatorTable;
