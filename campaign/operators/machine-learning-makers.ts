/** Random cases of the models of ai.onnx.ml that are arithmetic on rows of features, by name. */
import type { Rng } from "../../src/support/rng.ts";
import type { CaseMaker } from "./microsoft-makers.ts";
import type { OperatorCase } from "./operator-case.ts";

type Attributes = NonNullable<OperatorCase["node"]["attributes"]>;

const big = (value: number): bigint => BigInt(value);
const normals = (rng: Rng, count: number): number[] =>
  Array.from({ length: count }, () => Math.fround(rng.normal()));
const counted = (count: number): bigint[] => Array.from({ length: count }, (_, i) => BigInt(i));

const scaler: CaseMaker = (rng) => {
  const width = rng.integer(1, 6);
  const count = rng.pick([1, width]);
  return {
    node: {
      op: "Scaler",
      attributes: { offset: normals(rng, count), scale: normals(rng, count) },
    },
    operands: [[rng.integer(1, 5), width]],
  };
};

const normalizer: CaseMaker = (rng) => ({
  node: { op: "Normalizer", attributes: { norm: rng.pick(["MAX", "L1", "L2"]) } },
  operands: [{ shape: [rng.integer(1, 5), rng.integer(2, 6)], range: [0.1, 2] }],
});

const transforms = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"];

const linearRegressor: CaseMaker = (rng) => {
  const [targets, width] = [rng.integer(1, 4), rng.integer(1, 7)];
  return {
    node: {
      op: "LinearRegressor",
      attributes: {
        targets: big(targets),
        coefficients: normals(rng, targets * width),
        ...(rng.integer(0, 1) === 1 && { intercepts: normals(rng, targets) }),
      },
    },
    operands: [[rng.integer(1, 5), width]],
  };
};

const classifierOutputs = [
  ["label", "i64", 1],
  ["scores", "f32", 2],
] as const;

const linearClassifier: CaseMaker = (rng) => {
  const classes = rng.integer(2, 4);
  const rows = classes === 2 ? rng.pick([1, 2]) : classes;
  const width = rng.integer(1, 7);
  const post = rng.pick(rows === 1 ? ["NONE", "LOGISTIC"] : transforms);
  return {
    node: {
      op: "LinearClassifier",
      attributes: {
        coefficients: normals(rng, rows * width),
        intercepts: normals(rng, rows),
        classlabels_ints: Array.from({ length: classes }, (_, i) => big(10 + 3 * i)),
        post_transform: post,
      },
    },
    operands: [[rng.integer(1, 6), width]],
    outputs: classifierOutputs,
  };
};

const supportVectors: CaseMaker = (rng) => {
  const [count, width] = [rng.integer(1, 6), rng.integer(1, 5)];
  const kernel = rng.pick(["LINEAR", "POLY", "RBF", "SIGMOID"]);
  return {
    node: {
      op: "SVMRegressor",
      attributes: {
        kernel_type: kernel,
        kernel_params: [0.3, 0.5, 3],
        n_supports: big(count),
        support_vectors: normals(rng, count * width),
        coefficients: normals(rng, count),
        rho: normals(rng, 1),
      },
    },
    operands: [[rng.integer(1, 5), width]],
    tolerance: 1e-4,
  };
};

const supportVectorClasses: CaseMaker = (rng) => {
  const [classes, width] = [rng.integer(2, 4), rng.integer(1, 5)];
  const isLinear = rng.integer(0, 3) === 0;
  const counts = Array.from({ length: classes }, () => rng.integer(1, 3));
  const count = counts.reduce((a, b) => a + b, 0);
  const pairs = (classes * (classes - 1)) / 2;
  const isProbable = !isLinear && rng.integer(0, 1) === 1;
  const machines = {
    kernel_type: rng.pick(["LINEAR", "POLY", "RBF", "SIGMOID"]),
    kernel_params: [0.3, 0.5, 3],
    vectors_per_class: counts.map(big),
    support_vectors: normals(rng, count * width),
    coefficients: normals(rng, (classes - 1) * count),
    rho: normals(rng, pairs),
    ...(isProbable && {
      prob_a: Array.from({ length: pairs }, () => -0.5 - rng.uniform()),
      prob_b: normals(rng, pairs).map((b) => 0.3 * b),
    }),
  };
  const linear = {
    kernel_type: "LINEAR",
    kernel_params: [0, 0, 0],
    coefficients: normals(rng, classes * width),
    rho: normals(rng, 1),
  };
  return {
    node: {
      op: "SVMClassifier",
      attributes: {
        ...(isLinear ? linear : machines),
        classlabels_ints: Array.from({ length: classes }, (_, i) => big(5 + 2 * i)),
        post_transform:
          isLinear || isProbable ? rng.pick(["NONE", "SOFTMAX"]) : rng.pick(transforms),
      },
    },
    operands: [[rng.integer(1, 5), width]],
    outputs: classifierOutputs,
    // The peer stops its search for probabilities when they are about this close.
    tolerance: isProbable ? 0.005 : 1e-4,
  };
};

const imputer: CaseMaker = (rng) => {
  const width = rng.integer(1, 5);
  const rows = rng.integer(1, 5);
  const values = normals(rng, rows * width).map((v, i) => (i % 3 === 0 ? Number.NaN : v));
  return {
    node: {
      op: "Imputer",
      attributes: {
        imputed_value_floats: normals(rng, rng.pick([1, width])),
        replaced_value_float: Number.NaN,
      },
    },
    operands: [{ shape: [rows, width], values }],
  };
};

const oneHot: CaseMaker = (rng) => ({
  node: { op: "OneHotEncoder", attributes: { cats_int64s: counted(rng.integer(1, 5)), zeros: 1n } },
  operands: [{ shape: [rng.integer(1, 6)], dtype: "i64", range: [0, 6] }],
  outputs: [["y", "f32", 2]],
});

const vectorizer: CaseMaker = (rng) => {
  const rows = rng.integer(1, 4);
  const widths = [1, 2, 3].map(() => rng.integer(1, 4));
  return {
    node: { op: "FeatureVectorizer", attributes: { inputdimensions: widths.map(big) } },
    operands: widths.map((width) => [rows, width]),
  };
};

/** Trees of random shape, as the lists that the operators take. */
function drawTrees(rng: Rng, kind: "target" | "class", targets: number, width: number): Attributes {
  const modes = rng.pick([
    ["BRANCH_LEQ"],
    ["BRANCH_LT"],
    ["BRANCH_LEQ", "BRANCH_GT", "BRANCH_GTE", "BRANCH_LT"],
  ]);
  const nodes: { tree: number; id: number; feature: number; value: number; mode: string }[] = [];
  const children: { yes: number; no: number }[] = [];
  const weights: { tree: number; id: number; target: number; weight: number }[] = [];
  const trees = rng.integer(1, 4);
  const isSingle = kind === "class" && targets === 2 && rng.integer(0, 1) === 1;
  const single = rng.integer(0, 1);
  const positive = rng.integer(0, 1) === 1;
  for (let tree = 0; tree < trees; tree++) {
    let next = 1;
    const grow = (id: number, depth: number): void => {
      const isLeaf = depth === 0 || (depth < 3 && rng.integer(0, 3) === 0);
      const at = nodes.length;
      const feature = rng.integer(0, width - 1);
      const value = isLeaf ? 0 : Math.fround(rng.normal());
      nodes.push({ tree, id, feature, value, mode: isLeaf ? "LEAF" : rng.pick(modes) });
      children.push({ yes: 0, no: 0 });
      if (isLeaf) {
        const all = isSingle ? [single] : Array.from({ length: targets }, (_, i) => i);
        for (const target of all) {
          const weight = Math.fround(positive ? rng.uniform() / trees : rng.normal());
          weights.push({ tree, id, target, weight });
        }
        return;
      }
      const [yes, no] = [next, next + 1];
      next += 2;
      children[at] = { yes, no };
      grow(yes, depth - 1);
      grow(no, depth - 1);
    };
    grow(0, rng.integer(1, 4));
  }
  return {
    nodes_treeids: nodes.map((n) => big(n.tree)),
    nodes_nodeids: nodes.map((n) => big(n.id)),
    nodes_featureids: nodes.map((n) => big(n.feature)),
    nodes_values: nodes.map((n) => n.value),
    nodes_modes: nodes.map((n) => n.mode),
    nodes_truenodeids: children.map((c) => big(c.yes)),
    nodes_falsenodeids: children.map((c) => big(c.no)),
    nodes_missing_value_tracks_true: nodes.map(() => big(rng.integer(0, 1))),
    [`${kind}_treeids`]: weights.map((w) => big(w.tree)),
    [`${kind}_nodeids`]: weights.map((w) => big(w.id)),
    [`${kind}_ids`]: weights.map((w) => big(w.target)),
    [`${kind}_weights`]: weights.map((w) => w.weight),
  };
}

/** Some values are missing. */
function features(rng: Rng, width: number) {
  const rows = rng.integer(1, 7);
  const values = normals(rng, rows * width).map((v) => (rng.integer(0, 9) === 0 ? Number.NaN : v));
  return { shape: [rows, width], values };
}

const treeRegressor: CaseMaker = (rng) => {
  const [targets, width] = [rng.integer(1, 3), rng.integer(1, 5)];
  return {
    node: {
      op: "TreeEnsembleRegressor",
      attributes: {
        ...drawTrees(rng, "target", targets, width),
        n_targets: big(targets),
        aggregate_function: rng.pick(["SUM", "AVERAGE", "MIN", "MAX"]),
        ...(rng.integer(0, 1) === 1 && { base_values: normals(rng, targets) }),
      },
    },
    operands: [features(rng, width)],
  };
};

const treeClassifier: CaseMaker = (rng) => {
  const [classes, width] = [rng.integer(2, 4), rng.integer(1, 5)];
  const trees = drawTrees(rng, "class", classes, width);
  const ids = trees.class_ids as readonly bigint[];
  // Of two classes that both have weights, the peer does not take the label of the greater score.
  const isOdd = classes === 2 && new Set(ids).size === 2;
  return {
    ...(isOdd && { compared: ["scores"] }),
    node: {
      op: "TreeEnsembleClassifier",
      attributes: {
        ...trees,
        classlabels_int64s: Array.from({ length: classes }, (_, i) => big(7 + 2 * i)),
        post_transform: rng.pick(classes === 2 ? ["NONE", "LOGISTIC"] : transforms),
      },
    },
    operands: [features(rng, width)],
    outputs: classifierOutputs,
  };
};

export const machineLearningMakers: Readonly<Record<string, CaseMaker>> = {
  Scaler: scaler,
  Normalizer: normalizer,
  LinearRegressor: linearRegressor,
  LinearClassifier: linearClassifier,
  SVMClassifier: supportVectorClasses,
  SVMRegressor: supportVectors,
  Imputer: imputer,
  OneHotEncoder: oneHot,
  FeatureVectorizer: vectorizer,
  TreeEnsembleRegressor: treeRegressor,
  TreeEnsembleClassifier: treeClassifier,
};
