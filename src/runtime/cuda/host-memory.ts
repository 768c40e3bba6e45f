/** Page-locked memory of this process, which the device copies from and to without waiting. */
import { viewAddress } from "../ffi/library.ts";
import type { CudaDevice } from "./device.ts";
import { takeHandle } from "./driver.ts";

export interface HostMemory {
  readonly address: bigint;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Returned with the device. */
export function allocateHost(device: CudaDevice, bytes: number): HostMemory {
  const size = Math.max(1, bytes);
  device.makeCurrent();
  const cell = new BigUint64Array(1);
  device.driver.call("cuMemHostAlloc", cell, size, 0);
  const address = takeHandle(cell);
  device.own(() => device.driver.call("cuMemFreeHost", address));
  return { address, bytes: viewAddress(address, size) };
}
