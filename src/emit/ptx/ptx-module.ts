/**
 * What the PTX emitter gives to whoever runs a program on the driver: the text, and for each kernel how
 * it has to be launched. Everything over index expressions is evaluated by the runner with the values of
 * the run's parameters and of the launch's bindings (and `threads`, where a grid of that unit occurs).
 *
 * The text is one module; kernels may also be taken singly, since assembling many at once takes long:
 * `head` + the `text` of one kernel is a module of its own.
 */
import type { DType } from "../../semantics/dtype.ts";
import type { IndexExpr } from "../../semantics/index-expr.ts";

export interface PtxModule {
  /** All kernels in one text. */
  readonly text: string;
  /** The directives before the first kernel: `.version`, `.target`, `.address_size`. */
  readonly head: string;
  readonly kernels: readonly PtxKernel[];
  /** What the numbers in a fault record (parameter `faults`) stand for. */
  readonly checks: readonly string[];
}

/** One kernel of the program that some task launches. */
export interface PtxKernel {
  /** Its name in the program. */
  readonly name: string;
  /** Its name in the text. */
  readonly entry: string;
  /** The entry by itself, without `head`. */
  readonly text: string;
  /** In the order in which the entry takes them. */
  readonly parameters: readonly PtxParameter[];
  /** Blocks along x, y, z; a grid with a zero is not launched. */
  readonly grid: readonly [x: IndexExpr, y: IndexExpr, z: IndexExpr];
  /** Threads of a block, along x. */
  readonly threads: number;
  /** Blocks of a cluster, along x; 1: launched without clusters. */
  readonly cluster: number;
  /** Shared memory that the text declares, and what the launch has to ask for beside it. */
  readonly staticSharedBytes: number;
  readonly dynamicSharedBytes: number;
  /** Registers of a thread that the text allows the assembler. */
  readonly maxRegisters: number;
  /** All blocks have to be resident at once: a cooperative launch. */
  readonly cooperative: boolean;
  /** Buffers of scope local are arrays that are indexed: the assembler may use local memory. */
  readonly usesLocalMemory: boolean;
  /** Instructions that the program asks for, by the mnemonic that stands for them in machine code. */
  readonly counts: PtxCounts;
}

/** How often an instruction stands in the text of a kernel. */
export interface PtxCounts {
  /** wgmma.mma_async: HGMMA. */
  readonly wgmma: number;
  /** wgmma.wait_group: WARPGROUP.DEPBAR. */
  readonly wgmmaWaits: number;
  /** mma.sync: HMMA, IMMA or QMMA. */
  readonly mma: number;
  /** cp.async.bulk.tensor: UTMALDG and UTMASTG. */
  readonly tensorCopies: number;
  /** Vectors that threads store into the shared memory of other blocks. */
  readonly peerStores: number;
  /** cp.async: LDGSTS. */
  readonly asyncCopies: number;
  /** ldmatrix: LDSM. */
  readonly matrixLoads: number;
}

export type PtxParameter =
  /** u64: address of the buffer's first byte; inside a repeat the name may be that of a table. */
  | { readonly kind: "buffer"; readonly name: string }
  /** An integer of 32 or 64 bits: a parameter of the program, a binding of the launch, `threads`. */
  | { readonly kind: "index"; readonly name: string; readonly bits: 32 | 64 }
  /** 128 bytes by value: a descriptor for bulk copies of boxes. */
  | TensorMapParameter
  /** u64: address of the u32 cells of a counter of scope memory; zero when a run begins. */
  | { readonly kind: "counter"; readonly name: string }
  /** u64: address of one u32, zero when the module is loaded; the kernel leaves it as it needs it. */
  | { readonly kind: "gridBarrier" }
  /**
   * u64: address of three u32, zero when a run begins: 1 where an index was out of range, the number
   * of the check, the value. The kernel goes on with index 0.
   */
  | { readonly kind: "faults" };

/** How the descriptor of a buffer is encoded. */
export interface TensorMapParameter {
  readonly kind: "tensorMap";
  /** Buffer (or table) whose address is the tensor's. */
  readonly name: string;
  readonly dtype: DType;
  /** Elements along the axes, fastest first. */
  readonly dims: readonly IndexExpr[];
  /** Bytes from one element to the next along all axes but the fastest. */
  readonly strides: readonly IndexExpr[];
  /** Elements of a box, fastest axis first. */
  readonly box: readonly number[];
  readonly swizzleBytes: 0 | 32 | 64 | 128;
}
