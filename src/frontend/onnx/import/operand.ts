/**
 * What a name of an ONNX graph stands for during import: a value of the graph under construction, a
 * constant, or a small tensor of symbolic numbers (the result of shape arithmetic). Constants and
 * symbolic tensors enter the graph only when an op needs them as data (emitter.ts).
 */
import type { TensorType, ValueId } from "../../../graph/graph.ts";
import { type DType, storageBytes } from "../../../semantics/dtype.ts";
import { constant, toIndex } from "../../../semantics/index-expr.ts";
import { elementCount } from "../../../semantics/shape.ts";
import { fromRef, type RefTensor, type Tensor, toRef } from "../../../semantics/tensor.ts";
import type { NoValue, SequenceOf, StringTensor } from "../host-value.ts";
import type { Assembly, ConstantSource } from "./assembly.ts";
import { fromNumber, type SymbolicNumber, wholeNumber } from "./symbolic-number.ts";

export interface ValueOperand {
  readonly kind: "value";
  readonly type: TensorType;
  readonly home: Assembly;
  readonly id: ValueId;
}

export interface ConstantOperand {
  readonly kind: "constant";
  readonly type: TensorType;
  readonly shape: readonly number[];
  readonly name: string;
  readonly source: ConstantSource;
}

export interface SymbolicOperand {
  readonly kind: "symbolic";
  readonly type: TensorType;
  readonly shape: readonly number[];
  readonly elements: readonly SymbolicNumber[];
}

export type Operand = ValueOperand | ConstantOperand | SymbolicOperand;

/** What only exists during import: the compiled program sees the tensors in it. */
export type HostOperand = StringTensor | SequenceOf<Bound> | NoValue;

/** Anything that a name can stand for. */
export type Bound = Operand | HostOperand;

export function isOperand(bound: Bound): bound is Operand {
  return bound.kind === "value" || bound.kind === "constant" || bound.kind === "symbolic";
}

/** What a bound thing is, for messages. */
export function describeBound(bound: Bound): string {
  if (isOperand(bound)) return "a tensor";
  if (bound.kind === "strings") return "a tensor of strings";
  return bound.kind === "none" ? "an optional without a value" : "a sequence";
}

/** Tensors with more elements never take part in symbolic arithmetic. */
export const largestSymbolic = 512;

export function constantOperand(tensor: Tensor, name = ""): ConstantOperand {
  const type = { dtype: tensor.dtype, shape: tensor.shape.map(toIndex) };
  const source = { bytes: tensor.data.byteLength, read: () => tensor };
  return { kind: "constant", type, shape: tensor.shape, name, source };
}

export function constantFromRef(tensor: RefTensor, name = ""): ConstantOperand {
  return constantOperand(fromRef(tensor), name);
}

/** A constant whose contents are read on demand. */
export function lazyConstant(
  type: { readonly dtype: DType; readonly shape: readonly number[] },
  name: string,
  read: () => Tensor,
): ConstantOperand {
  const bytes = storageBytes(type.dtype, elementCount(type.shape));
  return {
    kind: "constant",
    type: { dtype: type.dtype, shape: type.shape.map(toIndex) },
    shape: type.shape,
    name,
    source: { bytes, read },
  };
}

/** A symbolic tensor, or a constant one when no symbol is left in it. */
export function symbolicOperand(
  dtype: DType,
  shape: readonly number[],
  elements: readonly SymbolicNumber[],
): ConstantOperand | SymbolicOperand {
  const type = { dtype, shape: shape.map(toIndex) };
  const fixed = elements.every(
    (e) => e.numerator.terms.length === 0 && e.denominator.terms.length === 0,
  );
  if (!fixed) return { kind: "symbolic", type, shape, elements };
  const values = elements.map((e) => e.numerator.constant / e.denominator.constant);
  const big = dtype === "i64" || dtype === "u64";
  const data = big
    ? (dtype === "i64" ? BigInt64Array : BigUint64Array).from(values.map((v) => BigInt(v)))
    : Float64Array.from(values);
  return constantFromRef({ dtype, shape, data });
}

/** The elements as symbolic numbers, if the tensor is small and known. */
export function symbolicElements(operand: Operand): readonly SymbolicNumber[] | undefined {
  if (operand.kind === "symbolic") return operand.elements;
  if (operand.kind === "value" || elementCount(operand.shape) > largestSymbolic) return undefined;
  const ref = toRef(operand.source.read());
  const elements: SymbolicNumber[] = [];
  for (const value of ref.data) {
    const element =
      typeof value === "bigint" ? wholeNumber(constant(clamp(Number(value)))) : fromNumber(value);
    if (!element) return undefined;
    elements.push(element);
  }
  return elements;
}

/**
 * INT64_MAX ("to the end") lies beyond exact numbers. Any number this large means the same, and is too
 * large for symbolic arithmetic, so that it can only be moved and compared.
 */
const huge = 2 ** 41;

function clamp(value: number): number {
  return Math.max(-huge, Math.min(huge, value)) + 0;
}
