/** A program's code as this machine runs it, by the emitter of its target. */
import type { Program } from "../program/program.ts";
import { diagnostic, fail, type Result } from "../support/diagnostic.ts";
import type { Target } from "../target/target.ts";
import { probeNativeFeatures } from "./native/features.ts";
import { emitNativeCode, type NativeCode } from "./native/native-instance.ts";
import { probeWasmFeatures } from "./wasm/features.ts";
import { emitWasmCode, type WasmCode } from "./wasm/wasm-instance.ts";

export type EmittedCode = WasmCode | NativeCode;

/** What the code depends on beside the program and the target, as text. */
export function describeHost(target: Target): string {
  if (target.emitter === "wasm") {
    const { relaxedFma, threads } = probeWasmFeatures();
    return `relaxedFma=${relaxedFma} threads=${threads}`;
  }
  const native = probeNativeFeatures();
  return native.ok ? native.value.system.kind : "none";
}

export function emitHere(program: Program, target: Target): Result<EmittedCode> {
  if (target.emitter === "wasm") {
    const { relaxedFma, threads } = probeWasmFeatures();
    return emitWasmCode(program, { relaxedFma, sharedMemory: threads });
  }
  const native = probeNativeFeatures();
  if (!native.ok) return native;
  const { system, targets } = native.value;
  if (!targets.includes(target.name)) {
    const help = `here run ${targets.join(", ")}`;
    return fail(
      diagnostic("RUN040", `no way to run a program for target ${target.name} here`, { help }),
    );
  }
  return emitNativeCode(program, target, system);
}
