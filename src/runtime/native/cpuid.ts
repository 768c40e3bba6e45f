/**
 * CPUID through executable memory: a few bytes of machine code are mapped, called, and given back. What
 * the answers mean is elsewhere: features.ts for what programs need, detect/decode-cpuid.ts for reports.
 */
import { controlLeaf, probeBytes } from "../../emit/x64/probe-code.ts";
import {
  type Diagnostic,
  DiagnosticError,
  diagnostic,
  fail,
  ok,
  type Result,
} from "../../support/diagnostic.ts";
import type { NativeSystem } from "../ffi/native-system.ts";
import { NativeMemory } from "./native-memory.ts";

/** eax, ebx, ecx, edx, unsigned. */
export type Leaf = readonly [eax: number, ebx: number, ecx: number, edx: number];

export interface Cpuid {
  ask(leaf: number, subleaf?: number): Leaf;
  /** Low half of XCR0: the vector registers that the operating system saves; 0 without XGETBV. */
  readonly savedStates: number;
}

/** OSXSAVE of leaf 1, ecx: XGETBV may be executed. */
const savesStates = 27;

/** Lends CPUID to `use`; fails where memory is refused (RUN051) or may not be executed (RUN052). */
export function withCpuid<T>(system: NativeSystem, use: (cpuid: Cpuid) => T): Result<T> {
  const memory = new NativeMemory(system);
  try {
    const block = memory.map(64);
    const code = memory.mapCode(probeBytes(system.kind));
    if (code === undefined) return fail(noExecution());
    const words = new Uint32Array(system.view(block, 64));
    const call = system.functionAt(code);
    const ask = (leaf: number, subleaf = 0): Leaf => {
      words.fill(0);
      words[0] = leaf;
      words[1] = subleaf;
      call(block);
      return [words[0]!, words[1]!, words[2]!, words[3]!];
    };
    const control = (ask(1)[2] >>> savesStates) & 1;
    return ok(use({ ask, savedStates: control ? ask(controlLeaf)[0] : 0 }));
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return fail(...error.diagnostics);
  } finally {
    memory.unmap();
  }
}

export function noExecution(): Diagnostic {
  return diagnostic("RUN052", "this host forbids memory that is executable", {
    help: "the model runs as WebAssembly; allow PROT_EXEC (SELinux: execmem) for machine code",
  });
}
