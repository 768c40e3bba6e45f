/** Random cases of operators of com.microsoft for Engram layers, and of a few that stand for plain ones. */
import type { Rng } from "../../src/support/rng.ts";
import type { CaseMaker } from "./microsoft-makers.ts";
import type { OperandSpec } from "./operator-case.ts";

const big = (value: number): bigint => BigInt(value);
const flip = (rng: Rng): boolean => rng.integer(0, 1) === 1;

const engramGate: CaseMaker = (rng) => {
  const [b, s, m, h] = [rng.integer(1, 3), rng.integer(1, 4), rng.integer(1, 3), rng.integer(1, 9)];
  return {
    node: { op: "EngramGate", attributes: flip(rng) ? { epsilon: 1e-3 } : {} },
    operands: [
      [b, s, m, h],
      [b, s, m, h],
      [b, s, h],
      [m, h],
      [m, h],
    ],
  };
};

const ngramHashMapping: CaseMaker = (rng) => {
  const [b, s] = [rng.integer(1, 3), rng.integer(1, 6)];
  const [most, heads] = [rng.integer(2, 4), rng.integer(1, 3)];
  const dtype = rng.pick(["i32", "i64"] as const);
  const ids = (...shape: number[]): OperandSpec => ({ shape, dtype, range: [0, 90_000] });
  const largest = dtype === "i32" ? 2 ** 20 : 2 ** 40;
  return {
    node: {
      op: "NGramHashMapping",
      attributes: {
        max_ngram_size: big(most),
        n_head_per_ngram: big(heads),
        pad_id: big(rng.integer(0, 9)),
      },
    },
    operands: [
      ids(b, s),
      { shape: [most], dtype, range: [-largest, largest] },
      { shape: [(most - 1) * heads], dtype, range: [1, 50_000] },
      flip(rng) ? ids(b, most - 1) : undefined,
    ],
    outputs: [
      ["hashes", dtype, 3],
      ["last", dtype, 2],
    ],
    tolerance: 0,
  };
};

const dynamicPads: CaseMaker = (rng) => {
  const [c, k] = [rng.integer(1, 3), rng.integer(1, 3)];
  const bias = flip(rng) ? [k] : undefined;
  return {
    node: {
      op: "ConvTransposeWithDynamicPads",
      attributes: { strides: [big(rng.integer(1, 2)), 1n] },
    },
    operands: [
      [1, c, rng.integer(3, 5), rng.integer(3, 5)],
      [c, k, 3, 2],
      { shape: [4], dtype: "i64", values: [0, 0, 0, 0].map(() => rng.integer(0, 1)), weight: true },
      bias,
    ],
  };
};

const sample: CaseMaker = () => ({ node: { op: "SampleOp" }, operands: [[2, 3]] });

export const plainMicrosoftMakers: Readonly<Record<string, CaseMaker>> = {
  EngramGate: engramGate,
  NGramHashMapping: ngramHashMapping,
  ConvTransposeWithDynamicPads: dynamicPads,
  SampleOp: sample,
};
