/** Programs as machine code in this process. A fault in one ends the process: that is what a child is for. */
import type { Program } from "../../program/program.ts";
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import { readableViews } from "../buffer-memory.ts";
import { probeNativeFeatures } from "../native/features.ts";
import { createNativeInstance } from "../native/native-instance.ts";
import { nodeWorkerHost } from "../wasm/node-worker-host.ts";
import type { LoadedProgram } from "./executor.ts";

export function nativeExecutor(
  program: Program,
  target: Target,
  threads: number,
): Result<LoadedProgram> {
  const native = probeNativeFeatures();
  if (!native.ok) return native;
  const { system, targets } = native.value;
  if (!targets.includes(target.name)) {
    return fail(
      diagnostic("RUN040", `this machine cannot run target ${target.name}`, {
        help: `it runs ${targets.join(", ")}`,
      }),
    );
  }
  const parallelism = nodeWorkerHost.parallelism;
  const made = createNativeInstance(program, target, { system, threads, parallelism });
  if (!made.ok) return made;
  const instance = made.value;
  return ok({
    ...readableViews((buffer) => instance.bytes(buffer)),
    run: (parameters) => instance.runSync(parameters),
    unload: () => instance.dispose(),
  });
}
