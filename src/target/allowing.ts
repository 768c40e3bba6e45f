/**
 * What a user allows a program to do that changes its results within a bound: a target with the instructions
 * for it, which it does not offer by itself. In: a target and the names of what is allowed. Out: the same target,
 * or one with more capabilities and rates.
 */
import { predicted } from "./figure.ts";
import type { Target } from "./target.ts";

/** tf32: products of f32 on matrix units, which leave out the 13 lowest bits of each operand. */
export const allowances = ["tf32"] as const;
export type Allowance = (typeof allowances)[number];

/** Capability: matrix instructions may be given f32. */
export const tf32Products = "allowed.tf32";

/** What an operand loses at most, relative to itself: all bits behind the tenth of its mantissa. */
export const tf32Error = 2 ** -10;

export function allowing(target: Target, allowed: readonly Allowance[] = []): Target {
  const { blocks, machine, capabilities } = target;
  const takes = allowed.includes("tf32") && capabilities.has("tf32") && capabilities.has("mma");
  if (!takes || !blocks || machine?.kind !== "gpu") return target;
  const peak = machine.matrixTeraops.tf32?.value;
  const half = machine.matrixTeraops.bf16?.value;
  if (peak === undefined || half === undefined) return target;
  const rates = (of: typeof blocks.warpMatrixFlopsPerNs): typeof of =>
    of.bf16
      ? { ...of, f32: predicted((of.bf16.value * peak) / half, `${peak} of ${half} TFLOP/s`) }
      : of;
  return {
    ...target,
    capabilities: new Set([...capabilities, tf32Products]),
    blocks: {
      ...blocks,
      warpMatrixFlopsPerNs: rates(blocks.warpMatrixFlopsPerNs),
      groupMatrixFlopsPerNs: rates(blocks.groupMatrixFlopsPerNs),
    },
  };
}
