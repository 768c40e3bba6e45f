/**
 * The suites' kernels at reduced sizes, each run once on random inputs with poisoned outputs: short enough
 * for compute-sanitizer. One family a process, because a tool that fails on an instruction takes the process
 * along: `compute-sanitizer --tool racecheck --error-exitcode 9 node reduced.mjs --family mma`. Without a
 * family it names them; `all` is every one. With `--interpret` behind the family the program interpreter runs it, on any machine;
 * with `--compare` both do, and every element of the outputs has to agree (the interpreter takes minutes for some);
 * with `--compile` it ends once the program is made and validated.
 * Ends with `N passed, N failed`.
 */
import { type AttentionCase, attentionText } from "../../campaign/ptx/attention-programs.ts";
import { type ProductCase, productText } from "../../campaign/ptx/product-programs.ts";
import {
  type RowsCase,
  rowsText,
  type SelectionCase,
  selectionText,
} from "../../campaign/ptx/row-programs.ts";
import { type TurnCase, turnText } from "../../campaign/ptx/turn-programs.ts";
import { randomKernel } from "../../campaign/random-kernel.ts";
import { compileModel } from "../../src/compile.ts";
import { noWeights } from "../../src/interp/graph.ts";
import { runProgram } from "../../src/interp/program.ts";
import type { Buffer, Program } from "../../src/program/program.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import { createCudaInstance } from "../../src/runtime/cuda/cuda-instance.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { type DType, dtypes, storageBytes } from "../../src/semantics/dtype.ts";
import { decodeFloat, encodeFloat } from "../../src/semantics/float-codec.ts";
import { evaluate } from "../../src/semantics/index-expr.ts";
import { Rng } from "../../src/support/rng.ts";
import { targets } from "../../src/target/index.ts";
import { take } from "./ptx-launch.ts";

const [m, n, k] = [272, 264, 192];

/** Problems of a batch with the second or first of two matrices each. */
const grouped = {
  ...{ equation: "g i k, g j k -> g i j", left: [3, 72, k], right: [2, n, k] },
  isPicked: true,
};

function product(how: string, more: Partial<ProductCase> = {}): () => string {
  const matrix = {
    equation: "i k, j k -> i j",
    left: [m, k],
    right: [n, k],
    dtype: "bf16",
  } as const;
  return () => productText({ ...matrix, how, ...more });
}

/** The product with its operands in the order that the equation says; three problems where there is a batch. */
function turned(equation: string, how: string, depth: number = k): () => string {
  const extents: Readonly<Record<string, number>> = { b: 3, i: m, j: n, k: depth };
  const [left, right] = equation
    .split(/, | -> /)
    .map((letters) => letters.split(" ").map((letter) => extents[letter]!));
  return product(how, { equation, left: left!, right: right! });
}

const heads = { heads: 2, groups: 1, rows: 200, columns: 200, mask: false, dtype: "bf16" } as const;

function attention(how: string, more: Pick<AttentionCase, "depth" | "causal">): () => string {
  return () => attentionText({ ...heads, ...more, how });
}

/** The same with columns up to a length that is data. */
function lengths(how: string, more: Pick<AttentionCase, "depth" | "causal">): () => string {
  return () => attentionText({ ...heads, ...more, lengths: true, how });
}

/** Tokens of sequences behind each other; warpgroups take whole tiles of them. */
function packed(how: string, depth: number, tokens: number): () => string {
  const sizes = { ...heads, rows: tokens, columns: tokens };
  return () => attentionText({ ...sizes, causal: false, depth, packed: true, how });
}

function rows(op: RowsCase["op"], dtype: RowsCase["dtype"], how: string, length: number) {
  return () => rowsText({ op, dtype, how, shape: [37, length] });
}

function transposed(dtype: TurnCase["dtype"], how: string, shape: readonly number[], added?: true) {
  return () => turnText({ dtype, how, shape, ...(added && { added }) });
}

/** Along the first axis. */
function across(op: RowsCase["op"], dtype: RowsCase["dtype"], how: string, length: number) {
  return () => rowsText({ op, dtype, how, across: true, shape: [120, length] });
}

/** Rows of which some are cut in groups first. */
function first(k: number, dtype: SelectionCase["dtype"], length: number) {
  return () => selectionText({ k, dtype, shape: [3, length] });
}

/** Whatever the compiler makes of them. */
function compiled(seeds: readonly number[]): readonly (() => string | Program)[] {
  const target = targets.get("h200")!;
  return seeds.map((seed) => () => {
    const { graph } = randomKernel(seed);
    return take(compileModel({ graph, weights: noWeights }, { target })).plan.program;
  });
}

type Parameters = Readonly<Record<string, number>>;

/** One case: its program, and the sizes that it runs with where some are open. */
type Case = (() => string | Program) & { readonly sizes?: Parameters };

/** Attention of open batch and length, for up to 8 sequences of 512 tokens, at each of some sizes. */
function openAttention(
  how: string,
  more: Pick<AttentionCase, "depth" | "causal"> & Partial<Pick<AttentionCase, "mask" | "groups">>,
  all: readonly Parameters[],
): readonly Case[] {
  const most = { ...heads, groups: 2, rows: 512, columns: 512, open: true } as const;
  return all.map((sizes) =>
    Object.assign(() => attentionText({ ...most, ...more, how }), { sizes }),
  );
}

/** A product whose rows are open, up to 512. */
function openRows(
  how: string,
  all: readonly number[],
  behind?: ProductCase["behind"],
): readonly Case[] {
  const given = {
    ...(behind && { behind }),
    equation: "i k, j k -> i j",
    left: ["M", k],
    right: [n, k],
    open: { M: 512 },
  };
  return all.map((M) =>
    Object.assign(() => productText({ ...given, dtype: "bf16", how }), { sizes: { M } }),
  );
}

const families: Readonly<Record<string, readonly Case[]>> = {
  fma: [
    product("by fma tile (64, 64, 8) warps (2, 2) stages 3 swizzle 0", { dtype: "f32" }),
    product("by fma tile (32, 64, 16) warps (2, 1) stages 4 swizzle 0", { dtype: "f32" }),
  ],
  mma: [
    product("by mma tile (128, 128, 32) warps (2, 4) stages 3 swizzle 64"),
    product("by mma tile (64, 64, 64) warps (2, 2) stages 4 swizzle 128", { dtype: "f16" }),
    product("by mma tile (32, 32, 32) warps (1, 1) stages 2 swizzle 0"),
    product("by mma tile (16, 128, 64) warps (1, 4) stages 4 swizzle 128", { behind: "gate" }),
  ],
  wgmma: [product("by wgmma tile (128, 96, 64) warps (8, 1) stages 3 swizzle 128 group 2")],
  "wgmma gathered": [
    product("by wgmma tile (128, 128, 64) warps (8, 1) stages 3 swizzle 128 results 2"),
  ],
  "wgmma blocks": [
    product("by wgmma tile (64, 64, 64) warps (4, 1) stages 4 swizzle 128 results 1 blocks 7"),
  ],
  "wgmma teams": [
    product(
      "by wgmma tile (64, 64, 64) warps (4, 1) stages 4 swizzle 128 results 1 blocks 5 teams 2",
    ),
  ],
  "wgmma parts": [
    product("by wgmma tile (64, 32, 64) warps (4, 1) stages 2 swizzle 128 parts 2", {
      left: [m, 256],
      right: [n, 256],
    }),
    product("by wgmma tile (64, 96, 64) warps (4, 1) stages 2 swizzle 128 parts 4", {
      left: [m, 512],
      right: [n, 512],
    }),
  ],
  // Of 25 tiles (30 in full groups) the first ones in whole rounds by single blocks, what is left by clusters: stored, gathered.
  "wgmma shared last round": [
    product("by wgmma tile (64, 64, 64) warps (4, 1) stages 3 swizzle 128 blocks 22 parts 2", {
      left: [m, 256],
      right: [n, 256],
    }),
    product(
      "by wgmma tile (64, 64, 64) warps (4, 1) stages 4 swizzle 128 group 2 results 1 blocks 24 parts 2",
      { left: [m, 256], right: [n, 256], dtype: "f16" },
    ),
    product(
      "by wgmma tile (64, 64, 64) warps (4, 1) stages 2 swizzle 128 results 1 blocks 12 parts 4",
      { left: [m, 256], right: [n, 256] },
    ),
  ],
  "wgmma cluster": [
    product("by wgmma tile (64, 32, 64) warps (4, 1) stages 3 swizzle 128 group 2 cluster 2"),
    product(
      "by wgmma tile (64, 64, 64) warps (4, 1) stages 4 swizzle 128 group 2 results 1 blocks 4 cluster 2",
    ),
  ],
  grouped: [
    product("by wgmma tile (64, 96, 64) warps (4, 1) stages 3 swizzle 128 results 2", grouped),
    product("by mma tile (64, 64, 64) warps (2, 2) stages 3 swizzle 128", grouped),
  ],
  "wgmma ahead": [
    product("by wgmma tile (128, 64, 64) warps (8, 1) stages 4 swizzle 128 results 1 ahead", {
      behind: "gate",
    }),
  ],
  "wgmma turned": [
    ...(["i k, k j -> i j", "k i, j k -> i j", "k i, k j -> i j"] as const).map((equation) =>
      turned(equation, "by wgmma tile (128, 64, 64) warps (8, 1) stages 3 swizzle 128 group 2"),
    ),
    // Panels of 32 and of 16 columns; in every form of a stream.
    turned(
      "i k, k j -> i j",
      "by wgmma tile (128, 96, 64) warps (4, 1) stages 3 swizzle 128 results 2",
    ),
    turned(
      "k i, k j -> i j",
      "by wgmma tile (64, 48, 64) warps (4, 1) stages 2 swizzle 128 parts 2",
      256,
    ),
    turned(
      "k i, k j -> i j",
      "by wgmma tile (64, 64, 64) warps (4, 1) stages 4 swizzle 128 results 1 blocks 5 teams 2",
    ),
    turned(
      "i k, k j -> i j",
      "by wgmma tile (64, 128, 64) warps (4, 1) stages 3 swizzle 128 group 2 cluster 2",
    ),
    // Several panels in a block of a cluster, whose addresses have its rank in their upper bits.
    turned(
      "i k, k j -> i j",
      "by wgmma tile (64, 192, 64) warps (4, 1) stages 2 swizzle 128 group 2 parts 2",
      256,
    ),
    turned(
      "i k, k j -> i j",
      "by wgmma tile (64, 16, 64) warps (4, 1) stages 4 swizzle 128 swapped",
    ),
    turned(
      "b i k, b k j -> b i j",
      "by wgmma tile (64, 64, 64) warps (4, 1) stages 3 swizzle 128 results 1",
      136,
    ),
  ],
  "wgmma swapped": [
    product("by wgmma tile (64, 16, 64) warps (4, 1) stages 4 swizzle 128 swapped", {
      left: [16, k],
    }),
  ],
  "wgmma f8": [
    product("by wgmma tile (128, 64, 128) warps (8, 1) stages 3 swizzle 128 results 1", {
      of: "f8e4m3fn",
    }),
  ],
  "mma f8": [
    product("by mma tile (64, 64, 64) warps (2, 2) stages 3 swizzle 64", { of: "f8e4m3fn" }),
    product("by mma tile (32, 64, 128) warps (2, 1) stages 2 swizzle 128", {
      ...{ of: "f8e5m2", ofRight: "f8e4m3fn" },
    }),
  ],
  "made operands": [
    product("by mma tile (16, 128, 64) warps (1, 4) stages 2 swizzle 128", {
      ...{ front: "bytes", left: [16, 120], right: [256, 120] },
    }),
    product("by mma tile (64, 64, 32) warps (2, 2) stages 4 swizzle 64", {
      ...{ front: "nibbles", left: [40, 320], right: [72, 320] },
    }),
    product("by mma tile (64, 128, 64) warps (2, 4) stages 3 swizzle 128", {
      ...{ front: "cast", left: [200, 328], right: [136, 328] },
    }),
    product("by mma tile (64, 64, 32) warps (2, 2) stages 4 swizzle 64", {
      ...{ front: "relu", left: [57, 104], right: [71, 104], dtype: "f16" },
    }),
    product("by fma tile (32, 64, 16) warps (2, 1) stages 4 swizzle 0", {
      ...{ front: "bytes", left: [200, 76], right: [133, 76], dtype: "f32" },
    }),
  ],
  "results in heads": [
    product("by wgmma tile (128, 64, 64) warps (8, 1) stages 3 swizzle 128 results 1", {
      ...{ behind: "heads", right: [256, k] },
    }),
    product("by mma tile (128, 64, 64) warps (4, 2) stages 3 swizzle 128", {
      ...{ behind: "heads", right: [256, k] },
    }),
  ],
  "results folded": [
    product("by wgmma tile (128, 96, 64) warps (8, 1) stages 4 swizzle 128 group 8", {
      ...{ behind: "largest", left: [1000, 320], right: [768, 320] },
    }),
  ],
  rows: [
    rows("softmax", "f32", "threads 256 lanes 4 together 1 keep registers", 1024),
    rows("layerNorm", "bf16", "threads 128 lanes 8 together 2 keep operands", 1000),
    rows("rmsNorm", "f16", "threads 512 lanes 1 together 1 keep memory", 1023),
    rows("softmax", "bf16", "threads 16 lanes 8 together 4 keep registers", 128),
  ],
  "rows across memory": [
    across("softmax", "f32", "threads 32 lanes 4 together 8 across keep registers", 300),
    across("softmax", "bf16", "threads 64 lanes 8 together 4 across keep memory", 301),
    across("softmax", "bf16", "threads 16 lanes 8 together 8 across keep operands shared 5", 150),
    across("argReduce", "f32", "threads 8 lanes 4 together 8 across keep memory", 129),
  ],
  transposes: [
    transposed("f32", "tile (32, 32) threads 128 lanes (4, 4)", [3, 100, 132]),
    transposed("bf16", "tile (64, 64) threads 128 lanes (8, 4)", [2, 136, 72], true),
    transposed("f16", "tile (32, 64) threads 256 lanes (1, 1)", [2, 75, 131]),
    transposed("i8", "tile (128, 64) threads 128 lanes (16, 8)", [160, 144]),
  ],
  "parts of rows": [
    across("softmax", "bf16", "threads 16 lanes 8 together 8 across parts 4 keep registers", 500),
    across(
      "softmax",
      "f32",
      "threads 16 lanes 4 together 8 across parts 2 keep operands shared 6",
      250,
    ),
    rows("layerNorm", "f32", "threads 128 lanes 4 together 1 parts 2 keep operands", 3000),
    rows("softmax", "f16", "threads 64 lanes 1 together 1 parts 8 keep memory", 1501),
  ],
  scans: [
    rows("cumulative", "f32", "threads 256 lanes 4 together 1 keep registers", 4096),
    rows("cumulative", "bf16", "threads 128 lanes 8 together 2 keep memory", 3000),
    rows("cumulative", "f16", "threads 16 lanes 2 together 4 keep registers", 130),
    across("cumulative", "f32", "threads 16 lanes 1 together 32 across items 16 keep memory", 40),
    across("cumulative", "bf16", "threads 16 lanes 1 together 8 across items 2 keep registers", 30),
  ],
  "places of the largest": [
    rows("argReduce", "bf16", "threads 256 lanes 8 together 1 keep memory", 2048),
    rows("argReduce", "f32", "threads 32 lanes 1 together 4 keep memory", 1023),
  ],
  "first of rows": [first(100, "f32", 400), first(20, "bf16", 1100), first(300, "i16", 301)],
  attention: [
    attention("by mma tile (64, 64) warps 4 stages 2", { depth: 64, causal: true }),
    attention("by mma tile (64, 32) warps 4 stages 2", { depth: 128, causal: false }),
  ],
  "attention parts": [
    attention("by mma tile (64, 64) warps 4 stages 2 parts 2", { depth: 64, causal: false }),
    attention("by mma tile (16, 64) warps 1 stages 3 parts 4", { depth: 128, causal: false }),
  ],
  "attention splits": [
    attention("by mma tile (64, 64) warps 4 stages 2 splits 2", { depth: 64, causal: false }),
    attention("by mma tile (16, 64) warps 1 stages 3 splits 4", { depth: 128, causal: false }),
    lengths("by mma tile (16, 64) warps 1 stages 3 splits 3", { depth: 128, causal: false }),
  ],
  "attention lengths": [
    lengths("by mma tile (64, 32) warps 4 stages 2", { depth: 128, causal: true }),
    lengths("by mma tile (16, 64) warps 1 stages 3 parts 4", { depth: 128, causal: false }),
    lengths("by wgmma tile (64, 64) warps 4 stages 2", { depth: 64, causal: true }),
  ],
  "attention sequences": [
    packed("by mma tile (64, 32) warps 4 stages 2", 128, 200),
    packed("by mma tile (16, 64) warps 1 stages 2 parts 2", 64, 200),
    packed("by wgmma tile (64, 64) warps 4 stages 2", 64, 256),
    packed("by wgmma tile (128, 128) warps 8 stages 2 gathered", 128, 256),
  ],
  "attention wgmma": [
    attention("by wgmma tile (64, 64) warps 4 stages 2", { depth: 64, causal: false }),
  ],
  "attention wgmma causal gathered": [
    attention("by wgmma tile (128, 128) warps 8 stages 2 gathered", { depth: 128, causal: true }),
  ],
  "attention wgmma, other heads": [
    attention("by wgmma tile (64, 64) warps 4 stages 2", { depth: 80, causal: false }),
    attention("by wgmma tile (128, 128) warps 8 stages 2 gathered", { depth: 96, causal: true }),
    attention("by wgmma tile (192, 96) warps 12 stages 2 gathered", { depth: 112, causal: false }),
    lengths("by wgmma tile (64, 64) warps 4 stages 2 gathered", { depth: 48, causal: true }),
  ],
  "open attention mma": openAttention(
    "by mma tile (64, 32) warps 4 stages 2",
    { depth: 64, causal: false },
    [
      { B: 1, S: 16 },
      { B: 1, S: 128 },
      { B: 3, S: 77 },
    ],
  ),
  "open attention wgmma": openAttention(
    "by wgmma tile (128, 112) warps 8 stages 2 gathered",
    { depth: 64, causal: false },
    [
      { B: 1, S: 16 },
      { B: 3, S: 77 },
      { B: 1, S: 128 },
      { B: 2, S: 224 },
    ],
  ),
  "open attention wgmma masked": openAttention(
    "by wgmma tile (128, 112) warps 8 stages 2 gathered",
    { depth: 64, causal: false, mask: true },
    [
      { B: 1, S: 16 },
      { B: 3, S: 77 },
      { B: 1, S: 128 },
      { B: 2, S: 224 },
    ],
  ),
  "open attention wgmma causal": openAttention(
    "by wgmma tile (64, 64) warps 4 stages 2",
    { depth: 64, causal: true },
    [
      { B: 2, S: 16 },
      { B: 1, S: 200 },
    ],
  ),
  "open rows": [
    ...openRows("by wgmma tile (128, 192, 64) warps (8, 1) stages 4 swizzle 128", [16, 231, 300]),
    ...openRows(
      "by wgmma tile (128, 192, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2 ahead",
      [128, 231, 512],
      "gate",
    ),
    ...openRows(
      "by wgmma tile (128, 256, 64) warps (8, 1) stages 4 swizzle 128 group 8 results 2",
      [128, 512],
    ),
    ...openRows("by mma tile (64, 64, 64) warps (2, 2) stages 3 swizzle 128", [1, 65]),
  ],
  // Seeds of random kernels: all families, as the prices choose.
  chosen: compiled(Array.from({ length: 24 }, (_, i) => 100 + i)),
};

function runOnce(make: Case): void {
  const source = make();
  const sizes = make.sizes ?? {};
  const program = typeof source === "string" ? take(parseProgram(source)) : source;
  if (process.argv.includes("--compile")) return;
  const rng = new Rng(5);
  const contents = new Map(
    program.buffers.flatMap((b) => {
      if (b.kind !== "input" && b.kind !== "weight") return [];
      return [[b.name, randomBytes(b, bytesAt(b, sizes), rng)] as const];
    }),
  );
  const isCompared = process.argv.includes("--compare");
  const expected =
    isCompared || process.argv.includes("--interpret")
      ? interpret(program, contents, sizes)
      : undefined;
  if (expected && !isCompared) return;
  const found = runOnDevice(program, contents, sizes);
  if (expected) compare(program, found, expected);
}

type Contents = ReadonlyMap<string, Uint8Array>;

/** Bytes of a buffer's elements. */
function bytesAt({ shape, dtype, lanes }: Buffer, sizes: Parameters): number {
  const values = new Map(Object.entries(sizes));
  return storageBytes(
    dtype,
    shape.reduce((count, extent) => count * evaluate(extent, values), lanes),
  );
}

function interpret(program: Program, contents: Contents, sizes: Parameters): Contents {
  const outcome = runProgram(program, { parameters: sizes, contents, threads: 1, seed: 2 });
  if (outcome.kind === "fault") throw new Error(`${outcome.fault.kind}: ${outcome.fault.message}`);
  return outcome.contents;
}

function runOnDevice(program: Program, contents: Contents, sizes: Parameters): Contents {
  const features = take(probeCuda());
  const target = targets.get(program.target)!;
  const instance = take(createCudaInstance(program, target, { device: take(features.open()) }));
  for (const b of program.buffers) if (b.kind === "output") instance.memory.fill(b.name, 0xff);
  for (const [name, bytes] of contents) instance.memory.write(name, bytes);
  take(instance.runSync(sizes));
  const outputs = program.buffers.filter((b) => b.kind === "output");
  const found = outputs.map(
    (b) => [b.name, instance.memory.read(b.name, bytesAt(b, sizes))] as const,
  );
  instance.dispose();
  return new Map(found);
}

/**
 * Sums in another order, and products of tf32: a value may be two steps of its type off, or 2^-9 of itself; small ones
 * that of a sixteenth of the largest. Integers are equal.
 */
function compare({ buffers }: Program, found: Contents, expected: Contents): void {
  for (const { name, dtype, kind } of buffers) {
    if (kind !== "output") continue;
    const [ours, theirs] = [found, expected].map((c) => numbersOf(c.get(name)!, dtype));
    const { format } = dtypes[dtype];
    const share = format ? Math.max(2 ** (1 - format.mantissaBits), 2 ** -9) : 0;
    const largest = theirs!.reduce(
      (most, x) => Math.max(most, Number.isNaN(x) ? 0 : Math.abs(x)),
      0,
    );
    const wrong = theirs!.findIndex((x, i) => {
      const allowed = share * Math.max(Math.abs(x), largest / 16);
      return !(Object.is(ours![i], x) || Math.abs(ours![i]! - x) <= allowed);
    });
    if (wrong >= 0)
      throw new Error(
        `${name}[${wrong}] is ${ours![wrong]}, the interpreter has ${theirs![wrong]}`,
      );
  }
}

function numbersOf(bytes: Uint8Array, dtype: DType): readonly number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const width = dtypes[dtype].bits / 8;
  const isFloat = dtypes[dtype].format !== undefined;
  return Array.from({ length: bytes.byteLength / width }, (_, i) => {
    const at = i * width;
    if (width === 8)
      return isFloat ? view.getFloat64(at, true) : Number(view.getBigInt64(at, true));
    const code =
      width === 1
        ? view.getUint8(at)
        : width === 2
          ? view.getUint16(at, true)
          : view.getUint32(at, true);
    return isFloat ? decodeFloat(dtype as "f32", code) : code;
  });
}

/** Where the sequences of packed tokens end. */
const ends = [70, 71, 200, 256];

function numberOf(name: string, at: number, rng: Rng): number {
  // The first column of a row's sequence, or the one behind its last.
  if (name === "ends") return ends.find((end) => end > at)!;
  if (name === "starts") return ends.findLast((end) => end <= at) ?? 0;
  // Numbers of matrices: the first or the second.
  return rng.integer(0, 1);
}

function randomBytes({ name, dtype }: Buffer, count: number, rng: Rng): Uint8Array {
  const bytes = new Uint8Array(count);
  const view = new DataView(bytes.buffer);
  const { bits, format } = dtypes[dtype];
  // Bytes and several integers in one.
  if (!format && bits <= 8) return bytes.map(() => rng.integer(0, 255));
  const width = bits / 8;
  for (let at = 0; at < count; at += width) {
    if (dtype === "i32") view.setInt32(at, numberOf(name, at / width, rng), true);
    // Lengths of sequences: the last step is a part of one.
    if (dtype === "i64") view.setBigInt64(at, 141n, true);
    if (!format) continue;
    const code = encodeFloat(dtype as "f32", rng.normal());
    if (width === 1) view.setUint8(at, code);
    else if (width === 2) view.setUint16(at, code, true);
    else view.setUint32(at, code, true);
  }
  return bytes;
}

/** Whether all cases of a family pass; those that fail are printed. */
function runFamily(family: string): boolean {
  const cases = families[family]!;
  let failed = 0;
  for (const [number, make] of cases.entries()) {
    try {
      runOnce(make);
    } catch (error) {
      failed++;
      console.log(`FAIL ${family} ${number}: ${String(error).slice(0, 400)}`);
    }
  }
  console.log(`${family}: ${cases.length - failed} passed, ${failed} failed`);
  return failed === 0;
}

const asked = process.argv.includes("--family")
  ? process.argv[process.argv.indexOf("--family") + 1]
  : undefined;
const names = asked === "all" ? Object.keys(families) : [asked ?? ""];
if (names.some((name) => families[name] === undefined)) {
  console.log(Object.keys(families).join("\n"));
  // Without an argument the list is what was asked for.
  process.exitCode = process.argv.length > 2 ? 2 : 0;
} else {
  const right = names.map(runFamily);
  process.exitCode = right.every((isRight) => isRight) ? 0 : 1;
}
