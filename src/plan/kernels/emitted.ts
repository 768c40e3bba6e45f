/**
 * Which kernels Wavetile writes code for today: the plain implementations of every class, on vector units
 * (register tiles on CPUs, sums in registers on GPUs), and products in tiles of shared memory where a GPU
 * copies asynchronously, by the emitters that exist. What else is planned is
 * what the machine could do; `plain` moves to a candidate when lowering learns to write it. A test
 * compiles each class for each emitter.
 */
import type { Target } from "../../target/target.ts";
import type { Candidate } from "./configuration.ts";
import type { KernelProblem, ProblemType } from "./problem.ts";

/** The code that writes the kernels, from schedule to instructions. */
export const codeOf: Readonly<Record<NonNullable<Target["emitter"]>, readonly string[]>> = {
  x64: [
    "src/schedule/states/region-states.ts",
    "src/lower/lower-program.ts",
    "src/emit/x64/emit-program.ts",
  ],
  wasm: [
    "src/schedule/states/region-states.ts",
    "src/lower/lower-program.ts",
    "src/emit/wasm/emit-program.ts",
  ],
  ptx: [
    "src/schedule/blocks/block-candidates.ts",
    "src/schedule/products/product-candidates.ts",
    "src/lower/lower-program.ts",
    "src/emit/ptx/emit-program.ts",
  ],
  wgsl: [],
};

const types: ReadonlySet<ProblemType> = new Set(["f32", "f16", "bf16"]);

/** Why no code is written for a problem at all; undefined: some is. */
export function whyNotEmitted(problem: KernelProblem, { emitter }: Target): string | undefined {
  if (emitter === undefined || codeOf[emitter].length === 0) {
    return "no emitter writes code for this machine";
  }
  if (!types.has(problem.type)) return `no emitter multiplies ${problem.type}`;
  if (problem.weightBits !== undefined || problem.kind === "quantised-gemm") {
    return "no emitter unpacks stored weights: a model's are widened when it is compiled";
  }
  return undefined;
}

export function isEmitted(problem: KernelProblem, target: Target, { plain }: Candidate): boolean {
  return plain === true && whyNotEmitted(problem, target) === undefined;
}
