/**
 * The session of a program on this machine by the emitter of its target, and which targets run here,
 * best first. Where machine code cannot run, WebAssembly does, and the reason is kept.
 */
import type { Program } from "../program/program.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import type { Target } from "../target/target.ts";
import { ModelSession, type SessionOptions } from "./model-session.ts";
import { probeNativeFeatures } from "./native/features.ts";
import { createNativeInstance } from "./native/native-instance.ts";
import { probeWasmFeatures } from "./wasm/features.ts";
import { nodeWorkerHost } from "./wasm/node-worker-host.ts";
import { createWasmSession } from "./wasm/session.ts";

export interface RunnableTargets {
  /** Names of targets, best first. */
  readonly names: readonly string[];
  /** Why none of them is machine code; empty where one is. */
  readonly reasons: readonly Diagnostic[];
}

export function runnableTargets(): RunnableTargets {
  const native = probeNativeFeatures();
  const features = probeWasmFeatures();
  const wasm = features.simd ? (features.relaxedFma ? ["wasm-relaxed", "wasm"] : ["wasm"]) : [];
  if (!native.ok) return { names: wasm, reasons: native.diagnostics };
  return { names: [...native.value.targets, ...wasm], reasons: [] };
}

export function createSession(
  program: Program,
  target: Target,
  options: SessionOptions & { readonly threads: number },
): Result<ModelSession> {
  if (target.emitter === "wasm") {
    const features = probeWasmFeatures();
    return createWasmSession(program, { ...options, features, host: nodeWorkerHost });
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
  const { threads } = options;
  const parallelism = nodeWorkerHost.parallelism;
  const instance = createNativeInstance(program, target, { system, threads, parallelism });
  if (!instance.ok) return instance;
  return ok(new ModelSession(program, instance.value, options));
}
