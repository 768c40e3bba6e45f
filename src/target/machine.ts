/**
 * What a machine is, as data: one value of these types per machine (machines/), with the limits that
 * all GPUs of one architecture share kept once (architectures/). The same shape, as JSON, is what a
 * user's own target file holds; read-target.ts reads and checks both.
 */
import type { Figure } from "./figure.ts";

/** Element types of matrix units and vector lanes, by the names the vendors' tables use. */
export const numberTypes = [
  "f64",
  "f32",
  "tf32",
  "bf16",
  "f16",
  "fp8",
  "fp6",
  "fp4",
  "int8",
  "int4",
] as const;
export type NumberType = (typeof numberTypes)[number];

/** One family of matrix instructions: every combination of the listed extents is legal. */
export interface MatrixInstruction {
  /** Mnemonic as in the vendor's manual. */
  readonly name: string;
  readonly operands: NumberType;
  readonly accumulators: readonly ("f64" | "f32" | "f16" | "int32")[];
  readonly m: readonly number[];
  readonly n: readonly number[];
  readonly k: readonly number[];
  readonly source: string;
}

/** Limits and instructions that all GPUs of one architecture have. */
export interface GpuArchitecture {
  readonly name: string;
  /** NVIDIA only. */
  readonly computeCapability?: string;
  /** `.target` of PTX text; absent where code is not PTX. */
  readonly ptxTarget?: string;
  /** Lowest `.version` of PTX text that knows the target. */
  readonly ptxVersion?: string;
  /** Threads that run in lockstep. */
  readonly warpThreads: number;
  readonly threadsPerBlock: Figure<"block">;
  readonly threadsPerSm: Figure<"sm">;
  readonly blocksPerSm: Figure<"sm">;
  /** 32-bit registers. */
  readonly registersPerThread: Figure<"thread">;
  readonly registersPerBlock: Figure<"block">;
  readonly registersPerSm: Figure<"sm">;
  /** Shared memory that a block may take by asking for it. */
  readonly sharedBytesPerBlock: Figure<"block">;
  /** Shared memory that a block gets without asking. */
  readonly sharedBytesPerBlockDefault: Figure<"block">;
  /** Shared memory that the system keeps of each resident block. */
  readonly sharedBytesReservedPerBlock: Figure<"block">;
  readonly sharedBytesPerSm: Figure<"sm">;
  /** Largest cluster that every device of the architecture takes; absent: no clusters. */
  readonly blocksPerCluster?: Figure<"cluster">;
  /** Shared memory that the blocks of one portable cluster can reach. */
  readonly sharedBytesPerCluster?: Figure<"cluster">;
  /** Tensor memory of the fifth-generation matrix units. */
  readonly tensorMemoryBytesPerSm?: Figure<"sm">;
  readonly f32LanesPerSm: Figure<"sm">;
  /** Instructions of one warp that a multiprocessor starts in a cycle. */
  readonly warpInstructionsPerCycle: Figure<"sm">;
  readonly sharedBytesPerCycle: Figure<"sm">;
  /** What L2 hands to each multiprocessor when all read at once. */
  readonly l2BytesPerCycle: Figure<"sm">;
  readonly features: readonly GpuFeature[];
  readonly matrixInstructions: readonly MatrixInstruction[];
}

/** What an emitter may ask for. */
export const gpuFeatures = [
  "mma",
  "ldmatrix",
  "stmatrix",
  "cp.async",
  "mbarrier",
  "tma",
  "cluster",
  "wgmma",
  "tcgen05",
  "setmaxnreg",
  "griddepcontrol",
  "bf16",
  "tf32",
  "int8",
  "fp8",
  // Warps multiply floats of 8 bits as they are; elsewhere the assembler widens them to f16 for `mma`.
  "fp8-mma",
  "fp6",
  "fp4",
  "block-scale",
  "redux",
  "mfma",
  "simdgroup-matrix",
] as const;
export type GpuFeature = (typeof gpuFeatures)[number];

export const linkKinds = [
  "pcie",
  "ethernet",
  "nvlink",
  "infinity-fabric",
  "nvlink-c2c",
  "on-package",
] as const;

/** A way out of a device. Bandwidth is of one direction, to one other device. */
export interface Link {
  readonly kind: (typeof linkKinds)[number];
  readonly generation?: string;
  readonly bytesPerNsEachWay: Figure<"device">;
  /** Devices of this machine that one fabric or bridge joins; absent: any number. */
  readonly joins?: Figure<"link">;
}

/** Dense operations per second in units of 10^12 (a multiply and an add are two), no sparsity. */
export type Teraops = Readonly<Partial<Record<NumberType, Figure<"device">>>>;

export interface GpuMachine {
  readonly kind: "gpu";
  readonly vendor: string;
  /** Names under which its driver reports it. */
  readonly driverNames?: readonly string[];
  readonly architecture: GpuArchitecture;
  readonly multiprocessors: Figure<"device">;
  readonly boostMhz: Figure<"device">;
  readonly memoryKind: string;
  /** CPU and GPU share the memory. */
  readonly unifiedMemory: boolean;
  readonly memoryBytes: Figure<"device">;
  /** GB/s. */
  readonly memoryBytesPerNs: Figure<"device">;
  readonly l2Bytes: Figure<"device">;
  readonly vectorTeraops: Teraops & { readonly f32: Figure<"device"> };
  readonly matrixTeraops: Teraops;
  readonly links: readonly Link[];
}

export interface Cache {
  readonly level: number;
  readonly kind: "data" | "unified";
  readonly bytes: Figure;
}

/** A matrix unit of a CPU. */
export interface MatrixExtension {
  readonly name: string;
  readonly operands: NumberType;
  readonly operationsPerCycle: Figure<"core">;
}

/** A CPU, or a generation of CPUs: then what differs between its members is absent. */
export interface CpuMachine {
  readonly kind: "cpu";
  readonly vendor: string;
  readonly instructionSet: "x86-64" | "aarch64";
  readonly extensions: readonly string[];
  readonly vectorBits: Figure<"core">;
  readonly vectorRegisters: Figure<"core">;
  /** Vector multiply-adds of full width that a core starts in a cycle. */
  readonly fmaPerCycle: Figure<"core">;
  readonly fmaLatencyCycles: Figure<"core">;
  readonly loadBytesPerCycle: Figure<"core">;
  /** Clock under sustained vector work. */
  readonly clockMhz: Figure<"core">;
  readonly matrixExtensions: readonly MatrixExtension[];
  readonly caches: readonly Cache[];
  readonly cores?: Figure<"socket">;
  readonly memoryKind?: string;
  readonly memoryBytes?: Figure<"socket">;
  /** GB/s. */
  readonly memoryBytesPerNs?: Figure<"socket">;
  readonly links: readonly Link[];
}

export type Machine = GpuMachine | CpuMachine;

/** `from`, `from + step`, … up to `to`. */
export function steps(from: number, to: number, step: number): readonly number[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);
}
