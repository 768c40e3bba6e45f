/**
 * PTX against NVIDIA's assembler: each program of the suite for each architecture that it claims assembles
 * without spills and without a word about lost performance, stays within the registers that it states, and has
 * in machine code exactly the matrix instructions, waits and tensor copies that the program says (counted
 * here from the statements, there by nvdisasm). What the emitter estimates of registers is compared with what ptxas
 * takes: by kernel, and in the middle of all. An architecture that lacks what a program needs refuses it by
 * name.
 */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { emitPtx } from "../../src/emit/ptx/emit-program.ts";
import type { PtxCounts, PtxModule } from "../../src/emit/ptx/ptx-module.ts";
import type { Kernel, Program } from "../../src/program/program.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import type { Statement } from "../../src/program/statement.ts";
import { unrollLoops } from "../../src/program/unroll.ts";
import { childBodies } from "../../src/program/walk.ts";
import { formatDiagnostic } from "../../src/support/diagnostic.ts";
import { architectures } from "../../src/target/architectures/index.ts";
import { type Campaign, type Finding, passed } from "../campaign.ts";
import {
  type AttentionCase,
  attentionText,
  chosenAttentionText,
} from "../ptx/attention-programs.ts";
import { type GemmSchedule, gemmProgram } from "../ptx/gemm-program.ts";
import { type Judges, judge } from "../ptx/judge.ts";
import { Disassembler, limited } from "../ptx/machine-code.ts";
import { openAttentions, openProducts } from "../ptx/open-cases.ts";
import { productText } from "../ptx/product-programs.ts";
import {
  countingText,
  openMapText,
  type RowsCase,
  rowsText,
  type ScanCase,
  type SelectionCase,
  scanText,
  selectionText,
} from "../ptx/row-programs.ts";
import { type ScatterCase, scatterText } from "../ptx/scatter-programs.ts";
import { oddProgram, rowNormProgram, warpGemmProgram } from "../ptx/simt-programs.ts";
import { type TurnCase, turnText } from "../ptx/turn-programs.ts";
import { casesOf, programText, valueTypes } from "../ptx/value-cases.ts";
import { findNvdisasm, findPtxas } from "../ptxas.ts";

const targets = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"] as const;

interface Entry {
  readonly name: string;
  readonly text: () => string;
  /** Architectures that have what it needs; the others have to refuse it. */
  readonly claims: readonly string[];
}

function golden(name: string): string {
  return readFileSync(join(import.meta.dirname, `../../test/golden/program/${name}.txt`), "utf8");
}

const schedule: GemmSchedule = {
  consumers: 2,
  columns: 256,
  stages: 4,
  cluster: 2,
  clusters: 66,
  group: 8,
  registers: [24, 240],
};

function gemm(name: string, change: Partial<GemmSchedule>, size = 4096): Entry {
  const shape = { m: size, n: size, k: size };
  const text = (): string => gemmProgram(shape, { ...schedule, ...change });
  return { name: `gemm ${name}`, text, claims: ["sm_90a"] };
}

type Given = readonly [rows: number, columns: number, depth: number];

/** Products as the compiler lowers them: how, y = x w^T of what size, and of what type. */
const products: readonly (readonly [how: string, given: Given, dtype: "f32" | "bf16" | "f16"])[] = [
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
const turned: readonly (readonly [how: string, equation: string, given: Given])[] = [
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

/** The axes of an operand of a product, with eight problems where there is a batch. */
function axesOf(letters: string, [m, n, k]: Given): readonly number[] {
  const extents: Readonly<Record<string, number>> = { b: 8, i: m, j: n, k };
  return letters
    .trim()
    .split(" ")
    .map((letter) => extents[letter]!);
}

/** Of eight matrices, each of the batch takes one that data says. */
const grouped: readonly (readonly [how: string, equation: string, right: readonly number[]])[] = [
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

function product(how: string, [m, n, k]: Given, dtype: "f32" | "bf16" | "f16"): Entry {
  const equation = "i k, j k -> i j";
  const text = (): string => productText({ equation, left: [m, k], right: [n, k], dtype, how });
  return {
    name: `product ${m}x${n}x${k} ${how}`,
    text,
    claims: how.startsWith("by wgmma") ? ["sm_90a"] : targets,
  };
}

/** f32 products of odd sizes as the search chooses them: loops that an assembler would copy out whole. */
const odd: readonly Given[] = [
  [331, 517, 203],
  [331, 517, 250],
  [331, 517, 255],
];

/** Rows as the compiler lowers them; exchanges of a warp and pairs of narrow floats are everywhere. */
const rows: readonly RowsCase[] = [
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

/** Few long lines, whose last parts are shorter, along the nearest axis and beside each other, and many. */
const scans: readonly ScanCase[] = [
  { dtype: "f32", shape: [1, 1_000_001], axis: 1, reverse: true },
  { dtype: "bf16", shape: [2, 100_003], axis: 1, reverse: false },
  { dtype: "f32", shape: [100_001, 8], axis: 0, reverse: false },
  { dtype: "i64", shape: [3, 50_257, 7], axis: 1, reverse: true },
  { dtype: "f16", shape: [4097, 4096], axis: 0, reverse: false },
  { dtype: "f32", shape: [16, 197, 768], axis: 1, reverse: false },
];

/** Updates that meet: in parts, with a reduction and without, and by the threads of their slices alone. */
const scatters: readonly ScatterCase[] = [
  { dtype: "f32", reduction: "add", updates: 20_000, shape: [5_000, 64] },
  { dtype: "bf16", reduction: "max", updates: 3_000, shape: [300, 8] },
  { dtype: "i64", reduction: "none", updates: 20_000, shape: [5_000, 1] },
  { dtype: "f32", reduction: "mul", updates: 9, shape: [40, 96] },
];

/** Transposes: of each width of elements, in whole tiles and cut ones, and with an operand that lies as the results. */
const turns: readonly TurnCase[] = [
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
const selections: readonly SelectionCase[] = [
  { dtype: "f32", shape: [4096, 8192], k: 50 },
  { dtype: "bf16", shape: [2048, 32_000], k: 40 },
  { dtype: "i32", shape: [4096, 1000], k: 900 },
];

/** The same with all other kernels: lines in groups whose firsts have no vectors, scanned in many turns. */
const selected: readonly SelectionCase[] = [{ dtype: "bf16", shape: [4, 50_000], k: 1000 }];

/** Attention as the compiler lowers it. */
const square = { heads: 4, groups: 4, rows: 512, columns: 512, mask: false } as const;
const attentions: readonly AttentionCase[] = [
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
const chosenAttentions: readonly Omit<AttentionCase, "how">[] = [
  { ...long, depth: 128, causal: false, mask: false },
  { ...long, rows: 2048, columns: 2048, depth: 128, causal: false, mask: false },
  { ...long, depth: 128, causal: false, mask: true },
  { ...long, depth: 128, causal: true, mask: true },
  { ...long, depth: 256, causal: true, mask: false },
  // Of a triangle whose last rows are no whole tile: warps hold their bounds as well.
  { ...long, rows: 1000, columns: 1000, depth: 96, causal: true, mask: false },
  { ...long, rows: 2000, columns: 2000, depth: 96, causal: true, mask: false },
];

/** Operands of 8 bits: columns in two parts, rows in two, columns as rows. */
const ofBytes = [
  ["(128, 192, 128) warps (8, 1) stages 4 swizzle 128 group 8 results 2", "f8e4m3fn"],
  ["(256, 128, 128) warps (8, 1) stages 4 swizzle 128 results 2 blocks 12", "f8e5m2"],
  ["(256, 16, 128) warps (8, 1) stages 6 swizzle 128 swapped", "f8e4m3fn"],
] as const;

/** The same by warps, of two types; a shape that is ragged, one that goes through registers. */
const byWarps = [
  ["(128, 128, 64) warps (2, 4) stages 4 swizzle 64", "f8e4m3fn", "f8e4m3fn", 336],
  ["(64, 128, 64) warps (2, 2) stages 4 swizzle 64", "f8e4m3fn", "f8e5m2", 336],
  ["(64, 128, 128) warps (2, 4) stages 2 swizzle 128", "f8e4m3fn", "f8e4m3fn", 336],
  ["(64, 32, 128) warps (2, 1) stages 4 swizzle 128", "f8e5m2", "f8e4m3fn", 336],
  ["(32, 16, 32) warps (1, 1) stages 2 swizzle 0", "f8e5m2", "f8e5m2", 337],
] as const;

/** Architectures whose warps multiply floats of 8 bits, as they are or widened by the assembler. */
const withByteFloats = ["sm_89", "sm_90a", "sm_100a", "sm_120a"];

/** Bytes with and without sign, summed in i32: results as they are, and rounded to bytes again. */
const ofIntegers = [
  ["by mma tile (128, 128, 64) warps (2, 4) stages 4 swizzle 64", "u8", "i8", "i8"],
  ["by mma tile (64, 64, 128) warps (2, 2) stages 3 swizzle 128", "i8", "i8", "i32"],
  ["by mma tile (32, 32, 32) warps (1, 1) stages 2 swizzle 0", "i8", "u8", "i32"],
  ["by wgmma tile (128, 256, 128) warps (8, 1) stages 4 swizzle 128 group 8", "u8", "i8", "i32"],
  ["by wgmma tile (128, 160, 128) warps (8, 1) stages 4 swizzle 128 blocks 12", "i8", "i8", "i8"],
  ["by wgmma tile (64, 16, 128) warps (4, 1) stages 8 swizzle 128 swapped", "u8", "u8", "i32"],
] as const;

/** Operands that are made on their way: of few rows and many, ragged, across the depth. */
const made = [
  ["bytes", "by mma tile (16, 128, 64) warps (1, 4) stages 2 swizzle 128", [16, 512, 120], "bf16"],
  ["bytes", "by mma tile (128, 128, 64) warps (2, 4) stages 3 swizzle 128", [200, 136, 328], "f16"],
  ["bytes", "by fma tile (32, 64, 16) warps (2, 1) stages 4 swizzle 0", [200, 133, 76], "f32"],
  ["nibbles", "by mma tile (64, 64, 32) warps (2, 2) stages 4 swizzle 64", [40, 72, 320], "bf16"],
  ["relu", "by mma tile (64, 64, 32) warps (2, 2) stages 4 swizzle 64", [57, 71, 104], "f16"],
  ["cast", "by mma tile (64, 128, 64) warps (2, 4) stages 3 swizzle 128", [200, 136, 328], "bf16"],
  ["cast", "by mma tile (32, 32, 32) warps (1, 1) stages 2 swizzle 0", [57, 71, 103], "bf16"],
] as const;

const gated = [
  "by wgmma tile (128, 128, 64) warps (8, 1) stages 6 swizzle 128 group 8 results 2",
  "by wgmma tile (128, 160, 64) warps (8, 1) stages 5 swizzle 128 group 8 results 5 blocks 40",
  "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 results 2 ahead",
] as const;

/** Results that leave their tiles in heads, or folded. */
const finished = [
  ["heads", "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2"],
  ["heads", "by wgmma tile (128, 128, 64) warps (8, 1) stages 5 swizzle 128 results 4 blocks 40"],
  ["heads", "by mma tile (128, 64, 64) warps (4, 2) stages 3 swizzle 128"],
  ["largest", "by wgmma tile (128, 96, 64) warps (8, 1) stages 4 swizzle 128 group 8"],
] as const;

/** Architectures whose text has what a schedule of attention says. */
function claimsOf(how: string): readonly string[] {
  if (how.startsWith("by wgmma")) return ["sm_90a"];
  return how.includes("parts") ? ["sm_90a", "sm_100a", "sm_120a"] : targets;
}

const suite: readonly Entry[] = [
  gemm("128x256 in clusters of 2", {}),
  gemm("128x256", { cluster: 1, clusters: 132 }),
  gemm("128x128, 6 stages", { columns: 128, stages: 6 }),
  gemm("64x256, 5 stages", { consumers: 1, stages: 5, cluster: 1, registers: [40, 232] }),
  gemm("192x128, ragged", { consumers: 3, columns: 128, registers: [32, 160] }, 1000),
  gemm("128x64, 3 stages", { columns: 64, stages: 3 }, 776),
  { name: "golden pipelined", text: () => golden("matmul-pipelined"), claims: ["sm_90a"] },
  { name: "golden megakernel", text: () => golden("megakernel"), claims: targets },
  { name: "golden on CPU threads", text: () => golden("matmul-bias-relu-cpu"), claims: targets },
  {
    name: "golden launches that overlap",
    text: () => golden("dependents"),
    claims: ["sm_90a", "sm_100a", "sm_120a"],
  },
  { name: "gemm of warps", text: () => warpGemmProgram(512, 512, 512), claims: targets },
  ...products.map(([how, given, dtype]) => product(how, given, dtype)),
  ...odd.map(([m, n, k]) => ({
    name: `product ${m}x${n}x${k} of f32`,
    text: () =>
      productText({ equation: "i k, k j -> i j", left: [m, k], right: [k, n], dtype: "f32" }),
    claims: targets,
  })),
  ...turned.map(([how, equation, given]) => ({
    name: `product ${given.join("x")} ${equation} ${how}`,
    text: () => {
      const [left, right] = equation.split(/,|->/).map((letters) => axesOf(letters, given));
      return productText({ equation, left: left!, right: right!, dtype: "bf16", how });
    },
    claims: ["sm_90a"],
  })),
  ...ofBytes.map(([how, of]) => ({
    name: `product of ${of} ${how}`,
    text: () =>
      productText({
        ...{ equation: "i k, j k -> i j", left: [1000, 336], right: [776, 336], dtype: "bf16" },
        ...{ of, how: `by wgmma tile ${how}` },
      }),
    claims: ["sm_90a"],
  })),
  ...byWarps.map(([how, of, ofRight, depth]) => ({
    name: `product of ${of} and ${ofRight} by mma ${how}`,
    text: () =>
      productText({
        ...{ equation: "i k, j k -> i j", left: [1000, depth], right: [776, depth], dtype: "bf16" },
        ...{ of, ofRight, how: `by mma tile ${how}` },
      }),
    claims: withByteFloats,
  })),
  ...ofIntegers.map(([how, of, ofRight, dtype]) => ({
    name: `product of ${of} and ${ofRight} ${how}`,
    text: () =>
      productText({
        ...{ equation: "i k, j k -> i j", left: [1000, 336], right: [776, 336], dtype },
        ...{ of, ofRight, how },
      }),
    claims: how.startsWith("by wgmma") ? ["sm_90a"] : targets,
  })),
  ...grouped.map(([how, equation, right]) => ({
    name: `grouped product ${equation} ${how}`,
    text: () =>
      productText({
        ...{ equation, left: [40, 128, 512], right, dtype: "bf16", how },
        ...{ isPicked: true, isWeight: true },
      }),
    claims: how.startsWith("by wgmma") ? ["sm_90a"] : targets,
  })),
  ...made.map(([front, how, [m, n, k], dtype]) => ({
    name: `product ${m}x${n}x${k} of ${front} ${how}`,
    text: () =>
      productText({
        ...{ equation: "i k, j k -> i j", left: [m, k], right: [n, k], dtype, how, front },
      }),
    claims: targets,
  })),
  // Divisions of many results must not become calls beside wgmma; loads of operands stay inside the result.
  ...gated.map((how) => ({
    name: `gated product ${how}`,
    text: () =>
      productText({
        ...{ equation: "i k, j k -> i j", left: [1000, 320], right: [776, 320], dtype: "bf16" },
        ...{ how, behind: "gate" },
      }),
    claims: ["sm_90a"],
  })),
  ...finished.map(([behind, how]) => ({
    name: `product with ${behind} behind it, ${how}`,
    text: () =>
      productText({
        ...{ equation: "i k, j k -> i j", left: [1000, 320], right: [768, 320], dtype: "bf16" },
        ...{ how, behind },
      }),
    claims: how.startsWith("by wgmma") ? ["sm_90a"] : targets,
  })),
  ...rows.map((given) => ({
    name: `${given.op} ${given.dtype} ${given.how}`,
    text: () => rowsText(given),
    claims: given.how.includes("parts") ? ["sm_90a", "sm_100a", "sm_120a"] : targets,
  })),
  ...scans.map((given) => ({
    name: `sums up to each ${given.dtype} ${given.shape.join(" ")} along ${given.axis}, all kernels`,
    text: () => scanText(given),
    claims: targets,
  })),
  ...scatters.map((given) => ({
    name: `updates ${given.reduction} ${given.dtype} ${given.updates} ${given.shape.join(" ")}, all kernels`,
    text: () => scatterText(given),
    claims: targets,
  })),
  { name: "map of open extents", text: openMapText, claims: targets },
  ...turns.map((given) => ({
    name: `transpose ${given.dtype} ${given.shape.join(" ")}${given.added ? " added" : ""} ${given.how ?? "as chosen"}`,
    text: () => turnText(given),
    claims: targets,
  })),
  ...selections.map((given) => ({
    name: `first ${given.k} of ${given.dtype} ${given.shape.join(" ")}`,
    text: () => countingText(given),
    claims: targets,
  })),
  ...selected.map((given) => ({
    name: `first ${given.k} of ${given.dtype} ${given.shape.join(" ")}, all kernels`,
    text: () => selectionText(given),
    claims: targets,
  })),
  ...chosenAttentions.map((given) => ({
    name: `attention bounded ${given.depth} ${given.rows} ${given.causal ? "causal" : "full"}${given.mask ? " masked" : ""}`,
    text: () => chosenAttentionText(given),
    // Groups of warps multiply heads of multiples of 64 alone.
    claims: given.depth % 64 === 0 ? ["sm_90a"] : targets,
  })),
  ...attentions.map((given) => ({
    name: `attention ${given.dtype} ${given.depth} ${given.how}`,
    text: () => attentionText(given),
    claims: claimsOf(given.how),
  })),
  ...openProducts.map((given) => ({
    name: `open product ${given.equation} ${given.dtype} ${given.how}`,
    text: () => productText(given),
    claims: claimsOf(given.how!),
  })),
  ...openAttentions.map((given) => ({
    name: `open attention ${given.dtype} ${given.depth} ${given.how}`,
    text: () => attentionText(given),
    claims: claimsOf(given.how),
  })),
  { name: "row norm", text: () => rowNormProgram(4096), claims: targets },
  { name: "odd kernels", text: () => oddProgram, claims: targets },
];

interface Trial {
  readonly name: string;
  readonly text: () => string;
  readonly claimed: boolean;
  readonly target: string;
}

/** Of each program for every architecture; the operators of each type are dealt out over them. */
const programs: readonly (readonly Trial[])[] = [
  ...suite.map(({ name, text, claims }) => {
    const once = lazy(text);
    return targets.map((target) => ({
      name,
      text: once,
      target,
      claimed: claims.includes(target),
    }));
  }),
  ...valueTypes.map((dtype) =>
    targets.map((target, part) => {
      const text = (): string =>
        programText(casesOf(dtype).filter((_, i) => i % targets.length === part));
      return { name: `values of ${dtype}`, text, target, claimed: true };
    }),
  ),
];

/** A third of the programs behind another: neighbours are alike, so that each third has some of all kinds. */
const thirds = 3;
const trials = Array.from({ length: thirds }, (_, third) =>
  programs.filter((_, i) => i % thirds === third).flat(),
).flat();

/** Compiled and proved for the first of the architectures that ask. */
function lazy(text: () => string): () => string {
  let made: string | undefined;
  return () => {
    made ??= text();
    return made;
  };
}

/** What is estimated of registers over what ptxas took, of all kernels so far. */
const ofTaken: number[] = [];

export const ptx: Campaign = {
  name: "ptx",
  summary: "programs as PTX through ptxas and nvdisasm for every architecture they claim",
  targets: ["ptx"],
  defaultCount: trials.length,
  // Programs are made while the judges look at the last ones; machine code waits for more of its architecture.
  atOnce: 96,
  closing: () => describeEstimates(ofTaken),
  open: async () => {
    const [ptxas, nvdisasm] = [findPtxas(), findNvdisasm()];
    const limit = limited(1 + availableParallelism());
    const disassembler =
      nvdisasm.kind === "missing" ? undefined : new Disassembler(nvdisasm.path, limit);
    return async (seed) => {
      if (ptxas.kind === "missing") return { kind: ptxas.finding, reason: ptxas.reason };
      if (nvdisasm.kind === "missing") return { kind: nvdisasm.finding, reason: nvdisasm.reason };
      const judges = { ptxas: ptxas.path, disassembler: disassembler!, limit };
      return run(trials[seed % trials.length]!, judges);
    };
  },
};

async function run({ name, text, target, claimed }: Trial, judges: Judges): Promise<Finding> {
  const where = `${name} for ${target}`;
  const read = parseProgram(text());
  if (!read.ok) return failed(`${where}: ${read.diagnostics.map(formatDiagnostic).join(" ")}`);
  const architecture = architectures.get(target)!;
  const emitted = emitPtx(read.value, architecture);
  if (!emitted.ok) {
    const said = emitted.diagnostics.map(formatDiagnostic).join(" ");
    const isRefusal = emitted.diagnostics.every((d) => d.code === "EMT001");
    return !claimed && isRefusal ? passed : failed(`${where}: ${said}`);
  }
  if (!claimed) return failed(`${where}: emitted, although it needs what the target lacks`);
  const wrong =
    countsDiffer(read.value, emitted.value) ??
    (await judge(emitted.value, architecture, judges, (x) => void ofTaken.push(x)));
  return wrong === undefined ? passed : failed(`${where}: ${wrong}`);
}

/** Estimates of so many kernels say something of their middle, which may be a fifth off. */
const [enough, mostOff] = [100, 1.2] as const;

function describeEstimates(found: readonly number[]): readonly Finding[] {
  if (found.length === 0) return [];
  const sorted = found.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))]!;
  const told = [0, 0.05, 0.5, 0.95, 1].map((share) => at(share).toFixed(2)).join(", ");
  const note =
    `registers as estimated over those that ptxas took, ${found.length} kernels: ` +
    `${told} (least, of a twentieth, middle, of all but a twentieth, most)`;
  const isOff = at(0.5) > mostOff || at(0.5) < 1 / mostOff;
  return [found.length >= enough && isOff ? failed(note) : { kind: "passed", note }];
}

function failed(reason: string): Finding {
  return { kind: "failed", reason };
}

/** The counts that the emitter states against those of the statements. */
function countsDiffer(program: Program, module: PtxModule): string | undefined {
  for (const kernel of module.kernels) {
    const source = program.kernels.find((k) => k.name === kernel.name)!;
    const wanted = JSON.stringify(countStatements(source));
    const stated = JSON.stringify(kernel.counts);
    if (wanted !== stated)
      return `kernel ${kernel.name} states ${stated}, the program says ${wanted}`;
  }
  return undefined;
}

function countStatements(kernel: Kernel): PtxCounts {
  const counts = {
    wgmma: 0,
    wgmmaWaits: 0,
    mma: 0,
    tensorCopies: 0,
    peerStores: 0,
    asyncCopies: 0,
    matrixLoads: 0,
  };
  for (const role of unrollLoops(kernel).roles) {
    const groups = new Set<string>();
    const visit = (body: readonly Statement[]): void => {
      for (const s of body) {
        if (s.kind === "intrinsic") {
          if (s.intrinsic.startsWith("wgmma.")) counts.wgmma++;
          if (s.intrinsic.startsWith("mma.")) counts.mma++;
          if (/^bulk\.(load|store)/.test(s.intrinsic)) counts.tensorCopies++;
          if (s.intrinsic.startsWith("peer.store")) counts.peerStores++;
          if (s.intrinsic === "cp.async") counts.asyncCopies++;
          if (s.intrinsic.startsWith("ldmatrix.")) counts.matrixLoads++;
          if (s.intrinsic.startsWith("wgmma.") && s.completion.kind === "group") {
            groups.add(s.completion.group);
          }
        }
        if (s.kind === "waitGroup" && groups.has(s.group)) counts.wgmmaWaits++;
        const bodies = childBodies(s);
        visit(isFirstOrNext(s) ? bodies[1]! : bodies.flat());
      }
    };
    visit(role.body);
  }
  return counts;
}

/** A multiplication that forgets the old sums or keeps them, by a condition: one instruction. */
function isFirstOrNext(s: Statement): boolean {
  if (s.kind !== "if" || s.then.length !== 1 || s.else.length !== 1) return false;
  const [a, b] = [s.then[0]!, s.else[0]!];
  if (a.kind !== "intrinsic" || b.kind !== "intrinsic") return false;
  return a.intrinsic.startsWith("wgmma.set.") && b.intrinsic === a.intrinsic.replace("set.", "");
}
