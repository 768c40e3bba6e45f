import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sampleModel } from "../commands/library/sample-model.test-support.ts";
import { writeGguf } from "../frontend/gguf/write-gguf.test-support.ts";
import { type Captured, runCaptured } from "./run-captured.test-support.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wavetile-plan-cli-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function wavetile(...argv: string[]): Promise<Captured> {
  return runCaptured(argv);
}

/** Paths of the numbers that stand beside no origin and in nothing that is named. */
function unmarked(value: unknown, named: ReadonlySet<string>, path: string): readonly string[] {
  if (typeof value === "number") return [path];
  if (typeof value !== "object" || value === null) return [];
  if ("origin" in value) return [];
  return Object.entries(value).flatMap(([key, item]) =>
    named.has(key) ? [] : unmarked(item, named, `${path}.${key}`),
  );
}

describe("wavetile targets", () => {
  it("shows a machine with a source for each figure, and a file that reads back", async () => {
    const shown = await wavetile("targets", "show", "h200");
    expect(shown.out).toMatch(/sharedBytesPerBlock\s+232448\s+block\s+datasheet\s+\[\d+\]/);
    const { data } = JSON.parse((await wavetile("targets", "show", "h200", "--json")).out);
    const path = join(folder, "mine.json");
    writeFileSync(path, JSON.stringify({ ...data.file, name: "mine" }));
    expect((await wavetile("targets", "show", path)).out).toMatch(/^mine: /);
    const planned = await wavetile(
      "plan",
      "quantize",
      "--params",
      "7B",
      "--device",
      path,
      "--json",
    );
    expect(JSON.parse(planned.out)).toMatchObject({
      ok: true,
      data: { devices: [{ name: "mine" }] },
    });
    writeFileSync(path, JSON.stringify({ ...data.file, vram: 1 }));
    expect(await wavetile("targets", "show", path)).toMatchObject({ exit: 1, out: "" });
  });
  it("are not compiled for when they are only known", async () => {
    writeFileSync(join(folder, "x.onnx"), "");
    const tried = await wavetile("optimize", join(folder, "x.onnx"), "--target", "mi300x");
    expect(tried.err).toContain("CLI002");
  });
});

describe("wavetile plan", () => {
  it("marks each number with how it is known, and names the sources", async () => {
    const place = await wavetile("plan", "place", "--params", "70B", "--device", "h100:2");
    expect(place.out).toMatch(
      /h100#0 … h100#1: 79\.6 GiB \(measured \[\d\]\), 3352 GB\/s \(datasheet/,
    );
    expect(place.out).toMatch(
      /link h100#0 - h100#1: 450 GB\/s \(datasheet \[\d\]\) after 10 µs \(pred/,
    );
    expect(place.out).toMatch(/\[1\] nvidia-smi/);
    const dispatch = await wavetile("plan", "dispatch", "--device", "l4:2", "--work-ms", "700");
    expect(dispatch.out).toContain("1 a second (assumed), 700 ms of work each (given)");
    expect(dispatch.out).toMatch(
      /l4#0 … l4#1: 22\.5 GiB \(measured \[1\]\), 300 GB\/s \(datasheet/,
    );
  });
  it("marks each number of its JSON: by an origin beside it, or by a word on what holds it", async () => {
    const state = join(folder, "state.json");
    const devices = ["a", "b"].map((name) => ({ name, memoryBytes: 10 }));
    const requests = [1, 2].map((n) => ({ name: `r${n}`, device: "a", workMs: n, memoryBytes: 1 }));
    writeFileSync(state, JSON.stringify({ devices, requests }));
    for (const argv of [
      ["quantize", "--params", "70B", "--device", "h100:2", "--split", "tensor"],
      ["place", "--params", "8B", "--device", "h100", "--device", "epyc-9654"],
      ["dispatch", "--device", "l4:2", "--arrivals", "100"],
      ["dispatch", state],
      ["kernels", "gemm", "--columns", "64", "--depth", "64", "--target", "h200"],
    ]) {
      const { data } = JSON.parse((await wavetile("plan", ...argv, "--json")).out);
      // A place in a list is no figure.
      const named = new Set([...Object.keys(data.origins), "ordinal"]);
      expect(unmarked(data, named, "data"), argv[0]).toEqual([]);
    }
  });
  it("says what was written where a number is none, in the option's unit", async () => {
    const negative = await wavetile("plan", "quantize", "--params=-5B", "--device", "h200");
    expect(negative.err).toContain('--params "-5B" is no positive number');
    const word = await wavetile("plan", "place", "--params", "many", "--device", "h200");
    expect(word.err).toContain('--params "many" is no number');
    const work = await wavetile("plan", "dispatch", "--device", "l4", "--work-ms=-1");
    expect(work.err).toContain("--work-ms is -1, not a number");
  });
  it("places a GGUF file by its layers, as it is stored", async () => {
    const metadata = {
      ...{ "general.architecture": "llama", "llama.block_count": 2 },
      ...{ "llama.embedding_length": 256, "llama.feed_forward_length": 512 },
      ...{ "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2 },
    };
    const tensors = [
      ["token_embd.weight", 12, 256, 1000],
      ["blk.0.ffn_up.weight", 12, 256, 512],
      ["blk.1.ffn_up.weight", 14, 256, 512],
      ["output.weight", 14, 256, 1000],
    ] as const;
    const path = join(folder, "small.gguf");
    writeFileSync(path, writeGguf(metadata, tensors));
    truncateSync(path, 4_000_000);
    const placed = await wavetile("plan", "place", path, "--device", "h200", "--json");
    const { data } = JSON.parse(placed.out);
    const bytes = data.tasks.map((t: { memoryBytes: number }) => t.memoryBytes);
    expect([bytes[0], bytes.at(-1)]).toEqual([(256_000 * 144) / 256, (256_000 * 210) / 256]);
    // By hand: half of both layers' weights, and 4096 tokens x 2 heads x 64 x 2 of 16 bits.
    const layer = ((131_072 * 144) / 256 + (131_072 * 210) / 256) / 2 + 4096 * 2 * 64 * 2 * 2;
    expect(bytes[1]).toBe(layer);
  });
});

describe("wavetile detect", () => {
  it("says what this machine has", async () => {
    const { data } = JSON.parse((await wavetile("detect", "--json")).out);
    expect(data.cpu.cores).toMatchObject({ origin: "detected" });
    expect(data.threads.threads).toBeGreaterThanOrEqual(1);
  });
});

describe("wavetile plan quantize", () => {
  it("ranks all formats and says why", async () => {
    const planned = await wavetile("plan", "quantize", "--params", "70B", "--device", "h100");
    expect(planned).toMatchObject({ exit: 0, err: "" });
    expect(planned.out).toContain("use Q6_K");
    expect(planned.out).toContain("h100 has no fp4 instructions");
    const json = await wavetile(
      "plan",
      "quantize",
      "--params",
      "70B",
      "--device",
      "h100:2",
      "--json",
    );
    expect(JSON.parse(json.out)).toMatchObject({
      schema: "wavetile/plan-quantize/1",
      data: { recommended: expect.any(String), formats: { length: 12 }, devices: { length: 2 } },
    });
  });
  it("fails when nothing fits (PLN003), and shows by how much", async () => {
    const planned = await wavetile("plan", "quantize", "--params", "405B", "--device", "rtx-4090");
    expect(planned.exit).toBe(1);
    expect(planned.err).toContain("PLN003");
    // The nearest that the device could run comes first; what it has no instructions for comes later.
    expect(planned.err).toContain("INT4-AWQ is the nearest");
    expect(planned.out).toMatch(/\n1\s+INT4-AWQ .*too large/);
    expect(planned.out).toContain("too large");
  });
  it("refuses what makes no sense", async () => {
    const tried = async (...args: string[]) => (await wavetile("plan", "quantize", ...args)).err;
    expect(await tried("--params", "1e18", "--device", "h100")).toContain("PLN001");
    expect(await tried("--params", "x", "--device", "h100")).toContain("PLN001");
    expect(await tried("--device", "h100")).toContain("CLI001");
    expect(await tried("--params", "7B", "--original", "Q9")).toContain("CLI001");
    expect(await tried("--params", "7B", "--device", "h100:0")).toContain("CLI001");
    expect(await tried("--params", "7B", "--device", "tpu")).toContain("CLI002");
    expect(await tried("--params", "7B", "--device", "x86-64-v3")).toContain("PLN002");
    expect(await tried("--params", "7B", "--device", "h100", "--context", "0")).toContain("PLN001");
    expect(await tried("--params", "7B", "--frob")).toContain("CLI001");
    expect((await wavetile("plan", "frobnicate")).exit).toBe(2);
  });
});

/** The host has memory for everything, but one of the tasks cannot run on it. */
const partial = {
  tasks: [
    { name: "a", inputs: [], timeNs: { host: 5, gpu: 1 }, memoryBytes: 1 },
    { name: "b", inputs: [{ from: "a", bytes: 1 }], timeNs: { gpu: 1 }, memoryBytes: 1 },
  ],
  devices: [
    { name: "host", memoryBytes: 100 },
    { name: "gpu", memoryBytes: 100, attachedTo: "host", latencyNs: 1, bytesPerNs: 1 },
  ],
};

describe("wavetile plan place", () => {
  const problem = {
    tasks: [
      { name: "a", inputs: [], timeNs: { gpu: 5, host: 9 }, memoryBytes: 4 },
      {
        name: "b",
        inputs: [{ from: "a", bytes: 100 }],
        timeNs: { gpu: 5, host: 9 },
        memoryBytes: 4,
      },
    ],
    devices: [
      { name: "host", memoryBytes: 100 },
      { name: "gpu", memoryBytes: 5, attachedTo: "host", latencyNs: 1, bytesPerNs: 50 },
    ],
  };
  it("places a file, a decoder and a model", async () => {
    const path = join(folder, "problem.json");
    writeFileSync(path, JSON.stringify(problem));
    const placed = JSON.parse((await wavetile("plan", "place", path, "--json")).out);
    expect(placed).toMatchObject({
      schema: "wavetile/plan-place/1",
      data: { makespanNs: 5 + 1 + 2 + 9, optimal: true, aloneNs: [18, null] },
    });
    const text = await wavetile("plan", "place", "--params", "70B", "--device", "h100:2");
    expect(text.out).toMatch(/h100#0\s+embedding … layer \d+/);
    const onnx = join(folder, "m.onnx");
    writeFileSync(onnx, sampleModel());
    const model = await wavetile(
      "plan",
      "place",
      onnx,
      "--shape",
      "M=8",
      "--device",
      "h100:2",
      "--json",
    );
    expect(JSON.parse(model.out)).toMatchObject({ ok: true, data: { gap: expect.any(Number) } });
  });
  it("refuses what does not fit or makes no sense", async () => {
    const tried = async (...args: string[]) => (await wavetile("plan", "place", ...args)).err;
    const open = join(folder, "open.onnx");
    writeFileSync(open, sampleModel());
    // An extent without a bound takes one size, which is said.
    const unbounded = await tried(open, "--device", "h100");
    expect(unbounded).toMatch(/warning CLI005.*were taken as M=1/);
    expect(unbounded).not.toMatch(/error/);
    const file = join(folder, "beside.json");
    writeFileSync(file, JSON.stringify(partial));
    expect(await tried(file, "--device", "h200")).toMatch(/CLI001.*--device/);
    expect(await tried(file, "--shape", "M=4")).toMatch(/CLI001.*--shape/);
    expect((await wavetile("plan", "place", file)).out).toContain("host cannot run it");
    expect(await tried("--params", "405B", "--device", "t4")).toContain("PLN006");
    expect(await tried("--params", "7B", "--format", "Q9", "--device", "t4")).toContain("CLI001");
    expect(await tried()).toContain("CLI001");
    expect(await tried(join(folder, "none.json"))).toContain("RUN030");
    const ring = { ...problem, devices: problem.devices.map((d) => ({ ...d, attachedTo: "gpu" })) };
    writeFileSync(join(folder, "ring.json"), JSON.stringify(ring));
    expect(await tried(join(folder, "ring.json"))).toContain("PLN007");
  });
});

describe("wavetile plan dispatch", () => {
  it("plays requests through each strategy", async () => {
    const args = [
      "plan",
      "dispatch",
      "--device",
      "h100:2",
      "--device",
      "rtx-4090",
      "--arrivals",
      "2000",
    ];
    const played = await wavetile(...args);
    expect(played).toMatchObject({ exit: 0, err: "" });
    for (const name of ["round-robin", "load-balanced", "priority", "best-fit"]) {
      expect(played.out).toContain(name);
    }
    const json = JSON.parse((await wavetile(...args, "--strategy", "best-fit", "--json")).out);
    expect(json).toMatchObject({ data: { reports: [{ strategy: "best-fit", served: 2000 }] } });
  });
  it("suggests moves for a fleet's state, and says what they change", async () => {
    const path = join(folder, "state.json");
    const request = { device: "a", memoryBytes: 1 };
    const state = {
      devices: [
        { name: "a", memoryBytes: 9 },
        { name: "b", memoryBytes: 9 },
      ],
      requests: [
        { ...request, name: "long", workMs: 30 },
        { ...request, name: "short", workMs: 20 },
      ],
    };
    writeFileSync(path, JSON.stringify(state));
    const { data } = JSON.parse((await wavetile("plan", "dispatch", path, "--json")).out);
    expect(data).toMatchObject({
      moves: [{ request: "long", from: "a", to: "b" }],
      mostBeforeNs: 50e6,
      mostAfterNs: 30e6,
    });
    expect((await wavetile("plan", "dispatch", path)).out).toMatch(/long\s+a\s+b/);
    expect((await wavetile("plan", "dispatch", path, "--above", "60")).out).toContain("no move");
    expect((await wavetile("plan", "dispatch", path, "--above", "-1")).err).toContain("PLN001");
    expect((await wavetile("plan", "dispatch", "--above", "1")).err).toContain("CLI001");
  });
  it("refuses what makes no sense", async () => {
    const tried = async (...args: string[]) => (await wavetile("plan", "dispatch", ...args)).err;
    expect(await tried("--device", "h100", "--rate", "0")).toContain("PLN001");
    expect(await tried("--device", "h100", "--arrivals", "1e18")).toContain("PLN001");
    expect(await tried("--device", "h100", "--reserved-gib", "500")).toContain("PLN001");
    expect(await tried("--device", "h100", "--strategy", "luck")).toContain("CLI001");
  });
});
