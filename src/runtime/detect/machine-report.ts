/** What detection says about this machine: each number with the place it was read from. */
import type { Sourced } from "../../target/figure.ts";

export interface DetectedCache {
  readonly level: number;
  readonly kind: "data" | "unified";
  readonly bytes: Sourced;
  /** Logical CPUs that share one of it; absent when unknown. */
  readonly sharedBy?: number;
}

/** The processors as the system shows them, before limits on this process. */
export interface DetectedCpu {
  readonly model: string;
  readonly vendor: string;
  readonly instructionSet: "x86-64" | "aarch64" | "other";
  /** As targets spell them: `avx2`, `avx512f`, `amx-bf16`, `sve`. */
  readonly extensions: readonly string[];
  readonly logicalCpus: Sourced;
  readonly cores: Sourced;
  readonly sockets: Sourced;
  readonly threadsPerCore: Sourced;
  /** Cores of the fast kind, where there are two kinds. */
  readonly performanceCores?: Sourced;
  readonly clockMhz?: Sourced;
  readonly caches: readonly DetectedCache[];
  readonly numaNodes?: Sourced;
  /** What the processor itself says; absent where it could not be asked. */
  readonly cpuid?: CpuidSummary;
}

/** CPUID beside what the operating system lists. */
export interface CpuidSummary {
  readonly model: string;
  readonly family: number;
  readonly modelNumber: number;
  readonly stepping: number;
  /** A hypervisor answers in the processor's place. */
  readonly virtual: boolean;
  /** Extensions that both list, and those that one lists alone; the latter are not counted. */
  readonly agreed: number;
  readonly onlyCpuid: readonly string[];
  readonly onlySystem: readonly string[];
}

/** What this process may use of it. */
export interface DetectedLimits {
  /** Cores' worth of time by quota; may be a fraction. */
  readonly cores?: Sourced;
  /** Logical CPUs it may run on. */
  readonly allowedCpus?: Sourced;
  /** Cores that those are threads of: the fast ones, where any of them is. */
  readonly allowedCores?: Sourced;
  readonly memoryBytes?: Sourced;
}

export interface ThreadAdvice {
  readonly threads: number;
  readonly reason: string;
}

export interface DetectedGpu {
  readonly name: string;
  readonly vendor: "NVIDIA" | "AMD" | "Apple" | "Intel" | "other";
  /** `cuda`, `nvidia-smi`, `rocm`, `metal` or `vulkan`: what saw it. */
  readonly seenBy: string;
  readonly index: number;
  readonly computeCapability?: string;
  readonly architecture?: string;
  readonly memoryBytes?: Sourced;
  readonly freeBytes?: Sourced;
  /** CPU and GPU share the memory. */
  readonly unifiedMemory?: boolean;
  readonly multiprocessors?: Sourced;
  readonly clockMhz?: Sourced;
  readonly l2Bytes?: Sourced;
  readonly sharedBytesPerBlock?: Sourced;
  readonly sharedBytesPerSm?: Sourced;
  readonly memoryBytesPerNs?: Sourced;
  readonly driver?: string;
  /** Name of the target whose data sheet fits. */
  readonly target?: string;
}

export interface MachineReport {
  readonly cpu: DetectedCpu;
  readonly limits: DetectedLimits;
  readonly memory: { readonly totalBytes?: Sourced; readonly availableBytes?: Sourced };
  readonly threads: ThreadAdvice;
  readonly gpus: readonly DetectedGpu[];
  /** What was looked for in vain, and why. */
  readonly notes: readonly string[];
}

export function detected(value: number, source: string): Sourced {
  return { value, source, origin: "detected" };
}
