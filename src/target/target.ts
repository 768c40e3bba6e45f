/**
 * A target is a kind of machine as data: what the compiler may know about it. One file a machine under
 * machines/, each figure with its source. Capabilities are names that programs ask for (an intrinsic's
 * `needs`); nothing outside target/, emit/ and runtime/ compares names of machines.
 *
 * The fields below are what a compile reads, in units of one core (of a GPU: one multiprocessor). Where
 * the machine's data sheet is known too it is `machine`, and these fields are computed from it
 * (machine-target.ts). A target without an emitter is there for planning only.
 */
import type { Sourced } from "./figure.ts";
import type { Machine } from "./machine.ts";

export type { Sourced } from "./figure.ts";

/** One level of the memory hierarchy, nearest first. Bandwidth is sustained reading. */
export interface MemoryLevel {
  readonly name: string;
  /** Undefined: main memory. */
  readonly capacityBytes?: Sourced;
  /** Bytes per nanosecond (GB/s) for one core. */
  readonly bytesPerNsPerCore: Sourced;
  /**
   * Nanoseconds of waiting for each byte out of this level that comes in short runs lying apart, beside what
   * is moved: no prefetcher follows them, and arithmetic hides them in part. Absent: none was measured.
   */
  readonly stallNsPerByte?: Sourced;
  /**
   * Nanoseconds until a line of this level is there that lies far from the last one: a stream of such lines goes no
   * faster, but for those that a core asks for at once. Absent: hidden by what runs meanwhile.
   */
  readonly latencyNs?: Sourced;
}

/** What one core of a CPU sustains beside arithmetic. */
export interface CoreRates {
  /** Instructions of any kind per nanosecond. */
  readonly issuePerNs: Sourced;
  /** Slots of it that an instruction on general registers takes, beside one on whole vectors; absent: one. */
  readonly scalarSlots?: Sourced;
  /** Loads and stores of whole vectors, and loads that spread one element. */
  readonly loadsPerNs: Sourced;
  readonly storesPerNs: Sourced;
  /** Share of the shorter of arithmetic and streaming that the longer one does not hide. */
  readonly overlapLoss: Sourced;
}

/** Rates of matrix instructions by the type of what they multiply, with sums of 32 bits. */
export type MatrixRates = Readonly<
  Partial<Record<"bf16" | "f16" | "f8e4m3fn" | "f8e5m2" | "u8" | "i8" | "f32", Sourced>>
>;

/** Limits of a machine whose grids are made of blocks of threads, and what it has of each at once. */
export interface BlockLimits {
  /** Threads in lockstep: what they load together is one request where it lies together. */
  readonly warpThreads: number;
  readonly threadsPerBlock: number;
  /** Multiprocessors. */
  readonly cores: number;
  readonly threadsPerCore: number;
  readonly blocksPerCore: number;
  readonly registersPerThread: number;
  readonly registersPerCore: number;
  readonly sharedBytesPerBlock: number;
  readonly sharedBytesPerCore: number;
  /** Shared memory that each resident block costs beside its own. */
  readonly sharedBytesReserved: number;
  /** Bytes that a multiprocessor reads of its shared memory. */
  readonly sharedBytesPerNsPerCore: Sourced;
  readonly warpInstructionsPerNsPerCore: Sourced;
  /** Whole device, through matrix instructions of single warps; by element type. */
  readonly warpMatrixFlopsPerNs: MatrixRates;
  /** Whole device, through matrix instructions of four warps. */
  readonly groupMatrixFlopsPerNs: MatrixRates;
  /** Whole device. */
  readonly memoryBytesPerNs: Sourced;
  readonly nearBytesPerNs: Sourced;
  readonly nearBytes: number;
  /** From a load to its value, main memory and the shared cache. */
  readonly memoryLatencyNs: Sourced;
  /** Between dependent kernels. */
  readonly launchNs: Sourced;
}

/** Capability: instructions that sum products of unsigned and signed bytes into 32 bits. */
export const byteProducts = "dot.u8.i8";

/** Vectors of f16 and bf16 are widened to f32 as they are loaded, and rounded as they are stored. */
export const halfLanes = "lanes.f16";

/** Widening and rounding f16 and bf16 takes several instructions each: values are kept in f32. */
export const costlyHalves = "costly.f16";

/** But widening a vector of weights as it is loaded takes less than reading twice its bytes. */
export const halfFactors = "factors.f16";

/** Arithmetic may count subnormal numbers as zeros (FTZ, DAZ): stored ones may stay what they are. */
export const flushesSubnormals = "flush.subnormals";

export interface Target {
  readonly name: string;
  readonly summary: string;
  /** Which emitter writes its code; absent: none does, the target is for planning. */
  readonly emitter?: "wasm" | "x64" | "ptx" | "wgsl";
  /** An engine compiles the program once more and orders its instructions as it likes. */
  readonly compiledByEngine?: true;
  /** What a program may use: intrinsic rows and features by name. */
  readonly capabilities: ReadonlySet<string>;
  /** Bytes of a vector register. */
  readonly vectorBytes: number;
  /** Vector registers that a register tile may fill (what remains is for operands). */
  readonly vectorRegisters: number;
  readonly memory: readonly MemoryLevel[];
  /** f32 floating-point operations per nanosecond (GFLOP/s) of one core, multiply and add counted. */
  readonly f32FlopsPerNsPerCore: Sourced;
  /** Vector instructions of any kind that one core sustains per nanosecond. */
  readonly vectorOpsPerNsPerCore: Sourced;
  /** Where they were measured; elsewhere they are shares of the vector instructions. */
  readonly coreRates?: CoreRates;
  /** Nanoseconds from a multiply-add's operands to its result, for chains of one accumulator. */
  readonly multiplyAddLatencyNs: Sourced;
  /** The same of an addition by itself, where it is shorter. */
  readonly additionLatencyNs?: Sourced;
  /** Cost of one barrier between phases of a program: two threads, or all blocks of a grid. */
  readonly barrierNs: Sourced;
  /** Largest addressable memory of one program. */
  readonly maxMemoryBytes: number;
  /** Alignment that the memory planner gives buffers. */
  readonly alignmentBytes: number;
  /** Present where a grid is of blocks; absent where it is of CPU threads. */
  readonly blocks?: BlockLimits;
  /** The data sheet: limits, instructions, memory, links. */
  readonly machine?: Machine;
}
