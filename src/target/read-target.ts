/**
 * A target file: JSON with a name, a summary and the machine (machine.ts), read into a Target. The
 * built-in machines hold the same values, so `wavetile targets show h200 --json` prints (as `file`) a
 * file that can be edited and read back. Faults: TGT001 no JSON, TGT002 keys, TGT003 numbers, TGT004
 * figures that contradict each other (check-machine.ts).
 */
import { diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { architectures } from "./architectures/index.ts";
import { contradictions } from "./check-machine.ts";
import { parseComputeCapability } from "./compute-capability.ts";
import type { Extent } from "./figure.ts";
import { extents } from "./figure.ts";
import {
  FileReader,
  figureOf,
  flag,
  type Limits,
  listOf,
  numberIn,
  objectOf,
  oneOf,
  optional,
  type Read,
  type Rules,
  required,
  text,
} from "./file-reader.ts";
import {
  type Cache,
  type CpuMachine,
  type GpuArchitecture,
  type GpuMachine,
  gpuFeatures,
  type Link,
  linkKinds,
  type Machine,
  type MatrixExtension,
  type MatrixInstruction,
  numberTypes,
} from "./machine.ts";
import { type MachineFile, targetOfMachine } from "./machine-target.ts";
import type { Target } from "./target.ts";

const count = (most: number): Limits => ({ integer: true, least: 1, most });
const bytes: Limits = { integer: true, least: 1, most: 2 ** 50 };
const rate: Limits = { least: 1e-3, most: 1e9 };
const clock: Limits = { least: 1, most: 20_000 };

const linkRules: Rules<Link> = {
  kind: required(oneOf(linkKinds)),
  generation: optional(text),
  bytesPerNsEachWay: required(figureOf("device", rate)),
  joins: optional(figureOf("link", { ...count(2 ** 20), least: 2 })),
};

const teraops = optional(figureOf("device", rate));
const teraopsRules = {
  f64: teraops,
  f32: teraops,
  tf32: teraops,
  bf16: teraops,
  f16: teraops,
  fp8: teraops,
  fp6: teraops,
  fp4: teraops,
  int8: teraops,
  int4: teraops,
} as const;

const matrixExtents = listOf(numberIn(count(1024)), 1);
const instructionRules: Rules<MatrixInstruction> = {
  name: required(text),
  operands: required(oneOf(numberTypes)),
  accumulators: required(listOf(oneOf(["f64", "f32", "f16", "int32"] as const), 1)),
  m: required(matrixExtents),
  n: required(matrixExtents),
  k: required(matrixExtents),
  source: required(text),
};

const computeCapability: Read<string> = (reader, value, path) => {
  if (typeof value === "string" && parseComputeCapability(value)) return value;
  const found = `${JSON.stringify(value)} is no compute capability`;
  return reader.fault("key", path, found, 'write it as text: "9.0"');
};

const architectureRules: Rules<GpuArchitecture> = {
  name: required(text),
  computeCapability: optional(computeCapability),
  ptxTarget: optional(text),
  ptxVersion: optional(text),
  warpThreads: required(numberIn(count(128))),
  threadsPerBlock: required(figureOf("block", count(4096))),
  threadsPerSm: required(figureOf("sm", count(16384))),
  blocksPerSm: required(figureOf("sm", count(1024))),
  registersPerThread: required(figureOf("thread", count(4096))),
  registersPerBlock: required(figureOf("block", count(2 ** 24))),
  registersPerSm: required(figureOf("sm", count(2 ** 24))),
  sharedBytesPerBlock: required(figureOf("block", bytes)),
  sharedBytesPerBlockDefault: required(figureOf("block", bytes)),
  sharedBytesReservedPerBlock: required(figureOf("block", { ...bytes, least: 0 })),
  sharedBytesPerSm: required(figureOf("sm", bytes)),
  blocksPerCluster: optional(figureOf("cluster", count(1024))),
  sharedBytesPerCluster: optional(figureOf("cluster", bytes)),
  tensorMemoryBytesPerSm: optional(figureOf("sm", bytes)),
  f32LanesPerSm: required(figureOf("sm", count(4096))),
  warpInstructionsPerCycle: required(figureOf("sm", count(64))),
  sharedBytesPerCycle: required(figureOf("sm", count(4096))),
  l2BytesPerCycle: required(figureOf("sm", { least: 0.1, most: 4096 })),
  features: required(listOf(oneOf(gpuFeatures))),
  matrixInstructions: required(listOf(objectOf(instructionRules))),
};

const architecture: Read<GpuArchitecture> = (reader, value, path) => {
  if (typeof value !== "string") return reader.record(value, path, architectureRules);
  const known = architectures.get(value);
  if (known) return known;
  const help = `use one of ${[...architectures.keys()].join(", ")}, or describe it as an object`;
  return reader.fault("key", path, `${JSON.stringify(value)} is not known`, help);
};

const gpuRules: Rules<GpuMachine> = {
  kind: required(oneOf(["gpu"] as const)),
  vendor: required(text),
  driverNames: optional(listOf(text)),
  architecture: required(architecture),
  multiprocessors: required(figureOf("device", count(65536))),
  boostMhz: required(figureOf("device", clock)),
  memoryKind: required(text),
  unifiedMemory: required(flag),
  memoryBytes: required(figureOf("device", bytes)),
  memoryBytesPerNs: required(figureOf("device", rate)),
  l2Bytes: required(figureOf("device", bytes)),
  vectorTeraops: required(objectOf({ ...teraopsRules, f32: required(figureOf("device", rate)) })),
  matrixTeraops: required(objectOf(teraopsRules)),
  links: required(listOf(objectOf(linkRules))),
};

const cacheBytes: Read<Cache["bytes"]> = (reader, value, path) => {
  const stated = (value as { readonly per?: unknown } | null)?.per;
  const per: Extent = extents.find((e) => e === stated) ?? "core";
  return figureOf(per, bytes)(reader, value, path);
};

const cacheRules: Rules<Cache> = {
  level: required(numberIn(count(4))),
  kind: required(oneOf(["data", "unified"] as const)),
  bytes: required(cacheBytes),
};

const extensionRules: Rules<MatrixExtension> = {
  name: required(text),
  operands: required(oneOf(numberTypes)),
  operationsPerCycle: required(figureOf("core", count(2 ** 20))),
};

const cpuRules: Rules<CpuMachine> = {
  kind: required(oneOf(["cpu"] as const)),
  vendor: required(text),
  instructionSet: required(oneOf(["x86-64", "aarch64"] as const)),
  extensions: required(listOf(text)),
  vectorBits: required(figureOf("core", { integer: true, least: 64, most: 2048 })),
  vectorRegisters: required(figureOf("core", count(1024))),
  fmaPerCycle: required(figureOf("core", { least: 0.25, most: 64 })),
  fmaLatencyCycles: required(figureOf("core", count(100))),
  loadBytesPerCycle: required(figureOf("core", count(4096))),
  clockMhz: required(figureOf("core", clock)),
  matrixExtensions: required(listOf(objectOf(extensionRules))),
  caches: required(listOf(objectOf(cacheRules), 1)),
  cores: optional(figureOf("socket", count(4096))),
  memoryKind: optional(text),
  memoryBytes: optional(figureOf("socket", bytes)),
  memoryBytesPerNs: optional(figureOf("socket", rate)),
  links: required(listOf(objectOf(linkRules))),
};

const machine: Read<Machine> = (reader, value, path) => {
  const kind = (value as { readonly kind?: unknown } | null)?.kind;
  if (kind === "gpu") return reader.record(value, path, gpuRules);
  if (kind === "cpu") return reader.record(value, path, cpuRules);
  const found = `${JSON.stringify(kind)} is not known`;
  return reader.fault("key", `${path}.kind`, found, 'write "gpu" or "cpu"');
};

const fileRules: Rules<MachineFile> = {
  name: required(text),
  summary: required(text),
  emitter: optional(oneOf(["x64", "ptx", "wgsl"] as const)),
  machine: required(machine),
};

/** A target from the value of a target file. */
export function readTarget(value: unknown): Result<Target> {
  const reader = new FileReader({ key: "TGT002", number: "TGT003" });
  const file = reader.record(value, "", fileRules);
  if (!file) return fail(...reader.faults);
  const faults = contradictions(file.machine);
  return faults.length > 0 ? fail(...faults) : ok(targetOfMachine(file));
}

/** A target from the text of a target file. */
export function parseTarget(json: string): Result<Target> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return fail(
      diagnostic("TGT001", `a target file is JSON, and this is not: ${error.message}`, {
        help: "start from `wavetile targets show h200 --json` (its data.file)",
      }),
    );
  }
  return readTarget(value);
}
