/**
 * Which x86-64 targets this machine runs: the processor is asked (CPUID), the operating system for the
 * vector registers that it saves (XCR0), and one page is made executable and called, because a host may
 * forbid that.
 */
import { controlLeaf, emitProbe } from "../../emit/x64/probe-code.ts";
import { DiagnosticError, diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { openNativeSystem } from "../ffi/koffi-system.ts";
import type { NativeSystem } from "../ffi/native-system.ts";
import { NativeMemory } from "./native-memory.ts";

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
/** Registers that the operating system saves: xmm and ymm; opmasks and all of zmm. */
const [savesVectors, savesWide] = [0b110, 0b11100110];

export function probeSystem(system: NativeSystem): Result<NativeFeatures> {
  const memory = new NativeMemory(system);
  try {
    const block = memory.map(64);
    const code = memory.mapCode(emitProbe(system.kind));
    if (code === undefined) return fail(noExecution());
    const words = new Int32Array(system.view(block, 64));
    const call = system.functionAt(code);
    const ask = (leaf: number): Int32Array => {
      words.fill(0);
      words[0] = leaf;
      call(block);
      return words.slice(0, 4);
    };
    const highest = ask(0)[0]!;
    const has = ({ leaf, register, bits }: Requirement): boolean =>
      leaf <= highest && bits.every((bit) => ((ask(leaf)[register]! >> bit) & 1) === 1);
    if (!avx2.every(has)) return fail(oldProcessor());
    const saved = ask(controlLeaf)[0]!;
    if ((saved & savesVectors) !== savesVectors) return fail(oldProcessor());
    const wide = avx512.every(has) && (saved & savesWide) === savesWide;
    return ok({ system, targets: wide ? ["x64-avx512", "x64-avx2"] : ["x64-avx2"] });
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return fail(...error.diagnostics);
  } finally {
    memory.unmap();
  }
}

export function noExecution() {
  return diagnostic("RUN052", "this host forbids memory that is executable", {
    help: "the model runs as WebAssembly; allow PROT_EXEC (SELinux: execmem) for machine code",
  });
}

function oldProcessor() {
  return diagnostic("RUN053", "this processor has no AVX2, FMA, F16C and BMI2", {
    help: "the model runs as WebAssembly",
  });
}
