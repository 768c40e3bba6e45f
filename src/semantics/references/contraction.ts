/**
 * Reference of contract: the Einstein summation of two operands. Labels are sorted into batch, rows
 * (left and result), columns (right and result) and summed; both operands are copied into
 * [batch, row, k] and [batch, k, column] order (labels of one operand alone that are not in the result
 * are summed while copying), multiplied by plain loops in float64, and put into the result's order.
 */
import { invariant } from "../../support/invariant.ts";
import { type DType, isBigDType, isIntegerDType } from "../dtype.ts";
import { castScalar } from "../scalar-meaning.ts";
import { elementCount, rowMajorStrides, type Shape, viewOffsets } from "../shape.ts";
import { numbersOf, type RefTensor, zeroRef } from "../tensor.ts";
import { finish, type Reference } from "./reference.ts";

interface Operand {
  readonly labels: readonly string[];
  readonly tensor: RefTensor;
}

type Extents = ReadonlyMap<string, number>;

/** Stride of each label in an operand: a label that stands twice (a diagonal) has the sum. */
function labelStrides({ labels, tensor }: Operand): Map<string, number> {
  const strides = rowMajorStrides(tensor.shape);
  const byLabel = new Map<string, number>();
  for (const [axis, label] of labels.entries()) {
    byLabel.set(label, (byLabel.get(label) ?? 0) + strides[axis]!);
  }
  return byLabel;
}

/** Offsets of the operand's elements in the order of `labels`, and of what is summed into each. */
function arrangedOffsets(
  operand: Operand,
  labels: readonly string[],
  extents: Extents,
): { readonly kept: Int32Array; readonly summed: Int32Array } {
  const strides = labelStrides(operand);
  const view = (list: readonly string[]) =>
    viewOffsets(
      list.map((label) => extents.get(label)!),
      list.map((label) => strides.get(label)!),
    );
  return {
    kept: view(labels),
    summed: view([...strides.keys()].filter((label) => !labels.includes(label))),
  };
}

function arrangeNumbers(
  operand: Operand,
  labels: readonly string[],
  extents: Extents,
): Float64Array {
  const { kept, summed } = arrangedOffsets(operand, labels, extents);
  const data = numbersOf(operand.tensor);
  const values = new Float64Array(kept.length);
  for (let s = 0; s < summed.length; s++) {
    const shift = summed[s]!;
    for (let i = 0; i < kept.length; i++) values[i] = values[i]! + data[kept[i]! + shift]!;
  }
  return values;
}

function arrangeBigs(operand: Operand, labels: readonly string[], extents: Extents): bigint[] {
  const { kept, summed } = arrangedOffsets(operand, labels, extents);
  const { data } = operand.tensor;
  return Array.from(kept, (at) =>
    summed.reduce<bigint>((total, shift) => total + BigInt(data[at + shift]!), 0n),
  );
}

interface MatrixExtents {
  readonly batches: number;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
}

/** out[b, i, j] = sum over k of a[b, i, k] w[b, k, j]; four steps of k at a time. */
function multiplyMatrices(
  a: Float64Array,
  w: Float64Array,
  { batches, rows, columns, depth }: MatrixExtents,
): Float64Array {
  const out = new Float64Array(batches * rows * columns);
  for (let b = 0; b < batches; b++) {
    const wBase = b * depth * columns;
    for (let i = 0; i < rows; i++) {
      const aBase = (b * rows + i) * depth;
      const outBase = (b * rows + i) * columns;
      let k = 0;
      for (; k + 3 < depth; k += 4) {
        const [a0, a1, a2, a3] = [
          a[aBase + k]!,
          a[aBase + k + 1]!,
          a[aBase + k + 2]!,
          a[aBase + k + 3]!,
        ];
        const w0 = wBase + k * columns;
        const w1 = w0 + columns;
        const w2 = w1 + columns;
        const w3 = w2 + columns;
        for (let j = 0; j < columns; j++) {
          out[outBase + j] =
            out[outBase + j]! +
            a0 * w[w0 + j]! +
            a1 * w[w1 + j]! +
            a2 * w[w2 + j]! +
            a3 * w[w3 + j]!;
        }
      }
      for (; k < depth; k++) {
        const a0 = a[aBase + k]!;
        const w0 = wBase + k * columns;
        for (let j = 0; j < columns; j++) out[outBase + j] = out[outBase + j]! + a0 * w[w0 + j]!;
      }
    }
  }
  return out;
}

function multiplyBig(
  a: readonly bigint[],
  w: readonly bigint[],
  { batches, rows, columns, depth }: MatrixExtents,
): bigint[] {
  const out: bigint[] = [];
  for (let b = 0; b < batches; b++) {
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) {
        let total = 0n;
        for (let k = 0; k < depth; k++) {
          total += a[(b * rows + i) * depth + k]! * w[(b * depth + k) * columns + j]!;
        }
        out.push(total);
      }
    }
  }
  return out;
}

export const contract: Reference<"contract"> = (attrs, [x, y]) => {
  const { output, accumulator } = attrs;
  const left: Operand = { labels: attrs.lhs, tensor: x! };
  const right: Operand = { labels: attrs.rhs, tensor: y! };
  const extents = labelExtents(left, right);
  const isIn = (operand: Operand) => (label: string) => operand.labels.includes(label);
  const batch = output.filter((label) => isIn(left)(label) && isIn(right)(label));
  const rows = output.filter((label) => isIn(left)(label) && !isIn(right)(label));
  const columns = output.filter((label) => !isIn(left)(label) && isIn(right)(label));
  const depth = [...new Set(left.labels)].filter((l) => isIn(right)(l) && !output.includes(l));
  const sizeOf = (labels: readonly string[]) => elementCount(labels.map((l) => extents.get(l)!));
  const matrix = {
    batches: sizeOf(batch),
    rows: sizeOf(rows),
    columns: sizeOf(columns),
    depth: sizeOf(depth),
  };
  const [leftOrder, rightOrder] = [
    [...batch, ...rows, ...depth],
    [...batch, ...depth, ...columns],
  ];
  const order = { labels: [...batch, ...rows, ...columns], output, extents };
  if (needsBigs(accumulator, [x!, y!])) {
    const a = arrangeBigs(left, leftOrder, extents);
    const w = arrangeBigs(right, rightOrder, extents);
    const result = zeroRef(accumulator, outputShape(order));
    const product = multiplyBig(a, w, matrix);
    outputOffsets(order).forEach((at, i) => {
      result.data[i] = castScalar(product[at]!, accumulator, false);
    });
    return [result];
  }
  const a = arrangeNumbers(left, leftOrder, extents);
  const w = arrangeNumbers(right, rightOrder, extents);
  const product = multiplyMatrices(a, w, matrix);
  const values = Float64Array.from(outputOffsets(order), (at) => product[at]!);
  return [finish(accumulator, outputShape(order), values)];
};

function labelExtents(...operands: readonly Operand[]): Extents {
  const extents = new Map<string, number>();
  for (const { labels, tensor } of operands) {
    for (const [axis, label] of labels.entries()) {
      const extent = tensor.shape[axis]!;
      const seen = extents.get(label) ?? extent;
      invariant(seen === extent, () => `contract label ${label} is ${seen} and ${extent}`);
      extents.set(label, extent);
    }
  }
  return extents;
}

/** Whether float64 could round: 64-bit integers, or sums of narrower ones that may pass 2^53. */
function needsBigs(accumulator: DType, operands: readonly RefTensor[]): boolean {
  if (isBigDType(accumulator) || operands.some((t) => isBigDType(t.dtype))) return true;
  if (!isIntegerDType(accumulator)) return false;
  const bounds = operands.map((t) => numbersOf(t).reduce((m, v) => Math.max(m, Math.abs(v)), 0));
  const terms = Math.max(...operands.map((t) => t.data.length));
  return bounds[0]! * bounds[1]! * terms > Number.MAX_SAFE_INTEGER;
}

interface ResultOrder {
  /** The order the product was computed in. */
  readonly labels: readonly string[];
  readonly output: readonly string[];
  readonly extents: Extents;
}

function outputShape({ output, extents }: ResultOrder): Shape {
  return output.map((label) => extents.get(label)!);
}

/** For each element of the result its place in the computed product. */
function outputOffsets(order: ResultOrder): Int32Array {
  const computed = rowMajorStrides(order.labels.map((label) => order.extents.get(label)!));
  const strides = order.output.map((label) => computed[order.labels.indexOf(label)]!);
  return viewOffsets(outputShape(order), strides);
}
