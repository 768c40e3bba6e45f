import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, it } from "vitest";
import { emitBarrier } from "../../emit/wasm/barrier.ts";
import { abortCodes, controlBlock } from "../../emit/wasm/control-block.ts";
import type { FunctionBuilder, FunctionIndex } from "../../emit/wasm/function-builder.ts";
import { ModuleBuilder } from "../../emit/wasm/module-builder.ts";
import type { Processors } from "../ffi/processors.ts";
import { nodeWorkerHost } from "./node-worker-host.ts";
import type { WorkerHandle, WorkerHost } from "./worker-host.ts";
import { type PoolProgram, WorkerPool } from "./worker-pool.ts";
import { runPolls } from "./worker-source.ts";

/** Where test programs keep their own data. */
const dataAddress = 4096;
const counters = 2048;

const pools: WorkerPool[] = [];
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.dispose();
});

function makePool(threads: number, host: WorkerHost = nodeWorkerHost, stallMilliseconds = 30_000) {
  const pool = new WorkerPool({ threads, host, stallMilliseconds });
  pools.push(pool);
  return pool;
}

/** A program whose body sees the barrier, the thread (parameter 0) and the thread count (1). */
function makeProgram(body: (f: FunctionBuilder, barrier: FunctionIndex) => void): PoolProgram {
  const module = new ModuleBuilder();
  module.importMemory("env", "memory", { minPages: 1, maxPages: 1, shared: true });
  const barrier = emitBarrier(module);
  const { index } = module.function("run", { params: ["i32", "i32"], results: [] }, (f) =>
    body(f, barrier),
  );
  module.exportFunction("run", index);
  return {
    module: new WebAssembly.Module(module.encode().bytes),
    memory: new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }),
    entry: "run",
    checks: ["loop t", "letIndex row"],
  };
}

const words = (program: PoolProgram) => new Int32Array(program.memory.buffer);

/** Leaves the function when the barrier says that the run was given up. */
function meet(f: FunctionBuilder, barrier: FunctionIndex): void {
  f.get(f.param(1))
    .call(barrier)
    .if(() => f.op("return"));
}

/**
 * `phases` times: every thread writes the phase number to its slot, all meet, every thread adds up all
 * slots and traps unless the sum is threads * phase, all meet.
 */
function lockstep(phases: number): PoolProgram {
  return makeProgram((f, barrier) => {
    const [phase, sum, other] = [f.local("i32"), f.local("i32"), f.local("i32")];
    const slot = () => f.i32Const(64).op("i32.mul");
    f.loop((nextPhase) => {
      f.get(phase).i32Const(1).op("i32.add").set(phase);
      f.get(f.param(0));
      slot();
      f.get(phase).memory("i32.store", dataAddress);
      meet(f, barrier);
      f.i32Const(0).set(sum).i32Const(0).set(other);
      f.loop((nextSlot) => {
        f.get(sum).get(other);
        slot();
        f.memory("i32.load", dataAddress).op("i32.add").set(sum);
        f.get(other).i32Const(1).op("i32.add").tee(other);
        f.get(f.param(1)).op("i32.lt_u").brIf(nextSlot);
      });
      f.get(sum).get(phase).get(f.param(1)).op("i32.mul").op("i32.ne");
      f.if(() => f.op("unreachable"));
      meet(f, barrier);
      f.get(phase).i32Const(phases).op("i32.lt_u").brIf(nextPhase);
    });
    f.i32Const(0).i32Const(1).memory("i32.atomic.rmw.add", counters).op("drop");
  });
}

/** Thread `thread` does `body`, the others meet it at a barrier. */
function onThread(thread: number, body: (f: FunctionBuilder) => void): PoolProgram {
  return makeProgram((f, barrier) => {
    f.get(f.param(0)).i32Const(thread).op("i32.eq");
    f.if(() => body(f));
    meet(f, barrier);
    f.i32Const(0).i32Const(1).memory("i32.atomic.rmw.add", counters).op("drop");
  });
}

const spinForever = (f: FunctionBuilder) => f.loop((again) => f.br(again));

describe("WorkerPool", () => {
  it.each([2, 3, 4])("keeps %i threads in lockstep through 10,000 barriers", (threads) => {
    const pool = makePool(threads);
    const program = lockstep(5000);
    expect(pool.runSync(pool.attach(program))).toMatchObject({ ok: true });
    expect(words(program)[counters / 4]).toBe(threads);
    expect(words(program)[controlBlock.generation / 4]).toBe(10_000);
  });

  it("lets a thread that waits long at a barrier sleep, and wakes it", () => {
    const pool = makePool(2);
    const program = onThread(0, (f) => {
      f.loop((again) => {
        f.i32Const(0).memory("i32.atomic.load", controlBlock.sleeping).op("i32.eqz").brIf(again);
      });
    });
    const id = pool.attach(program);
    for (let run = 1; run <= 3; run++) {
      expect(pool.runSync(id)).toMatchObject({ ok: true });
      expect(words(program)[counters / 4]).toBe(2 * run);
    }
  });

  it("polls less in the rest of a run once a wait was in vain", () => {
    const pool = makePool(2);
    const limits = 1024;
    const program = onThread(0, (f) => {
      f.i32Const(0).i32Const(0).memory("i32.load", controlBlock.spinLimit);
      f.memory("i32.store", limits);
      f.loop((again) => {
        f.i32Const(0).memory("i32.atomic.load", controlBlock.sleeping).op("i32.eqz").brIf(again);
      });
    });
    const id = pool.attach(program);
    for (let run = 0; run < 2; run++) {
      expect(pool.runSync(id).ok).toBe(true);
      const [found] = words(program).subarray(controlBlock.spinLimit / 4);
      expect(2 * found!).toBeLessThanOrEqual(words(program)[limits / 4]!);
    }
  });

  it("goes on polling for as long as waking takes, however many waits were in vain", () => {
    const pool = makePool(2);
    const waits = 10;
    const sleepsOfOther = (f: FunctionBuilder) =>
      f.loop((again) => {
        f.i32Const(0).memory("i32.atomic.load", controlBlock.sleeping).op("i32.eqz").brIf(again);
      });
    const program = makeProgram((f, barrier) => {
      for (let i = 0; i < waits; i++) {
        f.get(f.param(0)).i32Const(0).op("i32.eq");
        f.if(() => sleepsOfOther(f));
        meet(f, barrier);
      }
    });
    expect(pool.runSync(pool.attach(program)).ok).toBe(true);
    const [left] = words(program).subarray(controlBlock.spinLimit / 4);
    expect(left).toBeLessThan(runPolls / 2);
    // A wait of 20 us in the middle of a run is not slept through.
    expect(left).toBeGreaterThan(30_000);
  });

  it("keeps workers off the caller's processor, also those that take the place of others", async () => {
    const restricted: { readonly thread: number; readonly set: readonly number[] }[] = [];
    let here = 0;
    const processors: Processors = {
      current: () => here,
      allowed: () => Uint8Array.of(0b111),
      restrict: (thread, set) => restricted.push({ thread, set: [...set] }) > 0,
    };
    const host = { ...nodeWorkerHost, parallelism: 2, processors: () => processors };
    const pool = makePool(2, host, 300);
    const id = pool.attach(lockstep(5));
    // A worker has said its number when it has done its first job.
    for (let run = 0; run < 4; run++) expect(pool.runSync(id).ok).toBe(true);
    here = 2;
    expect(pool.runSync(id, 1).ok).toBe(true);
    expect(pool.runSync(id).ok).toBe(true);
    expect(restricted.map(({ set }) => set)).toEqual([[0b110], [0b011]]);
    const stalled = pool.attach(onThread(1, spinForever));
    expect(pool.runSync(stalled).ok).toBe(false);
    for (let run = 0; run < 2; run++) expect(pool.runSync(id).ok).toBe(true);
    expect(restricted.length).toBe(3);
    expect(restricted[2]!.thread).not.toBe(restricted[0]!.thread);
    expect(restricted.every(({ thread }) => thread !== process.pid)).toBe(true);
  });

  it("takes no processor time between jobs once the polls are over", async () => {
    const pool = makePool(3);
    const id = pool.attach(lockstep(10));
    pool.runSync(id);
    const rest = () => new Promise((resolve) => setTimeout(resolve, 300));
    const spent: number[] = [];
    for (let attempt = 0; attempt < 3; attempt++) {
      await rest();
      const before = process.cpuUsage();
      await rest();
      const { user, system } = process.cpuUsage(before);
      spent.push(user + system);
      if (user + system < 100_000) break;
    }
    expect(Math.min(...spent)).toBeLessThan(100_000);
    expect(pool.runSync(id)).toMatchObject({ ok: true });
  });

  it("runs on workers only while the event loop stays free", async () => {
    const pool = makePool(2);
    const program = lockstep(3000);
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    const outcome = await pool.run(pool.attach(program));
    clearInterval(timer);
    expect(outcome).toMatchObject({ ok: true });
    expect(words(program)[counters / 4]).toBe(2);
    expect(ticks).toBeGreaterThan(0);
  });

  it("mixes programs, synchronous and promise runs, and many callers", async () => {
    const pool = makePool(2);
    const [a, b] = [lockstep(10), lockstep(20)];
    const [idA, idB] = [pool.attach(a), pool.attach(b)];
    const pending = [pool.run(idA), pool.run(idB), pool.run(idA)];
    expect(pool.runSync(idB).ok).toBe(true);
    await Promise.resolve();
    expect(pool.runSync(idA).ok).toBe(true);
    expect((await Promise.all(pending)).every((r) => r.ok)).toBe(true);
    for (let i = 0; i < 200; i++) expect(pool.runSync(i % 2 ? idA : idB).ok).toBe(true);
    expect(words(a)[counters / 4]).toBe(2 * 103);
    expect(words(b)[counters / 4]).toBe(2 * 102);
    pool.detach(idA);
    expect(pool.runSync(idB).ok).toBe(true);
  });

  it("several pools live in one process", () => {
    const [p, q] = [makePool(2), makePool(3)];
    const [a, b] = [p.attach(lockstep(50)), q.attach(lockstep(50))];
    for (let i = 0; i < 5; i++) {
      expect(p.runSync(a).ok && q.runSync(b).ok).toBe(true);
    }
  });

  it.each([0, 1])("reports a trap on thread %i (RUN003) and goes on", async (thread) => {
    const pool = makePool(2);
    const broken = pool.attach(onThread(thread, (f) => f.op("unreachable")));
    const failure = { ok: false, diagnostics: [{ code: "RUN003" }] };
    expect(pool.runSync(broken)).toMatchObject(failure);
    const outcome = await pool.run(broken);
    expect(outcome).toMatchObject(failure);
    if (!outcome.ok) expect(outcome.diagnostics[0]!.message).toContain("unreachable");
    expect(pool.runSync(pool.attach(lockstep(5))).ok).toBe(true);
  });

  it("reports the death of a worker (RUN003) and replaces it", async () => {
    const handles: WorkerHandle[] = [];
    let die: ((reason: string) => void) | undefined;
    const host: WorkerHost = {
      parallelism: 2,
      spawn(source, name, events) {
        const handle = nodeWorkerHost.spawn(source, name, events);
        handles.push(handle);
        if (name === "wavetile-1") die = events.died;
        return handle;
      },
    };
    const pool = makePool(2, host);
    const hanging = onThread(1, (f) => spinForever(f));
    const pending = pool.run(pool.attach(hanging));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await handles[1]!.terminate();
    die!("exit code 1");
    expect(await pending).toMatchObject({
      ok: false,
      diagnostics: [{ code: "RUN003", message: "a compute thread failed: exit code 1" }],
    });
    expect((await pool.run(pool.attach(lockstep(5)))).ok).toBe(true);
    expect(handles.length).toBe(3);
  });

  it("cancels between phases with an AbortSignal (RUN004)", async () => {
    const pool = makePool(2);
    const endless = pool.attach(
      makeProgram((f, barrier) => {
        f.loop((again) => {
          meet(f, barrier);
          f.br(again);
        });
      }),
    );
    const controller = new AbortController();
    const pending = pool.run(endless, controller.signal);
    setTimeout(() => controller.abort(), 30);
    const cancelled = { ok: false, diagnostics: [{ code: "RUN004" }] };
    expect(await pending).toMatchObject(cancelled);
    expect(await pool.run(endless, AbortSignal.abort())).toMatchObject(cancelled);
    expect((await pool.run(pool.attach(lockstep(5)))).ok).toBe(true);
  });

  it("gives up on a thread that does not come (RUN005), synchronously and not", async () => {
    const pool = makePool(2, nodeWorkerHost, 300);
    const stalled = { ok: false, diagnostics: [{ code: "RUN005" }] };
    expect(pool.runSync(pool.attach(onThread(1, spinForever)))).toMatchObject(stalled);
    expect(pool.runSync(pool.attach(lockstep(5))).ok).toBe(true);
    const lateThread = onThread(9, spinForever);
    const noBarrier = makeProgram((f) => {
      f.get(f.param(0)).if(() => spinForever(f));
    });
    expect(pool.runSync(pool.attach(noBarrier))).toMatchObject(stalled);
    expect(pool.runSync(pool.attach(lateThread)).ok).toBe(true);
  });

  it("says which check failed (RUN006, RUN007)", () => {
    const pool = makePool(2);
    const failing = (code: number, statement: number) =>
      onThread(1, (f) => {
        f.i32Const(0).i32Const(statement).memory("i32.store", controlBlock.faultStatement);
        f.i32Const(0).i64Const(-7n).memory("i64.store", controlBlock.faultValue);
        f.i32Const(0).i32Const(code).memory("i32.atomic.store", controlBlock.abort);
        f.op("return");
      });
    expect(pool.runSync(pool.attach(failing(abortCodes.outOfRange, 1)))).toMatchObject({
      diagnostics: [{ code: "RUN006", at: "letIndex row", message: "index -7 is out of range" }],
    });
    expect(pool.runSync(pool.attach(failing(abortCodes.tooManyTrips, 0)))).toMatchObject({
      diagnostics: [{ code: "RUN007", at: "loop t" }],
    });
  });

  it("fails jobs of a disposed pool", async () => {
    const pool = makePool(2);
    const hanging = pool.attach(onThread(1, spinForever));
    const pending = pool.run(hanging);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await pool.dispose();
    const disposed = { ok: false, diagnostics: [{ code: "RUN003" }] };
    expect(await pending).toMatchObject(disposed);
    expect(pool.runSync(hanging)).toMatchObject(disposed);
    expect(await pool.run(hanging)).toMatchObject(disposed);
  });

  it("does not keep the process alive", () => {
    const script = `
      const { Worker } = await import("node:worker_threads");
      const { nodeWorkerHost } = await import("./src/runtime/wasm/node-worker-host.ts");
      const { WorkerPool } = await import("./src/runtime/wasm/worker-pool.ts");
      const { ModuleBuilder } = await import("./src/emit/wasm/module-builder.ts");
      const module = new ModuleBuilder();
      module.importMemory("env", "memory", { minPages: 1, maxPages: 1, shared: true });
      const { index } = module.function("run", { params: ["i32", "i32"], results: [] });
      module.exportFunction("run", index);
      const pool = new WorkerPool({ threads: 2, host: nodeWorkerHost, stallMilliseconds: 5000 });
      const id = pool.attach({
        module: new WebAssembly.Module(module.encode().bytes),
        memory: new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }),
        entry: "run",
        checks: [],
      });
      const outcomes = [pool.runSync(id).ok, (await pool.run(id)).ok];
      process.stdout.write(JSON.stringify(outcomes));
    `;
    const args = ["--import", "tsx", "--input-type=module", "-e", script];
    const child = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 20_000 });
    expect([child.stdout, child.status]).toEqual(["[true,true]", 0]);
  });
});
