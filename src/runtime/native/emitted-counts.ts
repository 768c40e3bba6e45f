/**
 * What the emitter of machine code did to the kernels of a program for want of registers. In: a program and its
 * target. Out: a row a kernel; none where the program is no machine code, or none runs here.
 */
import type { Program } from "../../program/program.ts";
import type { Target } from "../../target/target.ts";
import { probeNativeFeatures } from "./features.ts";
import { emitNative } from "./native-instance.ts";

export interface KernelCounts {
  readonly kernel: string;
  /** Values kept on the stack, and those of them that are vectors or floats. */
  readonly spills: number;
  readonly vectorSpills: number;
  /** Constants and operands loaded again. */
  readonly reloads: number;
}

export function emittedCounts(program: Program, target: Target): readonly KernelCounts[] {
  const native = target.emitter === "x64" ? probeNativeFeatures() : undefined;
  if (!native?.ok) return [];
  const emitted = emitNative(program, target, native.value.system);
  if (!emitted.ok) return [];
  const kernels = new Set(program.kernels.map((k) => k.name));
  return emitted.value.code.functions
    .filter(({ name }) => kernels.has(name))
    .map(({ name, spills, vectorSpills, reloads }) => ({
      ...{ kernel: name, spills, vectorSpills, reloads },
    }));
}
