/**
 * The session of a program on this machine by the emitter of its target, and which targets run here,
 * best first. Where machine code cannot run, WebAssembly does, and the reason is kept.
 */
import type { Program } from "../program/program.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import type { Target } from "../target/target.ts";
import { createCudaInstance } from "./cuda/cuda-instance.ts";
import { type CudaWish, probeCuda } from "./cuda/features.ts";
import { type DeviceDescription, describeDevice } from "./device.ts";
import { type EmittedCode, emitHere } from "./emit-here.ts";
import { type ModelSession, openSession, type SessionOptions } from "./model-session.ts";
import { probeNativeFeatures } from "./native/features.ts";
import { createNativeInstance } from "./native/native-instance.ts";
import { probeWasmFeatures } from "./wasm/features.ts";
import { nodeWorkerHost } from "./wasm/node-worker-host.ts";
import { createWasmSession, startPool } from "./wasm/session.ts";
import type { WorkerPool } from "./wasm/worker-pool.ts";

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

/** The same of machine code alone, empty where none runs: engines of WebAssembly are not asked. */
export function nativeTargets(): readonly string[] {
  const native = probeNativeFeatures();
  return native.ok ? native.value.targets : [];
}

/** Whether programs of a target run on this machine, its GPU counted. */
export function runsHere(target: Target): boolean {
  if (target.emitter === "x64") return nativeTargets().includes(target.name);
  if (target.emitter !== "ptx") return runnableTargets().names.includes(target.name);
  const features = probeCuda();
  return features.ok && features.value.targets.includes(target.name);
}

export interface MachineOptions extends SessionOptions {
  readonly threads: number;
  /** Code of the program that was emitted here before; absent: it is emitted now. */
  readonly code?: EmittedCode;
  /** The program with its kernels' bodies, where `program` is but its outline: for profiles. */
  readonly whole?: () => Program;
  /** Threads that several sessions of WebAssembly use in turn; whoever started them ends them. */
  readonly pool?: WorkerPool;
  /** For programs of GPUs. */
  readonly gpu?: CudaWish;
}

/** Threads that sessions for `target` use in turn; undefined where each has its own. */
export function sharedThreads(target: Target, threads: number): WorkerPool | undefined {
  if (target.emitter !== "wasm") return undefined;
  return startPool({ threads, features: probeWasmFeatures(), host: nodeWorkerHost });
}

export function createSession(
  program: Program,
  target: Target,
  options: MachineOptions,
): Result<ModelSession> {
  const { threads, weight, title, whole, forget } = options;
  if (target.emitter === "ptx") return createCudaSession(program, target, options);
  const emitted = options.code ? ok(options.code) : emitHere(program, target);
  if (!emitted.ok) return emitted;
  const code = emitted.value;
  const session = { weight, ...(title && { title }), ...(forget && { forget }) };
  const { pool, arena } = options;
  const weights = { ...(arena && { arena }), ...(forget && { forget }) };
  const run = { threads, ...(whole && { whole }), ...weights };
  if (code.kind === "wasm") {
    const features = probeWasmFeatures();
    const own = { ...session, ...run, features, host: nodeWorkerHost, code };
    return createWasmSession(program, { ...own, ...(pool && { pool }) });
  }
  const native = probeNativeFeatures();
  invariant(native.ok, () => "machine code is emitted where it runs");
  const { parallelism } = nodeWorkerHost;
  const { system } = native.value;
  const instance = createNativeInstance(program, target, { ...run, system, parallelism, code });
  if (!instance.ok) return instance;
  return openSession(program, instance.value, session);
}

/** What a measurement of a target's programs here depends on: the GPU and its driver, or this machine. */
export function describeRunner(target: Target): Pick<DeviceDescription, "device" | "engine"> {
  const features = target.emitter === "ptx" ? probeCuda() : undefined;
  if (!features?.ok) return describeDevice();
  const { device, driverVersion } = features.value;
  return { device, engine: `cuda driver ${driverVersion}` };
}

/** On the GPU that is asked for; its kernels are assembled now, or were before on this machine. */
function createCudaSession(
  program: Program,
  target: Target,
  { weight, title, gpu, forget }: MachineOptions,
): Result<ModelSession> {
  const features = probeCuda(gpu?.ordinal);
  if (!features.ok) return features;
  const { targets, open, store } = features.value;
  if (!targets.includes(target.name)) {
    const help = `on this GPU run ${targets.join(", ")}`;
    return fail(
      diagnostic("RUN040", `no way to run a program for target ${target.name} here`, { help }),
    );
  }
  const device = open(gpu);
  if (!device.ok) return device;
  const instance = createCudaInstance(program, target, { device: device.value, store });
  if (!instance.ok) return instance;
  const session = { weight, ...(title && { title }), ...(forget && { forget }) };
  return openSession(program, instance.value, session);
}
