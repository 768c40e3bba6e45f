/** Support vector machines of ai.onnx.ml: kernels of rows of features and vectors, and sums of them. */
import { constant, type IndexExpr } from "../../../../semantics/index-expr.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import { type NodeView, one } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import { type ClassLabels, classLabels, postTransformed } from "./class-scores.ts";

const kernels = ["LINEAR", "POLY", "RBF", "SIGMOID"] as const;

/** Operand 0 in f32, [n, f]. */
function features(node: NodeView): Operand {
  const x = node.cast(node.input(0), "f32");
  node.checkRank(x, 2, "data");
  return x;
}

const numbers = (values: readonly number[], shape = [values.length]): Operand =>
  constantFromRef(refTensor("f32", shape, values));

/** K(x, v) of rows x [n, f] and support vectors [v, f]: [n, v]. */
function kernel(node: NodeView, x: Operand, vectors: Operand): Operand {
  const { attributes } = node;
  const [gamma = 0, bias = 0, degree = 0] = attributes.floats("kernel_params") ?? [];
  const kind = attributes.choice("kernel_type", ...kernels);
  const number = (value: number) => node.splat("f32", value);
  if (kind === "RBF") {
    const [n, f] = x.type.shape as [IndexExpr, IndexExpr];
    const apart = node.emit("sub", [node.reshape(x, [n, one, f]), vectors], {});
    const square = node.emit("reduceSumSquare", [apart], { axes: [2], keepDims: false });
    return node.emit("exp", [node.emit("mul", [square, number(-gamma)], {})], {});
  }
  const labels = { lhs: ["n", "f"], rhs: ["v", "f"], output: ["n", "v"] };
  const dot = node.emit("contract", [x, vectors], { ...labels, accumulator: "f32" });
  if (kind === "LINEAR") return dot;
  const moved = node.emit("add", [node.emit("mul", [dot, number(gamma)], {}), number(bias)], {});
  if (kind === "SIGMOID") return node.emit("tanh", [moved], {});
  return node.emit("pow", [moved, number(degree)], {});
}

/** Kernels of the support vectors times their coefficients, plus rho; without vectors a plain product. */
export function supportVectorRegressor(node: NodeView): Operand {
  const { attributes } = node;
  const x = features(node);
  const coefficients = attributes.floats("coefficients") ?? [];
  const count = attributes.int("n_supports") ?? 0;
  const width = node.fixedExtent(x.type.shape[1]!, "the number of features");
  const given = count > 0 ? (attributes.floats("support_vectors") ?? []) : coefficients;
  const vectors = count > 0 ? count : 1;
  if (given.length !== vectors * width || (count > 0 && coefficients.length !== count))
    node.refuse(`${given.length} numbers for ${vectors} vectors`, `${vectors * width}`);
  const similar = kernel(node, x, numbers(given, [vectors, width]));
  const weighted = count > 0 ? node.emit("mul", [similar, numbers(coefficients)], {}) : similar;
  const sum = node.emit("reduce", [weighted], { kind: "sum", axes: [1], keepDims: true });
  const y = node.emit("add", [sum, node.splat("f32", attributes.floats("rho")?.[0] ?? 0)], {});
  if (!attributes.flag("one_class", false)) return postTransformed(node, y);
  const isIn = node.emit("less", [node.splat("f32", 0), y], {});
  return node.emit("select", [isIn, node.splat("f32", 1), node.splat("f32", -1)], {});
}

/** Which of two classes each of the pairwise machines tells apart, in the order of the file. */
function pairsOf(classes: number): readonly (readonly [number, number])[] {
  const all = Array.from({ length: classes }, (_, i) => i);
  return all.flatMap((i) => all.slice(i + 1).map((j) => [i, j] as const));
}

interface Machines {
  readonly pairs: readonly (readonly [number, number])[];
  readonly classes: number;
  /** Vectors of each class, side by side. */
  readonly counts: readonly number[];
}

/** How far each row is on the side of the first class of each pair: [n, pairs]. */
function decisions(node: NodeView, { pairs, classes, counts }: Machines): Operand {
  const { attributes } = node;
  const x = features(node);
  const width = node.fixedExtent(x.type.shape[1]!, "the number of features");
  const count = counts.reduce((a, b) => a + b, 0);
  const vectors = attributes.floats("support_vectors") ?? [];
  const coefficients = attributes.floats("coefficients") ?? [];
  const rho = attributes.floats("rho") ?? [];
  const wanted = [count * width, (classes - 1) * count, pairs.length];
  const found = [vectors.length, coefficients.length, rho.length];
  if (found.join() !== wanted.join())
    node.refuse(`${found.join(", ")} vectors, coefficients and rho`, wanted.join(", "));
  const classOf = counts.flatMap((n, c) => new Array<number>(n).fill(c));
  // The row of a class against itself is left out of the file.
  const weight = ([i, j]: readonly [number, number], v: number): number => {
    if (classOf[v] === i) return coefficients[(j - 1) * count + v]!;
    return classOf[v] === j ? coefficients[i * count + v]! : 0;
  };
  const table = pairs.flatMap((pair) => classOf.map((_, v) => weight(pair, v)));
  const similar = kernel(node, x, numbers(vectors, [count, width]));
  const sums = product(node, similar, numbers(table, [pairs.length, count]));
  return node.emit("add", [sums, numbers(rho)], {});
}

/** x [n, k] times the rows of a table [m, k]: [n, m]. */
function product(node: NodeView, x: Operand, table: Operand): Operand {
  const labels = { lhs: ["n", "k"], rhs: ["m", "k"], output: ["n", "m"] };
  return node.emit("contract", [x, table], { ...labels, accumulator: "f32" });
}

/** How many pairs each class wins: [n, classes]. */
function votes(node: NodeView, sides: Operand, { pairs, classes }: Machines): Operand {
  const isFirst = node.cast(node.emit("less", [node.splat("f32", 0), sides], {}), "f32");
  // A pair gives its vote to the second class unless the first has it.
  const change = Array.from({ length: classes }, (_, c) =>
    pairs.map(([i, j]) => (c === i ? 1 : c === j ? -1 : 0)),
  );
  const seconds = Array.from(
    { length: classes },
    (_, c) => pairs.filter(([, j]) => j === c).length,
  );
  const moved = product(node, isFirst, numbers(change.flat(), [classes, pairs.length]));
  return node.emit("add", [moved, numbers(seconds)], {});
}

/** Most classes for which probabilities are worked out: the steps of an elimination are copied out. */
const mostProbable = 8;
const leastProbability = 1e-7;

/**
 * Probabilities of classes [n, classes] from those of pairs: p with the least sum over pairs of
 * (r_ji p_i - r_ij p_j)^2 that adds up to 1 (Wu, Lin and Weng 2004, their second approach), which is a
 * linear system. The file's a and b make a pair's probability of its decision.
 */
function probabilities(node: NodeView, sides: Operand, { pairs, classes }: Machines): Operand {
  const { attributes } = node;
  const [a, b] = ["prob_a", "prob_b"].map((name) => attributes.floats(name) ?? []);
  if (a!.length !== pairs.length || b!.length !== pairs.length)
    node.refuse(`${a!.length} and ${b!.length} of prob_a and prob_b`, `${pairs.length}`);
  if (classes > mostProbable)
    node.refuse(`probabilities of ${classes} classes`, `at most ${mostProbable}, or none`);
  const number = (value: number) => node.splat("f32", value);
  const slope = node.emit("add", [node.emit("mul", [sides, numbers(a!)], {}), numbers(b!)], {});
  const first = node.emit("sigmoid", [node.emit("neg", [slope], {})], {});
  const high = node.emit("min", [first, number(1 - leastProbability)], {});
  const bounded = node.emit("max", [high, number(leastProbability)], {});
  const column = (p: number): Operand => node.emit("slice", [bounded], sliceOf(bounded, p));
  const won = new Map(pairs.map(([i, j], p): [string, Operand] => [`${i},${j}`, column(p)]));
  const share = (i: number, j: number): Operand => {
    if (i < j) return won.get(`${i},${j}`)!;
    return node.emit("sub", [number(1), won.get(`${j},${i}`)!], {});
  };
  const mul = (x: Operand, y: Operand) => node.emit("mul", [x, y], {});
  const add = (x: Operand, y: Operand) => node.emit("add", [x, y], {});
  const sub = (x: Operand, y: Operand) => node.emit("sub", [x, y], {});
  const all = Array.from({ length: classes }, (_, i) => i);
  const rows = all.map((i) =>
    all.map((j) => {
      if (i !== j) return sub(number(1), mul(share(j, i), share(i, j)));
      return all
        .flatMap((o) => (o === i ? [] : [mul(share(o, i), share(o, i))]))
        .reduce(add, number(1));
    }),
  );
  // Where p adds up to 1 the ones that were added to the matrix change nothing but make it positive, so that
  // no pivots are needed. The matrix times x is a vector of ones; p is x over its sum.
  const right: Operand[] = all.map(() => number(1));
  for (const k of all) {
    for (const i of all.slice(k + 1)) {
      const factor = node.emit("div", [rows[i]![k]!, rows[k]![k]!], {});
      for (const j of all.slice(k)) rows[i]![j] = sub(rows[i]![j]!, mul(factor, rows[k]![j]!));
      right[i] = sub(right[i]!, mul(factor, right[k]!));
    }
  }
  const solved: Operand[] = [];
  for (const k of [...all].reverse()) {
    const known = all.slice(k + 1).map((j) => mul(rows[k]![j]!, solved[j]!));
    const rest = known.reduce(sub, right[k]!);
    solved[k] = node.emit("div", [rest, rows[k]![k]!], {});
  }
  const total = solved.reduce(add);
  const parts = solved.map((x) => node.emit("div", [x, total], {}));
  return node.emit("concat", parts, { axis: 1 });
}

function sliceOf(x: Operand, column: number) {
  const [n] = x.type.shape as [IndexExpr];
  return { starts: [constant(0), constant(column)], steps: [1, 1], sizes: [n, one] };
}

/**
 * Machines for all pairs of classes that vote, the first of those with most votes wins; without vectors a
 * linear score for each class. As onnxruntime writes scores: decisions of pairs, of two classes both sides,
 * or probabilities where the file has them.
 */
export function supportVectorClassifier(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  const labels = classLabels(node, "classlabels");
  const classes = labels.count;
  if (classes < 2) node.refuse(`${classes} classes`, "at least 2");
  const counts = attributes.ints("vectors_per_class") ?? [];
  if (counts.length === 0) return linearScores(node, labels);
  if (counts.length !== classes) node.refuse(`vectors of ${counts.length} classes`, `${classes}`);
  if (counts.some((n) => n < 0)) attributes.refuse("vectors_per_class", `[${counts}]`, "0 or more");
  const vectors = counts.reduce((a, b) => a + b, 0);
  node.checkTable(classes ** 2 * Math.max(classes, vectors), "coefficients of pairs of classes");
  const machines = { pairs: pairsOf(classes), classes, counts };
  const sides = decisions(node, machines);
  const label = labels.best(votes(node, sides, machines));
  if ((attributes.floats("prob_a") ?? []).length > 0)
    return [label, postTransformed(node, probabilities(node, sides, machines))];
  if (classes > 2) return [label, postTransformed(node, sides)];
  const how = attributes.string("post_transform") ?? "NONE";
  const opposite = node.emit("neg", [sides], {});
  const isOpposite = how === "NONE" || how === "LOGISTIC";
  const other = isOpposite ? opposite : node.emit("sub", [node.splat("f32", 1), sides], {});
  const both = node.emit("concat", [other, sides], { axis: 1 });
  return [label, how === "LOGISTIC" ? node.emit("sigmoid", [both], {}) : both];
}

function linearScores(node: NodeView, labels: ClassLabels): readonly Operand[] {
  const { attributes } = node;
  attributes.ignore("kernel_type", "kernel_params");
  const x = features(node);
  const width = node.fixedExtent(x.type.shape[1]!, "the number of features");
  const coefficients = attributes.floats("coefficients") ?? [];
  if (coefficients.length !== labels.count * width)
    node.refuse(`${coefficients.length} coefficients`, `${labels.count * width}`);
  const sums = product(node, x, numbers(coefficients, [labels.count, width]));
  const scores = node.emit(
    "add",
    [sums, node.splat("f32", attributes.floats("rho")?.[0] ?? 0)],
    {},
  );
  if (labels.count > 2) return [labels.best(scores), postTransformed(node, scores)];
  // Of two classes the second also wins by a score above a limit.
  const most = node.emit("reduce", [scores], { kind: "max", axes: [1], keepDims: false });
  const isSure = coefficients.every((c) => c >= 0)
    ? node.emit("lessEqual", [node.splat("f32", 0.5), most], {})
    : node.emit("less", [node.splat("f32", 0), most], {});
  const second = labels.either(isSure);
  return [
    node.emit("select", [isSure, second, labels.best(scores)], {}),
    postTransformed(node, scores),
  ];
}
