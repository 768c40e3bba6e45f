/** Products and attention of open extents, as the compiler lowers them for all sizes up to a bound. */
import type { AttentionCase } from "./attention-programs.ts";
import type { ProductCase } from "./product-programs.ts";

const tokens = { equation: "i k, j k -> i j", left: ["M", 768], right: [776, 768] } as const;
const heads = {
  ...{ equation: "b h i k, b h j k -> b h i j", left: ["B", 12, "S", 64] },
  ...{ right: ["B", 12, "S", 64], open: { B: 8, S: 512 } },
} as const;

/** Rows, both sides of a batch of heads, the depth; ragged columns, through registers where lines are odd. */
export const openProducts: readonly ProductCase[] = [
  {
    ...{ ...tokens, open: { M: 4096 }, dtype: "bf16" },
    how: "by mma tile (128, 128, 64) warps (2, 4) stages 3 swizzle 128",
  },
  {
    ...{ ...tokens, open: { M: 4096 }, dtype: "f16", behind: "gate" },
    how: "by mma tile (64, 64, 32) warps (2, 2) stages 4 swizzle 64 group 8",
  },
  {
    ...{ ...tokens, open: { M: 4096 }, dtype: "bf16" },
    how: "by wgmma tile (128, 192, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2",
  },
  {
    ...{ ...tokens, open: { M: 4096 }, dtype: "bf16", behind: "gate" },
    how: "by wgmma tile (128, 96, 64) warps (8, 1) stages 6 swizzle 128 results 2 ahead",
  },
  {
    ...{ ...tokens, right: [768, 776], equation: "i k, k j -> i j", open: { M: 4096 } },
    ...{ dtype: "bf16", how: "by mma tile (64, 128, 32) warps (2, 4) stages 2 swizzle 64" },
  },
  {
    ...{ ...heads, dtype: "f16" },
    how: "by mma tile (128, 64, 32) warps (4, 1) stages 2 swizzle 64",
  },
  {
    ...{ ...tokens, left: ["M", "K"], right: [776, "K"], open: { M: 1024, K: 3000 } },
    ...{ dtype: "bf16", how: "by mma tile (64, 64, 32) warps (2, 2) stages 3 swizzle 64" },
  },
  {
    ...{ ...tokens, open: { M: 4096 }, dtype: "f32" },
    how: "by fma tile (128, 64, 8) warps (4, 2) stages 3 swizzle 0",
  },
];

const square = { heads: 12, groups: 12, rows: 512, columns: 512, open: true, mask: true } as const;

export const openAttentions: readonly AttentionCase[] = [
  {
    ...{ ...square, depth: 32, dtype: "f16", causal: false },
    how: "by mma tile (64, 64) warps 4 stages 2",
  },
  {
    ...{ ...square, groups: 4, depth: 128, dtype: "bf16", causal: true, mask: false },
    how: "by mma tile (64, 64) warps 4 stages 2",
  },
  {
    ...{ ...square, rows: 300, columns: 4000, depth: 64, dtype: "bf16", causal: false },
    how: "by mma tile (32, 64) warps 2 stages 3",
  },
  {
    ...{ ...square, depth: 64, dtype: "f16", causal: false },
    how: "by wgmma tile (64, 64) warps 4 stages 4 gathered",
  },
  {
    ...{ ...square, depth: 128, dtype: "bf16", causal: true, mask: false },
    how: "by wgmma tile (128, 128) warps 8 stages 2 gathered",
  },
];
