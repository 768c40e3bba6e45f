/**
 * Kernels of a CPU: products in register tiles over packed weights, rows of passes dealt out to cores. The
 * register tile leaves two vectors of registers for operands, as the code generators do.
 */
import { invariant } from "../../support/invariant.ts";
import type { Target } from "../../target/target.ts";
import type { KernelConfiguration } from "./configuration.ts";
import { type Pace, price } from "./price.ts";
import { type KernelProblem, typeBits, workOf } from "./problem.ts";

export function cpuCandidates(
  problem: KernelProblem,
  target: Target,
): readonly KernelConfiguration[] {
  const { machine } = target;
  invariant(machine?.kind === "cpu", () => `${target.name} is no CPU`);
  const cores = machine.cores?.value ?? 1;
  const main = target.memory.at(-1)!.bytesPerNsPerCore.value;
  const pace: Pace = {
    flopsPerNs: target.f32FlopsPerNsPerCore.value * cores,
    bytesPerNs: Math.min(machine.memoryBytesPerNs?.value ?? main * cores, main * cores),
    // Panels are packed so that a tile's operands come from the nearest caches.
    cacheBytesPerNs: target.memory[0]!.bytesPerNsPerCore.value * cores,
    units: cores,
    launchNs: target.barrierNs.value,
  };
  const lanes = target.vectorBytes / 4;
  const heights = [1, 2, 3, 4, 5, 6, 8, 12, 14];
  const tiles = heights.flatMap((m) => [1, 2, 3, 4].map((vectors) => ({ m, vectors })));
  const room = tiles.filter(
    ({ m, vectors }) => m * vectors + vectors + 1 <= target.vectorRegisters,
  );
  const chains = target.multiplyAddLatencyNs.value * target.vectorOpsPerNsPerCore.value;
  return room.map(({ m, vectors }) => {
    const n = vectors * lanes;
    const { bytes, flops } = workOf(problem);
    // Accumulators fewer than a multiply-add takes steps leave the unit waiting.
    const busy = Math.min(1, (m * vectors) / Math.max(1, chains));
    // Loads of a step: one broadcast a row, one vector a column of the tile.
    const fed = Math.min(1, (2 * m * vectors) / (m + vectors));
    const [down, across] = [Math.ceil(problem.rows / m), Math.ceil(problem.columns / n)];
    const pieces = down * across * problem.batch;
    const padded = (down * m * across * n) / (problem.rows * problem.columns);
    const cost = price(
      {
        pieces,
        atOnce: 1,
        flopsOfPiece: (flops * padded) / pieces / (busy * Math.min(1, fed)),
        bytes,
        fetchedBytes: bytes,
        pieceLatencyNs: 0,
      },
      pace,
    );
    return {
      implementation: `register tiles of ${target.vectorBytes}-byte vectors`,
      emitted: target.emitter !== undefined && problem.type === "f32",
      tile: { m, n, k: Math.min(problem.depth, 256) },
      unroll: vectors,
      sharedBytes: 0,
      registersPerThread: m * vectors + vectors + 1,
      grid: [Math.min(cores, pieces), 1, 1],
      block: [1, 1, 1],
      vectorBytes: Math.min(target.vectorBytes, (lanes * typeBits[problem.type]) / 8),
      stages: 1,
      cluster: 1,
      ...cost,
      reasons: [
        `${m} x ${vectors} accumulators keep ${(100 * busy).toFixed(0)} % of the multiply-add slots busy`,
        `${(100 * (padded - 1)).toFixed(1)} % of the work is padding`,
        `bound by ${cost.bound}`,
      ],
    } satisfies KernelConfiguration;
  });
}
