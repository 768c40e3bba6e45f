/** What the classifiers of ai.onnx.ml share: labels of classes and what becomes of scores. */
import { constant } from "../../../../semantics/index-expr.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import type { NodeView } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import { sliceAxis } from "./slicing.ts";

export interface ClassLabels {
  readonly count: number;
  /** The label of the greatest of scores [n, classes]; the first of equal ones. */
  best(scores: Operand): Operand;
  /** The second label where `second` [n] is true, else the first. */
  either(second: Operand): Operand;
}

/** Labels are integers; a program has no strings. */
export function classLabels(node: NodeView, prefix: "classlabels" | "class_labels"): ClassLabels {
  const { attributes } = node;
  const names = [`${prefix}_int64s`, `${prefix}_ints`, `${prefix}_strings`] as const;
  const ints = attributes.ints(names[0]) ?? attributes.ints(names[1]);
  const texts = attributes.strings(names[2]);
  if (!ints || ints.length === 0 || (texts && texts.length > 0))
    return attributes.refuse(names[2], "a list of labels", "labels that are integers");
  const table = constantFromRef(refTensor("i64", [ints.length], ints));
  const label = (index: Operand) => node.emit("gather", [table, index], { axis: 0 });
  return {
    count: ints.length,
    best: (scores) => {
      const attrs = { kind: "max", axis: 1, keepDims: false, selectLast: false } as const;
      return label(node.emit("argReduce", [scores], attrs));
    },
    either: (second) => label(node.cast(second, "i64")),
  };
}

/** How the score of the second of two classes becomes two. */
type Second = "complement" | "opposite";

/** `post_transform` of scores [n, classes]; of one score for two classes, both. */
export function postTransformed(node: NodeView, scores: Operand, second?: Second): Operand {
  const how = node.attributes.choice(
    "post_transform",
    "NONE",
    "LOGISTIC",
    "SOFTMAX",
    "SOFTMAX_ZERO",
    "PROBIT",
  );
  if (how === "PROBIT") return node.attributes.refuse("post_transform", how, "the others");
  const both = second ? pair(node, scores, how === "LOGISTIC" ? "opposite" : second) : scores;
  if (how === "LOGISTIC") {
    if (second !== "complement") return node.emit("sigmoid", [both], {});
    const own = sliceAxis(node, both, { axis: 1, start: constant(1), step: 1, size: constant(1) });
    return pair(node, node.emit("sigmoid", [own], {}), "complement");
  }
  return transformed(node, both, how);
}

export type Transform = "NONE" | "LOGISTIC" | "SOFTMAX" | "SOFTMAX_ZERO";

/** Scores [n, classes], each class by itself. */
export function transformed(node: NodeView, scores: Operand, how: Transform): Operand {
  if (how === "NONE") return scores;
  if (how === "LOGISTIC") return node.emit("sigmoid", [scores], {});
  if (how === "SOFTMAX") return node.emit("softmax", [scores], { axis: 1 });
  return zeroesKept(node, scores);
}

/** Softmax over the scores that are not 0, which stay 0. */
function zeroesKept(node: NodeView, scores: Operand): Operand {
  const { dtype } = scores.type;
  const isZero = node.emit("equal", [scores, node.splat(dtype, 0)], {});
  const others = node.emit("select", [isZero, node.splat(dtype, -Infinity), scores], {});
  const soft = node.emit("softmax", [others], { axis: 1 });
  return node.emit("select", [isZero, node.splat(dtype, 0), soft], {});
}

function pair(node: NodeView, score: Operand, second: Second): Operand {
  const whole = node.splat(score.type.dtype, second === "complement" ? 1 : 0);
  const first = node.emit("sub", [whole, score], {});
  return node.emit("concat", [first, score], { axis: 1 });
}
