/**
 * Products and attention on a GPU. They go to the matrix units that the architecture has (wgmma, tcgen05,
 * mma.sync, whatever else its table lists) or to vector units; thin products stream their weights. Sizes
 * come from the architecture's data, estimates from price.ts; passes over rows are in gpu-passes.ts.
 */
import { stagedBytes } from "../../schedule/products/block-bytes.ts";
import { hasWarpTile } from "../../schedule/products/product-candidates.ts";
import type { GpuMachine } from "../../target/machine.ts";
import type { Candidate, Tile } from "./configuration.ts";
import { gridOf, paceOf, vectorBytesFor } from "./gpu-launch.ts";
import { plainProducts, scoresInMemory } from "./gpu-plain.ts";
import { type Style, type StyleTile, stylesFor, threadsOf } from "./gpu-styles.ts";
import { price } from "./price.ts";
import { isPacked, type KernelProblem, typeBits, unpackInstructions, workOf } from "./problem.ts";

/** Of one block: first loads from memory to the first multiply. */
const fillNs = 1200;
/** Of one tile: from the last multiply to the stored result. */
const drainNs = 800;
/** Of the strides of a tensor map, in bytes (CUDA driver API, cuTensorMapEncodeTiled). */
const bulkAlignment = 16;

export function productCandidates(
  problem: KernelProblem,
  machine: GpuMachine,
): readonly Candidate[] {
  const attention = problem.kind.startsWith("attention");
  // Weights are packed ahead, to any stride; the rows of the other operand begin where they are.
  const aligned = rowAlignment(problem) === bulkAlignment;
  const styles = stylesFor(machine, problem.type).filter((s) => aligned || !s.bulk);
  const made = styles.flatMap((style) =>
    style.tiles.flatMap((tile) =>
      stagesFor(problem, tile).flatMap((stages) =>
        style.clusters.flatMap((cluster) =>
          attention
            ? [attentionKernel(problem, machine, style, { tile, stages, cluster })]
            : partsFor(problem, machine, { tile, stages, cluster }).map((parts) =>
                tiledProduct(problem, machine, style, { tile, stages, cluster, parts }),
              ),
        ),
      ),
    ),
  );
  return [
    ...made,
    ...(attention ? [scoresInMemory(problem, machine)] : plainProducts(problem, machine)),
    ...(attention ? [] : [streamingKernel(problem, machine)]),
  ];
}

/** No more stages than there are steps: the rest would stay empty. */
function stagesFor(problem: KernelProblem, tile: StyleTile): readonly number[] {
  const along = problem.kind.startsWith("attention")
    ? (problem.keys ?? 1) / tile.n
    : problem.depth / stepOf(problem, tile);
  return [2, 3, 4, 6].filter((stages) => stages <= Math.max(2, Math.ceil(along)));
}

/** A row of a stage is 128 bytes, the widest swizzle. */
function stepOf({ type }: KernelProblem, { instruction }: StyleTile): number {
  return instruction ? Math.max((128 * 8) / typeBits[type], instruction.k) : 16;
}

interface Choice {
  readonly tile: StyleTile;
  readonly stages: number;
  readonly cluster: number;
}

interface ProductChoice extends Choice {
  /** Blocks that share the summed extent of a tile. */
  readonly parts: number;
}

/** Tiles fewer than multiprocessors: the summed extent is cut until each has some, or a pipeline is short. */
function partsFor(
  problem: KernelProblem,
  machine: GpuMachine,
  { tile, stages, cluster }: Choice,
): readonly number[] {
  const tiles =
    Math.ceil(problem.rows / tile.m) * Math.ceil(problem.columns / tile.n) * problem.batch;
  const steps = Math.ceil(problem.depth / stepOf(problem, tile));
  const room = Math.floor(machine.multiprocessors.value / tiles);
  const parts = Math.min(room, Math.floor(steps / (2 * stages)));
  return cluster === 1 && parts > 1 ? [1, parts] : [1];
}

/** Threads, registers and the blocks of a multiprocessor that both and shared memory leave room for. */
function footprint(
  style: Style,
  tile: Pick<StyleTile, "m" | "n">,
  sharedBytes: number,
  machine: GpuMachine,
) {
  const a = machine.architecture;
  const { m, n } = tile;
  const threads = threadsOf(style, tile, a.warpThreads);
  const holders = threads - style.producers;
  const accumulators = style.accumulatorsInRegisters ? (m * n) / holders : 0;
  const wanted = 8 * Math.ceil((accumulators + style.overhead) / 8);
  // A producer warpgroup gives its registers up: the budget of a block is what counts.
  const registers = Math.min(wanted, Math.floor(a.registersPerBlock.value / threads / 8) * 8);
  const fits =
    wanted <= a.registersPerThread.value && accumulators + 24 <= registers * (threads / holders);
  const atOnce = Math.floor(
    Math.min(
      a.sharedBytesPerSm.value / (sharedBytes + a.sharedBytesReservedPerBlock.value),
      a.registersPerSm.value / (registers * threads),
      a.threadsPerSm.value / threads,
      a.blocksPerSm.value,
    ),
  );
  return {
    threads,
    registers: fits ? registers : a.registersPerThread.value + 1,
    atOnce: Math.max(1, atOnce),
  };
}

function tiledProduct(
  problem: KernelProblem,
  machine: GpuMachine,
  style: Style,
  { tile, stages, cluster, parts }: ProductChoice,
): Candidate {
  const { m, n, instruction } = tile;
  const size = typeBits[problem.type] / 8;
  const weight = Math.ceil(problem.weightBits ?? typeBits[problem.type]) / 8;
  const k = stepOf(problem, tile);
  const stageBytes = Math.ceil(k * (m * size + n * weight));
  const unpacked = unpackedBytes(problem, style, n * k);
  const sharedBytes = stages * stageBytes + unpacked;
  const { threads, registers, atOnce } = footprint(style, tile, sharedBytes, machine);
  const [down, across] = [Math.ceil(problem.rows / m), Math.ceil(problem.columns / n)];
  const tiles = down * across * problem.batch;
  const { bytes } = workOf(problem);
  const steps = Math.ceil(Math.ceil(problem.depth / k) / parts);
  // Sums of parts are written and read again in f32.
  const handedOn = parts > 1 ? 2 * 4 * parts * tiles * m * n : 0;
  const pace = paceOf(
    machine,
    Math.min(
      issueShare(tile, (m * n) / threads) * style.flopsPerNs,
      sharedLimit(style, machine, [m, n], size),
    ),
  );
  const cost = price(
    {
      pieces: tiles * parts,
      atOnce,
      flopsOfPiece: steps * (2 * m * n * k + unpackingWork(problem, style, machine, n * k)),
      bytes,
      // A cluster fetches what its blocks share once.
      fetchedBytes: tiles * problem.depth * (m * size + (n * weight) / cluster) + handedOn,
      bytesInFlight: (stages - 1) * stageBytes,
      // Too few stages leave the multiplies waiting for loads.
      pieceLatencyNs: fillNs + drainNs + (stages < 4 ? (4 - stages) * 300 : 0),
    },
    { ...pace, launchNs: (parts > 1 ? 2 : 1) * pace.launchNs },
  );
  const grid = gridOf(Math.ceil((tiles * parts) / cluster) * cluster);
  return {
    implementation: `${nameFor(style, problem)}${parts > 1 ? ", depth cut over blocks" : ""}`,
    plain:
      parts === 1 && isWritten(problem, machine, { m, n, k }, { stages, threads, cluster, style }),
    form: "product",
    tile: { m, n, k },
    ...spelled(instruction),
    unroll: Math.max(1, k / (instruction?.k ?? 4)),
    sharedBytes,
    registersPerThread: registers,
    grid,
    block: [threads, 1, 1],
    vectorBytes: vectorBytesFor(problem.depth * size),
    stages,
    cluster,
    ...cost,
    why: () => [
      `${down} x ${across} x ${problem.batch} tiles of ${m} x ${n} on ${machine.multiprocessors.value} multiprocessors, ${atOnce} at once`,
      `${stages} stages of ${(stageBytes / 1024).toFixed(1)} KiB${unpacked > 0 ? `, weights unpacked into 2 x ${(unpacked / 2048).toFixed(1)} KiB` : ""}`,
      ...(parts > 1
        ? [`the depth is cut over ${parts} blocks a tile; a second kernel adds their sums`]
        : []),
      ...(instruction ? [] : vectorReason(problem, machine)),
      ...alignmentReason(problem),
      `bound by ${cost.bound}`,
    ],
  };
}

/**
 * Whether lowering writes the tile: operands staged in shared memory by asynchronous copies, multiplied by
 * the matrix instruction of a warp, or in f32 by multiply-adds; or streamed by tensor copies to warpgroups
 * (docs/schedule-language.md, multiply).
 */
function isWritten(
  problem: KernelProblem,
  { architecture: a }: GpuMachine,
  { m, n, k }: Tile,
  { stages, threads, cluster, style }: WrittenAs,
): boolean {
  const { kind, type, rows, columns, depth } = problem;
  if (Math.min(rows, columns) === 1 || m >= 2 * rows || n >= 2 * columns) return false;
  const has = (...features: readonly string[]): boolean =>
    features.every((f) => a.features.some((own) => own === f));
  if (style.name.startsWith("wgmma, bulk tensor copies")) {
    const groups = (threads - style.producers) / groupThreads;
    return (
      kind === "gemm" &&
      problem.batch === 1 &&
      (type === "bf16" || type === "f16") &&
      !isPacked(problem) &&
      cluster === 1 &&
      has("wgmma", "tma") &&
      groups <= mostGroups &&
      m % (groupRows * groups) === 0 &&
      m <= mostRows &&
      n <= mostRows &&
      k * typeBits[type] === 8 * swizzledRow &&
      depth % (bulkAlignment / (typeBits[type] / 8)) === 0
    );
  }
  const by = type === "f32" ? "fma" : "mma";
  const bits = typeBits[type];
  const swizzle = by === "fma" ? 0 : (k * bits) / 8 === 64 ? 64 : 128;
  const staged = stagedBytes({ by, tile: [m, n, k], stages, swizzle }, bits, ["depth", "depth"]);
  return (
    (kind === "gemm" || kind === "grouped-gemm") &&
    style.name.startsWith(by === "fma" ? "vector units" : "mma.sync") &&
    (by === "fma" ? has("cp.async") : has("cp.async", "mma", "ldmatrix")) &&
    stages <= Math.ceil(depth / k) + 1 &&
    staged <= a.sharedBytesPerBlock.value &&
    hasWarpTile(by, [m, n, k], threads / a.warpThreads)
  );
}

interface WrittenAs {
  readonly stages: number;
  readonly threads: number;
  readonly cluster: number;
  readonly style: Style;
}

/** Threads of a warpgroup, rows of its instruction, groups that multiply, rows or columns of a tensor copy. */
const [groupThreads, groupRows, mostGroups, mostRows] = [128, 64, 3, 256] as const;
/** Bytes of a row of a stage that tensor copies swizzle. */
const swizzledRow = 128;

/** Why a machine with matrix units leaves them idle. */
function vectorReason({ type }: KernelProblem, { architecture: a }: GpuMachine): readonly string[] {
  const multiplied = a.matrixInstructions.some((i) => i.operands === type);
  return multiplied || type === "f32" ? [] : [`${a.name} has no matrix instruction for ${type}`];
}

/**
 * Vector work of unpacking in operations of the style's own unit. Half of it hides behind the products of
 * other warps, as that of the softmax does.
 */
function unpackingWork(
  problem: KernelProblem,
  style: Style,
  machine: GpuMachine,
  weights: number,
): number {
  if (!isPacked(problem)) return 0;
  const instructionsPerNs = (machine.vectorTeraops.f32.value * 1000) / 2;
  return (0.5 * unpackInstructions * weights * style.flopsPerNs) / instructionsPerNs;
}

/**
 * Weights of another width than the instruction multiplies: where it reads its operands from shared
 * memory, a step of them lies there unpacked while the next is being unpacked. Units that read registers
 * unpack on the way there.
 */
function unpackedBytes(
  { type, weightBits = typeBits[type] }: KernelProblem,
  { operandsInShared }: Style,
  weights: number,
): number {
  if (!operandsInShared || weightBits === typeBits[type]) return 0;
  return (2 * weights * typeBits[type]) / 8;
}

/** Copies past the registers move 4 bytes at least (PTX ISA, cp.async). */
function nameFor({ name }: Style, problem: KernelProblem): string {
  return rowAlignment(problem) < 4
    ? name.replace("asynchronous copies", "copies through registers")
    : name;
}

/** The widest load that every row of the operand that is not packed begins at. */
function rowAlignment({ depth, type }: KernelProblem): number {
  return vectorBytesFor((depth * typeBits[type]) / 8);
}

function alignmentReason(problem: KernelProblem): readonly string[] {
  const bytes = (problem.depth * typeBits[problem.type]) / 8;
  return rowAlignment(problem) === bulkAlignment
    ? []
    : [`rows of ${bytes} bytes: bulk tensor copies need multiples of ${bulkAlignment}`];
}

/** Of vector instructions those that multiply: a square of accumulators is fed by loads of four. */
function issueShare({ instruction }: StyleTile, accumulators: number): number {
  if (instruction) return 1;
  return accumulators / (accumulators + Math.max(2, Math.sqrt(accumulators) / 2));
}

/**
 * Operations a nanosecond that shared memory can feed: an instruction of m x n reads its operands whole;
 * warps of the older unit work on 64 x 32 of the tile at most, and vector units on 8 x 8 a thread.
 */
function sharedLimit(
  { reach }: Style,
  machine: GpuMachine,
  [m, n]: readonly [number, number],
  size: number,
): number {
  const [height, width] = [Math.min(m, reach[0]), Math.min(n, reach[1])];
  const { architecture, multiprocessors, boostMhz } = machine;
  const bytesPerNs =
    (architecture.sharedBytesPerCycle.value * multiprocessors.value * boostMhz.value) / 1000;
  return (bytesPerNs * 2 * height * width) / ((height + width) * size);
}

/**
 * Vector work of a step in operations of the style's own unit: maximum, exponential and sum of each
 * score, and the result rescaled once a step. Half of it hides behind the other half's products.
 */
function softmaxWork(style: Style, machine: GpuMachine, { m, n, k: depth }: Tile): number {
  const vectorFlopsPerNs = machine.vectorTeraops.f32.value * 1000;
  return (0.5 * m * (6 * n + depth) * style.flopsPerNs) / vectorFlopsPerNs;
}

/** What shared memory feeds: half of the operations multiply by keys, half of them by values. */
function fedRate(
  style: Style,
  machine: GpuMachine,
  { depth, type }: KernelProblem,
  [m, n]: readonly [number, number],
): number {
  const size = typeBits[type] / 8;
  const keys = sharedLimit(style, machine, [m, n], size);
  const values = sharedLimit(style, machine, [m, depth], size);
  return 2 / (1 / keys + 1 / values);
}

/** Queries stay, keys and values stream; scores never leave the registers. */
function attentionKernel(
  problem: KernelProblem,
  machine: GpuMachine,
  style: Style,
  { tile, stages, cluster }: Choice,
): Candidate {
  const { m, n } = tile;
  const size = typeBits[problem.type] / 8;
  const keys = problem.keys ?? 1;
  const depth = problem.depth;
  const sharedBytes = Math.ceil(size * (m * depth + stages * 2 * n * depth));
  const wide = { m, n: n + depth };
  const { threads, registers, atOnce } = footprint(style, wide, sharedBytes, machine);
  const blocks = Math.ceil(problem.rows / m) * problem.batch;
  const splits = splitsOf(problem, blocks, machine, n);
  const steps = Math.ceil(keys / n);
  const { bytes } = workOf(problem);
  const cost = price(
    {
      pieces: blocks * splits,
      atOnce,
      flopsOfPiece:
        (steps * (4 * m * depth * n + softmaxWork(style, machine, { m, n, k: depth }))) / splits,
      bytes,
      fetchedBytes: blocks * size * depth * (m + 2 * keys),
      bytesInFlight: (stages - 1) * 2 * n * depth * size,
      pieceLatencyNs: fillNs + drainNs + (splits > 1 ? drainNs : 0),
    },
    paceOf(machine, Math.min(style.flopsPerNs, fedRate(style, machine, problem, [m, n]))),
  );
  return {
    implementation: `attention with online softmax: ${nameFor(style, problem)}`,
    form: "attention",
    tile: { m, n, k: depth },
    ...spelled(tile.instruction),
    unroll: 1,
    sharedBytes,
    registersPerThread: registers,
    grid: gridOf(Math.ceil((blocks * splits) / cluster) * cluster),
    block: [threads, 1, 1],
    vectorBytes: vectorBytesFor(depth * size),
    stages,
    cluster,
    ...cost,
    why: () => [
      `${blocks} blocks of ${m} queries, keys in tiles of ${n}${splits > 1 ? `, split ${splits} ways` : ""}`,
      `bound by ${cost.bound}`,
    ],
  };
}

/** Decoding has few queries: keys are split until every multiprocessor has some. */
function splitsOf(problem: KernelProblem, blocks: number, machine: GpuMachine, n: number): number {
  if (problem.kind !== "attention-decode") return 1;
  const wanted = Math.ceil((2 * machine.multiprocessors.value) / blocks);
  return Math.max(1, Math.min(wanted, Math.ceil((problem.keys ?? 1) / (2 * n))));
}

/** Of a thread that streams weights. */
const loadsInFlight = 8;

/** Each warp sums whole columns of a matrix that is read once: right where rows are few. */
function streamingKernel(problem: KernelProblem, machine: GpuMachine): Candidate {
  const size = (problem.weightBits ?? typeBits[problem.type]) / 8;
  const warps = 8;
  const vectorBytes = vectorBytesFor(problem.depth * size);
  const outputs = problem.columns * problem.batch;
  const blocks = Math.max(
    1,
    Math.min(Math.ceil(outputs / warps), 8 * machine.multiprocessors.value),
  );
  const { bytes, flops } = workOf(problem);
  const chunks = Math.ceil(problem.rows / 4);
  const unpacked = isPacked(problem) ? outputs * problem.depth * chunks : 0;
  const cost = price(
    {
      pieces: blocks,
      atOnce: 8,
      // An instruction stands for the two operations of a multiply-add.
      flopsOfPiece: (flops + 2 * unpackInstructions * unpacked) / blocks,
      bytes: bytes * chunks,
      fetchedBytes: bytes * chunks,
      bytesInFlight: 32 * warps * loadsInFlight * vectorBytes,
      pieceLatencyNs: fillNs,
    },
    paceOf(machine, 0.5 * machine.vectorTeraops.f32.value * 1000),
  );
  return {
    implementation: "weights streamed past vector units",
    form: "product",
    tile: { m: Math.min(4, problem.rows), n: warps, k: 256 },
    unroll: loadsInFlight,
    sharedBytes: 0,
    registersPerThread: 80,
    grid: gridOf(blocks),
    block: [32 * warps, 1, 1],
    vectorBytes,
    stages: 1,
    cluster: 1,
    ...cost,
    why: () => [
      `${outputs} sums, a warp each, ${loadsInFlight} loads in flight a thread`,
      `bound by ${cost.bound}`,
    ],
  };
}

function spelled(instruction: StyleTile["instruction"]) {
  if (!instruction) return {};
  const { name, m, n, k } = instruction;
  return { instruction: `${name} m${m}n${n}k${k}`, instructionTile: { m, n, k } };
}
