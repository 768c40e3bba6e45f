/**
 * The program: what runs, on anything. One form serves a kernel, a network on CPU threads, a stream of
 * GPU launches and a persistent megakernel; what differs is the emitter and the executor.
 *
 * Shape parameters appear in bounds and sizes, so that one program serves a range of shapes. Buffers
 * have an extent, a capacity, a scope and a kind. Kernels run as a grid of instances, each with roles
 * of one or more threads, over structured loops. Order between kernels, roles and asynchronous effects
 * exists only where a task's waits, a counter, a barrier or a group makes it: the validator
 * (validate/) proves from this text alone that every wait can be met, every read is ordered after the
 * writes it may see, no two unordered writers touch a byte, and indices are in bounds.
 *
 * Expressions and statements: statement.ts. Instructions: intrinsics.ts (rows of data). Text form:
 * program-text.ts. Meaning: interp/program.ts.
 */
import type { Condition } from "../semantics/condition.ts";
import type { DType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import type { LayoutMap } from "../semantics/layout.ts";
import type { Statement } from "./statement.ts";

/** A shape parameter, bound once per run: `min <= name <= max`. */
export interface Parameter {
  readonly name: string;
  readonly min: number;
  readonly max: number;
}

export type BufferKind = "input" | "output" | "weight" | "scratch" | "state";

/**
 * Where a buffer lives. `memory`: main or global memory, seen by all; `shared`: one instance of the
 * grid (or its cluster); `local`: one thread, addressable; `register`: one thread, indices constant
 * after unrolling.
 */
export type Scope = "memory" | "shared" | "local" | "register";

/** Where the memory planner put a buffer of scope memory: `byteOffset` within the arena. */
export interface Placement {
  readonly arena: "weights" | "scratch" | "state" | "caller";
  readonly byteOffset: IndexExpr;
}

/** Elements are row-major over `shape`; `lanes` > 1 makes each element a vector (register scope). */
export interface Buffer {
  readonly name: string;
  readonly kind: BufferKind;
  readonly scope: Scope;
  readonly dtype: DType;
  readonly lanes: number;
  /** Extents in this run, over parameters (register, local, shared: constants). */
  readonly shape: readonly IndexExpr[];
  /** Extents that the storage is sized for; absent: the maximum of `shape` over the parameters. */
  readonly capacity?: readonly IndexExpr[];
  /** For weights, inputs and outputs: the logical tensor this physical buffer holds. */
  readonly layout?: LayoutMap;
  /** Shares the storage of another buffer: a reshape (same byte count) of it. */
  readonly viewOf?: string;
  /** Shared scope: order of bytes inside a tile that matrix instructions and bulk copies expect. */
  readonly swizzleBytes?: 32 | 64 | 128;
  readonly placement?: Placement;
  /** For inputs, outputs, weights and state: the graph's name. */
  readonly source?: string;
}

/**
 * A synchronisation counter. `monotone`: starts at 0 and only grows, a wait names a threshold (global
 * task order). `phase`: a barrier that completes when `arrivals` signals and all expected bytes have
 * come, then flips its phase bit and starts over (mbarrier); a wait names the parity that has to be
 * completed.
 */
export interface Counter {
  readonly name: string;
  readonly scope: "memory" | "shared";
  readonly protocol: "monotone" | "phase";
  /** Array extents; empty for one counter. */
  readonly shape: readonly IndexExpr[];
  /** For `phase`: signals that complete one phase. */
  readonly arrivals?: number;
}

/**
 * The reserved index variable that stands for the executor's thread count (1 or more): the extent of
 * the axis of a `threads` grid. A program must be right for every value of it.
 */
export const threadCountName = "threads";

/** One axis of a grid: instances 0 <= name < extent. */
export interface GridAxis {
  readonly name: string;
  readonly extent: IndexExpr;
}

/**
 * `threads`: CPU threads, one axis whose extent is the executor's thread count; `blocks`: GPU blocks;
 * `clusters`: blocks in clusters of `clusterSize` that may reach each other's shared scope. A resident
 * grid must fit the device at once (waits between instances need it).
 */
export interface Grid {
  readonly unit: "threads" | "blocks" | "clusters";
  readonly axes: readonly GridAxis[];
  readonly clusterSize: number;
  readonly resident: boolean;
}

/**
 * Threads of an instance that run the same body: `copies` groups of `threads` threads. Each thread
 * runs the body by itself; collective intrinsics and barriers are where they meet.
 */
export interface Role {
  readonly name: string;
  readonly copies: number;
  readonly threads: number;
  /** Index variables of the copy and of the thread within it; absent when there is one. */
  readonly copyVariable?: string;
  readonly threadVariable?: string;
  readonly body: readonly Statement[];
}

export interface Kernel {
  readonly name: string;
  readonly grid: Grid;
  /** Buffers of scope shared, local and register, and counters of scope shared. */
  readonly buffers: readonly Buffer[];
  readonly counters: readonly Counter[];
  readonly roles: readonly Role[];
  /** Region and statements it came from, for profiles and reports. */
  readonly region: string;
}

/** Satisfied once `counter[index] >= threshold` (monotone). */
export interface TaskWait {
  readonly counter: string;
  readonly index: readonly IndexExpr[];
  readonly threshold: IndexExpr;
}

/** Adds `amount` to `counter[index]` when each instance of the launched kernel finishes. */
export interface TaskSignal {
  readonly counter: string;
  readonly index: readonly IndexExpr[];
  readonly amount: IndexExpr;
}

/**
 * Tasks in program order. `after` decides what a launch waits for: `previous` orders it after all
 * earlier tasks (a barrier, or a stream), `started` after the start of the launch right before it (once
 * each instance of that one has launched its dependents or ended; its own threads await the earlier
 * launches), `counters` only after its waits.
 */
export type Task =
  | {
      readonly kind: "launch";
      readonly kernel: string;
      readonly after: "previous" | "started" | "counters";
      /** Values of index variables that the kernel leaves free (a layer number). */
      readonly bindings: readonly (readonly [string, IndexExpr])[];
      readonly waits: readonly TaskWait[];
      readonly signals: readonly TaskSignal[];
    }
  | {
      readonly kind: "if";
      readonly condition: TaskCondition;
      readonly then: readonly Task[];
      readonly else: readonly Task[];
    }
  /** Tests before each trip; more than `maxTrips` trips is an error of the run. */
  | {
      readonly kind: "while";
      readonly condition: TaskCondition;
      readonly maxTrips: IndexExpr;
      readonly body: readonly Task[];
    }
  /** Runs the body for 0 <= variable < count; tables rename buffers per trip (weights of a layer). */
  | {
      readonly kind: "repeat";
      readonly variable: string;
      readonly count: IndexExpr;
      readonly tables: readonly BufferTable[];
      readonly body: readonly Task[];
    }
  /** Ends the whole program. */
  | { readonly kind: "stop" };

/** `name` stands for `rows[variable]` inside a repeat; all rows have one type and shape. */
export interface BufferTable {
  readonly name: string;
  readonly rows: readonly string[];
}

/** Over parameters and repeat variables, or one element of a buffer different from zero. */
export type TaskCondition =
  | { readonly kind: "index"; readonly conditions: readonly Condition[] }
  | {
      readonly kind: "element";
      readonly buffer: string;
      readonly index: readonly IndexExpr[];
      readonly negated: boolean;
    };

export interface Program {
  readonly name: string;
  /** Name of the target it was lowered for. */
  readonly target: string;
  readonly parameters: readonly Parameter[];
  /** Equalities and inequalities over parameters that a run must satisfy. */
  readonly requires: readonly Condition[];
  /** Buffers of scope memory. */
  readonly buffers: readonly Buffer[];
  /** Counters of scope memory. */
  readonly counters: readonly Counter[];
  readonly kernels: readonly Kernel[];
  readonly tasks: readonly Task[];
  /** Pairs (input state, output state) that may be kept between runs. */
  readonly states: readonly { readonly input: string; readonly output: string }[];
}
