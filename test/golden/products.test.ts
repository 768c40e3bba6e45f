/** Programs of small matrix products as blocks, which `campaign -- gpu-mutants` plants faults in. */
import { describe, it } from "vitest";
import { type ProductCase, productText } from "../../campaign/ptx/product-programs.ts";
import { checkGolden } from "./golden-file.ts";

/** Ragged rows, columns and depth, copies of vectors and of single elements, operands both ways. */
const products: readonly (readonly [string, ProductCase])[] = [
  [
    "by warps",
    {
      equation: "i k, j k -> i j",
      left: [24, 120],
      right: [18, 120],
      dtype: "bf16",
      how: "by mma tile (16, 16, 32) warps (1, 1) stages 3 swizzle 64",
    },
  ],
  [
    "by warps, through registers",
    {
      equation: "k i, j k -> i j",
      left: [35, 32],
      right: [18, 35],
      dtype: "bf16",
      how: "by mma tile (32, 16, 16) warps (2, 1) stages 2 swizzle 0",
    },
  ],
  [
    "by warpgroups",
    {
      equation: "i k, j k -> i j",
      left: [72, 136],
      right: [20, 136],
      dtype: "bf16",
      how: "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128",
    },
  ],
  [
    "by warpgroups, a weight by its own thread",
    {
      equation: "i k, j k -> i j",
      left: [72, 136],
      right: [20, 136],
      dtype: "bf16",
      isWeight: true,
      how: "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128",
    },
  ],
  [
    "by warpgroups, results gathered",
    {
      equation: "i k, j k -> i j",
      left: [72, 136],
      right: [40, 136],
      dtype: "bf16",
      how: "by wgmma tile (64, 48, 64) warps (4, 1) stages 2 swizzle 128 results 2",
    },
  ],
  [
    "by warpgroups, on from tile to tile",
    {
      equation: "i k, j k -> i j",
      left: [136, 136],
      right: [40, 136],
      dtype: "bf16",
      how: "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128 results 1 blocks 4",
    },
  ],
  [
    "by warpgroups in teams that take turns",
    {
      equation: "i k, j k -> i j",
      left: [136, 136],
      right: [40, 136],
      dtype: "bf16",
      how: "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128 results 1 blocks 2 teams 2",
    },
  ],
  [
    "by clusters, parts of the depth",
    {
      equation: "i k, j k -> i j",
      left: [40, 456],
      right: [24, 456],
      dtype: "bf16",
      how: "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128 parts 2",
    },
  ],
  [
    "by clusters that bring a tile together",
    {
      equation: "i k, j k -> i j",
      left: [72, 264],
      right: [40, 264],
      dtype: "bf16",
      how: "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128 group 2 cluster 2",
    },
  ],
  [
    "by clusters that bring a tile together, on from tile to tile",
    {
      equation: "i k, j k -> i j",
      left: [136, 136],
      right: [56, 136],
      dtype: "bf16",
      how: "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128 results 1 blocks 4 cluster 2",
    },
  ],
  [
    "by clusters that share the last round",
    {
      equation: "i k, j k -> i j",
      left: [40, 376],
      right: [136, 376],
      dtype: "bf16",
      how: "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128 results 1 blocks 2 parts 2",
    },
  ],
  [
    "by clusters of which one shares a last tile",
    {
      equation: "i k, j k -> i j",
      left: [40, 376],
      right: [136, 376],
      dtype: "bf16",
      how: "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128 blocks 4 parts 2",
    },
  ],
  [
    "by warpgroups, columns as neighbours",
    {
      equation: "i k, k j -> i j",
      left: [40, 136],
      right: [136, 104],
      dtype: "bf16",
      how: "by wgmma tile (64, 96, 64) warps (4, 1) stages 2 swizzle 128",
    },
  ],
  [
    "by warpgroups, rows and columns as neighbours, results gathered",
    {
      equation: "k i, k j -> i j",
      left: [136, 72],
      right: [136, 64],
      dtype: "bf16",
      how: "by wgmma tile (128, 64, 64) warps (4, 1) stages 2 swizzle 128 results 2",
    },
  ],
  [
    "by warpgroups, rows as neighbours, problems of a batch in turns",
    {
      equation: "b k i, b j k -> b i j",
      left: [2, 136, 72],
      right: [2, 16, 136],
      dtype: "bf16",
      how: "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128 blocks 3",
    },
  ],
  [
    "by warpgroups, columns as rows",
    {
      equation: "i k, j k -> i j",
      left: [9, 136],
      right: [70, 136],
      dtype: "bf16",
      how: "by wgmma tile (64, 16, 64) warps (4, 1) stages 2 swizzle 128 swapped",
    },
  ],
  [
    "by warpgroups, elements of 8 bits",
    {
      equation: "i k, j k -> i j",
      left: [72, 272],
      right: [40, 272],
      dtype: "bf16",
      of: "f8e4m3fn",
      how: "by wgmma tile (64, 48, 128) warps (4, 1) stages 2 swizzle 128 results 2",
    },
  ],
  [
    "by warps, floats of 8 bits of two types",
    {
      equation: "i k, j k -> i j",
      left: [20, 144],
      right: [18, 144],
      dtype: "bf16",
      of: "f8e4m3fn",
      ofRight: "f8e5m2",
      how: "by mma tile (16, 16, 64) warps (1, 1) stages 2 swizzle 64",
    },
  ],
  [
    "by warps, bytes rounded to bytes again",
    {
      equation: "i k, j k -> i j",
      left: [24, 176],
      right: [18, 176],
      dtype: "i8",
      of: "u8",
      ofRight: "i8",
      how: "by mma tile (16, 16, 64) warps (1, 1) stages 2 swizzle 64",
    },
  ],
  [
    "by warpgroups, bytes",
    {
      equation: "i k, j k -> i j",
      left: [72, 272],
      right: [40, 272],
      dtype: "i32",
      of: "i8",
      ofRight: "i8",
      how: "by wgmma tile (64, 48, 128) warps (4, 1) stages 2 swizzle 128",
    },
  ],
  [
    "by warps, f32 as tf32",
    {
      equation: "i k, j k -> i j",
      left: [24, 44],
      right: [18, 44],
      dtype: "f32",
      how: "by mma tile (16, 16, 16) warps (1, 1) stages 2 swizzle 64",
    },
  ],
  [
    "by warps, a matrix that data picks",
    {
      equation: "g i k, g k j -> g i j",
      left: [3, 20, 40],
      right: [2, 40, 24],
      dtype: "bf16",
      isPicked: true,
      how: "by mma tile (16, 16, 16) warps (1, 1) stages 3 swizzle 0",
    },
  ],
  [
    "by warpgroups, a matrix that data picks",
    {
      equation: "g i k, g j k -> g i j",
      left: [3, 20, 192],
      right: [2, 24, 192],
      dtype: "bf16",
      isPicked: true,
      how: "by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128 results 1",
    },
  ],
  [
    "by warps, rows that a run decides",
    {
      equation: "i k, j k -> i j",
      left: ["M", 72],
      right: [18, 72],
      open: { M: 40 },
      dtype: "bf16",
      how: "by mma tile (16, 16, 32) warps (1, 1) stages 2 swizzle 64",
    },
  ],
  [
    "by warps, a depth that a run decides",
    {
      equation: "k i, k j -> i j",
      left: ["K", 24],
      right: ["K", 16],
      open: { K: 100 },
      dtype: "bf16",
      how: "by mma tile (16, 16, 16) warps (1, 1) stages 3 swizzle 0",
    },
  ],
  [
    "by warpgroups, rows that a run decides",
    {
      equation: "i k, j k -> i j",
      left: ["M", 136],
      right: [40, 136],
      open: { M: 90 },
      dtype: "bf16",
      how: "by wgmma tile (64, 48, 64) warps (4, 1) stages 2 swizzle 128 results 2",
    },
  ],
  [
    "by threads",
    {
      equation: "i k, k j -> i j",
      left: [17, 22],
      right: [22, 36],
      dtype: "f32",
      how: "by fma tile (16, 32, 4) warps (1, 1) stages 3 swizzle 0",
    },
  ],
];

describe("products by blocks", () => {
  it("are the programs last looked at", () => {
    const texts = new Map(products.map(([name, given]) => [name, productText(given)]));
    checkGolden("products.txt", "matrix products as the compiler lowers them to blocks", texts);
  });
});
