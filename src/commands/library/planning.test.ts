import { describe, expect, it } from "vitest";
import { detect, findDevices, formatNamed, modelOfSize, recommendFormat } from "../../index.ts";

describe("planning as a library", () => {
  it("finds devices and recommends a format", async () => {
    const devices = await findDevices(["h100:2"]);
    const original = formatNamed("BF16")!;
    const model = modelOfSize(70e9, { bits: original.mixedBits, name: original.name });
    if (!devices.ok || !model.ok) throw new Error("not found");
    const plan = recommendFormat({
      model: model.value,
      devices: devices.value,
      load: { context: 4096, batch: 1, kvBits: 16 },
      split: "layers",
      preference: "quality",
    });
    expect(plan).toMatchObject({ ok: true, value: { recommended: { format: "BF16" } } });
  });
  it("plans for this machine", async () => {
    const report = await detect();
    if (!report.ok) throw new Error("not detected");
    const here = await findDevices(["auto"]);
    expect(here).toMatchObject({ ok: true });
  });
});
