/** Programs whose work is claimed: every part once, in order of the launches, by however many threads come. */
import { describe, expect, it } from "vitest";
import type { Program } from "../../program/program.ts";
import { parseProgram } from "../../program/program-parse.ts";
import { nodeWorkerHost } from "./node-worker-host.ts";
import { createWasmInstance } from "./wasm-instance.ts";
import type { WorkerHost } from "./worker-host.ts";
import { WorkerPool } from "./worker-pool.ts";

/** 100 times: y[i] += x[i + r], then a step of one thread that x of the next trip depends on, then y[i] *= -1. */
function counting(): Program {
  const read = parseProgram(`program p for "wasm" {
    parameter N in 1 to 300
    buffer x : input memory f32 [400] at caller + (0) source "x"
    buffer s : scratch memory f32 [400] at scratch + (0)
    buffer y : output memory f32 [N] at caller + (1600) source "y"
    kernel clear region "clear" {
      grid threads (t < threads)
      role main copies 1 threads 1 { for i < N over t { store y[i] = f32(0) } }
    }
    kernel shift region "shift" {
      grid threads (t < 1)
      role main copies 1 threads 1 { for i < 400 { store s[i] = add(load.f32 x[i], f32(1)) } store s[0] = neg(load.f32 x[0]) }
    }
    kernel add region "add" {
      grid threads (t < threads)
      role main copies 1 threads 1 {
        for i < N over t { store y[i] = add(load.f32 y[i], load.f32 s[i + r]) }
      }
    }
    kernel turn region "turn" {
      grid threads (t < 7)
      role main copies 1 threads 1 {
        for i < ceilDiv(N - t, 7) { store y[7*i + t] = neg(load.f32 y[7*i + t]) }
      }
    }
    tasks {
      launch clear after previous
      repeat r < 100 {
        launch shift after previous
        launch add after previous bind r = r
        launch turn after previous
      }
    }
  }`);
  if (!read.ok) throw new Error(read.diagnostics.map((d) => `${d.at}: ${d.message}`).join("\n"));
  return read.value;
}

const x = Float32Array.from({ length: 400 }, (_, i) => (i * 37) % 101);

function expected(n: number): number[] {
  const s = [...x].map((v, i) => (i === 0 ? -v : v + 1));
  let y = new Array<number>(n).fill(0);
  for (let r = 0; r < 100; r++) y = y.map((v, i) => -(v + s[i + r]!));
  return y;
}

/** Runs `count` times on so many threads, synchronously, or in turns with promises. */
async function runs(
  threads: number,
  { count, host = nodeWorkerHost }: { readonly count: number; readonly host?: WorkerHost },
): Promise<void> {
  const pool = new WorkerPool({ threads, host, stallMilliseconds: 20_000 });
  const made = createWasmInstance(counting(), { relaxedFma: false, pool });
  if (!made.ok) throw new Error(made.diagnostics.map((d) => d.message).join());
  const instance = made.value;
  instance.bytes("x").set(new Uint8Array(x.buffer));
  for (let run = 0; run < count; run++) {
    const n = [300, 1, 2, 13, 64, 255][run % 6]!;
    const y = instance.bytes("y", { N: n });
    y.fill(0xa5);
    const isAsked = host === nodeWorkerHost && run % 4 === 3;
    const outcome = isAsked ? await instance.run({ N: n }) : instance.runSync({ N: n });
    expect(outcome).toMatchObject({ ok: true });
    expect([...new Float32Array(y.buffer, y.byteOffset, n)]).toEqual(expected(n));
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
