/** Rows, scans, updates, transposes and firsts of the suite: what, how large and how. */
import type { FoldCase, GroupNormCase, RowsCase, ScanCase, SelectionCase } from "./row-programs.ts";
import type { ScatterCase } from "./scatter-programs.ts";
import type { TurnCase } from "./turn-programs.ts";

/** Rows as the compiler lowers them; exchanges of a warp and pairs of narrow floats are everywhere. */
export const rows: readonly RowsCase[] = [
  {
    op: "softmax",
    shape: [8192, 8192],
    dtype: "f32",
    how: "threads 256 lanes 4 together 1 keep registers",
  },
  {
    op: "layerNorm",
    shape: [1000, 1000],
    dtype: "bf16",
    how: "threads 128 lanes 8 together 2 keep operands",
  },
  {
    op: "rmsNorm",
    shape: [77, 4099],
    dtype: "f16",
    how: "threads 512 lanes 1 together 1 keep memory",
  },
  {
    op: "cumulative",
    shape: [8192, 8192],
    dtype: "f32",
    how: "threads 256 lanes 4 together 1 keep registers",
  },
  {
    op: "cumulative",
    shape: [1024, 65_536],
    dtype: "bf16",
    how: "threads 256 lanes 8 together 1 keep memory",
  },
  // All threads that a block may have: what 32 warps leave each other is half of their registers.
  {
    op: "cumulative",
    shape: [512, 65_536],
    dtype: "f32",
    how: "threads 1024 lanes 4 together 1 keep memory",
  },
  {
    op: "cumulative",
    shape: [999, 1000],
    dtype: "i64",
    how: "threads 64 lanes 2 together 4 keep registers",
  },
  {
    op: "cumulative",
    shape: [4096, 4096],
    across: true,
    dtype: "f32",
    how: "threads 16 lanes 1 together 32 across items 16 keep memory",
  },
  {
    op: "cumulative",
    shape: [1000, 777],
    across: true,
    dtype: "bf16",
    how: "threads 32 lanes 1 together 8 across items 8 keep registers",
  },
  {
    op: "cumulative",
    shape: [4100, 333],
    across: true,
    dtype: "i64",
    how: "threads 64 lanes 1 together 4 across items 8 keep memory",
  },
  {
    op: "argReduce",
    shape: [2048, 32_000],
    dtype: "bf16",
    how: "threads 512 lanes 8 together 1 keep memory",
  },
  {
    op: "argReduce",
    shape: [2048, 4096],
    dtype: "i64",
    how: "threads 128 lanes 2 together 2 keep memory",
  },
  {
    op: "softmax",
    shape: [2048, 1024],
    across: true,
    dtype: "f32",
    how: "threads 32 lanes 4 together 8 across keep registers",
  },
  {
    op: "softmax",
    shape: [2040, 1000],
    across: true,
    dtype: "bf16",
    how: "threads 64 lanes 8 together 4 across keep memory",
  },
  {
    op: "softmax",
    shape: [2048, 1024],
    across: true,
    dtype: "bf16",
    how: "threads 16 lanes 8 together 8 across parts 8 keep registers",
  },
  {
    op: "argReduce",
    shape: [2000, 4096],
    across: true,
    dtype: "bf16",
    how: "threads 8 lanes 8 together 32 across keep memory",
  },
  {
    op: "layerNorm",
    shape: [64, 50_000],
    dtype: "f32",
    how: "threads 512 lanes 4 together 1 parts 8 keep operands",
  },
];

/** Norms whose scales are read at the channel of each element: of groups that vectors do not divide, in registers. */
export const groupNorms: readonly GroupNormCase[] = [
  {
    ...{ dtype: "f16", shape: [2, 96, 33, 35], groups: 8 },
    how: "threads 512 lanes 4 together 1 keep registers",
  },
  {
    ...{ dtype: "bf16", shape: [7, 48, 97, 17], groups: 4 },
    how: "threads 1024 lanes 4 together 1 keep operands",
  },
  {
    ...{ dtype: "f16", shape: [2, 32, 127, 37], groups: 2 },
    how: "threads 1024 lanes 4 together 1 parts 8 keep registers",
  },
];

/** Few long lines, whose last parts are shorter, along the nearest axis and beside each other, and many. */
export const scans: readonly ScanCase[] = [
  { dtype: "f32", shape: [1, 1_000_001], axis: 1, reverse: true },
  { dtype: "bf16", shape: [2, 100_003], axis: 1, reverse: false },
  { dtype: "f32", shape: [100_001, 8], axis: 0, reverse: false },
  { dtype: "i64", shape: [3, 50_257, 7], axis: 1, reverse: true },
  { dtype: "f16", shape: [4097, 4096], axis: 0, reverse: false },
  { dtype: "f32", shape: [16, 197, 768], axis: 1, reverse: false },
  { dtype: "f32", shape: [13, 59_085, 1], axis: 1, reverse: true },
];

/** Folds of all elements, over axes that no number of parts divides, and of the first axis, with a few results. */
export const folds: readonly FoldCase[] = [
  { dtype: "f32", shape: [999, 1001], axes: [0, 1] },
  { dtype: "bf16", shape: [7, 10_007], axes: [0, 1] },
  { dtype: "f16", shape: [101, 103, 107], axes: [0, 1, 2] },
  { dtype: "f32", shape: [10_007, 37], axes: [0] },
  // Narrower than what threads exchange: along rows that vectors divide and do not, along columns, of all elements.
  { kind: "or", dtype: "bool", shape: [8192, 4000], axes: [1] },
  { kind: "and", dtype: "bool", shape: [512, 1501], axes: [1] },
  { kind: "or", dtype: "bool", shape: [10_007, 37], axes: [0] },
  { kind: "max", dtype: "u8", shape: [999, 1001], axes: [0, 1] },
  { kind: "max", dtype: "u8", shape: [8192, 4000], axes: [1] },
  { kind: "min", dtype: "i8", shape: [10_007, 48], axes: [0] },
  { kind: "sum", dtype: "i8", shape: [512, 1500], axes: [1] },
];

/** Updates that meet: in parts, with a reduction and without, and by the threads of their slices alone. */
export const scatters: readonly ScatterCase[] = [
  { dtype: "f32", reduction: "add", updates: 20_000, shape: [5_000, 64] },
  { dtype: "bf16", reduction: "max", updates: 3_000, shape: [300, 8] },
  { dtype: "i64", reduction: "none", updates: 20_000, shape: [5_000, 1] },
  { dtype: "f32", reduction: "mul", updates: 9, shape: [40, 96] },
];

/** Transposes: of each width of elements, in whole tiles and cut ones, and with an operand that lies as the results. */
export const turns: readonly TurnCase[] = [
  { dtype: "f32", shape: [32, 1024, 2048], how: "tile (32, 32) threads 128 lanes (4, 4)" },
  { dtype: "f32", shape: [33, 1001, 777], how: "tile (64, 64) threads 256 lanes (1, 1)" },
  { dtype: "bf16", shape: [64, 1024, 2048], how: "tile (64, 64) threads 128 lanes (8, 8)" },
  {
    dtype: "bf16",
    shape: [8, 1000, 776],
    added: true,
    how: "tile (128, 64) threads 256 lanes (8, 8)",
  },
  { dtype: "i8", shape: [64, 2048, 2048], how: "tile (128, 128) threads 256 lanes (16, 16)" },
  { dtype: "i64", shape: [1022, 1026], how: "tile (32, 64) threads 128 lanes (2, 2)" },
  { dtype: "bf16", shape: [64, 1024, 2048] },
  { dtype: "f16", shape: [12, 513, 255], added: true },
  { dtype: "i8", shape: [16, 2000, 1200] },
];

/** Counts of the first k: of lines that are cut in groups, that a warp keeps, that a block keeps. */
export const selections: readonly SelectionCase[] = [
  { dtype: "f32", shape: [4096, 8192], k: 50 },
  { dtype: "bf16", shape: [2048, 32_000], k: 40 },
  { dtype: "i32", shape: [4096, 1000], k: 900 },
];

/** The same with all other kernels: lines in groups whose firsts have no vectors, scanned in many turns. */
export const selected: readonly SelectionCase[] = [
  { dtype: "bf16", shape: [4, 50_000], k: 1000 },
  { dtype: "f32", shape: [3, 50_021], k: 300 },
  // Digits and turns of scans meet up to 40 times in line, in blocks of 512 threads and of 256.
  { dtype: "f32", shape: [30, 55_858], k: 1000 },
  { dtype: "bf16", shape: [30, 6667], k: 700 },
  { dtype: "u8", shape: [500, 16_132], k: 500 },
];
