/**
 * Kernels of a CPU: products in register tiles over packed weights, attention in blocks of queries, rows
 * of passes dealt out to cores. The register tile leaves room for operands, as the code generators do;
 * matrix units (AMX) and instructions of narrow types take part where the machine's data lists them.
 */
import { invariant } from "../../support/invariant.ts";
import type { CpuMachine } from "../../target/machine.ts";
import type { Target } from "../../target/target.ts";
import { type Candidate, registersOf, type Tile } from "./configuration.ts";
import { stepsFor, stepsOf } from "./plain-steps.ts";
import { type Pace, price } from "./price.ts";
import {
  isFlat,
  isPacked,
  isPass,
  type KernelProblem,
  typeBits,
  unpackInstructions,
  workOf,
} from "./problem.ts";

interface CpuTile extends Tile {
  readonly registers: number;
  /** Part of the unit's time that this many results in flight fill. */
  readonly busy: number;
}

interface CpuUnit {
  readonly name: string;
  /** Operations a nanosecond of one core. */
  readonly flopsPerNs: number;
  /** Register tiles: rows, columns, and registers that they take. */
  readonly tiles: readonly CpuTile[];
  /** On registers of their own. */
  readonly instruction?: string;
  /** Of full vectors, as code is written for today. */
  readonly plain?: boolean;
}

export function cpuCandidates(problem: KernelProblem, target: Target): readonly Candidate[] {
  const { machine } = target;
  invariant(machine?.kind === "cpu", () => `${target.name} is no CPU`);
  if (isPass(problem)) return passCandidates(problem, target);
  const vector = vectorUnit(problem, target);
  const units = [...narrowUnits(problem, target, machine), vector];
  const made = units.flatMap((unit) =>
    unit.tiles.map((tile) => productKernel(problem, target, unit, tile)),
  );
  if (!problem.kind.startsWith("attention")) return made;
  const ofVectors = vector.tiles.map((t) => productKernel(problem, target, vector, t));
  return [...made, ...ofVectors.map((c) => scoresInMemory(problem, target, c))];
}

/** Rows in one go, and step by step where a class has several. */
function passCandidates(problem: KernelProblem, target: Target): readonly Candidate[] {
  const whole = [1, 2, 4, 8]
    .flatMap((unroll) =>
      splitsFor(problem, target).map((splits) => passKernel(problem, target, unroll, splits)),
    )
    // Sums of parts of a row are not written today.
    .map((c) => ({ ...c, plain: !c.implementation.includes("cut over") }));
  const steps = stepsFor(problem.kind);
  if (!steps) return whole;
  const byStep = whole.map((c): Candidate => {
    // Whole rows are read and written once; steps pass their results through memory or the caches.
    const estimateNs = (c.estimateNs - target.barrierNs.value) * (steps.passes / 2);
    return {
      ...c,
      implementation: `a kernel a step, ${c.implementation}, what passes between in memory`,
      plain: true,
      estimateNs: estimateNs + steps.kernels * target.barrierNs.value,
      why: () => [`${steps.kernels} kernels, ${steps.passes} readings or writings`, ...c.why()],
    };
  });
  return [...whole, ...byStep];
}

/** Product, softmax, product: the scores are written, go through the softmax' steps and are read. */
function scoresInMemory(
  { batch, rows, keys = 1 }: KernelProblem,
  target: Target,
  fused: Candidate,
): Candidate {
  const { kernels, passes } = stepsOf.softmax;
  const bytes = (2 + passes) * batch * rows * keys * 4;
  const extra = bytes / paceOf(target, 1).bytesPerNs + (kernels + 1) * target.barrierNs.value;
  return {
    ...fused,
    plain: true,
    implementation: `product, softmax, product as kernels of their own: ${target.vectorBytes}-byte vectors`,
    estimateNs: fused.estimateNs + extra,
    bound: "memory",
    why: () => [
      `${kernels + 2} kernels, ${(bytes / 2 ** 20).toFixed(1)} MiB of traffic for the scores`,
      ...fused.why(),
    ],
  };
}

function paceOf(target: Target, flopsPerNs: number): Pace {
  const { machine } = target;
  invariant(machine?.kind === "cpu", () => `${target.name} is no CPU`);
  const cores = machine.cores?.value ?? 1;
  const main = target.memory.at(-1)!.bytesPerNsPerCore.value * cores;
  return {
    flopsPerNs: flopsPerNs * cores,
    bytesPerNs: Math.min(machine.memoryBytesPerNs?.value ?? main, main),
    // Panels are packed so that a tile's operands come from the nearest caches.
    cacheBytesPerNs: target.memory[0]!.bytesPerNsPerCore.value * cores,
    units: cores,
    // Prefetchers ask ahead: cores of a CPU are limited by their rates.
    memoryLatencyNs: 0,
    launchNs: target.barrierNs.value,
  };
}

const heights = [1, 2, 3, 4, 5, 6, 8, 12, 14];

/** Vector multiply-adds in f32; narrower types are widened on the way in. */
function vectorUnit({ depth }: KernelProblem, target: Target): CpuUnit {
  const lanes = target.vectorBytes / 4;
  const tiles = heights.flatMap((m) =>
    [1, 2, 3, 4].map((vectors) => ({
      m,
      n: vectors * lanes,
      k: Math.min(depth, 256),
      registers: m * vectors + vectors + 1,
      busy: busyShare(target, m * vectors),
    })),
  );
  return {
    name: `register tiles of ${target.vectorBytes}-byte vectors`,
    flopsPerNs: target.f32FlopsPerNsPerCore.value,
    plain: true,
    tiles: tiles.filter((t) => t.registers <= registersOf(target)),
  };
}

/** Units of narrow types, from the machine's data: AMX on its own tile registers, others on vectors. */
function narrowUnits(
  problem: KernelProblem,
  target: Target,
  machine: CpuMachine,
): readonly CpuUnit[] {
  const ghz = machine.clockMhz.value / 1000;
  return machine.matrixExtensions
    .filter((e) => e.operands === problem.type)
    .map((e): CpuUnit => {
      const onTiles = machine.extensions.includes("amx-tile") && e.name.startsWith("td");
      const vector = vectorUnit(problem, target);
      return {
        name: onTiles ? `${e.name}, tiles of 16 x 16` : `${e.name}, ${vector.name}`,
        flopsPerNs: e.operationsPerCycle.value * ghz,
        tiles: onTiles ? tileRegisters(problem) : vector.tiles,
        ...(onTiles && { instruction: e.name }),
      };
    });
}

/**
 * Eight tile registers of 16 rows of 64 bytes: results, and a column and a row of operands. A multiply
 * starts every 16 cycles and takes 52 (Intel optimization manual, Intel AMX).
 */
function tileRegisters({ type }: KernelProblem): readonly CpuTile[] {
  const sides = [1, 2, 3];
  const pairs = sides.flatMap((m) => sides.map((n) => [m, n] as const));
  return pairs
    .filter(([m, n]) => m * n + m + n <= 8)
    .map(([m, n]) => ({
      ...{ m: 16 * m, n: 16 * n, k: 512 / typeBits[type] },
      ...{ registers: m * n + m + n, busy: Math.min(1, (m * n * 16) / 52) },
    }));
}

function productKernel(
  problem: KernelProblem,
  target: Target,
  unit: CpuUnit,
  { registers, busy, ...tile }: CpuTile,
): Candidate {
  const attention = problem.kind.startsWith("attention");
  const { m, n } = tile;
  const lanes = target.vectorBytes / 4;
  const { bytes, flops } = workOf(problem);
  const columns = attention ? (problem.keys ?? 1) : problem.columns;
  const [down, across] = [Math.ceil(problem.rows / m), Math.ceil(columns / n)];
  const blocks = down * problem.batch;
  // Attention gives a block of queries to one core, with all its keys where there are blocks enough.
  const splits = attention ? keySplits(problem, target, blocks, n) : 1;
  const pieces = blocks * (attention ? splits : across);
  const padded = (down * m * across * n) / (problem.rows * columns);
  const pace = paceOf(target, unit.flopsPerNs);
  const cost = price(
    {
      pieces,
      atOnce: 1,
      flopsOfPiece: (flops * padded) / pieces / busy + unpackingWork(problem, target, unit, n),
      bytes,
      fetchedBytes: bytes,
      pieceLatencyNs: 0,
    },
    { ...pace, launchNs: (splits > 1 ? 2 : 1) * pace.launchNs },
  );
  return {
    implementation: attention ? `attention with online softmax: ${unit.name}` : unit.name,
    form: attention ? "attention" : "product",
    plain: unit.plain === true && !attention,
    tile: attention ? { ...tile, k: problem.depth } : tile,
    ...(unit.instruction !== undefined && {
      instruction: `${unit.instruction} m16n16k${tile.k}`,
      instructionTile: { m: 16, n: 16, k: tile.k },
    }),
    unroll: Math.max(1, Math.ceil(n / lanes)),
    sharedBytes: 0,
    registersPerThread: registers,
    grid: gridOf(target, pieces),
    block: [1, 1, 1],
    vectorBytes: Math.min(target.vectorBytes, (lanes * typeBits[problem.type]) / 8),
    stages: 1,
    cluster: 1,
    ...cost,
    why: () => [
      `${registers} registers keep ${(100 * busy).toFixed(0)} % of the multiply-add slots busy`,
      `${(100 * (padded - 1)).toFixed(1)} % of the work is padding`,
      ...(splits > 1
        ? [`keys are split ${splits} ways, and the parts put together at the end`]
        : []),
      `${pieces} pieces on ${coresOf(target)} cores, bound by ${cost.bound}`,
    ],
  };
}

/** Decoding has few queries: keys are split until every core has some, and no core less than two tiles. */
function keySplits(problem: KernelProblem, target: Target, blocks: number, n: number): number {
  if (problem.kind !== "attention-decode") return 1;
  const wanted = Math.floor(coresOf(target) / blocks);
  return Math.max(1, Math.min(wanted, Math.floor((problem.keys ?? 1) / (2 * n))));
}

/** Of a piece of n columns, in operations of the unit: an instruction stands for a multiply-add's two. */
function unpackingWork(
  problem: KernelProblem,
  target: Target,
  { flopsPerNs }: CpuUnit,
  n: number,
): number {
  if (!isPacked(problem)) return 0;
  const operations = 2 * unpackInstructions * problem.depth * n;
  return (operations * flopsPerNs) / target.f32FlopsPerNsPerCore.value;
}

/** Sums of rows may be added later: rows fewer than cores are cut over them. */
function splitsFor(problem: KernelProblem, target: Target): readonly number[] {
  if (problem.kind !== "reduction") return [1];
  const splits = Math.floor(coresOf(target) / (problem.rows * problem.batch));
  return splits > 1 ? [1, splits] : [1];
}

function passKernel(
  problem: KernelProblem,
  target: Target,
  unroll: number,
  splits: number,
): Candidate {
  const flat = isFlat(problem);
  const lanes = (target.vectorBytes * 8) / Math.max(typeBits[problem.type], 16);
  const n = unroll * lanes;
  const { bytes, flops } = workOf(problem);
  const rows = problem.rows * problem.batch;
  const pieces = flat ? Math.ceil((rows * problem.columns) / n) : rows * splits;
  const steps = flat ? 1 : Math.ceil(problem.columns / n);
  const padded = flat ? 1 : (steps * n) / problem.columns;
  // Sums along a row are chains: a step has as many as it has vectors.
  const busy = flat ? 1 : busyShare(target, unroll);
  const pace = paceOf(target, target.f32FlopsPerNsPerCore.value);
  const cost = price(
    {
      pieces,
      atOnce: 1,
      flopsOfPiece: (flops * padded) / pieces / busy,
      bytes,
      fetchedBytes: bytes,
      pieceLatencyNs: 0,
    },
    { ...pace, launchNs: (splits > 1 ? 2 : 1) * pace.launchNs },
  );
  return {
    implementation: flat
      ? `one pass, ${target.vectorBytes}-byte vectors`
      : `rows ${splits > 1 ? "cut over" : "dealt out to"} cores, ${target.vectorBytes}-byte vectors`,
    form: flat ? "elements" : "rows",
    tile: { m: 1, n, k: 1 },
    unroll,
    sharedBytes: 0,
    registersPerThread: Math.min(registersOf(target), 2 * unroll),
    grid: gridOf(target, pieces),
    block: [1, 1, 1],
    vectorBytes: target.vectorBytes,
    stages: 1,
    cluster: 1,
    ...cost,
    why: () => [
      `${pieces} ${splits > 1 ? "parts of rows" : flat ? "pieces" : "rows"} on ${coresOf(target)} cores, ${unroll} vectors a step`,
      `bound by ${cost.bound}`,
    ],
  };
}

/** Accumulators fewer than a multiply-add takes steps leave the unit waiting. */
function busyShare(target: Target, chains: number): number {
  const needed = target.multiplyAddLatencyNs.value * target.vectorOpsPerNsPerCore.value;
  return Math.min(1, chains / Math.max(1, needed));
}

function coresOf({ machine }: Target): number {
  return (machine?.kind === "cpu" && machine.cores?.value) || 1;
}

function gridOf(target: Target, pieces: number): readonly [number, number, number] {
  return [Math.min(coresOf(target), pieces), 1, 1];
}
