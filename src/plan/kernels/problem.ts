/** Problems that kernels are chosen for: classes of computation with their extents. */
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { NumberType } from "../../target/machine.ts";
import { checkNumber } from "../number.ts";

export const kernelClasses = [
  "gemm",
  "gemv",
  "grouped-gemm",
  "quantised-gemm",
  "attention-prefill",
  "attention-decode",
  "norm",
  "softmax",
  "rope",
  "elementwise",
  "reduction",
  "convolution",
  "embedding",
] as const;
export type KernelClass = (typeof kernelClasses)[number];

/** Element types that problems come in; weights of a quantised product have their own bits. */
export const problemTypes = ["f32", "tf32", "f16", "bf16", "fp8", "int8"] as const;
export type ProblemType = Extract<NumberType, (typeof problemTypes)[number]>;

/**
 * Every class as a product or a pass over rows:
 *   products  rows x depth times depth x columns, `batch` times (groups, heads; an implicit product for
 *             convolution: rows are output pixels, depth is channels x kernel);
 *   passes    rows of `columns` elements (norm, softmax, reduction, rope, embedding; elementwise: 1 row).
 */
export interface KernelProblem {
  readonly kind: KernelClass;
  readonly type: ProblemType;
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
  /** Products: the extent that is summed. Attention: the width of a head. */
  readonly depth: number;
  /** Bits of a stored weight, scales included; absent: those of the type. */
  readonly weightBits?: number;
  /** Attention: keys and values. */
  readonly keys?: number;
}

const mostExtent = 2 ** 31 - 1;

/** The problem if its extents are usable, or what is wrong with each. */
export function readProblem(problem: KernelProblem): Result<KernelProblem> {
  const whole = { least: 1, most: mostExtent, integer: true };
  const faults = [
    checkNumber("PLN020", "batch", problem.batch, whole),
    checkNumber("PLN020", "rows", problem.rows, whole),
    checkNumber("PLN020", "columns", problem.columns, whole),
    checkNumber("PLN020", "depth", problem.depth, whole),
    problem.keys === undefined ? undefined : checkNumber("PLN020", "keys", problem.keys, whole),
    problem.weightBits === undefined
      ? undefined
      : checkNumber("PLN020", "weightBits", problem.weightBits, { least: 1, most: 64 }),
  ].filter((d): d is Diagnostic => d !== undefined);
  if (problem.kind.startsWith("attention") && problem.keys === undefined) {
    faults.push(
      diagnostic("PLN020", `${problem.kind} has no number of keys`, {
        at: "keys",
        help: "give --keys: the tokens that are attended to",
      }),
    );
  }
  return faults.length > 0 ? fail(...faults) : ok(problem);
}

/** Each element by itself: rows mean nothing to it. */
export function isFlat({ kind }: KernelProblem): boolean {
  return kind === "elementwise" || kind === "rope";
}

const passes: ReadonlySet<KernelClass> = new Set([
  "norm",
  "softmax",
  "rope",
  "elementwise",
  "reduction",
  "embedding",
]);

/** Rows that are read and written, not multiplied. */
export function isPass({ kind }: Pick<KernelProblem, "kind">): boolean {
  return passes.has(kind);
}

export const typeBits: Readonly<Record<ProblemType, number>> = {
  f32: 32,
  tf32: 32,
  f16: 16,
  bf16: 16,
  fp8: 8,
  int8: 8,
};

/** Weights are stored in other bits than are multiplied. */
export function isPacked({ type, weightBits = typeBits[type] }: KernelProblem): boolean {
  return weightBits !== typeBits[type];
}

/** Vector instructions a packed weight takes: its bits taken out, made a number, and scaled, two at once. */
export const unpackInstructions = 2;

export interface Work {
  readonly flops: number;
  /** Each operand and result once. */
  readonly bytes: number;
}

export function workOf(problem: KernelProblem): Work {
  const { kind, batch, rows, columns, depth, keys = 0 } = problem;
  const size = typeBits[problem.type] / 8;
  const weight = (problem.weightBits ?? typeBits[problem.type]) / 8;
  switch (kind) {
    case "attention-prefill":
    case "attention-decode":
      return {
        flops: 4 * batch * rows * keys * depth,
        bytes: batch * (2 * rows + 2 * keys) * depth * size,
      };
    case "gemm":
    case "gemv":
    case "grouped-gemm":
    case "quantised-gemm":
    case "convolution":
      return {
        flops: 2 * batch * rows * columns * depth,
        bytes: batch * (rows * depth * size + depth * columns * weight + rows * columns * size),
      };
    case "reduction":
      return { flops: batch * rows * columns, bytes: batch * rows * (columns + 1) * size };
    default:
      return { flops: 4 * batch * rows * columns, bytes: 2 * batch * rows * columns * size };
  }
}
