/**
 * Programs on a device for the scripts of this folder: emits a text, loads the module, launches single
 * kernels with buffers given by address. No tasks: the runner of whole programs is the runtime's.
 */
import { emitPtx } from "../../src/emit/ptx/emit-program.ts";
import type { PtxKernel, PtxModule, PtxParameter } from "../../src/emit/ptx/ptx-module.ts";
import type { Program } from "../../src/program/program.ts";
import { parseProgram } from "../../src/program/program-parse.ts";
import { CudaDevice } from "../../src/runtime/cuda/device.ts";
import { CudaDriver } from "../../src/runtime/cuda/driver.ts";
import { probeCuda } from "../../src/runtime/cuda/features.ts";
import { CudaLaunch, type KernelArgument } from "../../src/runtime/cuda/launch.ts";
import { type CudaModule, loadModule } from "../../src/runtime/cuda/module.ts";
import {
  encodeTensorMap,
  type TensorMapSpec,
  tensorMapTypes,
} from "../../src/runtime/cuda/tensor-map.ts";
import { evaluate, type IndexExpr } from "../../src/semantics/index-expr.ts";
import { formatDiagnostic, type Result } from "../../src/support/diagnostic.ts";
import { architectures } from "../../src/target/architectures/index.ts";
import type { GpuArchitecture } from "../../src/target/machine.ts";

/** Codes of a machine without a device, or without a driver that serves: nothing is wrong with the script. */
const withoutDevice: readonly string[] = ["CUD001"];
const withoutDeviceStatus = 6;

/** The value; a script on a machine without a device ends here, and says so. */
export function take<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  const told = result.diagnostics.map(formatDiagnostic).join("\n");
  if (!result.diagnostics.some((d) => withoutDevice.includes(d.code))) throw new Error(told);
  console.error(told);
  return process.exit(withoutDeviceStatus);
}

/** For scripts whose work is done by processes of their own: without a device none is started. */
export function needDevice(): void {
  take(probeCuda());
}

export function openDevice(): CudaDevice {
  const driver = take(CudaDriver.open(process.platform));
  const device = take(CudaDevice.open(driver, 0));
  console.log(device.name, `driver ${driver.version}`);
  return device;
}

/** The newest architecture that the device runs. */
export function architectureOf(device: CudaDevice): GpuArchitecture {
  const wanted = `${device.attributes.major}.${device.attributes.minor}`;
  const found = [...architectures.values()].find((a) => a.computeCapability === wanted);
  if (!found) throw new Error(`no architecture of compute capability ${wanted}`);
  return found;
}

export interface LoadedProgram {
  readonly ptx: PtxModule;
  readonly module: CudaModule;
  readonly unload: () => void;
}

export function loadProgram(device: CudaDevice, program: string | Program): LoadedProgram {
  const read = typeof program === "string" ? take(parseProgram(program)) : program;
  const ptx = take(emitPtx(read, architectureOf(device)));
  const dynamic = ptx.kernels.map((k) => [k.entry, k.dynamicSharedBytes] as const);
  const module = take(
    loadModule(device, ptx.text, {
      kernels: ptx.kernels.map((k) => k.entry),
      sharedBytes: Object.fromEntries(dynamic.filter(([, bytes]) => bytes > 0)),
      mayUseLocal: (entry) => ptx.kernels.find((k) => k.entry === entry)!.usesLocalMemory,
    }),
  );
  return { ptx, module, unload: () => module.unload() };
}

export interface Bound {
  /** Addresses of buffers, counters, `gridBarrier` and `faults`. */
  readonly addresses: ReadonlyMap<string, bigint>;
  readonly indices: ReadonlyMap<string, number>;
}

/** A launch of one kernel of a loaded program; `dependent`: once the launch before it has started. */
export function prepareLaunch(
  device: CudaDevice,
  { ptx, module }: LoadedProgram,
  name: string,
  bound: Bound,
  dependent = false,
): CudaLaunch {
  const kernel = ptx.kernels.find((k) => k.name === name)!;
  const at = (e: IndexExpr): number => evaluate(e, bound.indices);
  const args = kernel.parameters.map((p) => argumentOf(device, p, bound, at));
  const config = {
    grid: kernel.grid.map(at) as [number, number, number],
    block: [kernel.threads, 1, 1] as const,
    sharedBytes: kernel.dynamicSharedBytes,
    ...(kernel.cluster > 1 && { cluster: [kernel.cluster, 1, 1] as const }),
    ...(kernel.cooperative && { cooperative: true }),
    dependent,
  };
  return new CudaLaunch(device, module.kernels.get(kernel.entry)!, config, args);
}

function argumentOf(
  device: CudaDevice,
  p: PtxParameter,
  { addresses, indices }: Bound,
  at: (e: IndexExpr) => number,
): KernelArgument {
  const address = (name: string): bigint => {
    const found = addresses.get(name);
    if (found === undefined) throw new Error(`no address of ${name}`);
    return found;
  };
  switch (p.kind) {
    case "index": {
      const value = indices.get(p.name)!;
      return p.bits === 32 ? { kind: "u32", value } : { kind: "u64", value: BigInt(value) };
    }
    case "tensorMap": {
      const type = (p.dtype in tensorMapTypes ? p.dtype : "u8") as TensorMapSpec["type"];
      const { status, map } = encodeTensorMap(device.driver, {
        type,
        address: address(p.name),
        dims: p.dims.map(at),
        strides: p.strides.map(at),
        box: p.box,
        swizzleBytes: p.swizzleBytes,
        l2PromotionBytes: 256,
      });
      if (status !== 0) throw new Error(`tensor map of ${p.name}: status ${status}`);
      return { kind: "bytes", value: map };
    }
    case "buffer":
    case "counter":
      return { kind: "u64", value: address(p.name) };
    default:
      return { kind: "u64", value: address(p.kind) };
  }
}

export type { PtxKernel };
