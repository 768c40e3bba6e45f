/** Random cases of the small and older operators of com.microsoft, by name. */
import type { Rng } from "../../src/support/rng.ts";
import type { CaseMaker } from "./microsoft-makers.ts";
import type { OperandSpec } from "./operator-case.ts";

const big = (value: number): bigint => BigInt(value);
const flip = (rng: Rng): boolean => rng.integer(0, 1) === 1;
const weight = (shape: readonly number[], values: readonly number[]): OperandSpec => ({
  shape,
  values,
  weight: true,
});
const zero = (value: number): OperandSpec => ({ ...weight([], [value]), dtype: "u8" });

/** Values, scale and zero point of a quantised operand. */
function quantised(rng: Rng, ...shape: number[]): OperandSpec[] {
  const values = { shape, dtype: "u8", range: [0, 255] } as const;
  return [values, weight([], [0.01 + 0.02 * rng.uniform()]), zero(rng.integer(100, 150))];
}

const transposeMatMul: CaseMaker = (rng) => {
  const [b, m, k, n] = [rng.integer(1, 3), rng.integer(1, 5), rng.integer(1, 6), rng.integer(1, 5)];
  const [transA, transB] = [flip(rng), flip(rng)];
  return {
    node: {
      op: "TransposeMatMul",
      attributes: { transA: big(Number(transA)), transB: big(Number(transB)), alpha: 0.5 },
    },
    operands: [transA ? [b, k, m] : [b, m, k], transB ? [b, n, k] : [b, k, n]],
  };
};

const expandDims: CaseMaker = (rng) => ({
  node: { op: "ExpandDims" },
  operands: [[2, 3], { ...weight([], [rng.integer(-3, 2)]), dtype: "i32" }],
  outputs: [["y", "f32", 3]],
});

const cDist: CaseMaker = (rng) => {
  const k = rng.integer(1, 6);
  return {
    node: { op: "CDist", attributes: { metric: rng.pick(["euclidean", "sqeuclidean"]) } },
    operands: [
      [rng.integer(1, 5), k],
      [rng.integer(1, 5), k],
    ],
    tolerance: 1e-3,
  };
};

const unfold: CaseMaker = (rng) => {
  const dim = rng.integer(0, 1);
  const shape = [rng.integer(3, 7), rng.integer(3, 7)];
  const size = rng.integer(1, shape[dim]!);
  return {
    node: {
      op: "UnfoldTensor",
      attributes: { dim: big(dim), size: big(size), step: big(rng.integer(1, 3)) },
    },
    operands: [shape],
    outputs: [["y", "f32", 3]],
  };
};

const unique: CaseMaker = (rng) => ({
  node: { op: "Unique" },
  operands: [{ shape: [rng.integer(1, 9)], range: [0, 3] }],
  outputs: [
    ["y", "f32", 1],
    ["places", "i64", 1],
    ["counts", "i64", 1],
  ],
});

const pad: CaseMaker = (rng) => ({
  node: { op: "Pad", attributes: { mode: rng.pick(["constant", "reflect", "edge"]) } },
  operands: [
    [rng.integer(3, 5), rng.integer(3, 5)],
    {
      ...weight(
        [4],
        [0, 1, 2, 1].map((n) => rng.integer(0, n)),
      ),
      dtype: "i64",
    },
    weight([1], [0.5]),
  ],
});

const gatherNd: CaseMaker = (rng) => ({
  node: { op: "GatherND" },
  operands: [[4, 5], { shape: [rng.integer(1, 4), 2], dtype: "i64", range: [0, 3] }],
  outputs: [["y", "f32", 1]],
});

const range: CaseMaker = (rng) => {
  const [start, step] = [rng.integer(-4, 4), rng.pick([1, 2, -1])];
  const limit = start + step * rng.integer(1, 6);
  return {
    node: { op: "Range" },
    operands: [start, limit, step].map((v) => weight([], [v])),
    outputs: [["y", "f32", 1]],
  };
};

const gridSample: CaseMaker = (rng) => ({
  node: {
    op: "GridSample",
    attributes: {
      mode: rng.pick(["bilinear", "nearest"]),
      padding_mode: rng.pick(["zeros", "border", "reflection"]),
      align_corners: big(rng.integer(0, 1)),
    },
  },
  operands: [
    [1, 2, rng.integer(2, 5), rng.integer(2, 5)],
    { shape: [1, rng.integer(1, 4), rng.integer(1, 4), 2], range: [-1.2, 1.2] },
  ],
});

const where: CaseMaker = (rng) => {
  const shape = [rng.integer(1, 4), rng.integer(1, 9)];
  return {
    node: { op: "QLinearWhere" },
    operands: [
      { shape, dtype: "bool", range: [0, 1] },
      ...quantised(rng, ...shape),
      ...quantised(rng, ...shape),
      weight([], [0.02]),
      zero(120),
    ],
    outputs: [["y", "u8", 2]],
  };
};

const nhwcMaxPool: CaseMaker = (rng) => ({
  node: {
    op: "NhwcMaxPool",
    attributes: { kernel_shape: [2n, 3n], strides: [big(rng.integer(1, 2)), 1n] },
  },
  operands: [
    {
      shape: [1, rng.integer(3, 6), rng.integer(3, 6), rng.integer(1, 5)],
      dtype: "u8",
      range: [0, 255],
    },
  ],
  outputs: [["y", "u8", 4]],
});

/**
 * One row: the peer shares out more among its threads, each share with a range of its own. A state between two bytes
 * may become either, a step of 1/255 of its range. Weights stay within 7 bits: on processors without dot products
 * of bytes its sums of two full ones are cut off at 16 bits.
 */
const quantisedLstm: CaseMaker = (rng) => {
  const [steps, batch, width, hidden] = [rng.integer(1, 12), 1, 4, rng.integer(2, 5)];
  const both = flip(rng);
  const d = both ? 2 : 1;
  const bytes = (...shape: number[]): OperandSpec => ({
    shape,
    dtype: "i8",
    range: [-63, 63],
    weight: true,
  });
  const scale = weight([d], new Array<number>(d).fill(0.008));
  const none: OperandSpec = {
    shape: [d],
    dtype: "i8",
    values: new Array<number>(d).fill(0),
    weight: true,
  };
  const initial = flip(rng) ? [d, batch, hidden] : undefined;
  return {
    node: {
      op: "DynamicQuantizeLSTM",
      attributes: {
        hidden_size: big(hidden),
        direction: both ? "bidirectional" : rng.pick(["forward", "reverse"]),
      },
    },
    operands: [
      [steps, batch, width],
      bytes(d, width, 4 * hidden),
      bytes(d, hidden, 4 * hidden),
      flip(rng) ? { shape: [d, 8 * hidden], weight: true } : undefined,
      undefined,
      initial,
      initial,
      undefined,
      scale,
      none,
      scale,
      none,
    ],
    outputs: [
      ["y", "f32", 4],
      ["hidden", "f32", 3],
      ["cell", "f32", 3],
    ],
    tolerance: 2e-3,
  };
};

const quantisedEmbeddings: CaseMaker = (rng) => {
  const [b, s, h] = [rng.integer(1, 3), rng.integer(1, 5), 8];
  const table = (...shape: number[]): OperandSpec => ({
    shape,
    dtype: "u8",
    range: [0, 255],
    weight: true,
  });
  const ids: OperandSpec = { shape: [b, s], dtype: "i32", range: [0, 5] };
  const segments: OperandSpec = { shape: [b, s], dtype: "i32", range: [0, 1] };
  const mask: OperandSpec = { shape: [b, s], dtype: "i32", range: [1, 1] };
  const scales = [0.02, 0.01, 0.03, 0.01, 0.02].map((v) => weight([], [v]));
  const zeros = [128, 120, 130, 100, 128].map(zero);
  return {
    node: { op: "QEmbedLayerNormalization", attributes: { epsilon: 1e-5 } },
    operands: [
      ids,
      segments,
      table(6, h),
      table(8, h),
      table(2, h),
      table(h),
      table(h),
      mask,
      ...scales,
      ...zeros,
    ],
    outputs: [
      ["y", "f32", 3],
      ["lengths", "i32", 1],
    ],
    tolerance: 1e-4,
  };
};

export const smallMicrosoftMakers: Readonly<Record<string, CaseMaker>> = {
  TransposeMatMul: transposeMatMul,
  ExpandDims: expandDims,
  CDist: cDist,
  UnfoldTensor: unfold,
  Unique: unique,
  Pad: pad,
  GatherND: gatherNd,
  Range: range,
  GridSample: gridSample,
  QLinearWhere: where,
  NhwcMaxPool: nhwcMaxPool,
  DynamicQuantizeLSTM: quantisedLstm,
  QEmbedLayerNormalization: quantisedEmbeddings,
};
