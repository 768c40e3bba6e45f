/**
 * Where NVIDIA's assembler is: PTXAS in the environment, the PATH, or the package nvidia-cuda-nvcc that CI
 * installs into .cache/judges with pip. It judges PTX; nothing that is shipped uses it.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

export type Ptxas =
  | { readonly kind: "found"; readonly path: string; readonly version: string }
  | {
      readonly kind: "missing";
      /** In CI a judge may not be missing. */
      readonly finding: "failed" | "skipped";
      readonly reason: string;
    };

const packaged = join(import.meta.dirname, "../.cache/judges/nvidia/cu13/bin/ptxas");

export function findPtxas(): Ptxas {
  const candidates = [process.env.PTXAS, "ptxas", packaged].filter((p) => p !== undefined);
  for (const path of candidates) {
    if (path === packaged && !existsSync(path)) continue;
    const run = spawnSync(path, ["--version"], { encoding: "utf8" });
    const version = /release ([\d.]+)/.exec(run.stdout ?? "")?.[1];
    if (run.status === 0 && version) return { kind: "found", path, version };
  }
  return {
    kind: "missing",
    finding: process.env.CI ? "failed" : "skipped",
    reason:
      "ptxas is not installed: python3 -m pip install --target .cache/judges nvidia-cuda-nvcc==13.0.*",
  };
}
