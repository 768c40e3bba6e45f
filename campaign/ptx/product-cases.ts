/** Products of the suite: their schedules, sizes and types. */

export type Given = readonly [rows: number, columns: number, depth: number];

/** Products as the compiler lowers them: how, y = x w^T of what size, and of what type. */
export const products: readonly (readonly [
  how: string,
  given: Given,
  dtype: "f32" | "bf16" | "f16",
])[] = [
  ["by mma tile (128, 128, 64) warps (2, 4) stages 3 swizzle 128", [1024, 1024, 1024], "bf16"],
  ["by mma tile (128, 256, 32) warps (2, 4) stages 4 swizzle 64", [4096, 4096, 4096], "f16"],
  ["by mma tile (64, 64, 32) warps (2, 2) stages 6 swizzle 64", [1000, 776, 328], "bf16"],
  ["by mma tile (16, 128, 64) warps (1, 4) stages 4 swizzle 128", [16, 4096, 4096], "bf16"],
  [
    "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 group 8",
    [4096, 4096, 4096],
    "bf16",
  ],
  ["by wgmma tile (128, 64, 64) warps (8, 1) stages 8 swizzle 128", [128, 6144, 4096], "f16"],
  ["by wgmma tile (64, 48, 64) warps (4, 1) stages 16 swizzle 128", [64, 6144, 4096], "bf16"],
  [
    "by wgmma tile (256, 96, 64) warps (8, 1) stages 5 swizzle 128 group 4",
    [1000, 776, 328],
    "bf16",
  ],
  [
    "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2",
    [4096, 4096, 4096],
    "bf16",
  ],
  [
    "by wgmma tile (256, 96, 64) warps (8, 1) stages 4 swizzle 128 results 2",
    [1000, 776, 328],
    "f16",
  ],
  [
    "by wgmma tile (128, 256, 64) warps (8, 1) stages 3 swizzle 128 group 8 results 4 blocks 132",
    [2048, 4096, 192],
    "bf16",
  ],
  [
    "by wgmma tile (128, 128, 64) warps (4, 1) stages 4 swizzle 128 results 4 blocks 132 teams 2",
    [2048, 2048, 256],
    "bf16",
  ],
  [
    "by wgmma tile (64, 16, 64) warps (4, 1) stages 16 swizzle 128 swapped",
    [16, 4096, 4096],
    "bf16",
  ],
  [
    "by wgmma tile (64, 64, 64) warps (4, 1) stages 8 swizzle 128 parts 2",
    [64, 4096, 4096],
    "bf16",
  ],
  [
    "by wgmma tile (128, 64, 64) warps (4, 1) stages 6 swizzle 128 parts 4 swapped",
    [64, 4096, 4096],
    "f16",
  ],
  // The last round shared by clusters: with results from registers, gathered, and in parts of the sums' columns.
  [
    "by wgmma tile (128, 256, 64) warps (8, 1) stages 3 swizzle 128 group 6 blocks 132 parts 2",
    [2304, 2304, 512],
    "bf16",
  ],
  [
    "by wgmma tile (128, 192, 64) warps (8, 1) stages 4 swizzle 128 group 6 blocks 132 parts 2",
    [1536, 3072, 512],
    "f16",
  ],
  [
    "by wgmma tile (128, 128, 64) warps (8, 1) stages 4 swizzle 128 group 9 results 2 blocks 132 parts 2",
    [2304, 2304, 512],
    "bf16",
  ],
  [
    "by wgmma tile (64, 64, 64) warps (4, 1) stages 4 swizzle 128 results 1 blocks 124 parts 4",
    [1000, 568, 512],
    "f16",
  ],
  [
    "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2 cluster 2",
    [4096, 4096, 4096],
    "bf16",
  ],
  [
    "by wgmma tile (128, 128, 64) warps (8, 1) stages 4 swizzle 128 results 4 blocks 132 cluster 4",
    [2048, 4096, 256],
    "f16",
  ],
  ["by mma tile (32, 32, 32) warps (1, 1) stages 2 swizzle 0", [257, 511, 1023], "bf16"],
  // f32 on matrix units is tf32.
  ["by mma tile (128, 128, 32) warps (2, 4) stages 3 swizzle 128", [1000, 776, 328], "f32"],
  ["by mma tile (64, 64, 16) warps (2, 2) stages 4 swizzle 64", [1000, 776, 330], "f32"],
  ["by wgmma tile (128, 256, 32) warps (8, 1) stages 4 swizzle 128", [1024, 1024, 1024], "f32"],
  ["by wgmma tile (64, 40, 32) warps (4, 1) stages 8 swizzle 128 swapped", [40, 776, 328], "f32"],
  ["by fma tile (128, 128, 8) warps (4, 2) stages 3 swizzle 0", [1024, 1024, 1024], "f32"],
  ["by fma tile (32, 64, 16) warps (2, 1) stages 4 swizzle 0", [200, 333, 77], "f32"],
  // Of so few steps an assembler that may copies all out, and spills.
  ["by fma tile (32, 64, 8) warps (2, 2) stages 6 swizzle 0", [3136, 256, 64], "f32"],
];

/** Operands in either order, in every form of a stream: panels of 64, 32 and 16 neighbours. */
export const turned: readonly (readonly [how: string, equation: string, given: Given])[] = [
  [
    "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2",
    "i k, k j -> i j",
    [4096, 4096, 4096],
  ],
  [
    "by wgmma tile (256, 128, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2",
    "k i, j k -> i j",
    [4096, 4096, 4096],
  ],
  [
    "by wgmma tile (128, 192, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2",
    "k i, k j -> i j",
    [1000, 776, 331],
  ],
  [
    "by wgmma tile (256, 96, 64) warps (8, 1) stages 5 swizzle 128 group 4",
    "k i, k j -> i j",
    [1000, 776, 328],
  ],
  [
    "by wgmma tile (64, 48, 64) warps (4, 1) stages 16 swizzle 128",
    "i k, k j -> i j",
    [64, 6144, 4096],
  ],
  [
    "by wgmma tile (64, 16, 64) warps (4, 1) stages 16 swizzle 128 swapped",
    "i k, k j -> i j",
    [16, 4096, 4096],
  ],
  [
    "by wgmma tile (128, 256, 64) warps (8, 1) stages 3 swizzle 128 group 8 results 4 blocks 132",
    "i k, k j -> i j",
    [2048, 4096, 192],
  ],
  [
    "by wgmma tile (128, 128, 64) warps (4, 1) stages 4 swizzle 128 results 4 blocks 132 teams 2",
    "k i, k j -> i j",
    [2048, 2048, 256],
  ],
  [
    "by wgmma tile (64, 64, 64) warps (4, 1) stages 8 swizzle 128 parts 2",
    "k i, k j -> i j",
    [64, 4096, 4096],
  ],
  [
    "by wgmma tile (128, 192, 64) warps (8, 1) stages 4 swizzle 128 group 6 blocks 132 parts 2",
    "i k, k j -> i j",
    [1536, 3072, 512],
  ],
  [
    "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2 cluster 2",
    "i k, k j -> i j",
    [4096, 4096, 4096],
  ],
  [
    "by wgmma tile (128, 128, 64) warps (8, 1) stages 4 swizzle 128 results 2 blocks 120",
    "b i k, b k j -> b i j",
    [512, 512, 512],
  ],
];

/** Of eight matrices, each of the batch takes one that data says. */
export const grouped: readonly (readonly [
  how: string,
  equation: string,
  right: readonly number[],
])[] = [
  [
    "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 results 2",
    "g i k, g j k -> g i j",
    [8, 512, 512],
  ],
  [
    "by wgmma tile (64, 128, 64) warps (4, 1) stages 4 swizzle 128 parts 2",
    "g i k, g j k -> g i j",
    [8, 328, 512],
  ],
  [
    "by wgmma tile (64, 128, 64) warps (4, 1) stages 4 swizzle 128 results 2",
    "g i k, g k j -> g i j",
    [8, 512, 488],
  ],
  [
    "by mma tile (128, 128, 64) warps (2, 4) stages 3 swizzle 128",
    "g i k, g k j -> g i j",
    [8, 512, 488],
  ],
];

/**
 * Products of odd sizes as the search chooses them, in all of their kernels: loops that an assembler would copy out
 * whole, and depths in parts of which the last ends early.
 */
export const odd: readonly (readonly [Given, "f32" | "bf16" | "f16"])[] = [
  [[331, 517, 203], "f32"],
  [[331, 517, 250], "f32"],
  [[331, 517, 255], "f32"],
  [[257, 31, 20_011], "f32"],
  [[64, 64, 10_007], "f32"],
  [[64, 64, 30_011], "bf16"],
  [[3, 5, 300_007], "f16"],
];

/** Products by streams of copies whose lines are filled up to whole 16 bytes first. */
export const filledUp: readonly (readonly [Given, "bf16" | "f16"])[] = [
  [[2047, 2049, 2051], "bf16"],
  [[2048, 2048, 1999], "f16"],
];

/** Operands of 8 bits: columns in two parts, rows in two, columns as rows. */
export const ofBytes = [
  ["(128, 192, 128) warps (8, 1) stages 4 swizzle 128 group 8 results 2", "f8e4m3fn"],
  ["(256, 128, 128) warps (8, 1) stages 4 swizzle 128 results 2 blocks 12", "f8e5m2"],
  ["(256, 16, 128) warps (8, 1) stages 6 swizzle 128 swapped", "f8e4m3fn"],
] as const;

/** The same by warps, of two types; a shape that is ragged, one that goes through registers. */
export const byWarps = [
  ["(128, 128, 64) warps (2, 4) stages 4 swizzle 64", "f8e4m3fn", "f8e4m3fn", 336],
  ["(64, 128, 64) warps (2, 2) stages 4 swizzle 64", "f8e4m3fn", "f8e5m2", 336],
  ["(64, 128, 128) warps (2, 4) stages 2 swizzle 128", "f8e4m3fn", "f8e4m3fn", 336],
  ["(64, 32, 128) warps (2, 1) stages 4 swizzle 128", "f8e5m2", "f8e4m3fn", 336],
  ["(32, 16, 32) warps (1, 1) stages 2 swizzle 0", "f8e5m2", "f8e5m2", 337],
] as const;

/** Architectures whose warps multiply floats of 8 bits, as they are or widened by the assembler. */
export const withByteFloats = ["sm_89", "sm_90a", "sm_100a", "sm_120a"];

/** Bytes with and without sign, summed in i32: results as they are, and rounded to bytes again. */
export const ofIntegers = [
  ["by mma tile (128, 128, 64) warps (2, 4) stages 4 swizzle 64", "u8", "i8", "i8"],
  ["by mma tile (64, 64, 128) warps (2, 2) stages 3 swizzle 128", "i8", "i8", "i32"],
  ["by mma tile (32, 32, 32) warps (1, 1) stages 2 swizzle 0", "i8", "u8", "i32"],
  ["by wgmma tile (128, 256, 128) warps (8, 1) stages 4 swizzle 128 group 8", "u8", "i8", "i32"],
  ["by wgmma tile (128, 160, 128) warps (8, 1) stages 4 swizzle 128 blocks 12", "i8", "i8", "i8"],
  ["by wgmma tile (64, 16, 128) warps (4, 1) stages 8 swizzle 128 swapped", "u8", "u8", "i32"],
] as const;

/** Operands that are made on their way: of few rows and many, ragged, across the depth. */
export const made = [
  ["bytes", "by mma tile (16, 128, 64) warps (1, 4) stages 2 swizzle 128", [16, 512, 120], "bf16"],
  ["bytes", "by mma tile (128, 128, 64) warps (2, 4) stages 3 swizzle 128", [200, 136, 328], "f16"],
  ["bytes", "by fma tile (32, 64, 16) warps (2, 1) stages 4 swizzle 0", [200, 133, 76], "f32"],
  ["nibbles", "by mma tile (64, 64, 32) warps (2, 2) stages 4 swizzle 64", [40, 72, 320], "bf16"],
  ["relu", "by mma tile (64, 64, 32) warps (2, 2) stages 4 swizzle 64", [57, 71, 104], "f16"],
  ["cast", "by mma tile (64, 128, 64) warps (2, 4) stages 3 swizzle 128", [200, 136, 328], "bf16"],
  ["cast", "by mma tile (32, 32, 32) warps (1, 1) stages 2 swizzle 0", [57, 71, 103], "bf16"],
] as const;

export const gated = [
  "by wgmma tile (128, 128, 64) warps (8, 1) stages 6 swizzle 128 group 8 results 2",
  "by wgmma tile (128, 160, 64) warps (8, 1) stages 5 swizzle 128 group 8 results 5 blocks 40",
  "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 results 2 ahead",
] as const;

/** Results that leave their tiles in heads, or folded. */
export const finished = [
  ["heads", "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2"],
  ["heads", "by wgmma tile (128, 128, 64) warps (8, 1) stages 5 swizzle 128 results 4 blocks 40"],
  ["heads", "by mma tile (128, 64, 64) warps (4, 2) stages 3 swizzle 128"],
  ["largest", "by wgmma tile (128, 96, 64) warps (8, 1) stages 4 swizzle 128 group 8"],
] as const;
