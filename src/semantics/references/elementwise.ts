/**
 * References of the elementwise ops: the scalar meaning of each operator (scalar-meaning.ts) over
 * operands broadcast as in numpy, and the two elementwise ops with attributes, cast and isInf.
 */
import { invariant } from "../../support/invariant.ts";
import { dtypes, isBigDType } from "../dtype.ts";
import { resultType, type ScalarOp, scalarOps } from "../scalar-expr.ts";
import { bigMeaningOf, castScalar, numberMeaningOf } from "../scalar-meaning.ts";
import {
  broadcastShapes,
  broadcastStrides,
  type Shape,
  shapesEqual,
  viewOffsets,
} from "../shape.ts";
import { makeRefData, numbersOf, type RefTensor, zeroRef } from "../tensor.ts";
import { finish, type Reference, takeOffsets } from "./reference.ts";

/** The operand repeated to `shape`; itself when it has that shape. */
function broadcastTo(tensor: RefTensor, shape: Shape): RefTensor {
  if (shapesEqual(tensor.shape, shape)) return tensor;
  return takeOffsets(tensor, shape, viewOffsets(shape, broadcastStrides(tensor.shape, shape)));
}

function elementwise(op: ScalarOp): Reference<ScalarOp> {
  return (_, inputs) => {
    const shape = broadcastShapes(...inputs.map((input) => input.shape));
    invariant(shape, () => `${op} of ${inputs.map((t) => `[${t.shape}]`).join(" ")}`);
    const operands = inputs.map((input) => broadcastTo(input, shape));
    if (op === "select") return [select(operands)];
    return [isBigDType(operands[0]!.dtype) ? applyBig(op, operands) : applyNumbers(op, operands)];
  };
}

function applyNumbers(op: ScalarOp, operands: readonly RefTensor[]): RefTensor {
  const { dtype, shape } = operands[0]!;
  const meaning = numberMeaningOf(op, dtype);
  const a = numbersOf(operands[0]!);
  const b = operands[1] ? numbersOf(operands[1]) : a;
  const values = new Float64Array(a.length);
  for (let i = 0; i < values.length; i++) values[i] = meaning(a[i]!, b[i]!, 0);
  return finish(resultType(op, dtype), shape, values);
}

function applyBig(op: ScalarOp, operands: readonly RefTensor[]): RefTensor {
  const { dtype, shape } = operands[0]!;
  const meaning = bigMeaningOf(op, dtype);
  const a = operands[0]!.data as BigInt64Array;
  const b = (operands[1] ?? operands[0]!).data as BigInt64Array;
  const isPredicate = scalarOps[op].typing === "predicate";
  const result = zeroRef(isPredicate ? "bool" : dtype, shape);
  const { data } = result;
  for (let i = 0; i < data.length; i++) {
    const value = meaning(a[i]!, b[i]!, 0n);
    // Storing into a 64-bit array wraps.
    data[i] = data instanceof Float64Array ? Number(value) : value;
  }
  return result;
}

function select(operands: readonly RefTensor[]): RefTensor {
  const [condition, whenTrue, whenFalse] = operands as [RefTensor, RefTensor, RefTensor];
  const data = makeRefData(whenTrue.dtype, whenTrue.data.length);
  for (let i = 0; i < data.length; i++) {
    data[i] = (condition.data[i] ? whenTrue.data[i] : whenFalse.data[i])!;
  }
  return { dtype: whenTrue.dtype, shape: whenTrue.shape, data };
}

/** One reference for each scalar operator. */
export const elementwiseReferences = Object.fromEntries(
  (Object.keys(scalarOps) as ScalarOp[]).map((op) => [op, elementwise(op)]),
) as { readonly [K in ScalarOp]: Reference<K> };

export const cast: Reference<"cast"> = ({ to, saturate }, [x]) => {
  const { shape, data: from, dtype } = x!;
  const data = makeRefData(to, from.length);
  const widens = dtypes[to].kind === "float" && dtypes[dtype].kind !== "exponent";
  if (data instanceof Float64Array && from instanceof Float64Array && widens && to === "f64") {
    data.set(from);
  } else {
    for (let i = 0; i < from.length; i++) data[i] = castScalar(from[i]!, to, saturate);
  }
  return [{ dtype: to, shape, data }];
};

export const isInf: Reference<"isInf"> = ({ detectNegative, detectPositive }, [x]) => {
  const values = numbersOf(x!).map((v) =>
    (v === Infinity && detectPositive) || (v === -Infinity && detectNegative) ? 1 : 0,
  );
  return [{ dtype: "bool", shape: x!.shape, data: values }];
};
