/**
 * References of quantize and dequantize, as ONNX QuantizeLinear and DequantizeLinear: one scale and
 * zero point for the tensor, per position along an axis, or per block along an axis. The quotient is
 * rounded to the operand's dtype before it is rounded to an integer, ties to even.
 */
import { isIntegerDType } from "../dtype.ts";
import { roundHalfEven } from "../float-codec.ts";
import { castScalar, roundNumber } from "../scalar-meaning.ts";
import { rowMajorStrides, type Shape, splitAtAxis } from "../shape.ts";
import { makeRefData, numbersOf, type RefTensor } from "../tensor.ts";
import { finish, type Reference } from "./reference.ts";

interface Granularity {
  readonly axis?: number;
  readonly blockSize?: number;
}

/** For each element of `shape` which scale applies to it. */
function scaleIndices(
  shape: Shape,
  scale: RefTensor,
  { axis, blockSize }: Granularity,
): Int32Array {
  const count = shape.reduce((a, b) => a * b, 1);
  if (axis === undefined) return new Int32Array(count);
  const { extent, inner } = splitAtAxis(shape, axis);
  const at = (i: number) => Math.floor(i / inner) % extent;
  if (blockSize === undefined) return Int32Array.from({ length: count }, (_, i) => at(i));
  const strides = rowMajorStrides(scale.shape);
  const blocks = scale.shape[axis]!;
  return Int32Array.from({ length: count }, (_, i) => {
    const outer = Math.floor(i / (inner * extent));
    return outer * blocks * inner + Math.floor(at(i) / blockSize) * strides[axis]! + (i % inner);
  });
}

/** Zero points as numbers; none means zero. */
function zeroPointOf(tensor: RefTensor | undefined, at: number): number {
  return tensor ? Number(tensor.data[at]!) : 0;
}

export const quantize: Reference<"quantize"> = (attrs, [x, scale, zeroPoint]) => {
  const { to, saturate } = attrs;
  const from = numbersOf(x!);
  const scales = numbersOf(scale!);
  const which = scaleIndices(x!.shape, scale!, attrs);
  const data = makeRefData(to, from.length);
  const rounds = isIntegerDType(to);
  for (let i = 0; i < from.length; i++) {
    const quotient = roundNumber(x!.dtype, from[i]! / scales[which[i]!]!);
    const shifted =
      (rounds ? roundHalfEven(quotient) : quotient) + zeroPointOf(zeroPoint, which[i]!);
    data[i] = castScalar(shifted, to, saturate);
  }
  return [{ dtype: to, shape: x!.shape, data }];
};

export const dequantize: Reference<"dequantize"> = (attrs, [x, scale, zeroPoint]) => {
  const scales = numbersOf(scale!);
  const which = scaleIndices(x!.shape, scale!, attrs);
  const values = new Float64Array(x!.data.length);
  for (let i = 0; i < values.length; i++) {
    const shifted = Number(x!.data[i]!) - zeroPointOf(zeroPoint, which[i]!);
    values[i] = shifted * scales[which[i]!]!;
  }
  return [finish(attrs.to, x!.shape, values)];
};
