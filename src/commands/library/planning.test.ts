import { describe, expect, it } from "vitest";
import {
  configureKernel,
  detect,
  findDevices,
  formatNamed,
  type KernelProblem,
  makeStrategy,
  modelOfSize,
  parseFleetState,
  recommendFormat,
  type StrategyName,
  simulateDispatch,
  targets,
  WavetileError,
} from "../../index.ts";
import type { MachineReport } from "../../runtime/detect/machine-report.ts";
import { devicesOfReport } from "./find-devices.ts";

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
  it("reads a fleet, and throws at a strategy that is none (PLN008)", () => {
    expect(
      parseFleetState('{"devices":[{"name":"a","memoryBytes":8}],"requests":[]}'),
    ).toMatchObject({ value: { devices: [{ name: "a" }] } });
    const none = "zz" as StrategyName;
    for (const call of [() => makeStrategy(none), () => simulateDispatch([], [], none)]) {
      expect(call).toThrow(WavetileError);
      expect(call).toThrow("PLN008");
    }
    expect(makeStrategy("priority").name).toBe("priority");
  });
  it("chooses a kernel", () => {
    const problem = {
      kind: "gemm",
      rows: 4096,
      columns: 4096,
      depth: 4096,
      batch: 1,
      type: "bf16",
    };
    expect(configureKernel(problem as KernelProblem, targets.get("h200")!)).toMatchObject({
      ok: true,
      value: { target: "h200" },
    });
  });
  it("names the GPUs of this machine that no target describes (PLN002)", async () => {
    const report = await detect();
    if (!report.ok) throw new Error("not detected");
    const seen = { vendor: "NVIDIA", seenBy: "cuda", index: 0 } as const;
    const pcie = { ...seen, name: "NVIDIA A100 80GB PCIe", architecture: "sm_80" };
    const known = { ...seen, name: "NVIDIA H200", architecture: "sm_90a", target: "h200" };
    const warning = {
      code: "PLN002",
      severity: "warning",
      message: "NVIDIA A100 80GB PCIe is left out: no target has its name and memory",
      help: expect.stringContaining("targets show a100-40gb --json"),
    };
    const of = (...gpus: MachineReport["gpus"]) => devicesOfReport({ ...report.value, gpus });
    expect(of(pcie, known)).toMatchObject({ value: [{ name: "h200" }], warnings: [warning] });
    expect(of(pcie)).toMatchObject({ value: [{ kind: "cpu" }], warnings: [warning] });
    expect(of(known)).toMatchObject({ value: [{ name: "h200" }], warnings: [] });
  });
  it("plans for this machine", async () => {
    const report = await detect();
    if (!report.ok) throw new Error("not detected");
    const here = await findDevices(["auto"]);
    expect(here).toMatchObject({ ok: true });
  });
});
