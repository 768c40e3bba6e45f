/**
 * Passes over rows on a GPU: norm, softmax, reduction and embedding give each row to a block that keeps it
 * in registers; rows to be summed that are fewer than the machine has room for are cut over blocks, whose
 * sums a second kernel adds; elementwise work and rotations need no rows and are cut anywhere.
 */
import type { GpuMachine } from "../../target/machine.ts";
import type { Candidate } from "./configuration.ts";
import { gridOf, paceOf, residentBlocks, vectorBytesFor } from "./gpu-launch.ts";
import { plainPasses } from "./gpu-plain.ts";
import { price } from "./price.ts";
import { isFlat, type KernelProblem, typeBits, workOf } from "./problem.ts";

export function passCandidates(problem: KernelProblem, machine: GpuMachine): readonly Candidate[] {
  const kept = [32, 64, 128, 256, 512, 1024]
    .filter((threads) => threads >= leastThreads(problem))
    .flatMap((threads) =>
      [1, 2, 4, 8].flatMap((unroll) =>
        splitsFor(problem, machine).map((splits) =>
          passKernel(problem, machine, { threads, unroll, splits }),
        ),
      ),
    );
  return [...kept, ...plainPasses(problem, machine)];
}

/** Small blocks are for short rows: many of them cost starts, and leave a multiprocessor's places unused. */
function leastThreads(problem: KernelProblem): number {
  if (isFlat(problem)) return 128;
  const rowBytes = (problem.columns * typeBits[problem.type]) / 8;
  return Math.min(128, rowBytes / vectorBytesFor(rowBytes));
}

interface Choice {
  readonly threads: number;
  readonly unroll: number;
  /** Blocks that a row is cut over. */
  readonly splits: number;
}

/** Sums of rows may be added later; a block a multiprocessor, and several. */
function splitsFor(problem: KernelProblem, machine: GpuMachine): readonly number[] {
  if (problem.kind !== "reduction") return [1];
  const units = machine.multiprocessors.value;
  const rows = problem.rows * problem.batch;
  const wanted = [1, 2, 4, 8].map((n) => Math.floor((n * units) / rows));
  return [1, ...wanted.filter((n) => n > 1)];
}

/** Classes that read a row again when they have seen all of it. */
const rereads: ReadonlySet<KernelProblem["kind"]> = new Set(["norm", "softmax"]);

function passKernel(problem: KernelProblem, machine: GpuMachine, choice: Choice): Candidate {
  const { threads, unroll, splits } = choice;
  const size = typeBits[problem.type] / 8;
  const vectorBytes = vectorBytesFor(problem.columns * size);
  const rows = problem.rows * problem.batch;
  const { bytes, flops } = workOf(problem);
  const flat = isFlat(problem);
  const perBlock = (threads * unroll * vectorBytes) / size;
  const blocks = flat ? Math.ceil((rows * problem.columns) / perBlock) : rows * splits;
  const passes = flat ? 1 : Math.ceil(problem.columns / splits / perBlock);
  const registers = 24 + (unroll * vectorBytes) / 2;
  const atOnce = residentBlocks(machine, threads, registers);
  const pace = paceOf(machine, machine.vectorTeraops.f32.value * 1000);
  // What is written is not waited for.
  const readShare = problem.kind === "reduction" ? 1 : 0.5;
  const cost = price(
    {
      pieces: blocks,
      atOnce,
      flopsOfPiece: flops / blocks,
      // A row that its block cannot keep is read once more.
      bytes: passes > 1 && rereads.has(problem.kind) ? bytes * 1.5 : bytes,
      fetchedBytes: bytes,
      bytesInFlight: (threads * unroll * vectorBytes) / readShare,
      pieceLatencyNs: (400 + 60 * passes + (flat ? 0 : 20 * Math.log2(threads))) / atOnce,
    },
    { ...pace, launchNs: (splits > 1 ? 2 : 1) * pace.launchNs },
  );
  return {
    implementation: nameOf(problem, splits),
    form: flat ? "elements" : "rows",
    tile: { m: 1, n: perBlock, k: 1 },
    unroll,
    sharedBytes: flat ? 0 : 4 * (threads / 32),
    registersPerThread: registers,
    grid: gridOf(blocks),
    block: [threads, 1, 1],
    vectorBytes,
    stages: 1,
    cluster: 1,
    ...cost,
    why: () => [
      `${blocks} blocks of ${threads} threads, ${unroll} x ${vectorBytes} B a thread`,
      ...(splits > 1
        ? [`a row is cut over ${splits} blocks; a second kernel adds their sums`]
        : []),
      passes > 1 ? `a block takes ${passes} passes` : "each element is read once",
      `bound by ${cost.bound}`,
    ],
  };
}

function nameOf(problem: KernelProblem, splits: number): string {
  if (isFlat(problem)) return "one pass, elements in vectors";
  if (splits > 1) return "rows cut over blocks, their sums added by a second kernel";
  return "a block a row, values in registers";
}
