/** Operators that make tensors from shapes and constants. */

import {
  ceilDiv,
  constant,
  constantValue,
  type IndexExpr,
  max,
  mul,
  sub,
} from "../../../../semantics/index-expr.ts";
import { simplify } from "../../../../semantics/index-range.ts";
import { refTensor } from "../../../../semantics/tensor.ts";
import { readSparseTensor } from "../../sparse-tensor.ts";
import { readStringTensor, readTensorProto } from "../../tensor-proto.ts";
import type { NodeView } from "../node-view.ts";
import { type Bound, constantFromRef, constantOperand, type Operand } from "../operand.ts";
import type { OperatorTable } from "../operator-row.ts";

import { broadcastTo } from "./movement.ts";

const ranges = (node: NodeView) => node.emitter.assembly.symbols.ranges;

/** Python slicing of the shape; the extents are known symbolically. */
function shape(node: NodeView): Operand {
  const extents = node.input(0).type.shape;
  const bound = (name: string, otherwise: number) => {
    const value = node.attributes.int(name) ?? otherwise;
    return Math.max(0, Math.min(extents.length, value < 0 ? value + extents.length : value));
  };
  const [start, end] = [bound("start", 0), bound("end", extents.length)];
  return node.indices(extents.slice(start, Math.max(start, end)));
}

/** One of the value attributes; tensors keep their name for the weight. */
function constantNode(node: NodeView): Bound {
  const { attributes } = node;
  const name = node.outputs[0] ?? "";
  const value = attributes.tensor("value");
  if (value) {
    const strings = readStringTensor(value, node.origin.at);
    if (strings) return strings;
    const tensor = readTensorProto(value, node.origin.at);
    if (tensor.kind === "inline") return constantOperand(tensor.tensor, name);
    node.refuse("a Constant with external data", "inline contents");
  }
  const sparse = attributes.sparse("sparse_value");
  if (sparse) return constantOperand(readSparseTensor(sparse, node.origin.at), name);
  const f32 = (shape: readonly number[], data: readonly number[]) =>
    constantFromRef(refTensor("f32", shape, data.map(Math.fround)), name);
  const i64 = (shape: readonly number[], data: readonly number[]) =>
    constantFromRef(refTensor("i64", shape, data), name);
  if (attributes.has("value_float")) return f32([], [attributes.float("value_float")!]);
  if (attributes.has("value_int")) return i64([], [attributes.int("value_int")!]);
  const [floats, ints] = [attributes.floats("value_floats"), attributes.ints("value_ints")];
  if (floats) return f32([floats.length], floats);
  if (ints) return i64([ints.length], ints);
  const text = attributes.string("value_string");
  if (text !== undefined) return { kind: "strings", shape: [], elements: [text] };
  const texts = attributes.strings("value_strings");
  if (texts) return { kind: "strings", shape: [texts.length], elements: texts };
  return node.refuse(
    "a Constant without a value",
    "value, sparse_value, value_float(s), value_int(s), value_string(s)",
  );
}

function constantOfShape(node: NodeView): Operand {
  const extents = node.indexList(0, "shape");
  const value = node.attributes.tensor("value");
  let fill = node.splat("f32", 0);
  if (value) {
    const tensor = readTensorProto(value, node.origin.at);
    if (tensor.kind === "external") node.refuse("external data as the value", "one inline element");
    fill = constantOperand(tensor.tensor);
  }
  return broadcastTo(node, node.reshape(fill, []), extents);
}

/** start + i * delta for integers known at import (any number of them that shapes decide). */
function range(node: NodeView): Operand {
  const [start, limit, delta] = [0, 1, 2].map(
    (i) => node.symbolic(i, ["start", "limit", "delta"][i]!)[0],
  );
  if (!start || !limit || !delta) node.refuse("an empty operand", "scalars");
  const { dtype } = node.input(0).type;
  const fixed = [start, limit, delta].map((n) => {
    const [a, b] = [constantValue(n.numerator), constantValue(n.denominator)];
    return a === undefined || b === undefined ? undefined : a / b;
  });
  const step = fixed[2];
  if (step === undefined || step === 0)
    node.refuse("a delta that is 0 or not constant", "constants");
  const count = rangeCount(node, fixed, [start.numerator, limit.numerator]);
  const counted = node.emit("iota", [], { shape: [count], axis: 0, dtype });
  const scaled = step === 1 ? counted : node.emit("mul", [counted, node.splat(dtype, step)], {});
  if (fixed[0] === 0) return scaled;
  return node.emit("add", [scaled, node.reshape(node.input(0), [])], {});
}

function rangeCount(
  node: NodeView,
  [start, limit, delta]: readonly (number | undefined)[],
  [first, last]: readonly IndexExpr[],
): IndexExpr {
  if (start !== undefined && limit !== undefined) {
    return constant(Math.max(0, Math.ceil((limit - start) / delta!)));
  }
  if (!Number.isInteger(delta)) node.refuse(`a symbolic range with step ${delta}`, "integer steps");
  const span = delta! > 0 ? sub(last!, first!) : sub(first!, last!);
  return simplify(max(0, ceilDiv(span, Math.abs(delta!))), ranges(node));
}

function eyeLike(node: NodeView): Operand {
  const x = node.input(0);
  const k = node.attributes.int("k") ?? 0;
  const given = node.attributes.int("dtype");
  const dtype = given === undefined ? x.type.dtype : node.dtype(given);
  const { shape: extents } = x.type;
  if (extents.length !== 2) node.refuse(`an operand of rank ${extents.length}`, "rank 2");
  const count = (axis: number) => node.emit("iota", [], { shape: extents, axis, dtype: "i64" });
  const shifted = node.emit("add", [count(0), node.splat("i64", k)], {});
  return node.cast(node.emit("equal", [shifted, count(1)], {}), dtype);
}

function oneHot(node: NodeView): Operand {
  const indices = node.input(0);
  const depth = node.indexList(1, "depth")[0];
  if (!depth) node.refuse("an empty depth", "one number");
  const axis = node.axis(node.attributes.int("axis") ?? -1, indices.type.shape.length + 1);
  const index = node.cast(indices, "i64");
  return node.emit("oneHot", [index, node.input(2)], { axis, depth });
}

export const fillingRows = {
  Shape: { since: [1, 13, 15, 19, 21, 23, 24, 25], convert: shape },
  Size: {
    since: [1, 13, 19, 21, 23, 24, 25],
    convert: (node) => node.indices([mul(...node.input(0).type.shape)], []),
  },
  Constant: { since: [1, 9, 11, 12, 13, 19, 21, 23, 24, 25], convert: constantNode },
  ConstantOfShape: { since: [9, 20, 21, 23, 24, 25], convert: constantOfShape },
  Range: { since: [11], convert: range },
  EyeLike: { since: [9, 22], convert: eyeLike },
  OneHot: { since: [9, 11], convert: oneHot },
} satisfies OperatorTable;
