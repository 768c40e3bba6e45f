/** Programs for WebAssembly in this process: one pool of threads a thread count, kept between programs. */
import type { Program } from "../../program/program.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import { readableViews } from "../buffer-memory.ts";
import { probeWasmFeatures } from "../wasm/features.ts";
import { nodeWorkerHost } from "../wasm/node-worker-host.ts";
import { createWasmInstance } from "../wasm/wasm-instance.ts";
import { WorkerPool } from "../wasm/worker-pool.ts";
import type { LoadedProgram } from "./executor.ts";

const stallMilliseconds = 20_000;
const pools = new Map<number, WorkerPool>();

function poolOf(threads: number): WorkerPool {
  const pool =
    pools.get(threads) ?? new WorkerPool({ threads, host: nodeWorkerHost, stallMilliseconds });
  pools.set(threads, pool);
  return pool;
}

export function wasmExecutor(
  program: Program,
  target: Target,
  threads: number,
): Result<LoadedProgram> {
  const features = probeWasmFeatures();
  const relaxedFma = target.capabilities.has("fma");
  if (relaxedFma && !features.relaxedFma) {
    return fail(
      diagnostic("RUN040", `this engine cannot run target ${target.name}`, {
        help: "use target wasm, or an engine with relaxed SIMD",
      }),
    );
  }
  const made = createWasmInstance(program, {
    relaxedFma,
    host: nodeWorkerHost,
    ...(features.threads && threads > 1 && { pool: poolOf(threads) }),
  });
  if (!made.ok) return made;
  const instance = made.value;
  return ok({
    ...readableViews((buffer) => instance.bytes(buffer)),
    run: (parameters) => instance.runSync(parameters),
    unload: () => instance.dispose(),
  });
}
