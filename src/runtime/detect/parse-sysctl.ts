/**
 * `sysctl -a` of macOS: cores by kind (`hw.perflevel0` is the fastest, sysctl.h), caches of the fast
 * kind, memory.
 */
import { type DetectedCache, type DetectedCpu, detected } from "./machine-report.ts";
import { leadingInteger, parseFields } from "./parse-fields.ts";

const source = "sysctl";

export interface ParsedMac {
  readonly cpu: DetectedCpu;
  readonly memoryBytes?: number;
}

/** Undefined when the text has no count of CPUs. */
export function parseSysctl(text: string): ParsedMac | undefined {
  const fields = parseFields(text);
  const number = (key: string): number | undefined => leadingInteger(fields.get(key));
  const logical = number("hw.logicalcpu") ?? number("hw.ncpu");
  if (logical === undefined || logical < 1) return undefined;
  const levels = [0, 1, 2, 3].flatMap((i) => number(`hw.perflevel${i}.physicalcpu`) ?? []);
  const summed = levels.reduce((a, b) => a + b, 0);
  const cores = number("hw.physicalcpu") ?? (summed > 0 ? summed : logical);
  const model = fields.get("machdep.cpu.brand_string") ?? "unknown";
  const apple = /^Apple/.test(model) || levels.length > 0 || number("hw.optional.arm64") === 1;
  const memoryBytes = number("hw.memsize");
  return {
    cpu: {
      model,
      vendor: apple ? "Apple" : "Intel",
      instructionSet: apple ? "aarch64" : "x86-64",
      extensions: apple ? ["neon", "dotprod", "fp16"] : macExtensions(fields),
      logicalCpus: detected(logical, source),
      cores: detected(cores, source),
      sockets: detected(number("hw.packages") ?? 1, source),
      threadsPerCore: detected(Math.max(1, Math.round(logical / cores)), source),
      ...(levels.length > 1 && { performanceCores: detected(levels[0]!, source) }),
      caches: macCaches(number),
    },
    ...(memoryBytes !== undefined && { memoryBytes }),
  };
}

function macExtensions(fields: ReadonlyMap<string, string>): readonly string[] {
  const flags = `${fields.get("machdep.cpu.features") ?? ""} ${fields.get("machdep.cpu.leaf7_features") ?? ""}`;
  const names: Readonly<Record<string, string>> = {
    "SSE4.2": "sse4.2",
    "AVX1.0": "avx",
    AVX2: "avx2",
    FMA: "fma",
    F16C: "f16c",
    BMI1: "bmi1",
    BMI2: "bmi2",
    MOVBE: "movbe",
    AVX512F: "avx512f",
    AVX512BW: "avx512bw",
    AVX512CD: "avx512cd",
    AVX512DQ: "avx512dq",
    AVX512VL: "avx512vl",
  };
  return flags.split(/\s+/).flatMap((f) => names[f] ?? []);
}

function macCaches(number: (key: string) => number | undefined): readonly DetectedCache[] {
  const read = (level: number, key: string): DetectedCache[] => {
    const bytes = number(`hw.perflevel0.${key}`) ?? number(`hw.${key}`);
    if (bytes === undefined || bytes === 0) return [];
    const sharedBy = level === 2 ? number("hw.perflevel0.cpusperl2") : undefined;
    const kind = level === 1 ? "data" : "unified";
    return [{ level, kind, bytes: detected(bytes, source), ...(sharedBy && { sharedBy }) }];
  };
  return [...read(1, "l1dcachesize"), ...read(2, "l2cachesize"), ...read(3, "l3cachesize")];
}
