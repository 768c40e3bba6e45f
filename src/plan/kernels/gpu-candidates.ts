/**
 * Kernels that a GPU could run for a problem. Products go to the matrix unit that the architecture has
 * (wgmma, tcgen05, mma.sync) or to vector units; thin ones stream their weights; passes over rows give each
 * row to as many threads as it fills. Sizes come from the architecture's data; estimates from price.ts.
 */
import type { GpuMachine, MatrixInstruction } from "../../target/machine.ts";
import type { KernelConfiguration } from "./configuration.ts";
import { type Pace, price } from "./price.ts";
import { type KernelProblem, typeBits, workOf } from "./problem.ts";

/** Launch of a graph node and the ramp of a grid (reference: CUDA graphs of small kernels, 2 us). */
const launchNs = 2000;
/** Of one block: first loads from memory to the first multiply. */
const fillNs = 1200;
/** Of one tile: from the last multiply to the stored result. */
const drainNs = 800;
const mostWidth = 65535;

function paceOf(machine: GpuMachine, flopsPerNs: number): Pace {
  const { multiprocessors, memoryBytesPerNs } = machine;
  // Sustained shares of the data sheet: matrix units are limited by power, memory by refresh and turns.
  return {
    flopsPerNs: 0.75 * flopsPerNs,
    bytesPerNs: 0.88 * memoryBytesPerNs.value,
    cacheBytesPerNs: 2.2 * memoryBytesPerNs.value,
    units: multiprocessors.value,
    launchNs,
  };
}

interface Style {
  readonly name: string;
  readonly instruction?: MatrixInstruction;
  readonly flopsPerNs: number;
  readonly tiles: readonly (readonly [m: number, n: number])[];
  readonly threads: (m: number, n: number) => number;
  /** Registers of a thread beside its accumulators. */
  readonly overhead: number;
  /** Accumulators live in registers; tensor memory keeps them elsewhere. */
  readonly accumulatorsInRegisters: boolean;
  readonly clusters: readonly number[];
}

const square = [64, 128] as const;

function stylesFor({ type }: KernelProblem, machine: GpuMachine): readonly Style[] {
  const { matrixInstructions, features } = machine.architecture;
  const rate = (machine.matrixTeraops[type]?.value ?? 0) * 1000;
  const of = (name: string) =>
    matrixInstructions.find((i) => i.name === name && i.operands === type);
  const [wgmma, tensor, warp] = [of("wgmma.mma_async"), of("tcgen05.mma"), of("mma.sync")];
  const styles: Style[] = [];
  if (wgmma && rate > 0) {
    styles.push({
      name: "wgmma, bulk tensor copies, producer and consumer warpgroups",
      instruction: wgmma,
      flopsPerNs: rate,
      tiles: [64, 128].flatMap((m) => [16, 32, 64, 128, 192, 256].map((n) => [m, n] as const)),
      threads: (m) => 128 * (1 + m / 64),
      overhead: 40,
      accumulatorsInRegisters: true,
      clusters: [1, 2],
    });
  }
  if (tensor && rate > 0) {
    styles.push({
      name: "tcgen05, bulk tensor copies, accumulators in tensor memory",
      instruction: tensor,
      flopsPerNs: rate,
      tiles: [64, 128].flatMap((m) => [32, 64, 128, 256].map((n) => [m, n] as const)),
      threads: () => 192,
      overhead: 64,
      accumulatorsInRegisters: false,
      clusters: [1, 2],
    });
  }
  if (warp && rate > 0) {
    const share = wgmma || tensor ? 0.62 : 1;
    styles.push({
      name: `mma.sync, ${features.includes("cp.async") ? "asynchronous copies" : "copies through registers"}`,
      instruction: warp,
      flopsPerNs: share * rate,
      tiles: [16, ...square].flatMap((m) => [32, 64, 128].map((n) => [m, n] as const)),
      threads: (m, n) => 32 * Math.max(1, Math.min(8, (m * n) / 2048)),
      overhead: 60,
      accumulatorsInRegisters: true,
      clusters: [1],
    });
  }
  styles.push({
    name: "vector units, register tiles",
    flopsPerNs: machine.vectorTeraops.f32.value * 1000,
    tiles: [16, ...square].flatMap((m) => [16, 64, 128].map((n) => [m, n] as const)),
    threads: (m, n) => 32 * Math.max(1, Math.min(8, (m * n) / 1024)),
    overhead: 48,
    accumulatorsInRegisters: true,
    clusters: [1],
  });
  return styles;
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
  return [...made, streamingKernel(problem, machine)];
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
  const holders = style.name.startsWith("wgmma") ? threads - 128 : threads;
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
  const k = style.instruction ? Math.max(128 / size, Math.max(...style.instruction.k)) : 16;
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
    paceOf(machine, Math.min(style.flopsPerNs, sharedLimit(style, machine, [m, n], size))),
  );
  const grid = gridOf(Math.ceil(tiles / cluster) * cluster);
  return {
    implementation: style.name,
    emitted: false,
    tile: { m, n, k },
    ...instructionOf(style, n),
    unroll: Math.max(1, k / (style.instruction ? Math.max(...style.instruction.k) : 4)),
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

/**
 * Operations a nanosecond that shared memory can feed: an instruction of m x n reads its operands whole;
 * warps of the older unit work on 64 x 32 of the tile at most, and vector units on 8 x 8 a thread.
 */
function sharedLimit(
  { name }: Style,
  machine: GpuMachine,
  [m, n]: readonly [number, number],
  size: number,
): number {
  const reach = name.startsWith("mma")
    ? [64, 32]
    : name.startsWith("vector")
      ? [32, 32]
      : [128, 256];
  const [height, width] = [Math.min(m, reach[0]!), Math.min(n, reach[1]!)];
  const { architecture, multiprocessors, boostMhz } = machine;
  const bytesPerNs =
    (architecture.sharedBytesPerCycle.value * multiprocessors.value * boostMhz.value) / 1000;
  return (bytesPerNs * 2 * height * width) / ((height + width) * size);
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
  const { bytes } = workOf(problem);
  const cost = price(
    {
      pieces: blocks * splits,
      atOnce,
      flopsOfPiece: (4 * m * depth * n * Math.ceil(keys / n)) / splits,
      bytes,
      fetchedBytes: blocks * size * depth * (m + 2 * keys),
      pieceLatencyNs: fillNs + drainNs + (splits > 1 ? drainNs : 0),
    },
    // Exponentials share the issue slots with the matrix unit.
    paceOf(machine, 0.75 * style.flopsPerNs),
  );
  return {
    implementation: `attention with online softmax: ${style.name}`,
    emitted: false,
    tile: { m, n, k: depth },
    ...instructionOf(style, n),
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

/** Each warp sums whole columns of a matrix that is read once: right where rows are few. */
function streamingKernel(problem: KernelProblem, machine: GpuMachine): KernelConfiguration {
  const size = (problem.weightBits ?? typeBits[problem.type]) / 8;
  const warps = 8;
  const outputs =
    problem.columns *
    problem.batch *
    (problem.kind === "attention-decode" ? (problem.keys ?? 1) : 1);
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

export function passCandidates(
  problem: KernelProblem,
  machine: GpuMachine,
): readonly KernelConfiguration[] {
  const size = typeBits[problem.type] / 8;
  const vectorBytes = vectorBytesFor(problem.columns * size);
  const rows = problem.rows * problem.batch;
  const { bytes, flops } = workOf(problem);
  return [32, 64, 128, 256, 512, 1024].flatMap((threads) =>
    [1, 2, 4, 8].map((unroll): KernelConfiguration => {
      const single = problem.kind === "elementwise" || problem.kind === "rope";
      const perBlock = (threads * unroll * vectorBytes) / size;
      const blocks = single ? Math.ceil((rows * problem.columns) / perBlock) : rows;
      const passes = single ? 1 : Math.ceil(problem.columns / perBlock);
      const kept = (unroll * vectorBytes) / 4;
      const a = machine.architecture;
      const registers = 24 + 2 * kept;
      const atOnce = Math.max(
        1,
        Math.floor(
          Math.min(
            a.threadsPerSm.value / threads,
            a.registersPerSm.value / (registers * threads),
            a.blocksPerSm.value,
          ),
        ),
      );
      const cost = price(
        {
          pieces: blocks,
          atOnce,
          flopsOfPiece: flops / blocks,
          // A row that its block cannot keep is read once more.
          bytes: single || passes <= 1 ? bytes : bytes * 1.5,
          fetchedBytes: bytes,
          pieceLatencyNs: (400 + 60 * passes + (single ? 0 : 20 * Math.log2(threads))) / atOnce,
        },
        paceOf(machine, machine.vectorTeraops.f32.value * 1000),
      );
      return {
        implementation: single
          ? "one pass, elements in vectors"
          : "a block a row, values in registers",
        emitted: false,
        tile: { m: 1, n: perBlock, k: 1 },
        unroll,
        sharedBytes: single ? 0 : 4 * (threads / 32),
        registersPerThread: registers,
        grid: gridOf(blocks),
        block: [threads, 1, 1],
        vectorBytes,
        stages: 1,
        cluster: 1,
        ...cost,
        reasons: [
          `${blocks} blocks of ${threads} threads, ${unroll} x ${vectorBytes} B a thread`,
          passes > 1 ? `a row takes ${passes} passes` : "each element is read once",
          `bound by ${cost.bound}`,
        ],
      };
    }),
  );
}

/** Blocks beyond the first axis' limit are not needed: it holds 2^31 - 1. */
function gridOf(blocks: number): readonly [number, number, number] {
  if (blocks <= 2 ** 31 - 1) return [blocks, 1, 1];
  const layers = Math.ceil(blocks / (2 ** 31 - 2));
  return [2 * Math.ceil(blocks / layers / 2), Math.min(layers, mostWidth), 1];
}

/** The widest load that every row begins at. */
function vectorBytesFor(rowBytes: number): number {
  return [16, 8, 4, 2].find((bytes) => rowBytes % bytes === 0) ?? 1;
}

function instructionOf({ instruction: i }: Style, n: number): { readonly instruction?: string } {
  if (!i) return {};
  const columns = i.n.filter((x) => x <= n).at(-1) ?? i.n[0]!;
  return { instruction: `${i.name} m${i.m[0]}n${columns}k${i.k.at(-1)}` };
}
