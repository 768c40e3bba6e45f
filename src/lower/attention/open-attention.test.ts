/** Attention of batches and lengths that a run decides: one program, right at every size up to the bound. */
import { describe, expect, it } from "vitest";
import { offBy } from "../../../campaign/ptx/attention-difference.ts";
import type { AttentionCase } from "../../../campaign/ptx/attention-programs.ts";
import type { RefTensor } from "../../semantics/tensor.ts";

type Sizes = {
  readonly B: number;
  readonly S: number;
  /** Of the columns, where they are not as many as rows. */
  readonly T?: number;
};

const small = { heads: 2, groups: 2, depth: 16, causal: false, mask: false, open: true } as const;
const square = { ...small, rows: 70, columns: 70, dtype: "f16" } as const;
const mma = "by mma tile (32, 32) warps 2 stages 2";
const wgmma = "by wgmma tile (64, 32) warps 4 stages 2";
const heads = { ...square, depth: 64, rows: 130, columns: 130 } as const;

describe("attention of open extents", () => {
  it.each<readonly [string, AttentionCase, readonly Sizes[]]>([
    ["as many rows as columns", { ...square, how: mma }, sizesOf(1, 32, 33, 70)],
    ["a mask of padding", { ...square, mask: true, how: mma }, sizesOf(1, 20, 64)],
    ["a triangle", { ...square, causal: true, how: mma }, sizesOf(1, 31, 32, 70)],
    ["heads that share keys", { ...square, heads: 4, causal: true, how: mma }, sizesOf(3, 40)],
    ["a band", { ...square, causal: true, behind: 20, how: mma }, sizesOf(5, 64, 70)],
    [
      "rows and columns apart",
      { ...square, columns: 90, how: mma.replace("(32, 32) warps 2", "(16, 32) warps 1") },
      [
        { B: 1, S: 3, T: 90 },
        { B: 2, S: 17, T: 1 },
      ],
    ],
    ["three stages", { ...square, dtype: "bf16", how: `${mma.slice(0, -1)}3` }, sizesOf(2, 50)],
    ["streams", { ...heads, how: wgmma }, sizesOf(1, 64, 65)],
    ["streams that gather", { ...heads, how: `${wgmma} gathered` }, sizesOf(7, 100)],
    ["streams of a triangle", { ...heads, causal: true, how: wgmma }, sizesOf(33, 70)],
  ])("%s", (_, c, sizes) => {
    for (const off of offBy(c, sizes)) expect(off).toBeLessThanOrEqual(1);
  });
});

/** A mask as models of padded sequences make it: the least float of its type, of the second sequence everywhere. */
function leastBehind(kept: number): (name: string, drawn: RefTensor) => RefTensor {
  const least = -(2 ** 127) * (2 - 2 ** -7);
  return (name, mask) => {
    if (name !== "m") return mask;
    const columns = mask.shape.at(-1)!;
    const data = Float64Array.from(mask.data as Float64Array, (_, i) =>
      i % columns < kept && i < columns ? 0 : least,
    );
    return { ...mask, data };
  };
}

it("rows whose first steps are padding have the weights of the others, and all padding has equal weights", () => {
  const bf16 = { ...square, dtype: "bf16", mask: true, how: mma } as const;
  const sizes = [
    { B: 1, S: 70 },
    { B: 2, S: 64 },
  ];
  for (const off of offBy(bf16, sizes, leastBehind(20))) expect(off).toBeLessThanOrEqual(1);
});

/** Two sequences of each length, of the first one alone. */
function sizesOf(...lengths: readonly number[]): readonly Sizes[] {
  return lengths.map((S, i) => ({ B: i === 0 ? 1 : 2, S }));
}
