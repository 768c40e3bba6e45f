/**
 * Which kernels Wavetile writes code for today, a row an emitter. Everything else that is planned is what
 * the machine could do; a row is widened when the emitter learns more.
 */
import type { Target } from "../../target/target.ts";
import type { KernelConfiguration } from "./configuration.ts";
import type { KernelProblem } from "./problem.ts";

type Kind = Pick<KernelConfiguration, "form" | "instruction"> & { readonly streams: boolean };

const rows: Readonly<Record<NonNullable<Target["emitter"]>, (kind: Kind) => boolean>> = {
  // Register tiles over packed weights, and loops over rows and elements, in f32.
  x64: ({ form, instruction }) => form !== "attention" && instruction === undefined,
  wasm: ({ form, instruction }) => form !== "attention" && instruction === undefined,
  // Register tiles on vector units; a row is a thread's, not a block's.
  ptx: ({ form, instruction, streams }) =>
    (form === "elements" || (form === "product" && !streams)) && instruction === undefined,
  wgsl: () => false,
};

export function isEmitted(problem: KernelProblem, target: Target, kind: Kind): boolean {
  if (problem.type !== "f32" || problem.weightBits !== undefined) return false;
  return target.emitter !== undefined && rows[target.emitter](kind);
}
