/**
 * Which x86-64 targets this machine runs, those of named machines among them, by what their programs use:
 * the processor is asked (CPUID), the operating system for the vector registers that it saves (XCR0), and
 * one page is made executable and called, because a host may forbid that.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { targets } from "../../target/index.ts";
import type { Target } from "../../target/target.ts";
import { dotsOfBrains, dotsOfBytes, wideVectors } from "../../target/x64-capabilities.ts";
import { openNativeSystem } from "../ffi/koffi-system.ts";
import type { NativeSystem } from "../ffi/native-system.ts";
import { type Cpuid, withCpuid } from "./cpuid.ts";

export interface NativeFeatures {
  readonly system: NativeSystem;
  /** Names of targets whose programs run here, best first. */
  readonly targets: readonly string[];
}

let probed: Result<NativeFeatures> | undefined;

/** Asked once a process. */
export function probeNativeFeatures(): Result<NativeFeatures> {
  if (!probed) {
    const opened = openNativeSystem();
    probed = opened.ok ? probeSystem(opened.value) : opened;
  }
  return probed;
}

interface Requirement {
  readonly leaf: number;
  readonly subleaf?: number;
  /** Number of the output register: eax, ebx, ecx, edx. */
  readonly register: number;
  readonly bits: readonly number[];
}

/** OSXSAVE, FMA, AVX, F16C; AVX2, BMI2 (Intel SDM, CPUID). */
const avx2: readonly Requirement[] = [
  { leaf: 1, register: 2, bits: [12, 27, 28, 29] },
  { leaf: 7, register: 1, bits: [5, 8] },
];
/** AVX-512 F, DQ, BW, VL. */
const avx512: readonly Requirement[] = [{ leaf: 7, register: 1, bits: [16, 17, 30, 31] }];
/** AVX512_VNNI. */
const vnni: readonly Requirement[] = [{ leaf: 7, register: 2, bits: [11] }];
/** AVX512_BF16. */
const brain: readonly Requirement[] = [{ leaf: 7, subleaf: 1, register: 0, bits: [5] }];
/** Lanes of the widest dot products. */
const widest = 16;
/** Registers that the operating system saves: xmm and ymm; opmasks and all of zmm. */
const [savesVectors, savesWide] = [0b110, 0b11100110];

export function probeSystem(system: NativeSystem): Result<NativeFeatures> {
  const targets = withCpuid(system, targetsOf);
  if (!targets.ok) return targets;
  if (targets.value.length === 0) return fail(oldProcessor());
  return ok({ system, targets: targets.value });
}

function targetsOf({ ask, savedStates }: Cpuid): readonly string[] {
  const [highest] = ask(0);
  const answers = ({ leaf, subleaf = 0 }: Requirement): boolean =>
    leaf <= highest && (subleaf === 0 || subleaf <= ask(leaf)[0]);
  const has = (asked: Requirement): boolean =>
    answers(asked) &&
    asked.bits.every(
      (bit) => ((ask(asked.leaf, asked.subleaf)[asked.register]! >>> bit) & 1) === 1,
    );
  if (!avx2.every(has) || (savedStates & savesVectors) !== savesVectors) return [];
  const isWide = avx512.every(has) && (savedStates & savesWide) === savesWide;
  const demands = [
    { asks: wideVectors, met: isWide },
    { asks: dotsOfBytes(widest), met: isWide && vnni.every(has) },
    { asks: dotsOfBrains(widest), met: isWide && brain.every(has) },
  ];
  const asked = (target: Target) => demands.filter((d) => target.capabilities.has(d.asks));
  // What asks for most is the best; of those alike the general one stands first in the table.
  return [...targets.values()]
    .filter((t) => t.emitter === "x64" && asked(t).every((d) => d.met))
    .sort((a, b) => asked(b).length - asked(a).length)
    .map((t) => t.name);
}

function oldProcessor() {
  return diagnostic("RUN053", "this processor has no AVX2, FMA, F16C and BMI2", {
    help: "the model runs as WebAssembly",
  });
}
