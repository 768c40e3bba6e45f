/**
 * What CPUID says about the processor that this process runs on: names, extensions, caches, threads. An
 * extension counts only where the system saves its registers (XCR0).
 */
import type { Leaf } from "../native/cpuid.ts";
import { type CpuidLeaves, leafKey } from "./cpuid-leaves.ts";
import { type DetectedCache, detected } from "./machine-report.ts";

export interface CpuidFacts {
  readonly vendor: string;
  readonly model: string;
  readonly family: number;
  readonly modelNumber: number;
  readonly stepping: number;
  readonly extensions: readonly string[];
  readonly caches: readonly DetectedCache[];
  /** Absent where the leaf of the topology is. */
  readonly threadsPerCore?: number;
  /** A hypervisor answers in the processor's place. */
  readonly virtual: boolean;
}

const source = "cpuid";
const [eax, ebx, ecx, edx] = [0, 1, 2, 3] as const;

/** Registers that must be saved: none beyond SSE's, AVX's, AVX-512's, AMX's. */
const saved = { none: 0, avx: 0b110, avx512: 0b11100110, amx: (1 << 17) | (1 << 18) } as const;

interface Bit {
  readonly name: string;
  readonly leaf: string;
  readonly register: 0 | 1 | 2 | 3;
  readonly bit: number;
  readonly states: keyof typeof saved;
}

type Row = readonly [name: string, register: Bit["register"], bit: number, Bit["states"]];

function bits(leaf: string, rows: readonly Row[]): readonly Bit[] {
  return rows.map(([name, register, bit, states]) => ({ name, leaf, register, bit, states }));
}

/** Names as targets spell them; bits from Intel SDM volume 2A (CPUID), lzcnt from AMD APM volume 3. */
const extensionBits: readonly Bit[] = [
  ...bits(leafKey(1), [
    ["fma", ecx, 12, "avx"],
    ["sse4.2", ecx, 20, "none"],
    ["movbe", ecx, 22, "none"],
    ["avx", ecx, 28, "avx"],
    ["f16c", ecx, 29, "avx"],
  ]),
  ...bits(leafKey(0x80000001), [["lzcnt", ecx, 5, "none"]]),
  ...bits(leafKey(7), [
    ["bmi1", ebx, 3, "none"],
    ["avx2", ebx, 5, "avx"],
    ["bmi2", ebx, 8, "none"],
    ["avx512f", ebx, 16, "avx512"],
    ["avx512dq", ebx, 17, "avx512"],
    ["avx512cd", ebx, 28, "avx512"],
    ["avx512bw", ebx, 30, "avx512"],
    ["avx512vl", ebx, 31, "avx512"],
    ["avx512-vnni", ecx, 11, "avx512"],
    ["amx-bf16", edx, 22, "amx"],
    ["avx512-fp16", edx, 23, "avx512"],
    ["amx-tile", edx, 24, "amx"],
    ["amx-int8", edx, 25, "amx"],
  ]),
  ...bits(leafKey(7, 1), [
    ["avx-vnni", eax, 4, "avx"],
    ["avx512-bf16", eax, 5, "avx512"],
  ]),
];

const vendors: Readonly<Record<string, string>> = { GenuineIntel: "Intel", AuthenticAMD: "AMD" };

export function decodeCpuid({ leaves, savedStates }: CpuidLeaves): CpuidFacts {
  const read = (leaf: number, subleaf = 0): Leaf | undefined => leaves[leafKey(leaf, subleaf)];
  const [, b, c, d] = read(0) ?? [0, 0, 0, 0];
  const vendor = textOf([b, d, c]);
  const brand = [2, 3, 4].flatMap((i) => read(0x80000000 + i) ?? []);
  const threadsPerCore = threadsOf(read);
  const has = ({ leaf, register, bit, states }: Bit): boolean =>
    (((leaves[leaf]?.[register] ?? 0) >>> bit) & 1) === 1 &&
    (savedStates & saved[states]) === saved[states];
  return {
    vendor: vendors[vendor] ?? (vendor || "unknown"),
    model: textOf(brand) || "unknown",
    ...versionOf(read(1)?.[eax] ?? 0),
    extensions: extensionBits.filter(has).map((e) => e.name),
    caches: cachesOf(read),
    ...(threadsPerCore !== undefined && { threadsPerCore }),
    virtual: (((read(1)?.[ecx] ?? 0) >>> 31) & 1) === 1,
  };
}

type Read = (leaf: number, subleaf?: number) => Leaf | undefined;

function textOf(words: readonly number[]): string {
  const bytes = new Uint8Array(Uint32Array.from(words).buffer);
  const end = bytes.indexOf(0);
  return String.fromCharCode(...(end < 0 ? bytes : bytes.subarray(0, end)))
    .replace(/\s+/g, " ")
    .trim();
}

/** Family and model with their extensions (SDM: "Version Information Returned by CPUID in EAX"). */
function versionOf(word: number): Pick<CpuidFacts, "family" | "modelNumber" | "stepping"> {
  const family = (word >>> 8) & 15;
  const wide = family === 15 || family === 6;
  return {
    family: family === 15 ? family + ((word >>> 20) & 255) : family,
    modelNumber: ((word >>> 4) & 15) | (wide ? ((word >>> 16) & 15) << 4 : 0),
    stepping: word & 15,
  };
}

/** Leaf 0xB, level of threads (1); on older AMD processors leaf 0x8000001E. */
function threadsOf(read: Read): number | undefined {
  const level = read(0xb);
  if (level && ((level[ecx] >>> 8) & 255) === 1 && (level[ebx] & 0xffff) > 0) {
    return level[ebx] & 0xffff;
  }
  const unit = read(0x8000001e);
  return unit && ((unit[ebx] >>> 8) & 255) + 1;
}

/** Leaf 4, or AMD's leaf of the same form. Instruction caches are left out. */
function cachesOf(read: Read): readonly DetectedCache[] {
  const table = read(4)?.[eax] ? 4 : 0x8000001d;
  const caches: DetectedCache[] = [];
  for (let i = 0; ; i++) {
    const leaf = read(table, i);
    const type = leaf ? leaf[eax] & 31 : 0;
    if (!leaf || type === 0) return caches.sort((a, b) => a.level - b.level);
    if (type === 2) continue;
    const [ways, partitions] = [(leaf[ebx] >>> 22) + 1, ((leaf[ebx] >>> 12) & 1023) + 1];
    const line = (leaf[ebx] & 4095) + 1;
    caches.push({
      level: (leaf[eax] >>> 5) & 7,
      kind: type === 1 ? "data" : "unified",
      bytes: detected(ways * partitions * line * (leaf[ecx] + 1), source),
      sharedBy: ((leaf[eax] >>> 14) & 4095) + 1,
    });
  }
}
