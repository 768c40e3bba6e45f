/**
 * NVIDIA GPUs through the driver (runtime/cuda/driver.ts), without a context: names, memory and attributes
 * as the driver tells them, and what they mean. What is missing (koffi, the library, a device) is said in
 * words; nothing is guessed.
 */
import type { Result } from "../../support/diagnostic.ts";
import { CudaDriver, guardCuda } from "../cuda/driver.ts";
import { openLibrary } from "../ffi/library.ts";
import { type DetectedGpu, detected } from "./machine-report.ts";

export type CudaAnswer =
  | ({ readonly kind: "devices" } & CudaDevices)
  | { readonly kind: "absent"; readonly why: string };

export interface CudaDevices {
  /** 13000 stands for CUDA 13.0. */
  readonly version: number;
  readonly devices: readonly CudaDeviceFacts[];
}

/** What the driver says about one device, as numbers that can be kept in a file. */
export interface CudaDeviceFacts {
  readonly name: string;
  readonly bytes: number;
  readonly attributes: Readonly<Record<keyof typeof cudaAttributes, number>>;
}

/** CUdevice_attribute, cuda.h. */
export const cudaAttributes = {
  clockKhz: 13,
  multiprocessors: 16,
  integrated: 18,
  memoryClockKhz: 36,
  busBits: 37,
  l2Bytes: 38,
  threadsPerMultiprocessor: 39,
  major: 75,
  minor: 76,
  sharedBytesPerMultiprocessor: 81,
  registersPerMultiprocessor: 82,
  sharedBytesPerBlock: 97,
} as const;

const attributeNames = Object.keys(cudaAttributes) as readonly (keyof typeof cudaAttributes)[];

export function queryCudaDriver(platform: string, load = openLibrary): CudaAnswer {
  const opened = CudaDriver.open(platform, load);
  const found = opened.ok ? readDevices(opened.value) : opened;
  if (found.ok) return { kind: "devices", ...found.value };
  const { message, notes } = found.diagnostics[0]!;
  return { kind: "absent", why: [message, ...(notes ?? []).slice(0, 1)].join(": ") };
}

function readDevices(driver: CudaDriver): Result<CudaDevices> {
  return guardCuda(() => {
    const count = new Int32Array(1);
    driver.call("cuDeviceGetCount", count);
    const devices = Array.from({ length: count[0]! }, (_, i) => readDevice(driver, i));
    return { version: driver.version, devices };
  });
}

function readDevice(driver: CudaDriver, ordinal: number): CudaDeviceFacts {
  const cell = new Int32Array(1);
  driver.call("cuDeviceGet", cell, ordinal);
  const device = cell[0]!;
  const name = new Uint8Array(256);
  driver.call("cuDeviceGetName", name, name.length, device);
  const bytes = new BigUint64Array(1);
  driver.call("cuDeviceTotalMem_v2", bytes, device);
  const read = (attribute: keyof typeof cudaAttributes): number => {
    driver.call("cuDeviceGetAttribute", cell, cudaAttributes[attribute], device);
    return cell[0]!;
  };
  return {
    name: new TextDecoder().decode(name.subarray(0, name.indexOf(0))),
    bytes: Number(bytes[0]),
    attributes: Object.fromEntries(
      attributeNames.map((a) => [a, read(a)]),
    ) as CudaDeviceFacts["attributes"],
  };
}

export function gpusOfDriver({ version, devices }: CudaDevices): readonly DetectedGpu[] {
  return devices.map((device, index) => gpuOf(device, index, version));
}

function gpuOf(device: CudaDeviceFacts, index: number, version: number): DetectedGpu {
  const { name, bytes, attributes: a } = device;
  const source = (what: string): string => `CUDA driver: ${what}`;
  // Two transfers a clock; newer drivers and integrated boards report neither.
  const rate = (2 * a.memoryClockKhz * (a.busBits / 8)) / 1e6;
  return {
    name,
    vendor: "NVIDIA",
    seenBy: "cuda",
    index,
    computeCapability: `${a.major}.${a.minor}`,
    memoryBytes: detected(bytes, source("total memory")),
    unifiedMemory: a.integrated === 1,
    multiprocessors: detected(a.multiprocessors, source("multiprocessor count")),
    ...(a.clockKhz > 0 && { clockMhz: detected(a.clockKhz / 1000, source("clock rate")) }),
    l2Bytes: detected(a.l2Bytes, source("L2 cache size")),
    sharedBytesPerBlock: detected(a.sharedBytesPerBlock, source("shared memory per block, opt-in")),
    sharedBytesPerSm: detected(
      a.sharedBytesPerMultiprocessor,
      source("shared memory per multiprocessor"),
    ),
    ...(rate > 0 && { memoryBytesPerNs: detected(rate, source("memory clock x bus width x 2")) }),
    driver: `CUDA ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`,
  };
}
