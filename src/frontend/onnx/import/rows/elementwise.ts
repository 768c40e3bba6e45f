/** ONNX operators that work element by element, with broadcasting. */
import type { OpKind } from "../../../../graph/graph.ts";
import type { NoAttrs } from "../../../../semantics/core-ops.ts";
import {
  type DType,
  dtypes,
  holdsAll,
  isFloatDType,
  isHalfDType,
} from "../../../../semantics/dtype.ts";
import type { ScalarOp } from "../../../../semantics/scalar-expr.ts";
import type { NodeView } from "../node-view.ts";
import { constantFromRef, type Operand } from "../operand.ts";
import type { OperatorRow, OperatorTable } from "../operator-row.ts";
import { parseNumbers } from "./strings.ts";

const none: NoAttrs = {};

/** Graph ops without attributes. */
type PlainOp = ScalarOp | "softplus" | "softsign" | "mish" | "hardSwish" | "silu";

function unary(op: PlainOp & OpKind, ...since: readonly number[]): OperatorRow {
  return {
    since,
    convert: (node) => {
      node.attributes.ignore("consumed_inputs");
      return node.emit(op, [node.input(0)], none);
    },
  };
}

function binary(op: ScalarOp, ...since: readonly number[]): OperatorRow {
  return { since, convert: (node) => node.emit(op, [node.input(0), node.input(1)], none) };
}

/** a > b as b < a. */
function swapped(op: ScalarOp, ...since: readonly number[]): OperatorRow {
  return { since, convert: (node) => node.emit(op, [node.input(1), node.input(0)], none) };
}

function variadic(op: ScalarOp, ...since: readonly number[]): OperatorRow {
  return {
    since,
    convert: (node) => {
      node.input(0);
      return node.allInputs().reduce((a, b) => node.emit(op, [a, b], none));
    },
  };
}

function mean(node: NodeView): Operand {
  node.input(0);
  const operands = node.allInputs();
  const sum = operands.reduce((a, b) => node.emit("add", [a, b], none));
  return node.emit("div", [sum, node.splat(sum.type.dtype, operands.length)], none);
}

/** The result has the type of the base; the power is taken in a float type if either is one. */
function power(node: NodeView): Operand {
  const [base, exponent] = [node.input(0), node.input(1)];
  const result = base.type.dtype;
  if (result === exponent.type.dtype) return node.emit("pow", [base, exponent], none);
  const wide =
    isFloatDType(result) || !isFloatDType(exponent.type.dtype) ? result : exponent.type.dtype;
  const raised = node.emit("pow", [node.cast(base, wide), node.cast(exponent, wide)], none);
  return node.cast(raised, result);
}

function modulus(node: NodeView): Operand {
  const [a, b] = [node.input(0), node.input(1)];
  const fmod = node.attributes.flag("fmod", false);
  if (!fmod && isFloatDType(a.type.dtype) && node.version < 26) {
    node.refuse("fmod = 0 with float operands", "fmod = 1 for float operands");
  }
  return node.emit(fmod ? "mod" : "floorMod", [a, b], none);
}

function bitShift(node: NodeView): Operand {
  const direction = node.attributes.string("direction");
  if (direction !== "LEFT" && direction !== "RIGHT") {
    node.attributes.refuse("direction", JSON.stringify(direction), "LEFT, RIGHT");
  }
  const op = direction === "LEFT" ? "shiftLeft" : "shiftRight";
  return node.emit(op, [node.input(0), node.input(1)], none);
}

function castTo(node: NodeView): Operand {
  const to = node.dtype(node.attributes.int("to") ?? 0);
  const given = node.bound(0);
  if (given.kind !== "strings") return convert(node, to);
  node.attributes.ignore("round_mode", "saturate");
  return node.cast(constantFromRef(parseNumbers(node, given)), to);
}

function castLike(node: NodeView): Operand {
  return convert(node, node.input(1).type.dtype);
}

/** `saturate` is about narrow float targets; conversions to integers wrap. */
function convert(node: NodeView, to: DType): Operand {
  node.attributes.ignore("round_mode");
  const saturate = node.attributes.flag("saturate", true) && isFloatDType(to);
  const x = node.input(0);
  const rounds = isHalfDType(to) && !holdsAll(to, x.type.dtype);
  return rounds ? node.emit("cast", [x], { to, saturate, rounds }) : node.cast(x, to, saturate);
}

function isInf(node: NodeView): Operand {
  const { attributes } = node;
  return node.emit("isInf", [node.input(0)], {
    detectNegative: attributes.flag("detect_negative", true),
    detectPositive: attributes.flag("detect_positive", true),
  });
}

/** Bounds are attributes up to version 6, then optional operands. */
function clip(node: NodeView): Operand {
  const x = node.input(0);
  const { dtype } = x.type;
  let [low, high] = [node.optional(1), node.optional(2)];
  if (node.version <= 6) {
    const [min, max] = [node.attributes.float("min"), node.attributes.float("max")];
    low = min === undefined || min <= dtypes[dtype].min ? undefined : node.splat(dtype, min);
    high = max === undefined || max >= dtypes[dtype].max ? undefined : node.splat(dtype, max);
  }
  if (!low && !high) return x;
  const bounds = [low, high].filter((b) => b !== undefined).map((b) => node.reshape(b, []));
  return node.emit("clip", [x, ...bounds], { low: low !== undefined, high: high !== undefined });
}

/** The slope broadcasts to x; an operand [c] for x of rank > 1 is legal only if it broadcasts. */
function prelu(node: NodeView): Operand {
  return node.emit("prelu", [node.input(0), node.input(1)], none);
}

function alphaOp(op: "leakyRelu" | "elu" | "celu" | "thresholdedRelu", alpha: number) {
  return (node: NodeView): Operand => {
    node.attributes.ignore("consumed_inputs");
    return node.emit(op, [node.input(0)], { alpha: node.attributes.float("alpha") ?? alpha });
  };
}

function selu(node: NodeView): Operand {
  const { attributes } = node;
  attributes.ignore("consumed_inputs");
  return node.emit("selu", [node.input(0)], {
    alpha: attributes.float("alpha") ?? 1.6732631921768188,
    gamma: attributes.float("gamma") ?? 1.0507010221481323,
  });
}

function hardSigmoid(node: NodeView): Operand {
  const { attributes } = node;
  attributes.ignore("consumed_inputs");
  return node.emit("hardSigmoid", [node.input(0)], {
    alpha: attributes.float("alpha") ?? 0.2,
    beta: attributes.float("beta") ?? 0.5,
  });
}

function gelu(node: NodeView): Operand {
  const approximate = node.attributes.choice("approximate", "none", "tanh");
  return node.emit("gelu", [node.input(0)], { approximate });
}

/** x * sigmoid(alpha x) */
function swish(node: NodeView): Operand {
  const x = node.input(0);
  const alpha = node.attributes.float("alpha") ?? 1;
  if (alpha === 1) return node.emit("silu", [x], none);
  const scaled = node.emit("mul", [x, node.splat(x.type.dtype, alpha)], none);
  return node.emit("mul", [x, node.emit("sigmoid", [scaled], none)], none);
}

/** x + bias below -lambd, x - bias above lambd, 0 between. */
function shrink(node: NodeView): Operand {
  const x = node.input(0);
  const { dtype } = x.type;
  const bias = node.splat(dtype, node.attributes.float("bias") ?? 0);
  const lambd = node.attributes.float("lambd") ?? 0.5;
  const below = node.emit("less", [x, node.splat(dtype, -lambd)], none);
  const above = node.emit("less", [node.splat(dtype, lambd), x], none);
  const lowered = node.emit("sub", [x, bias], none);
  const inner = node.emit("select", [above, lowered, node.splat(dtype, 0)], none);
  return node.emit("select", [below, node.emit("add", [x, bias], none), inner], none);
}

/** In inference the data pass unchanged; the mask is all true. */
function dropout(node: NodeView): readonly Operand[] {
  const x = node.input(0);
  const seed = node.attributes.int("seed") ?? 0;
  node.attributes.ignore("ratio", "is_test");
  const training = node.optional(2) && node.numbers(2, "training_mode")[0] !== 0;
  const ratio = node.optional(1) ? node.numbers(1, "ratio")[0]! : 0.5;
  if (training && ratio !== 0) return randomDropout(node, x, ratio, seed);
  if (!node.wants(1)) return [x];
  const dtype = node.version < 10 ? x.type.dtype : "bool";
  return [x, node.emit("broadcast", [node.splat(dtype, 1)], { shape: x.type.shape })];
}

/** Elements that stay are scaled, so that their expectation is what it was. */
function randomDropout(
  node: NodeView,
  x: Operand,
  ratio: number,
  seed: number,
): readonly Operand[] {
  const { dtype, shape } = x.type;
  const drawn = node.emit("randomUniform", [], { shape, dtype: "f32", a: 0, b: 1, seed });
  const kept = node.emit("lessEqual", [node.splat("f32", ratio), drawn], none);
  const scaled = node.emit("mul", [x, node.splat(dtype, 1 / (1 - ratio))], none);
  return [node.emit("select", [kept, scaled, node.splat(dtype, 0)], none), kept];
}

/** Reinterprets bits; between integers of one width that is a cast that wraps. */
function bitCast(node: NodeView): Operand {
  const x = node.input(0);
  const to = node.dtype(node.attributes.int("to") ?? 0);
  const [from, into] = [dtypes[x.type.dtype], dtypes[to]];
  const whole = (kind: string): boolean => kind !== "float" && kind !== "exponent";
  if (from.bits !== into.bits || !whole(from.kind) || !whole(into.kind)) {
    if (x.type.dtype !== to) node.refuse(`${x.type.dtype} bits as ${to}`, "integers of one width");
  }
  return node.cast(x, to);
}

/** In f32 for narrower types, so that only the result is rounded to them. */
function celu(node: NodeView): Operand {
  const x = node.input(0);
  const { dtype } = x.type;
  const alpha = node.attributes.float("alpha") ?? 1;
  const narrow = isFloatDType(dtype) && dtypes[dtype].bits < 32;
  const wide = narrow ? node.cast(x, "f32") : x;
  return node.cast(node.emit("celu", [wide], { alpha }), dtype);
}

export const elementwiseRows = {
  Abs: unary("abs", 1, 6, 13),
  Neg: unary("neg", 1, 6, 13),
  Sign: unary("sign", 9, 13),
  Floor: unary("floor", 1, 6, 13),
  Ceil: unary("ceil", 1, 6, 13),
  Round: unary("round", 11, 22),
  Exp: unary("exp", 1, 6, 13),
  Log: unary("log", 1, 6, 13),
  Sqrt: unary("sqrt", 1, 6, 13),
  Reciprocal: unary("reciprocal", 1, 6, 13),
  Sin: unary("sin", 7, 22),
  Cos: unary("cos", 7, 22),
  Tan: unary("tan", 7, 22),
  Asin: unary("asin", 7, 22),
  Acos: unary("acos", 7, 22),
  Atan: unary("atan", 7, 22),
  Sinh: unary("sinh", 9, 22),
  Cosh: unary("cosh", 9, 22),
  Tanh: unary("tanh", 1, 6, 13),
  Asinh: unary("asinh", 9, 22),
  Acosh: unary("acosh", 9, 22),
  Atanh: unary("atanh", 9, 22),
  Erf: unary("erf", 9, 13),
  Sigmoid: unary("sigmoid", 1, 6, 13),
  Relu: unary("relu", 1, 6, 13, 14),
  Not: unary("not", 1),
  BitwiseNot: unary("bitNot", 18),
  IsNaN: unary("isNan", 9, 13, 20),
  Softplus: unary("softplus", 1, 22),
  Softsign: unary("softsign", 1, 22),
  Mish: unary("mish", 18, 22),
  HardSwish: unary("hardSwish", 14, 22),
  Add: binary("add", 7, 13, 14),
  Sub: binary("sub", 7, 13, 14),
  Mul: binary("mul", 7, 13, 14),
  Div: binary("div", 7, 13, 14),
  And: binary("and", 7),
  Or: binary("or", 7),
  Xor: binary("xor", 7),
  BitwiseAnd: binary("bitAnd", 18),
  BitwiseOr: binary("bitOr", 18),
  BitwiseXor: binary("bitXor", 18),
  Equal: binary("equal", 7, 11, 13, 19),
  Less: binary("less", 7, 9, 13),
  LessOrEqual: binary("lessEqual", 12, 16),
  Greater: swapped("less", 7, 9, 13),
  GreaterOrEqual: swapped("lessEqual", 12, 16),
  Max: variadic("max", 6, 8, 12, 13),
  Min: variadic("min", 6, 8, 12, 13),
  Sum: variadic("add", 6, 8, 13),
  Mean: { since: [6, 8, 13], convert: mean },
  Pow: { since: [7, 12, 13, 15], convert: power },
  Mod: { since: [10, 13], convert: modulus },
  BitShift: { since: [11], convert: bitShift },
  Where: {
    since: [9, 16],
    convert: (node) => node.emit("select", [node.input(0), node.input(1), node.input(2)], none),
  },
  Cast: { since: [6, 9, 13, 19, 21, 23, 24, 25], convert: castTo },
  CastLike: { since: [15, 19, 21, 23, 24, 25], convert: castLike },
  IsInf: { since: [10, 20], convert: isInf },
  Clip: { since: [6, 11, 12, 13], convert: clip },
  PRelu: { since: [7, 9, 16], convert: prelu },
  LeakyRelu: { since: [1, 6, 16], convert: alphaOp("leakyRelu", 0.01) },
  Elu: { since: [1, 6, 22], convert: alphaOp("elu", 1) },
  Celu: { since: [12, 28], convert: celu },
  ThresholdedRelu: { since: [10, 22], convert: alphaOp("thresholdedRelu", 1) },
  Selu: { since: [1, 6, 22], convert: selu },
  HardSigmoid: { since: [1, 6, 22], convert: hardSigmoid },
  Gelu: { since: [20], convert: gelu },
  Swish: { since: [24], convert: swish },
  Shrink: { since: [9], convert: shrink },
  Identity: { since: [1, 13, 14, 16, 19, 21, 23, 24, 25], convert: (node) => node.bound(0) },
  BitCast: { since: [26], convert: bitCast },
  Dropout: { since: [7, 10, 12, 13, 22], convert: dropout },
} satisfies OperatorTable;
