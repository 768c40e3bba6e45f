/**
 * GPU kernels without tiles in shared memory: what Wavetile writes today (emitted.ts). Threads keep their
 * sums in registers and operands come through the caches; a sum along a long row is shared by a warp;
 * norms, softmax and attention are a kernel for each step, with what passes between them in memory.
 */
import type { GpuMachine } from "../../target/machine.ts";
import type { Candidate } from "./configuration.ts";
import { gridOf, paceOf, residentBlocks } from "./gpu-launch.ts";
import { stepsFor, stepsOf } from "./plain-steps.ts";
import { type Pace, price } from "./price.ts";
import { isFlat, type KernelProblem, typeBits, workOf } from "./problem.ts";

/** From the first load to the first multiply, and from the last to the stored result. */
const endsNs = 2000;
/** What one request to the caches moves at least. */
const sectorBytes = 32;

/** @param multiplies of the instructions of a thread those that multiply */
function vectorPace(machine: GpuMachine, multiplies: number): Pace {
  return paceOf(machine, multiplies * machine.vectorTeraops.f32.value * 1000);
}

const launchOf = {
  sharedBytes: 0,
  stages: 1,
  cluster: 1,
  plain: true,
} as const;

export function plainProducts(problem: KernelProblem, machine: GpuMachine): readonly Candidate[] {
  const columns = [1, 2, 4, 8].flatMap((m) =>
    [64, 128, 256].map((n) => threadColumns(problem, machine, m, n)),
  );
  return [...columns, warpSums(problem, machine)];
}

/** A thread a column of m results: each step loads one weight and m values that all threads share. */
function threadColumns(
  problem: KernelProblem,
  machine: GpuMachine,
  m: number,
  n: number,
): Candidate {
  const size = typeBits[problem.type] / 8;
  const { depth, batch } = problem;
  const [down, across] = [Math.ceil(problem.rows / m), Math.ceil(problem.columns / n)];
  const tiles = down * across * batch;
  const registers = 24 + 2 * m;
  const cost = price(
    {
      pieces: tiles,
      atOnce: residentBlocks(machine, n, registers),
      flopsOfPiece: 2 * m * n * depth,
      bytes: workOf(problem).bytes,
      fetchedBytes: tiles * depth * (m + n) * size,
      pieceLatencyNs: endsNs,
    },
    vectorPace(machine, m / (2 * m + 1)),
  );
  return {
    ...launchOf,
    implementation: "sums in registers, a thread a column, operands through the caches",
    form: "product",
    tile: { m, n, k: 1 },
    unroll: m,
    registersPerThread: registers,
    grid: gridOf(tiles),
    block: [n, 1, 1],
    vectorBytes: size,
    ...cost,
    why: () => [
      `${down} x ${across} x ${batch} blocks of ${n} threads with ${m} sums each`,
      `bound by ${cost.bound}`,
    ],
  };
}

/** The summed extent dealt out to the threads of a warp, which add up at the end. */
function warpSums(problem: KernelProblem, machine: GpuMachine): Candidate {
  const { architecture: a } = machine;
  const size = typeBits[problem.type] / 8;
  const { depth, batch } = problem;
  const sums = problem.rows * problem.columns * batch;
  const cost = price(
    {
      pieces: sums,
      atOnce: residentBlocks(machine, a.warpThreads, 32),
      flopsOfPiece: 2 * depth,
      bytes: workOf(problem).bytes,
      // Neighbouring weights of a column lie a row apart.
      fetchedBytes: sums * depth * (size + sectorBytes),
      pieceLatencyNs: endsNs,
    },
    vectorPace(machine, 1 / 3),
  );
  return {
    ...launchOf,
    implementation: "a warp a sum, operands through the caches",
    form: "product",
    tile: { m: 1, n: 1, k: a.warpThreads },
    unroll: 1,
    registersPerThread: 32,
    grid: gridOf(sums),
    block: [a.warpThreads, 1, 1],
    vectorBytes: size,
    ...cost,
    why: () => [`${sums} sums of ${depth} products, a warp each`, `bound by ${cost.bound}`],
  };
}

/**
 * Attention as a product, a softmax over rows in memory, and a product again, on vector units. Slow, and
 * possible for every depth.
 */
export function scoresInMemory(problem: KernelProblem, machine: GpuMachine): Candidate {
  const { batch, rows, keys = 1, depth, type } = problem;
  const size = typeBits[type] / 8;
  const [m, n] = [4, 64];
  const blocks = Math.ceil(rows / m) * Math.ceil(keys / n) * batch;
  const { bytes, flops } = workOf(problem);
  // Written by the first product, read and written by the softmax' steps, read by the second product.
  const { passes, kernels } = stepsOf.softmax;
  const scores = (2 + passes) * batch * rows * keys * 4;
  const pace = vectorPace(machine, m / (2 * m + 1));
  const cost = price(
    {
      pieces: blocks,
      atOnce: 1,
      flopsOfPiece: Math.max(4 * m * n * depth, flops / blocks),
      bytes: bytes + scores,
      fetchedBytes: bytes + scores + 2 * blocks * (m + n) * depth * size,
      pieceLatencyNs: endsNs,
    },
    { ...pace, launchNs: (kernels + 2) * pace.launchNs },
  );
  return {
    ...launchOf,
    implementation: "product, softmax, product as kernels of their own, the scores in memory",
    form: "attention",
    tile: { m, n, k: depth },
    unroll: m,
    registersPerThread: 32,
    grid: gridOf(blocks),
    block: [n, 1, 1],
    vectorBytes: size,
    ...cost,
    why: () => [
      `${kernels + 2} kernels, ${(scores / 2 ** 20).toFixed(1)} MiB of traffic for the scores`,
      `bound by ${cost.bound}`,
    ],
  };
}

export function plainPasses(problem: KernelProblem, machine: GpuMachine): readonly Candidate[] {
  const byElement = isFlat(problem) || problem.kind === "embedding";
  return [byElement ? threadElements(problem, machine) : warpRows(problem, machine)];
}

function threadElements(problem: KernelProblem, machine: GpuMachine): Candidate {
  const threads = 64;
  const elements = problem.batch * problem.rows * problem.columns;
  const blocks = Math.ceil(elements / threads);
  const { bytes, flops } = workOf(problem);
  const cost = price(
    {
      pieces: blocks,
      atOnce: residentBlocks(machine, threads, 24),
      flopsOfPiece: flops / blocks,
      bytes,
      fetchedBytes: bytes,
      pieceLatencyNs: 400,
    },
    vectorPace(machine, 1 / 3),
  );
  return {
    ...launchOf,
    implementation: "one pass, an element a thread",
    form: "elements",
    tile: { m: 1, n: threads, k: 1 },
    unroll: 1,
    registersPerThread: 24,
    grid: gridOf(blocks),
    block: [threads, 1, 1],
    vectorBytes: typeBits[problem.type] / 8,
    ...cost,
    why: () => [`${blocks} blocks of ${threads} threads`, `bound by ${cost.bound}`],
  };
}

function warpRows(problem: KernelProblem, machine: GpuMachine): Candidate {
  const threads = machine.architecture.warpThreads;
  const rows = problem.batch * problem.rows;
  const { bytes, flops } = workOf(problem);
  const { kernels, passes } = stepsFor(problem.kind) ?? { kernels: 1, passes: 2 };
  const moved = (bytes * passes) / 2;
  const pace = vectorPace(machine, 1 / 3);
  const cost = price(
    {
      pieces: rows,
      atOnce: residentBlocks(machine, threads, 24),
      flopsOfPiece: flops / rows,
      bytes: moved,
      fetchedBytes: moved,
      pieceLatencyNs: 400 + 2 * Math.ceil(problem.columns / threads),
    },
    { ...pace, launchNs: kernels * pace.launchNs },
  );
  return {
    ...launchOf,
    implementation:
      kernels === 1
        ? "a warp a row"
        : "a kernel a step, a warp a row, what passes between in memory",
    form: "rows",
    tile: { m: 1, n: threads, k: 1 },
    unroll: 1,
    registersPerThread: 24,
    grid: gridOf(rows),
    block: [threads, 1, 1],
    vectorBytes: typeBits[problem.type] / 8,
    ...cost,
    why: () => [
      `${kernels === 1 ? "one kernel" : `${kernels} kernels`}, ${rows} rows, a warp each`,
      `bound by ${cost.bound}`,
    ],
  };
}
