/**
 * Classes that Wavetile computes as several kernels today where it does not fuse them: how many, at most, and how often a value of the row is
 * read or written by them (compiled LayerNormalization and Softmax nodes: the test of emitted.ts). The
 * others are one kernel that reads and writes once.
 */
import type { KernelClass } from "./problem.ts";

export interface PlainSteps {
  readonly kernels: number;
  readonly passes: number;
}

export const stepsOf = {
  norm: { kernels: 4, passes: 4 },
  softmax: { kernels: 4, passes: 6 },
} as const satisfies Partial<Record<KernelClass, PlainSteps>>;

export function stepsFor(kind: KernelClass): PlainSteps | undefined {
  return kind === "norm" || kind === "softmax" ? stepsOf[kind] : undefined;
}
