/**
 * What this engine's WebAssembly can do, found by validating tiny modules: versions and flags differ
 * too much to be looked up. Nothing is compiled or run.
 */
import type { FunctionBuilder } from "../../emit/wasm/function-builder.ts";
import { type MemoryLimits, ModuleBuilder } from "../../emit/wasm/module-builder.ts";

export interface WasmFeatures {
  /** Fixed-width 128-bit SIMD. */
  readonly simd: boolean;
  /** f32x4.relaxed_madd: fused where the processor can; the rounding may differ between machines. */
  readonly relaxedFma: boolean;
  /** Shared memory and atomic waits. */
  readonly threads: boolean;
  /** Largest memory that a module may declare, in pages of 64 KiB. */
  readonly maxPages: number;
}

/** 4 GiB in pages of 64 KiB: the end of 32-bit addresses. */
export const addressablePages = 65536;

export function probeWasmFeatures(): WasmFeatures {
  return {
    simd: validates((f) => f.i32Const(0).op("i32x4.splat").op("drop")),
    relaxedFma: validates((f) => {
      for (let i = 0; i < 3; i++) f.f32Const(0).op("f32x4.splat");
      f.op("f32x4.relaxed_madd").op("drop");
    }),
    threads:
      mayShareMemory() &&
      validates(
        (f) => f.i32Const(0).i32Const(0).i64Const(0n).memory("memory.atomic.wait32").op("drop"),
        { minPages: 1, maxPages: 1, shared: true },
      ),
    maxPages: largestDeclarable(),
  };
}

/** A page of a browser may only if it is cross-origin isolated; what is no browser does not say. */
function mayShareMemory(): boolean {
  const { crossOriginIsolated = true } = globalThis as WebGlobals;
  return crossOriginIsolated && typeof SharedArrayBuffer !== "undefined";
}

function largestDeclarable(): number {
  for (let pages = addressablePages; pages > 1; pages /= 2) {
    if (validates(() => undefined, { minPages: pages, maxPages: pages })) return pages;
  }
  return 1;
}

function validates(
  body: (f: FunctionBuilder) => void,
  limits: MemoryLimits = { minPages: 1 },
): boolean {
  const module = new ModuleBuilder();
  module.memory(limits);
  module.function("probe", { params: [], results: [] }, body);
  return WebAssembly.validate(module.encode().bytes);
}
