/** Elementwise ops: mostly one operator of ONNX each, with the same broadcasting. */
import type { NoAttrs } from "../../../../semantics/core-ops.ts";
import { type DType, dtypes, isFloatDType } from "../../../../semantics/dtype.ts";
import type { ScalarOp } from "../../../../semantics/scalar-expr.ts";
import { fromRef, refTensor } from "../../../../semantics/tensor.ts";
import { onnxTypeOf } from "../../data-types.ts";
import { type ExportCall, type ExportRow, type ExportRows, flag } from "../export-row.ts";
import type { GraphSink } from "../graph-sink.ts";

type ScalarCall = ExportCall<ScalarOp> & { readonly attrs: NoAttrs };
type ScalarRow = (call: ScalarCall, sink: GraphSink) => readonly string[];

const named =
  (op: string): ScalarRow =>
  ({ inputs }, sink) => [sink.op(op, inputs)];

const valueType = ({ types }: ScalarCall): DType => types.at(-1)!.dtype;

/** Towards zero: ceil below zero, floor above; NaN stays. */
const trunc: ScalarRow = (call, sink) => {
  const [x] = call.inputs as [string];
  const negative = sink.op("Less", [x, sink.numbers(valueType(call), [0])]);
  return [sink.op("Where", [negative, sink.op("Ceil", [x]), sink.op("Floor", [x])])];
};

const mod: ScalarRow = ({ inputs }, sink) => [sink.op("Mod", inputs, { fmod: 1n })];

/** For floats a - b * floor(a / b) would round; the remainder's sign is corrected instead. */
const floorMod: ScalarRow = (call, sink) => {
  const [a, b] = call.inputs as [string, string];
  const dtype = valueType(call);
  if (!isFloatDType(dtype)) return [sink.op("Mod", [a, b], { fmod: 0n })];
  const zero = sink.numbers(dtype, [0]);
  const rest = sink.op("Mod", [a, b], { fmod: 1n });
  const negative = (x: string) => sink.op("Less", [x, zero]);
  const differs = sink.op("Xor", [negative(rest), negative(b)]);
  const isZero = sink.op("Equal", [rest, zero]);
  const moves = sink.op("And", [differs, sink.op("Not", [isZero])]);
  return [sink.op("Where", [moves, sink.op("Add", [rest, b]), rest])];
};

/** By the quadrant of (x, y); zeros count as positive. */
const atan2: ScalarRow = (call, sink) => {
  const [y, x] = call.inputs as [string, string];
  const number = (value: number) => sink.numbers(valueType(call), [value]);
  const zero = number(0);
  const below = sink.op("Less", [y, zero]);
  const left = sink.op("Less", [x, zero]);
  const slope = sink.op("Atan", [sink.op("Div", [y, x])]);
  const turn = sink.op("Where", [below, number(-Math.PI), number(Math.PI)]);
  const turned = sink.op("Where", [left, sink.op("Add", [slope, turn]), slope]);
  const quarter = sink.op("Where", [below, number(-Math.PI / 2), number(Math.PI / 2)]);
  const level = sink.op("Equal", [y, zero]);
  const onAxis = sink.op("Where", [level, zero, quarter]);
  return [sink.op("Where", [sink.op("Equal", [x, zero]), onAxis, turned])];
};

const shift =
  (direction: string): ScalarRow =>
  (call, sink) => {
    if (dtypes[valueType(call)].kind !== "uint") {
      sink.refuse(`a shift of ${valueType(call)}`, "shift unsigned integers");
    }
    return [sink.op("BitShift", call.inputs, { direction })];
  };

/** Runtimes choose among numbers only: truth values by their logic. */
const select: ScalarRow = (call, sink) => {
  const { inputs } = call;
  if (valueType(call) !== "bool") return [sink.op("Where", inputs)];
  const [condition, yes, no] = inputs as [string, string, string];
  const chosen = sink.op("And", [condition, yes]);
  const other = sink.op("And", [sink.op("Not", [condition]), no]);
  return [sink.op("Or", [chosen, other])];
};

/** Only graphs that are prepared for a machine have it. */
const orderKey: ScalarRow = (_, sink) =>
  sink.refuse("the place of a number in the order of all", "export the graph as it was before");

const scalarRows: { readonly [K in ScalarOp]: ScalarRow } = {
  neg: named("Neg"),
  abs: named("Abs"),
  sign: named("Sign"),
  floor: named("Floor"),
  ceil: named("Ceil"),
  round: named("Round"),
  trunc,
  exp: named("Exp"),
  log: named("Log"),
  sqrt: named("Sqrt"),
  reciprocal: named("Reciprocal"),
  sin: named("Sin"),
  cos: named("Cos"),
  tan: named("Tan"),
  asin: named("Asin"),
  acos: named("Acos"),
  atan: named("Atan"),
  sinh: named("Sinh"),
  cosh: named("Cosh"),
  tanh: named("Tanh"),
  asinh: named("Asinh"),
  acosh: named("Acosh"),
  atanh: named("Atanh"),
  erf: named("Erf"),
  sigmoid: named("Sigmoid"),
  relu: named("Relu"),
  not: named("Not"),
  bitNot: named("BitwiseNot"),
  isNan: named("IsNaN"),
  orderKey,
  add: named("Add"),
  sub: named("Sub"),
  mul: named("Mul"),
  div: named("Div"),
  mod,
  floorMod,
  pow: named("Pow"),
  min: named("Min"),
  max: named("Max"),
  atan2,
  equal: named("Equal"),
  less: named("Less"),
  lessEqual: named("LessOrEqual"),
  and: named("And"),
  or: named("Or"),
  xor: named("Xor"),
  bitAnd: named("BitwiseAnd"),
  bitOr: named("BitwiseOr"),
  bitXor: named("BitwiseXor"),
  shiftLeft: shift("LEFT"),
  shiftRight: shift("RIGHT"),
  select,
};

export function castTo(sink: GraphSink, x: string, to: DType, saturate = true): string {
  const narrow = isFloatDType(to) && dtypes[to].bits === 8;
  return sink.op("Cast", [x], {
    to: BigInt(onnxTypeOf[to]),
    ...(narrow && { saturate: flag(saturate) }),
  });
}

function isInteger(dtype: DType): boolean {
  return dtypes[dtype].kind === "int" || dtypes[dtype].kind === "uint";
}

/**
 * Values beyond an integer type become its ends, which conversions of ONNX leave open: narrow ones are
 * clipped as what they were (runtimes have no choice among narrow integers), wide ones are replaced after.
 */
const cast: ExportRow<"cast"> = ({ attrs: { to, saturate }, inputs, types }, sink) => {
  const [x] = inputs as [string];
  const from = types[0]!.dtype;
  const [source, target] = [dtypes[from], dtypes[to]];
  const holds = source.min >= target.min && source.max <= target.max;
  if (!saturate || !isInteger(to) || holds) return [castTo(sink, x, to, saturate)];
  const limit = (value: number) => sink.numbers(from, [value]);
  if (target.bits <= 16 && source.bits >= 32) {
    return [castTo(sink, sink.op("Clip", [x, limit(target.min), limit(target.max)]), to)];
  }
  const converted = castTo(sink, x, to);
  const below =
    source.min < target.min
      ? sink.op("Where", [
          sink.op("Less", [x, limit(target.min)]),
          endOf(sink, to, "low"),
          converted,
        ])
      : converted;
  if (source.max <= target.max) return [below];
  // One past the end, which every type that reaches it has.
  const past = sink.op("LessOrEqual", [limit(2 ** Math.round(Math.log2(target.max))), x]);
  return [sink.op("Where", [past, endOf(sink, to, "high"), below])];
};

/** The least or the largest value of an integer type. */
function endOf(sink: GraphSink, dtype: DType, end: "low" | "high"): string {
  const { bits, kind } = dtypes[dtype];
  const count = 2n ** BigInt(kind === "int" ? bits - 1 : bits);
  const value = end === "high" ? count - 1n : kind === "int" ? -count : 0n;
  const isWide = dtype === "i64" || dtype === "u64";
  return sink.tensor(fromRef(refTensor(dtype, [], isWide ? [value] : [Number(value)])));
}

export const elementwiseRows = {
  ...(scalarRows as unknown as ExportRows<ScalarOp>),
  cast,
  isInf: ({ attrs, inputs }, sink) => [
    sink.op("IsInf", inputs, {
      detect_negative: flag(attrs.detectNegative),
      detect_positive: flag(attrs.detectPositive),
    }),
  ],
} satisfies ExportRows<ScalarOp | "cast" | "isInf">;
