/**
 * Passes over rows on a GPU: norm, softmax, reduction and embedding give each row to a block that keeps it
 * in registers; elementwise work and rotations need no rows and are cut anywhere.
 */
import type { GpuMachine } from "../../target/machine.ts";
import type { Candidate } from "./configuration.ts";
import { gridOf, paceOf, residentBlocks, vectorBytesFor } from "./gpu-launch.ts";
import { plainPasses } from "./gpu-plain.ts";
import { price } from "./price.ts";
import { isFlat, type KernelProblem, typeBits, workOf } from "./problem.ts";

export function passCandidates(problem: KernelProblem, machine: GpuMachine): readonly Candidate[] {
  const kept = [32, 64, 128, 256, 512, 1024].flatMap((threads) =>
    [1, 2, 4, 8].map((unroll) => passKernel(problem, machine, threads, unroll)),
  );
  return [...kept, ...plainPasses(problem, machine)];
}

function passKernel(
  problem: KernelProblem,
  machine: GpuMachine,
  threads: number,
  unroll: number,
): Candidate {
  const size = typeBits[problem.type] / 8;
  const vectorBytes = vectorBytesFor(problem.columns * size);
  const rows = problem.rows * problem.batch;
  const { bytes, flops } = workOf(problem);
  const flat = isFlat(problem);
  const perBlock = (threads * unroll * vectorBytes) / size;
  const blocks = flat ? Math.ceil((rows * problem.columns) / perBlock) : rows;
  const passes = flat ? 1 : Math.ceil(problem.columns / perBlock);
  const registers = 24 + (unroll * vectorBytes) / 2;
  const atOnce = residentBlocks(machine, threads, registers);
  const cost = price(
    {
      pieces: blocks,
      atOnce,
      flopsOfPiece: flops / blocks,
      // A row that its block cannot keep is read once more.
      bytes: passes <= 1 ? bytes : bytes * 1.5,
      fetchedBytes: bytes,
      pieceLatencyNs: (400 + 60 * passes + (flat ? 0 : 20 * Math.log2(threads))) / atOnce,
    },
    paceOf(machine, machine.vectorTeraops.f32.value * 1000),
  );
  return {
    implementation: flat ? "one pass, elements in vectors" : "a block a row, values in registers",
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
      passes > 1 ? `a row takes ${passes} passes` : "each element is read once",
      `bound by ${cost.bound}`,
    ],
  };
}
