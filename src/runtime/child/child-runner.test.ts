import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ChildRunner } from "./child-runner.ts";
import type { ChildRequest } from "./protocol.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-child-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let runner: ChildRunner | undefined;
afterEach(async () => {
  const id = runner?.processId;
  await runner?.dispose();
  runner = undefined;
  if (id !== undefined) expect(isAlive(id)).toBe(false);
});

/** Whether a process of that number exists, zombies included. */
function isAlive(id: number): boolean {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}

function planted(name: string, code: string): ChildRunner {
  const entry = join(folder, `${name}.mjs`);
  writeFileSync(entry, code);
  runner = new ChildRunner({ entry });
  return runner;
}

function program(body: string, extent = 4): string {
  return `program p for "wasm" {
    buffer x : input memory f32 [${extent}] source "x"
    buffer y : output memory f32 [${extent}] source "y"
    kernel k region "r" {
      grid threads (t < threads)
      role main copies 1 threads 1 { ${body} }
    }
    tasks { launch k after previous }
  }`;
}

const copy = "for i < 4 over t { store y[i] = load.f32 x[i] }";
const load = (text: string, threads = 1): ChildRequest => ({
  kind: "load",
  program: text,
  id: 1,
  threads,
});
const fill = { dtype: "f32", seed: 3, phase: 1, sign: "any" } as const;
const run: ChildRequest = {
  kind: "run",
  id: 1,
  parameters: {},
  fills: [{ tensor: "x", shape: [4], fill }],
};
const read: ChildRequest = { kind: "read", id: 1, buffer: "y" };

describe("a child that runs candidates", () => {
  it("loads, runs, reads and times a program, on one thread and two", async () => {
    runner = new ChildRunner();
    for (const threads of [1, 2]) {
      expect(await runner.request(load(program(copy), threads), 20_000)).toMatchObject({
        kind: "answered",
      });
      expect(await runner.request(run, 20_000)).toMatchObject({ kind: "answered" });
      const all = await runner.request(read, 20_000);
      const some = await runner.request({ ...read, offsets: Uint32Array.of(3, 0) }, 20_000);
      if (all.kind !== "answered" || all.reply.kind !== "bytes") throw new Error(all.kind);
      if (some.kind !== "answered" || some.reply.kind !== "bytes") throw new Error(some.kind);
      const values = new Float32Array(all.reply.bytes.slice().buffer);
      expect([...new Float32Array(some.reply.bytes.slice().buffer)]).toEqual([
        values[3],
        values[0],
      ]);
      expect(all.reply.unwritten).toBeUndefined();
      const protocol = { rounds: 3, warmUp: 1, leastSampleNs: 1000 };
      const timed = await runner.request({ kind: "time", ids: [1, 1], protocol }, 20_000);
      expect(timed).toMatchObject({ reply: { kind: "samples", samples: { length: 2 } } });
      await runner.request({ kind: "unload", id: 1 }, 20_000);
    }
    expect(runner.generation).toBe(1);
  });

  it("answers what it is asked at once in turn, each with its own answer", async () => {
    runner = new ChildRunner();
    const protocol = { rounds: 3, warmUp: 1, leastSampleNs: 1000 };
    const asked = [load(program(copy)), run, { kind: "time", ids: [1], protocol }, read] as const;
    const answers = await Promise.all(asked.map((request) => runner!.request(request, 20_000)));
    const kinds = answers.map((a) => (a.kind === "answered" ? a.reply.kind : a));
    expect(kinds).toEqual(["done", "done", "samples", "bytes"]);
  });

  it("loses what waits behind a run that does not end, and says which was the cause", async () => {
    runner = new ChildRunner();
    const endless = `for i < 2000000000 { for j < 2000000000 { for l < 2000000000 {
      store y[0] = add(load.f32 y[0], load.f32 x[0]) } } }`;
    await runner.request(load(program(endless)), 20_000);
    const [cause, lost] = await Promise.all([
      runner.request(run, 300),
      runner.request(read, 20_000),
    ]);
    expect(cause).toEqual({ kind: "hung", afterMs: 300 });
    expect(lost).toEqual({ kind: "crashed", how: "what it had been asked before" });
    expect(await runner.request(load(program(copy)), 20_000)).toMatchObject({ kind: "answered" });
    expect(runner.generation).toBe(2);
  });

  it("does not take its own absence for the child's", async () => {
    runner = new ChildRunner();
    await runner.request(load(program(copy)), 20_000);
    const answer = runner.request(run, 100);
    const until = performance.now() + 400;
    while (performance.now() < until);
    expect(await answer).toMatchObject({ kind: "answered" });
    expect(runner.generation).toBe(1);
  });

  it("refuses what was asked of a program while it was refused", async () => {
    runner = new ChildRunner();
    const foreign = program(copy).replace(`for "wasm"`, `for "abacus"`);
    const asked = [load(foreign), run, read].map((request) => runner!.request(request, 20_000));
    const refused = { kind: "refused", diagnostics: [{ code: "RUN040" }] };
    expect(await Promise.all(asked)).toMatchObject([refused, refused, refused]);
    expect(await runner.request(load(program(copy)), 20_000)).toMatchObject({ kind: "answered" });
    expect(await runner.request(run, 20_000)).toMatchObject({ kind: "answered" });
  });

  it("reports the first element that nobody wrote", async () => {
    runner = new ChildRunner();
    await runner.request(load(program("store y[0] = load.f32 x[0]")), 20_000);
    await runner.request(run, 20_000);
    expect(await runner.request(read, 20_000)).toMatchObject({ reply: { unwritten: 1 } });
  });

  it("ends a kernel that does not end, and goes on with a fresh child", async () => {
    runner = new ChildRunner();
    const endless = `for i < 2000000000 { for j < 2000000000 { for l < 2000000000 {
      store y[0] = add(load.f32 y[0], load.f32 x[0]) } } }`;
    expect(await runner.request(load(program(endless)), 20_000)).toMatchObject({
      kind: "answered",
    });
    const first = runner.processId!;
    expect(await runner.request(run, 300)).toEqual({ kind: "hung", afterMs: 300 });
    expect(isAlive(first)).toBe(false);
    expect(await runner.request(load(program(copy)), 20_000)).toMatchObject({ kind: "answered" });
    expect(runner.generation).toBe(2);
    expect(runner.processId).not.toBe(first);
  });

  it("is ended by an owner that is always busy, too", async () => {
    planted("silent", "process.on('message', () => {});");
    const busy = setInterval(() => {
      const until = performance.now() + 60;
      while (performance.now() < until);
    }, 1);
    try {
      expect(await runner!.request(run, 30)).toEqual({ kind: "hung", afterMs: 30 });
    } finally {
      clearInterval(busy);
    }
  });

  it("answers a trap with a diagnostic (RUN003)", async () => {
    runner = new ChildRunner();
    const outside = "for i < 4 { store y[i] = load.f32 x[900000000 + i] }";
    await runner.request(load(program(outside)), 20_000);
    expect(await runner.request(run, 20_000)).toMatchObject({
      kind: "refused",
      diagnostics: [{ code: "RUN003" }],
    });
  });

  it("answers too much memory and other machines' programs with diagnostics", async () => {
    runner = new ChildRunner();
    const large = program("for i < 4 { store y[i] = load.f32 x[i] }", 1_000_000_000);
    expect(await runner.request(load(large), 20_000)).toMatchObject({
      kind: "refused",
      diagnostics: [{ code: "RUN001" }],
    });
    const foreign = program(copy).replace(`for "wasm"`, `for "abacus"`);
    expect(await runner.request(load(foreign), 20_000)).toMatchObject({
      kind: "refused",
      diagnostics: [{ code: "RUN040" }],
    });
  });

  it("survives a child that exits, is killed, runs out of memory, or answers rubbish", async () => {
    const exits = planted("exits", "process.on('message', () => process.exit(3));");
    expect(await exits.request(run, 20_000)).toEqual({ kind: "crashed", how: "exit code 3" });
    await exits.dispose();
    const aborts = planted("aborts", "process.on('message', () => process.abort());");
    expect(await aborts.request(run, 20_000)).toMatchObject({
      kind: "crashed",
      how: expect.stringContaining("SIGABRT"),
    });
    await aborts.dispose();
    const full = `process.on("message", () => {
      process.stderr.write("FATAL ERROR: JavaScript heap out of memory", () => process.abort());
    });`;
    expect(await planted("full", full).request(run, 20_000)).toMatchObject({ kind: "outOfMemory" });
    await runner?.dispose();
    const rubbish = [
      "'hello'",
      "{ sequence: m.sequence }",
      "{ sequence: m.sequence + 1, body: { kind: 'done' } }",
      "{ sequence: m.sequence, body: { kind: 'bytes' } }",
      "{ sequence: m.sequence, body: { kind: 'failed', diagnostics: [] } }",
    ];
    for (const [i, reply] of rubbish.entries()) {
      const child = planted(`rubbish${i}`, `process.on("message", (m) => process.send(${reply}));`);
      expect(await child.request(run, 20_000), reply).toMatchObject({ kind: "garbled" });
      await child.dispose();
    }
  });

  it("survives a child that cannot start", async () => {
    runner = new ChildRunner({ entry: join(folder, "nothing-here.mjs") });
    expect(await runner.request(run, 20_000)).toMatchObject({ kind: "crashed" });
  });
});
