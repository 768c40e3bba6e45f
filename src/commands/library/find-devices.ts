/**
 * The devices of a plan: names of targets or paths of target files, each with a count (`h100:4`), or
 * `auto` for what is in this machine: detected memory goes before the data sheet's.
 */
import { deviceOfTarget, type PlanDevice } from "../../plan/device.ts";
import { detectMachine } from "../../runtime/detect/detect-machine.ts";
import type { DetectedGpu, MachineReport } from "../../runtime/detect/machine-report.ts";
import { nodeProbe } from "../../runtime/detect/node-probe.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { predicted } from "../../target/figure.ts";
import { targets } from "../../target/index.ts";
import { findMachine } from "./find-machine.ts";

const mostDevices = 1024;

export async function findDevices(
  names: readonly string[],
): Promise<Result<readonly PlanDevice[]>> {
  const devices: PlanDevice[] = [];
  const warnings: Diagnostic[] = [];
  for (const name of names) {
    const found = name === "auto" ? devicesHere() : devicesNamed(name);
    if (!found.ok) return found;
    devices.push(...found.value);
    warnings.push(...found.warnings);
  }
  return ok(numbered(devices), warnings);
}

function devicesNamed(text: string): Result<readonly PlanDevice[]> {
  const [, name = text, times = "1"] = /^(.+?):(\d{1,9})$/.exec(text) ?? [];
  const count = Number(times);
  if (count < 1 || count > mostDevices) {
    return fail(
      diagnostic("CLI001", `${text} asks for ${count} devices, not 1 to ${mostDevices}`, {
        at: "--device",
        help: "write NAME or NAME:COUNT",
      }),
    );
  }
  const target = findMachine(name);
  if (!target.ok) return target;
  const device = deviceOfTarget(target.value);
  return device.ok ? ok(Array.from({ length: count }, () => device.value)) : device;
}

function devicesHere(): Result<readonly PlanDevice[]> {
  const report = detectMachine(nodeProbe);
  return report.ok ? devicesOfReport(report.value) : report;
}

/** GPUs with a data sheet, or the CPU where there are none; those without one are named. */
export function devicesOfReport(report: MachineReport): Result<readonly PlanDevice[]> {
  const gpus: PlanDevice[] = [];
  for (const { target, memoryBytes } of report.gpus) {
    if (target === undefined) continue;
    const device = deviceOfTarget(targets.get(target)!, memoryBytes ? { memoryBytes } : {});
    if (!device.ok) return device;
    gpus.push(device.value);
  }
  const unknown = report.gpus.filter((g) => g.target === undefined).map(noDataSheet);
  const found = gpus.length > 0 ? ok(gpus) : cpuHere(report);
  return found.ok ? ok(found.value, unknown) : found;
}

function noDataSheet({ name, architecture }: DetectedGpu): Diagnostic {
  const near = [...targets.values()].find(
    ({ machine }) => machine?.kind === "gpu" && machine.architecture.name === architecture,
  );
  return diagnostic("PLN002", `${name} is left out: no target has its name and memory`, {
    severity: "warning",
    at: "auto",
    help: `describe it in a target file, beginning with wavetile targets show ${near?.name ?? "h200"} --json, and give that as --device`,
  });
}

/** GB/s that one core reads, and how many cores it takes to use all channels of a small server. */
const gbPerCore = 33;
const coresThatSaturate = 4;

function cpuHere({ cpu, memory, limits, threads }: MachineReport): Result<readonly PlanDevice[]> {
  const memoryBytes = limits.memoryBytes ?? memory.totalBytes;
  if (!memoryBytes) {
    return fail(
      diagnostic("PLN002", "the size of this machine's memory is not known", {
        help: "name a target with --device instead of auto",
      }),
    );
  }
  const wide = cpu.extensions.includes("avx512f");
  const base = targets.get(wide ? "x86-64-v4" : "x86-64-v3")!;
  const cores = Math.min(threads.threads, coresThatSaturate);
  const memoryBytesPerNs = predicted(
    gbPerCore * cores,
    `${cores} cores x ${gbPerCore} GB/s, measured on one Zen 5 core; this memory was not measured`,
  );
  const device = deviceOfTarget(base, { memoryBytes, memoryBytesPerNs });
  if (!device.ok) return device;
  const f32 = predicted(
    base.f32FlopsPerNsPerCore.value * threads.threads,
    `${threads.threads} cores x ${base.f32FlopsPerNsPerCore.source}`,
  );
  return ok([{ ...device.value, name: cpu.model, flopsPerNs: { f32 }, features: cpu.extensions }]);
}

/** Devices of one kind get numbers, so that a plan can name each. */
function numbered(devices: readonly PlanDevice[]): readonly PlanDevice[] {
  const totals = new Map<string, number>();
  for (const { name } of devices) totals.set(name, (totals.get(name) ?? 0) + 1);
  const seen = new Map<string, number>();
  return devices.map((device) => {
    if (totals.get(device.name) === 1) return device;
    const at = seen.get(device.name) ?? 0;
    seen.set(device.name, at + 1);
    return { ...device, name: `${device.name}#${at}`, ordinal: at };
  });
}
