/** Scaling, encoding and linear and kernel models of ai.onnx.ml, as arithmetic on rows of features. */
import type { IndexExpr } from "../../../../semantics/index-expr.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import { reject } from "../../../../support/diagnostic.ts";
import { type NodeView, one } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { encodeAny, StringCodes } from "../string-codes.ts";
import { classLabels, postTransformed } from "./class-scores.ts";
import { supportVectorClassifier, supportVectorRegressor } from "./support-vectors.ts";

/** Operand 0 in f32. */
const real = (node: NodeView): Operand => node.cast(node.input(0), "f32");

const list = (values: readonly number[], shape = [values.length]): Operand =>
  constantFromRef(refTensor("f32", shape, values));

/** (x - offset) * scale, one of each or one a feature. */
function scaler(node: NodeView): Operand {
  const { attributes } = node;
  const [offset, scale] = [attributes.floats("offset"), attributes.floats("scale")];
  const moved = offset ? node.emit("sub", [real(node), list(offset)], {}) : real(node);
  return scale ? node.emit("mul", [moved, list(scale)], {}) : moved;
}

/** Rows divided by their largest element, or by the sum or the root of the squares of them. */
function normalizer(node: NodeView): Operand {
  const norm = node.attributes.choice("norm", "MAX", "L1", "L2");
  const x = real(node);
  const rank = x.type.shape.length;
  if (rank !== 1 && rank !== 2) node.refuse(`data of rank ${rank}`, "rank 1 or 2");
  const along = { axes: [rank - 1], keepDims: true };
  const size =
    norm === "MAX"
      ? node.emit("reduce", [x], { kind: "max", ...along })
      : node.emit(norm === "L1" ? "reduceL1" : "reduceL2", [x], along);
  const none = node.emit("equal", [size, node.splat("f32", 0)], {});
  return node.emit("div", [x, node.emit("select", [none, node.splat("f32", 1), size], {})], {});
}

/** x [n, f] times coefficients in rows of features, plus intercepts: [n, rows]. */
function linearScores(node: NodeView, rows: number): Operand {
  const { attributes } = node;
  const x = real(node);
  node.checkRank(x, 2, "data");
  const coefficients = attributes.floats("coefficients") ?? [];
  const width = coefficients.length / rows;
  const features = node.fixedExtent(x.type.shape[1]!, "the number of features");
  if (width !== features) node.refuse(`${coefficients.length} coefficients`, `${rows * features}`);
  const labels = { lhs: ["n", "f"], rhs: ["c", "f"], output: ["n", "c"] };
  const attrs = { ...labels, accumulator: "f32" } as const;
  const y = node.emit("contract", [x, list(coefficients, [rows, width])], attrs);
  const intercepts = attributes.floats("intercepts") ?? [];
  return intercepts.length > 0 ? node.emit("add", [y, list(intercepts)], {}) : y;
}

function linearRegressor(node: NodeView): Operand {
  return postTransformed(node, linearScores(node, node.attributes.int("targets") ?? 1));
}

function linearClassifier(node: NodeView): readonly Operand[] {
  const { attributes } = node;
  attributes.ignore("multi_class");
  const labels = classLabels(node, "classlabels");
  const rows = attributes.floats("intercepts")?.length || labels.count;
  const scores = linearScores(node, rows);
  if (rows !== 1 || labels.count !== 2) return [labels.best(scores), postTransformed(node, scores)];
  const [n] = scores.type.shape as [IndexExpr];
  const second = node.reshape(node.emit("less", [node.splat("f32", 0), scores], {}), [n]);
  return [labels.either(second), postTransformed(node, scores, "complement")];
}

/** Elements that are missing (NaN, or a given number) replaced, all by one value or one a feature. */
function imputer(node: NodeView): Operand {
  const { attributes } = node;
  const x = node.input(0);
  const whole = x.type.dtype === "i64";
  const values = whole
    ? attributes.ints("imputed_value_int64s")
    : attributes.floats("imputed_value_floats");
  if (!values || values.length === 0) return node.refuse("no values to impute", "a list of them");
  const dtype = whole ? "i64" : "f32";
  const data = node.cast(x, dtype);
  const fill = constantFromRef(refTensor(dtype, [values.length], values));
  const missing = whole
    ? (attributes.int("replaced_value_int64") ?? 0)
    : (attributes.float("replaced_value_float") ?? 0);
  const isMissing = Number.isNaN(missing)
    ? node.emit("isNan", [data], {})
    : node.emit("equal", [data, node.splat(dtype, missing)], {});
  return node.emit("select", [isMissing, fill, data], {});
}

/** 1 at the place of the category that an element is, on a new last axis. */
function oneHotEncoder(node: NodeView): Operand {
  const { attributes } = node;
  const texts = attributes.strings("cats_strings") ?? [];
  const ints = attributes.ints("cats_int64s") ?? [];
  if (!attributes.flag("zeros", true)) attributes.refuse("zeros", 0, "1: none for what is unknown");
  const codes = new StringCodes();
  const known =
    texts.length > 0
      ? encodeAny({ kind: "strings", shape: [texts.length], elements: texts }, codes, node)
      : constantFromRef(refTensor("i64", [ints.length], ints));
  const given = encodeAny(node.bound(0), codes, node);
  const x = texts.length > 0 ? given : node.cast(given, "i64");
  const equal = node.emit("equal", [node.reshape(x, [...x.type.shape, one]), known], {});
  return node.cast(equal, "f32");
}

/** All operands side by side in f32. */
function featureVectorizer(node: NodeView): Operand {
  const widths = node.attributes.ints("inputdimensions") ?? [];
  const parts = node.allInputs().map((x, i) => {
    const { shape } = x.type;
    const rows = shape.length === 1 ? node.reshape(x, [one, shape[0]!]) : x;
    const width = rows.type.shape[1] ?? one;
    const wanted = widths[i] ?? node.fixedExtent(width, "the number of features");
    if (node.fixedExtent(width, "the number of features") !== wanted)
      node.refuse(`${width.key} features`, `${wanted}`);
    return node.cast(rows, "f32");
  });
  return parts.length === 1 ? parts[0]! : node.emit("concat", parts, { axis: 1 });
}

/** Operators on dictionaries and run-time strings, which no program has. */
function noTensors(found: string, cure: string) {
  return (node: NodeView): never => reject("ONX009", found, { at: node.origin.at, help: cure });
}

const withoutMaps = "dictionaries are no tensors";
const encodedBefore = "strings of a run are no tensors";

export const classicalRows = {
  Scaler: { since: [1], convert: scaler },
  Normalizer: { since: [1], convert: normalizer },
  LinearRegressor: { since: [1], convert: linearRegressor },
  LinearClassifier: { since: [1], convert: linearClassifier },
  SVMClassifier: { since: [1], convert: supportVectorClassifier },
  SVMRegressor: { since: [1], convert: supportVectorRegressor },
  Imputer: { since: [1], convert: imputer },
  OneHotEncoder: { since: [1], convert: oneHotEncoder },
  FeatureVectorizer: { since: [1], convert: featureVectorizer },
  ZipMap: {
    since: [1],
    convert: noTensors(withoutMaps, "export without it (skl2onnx: zipmap False), or cut it off"),
  },
  DictVectorizer: {
    since: [1],
    convert: noTensors(withoutMaps, "make the rows of features before the model runs"),
  },
  CastMap: {
    since: [1],
    convert: noTensors(withoutMaps, "make the rows of features before the model runs"),
  },
  CategoryMapper: {
    since: [1],
    convert: noTensors(encodedBefore, "give the model the numbers of the categories"),
  },
} satisfies OperatorTable;
