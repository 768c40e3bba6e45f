/** This machine as a table: each figure with the file, command or driver call it was read from. */
import { parseCapture, recordProbe, replayProbe } from "../../runtime/detect/capture.ts";
import { detectMachine, type Probe } from "../../runtime/detect/detect-machine.ts";
import type { DetectedGpu, MachineReport } from "../../runtime/detect/machine-report.ts";
import { nodeProbe } from "../../runtime/detect/node-probe.ts";
import { writeAtomically } from "../../runtime/files/files.ts";
import { readWhole } from "../../runtime/files/plain-file.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import type { Sourced } from "../../target/figure.ts";
import type { Action } from "../command.ts";
import { formatBytes } from "./format.ts";
import { printTable } from "./table.ts";

export interface DetectArgs {
  readonly capture?: string | undefined;
  readonly replay?: string | undefined;
}

export const detectAction: Action<DetectArgs> = async ({ capture, replay }) => {
  const asked = replay === undefined ? ok(nodeProbe) : probeOfFile(replay);
  if (!asked.ok) return asked;
  const recorded = recordProbe(asked.value);
  const report = detectMachine(recorded.probe);
  if (!report.ok) return report;
  if (capture !== undefined) {
    const written = writeAtomically(capture, `${JSON.stringify(recorded.capture(), null, 1)}\n`);
    if (!written.ok) return written;
  }
  return ok({ data: { ...report.value }, text: describe(report.value) });
};

function probeOfFile(path: string): Result<Probe> {
  const bytes = readWhole(path);
  if (!bytes.ok) return bytes;
  const capture = parseCapture(new TextDecoder().decode(bytes.value), path);
  return capture.ok ? ok(replayProbe(capture.value)) : capture;
}

type Row = readonly [what: string, value: string, source: string];

function describe(report: MachineReport): string {
  const { cpu, threads, notes } = report;
  const rows: readonly Row[] = [
    ...processorRows(report),
    ...cpuidRows(report),
    ...memoryRows(report),
    ["threads to use", String(threads.threads), threads.reason],
    ...report.gpus.flatMap(gpuRows),
  ];
  return [
    `${cpu.model} (${cpu.vendor}, ${cpu.instructionSet})`,
    `extensions: ${cpu.extensions.join(", ") || "none known"}`,
    "",
    printTable(["what", "value", "read from"], rows, [1]),
    ...notes.map((note) => `note: ${note}`),
  ].join("\n");
}

function row(
  what: string,
  figure: Sourced | undefined,
  print: (value: number) => string = String,
): readonly Row[] {
  return figure ? [[what, print(figure.value), figure.source]] : [];
}

function processorRows({ cpu, limits }: MachineReport): readonly Row[] {
  return [
    ...row("cores", cpu.cores),
    ...row("fast cores", cpu.performanceCores),
    ...row("logical CPUs", cpu.logicalCpus),
    ...row("threads a core", cpu.threadsPerCore),
    ...row("sockets", cpu.sockets),
    ...row("NUMA nodes", cpu.numaNodes),
    ...cpu.caches.flatMap((c) => row(`L${c.level} ${c.kind}`, c.bytes, formatBytes)),
    ...row("CPUs allowed", limits.allowedCpus),
    ...row("quota of cores", limits.cores),
  ];
}

function cpuidRows({ cpu: { cpuid } }: MachineReport): readonly Row[] {
  if (!cpuid) return [];
  const { family, modelNumber, stepping, agreed, onlyCpuid, onlySystem } = cpuid;
  const differ = onlyCpuid.length + onlySystem.length;
  const verdict = differ > 0 ? `, ${differ} that only one lists` : " by both";
  return [
    ["processor", `${family}/${modelNumber}/${stepping}`, "cpuid: family, model, stepping"],
    ["extensions", String(agreed), `the system and cpuid: known ones listed${verdict}`],
  ];
}

function memoryRows({ memory, limits }: MachineReport): readonly Row[] {
  return [
    ...row("memory", memory.totalBytes, formatBytes),
    ...row("memory available", memory.availableBytes, formatBytes),
    ...row("memory allowed", limits.memoryBytes, formatBytes),
  ];
}

function gpuRows(gpu: DetectedGpu): readonly Row[] {
  const name = `GPU ${gpu.index}`;
  const capability = gpu.computeCapability ?? gpu.architecture;
  return [
    [name, gpu.name, gpu.seenBy],
    ...(capability ? [[`${name} capability`, capability, gpu.seenBy] as const] : []),
    ...row(`${name} memory`, gpu.memoryBytes, formatBytes),
    ...row(`${name} free`, gpu.freeBytes, formatBytes),
    ...row(`${name} multiprocessors`, gpu.multiprocessors),
    ...row(`${name} clock MHz`, gpu.clockMhz),
    ...row(`${name} L2`, gpu.l2Bytes, formatBytes),
    ...row(`${name} shared, block`, gpu.sharedBytesPerBlock, formatBytes),
    ...row(`${name} shared, SM`, gpu.sharedBytesPerSm, formatBytes),
    [`${name} target`, gpu.target ?? "none", "driver name and memory"],
  ];
}
