/** Programs whose work is claimed, as machine code: every part once, in order of the launches. */
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import { invariant } from "../../support/invariant.ts";
import { targets } from "../../target/index.ts";
import { counted, countedInput, countingProgram } from "../counting-program.test-support.ts";
import { obeyingProcessors } from "../processors.test-support.ts";
import { probeNativeFeatures } from "./features.ts";
import { createNativeInstance } from "./native-instance.ts";

const here = probeNativeFeatures();

describe.skipIf(!here.ok)("claimed work as machine code", () => {
  it.each([1, 2, 3, 4, 18])("is done once and in order by %i threads", async (threads) => {
    invariant(here.ok, () => "probed");
    const options = { system: here.value.system, threads, parallelism: 2, guards: true };
    const made = createNativeInstance(countingProgram(), targets.get("x64-avx2")!, options);
    invariant(made.ok, () => JSON.stringify(made));
    const instance = made.value;
    instance.bytes("x").set(new Uint8Array(countedInput.buffer));
    const y = instance.bytes("y");
    for (let run = 0; run < (threads > 4 ? 6 : 24); run++) {
      const n = [300, 1, 2, 13, 64, 255][run % 6]!;
      y.fill(0xa5);
      const outcome = run % 4 === 3 ? await instance.run({ N: n }) : instance.runSync({ N: n });
      expect(outcome).toMatchObject({ ok: true });
      const view = new DataView(y.buffer, y.byteOffset);
      const found = Array.from({ length: n }, (_, i) => view.getFloat32(4 * i, true));
      expect(found).toEqual(counted(n));
    }
    instance.dispose();
  });

  it("is the same by all threads and alone, whichever is chosen; workers keep off the caller's processor", () => {
    invariant(here.ok, () => "probed");
    const { system } = here.value;
    const options = { system, threads: 2, parallelism: 2 };
    const made = createNativeInstance(countingProgram(), targets.get("x64-avx2")!, options);
    invariant(made.ok, () => JSON.stringify(made));
    const instance = made.value;
    instance.bytes("x").set(new Uint8Array(countedInput.buffer));
    const y = instance.bytes("y");
    for (let run = 0; run < 60; run++) {
      y.fill(0xa5);
      expect(instance.runSync({ N: 64 })).toMatchObject({ ok: true });
      expect([...new Float32Array(y.buffer, y.byteOffset, 64)]).toEqual(counted(64));
    }
    if (obeyingProcessors() && availableParallelism() > 1) expect(restrictedThreads()).toBe(1);
    instance.dispose();
  });
});

/** Threads of this process that may not run wherever it may. */
function restrictedThreads(): number {
  const allowed = (thread: string): string | undefined =>
    /Cpus_allowed:\s*(\S+)/.exec(readFileSync(`/proc/self/task/${thread}/status`, "utf8"))?.[1];
  const own = allowed(`${process.pid}`);
  return readdirSync("/proc/self/task").filter((thread) => allowed(thread) !== own).length;
}
