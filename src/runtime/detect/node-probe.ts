/** The probe of the machine that Node runs on: files, commands that may not be there, the driver. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { systemCode } from "../files/system-error.ts";
import { queryCpuid } from "./cpuid-leaves.ts";
import { queryCudaDriver } from "./cuda-driver.ts";
import type { Probe } from "./detect-machine.ts";

const timeoutMs = 15_000;
const mostBytes = 16 * 2 ** 20;

export const nodeProbe: Probe = {
  platform: process.platform,
  readText: (path) => {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      // Absent, or not ours to read: both mean that this source says nothing.
      systemCode(error);
      return undefined;
    }
  },
  run: (command, args) => {
    const answer = spawnSync(command, args, {
      encoding: "utf8",
      timeout: timeoutMs,
      maxBuffer: mostBytes,
      stdio: ["ignore", "pipe", "ignore"],
    });
    return answer.status === 0 ? answer.stdout : undefined;
  },
  logicalCpus: cpus().length,
  memoryBytes: totalmem(),
  queryCpuid,
  queryCuda: () => queryCudaDriver(process.platform),
};
