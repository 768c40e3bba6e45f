/**
 * Small fused and older operators of com.microsoft: arithmetic with a bias, distances, windows and forms of
 * operators that ai.onnx has since. Definitions: ONNX Runtime's ContribOperators page.
 */
import { constant, constantValue, type IndexExpr } from "../../../../semantics/index-expr.ts";
import { reject } from "../../../../support/diagnostic.ts";
import { NodeView, one } from "../node-view.ts";
import type { Operand } from "../operand.ts";
import type { OperatorRow, OperatorTable } from "../operator-row.ts";
import { fillingRows } from "./filling.ts";
import { matMul } from "./linear.ts";
import { inverse } from "./linear-algebra.ts";
import { movementRows } from "./movement.ts";
import { samplingRows } from "./sampling.ts";
import { sliceAxis, slicingRows } from "./slicing.ts";

function lastAxis(node: NodeView, { type: { shape } }: Operand): number {
  return shape.length > 0 ? shape.length - 1 : node.refuse("a scalar", "a tensor with axes");
}

/** softmax(x + bias) along the last axis. */
function biasSoftmax(node: NodeView): Operand {
  const { attributes } = node;
  attributes.ignore("is_inner_broadcast");
  const sum = node.emit("add", [node.input(0), node.input(1)], {});
  const { length } = sum.type.shape;
  const axis = node.axis(attributes.int("axis") ?? 1, length);
  if (axis !== length - 1) attributes.refuse("axis", axis, "the last axis");
  return node.emit("softmax", [sum], { axis });
}

/** Of x + bias the first half of the last axis times gelu of the second. */
function biasSplitGelu(node: NodeView): Operand {
  const sum = node.emit("add", [node.input(0), node.input(1)], {});
  const axis = lastAxis(node, sum);
  const width = node.fixedExtent(sum.type.shape[axis]!, "the last axis");
  if (width % 2 !== 0) node.refuse(`${width} channels`, "an even number");
  const half = (start: number) =>
    sliceAxis(node, sum, { axis, start: constant(start), step: 1, size: constant(width / 2) });
  const gate = node.emit("gelu", [half(width / 2)], { approximate: "none" });
  return node.emit("mul", [half(0), gate], {});
}

/** What dropout leaves in a model that is used: x + bias (+ residual), and that nothing was dropped. */
function biasDropout(node: NodeView): readonly Operand[] {
  const sum = node.emit("add", [node.input(0), node.input(1)], {});
  const rest = node.optional(2);
  if (node.inputs[4] && Number(node.numbers(4, "training_mode")[0]) !== 0)
    node.refuse("training_mode", "a model that is used");
  const y = rest ? node.emit("add", [sum, rest], {}) : sum;
  return [y, node.emit("broadcast", [node.splat("bool", 1)], { shape: y.type.shape })];
}

/** gelu(A B + bias) by the tanh form. */
function gemmFastGelu(node: NodeView): Operand {
  const product = matMul(node, node.input(0), node.input(1));
  const bias = node.optional(2);
  const x = bias ? node.emit("add", [product, bias], {}) : product;
  return node.emit("gelu", [x], { approximate: "tanh" });
}

/** A new axis of 1 at a known place. */
function expandDims(node: NodeView): Operand {
  const x = node.input(0);
  const { shape } = x.type;
  const axis = node.axis(node.integers(1, "axis")[0] ?? 0, shape.length + 1);
  return node.reshape(x, [...shape.slice(0, axis), one, ...shape.slice(axis)]);
}

/** Distances between the rows of A [m, k] and of B [n, k]: [m, n]. */
function distances(node: NodeView): Operand {
  const [a, b] = [node.input(0), node.input(1)];
  for (const x of [a, b]) node.checkRank(x, 2, "an operand");
  const metric = node.attributes.choice("metric", "sqeuclidean", "euclidean");
  const [m, k] = a.type.shape as [IndexExpr, IndexExpr];
  const apart = node.emit("sub", [node.reshape(a, [m, one, k]), b], {});
  const square = node.emit("reduceSumSquare", [apart], { axes: [2], keepDims: false });
  return metric === "euclidean" ? node.emit("sqrt", [square], {}) : square;
}

/** Products of complex numbers that lie as pairs on the last axis, with the second conjugated or not. */
function complexProduct(isConjugated: boolean) {
  return (node: NodeView): Operand => {
    const part = (x: Operand, i: number): Operand => {
      const axis = lastAxis(node, x);
      if (constantValue(x.type.shape[axis]!) !== 2)
        node.refuse("no pairs on the last axis", "pairs");
      return sliceAxis(node, x, { axis, start: constant(i), step: 1, size: constant(1) });
    };
    const [[a, b], [c, d]] = [0, 1].map((at) => [0, 1].map((i) => part(node.input(at), i))) as [
      [Operand, Operand],
      [Operand, Operand],
    ];
    const times = (x: Operand, y: Operand) => node.emit("mul", [x, y], {});
    const [plus, minus] = isConjugated ? (["sub", "add"] as const) : (["add", "sub"] as const);
    const real = node.emit(minus, [times(a, c), times(b, d)], {});
    const imaginary = isConjugated
      ? node.emit(plus, [times(b, c), times(a, d)], {})
      : node.emit(plus, [times(a, d), times(b, c)], {});
    return node.emit("concat", [real, imaginary], { axis: real.type.shape.length - 1 });
  };
}

/** Windows of `size` along an axis, `step` apart, as a new last axis. */
function unfold(node: NodeView): Operand {
  const { attributes } = node;
  const x = node.input(0);
  const { shape } = x.type;
  const axis = node.axis(attributes.int("dim") ?? -1, shape.length);
  const [size, step] = [attributes.int("size") ?? 0, attributes.int("step") ?? 1];
  const extent = node.fixedExtent(shape[axis]!, "the axis of windows");
  if (size < 1 || step < 1 || size > extent)
    node.refuse(`windows of ${size} every ${step}`, `1 to ${extent}, steps from 1 on`);
  const count = Math.floor((extent - size) / step) + 1;
  node.checkTable(count * size, "positions of windows");
  const places = Array.from({ length: count }, (_, w) =>
    Array.from({ length: size }, (_, i) => w * step + i),
  ).flat();
  const windows = node.emit("gather", [x, node.indices(places, [count, size])], { axis });
  const order = Array.from({ length: shape.length + 1 }, (_, i) => i).filter((i) => i !== axis + 1);
  return node.transpose(windows, [...order, axis + 1]);
}

/** Different elements in the order they come, where each of x is among them, and how many there are. */
function uniqueElements(node: NodeView): readonly Operand[] {
  const found = node.emitAll("unique", [node.input(0)], { sorted: false });
  return [found[0]!, found[2]!, found[3]!];
}

/** (A in 16 bits) times B, summed in 32 bits. */
function matMulInteger16(node: NodeView): Operand {
  const [a, b] = [0, 1].map((i) => node.cast(node.input(i), "i32")) as [Operand, Operand];
  return matMul(node, a, b);
}

/**
 * Scores [b, v] with -Infinity for each token that would make a sequence of n tokens stand in ids [b, s]
 * a second time: where the n - 1 tokens before the end stand already, what follows them.
 */
function forbidRepeats(node: NodeView): Operand {
  const [ids, scores] = [node.input(0), node.input(1)];
  for (const x of [ids, scores]) node.checkRank(x, 2, "an operand");
  const n = node.attributes.int("ngram_size") ?? 0;
  if (n < 1) node.attributes.refuse("ngram_size", n, "1 or more");
  const [batch, length] = ids.type.shape as [IndexExpr, IndexExpr];
  const columns = (start: IndexExpr, size: IndexExpr) =>
    sliceAxis(node, ids, { axis: 1, start, step: 1, size });
  const places = node.fixedExtent(length, "the number of tokens") - n + 1;
  if (places < 1) return scores;
  let same: Operand = node.emit("broadcast", [node.splat("bool", 1)], {
    shape: [batch, constant(places)],
  });
  for (let i = 0; i < n - 1; i++) {
    const last = columns(constant(places + i), one);
    const here = node.emit("equal", [columns(constant(i), constant(places)), last], {});
    same = node.emit("and", [same, here], {});
  }
  const next = columns(constant(n - 1), constant(places));
  const { dtype } = scores.type;
  const worst = [same, node.splat(dtype, -Infinity), node.splat(dtype, Infinity)];
  const limits = node.emit("select", worst, {});
  return node.emit("scatterElements", [scores, next, limits], { axis: 1, reduction: "min" });
}

/** As the operator of ai.onnx of a version. */
function toStandard(row: OperatorRow, version: number) {
  return (node: NodeView): Operand => {
    const made = row.convert(new NodeView({ ...node, version }));
    return (Array.isArray(made) ? made[0] : made) as Operand;
  };
}

/** Loops over a whole decoder that take their bodies as attributes. */
function generation(node: NodeView): never {
  return reject("ONX009", `${node.op} runs a decoder until it ends, with its own search`, {
    at: node.origin.at,
    help: "export the decoder alone (optimum: without the merged generation) and call it for each token",
  });
}

export const microsoftArithmeticRows = {
  BiasSoftmax: { since: [1], convert: biasSoftmax },
  BiasSplitGelu: { since: [1], convert: biasSplitGelu },
  BiasDropout: { since: [1], convert: biasDropout },
  GemmFastGelu: { since: [1], convert: gemmFastGelu },
  ExpandDims: { since: [1], convert: expandDims },
  CDist: { since: [1], convert: distances },
  ComplexMul: { since: [1], convert: complexProduct(false) },
  ComplexMulConj: { since: [1], convert: complexProduct(true) },
  UnfoldTensor: { since: [1], convert: unfold },
  Unique: { since: [1], convert: uniqueElements },
  Inverse: { since: [1], convert: inverse },
  NGramRepeatBlock: { since: [1], convert: forbidRepeats },
  MatMulInteger16: { since: [1], convert: matMulInteger16 },
  Pad: { since: [1], convert: toStandard(slicingRows.Pad, 13) },
  Range: { since: [1], convert: toStandard(fillingRows.Range, 11) },
  GatherND: { since: [1], convert: toStandard(movementRows.GatherND, 12) },
  GridSample: { since: [1], convert: toStandard(samplingRows.GridSample, 16) },
  BeamSearch: { since: [1], convert: generation },
  GreedySearch: { since: [1], convert: generation },
  Sampling: { since: [1], convert: generation },
  WhisperBeamSearch: { since: [1], convert: generation },
} satisfies OperatorTable;
