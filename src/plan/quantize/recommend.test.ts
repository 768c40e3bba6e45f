import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Rng } from "../../support/rng.ts";
import { perDevice } from "../../target/figure.ts";
import { targets } from "../../target/index.ts";
import { deviceOfTarget, type PlanDevice } from "../device.ts";
import { parseCount } from "../number.ts";
import { formatNamed, weightFormats } from "./formats.ts";
import { kvCacheBytes, type Workload } from "./memory.ts";
import { type ModelDescription, modelOfSize, modelOfTensors } from "./model.ts";
import {
  type FormatPlan,
  type Preference,
  type QuantizePlan,
  type QuantizeRequest,
  recommendFormat,
} from "./recommend.ts";
import { relativeError } from "./round-weights.test-support.ts";
import { bitsOf, readPerStep, weightBytes } from "./weights.ts";

function device(name: string, gib?: number): PlanDevice {
  const found = deviceOfTarget(
    targets.get(name)!,
    gib === undefined ? {} : { memoryBytes: perDevice(gib * 2 ** 30, "test") },
  );
  if (!found.ok) throw new Error(name);
  return found.value;
}

function sized(parameters: number, original = "BF16"): ModelDescription {
  const format = formatNamed(original)!;
  const model = modelOfSize(parameters, { bits: format.mixedBits, name: original });
  if (!model.ok) throw new Error("no model");
  return model.value;
}

const load: Workload = { context: 4096, batch: 1, kvBits: 16 };

function plan(
  request: Partial<QuantizeRequest> & Pick<QuantizeRequest, "model" | "devices">,
): QuantizePlan {
  const full = { load, split: "layers", preference: "balanced", ...request } as const;
  const result = recommendFormat(full);
  if (!result.ok) throw new Error(result.diagnostics[0]!.message);
  return result.value;
}

const rowOf = (p: QuantizePlan, name: string): FormatPlan =>
  p.formats.find((f) => f.format === name)!;
const order = (p: QuantizePlan): string[] => p.formats.filter((f) => f.usable).map((f) => f.format);

describe("reference vectors", () => {
  it("70B on 80 GB, balanced: Q6_K", () => {
    expect(plan({ model: sized(70e9), devices: [device("h100")] }).recommended?.format).toBe(
      "Q6_K",
    );
    expect(plan({ model: sized(70e9), devices: [device("a100-80gb")] }).recommended?.format).toBe(
      "Q6_K",
    );
  });
  it("7B on 16 GB, speed: Q4_K_M", () => {
    const found = plan({ model: sized(7e9), devices: [device("t4")], preference: "speed" });
    expect(found.recommended?.format).toBe("Q4_K_M");
  });
  it("orders of the preferences, where everything fits", () => {
    const asked = (preference: Preference) =>
      order(plan({ model: sized(7e9), devices: [device("a100-80gb")], preference }));
    const only = (names: readonly string[], kept: string) =>
      names.filter((n) => kept.split(" ").includes(n));
    const listed = "Q8_0 Q6_K Q5_K_M Q4_K_M BF16";
    expect(only(asked("speed"), listed)).toEqual(["Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "BF16"]);
    expect(only(asked("balanced"), listed)).toEqual(["Q6_K", "Q5_K_M", "Q8_0", "Q4_K_M", "BF16"]);
    expect(only(asked("quality"), listed)).toEqual(["BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M"]);
  });
  it("where FP4 exists, speed prefers NVFP4", () => {
    for (const name of ["b200", "gb200", "rtx-5090", "rtx-pro-6000"]) {
      const found = plan({ model: sized(8e9), devices: [device(name)], preference: "speed" });
      expect(found.recommended?.format, name).toBe("NVFP4");
    }
  });
});

describe("faults of the earlier system", () => {
  it("a device that holds nothing takes no format away and costs no transfer", () => {
    const model = sized(8e9);
    for (const preference of ["quality", "balanced", "speed"] as const) {
      const alone = plan({ model, devices: [device("b200")], preference });
      for (const devices of [
        [device("b200"), device("rtx-3060")],
        [device("rtx-3060"), device("b200")],
      ]) {
        const both = plan({ model, devices, preference });
        expect(order(both)).toEqual(order(alone));
        for (const f of both.formats.filter((g) => g.usable)) {
          const { tokensPerSecond, totalBytes } = rowOf(alone, f.format);
          expect([f.tokensPerSecond, f.totalBytes]).toEqual([tokensPerSecond, totalBytes]);
          expect(f.shares.find((s) => s.device.includes("3060"))).toMatchObject({ bytes: 0 });
        }
      }
    }
  });
  it("compute capabilities as text: 10.0, 11.0, 12.0 and 12.1 have FP4 and FP8", () => {
    for (const name of ["b200", "jetson-thor", "rtx-5090", "dgx-spark"]) {
      const found = plan({ model: sized(8e9), devices: [device(name)] });
      for (const format of ["NVFP4", "MXFP4", "FP8"])
        expect(rowOf(found, format).usable).toBe(true);
    }
  });
  it("FP4 offered on Ada or Hopper", () => {
    for (const name of ["rtx-4090", "l4", "l40s", "h100", "a100-40gb", "t4"]) {
      const found = plan({ model: sized(7e9), devices: [device(name)], preference: "speed" });
      expect(rowOf(found, "NVFP4")).toMatchObject({
        usable: false,
        reason: `${name} has no fp4 instructions`,
      });
      expect(found.recommended?.format).not.toMatch(/FP4/);
    }
  });
  it("a larger format recommended for a quantized model", () => {
    for (const original of ["Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0"]) {
      const bits = formatNamed(original)!.bits;
      for (const preference of ["quality", "balanced", "speed"] as const) {
        const model = sized(7e9, original);
        const found = plan({ model, devices: [device("h200")], preference });
        for (const f of found.formats.filter((f) => f.usable)) {
          expect(formatNamed(f.format)!.bits).toBeLessThanOrEqual(bits + 0.05);
        }
        if (preference === "quality") expect(found.recommended?.format).toBe(original);
      }
    }
  });
  it("a larger format than NVFP4, of the same nominal bits", () => {
    const model = sized(70e9, "NVFP4");
    for (const name of ["h200", "b200"]) {
      const found = plan({ model, devices: [device(name)] });
      expect(rowOf(found, "Q4_K_M")).toMatchObject({ usable: false });
      expect(found.recommended?.format).toBe(name === "b200" ? "NVFP4" : "INT4-AWQ");
    }
  });
  it("Q5_K_M for a small Q4_K_M file, whose output in Q6_K raises its average", () => {
    const tensor = (name: string, rows: number, bits: number, format: string) => ({
      ...{ name, shape: [rows, 4096], bits, format },
    });
    const tensors = [
      tensor("blk.0.ffn_up.weight", 28672, 4.5, "Q4_K_M"),
      tensor("output.weight", 16384, 8.5, "Q8_0"),
    ];
    const model = modelOfTensors("m", tensors, { shape: undefined, source: "test" });
    if (!model.ok) throw new Error("no model");
    expect(model.value.originalBits).toBeGreaterThan(5.5);
    const found = plan({ model: model.value, devices: [device("h200")] });
    expect(rowOf(found, "Q5_K_M").reason).toMatch(/^above the model's own Q4_K_M/);
  });
  it("the KV cache forgotten", () => {
    const devices = [device("rtx-4090")];
    const at = (context: number) =>
      plan({ model: sized(8e9), devices, load: { ...load, context } });
    // 2 x 32 layers x 8 heads x 128 x 2 bytes = 128 KiB a token.
    expect(rowOf(at(8192), "Q6_K").kvBytes).toBe(8192 * 131072);
    expect(rowOf(at(1024), "BF16").fits).toBe(true);
    expect(rowOf(at(131072), "BF16").fits).toBe(false);
    expect(rowOf(at(131072), "BF16").tokensPerSecond).toBeLessThan(
      rowOf(at(1024), "BF16").tokensPerSecond,
    );
  });
  it("several GPUs ignored", () => {
    const model = sized(70e9);
    const on = (count: number) =>
      plan({
        model,
        devices: Array.from({ length: count }, () => device("h100")),
        preference: "quality",
      });
    expect(rowOf(on(1), "BF16").fits).toBe(false);
    expect(rowOf(on(2), "BF16").fits).toBe(true);
    expect(on(2).recommended?.format).toBe("BF16");
    const shares = rowOf(on(2), "BF16").shares.map((s) => s.share);
    expect(shares.reduce((a, b) => a + b)).toBeCloseTo(1, 9);
    expect(Math.min(...shares)).toBeGreaterThan(0.3);
    const tensor = plan({ model, devices: [device("h100"), device("h100")], split: "tensor" });
    const layers = plan({ model, devices: [device("h100"), device("h100")] });
    expect(rowOf(tensor, "Q8_0").tokensPerSecond).toBeGreaterThan(
      1.5 * rowOf(layers, "Q8_0").tokensPerSecond,
    );
  });
});

describe("what is predicted", () => {
  it("is the bandwidth's bound: weights and cache read once a token", () => {
    const model = sized(70e9);
    const found = rowOf(plan({ model, devices: [device("h200")] }), "Q8_0");
    const embedding = 128256 * 8192;
    const read = ((70e9 - embedding) * 8.5) / 8 + kvCacheBytes(model, load);
    expect(found.tokensPerSecond).toBeCloseTo(4800e9 / read, 3);
  });
  it("never beats the roofline of any device set", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4096 }),
        fc.integer({ min: 1, max: 256 }),
        (context, batch) => {
          const model = sized(8e9);
          const found = plan({
            model,
            devices: [device("h100")],
            load: { context, batch, kvBits: 16 },
          });
          for (const f of found.formats) {
            const step = batch / f.tokensPerSecond;
            const embedding = 128256 * 4096;
            const bytes = ((8e9 - embedding) * formatNamed(f.format)!.mixedBits) / 8;
            expect(step).toBeGreaterThanOrEqual((bytes / 3352e9) * 0.999);
          }
        },
      ),
      { numRuns: 50 },
    );
  });
  it("is monotone in memory: more of it never loses a format nor worsens the choice", () => {
    const sizes = fc.tuple(fc.integer({ min: 2, max: 400 }), fc.integer({ min: 0, max: 200 }));
    const model = fc.double({ min: 5e8, max: 2e11, noNaN: true });
    const preference = fc.constantFrom<Preference>("quality", "balanced", "speed");
    const split = fc.constantFrom("layers", "tensor");
    fc.assert(
      fc.property(
        sizes,
        model,
        preference,
        fc.integer({ min: 1, max: 4 }),
        split,
        ([gib, more], n, prefer, count, how) => {
          const at = (memory: number) =>
            plan({
              model: sized(n),
              devices: Array.from({ length: count }, () => device("h200", memory)),
              preference: prefer,
              split: how as "layers" | "tensor",
            });
          const [small, large] = [at(gib), at(gib + more)];
          for (const f of small.formats) if (f.fits) expect(rowOf(large, f.format).fits).toBe(true);
          if (!small.recommended) return;
          expect(large.recommended!.rank).toBe(1);
          // The former choice is still there, and not above the new one.
          expect(rowOf(large, small.recommended.format).rank).toBeGreaterThanOrEqual(1);
          if (prefer === "quality")
            expect(large.recommended!.error).toBeLessThanOrEqual(
              Math.max(small.recommended.error, 3e-4),
            );
        },
      ),
      { numRuns: 300 },
    );
  });
  it("says what is missing when nothing fits", () => {
    const found = plan({ model: sized(405e9), devices: [device("rtx-4090")] });
    expect(found.recommended).toBeUndefined();
    expect(found.formats).toHaveLength(12);
    for (const f of found.formats) expect(f.shortfallBytes).toBeGreaterThan(0);
  });
});

describe("the format table", () => {
  const rng = new Rng(7);
  const weights = Float64Array.from({ length: 4096 * 24 }, () => rng.normal() * 0.02);
  it.each(weightFormats.map((f) => [f.name, f] as const))(
    "%s has the error that rounding makes",
    (name, format) => {
      const found = relativeError(name, weights);
      if (format.error === 0) expect(found).toBeLessThan(1e-6);
      else expect(found / format.error).toBeGreaterThan(0.85);
      expect(found).toBeLessThan(Math.max(format.error * 1.15, 1e-6));
    },
  );
  it("has averages that the mix of a real model's matrices gives", () => {
    const tensors = llamaTensors();
    const model = modelOfTensors("llama", tensors, { shape: undefined, source: "test" });
    if (!model.ok) throw new Error("no model");
    for (const name of ["Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "BF16"]) {
      const format = formatNamed(name)!;
      const bits = (weightBytes(model.value, format).total * 8) / model.value.parameters.value;
      expect(Math.abs(bits / format.mixedBits - 1), name).toBeLessThan(0.03);
    }
  });
});

/** The tensors of Llama-3.1-8B by their published shapes. */
function llamaTensors() {
  const tensor = (name: string, ...shape: number[]) => ({ name, shape, bits: 16, format: "BF16" });
  const layers = Array.from({ length: 32 }, (_, i) => [
    tensor(`model.layers.${i}.self_attn.q_proj.weight`, 4096, 4096),
    tensor(`model.layers.${i}.self_attn.k_proj.weight`, 1024, 4096),
    tensor(`model.layers.${i}.self_attn.v_proj.weight`, 1024, 4096),
    tensor(`model.layers.${i}.self_attn.o_proj.weight`, 4096, 4096),
    tensor(`model.layers.${i}.mlp.gate_proj.weight`, 14336, 4096),
    tensor(`model.layers.${i}.mlp.up_proj.weight`, 14336, 4096),
    tensor(`model.layers.${i}.mlp.down_proj.weight`, 4096, 14336),
    tensor(`model.layers.${i}.input_layernorm.weight`, 4096),
  ]);
  return [
    tensor("model.embed_tokens.weight", 128256, 4096),
    tensor("lm_head.weight", 128256, 4096),
    tensor("model.norm.weight", 4096),
    ...layers.flat(),
  ];
}

describe("embedding and output", () => {
  const model = modelOfTensors("llama", llamaTensors(), { shape: undefined, source: "test" });
  if (!model.ok) throw new Error("no model");
  const total = (name: string): number => weightBytes(model.value, formatNamed(name)!).total;

  it("stay at 16 bits where the format's tools leave them: AWQ of Llama-3.1-8B is 5.73 GB", () => {
    expect(total("INT4-AWQ") / 1e9).toBeCloseTo(5.73, 1);
    expect(total("FP8") / 1e9).toBeCloseTo(9.08, 1);
    expect(total("INT8") / 1e9).toBeCloseTo(9.08, 1);
  });
  it("of a size alone are counted alike", () => {
    for (const name of ["INT4-AWQ", "FP8", "INT8", "NVFP4", "Q8_0"]) {
      const asked = weightBytes(sized(model.value.parameters.value), formatNamed(name)!);
      expect(asked.total / total(name), name).toBeCloseTo(1, 2);
    }
  });
  it("of 16 bits do not change how many operations a token takes", () => {
    const found = plan({ model: model.value, devices: [device("h100")] });
    const prompt = (name: string): number => rowOf(found, name).promptTokensPerSecond;
    expect(prompt("INT4-AWQ")).toBeCloseTo(prompt("FP16"), 6);
    expect(prompt("INT8")).toBeCloseTo(prompt("FP8"), 6);
    const multiplied = model.value.parameters.value - 128256 * 4096;
    expect(prompt("FP16")).toBeCloseTo(989.4e12 / (2 * multiplied), 3);
  });
  it("are said to be more where tools differ", () => {
    const found = plan({ model: model.value, devices: [device("b200")] });
    const more = (2 * 128256 * 4096 * (16 - 4.5)) / 8 / 2 ** 30;
    expect(rowOf(found, "NVFP4").reason).toContain(`16 bits ${more.toFixed(1)} GiB more`);
  });
});

describe("tensor lists", () => {
  it("keep vectors and odd rows at 16 bits, integers as they are", () => {
    const q4 = formatNamed("Q4_K_M")!;
    const tensor = (shape: number[], extra = {}) => ({
      name: "w",
      shape,
      bits: 16,
      format: "BF16",
      ...extra,
    });
    expect(bitsOf(tensor([4096, 4096]), q4)).toBe(4.5);
    expect(bitsOf(tensor([4096]), q4)).toBe(16);
    expect(bitsOf(tensor([4096, 100]), q4)).toBe(16);
    expect(bitsOf({ ...tensor([64]), bits: 64, fixed: true }, q4)).toBe(64);
    expect(bitsOf({ ...tensor([4096, 4096]), bits: 4.25 }, formatNamed("Q8_0")!)).toBe(4.25);
  });
  it("of mixtures of experts read only the experts a token uses", () => {
    const expert = (i: number) => ({
      name: `blk.${i}.ffn_up_exps.weight`,
      shape: [64, 256, 256],
      bits: 16,
      format: "BF16",
    });
    const shape = {
      layers: 2,
      hidden: 256,
      kvHeads: 1,
      headWidth: 64,
      intermediate: 256,
      vocabulary: 1000,
      experts: 64,
      expertsUsed: 4,
    };
    const model = modelOfTensors("moe", [expert(0), expert(1)], { shape, source: "test" });
    if (!model.ok) throw new Error("no model");
    const bytes = weightBytes(model.value, formatNamed("BF16")!);
    expect(bytes.readPerToken / bytes.total).toBeCloseTo(4 / 64);
    const step = (batch: number): number => readPerStep(bytes, model.value, batch) / bytes.total;
    expect(step(1)).toBeCloseTo(4 / 64);
    expect(step(2)).toBeCloseTo(1 - (60 / 64) ** 2);
    expect(step(1000)).toBeCloseTo(1);
  });
});

describe("impossible input", () => {
  it("is refused (PLN001)", () => {
    for (const n of [Number.NaN, -1, 0, 1e18, Infinity]) {
      expect(modelOfSize(n, { bits: 16, name: "BF16" })).toMatchObject({
        diagnostics: [{ code: "PLN001" }],
      });
    }
    const request = {
      model: sized(7e9),
      devices: [device("h100")],
      load,
      split: "layers",
      preference: "speed",
    } as const;
    for (const bad of [{ context: 0 }, { batch: 1.5 }, { context: Number.NaN }, { kvBits: -1 }]) {
      expect(recommendFormat({ ...request, load: { ...load, ...bad } })).toMatchObject({
        diagnostics: [{ code: "PLN001" }],
      });
    }
    expect(recommendFormat({ ...request, devices: [] })).toMatchObject({ ok: false });
    const huge = [{ name: "w", shape: [2 ** 30, 2 ** 30], bits: 16, format: "BF16" }];
    expect(modelOfTensors("m", huge, { shape: undefined, source: "" })).toMatchObject({
      ok: false,
    });
    expect(modelOfTensors("m", [], { shape: undefined, source: "" })).toMatchObject({ ok: false });
  });
  it("a generation of CPUs has no memory to plan for (PLN002)", () => {
    for (const name of ["x86-64-v3", "wasm"]) {
      expect(deviceOfTarget(targets.get(name)!)).toMatchObject({
        diagnostics: [{ code: "PLN002" }],
      });
    }
  });
  it("counts are read with their units", () => {
    expect(["70B", "8.03b", "350M", "12", "1e18", "x"].map(parseCount)).toEqual([
      70e9,
      8.03e9,
      350e6,
      12,
      1e18,
      Number.NaN,
    ]);
  });
});
