/** Scripts for a device say what is missing where there is none, and end with the command line's status for it. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { probeCuda } from "../../src/runtime/cuda/features.ts";

describe.skipIf(probeCuda().ok)("without a device", () => {
  it.each(["driver", "random-kernels"])("%s ends with 6 and no trace", (name) => {
    const script = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
    const ran = spawnSync(process.execPath, ["--import", "tsx", script], { encoding: "utf8" });
    expect(ran.stderr).toContain("CUD001");
    expect(ran.stderr).not.toMatch(/^\s+at .*\.ts:\d+/m);
    expect(ran.status).toBe(6);
  });
});
