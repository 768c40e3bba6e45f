/** Operators of ai.onnx.ml that are arithmetic on tensors or a dictionary. */
import { constant, mul } from "../../../../semantics/index-expr.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import type { TensorProto } from "../../generated/onnx_pb.ts";
import { readStringTensor, readTensorProto } from "../../tensor-proto.ts";
import { type NodeView, one } from "../node-view.ts";
import { type Bound, constantFromRef, constantOperand, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";
import { encodeAny, StringCodes } from "../string-codes.ts";
import { classicalRows } from "./classical-models.ts";
import { treeEnsembleRows } from "./tree-ensembles.ts";

/** A list from the attributes NAME_strings, NAME_int64s, NAME_floats or NAME_tensor. */
function readList(node: NodeView, name: "keys" | "values"): Bound | undefined {
  const { attributes } = node;
  const texts = attributes.strings(`${name}_strings`);
  if (texts) return { kind: "strings", shape: [texts.length], elements: texts };
  const ints = attributes.ints(`${name}_int64s`);
  if (ints) return constantFromRef(refTensor("i64", [ints.length], ints));
  const floats = attributes.floats(`${name}_floats`);
  if (floats) return constantFromRef(refTensor("f32", [floats.length], floats));
  const tensor = attributes.tensor(`${name}_tensor`);
  return tensor && readConstant(node, tensor);
}

function readConstant(node: NodeView, proto: TensorProto): Bound {
  const strings = readStringTensor(proto, node.origin.at);
  if (strings) return strings;
  const tensor = readTensorProto(proto, node.origin.at);
  if (tensor.kind === "external") return node.refuse("external data in an attribute", "a list");
  return constantOperand(tensor.tensor);
}

/** What a key that is not listed becomes; the default depends on the type of the values. */
function readDefault(node: NodeView, values: Bound): Bound {
  const { attributes } = node;
  const [text, int] = [attributes.string("default_string"), attributes.int("default_int64")];
  const float = attributes.float("default_float");
  const tensor = attributes.tensor("default_tensor");
  if (tensor) return readConstant(node, tensor);
  if (values.kind === "strings") {
    return { kind: "strings", shape: [1], elements: [text ?? "_Unused"] };
  }
  const dtype = values.kind === "constant" ? values.type.dtype : "i64";
  return node.splat(dtype, dtype === "i64" ? (int ?? -1) : (float ?? -0), [1]);
}

/** Each element compared with every key; the value of the one that is equal, or the default. */
function labelEncoder(node: NodeView): Bound {
  const [keys, values] = [readList(node, "keys"), readList(node, "values")];
  if (!keys || !values) node.refuse("a LabelEncoder without keys or values", "lists of both");
  const codes = new StringCodes();
  const [known, x] = [keys, node.bound(0)].map((b) => encodeAny(b, codes, node)) as [
    Operand,
    Operand,
  ];
  const [listed, otherwise] = [values, readDefault(node, values)].map((b) =>
    encodeAny(b, codes, node),
  ) as [Operand, Operand];
  const { shape } = x.type;
  const rank = shape.length;
  const equal = node.emit("equal", [node.reshape(x, [...shape, one]), known], {});
  const number = node.cast(equal, "i32");
  const any = node.emit("reduce", [number], { kind: "max", axes: [rank], keepDims: false });
  const found = node.cast(any, "bool");
  const first = node.emit("argReduce", [number], {
    kind: "max",
    axis: rank,
    keepDims: false,
    selectLast: false,
  });
  const value = node.emit("gather", [listed, first], { axis: 0 });
  const result = node.emit("select", [found, value, node.reshape(otherwise, [])], {});
  return values.kind === "strings" ? codes.decode(result, node.origin.at) : result;
}

function arrayFeatures(node: NodeView): Operand {
  const x = node.input(0);
  const rank = x.type.shape.length;
  const index = node.input(1);
  // However the indices lie, they are as many picked elements behind each other (onnxruntime).
  const flat = node.reshape(index, [index.type.shape.reduce((n, extent) => mul(n, extent), one)]);
  const picked = node.emit("gather", [x, flat], { axis: rank - 1 });
  return rank === 1 ? node.reshape(picked, [constant(1), ...picked.type.shape]) : picked;
}

function binarizer(node: NodeView): Operand {
  const x = node.input(0);
  const { dtype } = x.type;
  const threshold = node.splat(dtype, node.attributes.float("threshold") ?? 0);
  return node.cast(node.emit("less", [threshold, x], {}), dtype);
}

export const machineLearningRows = {
  LabelEncoder: { since: [1, 2, 4], convert: labelEncoder },
  ArrayFeatureExtractor: { since: [1], convert: arrayFeatures },
  Binarizer: { since: [1], convert: binarizer },
  ...classicalRows,
  ...treeEnsembleRows,
} satisfies OperatorTable;
