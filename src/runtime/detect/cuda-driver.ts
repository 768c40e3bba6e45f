/**
 * NVIDIA GPUs through the driver library (CUDA driver API, cuda.h), without a context: names, memory and
 * attributes. What is missing (koffi, the library, a device) is said in words; nothing is guessed.
 */
import type { LibraryHandle } from "koffi";
import { type DetectedGpu, detected } from "./machine-report.ts";

export type CudaAnswer =
  | { readonly kind: "gpus"; readonly gpus: readonly DetectedGpu[] }
  | { readonly kind: "absent"; readonly why: string };

/** CUdevice_attribute, cuda.h. */
const attributes = {
  clockKhz: 13,
  multiprocessors: 16,
  integrated: 18,
  memoryClockKhz: 36,
  busBits: 37,
  l2Bytes: 38,
  major: 75,
  minor: 76,
  sharedBytesPerBlock: 97,
} as const;

const libraries: Readonly<Record<string, string>> = {
  linux: "libcuda.so.1",
  win32: "nvcuda.dll",
};

export async function queryCudaDriver(platform: string): Promise<CudaAnswer> {
  const library = libraries[platform];
  if (!library) return { kind: "absent", why: `there is no CUDA driver on ${platform}` };
  let driver: LibraryHandle;
  try {
    const { default: koffi } = await import("koffi");
    driver = koffi.load(library);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { kind: "absent", why: `no CUDA driver (${error.message.split("\n")[0]})` };
  }
  const call = (name: string, parameters: string) => {
    const run = driver.func(`int ${name}(${parameters})`);
    return (...args: unknown[]): void => {
      const status = Number(run(...args));
      if (status !== 0) throw new CudaError(`${name} answered ${status}`);
    };
  };
  try {
    return { kind: "gpus", gpus: listDevices(call) };
  } catch (error) {
    if (!(error instanceof CudaError)) throw error;
    return { kind: "absent", why: error.message };
  }
}

/** A driver call that did not answer 0. */
class CudaError extends Error {}

type Bind = (name: string, parameters: string) => (...args: unknown[]) => void;

function listDevices(bind: Bind): readonly DetectedGpu[] {
  bind("cuInit", "uint flags")(0);
  const version = new Int32Array(1);
  bind("cuDriverGetVersion", "void *version")(version);
  const count = new Int32Array(1);
  bind("cuDeviceGetCount", "void *count")(count);
  const getDevice = bind("cuDeviceGet", "void *device, int ordinal");
  const getName = bind("cuDeviceGetName", "void *name, int length, int device");
  const getMemory = bind("cuDeviceTotalMem_v2", "void *bytes, int device");
  const getAttribute = bind("cuDeviceGetAttribute", "void *value, int attribute, int device");
  return Array.from({ length: count[0]! }, (_, index) => {
    const device = new Int32Array(1);
    getDevice(device, index);
    const name = new Uint8Array(256);
    getName(name, name.length, device[0]!);
    const bytes = new BigUint64Array(1);
    getMemory(bytes, device[0]!);
    const read = (attribute: keyof typeof attributes): number => {
      const value = new Int32Array(1);
      getAttribute(value, attributes[attribute], device[0]!);
      return value[0]!;
    };
    const text = new TextDecoder().decode(name.subarray(0, name.indexOf(0)));
    return gpuOf({ name: text, index, bytes: Number(bytes[0]), version: version[0]!, read });
  });
}

interface Device {
  readonly name: string;
  readonly index: number;
  readonly bytes: number;
  readonly version: number;
  readonly read: (attribute: keyof typeof attributes) => number;
}

function gpuOf({ name, index, bytes, version, read }: Device): DetectedGpu {
  const source = (what: string): string => `CUDA driver: ${what}`;
  const clocks = read("memoryClockKhz");
  const bits = read("busBits");
  // Two transfers a clock; integrated boards report neither.
  const rate = (2 * clocks * (bits / 8)) / 1e6;
  return {
    name,
    vendor: "NVIDIA",
    seenBy: "cuda",
    index,
    computeCapability: `${read("major")}.${read("minor")}`,
    memoryBytes: detected(bytes, source("total memory")),
    unifiedMemory: read("integrated") === 1,
    multiprocessors: detected(read("multiprocessors"), source("multiprocessor count")),
    clockMhz: detected(read("clockKhz") / 1000, source("clock rate")),
    l2Bytes: detected(read("l2Bytes"), source("L2 cache size")),
    sharedBytesPerBlock: detected(
      read("sharedBytesPerBlock"),
      source("shared memory per block, opt-in"),
    ),
    ...(rate > 0 && { memoryBytesPerNs: detected(rate, source("memory clock x bus width x 2")) }),
    driver: `CUDA ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`,
  };
}
