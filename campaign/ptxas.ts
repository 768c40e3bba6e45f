/**
 * Where NVIDIA's assembler and disassembler are: PTXAS or NVDISASM in the environment, the PATH, or the
 * packages nvidia-cuda-nvcc and nvidia-cuda-nvdisasm that CI installs into .cache/judges with pip. They judge
 * PTX; nothing that is shipped uses them.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

export type Judge =
  | { readonly kind: "found"; readonly path: string; readonly version: string }
  | {
      readonly kind: "missing";
      /** In CI a judge may not be missing. */
      readonly finding: "failed" | "skipped";
      readonly reason: string;
    };

export function findPtxas(): Judge {
  return findJudge("ptxas", process.env.PTXAS, "nvidia-cuda-nvcc==13.0.*");
}

export function findNvdisasm(): Judge {
  return findJudge("nvdisasm", process.env.NVDISASM, "nvidia-cuda-nvdisasm==13.2.*");
}

function findJudge(name: string, named: string | undefined, wanted: string): Judge {
  const packaged = join(import.meta.dirname, `../.cache/judges/nvidia/cu13/bin/${name}`);
  const candidates = [named, name, packaged].filter((p) => p !== undefined);
  for (const path of candidates) {
    if (path === packaged && !existsSync(path)) continue;
    const run = spawnSync(path, ["--version"], { encoding: "utf8" });
    const version = /release ([\d.]+)/.exec(run.stdout ?? "")?.[1];
    if (run.status === 0 && version) return { kind: "found", path, version };
  }
  return {
    kind: "missing",
    finding: process.env.CI ? "failed" : "skipped",
    reason: `${name} is not installed: python3 -m pip install --target .cache/judges ${wanted}`,
  };
}
