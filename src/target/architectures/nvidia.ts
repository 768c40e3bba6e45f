/**
 * What the NVIDIA architectures share: the constructor that fills in the limits which have not changed
 * since compute capability 7.5, and the matrix instructions that later ones inherit.
 */
import { type Figure, perBlock, perCluster, perSm, perThread } from "../figure.ts";
import type { GpuArchitecture, GpuFeature, MatrixInstruction } from "../machine.ts";

const guide =
  "CUDA C++ Programming Guide 13.0, Technical Specifications per Compute Capability (docs.nvidia.com/cuda/cuda-c-programming-guide)";
export const ptxManual = "PTX ISA 9.0 (docs.nvidia.com/cuda/parallel-thread-execution)";

export interface NvidiaLimits {
  readonly capability: string;
  readonly ptxTarget: string;
  readonly ptxVersion: string;
  readonly sharedKibPerSm: number;
  readonly reservedKib: number;
  readonly threadsPerSm: number;
  readonly blocksPerSm: number;
  readonly f32LanesPerSm: number;
  readonly lanesSource: string;
  readonly l2BytesPerCycle: Figure<"sm">;
  readonly clusters: boolean;
  readonly tensorMemoryKib?: number;
  readonly features: readonly GpuFeature[];
  readonly matrixInstructions: readonly MatrixInstruction[];
}

export function nvidiaArchitecture(limits: NvidiaLimits): GpuArchitecture {
  const of = (what: string): string => `${guide}: ${what}`;
  const blockKib = limits.sharedKibPerSm - limits.reservedKib;
  return {
    name: limits.ptxTarget,
    computeCapability: limits.capability,
    ptxTarget: limits.ptxTarget,
    ptxVersion: limits.ptxVersion,
    warpThreads: 32,
    threadsPerBlock: perBlock(1024, of("threads per block")),
    threadsPerSm: perSm(limits.threadsPerSm, of("resident threads per SM")),
    blocksPerSm: perSm(limits.blocksPerSm, of("resident blocks per SM")),
    registersPerThread: perThread(255, of("32-bit registers per thread")),
    registersPerBlock: perBlock(65536, of("32-bit registers per block")),
    registersPerSm: perSm(65536, of("32-bit registers per SM")),
    sharedBytesPerBlock: perBlock(blockKib * 1024, of("shared memory per block, opt-in")),
    sharedBytesPerBlockDefault: perBlock(48 * 1024, of("static shared memory per block")),
    sharedBytesReservedPerBlock: perBlock(
      limits.reservedKib * 1024,
      of("shared memory reserved by the system per block"),
    ),
    sharedBytesPerSm: perSm(limits.sharedKibPerSm * 1024, of("shared memory per SM")),
    ...(limits.clusters && {
      blocksPerCluster: perCluster(8, of("portable cluster size")),
      sharedBytesPerCluster: perCluster(
        8 * blockKib * 1024,
        `8 blocks x ${blockKib} KiB`,
        "predicted",
      ),
    }),
    ...(limits.tensorMemoryKib && {
      tensorMemoryBytesPerSm: perSm(
        limits.tensorMemoryKib * 1024,
        `${ptxManual}, Tensor Memory: 512 columns x 128 lanes x 32 bits`,
      ),
    }),
    f32LanesPerSm: perSm(limits.f32LanesPerSm, limits.lanesSource),
    warpInstructionsPerCycle: perSm(4, of("four warp schedulers")),
    sharedBytesPerCycle: perSm(128, of("32 banks of 4 bytes")),
    l2BytesPerCycle: limits.l2BytesPerCycle,
    features: limits.features,
    matrixInstructions: limits.matrixInstructions,
  };
}

type Shape = readonly [m: readonly number[], n: readonly number[], k: readonly number[]];

/** A row of a table of matrix instructions. */
export function instruction(
  name: string,
  operands: MatrixInstruction["operands"],
  accumulators: MatrixInstruction["accumulators"],
  [m, n, k]: Shape,
): MatrixInstruction {
  const section = name.startsWith("tcgen05") ? "tcgen05.mma" : name;
  return { name, operands, accumulators, m, n, k, source: `${ptxManual}, ${section}, shapes` };
}

export const turingInstructions: readonly MatrixInstruction[] = [
  instruction("mma.sync", "f16", ["f16", "f32"], [[16], [8], [8]]),
  instruction("mma.sync", "int8", ["int32"], [[8], [8], [16]]),
  instruction("mma.sync", "int4", ["int32"], [[8], [8], [32]]),
];

export const ampereInstructions: readonly MatrixInstruction[] = [
  ...turingInstructions,
  instruction("mma.sync", "f16", ["f16", "f32"], [[16], [8], [16]]),
  instruction("mma.sync", "bf16", ["f32"], [[16], [8], [8, 16]]),
  instruction("mma.sync", "tf32", ["f32"], [[16], [8], [4, 8]]),
  instruction("mma.sync", "int8", ["int32"], [[16], [8], [16, 32]]),
  instruction("mma.sync", "int4", ["int32"], [[16], [8], [32, 64]]),
  instruction("mma.sync", "f64", ["f64"], [[8], [8], [4]]),
];

export const adaInstructions: readonly MatrixInstruction[] = [
  ...ampereInstructions,
  instruction("mma.sync", "fp8", ["f16", "f32"], [[16], [8], [16, 32]]),
];

/** Of one warp, since Hopper. */
export const laterInstructions: readonly MatrixInstruction[] = [
  ...adaInstructions,
  instruction("mma.sync", "f64", ["f64"], [[16], [8], [4, 8, 16]]),
];
