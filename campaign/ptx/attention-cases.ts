/** Attention of the suite: what, how large and how. */
import type { AttentionCase } from "./attention-programs.ts";

/** Attention as the compiler lowers it. */
const square = { heads: 4, groups: 4, rows: 512, columns: 512, mask: false } as const;
export const attentions: readonly AttentionCase[] = [
  {
    ...{ ...square, depth: 64, dtype: "bf16", causal: false },
    how: "by mma tile (256, 64) warps 8 stages 2",
  },
  {
    ...{ ...square, groups: 2, depth: 128, dtype: "f16", causal: true },
    how: "by mma tile (128, 64) warps 8 stages 2",
  },
  {
    ...{ ...square, columns: 128, depth: 64, dtype: "bf16", causal: false },
    how: "by mma tile (64, 128) warps 4 stages 1",
  },
  {
    ...{ ...square, columns: 77, depth: 64, dtype: "f16", causal: false },
    how: "by wgmma tile (128, 80) warps 8 stages 1 gathered",
  },
  {
    ...{ ...square, depth: 128, dtype: "bf16", causal: true, behind: 100 },
    how: "by mma tile (64, 64) warps 4 stages 2",
  },
  {
    ...{ ...square, depth: 128, dtype: "bf16", causal: true, lengths: true },
    how: "by mma tile (64, 64) warps 4 stages 2",
  },
  {
    ...{ ...square, depth: 128, dtype: "bf16", causal: true, lengths: true },
    how: "by wgmma tile (128, 128) warps 8 stages 2 gathered",
  },
  {
    ...{ ...square, depth: 128, dtype: "bf16", causal: false, packed: true },
    how: "by mma tile (64, 64) warps 4 stages 2",
  },
  {
    ...{
      ...square,
      rows: 1000,
      columns: 1000,
      depth: 64,
      dtype: "f16",
      causal: false,
      packed: true,
    },
    how: "by mma tile (64, 64) warps 4 stages 2",
  },
  {
    ...{ ...square, depth: 128, dtype: "bf16", causal: false, packed: true },
    how: "by wgmma tile (128, 128) warps 8 stages 2 gathered",
  },
  {
    ...{ ...square, depth: 128, dtype: "bf16", causal: true, behind: 100 },
    how: "by wgmma tile (128, 128) warps 8 stages 2 gathered",
  },
  {
    ...{ ...square, depth: 256, dtype: "bf16", causal: false },
    how: "by mma tile (64, 32) warps 4 stages 2",
  },
  {
    ...{ ...square, heads: 1, groups: 1, rows: 4, columns: 1024 },
    ...{ depth: 128, dtype: "bf16", causal: false },
    how: "by mma tile (16, 32) warps 1 stages 3 parts 8",
  },
  {
    ...{ ...square, heads: 1, groups: 1, rows: 4, columns: 1000 },
    ...{ depth: 128, dtype: "f16", causal: false, lengths: true },
    how: "by mma tile (16, 32) warps 1 stages 3 parts 8",
  },
  {
    ...{ ...square, heads: 32, groups: 8, rows: 1, columns: 131072 },
    ...{ depth: 128, dtype: "bf16", causal: false, lengths: true },
    how: "by mma tile (16, 64) warps 1 stages 2 splits 49",
  },
  {
    ...{ ...square, heads: 4, groups: 1, rows: 2, columns: 1024 },
    ...{ depth: 64, dtype: "f16", causal: false },
    how: "by mma tile (16, 32) warps 1 stages 3 splits 16",
  },
  {
    ...{ ...square, rows: 197, columns: 197, depth: 64, dtype: "f16", causal: false, mask: true },
    how: "by mma tile (64, 64) warps 4 stages 2",
  },
  // As many operands of scores ahead, and words from step to step, as a thread has room for.
  {
    ...{ ...square, rows: 77, columns: 77, depth: 128, dtype: "f16", causal: false, mask: true },
    how: "by mma tile (64, 32) warps 4 stages 2",
  },
  {
    ...{ ...square, columns: 513, depth: 224, dtype: "bf16", causal: false, mask: true },
    how: "by mma tile (64, 32) warps 4 stages 2",
  },
  {
    ...{ ...square, depth: 112, dtype: "bf16", causal: false, mask: true },
    how: "by mma tile (64, 64) warps 4 stages 2",
  },
  {
    ...{ ...square, depth: 80, dtype: "f16", causal: true },
    how: "by mma tile (64, 32) warps 2 stages 2",
  },
  {
    ...{ ...square, depth: 64, dtype: "bf16", causal: false },
    how: "by wgmma tile (192, 128) warps 12 stages 2 gathered",
  },
  {
    ...{ ...square, groups: 2, depth: 128, dtype: "f16", causal: true },
    how: "by wgmma tile (128, 128) warps 8 stages 2 gathered",
  },
  {
    ...{ ...square, depth: 256, dtype: "bf16", causal: false },
    how: "by wgmma tile (128, 80) warps 8 stages 2",
  },
  {
    ...{ ...square, rows: 197, columns: 197, depth: 64, dtype: "f16", causal: false, mask: true },
    how: "by wgmma tile (64, 64) warps 4 stages 4",
  },
  // Heads that are no multiples of 64, up to as many words as threads may hold.
  {
    ...{ ...square, depth: 80, dtype: "bf16", causal: false },
    how: "by wgmma tile (192, 112) warps 12 stages 2 gathered",
  },
  {
    ...{ ...square, groups: 2, depth: 80, dtype: "f16", causal: true, lengths: true },
    how: "by wgmma tile (128, 128) warps 8 stages 2 gathered",
  },
  {
    ...{ ...square, rows: 1000, columns: 1000, depth: 96, dtype: "bf16", causal: true },
    how: "by wgmma tile (192, 96) warps 12 stages 2 gathered",
  },
  {
    ...{ ...square, depth: 96, dtype: "bf16", causal: false, packed: true },
    how: "by wgmma tile (128, 128) warps 8 stages 2 gathered",
  },
  {
    ...{ ...square, depth: 112, dtype: "f16", causal: true, behind: 100 },
    how: "by wgmma tile (192, 96) warps 12 stages 2",
  },
  {
    ...{ ...square, rows: 1000, columns: 1000, depth: 240, dtype: "bf16", causal: false },
    how: "by wgmma tile (64, 96) warps 4 stages 2 gathered",
  },
];

/** Scores of many instructions, under the schedules that the search chooses: the widest that registers hold. */
const long = {
  heads: 8,
  groups: 8,
  rows: 1024,
  columns: 1024,
  dtype: "bf16",
  softcap: 30,
} as const;
export const chosenAttentions: readonly Omit<AttentionCase, "how">[] = [
  { ...long, depth: 128, causal: false, mask: false },
  { ...long, rows: 2048, columns: 2048, depth: 128, causal: false, mask: false },
  { ...long, depth: 128, causal: false, mask: true },
  { ...long, depth: 128, causal: true, mask: true },
  { ...long, depth: 256, causal: true, mask: false },
  // Of a triangle whose last rows are no whole tile: warps hold their bounds as well.
  { ...long, rows: 1000, columns: 1000, depth: 96, causal: true, mask: false },
  { ...long, rows: 2000, columns: 2000, depth: 96, causal: true, mask: false },
];
