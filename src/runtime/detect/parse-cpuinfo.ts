/**
 * /proc/cpuinfo of Linux: x86-64 and Arm. Cores and threads come from `physical id`, `core id`,
 * `siblings` and `cpu cores` (kernel documentation, cputopology; arch/x86/kernel/cpu/proc.c); Arm
 * shows neither, so there each processor counts as a core.
 */

import { type DetectedCpu, detected } from "./machine-report.ts";
import { leadingInteger, leadingNumber, parseFields } from "./parse-fields.ts";

const source = "/proc/cpuinfo";

/** Kernel flags that targets name otherwise, or that stand for a target's extension. */
const renamed: Readonly<Record<string, string>> = {
  sse4_2: "sse4.2",
  avx_vnni: "avx-vnni",
  avx512_vnni: "avx512-vnni",
  avx512_bf16: "avx512-bf16",
  avx512_fp16: "avx512-fp16",
  amx_tile: "amx-tile",
  amx_int8: "amx-int8",
  amx_bf16: "amx-bf16",
  abm: "lzcnt",
  asimd: "neon",
  asimddp: "dotprod",
  asimdhp: "fp16",
};
const kept = new Set(
  "avx avx2 fma f16c bmi1 bmi2 movbe avx512f avx512bw avx512cd avx512dq avx512vl sve sve2 i8mm bf16 sme".split(
    " ",
  ),
);

/** Arm's part numbers (MIDR): Arm Neoverse, by the Technical Reference Manuals. */
const armParts: Readonly<Record<string, string>> = {
  "0xd0c": "Arm Neoverse N1",
  "0xd40": "Arm Neoverse V1",
  "0xd49": "Arm Neoverse N2",
  "0xd4f": "Arm Neoverse V2",
  "0xd83": "Arm Neoverse V3AE",
  "0xd84": "Arm Neoverse V3",
};

export type ParsedCpu = Omit<DetectedCpu, "caches" | "numaNodes">;

/** Undefined when the text describes no processor. */
export function parseCpuinfo(text: string): ParsedCpu | undefined {
  const blocks = processorBlocks(text);
  const first = blocks[0];
  if (!first) return undefined;
  const flags = (first.get("flags") ?? first.get("Features") ?? "").split(/\s+/);
  const extensions = flags.flatMap((f) => renamed[f] ?? (kept.has(f) ? f : []));
  const clock = leadingNumber(first.get("cpu MHz"));
  return {
    model: modelOf(first),
    vendor: vendorOf(first),
    instructionSet: setOf(first, flags),
    extensions: [...new Set(extensions)],
    ...countCores(blocks),
    ...(clock !== undefined && clock > 0 && { clockMhz: detected(clock, source) }),
  };
}

type Fields = ReadonlyMap<string, string>;

function processorBlocks(text: string): readonly Fields[] {
  return text
    .split(/\n\s*\n/)
    .map((block) => parseFields(block))
    .filter((fields) => fields.has("processor"));
}

/** Each logical CPU's core, by socket and number; a CPU whose core is not told is one of its own. */
export function coresOfCpus(text: string): ReadonlyMap<number, string> {
  const cores = new Map<number, string>();
  for (const block of processorBlocks(text)) {
    const cpu = leadingInteger(block.get("processor"));
    const core = block.get("core id") ?? `of CPU ${cpu}`;
    if (cpu !== undefined) cores.set(cpu, `${block.get("physical id") ?? "0"}: ${core}`);
  }
  return cores;
}

function modelOf(fields: Fields): string {
  const part = fields.get("CPU part")?.toLowerCase();
  const arm = part && fields.get("CPU implementer") === "0x41" ? armParts[part] : undefined;
  return fields.get("model name") ?? arm ?? (part ? `Arm part ${part}` : "unknown");
}

function vendorOf(fields: Fields): string {
  const id = fields.get("vendor_id") ?? "";
  const known: Readonly<Record<string, string>> = { GenuineIntel: "Intel", AuthenticAMD: "AMD" };
  if (known[id]) return known[id];
  return fields.get("CPU implementer") === "0x41" ? "Arm" : id || "unknown";
}

function setOf(fields: Fields, flags: readonly string[]): DetectedCpu["instructionSet"] {
  if (flags.includes("lm") && fields.has("vendor_id")) return "x86-64";
  const version = leadingInteger(fields.get("CPU architecture")) ?? 0;
  return version >= 8 && flags.includes("asimd") ? "aarch64" : "other";
}

type Counts = Pick<DetectedCpu, "logicalCpus" | "cores" | "sockets" | "threadsPerCore">;

/** The processors listed; where only a part was captured, `siblings` says how many there are. */
function countCores(blocks: readonly Fields[]): Counts {
  const sockets = new Map<string, Fields>();
  for (const block of blocks) {
    const id = block.get("physical id") ?? "0";
    if (!sockets.has(id)) sockets.set(id, block);
  }
  let logical = 0;
  let cores = 0;
  for (const [id, block] of sockets) {
    const own = blocks.filter((b) => (b.get("physical id") ?? "0") === id);
    const siblings = leadingInteger(block.get("siblings")) ?? own.length;
    const listed = new Set(own.map((b, i) => b.get("core id") ?? `cpu ${i}`)).size;
    logical += Math.max(siblings, own.length);
    cores += leadingInteger(block.get("cpu cores")) ?? listed;
  }
  cores = Math.max(1, Math.min(cores, logical));
  return {
    logicalCpus: detected(logical, source),
    cores: detected(cores, source),
    sockets: detected(sockets.size, source),
    threadsPerCore: detected(Math.max(1, Math.round(logical / cores)), source),
  };
}
