/**
 * Products and attention on a GPU. They go to the matrix units that the architecture has (wgmma, tcgen05,
 * mma.sync, whatever else its table lists) or to vector units; thin products stream their weights. Sizes
 * come from the architecture's data, estimates from price.ts; passes over rows are in gpu-passes.ts.
 */
import type { GpuMachine, MatrixInstruction } from "../../target/machine.ts";
import type { KernelConfiguration, Tile } from "./configuration.ts";
import { gridOf, paceOf, vectorBytesFor } from "./gpu-launch.ts";
import { price } from "./price.ts";
import { type KernelProblem, typeBits, workOf } from "./problem.ts";

/** Of one block: first loads from memory to the first multiply. */
const fillNs = 1200;
/** Of one tile: from the last multiply to the stored result. */
const drainNs = 800;
interface Style {
  readonly name: string;
  /** Rows of the architecture's table; empty on vector units. */
  readonly instructions: readonly MatrixInstruction[];
  readonly flopsPerNs: number;
  readonly tiles: readonly (readonly [m: number, n: number])[];
  readonly threads: (m: number, n: number) => number;
  /** Registers of a thread beside its accumulators. */
  readonly overhead: number;
  /** Accumulators live in registers; tensor memory keeps them elsewhere. */
  readonly accumulatorsInRegisters: boolean;
  /** Threads that only feed the others. */
  readonly producers: number;
  readonly clusters: readonly number[];
  /** Extents of the tile whose operands shared memory hands out once. */
  readonly reach: readonly [m: number, n: number];
}

const square = [64, 128] as const;

/** Tiles of the cross product that whole instructions cover. */
function tilesOf(
  heights: readonly number[],
  widths: readonly number[],
  instructions: readonly MatrixInstruction[],
): readonly (readonly [m: number, n: number])[] {
  const pairs = heights.flatMap((m) => widths.map((n) => [m, n] as const));
  return pairs.filter(([m, n]) => instructionFor(instructions, m, n) !== undefined);
}

/** The largest instruction that covers a tile without a rest. */
function instructionFor(
  rows: readonly MatrixInstruction[],
  m: number,
  n: number,
): (Tile & { readonly name: string }) | undefined {
  const found = rows.flatMap((row) => {
    const height = row.m.filter((x) => m % x === 0).at(-1);
    const width = row.n.filter((x) => n % x === 0).at(-1);
    const k = Math.max(...row.k);
    return height && width ? [{ name: row.name, m: height, n: width, k }] : [];
  });
  return found.sort((a, b) => b.m * b.n * b.k - a.m * a.n * a.k)[0];
}

function stylesFor({ type }: KernelProblem, machine: GpuMachine): readonly Style[] {
  const { matrixInstructions, features, warpThreads } = machine.architecture;
  const rate = (machine.matrixTeraops[type]?.value ?? 0) * 1000;
  const own = matrixInstructions.filter((i) => i.operands === type && rate > 0);
  const of = (name: string) => own.filter((i) => i.name === name);
  const [wgmma, tensor, warp] = [of("wgmma.mma_async"), of("tcgen05.mma"), of("mma.sync")];
  const known = ["wgmma.mma_async", "tcgen05.mma", "mma.sync"];
  const others = own.filter((i) => !known.includes(i.name) && !i.name.includes("block-scaled"));
  const warps = (m: number, n: number, share: number): number =>
    warpThreads * 2 ** Math.max(0, Math.min(3, Math.ceil(Math.log2((m * n) / share))));
  const styles: Style[] = [
    {
      name: "wgmma, bulk tensor copies, producer and consumer warpgroups",
      instructions: wgmma,
      flopsPerNs: rate,
      tiles: tilesOf(square, [16, 32, 64, 128, 192, 256], wgmma),
      threads: (m) => 128 * (1 + m / 64),
      overhead: 40,
      accumulatorsInRegisters: true,
      producers: 128,
      clusters: [1, 2],
      reach: [128, 256],
    },
    {
      name: "tcgen05, bulk tensor copies, accumulators in tensor memory",
      instructions: tensor,
      flopsPerNs: rate,
      tiles: tilesOf(square, [32, 64, 128, 256], tensor),
      threads: () => 192,
      overhead: 64,
      accumulatorsInRegisters: false,
      producers: 0,
      clusters: [1, 2],
      reach: [128, 256],
    },
    {
      name: `mma.sync, ${features.includes("cp.async") ? "asynchronous copies" : "copies through registers"}`,
      instructions: warp,
      flopsPerNs: (wgmma.length + tensor.length > 0 ? 0.62 : 1) * rate,
      tiles: tilesOf([16, ...square], [32, 64, 128], warp),
      threads: (m, n) => warps(m, n, 2048),
      overhead: 60,
      accumulatorsInRegisters: true,
      producers: 0,
      clusters: [1],
      reach: [64, 32],
    },
    {
      name: others.length > 0 ? `${others[0]!.name}, copies through registers` : "",
      instructions: others,
      flopsPerNs: rate,
      tiles: tilesOf([32, ...square], [32, 64, 128], others),
      threads: (m, n) => warps(m, n, 2048),
      overhead: 60,
      accumulatorsInRegisters: true,
      producers: 0,
      clusters: [1],
      reach: [64, 64],
    },
  ];
  return [
    ...styles.filter((s) => s.instructions.length > 0),
    {
      name: "vector units, register tiles",
      instructions: [],
      flopsPerNs: machine.vectorTeraops.f32.value * 1000,
      tiles: [16, ...square].flatMap((m) => [16, 32, 64, 128].map((n) => [m, n] as const)),
      threads: (m, n) => warps(m, n, 1024),
      overhead: 48,
      accumulatorsInRegisters: true,
      producers: 0,
      clusters: [1],
      reach: [32, 32],
    },
  ];
}

export function productCandidates(
  problem: KernelProblem,
  machine: GpuMachine,
): readonly KernelConfiguration[] {
  const attention = problem.kind.startsWith("attention");
  const made = stylesFor(problem, machine).flatMap((style) =>
    style.tiles.flatMap((tile) =>
      [2, 3, 4, 6].flatMap((stages) =>
        style.clusters.map((cluster) =>
          attention
            ? attentionKernel(problem, machine, style, { tile, stages, cluster })
            : tiledProduct(problem, machine, style, { tile, stages, cluster }),
        ),
      ),
    ),
  );
  return [
    ...made,
    attention ? scoresInMemory(problem, machine) : streamingKernel(problem, machine),
  ];
}

interface Choice {
  readonly tile: readonly [m: number, n: number];
  readonly stages: number;
  readonly cluster: number;
}

/** Threads, registers and the blocks of a multiprocessor that both and shared memory leave room for. */
function footprint(
  style: Style,
  [m, n]: readonly [number, number],
  sharedBytes: number,
  machine: GpuMachine,
) {
  const a = machine.architecture;
  const threads = style.threads(m, n);
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
  { tile: [m, n], stages, cluster }: Choice,
): KernelConfiguration {
  const size = typeBits[problem.type] / 8;
  const weight = Math.ceil(problem.weightBits ?? typeBits[problem.type]) / 8;
  // A row of a stage is 128 bytes, the widest swizzle.
  const instruction = instructionFor(style.instructions, m, n);
  const k = instruction ? Math.max(128 / size, instruction.k) : 16;
  const sharedBytes = Math.ceil(stages * k * (m * size + n * weight));
  const { threads, registers, atOnce } = footprint(style, [m, n], sharedBytes, machine);
  const [down, across] = [Math.ceil(problem.rows / m), Math.ceil(problem.columns / n)];
  const tiles = down * across * problem.batch;
  const { bytes } = workOf(problem);
  const cost = price(
    {
      pieces: tiles,
      atOnce,
      flopsOfPiece: 2 * m * n * k * Math.ceil(problem.depth / k),
      bytes,
      // A cluster fetches what its blocks share once.
      fetchedBytes: tiles * problem.depth * (m * size + (n * weight) / cluster),
      // Too few stages leave the multiplies waiting for loads.
      pieceLatencyNs: fillNs + drainNs + (stages < 4 ? (4 - stages) * 300 : 0),
    },
    paceOf(
      machine,
      Math.min(
        issueShare(style, (m * n) / threads) * style.flopsPerNs,
        sharedLimit(style, machine, [m, n], size),
      ),
    ),
  );
  const grid = gridOf(Math.ceil(tiles / cluster) * cluster);
  return {
    implementation: style.name,
    form: "product",
    emitted: false,
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
    reasons: [
      `${down} x ${across} x ${problem.batch} tiles of ${m} x ${n} on ${machine.multiprocessors.value} multiprocessors, ${atOnce} at once`,
      `${stages} stages of ${(sharedBytes / stages / 1024).toFixed(1)} KiB`,
      `bound by ${cost.bound}`,
    ],
  };
}

/** Of vector instructions those that multiply: a square of accumulators is fed by loads of four. */
function issueShare({ instructions }: Style, accumulators: number): number {
  if (instructions.length > 0) return 1;
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
  { tile: [m, n], stages, cluster }: Choice,
): KernelConfiguration {
  const size = typeBits[problem.type] / 8;
  const keys = problem.keys ?? 1;
  const depth = problem.depth;
  const sharedBytes = Math.ceil(size * (m * depth + stages * 2 * n * depth));
  const wide: readonly [number, number] = [m, n + depth];
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
      pieceLatencyNs: fillNs + drainNs + (splits > 1 ? drainNs : 0),
    },
    paceOf(machine, Math.min(style.flopsPerNs, fedRate(style, machine, problem, [m, n]))),
  );
  return {
    implementation: `attention with online softmax: ${style.name}`,
    form: "attention",
    emitted: false,
    tile: { m, n, k: depth },
    ...spelled(instructionFor(style.instructions, m, n)),
    unroll: 1,
    sharedBytes,
    registersPerThread: registers,
    grid: gridOf(Math.ceil((blocks * splits) / cluster) * cluster),
    block: [threads, 1, 1],
    vectorBytes: vectorBytesFor(depth * size),
    stages,
    cluster,
    ...cost,
    reasons: [
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

/**
 * Attention whose heads are too deep for shared memory: a product, a softmax over rows in memory, and a
 * product again, on vector units. Slow, and possible for every depth.
 */
function scoresInMemory(problem: KernelProblem, machine: GpuMachine): KernelConfiguration {
  const { batch, rows, keys = 1, depth, type } = problem;
  const size = typeBits[type] / 8;
  const [edge, k] = [64, 16];
  const blocks = Math.ceil(rows / edge) * Math.ceil(keys / edge) * batch;
  const { bytes, flops } = workOf(problem);
  // Scores are written once and read twice, in f32.
  const scores = 3 * batch * rows * keys * 4;
  const cost = price(
    {
      pieces: blocks,
      atOnce: 1,
      flopsOfPiece: Math.max(4 * edge * edge * depth, flops / blocks),
      bytes: bytes + scores,
      fetchedBytes: bytes + scores + blocks * 4 * edge * depth * size,
      pieceLatencyNs: 3 * (fillNs + drainNs),
    },
    paceOf(machine, 0.5 * machine.vectorTeraops.f32.value * 1000),
  );
  return {
    implementation: "three kernels with the scores in memory: product, softmax, product",
    form: "attention",
    emitted: false,
    tile: { m: edge, n: edge, k: depth },
    unroll: k / 4,
    sharedBytes: Math.ceil(2 * k * 2 * edge * size),
    registersPerThread: 80,
    grid: gridOf(blocks),
    block: [128, 1, 1],
    vectorBytes: vectorBytesFor(depth * size),
    stages: 2,
    cluster: 1,
    ...cost,
    reasons: [
      `${blocks} tiles of ${edge} x ${edge} scores, ${(scores / 2 ** 20).toFixed(1)} MiB of traffic for them`,
      `bound by ${cost.bound}`,
    ],
  };
}

/** Each warp sums whole columns of a matrix that is read once: right where rows are few. */
function streamingKernel(problem: KernelProblem, machine: GpuMachine): KernelConfiguration {
  const size = (problem.weightBits ?? typeBits[problem.type]) / 8;
  const warps = 8;
  const outputs = problem.columns * problem.batch;
  const blocks = Math.max(
    1,
    Math.min(Math.ceil(outputs / warps), 8 * machine.multiprocessors.value),
  );
  const { bytes, flops } = workOf(problem);
  const chunks = Math.ceil(problem.rows / 4);
  const cost = price(
    {
      pieces: blocks,
      atOnce: 8,
      flopsOfPiece: flops / blocks,
      bytes: bytes * chunks,
      fetchedBytes: bytes * chunks,
      pieceLatencyNs: fillNs,
    },
    paceOf(machine, 0.5 * machine.vectorTeraops.f32.value * 1000),
  );
  return {
    implementation: "weights streamed past vector units",
    form: "product",
    emitted: false,
    tile: { m: Math.min(4, problem.rows), n: warps, k: 256 },
    unroll: 8,
    sharedBytes: 0,
    registersPerThread: 80,
    grid: gridOf(blocks),
    block: [32 * warps, 1, 1],
    vectorBytes: vectorBytesFor(problem.depth * size),
    stages: 1,
    cluster: 1,
    ...cost,
    reasons: [`${outputs} sums, a warp each, 8 loads in flight a thread`, `bound by ${cost.bound}`],
  };
}

function spelled(instruction: ReturnType<typeof instructionFor>) {
  if (!instruction) return {};
  const { name, m, n, k } = instruction;
  return { instruction: `${name} m${m}n${n}k${k}`, instructionTile: { m, n, k } };
}
