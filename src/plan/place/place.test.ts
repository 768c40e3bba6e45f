import { describe, expect, it } from "vitest";
import { bestMakespan, queuesOf, randomProblem, simulate } from "../../../campaign/place-judges.ts";
import { Rng } from "../../support/rng.ts";
import { targets } from "../../target/index.ts";
import { deviceOfTarget, type PlanDevice } from "../device.ts";
import { formatNamed } from "../quantize/formats.ts";
import { activationBytes, kvCacheBytes, reserveBytes } from "../quantize/memory.ts";
import { modelOfSize, modelOfTensors } from "../quantize/model.ts";
import { recommendFormat } from "../quantize/recommend.ts";
import { weightBytes } from "../quantize/weights.ts";
import { decoderProblem, transferLatency } from "./decoder-problem.ts";
import { searchExactly } from "./exact.ts";
import { defaultBudget, type PlacePlan, place } from "./place.ts";
import type { PlaceProblem } from "./problem.ts";
import { parsePlaceProblem } from "./read-problem.ts";
import { memoryUse, timePlacement } from "./schedule.ts";

function planOf(problem: PlaceProblem, budget = defaultBudget): PlacePlan {
  const plan = place(problem, budget);
  if (!plan.ok) throw new Error(plan.diagnostics[0]!.message);
  return plan.value;
}

describe("random graphs", () => {
  it("of up to four tasks are placed as well as can be, and proved", () => {
    for (let seed = 0; seed < 60; seed++) {
      const problem = randomProblem(new Rng(seed), 4, 3);
      const best = bestMakespan(problem);
      const plan = place(problem);
      if (!plan.ok) expect([best, plan.diagnostics[0]!.code]).toEqual([Infinity, "PLN006"]);
      else expect([plan.value.makespanNs, plan.value.optimal]).toEqual([best, true]);
      const search = searchExactly(problem, Infinity, defaultBudget.nodes).placement;
      expect(search ? timePlacement(problem, search).makespanNs : Infinity).toBe(best);
    }
  });
  it("of any size play as planned, above their bound, within memory, below each device alone", () => {
    for (let seed = 0; seed < 25; seed++) {
      const problem = randomProblem(new Rng(seed), 60, 5);
      const answer = place(problem, { ...defaultBudget, timings: 500 });
      if (!answer.ok) continue;
      const plan = answer.value;
      const queues = queuesOf(problem.devices.length, plan.deviceOf, plan.order);
      expect(simulate(problem, plan.deviceOf, queues)).toBe(plan.makespanNs);
      expect(plan.boundNs).toBeLessThanOrEqual(plan.makespanNs);
      expect(plan.makespanNs).toBeLessThanOrEqual(Math.min(...plan.aloneNs));
      const use = memoryUse(problem, plan.deviceOf);
      use.forEach((bytes, d) => {
        expect(bytes).toBeLessThanOrEqual(problem.devices[d]!.memoryBytes);
      });
    }
  });
  it("of 2,000 tasks on 8 devices take seconds and the same answer twice", () => {
    const problem = randomProblem(new Rng(3), 2000, 8);
    const budget = { ...defaultBudget, timings: 300 };
    expect(planOf(problem, budget)).toEqual(planOf(problem, budget));
  });
});

const load = { context: 4096, batch: 1, kvBits: 16 };

function device(name: string, known = {}): PlanDevice {
  const found = deviceOfTarget(targets.get(name)!, known);
  if (!found.ok) throw new Error(name);
  return found.value;
}

function llama(devices: readonly PlanDevice[], format: string): PlaceProblem {
  const model = modelOfSize(70e9, { bits: 16, name: "BF16" });
  if (!model.ok) throw new Error("no model");
  return decoderProblem({ model: model.value, format: formatNamed(format)!, load, devices })!;
}

describe("Llama 70B", () => {
  const model = modelOfSize(70e9, { bits: 16, name: "BF16" });
  if (!model.ok) throw new Error("no model");
  const ends = 128256 * 8192 * 2;
  const layerWeights = Math.ceil((140e9 - 2 * ends) / 80);
  const layerCache = kvCacheBytes(model.value, load) / 80;

  it("in BF16 over two to eight H100: the layers one after another, one transfer a seam", () => {
    for (let count = 2; count <= 8; count++) {
      const devices = Array.from({ length: count }, (_, i) => ({
        ...device("h100"),
        name: `h100#${i}`,
      }));
      const problem = llama(devices, "BF16");
      const plan = planOf(problem);
      // By hand: 80 layers' weights and cache and the output's weights, read at 3,352 GB/s.
      const reading = (80 * (layerWeights + layerCache) + ends + 8192 * 2) / 3352;
      const seams = plan.order.filter(
        (t) => t > 0 && plan.deviceOf[t] !== plan.deviceOf[t - 1],
      ).length;
      const seam = transferLatency.value + (8192 * 2) / 450;
      expect(plan.makespanNs).toBeCloseTo(reading + seams * seam, -1);
      // Two GPUs hold all of it, so more of them only wait.
      expect(seams).toBe(1);
      expect(plan.gap).toBeLessThan(0.001);
      const room =
        devices[0]!.memoryBytes.value -
        reserveBytes(devices[0]!).value -
        activationBytes(model.value, load);
      for (const bytes of plan.memoryBytes) expect(bytes).toBeLessThanOrEqual(room);
    }
  });

  it("in BF16 does not fit on one H100, and the shortfall is said (PLN006)", () => {
    const problem = llama([device("h100")], "BF16");
    const needed = problem.tasks.reduce((sum, t) => sum + t.memoryBytes, 0);
    const missing = needed - problem.devices[0]!.memoryBytes;
    const answer = place(problem);
    expect(answer).toMatchObject({ ok: false, diagnostics: [{ code: "PLN006" }] });
    if (!answer.ok) expect(answer.diagnostics[0]!.message).toContain(`${missing} bytes`);
  });

  it("in Q4_K_M is what plan quantize counts: the embedding in 4.5 bits, the output in Q6_K's", () => {
    const problem = llama([device("h200")], "Q4_K_M");
    const [embedding, output] = [problem.tasks[0]!, problem.tasks.at(-1)!];
    expect(embedding.memoryBytes).toBe((128256 * 8192 * 144) / 256);
    expect(output.memoryBytes).toBe((128256 * 8192 * 210) / 256);
    const q4 = formatNamed("Q4_K_M")!;
    const weights = problem.tasks.reduce((n, t) => n + t.memoryBytes, 0) - 80 * layerCache;
    expect(Math.abs(weights - weightBytes(model.value, q4).total)).toBeLessThan(100);
  });

  it("in Q4_K_M on a 24 GB GPU and its host: the GPU as full as it gets, the rest on the CPU", () => {
    const gpu = device("rtx-4090");
    const cpu = device("epyc-9654");
    const problem = llama([gpu, cpu], "Q4_K_M");
    const plan = planOf(problem);
    const layer = problem.tasks[1]!;
    const room = problem.devices[0]!.memoryBytes;
    const onGpu = plan.deviceOf.filter((d, t) => d === 0 && t > 0 && t <= 80).length;
    const most = Math.floor(room / layer.memoryBytes);
    expect(onGpu).toBeGreaterThanOrEqual(most - 2);
    expect(onGpu).toBeLessThanOrEqual(most);
    // By hand: a layer is read at 1,008 GB/s there and 460.8 GB/s here.
    expect(layer.timeNs[0]).toBeCloseTo(layer.memoryBytes / 1008, 0);
    expect(layer.timeNs[1]).toBeCloseTo(layer.memoryBytes / 460.8, 0);
    const ideal = most * layer.timeNs[0]! + (80 - most) * layer.timeNs[1]!;
    expect(plan.makespanNs).toBeGreaterThan(ideal);
    expect(plan.makespanNs / ideal).toBeLessThan(1.06);
    expect(plan.gap).toBeLessThan(0.06);
    // Better than the CPU alone, which holds it all.
    expect(plan.aloneNs[0]).toBe(Infinity);
    expect(plan.makespanNs).toBeLessThan(plan.aloneNs[1]!);
  });
});

describe("the splitter of before", () => {
  it("ran the ops of a chain at once: a chain takes the sum of its times", () => {
    const tasks = [0, 1, 2].map((i) => ({
      name: `${i}`,
      inputs: i === 0 ? [] : [{ from: i - 1, bytes: 8 }],
      timeNs: [10, 10],
      memoryBytes: 0,
    }));
    const way = { latencyNs: 1, bytesPerNs: 1 };
    const transfers = [
      [way, way],
      [way, way],
    ];
    const devices = [0, 1].map((i) => ({ name: `${i}`, memoryBytes: 10 }));
    expect(planOf({ tasks, devices, transfers }).makespanNs).toBe(30);
  });
  it("moved data between GPUs for nothing", () => {
    const tasks = [
      { name: "a", inputs: [], timeNs: [1, Infinity], memoryBytes: 0 },
      { name: "b", inputs: [{ from: 0, bytes: 100 }], timeNs: [Infinity, 1], memoryBytes: 0 },
    ];
    const way = { latencyNs: 5, bytesPerNs: 10 };
    const devices = [0, 1].map((i) => ({ name: `${i}`, memoryBytes: 0 }));
    const transfers = [
      [way, way],
      [way, way],
    ];
    expect(planOf({ tasks, devices, transfers }).makespanNs).toBe(1 + 5 + 10 + 1);
  });
});

const file = {
  tasks: [
    { name: "b", inputs: [{ from: "a", bytes: 100 }], timeNs: { gpu: 5 }, memoryBytes: 4 },
    { name: "a", inputs: [], timeNs: { host: 3, gpu: 9 }, memoryBytes: 2 },
  ],
  devices: [
    { name: "host", memoryBytes: 100 },
    { name: "gpu", memoryBytes: 5, attachedTo: "host", latencyNs: 1, bytesPerNs: 50 },
    { name: "other", memoryBytes: 5, attachedTo: "host", latencyNs: 2, bytesPerNs: 25 },
  ],
};

describe("placement files", () => {
  const read = (value: unknown) => parsePlaceProblem(JSON.stringify(value));
  const code = (value: unknown) => {
    const found = read(value);
    return found.ok ? "ok" : found.diagnostics[0]!.code;
  };
  it("give tasks in order and ways through the tree of devices", () => {
    const problem = read(file);
    if (!problem.ok) throw new Error(problem.diagnostics[0]!.message);
    expect(problem.value.tasks.map((t) => t.name)).toEqual(["a", "b"]);
    expect(problem.value.tasks[1]).toMatchObject({
      inputs: [{ from: 0 }],
      timeNs: [Infinity, 5, Infinity],
    });
    expect(problem.value.transfers[1]![2]).toEqual({ latencyNs: 3, bytesPerNs: 25 });
    expect(planOf(problem.value).makespanNs).toBe(3 + 1 + 2 + 5);
  });
  it("with circles, gaps and unknown names are refused", () => {
    const [b, a] = file.tasks;
    const [host, gpu] = file.devices;
    expect(code({ ...file, tasks: [b, { ...a, inputs: [{ from: "b", bytes: 1 }] }] })).toBe(
      "PLN005",
    );
    expect(code({ ...file, tasks: [] })).toBe("PLN005");
    expect(code({ ...file, devices: [] })).toBe("PLN007");
    const ring = { attachedTo: "gpu", latencyNs: 1, bytesPerNs: 1 };
    expect(code({ ...file, devices: [{ ...host, ...ring }, gpu] })).toBe("PLN007");
    expect(code({ ...file, devices: [host, { name: "gpu", memoryBytes: 5 }] })).toBe("PLN007");
    expect(code({ ...file, devices: [host, { ...gpu, attachedTo: "nowhere" }] })).toBe("PLN007");
    expect(code({ ...file, tasks: [a, a] })).toBe("PLN007");
    expect(code({ ...file, tasks: [a, { ...b, inputs: [{ from: "z", bytes: 1 }] }] })).toBe(
      "PLN007",
    );
    expect(code({ ...file, tasks: [{ ...a, timeNs: { tpu: 1 } }] })).toBe("PLN007");
    expect(code({ ...file, frob: 1 })).toBe("PLN007");
    expect(code({ ...file, tasks: [{ ...a, memoryBytes: -1 }] })).toBe("PLN001");
    expect(code({ ...file, tasks: [{ ...a, timeNs: { gpu: "5" } }] })).toBe("PLN001");
    expect(parsePlaceProblem("{")).toMatchObject({ diagnostics: [{ code: "PLN007" }] });
  });
  it("of programs without a compiler are refused where a part is missing (PLN008)", () => {
    const device = { name: "d", memoryBytes: 1 };
    const task = { name: "t", inputs: [], timeNs: [1], memoryBytes: 1 };
    const whole = { tasks: [task], devices: [device], transfers: [] };
    const broken: readonly unknown[] = [
      undefined,
      {},
      { ...whole, transfers: undefined },
      { ...whole, transfers: [1] },
      { ...whole, devices: [null] },
      { ...whole, tasks: [null] },
      { ...whole, tasks: [{ ...task, inputs: undefined }] },
      { ...whole, tasks: [{ ...task, inputs: [null] }] },
      { ...whole, tasks: [{ ...task, timeNs: undefined }] },
      { ...whole, tasks: [{ ...task, timeNs: [1, 2] }] },
    ];
    for (const problem of broken) {
      const answer = place(problem as PlaceProblem);
      expect(answer).toMatchObject({ ok: false, diagnostics: [{ code: "PLN008" }] });
    }
    expect(place(whole)).toMatchObject({ ok: true });
  });
  it("given as values are checked alike", () => {
    const problem = {
      tasks: [{ name: "a", inputs: [], timeNs: [Number.NaN], memoryBytes: 1 }],
      devices: [{ name: "d", memoryBytes: 1 }],
      transfers: [[]],
    };
    expect(place(problem)).toMatchObject({ diagnostics: [{ code: "PLN001" }] });
    const nowhere = { ...problem, tasks: [{ ...problem.tasks[0]!, timeNs: [Infinity] }] };
    expect(place(nowhere)).toMatchObject({ diagnostics: [{ code: "PLN005" }] });
  });
});

describe("a mixture of experts", () => {
  it("reads the experts that a token uses, and takes as long as its quantisation plan says", () => {
    const tensor = (name: string, rows: number) => ({
      ...{ name, shape: [rows, 4096], bits: 16, format: "BF16" },
    });
    const layer = (i: number) => [
      tensor(`blk.${i}.attn_q.weight`, 4096),
      tensor(`blk.${i}.ffn_up_exps.weight`, 8 * 14336),
    ];
    const shape = {
      ...{ layers: 4, hidden: 4096, kvHeads: 8, headWidth: 128, intermediate: 14336 },
      ...{ vocabulary: 32000, experts: 8, expertsUsed: 2 },
    };
    const ends = [tensor("token_embd.weight", 32000), tensor("output.weight", 32000)];
    const tensors = [...ends, ...[0, 1, 2, 3].flatMap(layer)];
    const mixture = modelOfTensors("moe", tensors, { shape, source: "test" });
    if (!mixture.ok) throw new Error("no model");
    for (const batch of [1, 3]) {
      const devices = [device("h200")];
      const work = { context: 1, batch, kvBits: 16 };
      const input = { model: mixture.value, format: "stored", load: work, devices } as const;
      const { makespanNs } = planOf(decoderProblem(input)!);
      const chosen = 8 * (1 - (6 / 8) ** batch);
      const rows = 32000 + batch + 4 * (4096 + chosen * 14336);
      const cache = 4 * 2 * 1024 * 2 * batch;
      expect(makespanNs).toBeCloseTo((rows * 4096 * 2 + cache) / 4800, -1);
      const asked = { split: "layers", preference: "quality" } as const;
      const planned = recommendFormat({ model: mixture.value, devices, load: work, ...asked });
      if (!planned.ok) throw new Error("no plan");
      const bf16 = planned.value.formats.find((f) => f.format === "BF16")!;
      expect((1e9 * batch) / bf16.tokensPerSecond / makespanNs).toBeCloseTo(1, 3);
    }
  });
});
