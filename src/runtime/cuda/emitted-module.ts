/**
 * The kernels of a program as the driver's assembler makes them: loaded to be launched, or only to be asked what
 * they take of a multiprocessor. In: what the emitter gave. Out: the module, or registers and local memory.
 */
import { emitPtx } from "../../emit/ptx/emit-program.ts";
import type { PtxModule } from "../../emit/ptx/ptx-module.ts";
import type { Program } from "../../program/program.ts";
import { ok, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { Target } from "../../target/target.ts";
import type { CudaDevice } from "./device.ts";
import type { CudaFeatures } from "./features.ts";
import { type CubinStore, type CudaModule, loadModule } from "./module.ts";

/** What a kernel takes, by the driver's count. */
export interface AssembledKernel {
  /** Its name in the program. */
  readonly kernel: string;
  /** Of a thread, of 32 bits. */
  readonly registers: number;
  /** Bytes of local memory of a thread: spills and arrays that are indexed. */
  readonly localBytes: number;
}

export function loadEmitted(
  device: CudaDevice,
  { text, kernels }: PtxModule,
  store: CubinStore | undefined,
): Result<CudaModule> {
  const dynamic = kernels.filter((k) => k.dynamicSharedBytes > 0);
  const byEntry = new Map(kernels.map((k) => [k.entry, k]));
  return loadModule(device, text, {
    kernels: kernels.map((k) => k.entry),
    sharedBytes: Object.fromEntries(dynamic.map((k) => [k.entry, k.dynamicSharedBytes])),
    mayUseLocal: (entry) => byEntry.get(entry)!.usesLocalMemory,
    ...(store && { store }),
  });
}

export function assembledKernels(
  { kernels }: PtxModule,
  module: CudaModule,
): readonly AssembledKernel[] {
  return kernels.map(({ name, entry }) => {
    const { registers, localBytes } = module.kernels.get(entry)!;
    return { kernel: name, registers, localBytes };
  });
}

/** Asks the driver of a device here, which gets no memory and runs nothing. */
export function assembleHere(
  program: Program,
  target: Target,
  { open, store }: Pick<CudaFeatures, "open" | "store">,
): Result<readonly AssembledKernel[]> {
  const { machine } = target;
  invariant(machine?.kind === "gpu", () => `target ${target.name} is no GPU`);
  const emitted = emitPtx(program, machine.architecture, target.blocks);
  if (!emitted.ok) return emitted;
  const device = open();
  if (!device.ok) return device;
  try {
    const module = loadEmitted(device.value, emitted.value, store);
    if (!module.ok) return module;
    const found = assembledKernels(emitted.value, module.value);
    module.value.unload();
    return ok(found);
  } finally {
    device.value.close();
  }
}
