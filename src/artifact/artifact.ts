/**
 * What an artifact holds, in memory: the optimized graph, per target one program with the schedules it
 * came from, the weights in their logical layout, and what must be known to use them. Writing:
 * write-artifact.ts; reading, which trusts nothing: read-artifact.ts. There is no machine code in it.
 */
import { z } from "zod";
import type { SafetensorType } from "../frontend/safetensors/safetensors.ts";
import type { Graph, WeightStore } from "../graph/graph.ts";
import type { Program } from "../program/program.ts";
import type { Schedule } from "../schedule/directive.ts";
import type { DType } from "../semantics/dtype.ts";
import { type RunningSum, Sha256 } from "../support/hash.ts";

const portSchema = z.strictObject({
  /** The model's own name. */
  name: z.string(),
  /** The name of its value in the graph. */
  value: z.string(),
});

const count = z.int().nonnegative();

const passKinds = [
  ...(["elementwise", "conversion", "copy", "transpose", "pad", "gather", "fill"] as const),
  ...(["pack", "unpack", "turn"] as const),
] as const;

/** Kinds of reasons: who reads or writes, what was refused, what was priced; `apart` where nobody asked. */
const apartKinds = [
  ...(["input", "output", "reduction", "readers", "illegal", "rule"] as const),
  ...(["price", "layout", "apart"] as const),
] as const;

/** A pass over memory, and why nobody else computes it: region/passes.ts. */
const passSchema = z.strictObject({
  region: z.string(),
  kind: z.enum(passKinds),
  /** Read and written at the largest sizes, each element once. */
  bytes: z.number(),
  estimateNs: z.number(),
  why: z.array(
    z.strictObject({
      side: z.enum(["producer", "consumer"]).optional(),
      tensor: z.string().optional(),
      regions: z.array(z.string()).optional(),
      kind: z.enum(apartKinds),
      reason: z.string(),
      /** As they were compared; of `layout` what doing without costs at least. */
      prices: z.strictObject({ fusedNs: z.number(), apartNs: z.number() }).optional(),
    }),
  ),
});

/** How the schedules of a target were chosen. Prices are what the cost model says, in its units. */
const searchSchema = z.strictObject({
  target: z.string(),
  solver: z.string(),
  reason: z.string(),
  objectivePs: z.number(),
  /** Threads that this is the price on; absent on machines of blocks of threads. */
  threads: count.optional(),
  /** No choice of the legal states costs less. */
  boundPs: z.number(),
  /** (objective - bound) / objective. */
  gap: z.number(),
  variables: count,
  transitions: count,
  legal: count,
  searched: count,
  nodes: count,
  work: count,
  /** What was known after how much work; null without a solution, and without a bound. */
  trace: z
    .array(
      z.strictObject({
        work: count,
        objective: z.number().nullable(),
        bound: z.number().nullable(),
      }),
    )
    .optional(),
  /** What the prices were fitted to; absent where nothing was measured. */
  calibration: z
    .strictObject({
      file: z.string(),
      /** The first digits of the file's SHA-256. */
      hash: z.string(),
      samples: count,
      /** On shapes that were left out: rank correlation, and error of the logarithm. */
      heldOut: z.strictObject({
        before: z.number(),
        after: z.number(),
        errorBefore: z.number(),
        errorAfter: z.number(),
      }),
    })
    .optional(),
  /** What the driver's assembler took for each kernel, where the device was there. */
  assembled: z
    .array(z.strictObject({ kernel: z.string(), registers: count, localBytes: count }))
    .optional(),
  /** Regions that only map what they read, and why nobody else does; absent in older artifacts. */
  passes: z.array(passSchema).optional(),
  regions: z.array(
    z.strictObject({
      name: z.string(),
      estimateNs: z.number(),
      /** Time that no schedule can stay below. */
      boundNs: z.number(),
      /** What takes it, on machines of blocks of threads. */
      boundBy: z.enum(["arithmetic", "shared cache", "memory"]).optional(),
      /** States that were named, and what is left of them after each constraint and phase. */
      generated: count,
      removed: z.array(z.strictObject({ constraint: z.string(), states: count })),
      legal: count,
      roofline: count,
      symmetry: count,
      occupancy: count,
      code: count,
      kept: count,
      /** The estimate by cause, in nanoseconds; absent where no code was priced. */
      parts: z.record(z.string(), z.number()).optional(),
    }),
  ),
});

export type SearchReport = Readonly<z.infer<typeof searchSchema>>;

const viewSchema = z.strictObject({
  name: z.string(),
  of: z.string(),
  shape: z.array(z.int().nonnegative()),
  /** Of a weight of half precision that the program reads as single; absent: as the graph has it. */
  dtype: z.literal("f32").optional(),
});

const checkSchema = z.strictObject({
  region: z.string(),
  /** Elements that were compared with the oracle. */
  checked: z.int().nonnegative(),
  /** Largest error as a share of its tolerance. */
  worst: z.number(),
});

/** Of the programs of a graph: the whole one, or a part of it. */
const programFields = {
  inputs: z.array(portSchema),
  outputs: z.array(portSchema),
  /** Weights that programs read in another shape or wider than the graph has: a reshape of `of`. */
  views: z.array(viewSchema),
  /** What the check of each region by samples found; absent where none was made. */
  checks: z.array(checkSchema).optional(),
  /** By target; absent in artifacts that were made without a search. */
  searches: z.array(searchSchema).optional(),
  /**
   * How far the graph's outputs may be from those of the model it was made of, relative to the largest
   * element: bounds of the approximating rules that were used. Absent where none were.
   */
  errorBound: z.number().positive().optional(),
};

/** The program of a part of a model that runs in stages. */
const stageSchema = z.strictObject({
  ...programFields,
  /** Weights that stand with those of the whole graph, under the same key. */
  shared: z.array(z.string()),
});

/** The `meta` tensor of an artifact. */
export const metaSchema = z.strictObject({
  format: z.literal("wavetile-artifact"),
  version: z.literal(1),
  /** Version of Wavetile that wrote it. */
  producer: z.string(),
  seed: z.int(),
  ...programFields,
  /**
   * Of a model that runs in stages, because data decide sizes in it: its parts in the order they run, null
   * for one that the reference computes. The graph is the whole model then, and has no program of its own.
   */
  stages: z.array(stageSchema.nullable()).optional(),
  /** Weights that stand in the arena of this target alone: key to the buffer that holds it, as text. */
  packed: z
    .strictObject({ target: z.string(), buffers: z.record(z.string(), z.string()) })
    .optional(),
  /** SHA-256 of each text and weight by the name of its tensor. */
  hashes: z.record(z.string(), z.string()),
  /** Tags of those that are large (TagBytes), for readers who can compute one: ten times as fast. */
  tags: z.record(z.string(), z.string()).optional(),
});

export type ArtifactMeta = Readonly<z.infer<typeof metaSchema>>;

export interface TargetCode {
  readonly program: Program;
  readonly schedules: readonly Schedule[];
}

export interface Artifact {
  readonly meta: ArtifactMeta;
  readonly graph: Graph;
  /** By name of the target. */
  readonly targets: ReadonlyMap<string, TargetCode>;
  readonly weights: WeightStore;
  /** By name of the target: its program's weights as they lie in memory. Absent: they are packed at load. */
  readonly arenas?: ReadonlyMap<string, Uint8Array>;
}

/** Names of the tensors of the container. */
export const tensorNames = {
  meta: "meta",
  /** SHA-256 of the text of `meta`. */
  seal: "seal",
  graph: "graph",
  program: (target: string): string => `target.${target}.program`,
  schedules: (target: string): string => `target.${target}.schedules`,
  /** The program's arena of weights, as its kernels read it. */
  arena: (target: string): string => `target.${target}.weights`,
  weight: (key: string): string => `weight.${key}`,
  /** What stands before the names of a stage's own tensors. */
  stage: (number: number): string => `stage.${number}.`,
  /** The part of the whole graph that a stage computes; `graph` of a stage is what its program was made of. */
  part: "part",
} as const;

/** Element types that the container has a name for; the others travel as U8 bytes of their storage. */
export const containerTypes: Readonly<Partial<Record<DType, SafetensorType>>> = {
  f64: "F64",
  f32: "F32",
  f16: "F16",
  bf16: "BF16",
  f8e4m3fn: "F8_E4M3",
  f8e5m2: "F8_E5M2",
  e8m0: "F8_E8M0",
  i64: "I64",
  i32: "I32",
  i16: "I16",
  i8: "I8",
  u64: "U64",
  u32: "U32",
  u16: "U16",
  u8: "U8",
  bool: "BOOL",
};

/** Starts a checksum of bytes that come in pieces. */
export type StartSum = () => RunningSum;

/** What contents are checked by. */
export interface Checksums {
  /** SHA-256 in lower-case hexadecimal; a caller who has a faster one gives it. */
  readonly hash: StartSum;
  /**
   * A tag of 128 bits that tells any two contents apart which chance or damage made, in hexadecimal: GMAC (NIST
   * SP 800-38D) under a key of zeros. Whoever can write the file can write its tags, as its hashes: neither is a
   * signature. Absent: all are checked by hashes.
   */
  readonly tag?: StartSum;
}

/** Without a system's library, as in browsers. */
export const plainChecksums: Checksums = { hash: () => new Sha256() };

export function sumOf(start: StartSum, bytes: Uint8Array): string {
  const sum = start();
  sum.update(bytes);
  return sum.digest();
}

/** Bytes from which on a tensor has a tag beside its hash. */
export const leastTaggedBytes = 1 << 16;

/** Arenas begin at multiples of this many bytes in the file, so that its pages are theirs. */
export const arenaAlignment = 4096;

/** Whether an artifact, and not an ONNX model, begins with these bytes. */
export function looksLikeArtifact(bytes: Uint8Array): boolean {
  // A header length below 2^32, then the brace of its JSON; no ONNX model has zeros there.
  return bytes[8] === 0x7b && bytes.subarray(4, 8).every((b) => b === 0);
}
