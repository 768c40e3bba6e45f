/** A model as WebAssembly on this machine: an instance of its program, and the threads it runs on. */
import type { Program } from "../../program/program.ts";
import type { Result } from "../../support/diagnostic.ts";
import { memoryOfViews } from "../buffer-memory.ts";
import {
  type ModelSession,
  openSession,
  type ProgramInstance,
  type SessionOptions,
} from "../model-session.ts";
import type { WasmFeatures } from "./features.ts";
import { createWasmInstance, type WasmCode } from "./wasm-instance.ts";
import type { WorkerHost } from "./worker-host.ts";
import { WorkerPool } from "./worker-pool.ts";

export interface WasmSessionOptions extends SessionOptions {
  readonly threads: number;
  readonly features: WasmFeatures;
  readonly host: WorkerHost;
  /** Code of the program that was emitted for these features before. */
  readonly code?: WasmCode;
  /** The program with its kernels' bodies, where `program` is but its outline. */
  readonly whole?: () => Program;
  /** Threads that several sessions use in turn; whoever started them ends them. Absent: its own. */
  readonly pool?: WorkerPool;
}

const stallMilliseconds = 20_000;

/** Threads for sessions that run one at a time; undefined where memory cannot be shared. */
export function startPool({
  features,
  host,
  threads,
}: Pick<WasmSessionOptions, "features" | "host" | "threads">): WorkerPool | undefined {
  return features.threads ? new WorkerPool({ threads, host, stallMilliseconds }) : undefined;
}

export function createWasmSession(
  program: Program,
  options: WasmSessionOptions,
): Result<ModelSession> {
  const { features, code, whole, arena, forget, host } = options;
  const pool = options.pool ?? startPool(options);
  const made = createWasmInstance(program, {
    relaxedFma: features.relaxedFma,
    host,
    ...(pool && { pool }),
    ...(code && { code }),
    ...(whole && { whole }),
    ...(arena && { arena }),
    ...(forget && { forget }),
  });
  if (!made.ok) return made;
  const wasm = made.value;
  const instance: ProgramInstance = {
    memory: memoryOfViews((name) => wasm.bytes(name)),
    hasWeights: arena !== undefined,
    bind: (parameters) => wasm.bind(parameters),
    runSync: (parameters) => wasm.runSync(parameters),
    run: (parameters, signal) => wasm.run(parameters, signal),
    createStep: (task) => wasm.createStep(task),
    dispose: async () => {
      wasm.dispose();
      if (!options.pool) await pool?.dispose();
    },
  };
  return openSession(program, instance, options);
}
