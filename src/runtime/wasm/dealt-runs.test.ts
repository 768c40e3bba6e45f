/** Programs whose work is claimed: every part once, in order of the launches, by however many threads come. */
import { describe, expect, it } from "vitest";
import { counted, countedInput, countingProgram } from "../counting-program.test-support.ts";
import { nodeWorkerHost } from "./node-worker-host.ts";
import { createWasmInstance } from "./wasm-instance.ts";
import type { WorkerHost } from "./worker-host.ts";
import { WorkerPool } from "./worker-pool.ts";

/** Runs `count` times on so many threads, synchronously, or in turns with promises. */
async function runs(
  threads: number,
  { count, host = nodeWorkerHost }: { readonly count: number; readonly host?: WorkerHost },
): Promise<void> {
  const pool = new WorkerPool({ threads, host, stallMilliseconds: 20_000 });
  const made = createWasmInstance(countingProgram(), { relaxedFma: false, pool });
  if (!made.ok) throw new Error(made.diagnostics.map((d) => d.message).join());
  const instance = made.value;
  instance.bytes("x").set(new Uint8Array(countedInput.buffer));
  for (let run = 0; run < count; run++) {
    const n = [300, 1, 2, 13, 64, 255][run % 6]!;
    const y = instance.bytes("y", { N: n });
    y.fill(0xa5);
    const isAsked = host === nodeWorkerHost && run % 4 === 3;
    const outcome = isAsked ? await instance.run({ N: n }) : instance.runSync({ N: n });
    expect(outcome).toMatchObject({ ok: true });
    expect([...new Float32Array(y.buffer, y.byteOffset, n)]).toEqual(counted(n));
  }
  instance.dispose();
  await pool.dispose();
}

describe("claimed work", () => {
  it.each([1, 2, 3, 4])("is done once and in order by %i threads", async (threads) => {
    await runs(threads, { count: 24 });
  });

  it("is done by more threads than there are shares", async () => {
    await runs(18, { count: 4 });
  });

  it("is done where no other thread ever comes", async () => {
    const spawn = () => ({ post: () => {}, keepAlive: () => {}, terminate: async () => {} });
    await runs(3, { count: 6, host: { parallelism: 3, spawn } });
  });
});
