/** Programs of small attentions, which `campaign -- gpu-mutants` plants faults in. */
import { describe, it } from "vitest";
import { type AttentionCase, attentionText } from "../../campaign/ptx/attention-programs.ts";
import { checkGolden } from "./golden-file.ts";

const small = { heads: 1, groups: 1, depth: 16, dtype: "bf16", mask: false } as const;

/** Every stage used twice, ragged ends, a triangle, a mask that is read. */
const programs: readonly (readonly [string, AttentionCase])[] = [
  [
    "full",
    {
      ...{ ...small, rows: 20, columns: 72, causal: false },
      how: "by mma tile (16, 16) warps 1 stages 2",
    },
  ],
  [
    "a triangle",
    {
      ...{ ...small, rows: 60, columns: 60, causal: true },
      how: "by mma tile (32, 16) warps 2 stages 2",
    },
  ],
  [
    "a band",
    {
      ...{ ...small, rows: 96, columns: 96, causal: true, behind: 20 },
      how: "by mma tile (32, 16) warps 2 stages 2",
    },
  ],
  [
    "a mask",
    {
      ...{ ...small, rows: 16, columns: 48, causal: false, mask: true },
      how: "by mma tile (16, 16) warps 1 stages 3",
    },
  ],
  [
    "by clusters, parts of the columns",
    {
      ...{ ...small, rows: 10, columns: 60, causal: false },
      how: "by mma tile (16, 16) warps 1 stages 2 parts 2",
    },
  ],
  [
    "parts of the columns that meet in memory",
    {
      ...{ ...small, rows: 10, columns: 60, causal: false },
      how: "by mma tile (16, 16) warps 1 stages 2 splits 2",
    },
  ],
  [
    "lengths, parts in memory",
    {
      ...{ ...small, heads: 2, rows: 3, columns: 72, causal: true, lengths: true },
      how: "by mma tile (16, 16) warps 1 stages 2 splits 2",
    },
  ],
  [
    "lengths that are data",
    {
      ...{ ...small, rows: 32, columns: 72, causal: true, lengths: true },
      how: "by mma tile (32, 16) warps 2 stages 2",
    },
  ],
  [
    "lengths, by clusters",
    {
      ...{ ...small, rows: 3, columns: 72, causal: true, lengths: true },
      how: "by mma tile (16, 16) warps 1 stages 2 parts 2",
    },
  ],
  [
    "rows with columns of their own",
    {
      ...{ ...small, rows: 32, columns: 72, causal: false, packed: true },
      how: "by mma tile (16, 16) warps 1 stages 2",
    },
  ],
  [
    "lengths by a warpgroup",
    {
      ...{ ...small, depth: 64, rows: 64, columns: 72, causal: false, lengths: true },
      how: "by wgmma tile (64, 16) warps 4 stages 2 gathered",
    },
  ],
  [
    "lengths that a run decides",
    {
      ...{ ...small, rows: 40, columns: 40, causal: false, mask: true, open: true },
      how: "by mma tile (16, 16) warps 1 stages 2",
    },
  ],
  [
    "a triangle of a length that a run decides, by a warpgroup",
    {
      ...{ ...small, depth: 64, rows: 72, columns: 72, causal: true, open: true },
      how: "by wgmma tile (64, 16) warps 4 stages 2 gathered",
    },
  ],
  [
    "by a warpgroup",
    {
      ...{ ...small, depth: 64, rows: 64, columns: 72, causal: false },
      how: "by wgmma tile (64, 16) warps 4 stages 2 gathered",
    },
  ],
];

describe("attention by blocks", () => {
  it("are the programs last looked at", () => {
    const texts = new Map(programs.map(([name, given]) => [name, attentionText(given)]));
    checkGolden("attention.txt", "attention as the compiler lowers it to one kernel", texts);
  });
});
