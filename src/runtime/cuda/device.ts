/**
 * One GPU: its primary context, memory with a cap and a ledger, streams and events. The context is current
 * on the thread that opened the device; another thread opens its own (the context is shared and counted by
 * the driver). Everything that was made is returned by `close`, which names what the caller left behind.
 */
import { diagnostic, fail, type Result } from "../../support/diagnostic.ts";
import { type CudaDriver, guardCuda, takeHandle } from "./driver.ts";

/** CUdevice_attribute of cuda.h. */
const attributeNumbers = {
  maxThreadsPerBlock: 1,
  multiprocessors: 16,
  l2Bytes: 38,
  maxThreadsPerMultiprocessor: 39,
  major: 75,
  minor: 76,
  registersPerMultiprocessor: 82,
  cooperativeLaunch: 95,
  sharedBytesPerBlock: 97,
} as const;

export type CudaAttributes = Readonly<Record<keyof typeof attributeNumbers, number>>;

/** Device memory: an address the GPU understands. */
export interface CudaMemory {
  readonly address: bigint;
  readonly bytes: number;
}

export class CudaDevice {
  readonly driver: CudaDriver;
  readonly name: string;
  readonly attributes: CudaAttributes;
  readonly totalBytes: number;
  readonly #device: number;
  readonly #context: bigint;
  readonly #capBytes: number;
  readonly #allocated = new Map<bigint, number>();
  readonly #closers = new Set<() => void>();
  #usedBytes = 0;

  /** @param capBytes most memory that this object will hold at once; default: all of the device. */
  static open(driver: CudaDriver, ordinal: number, capBytes = Infinity): Result<CudaDevice> {
    return guardCuda(() => new CudaDevice(driver, ordinal, capBytes));
  }

  private constructor(driver: CudaDriver, ordinal: number, capBytes: number) {
    this.driver = driver;
    this.#capBytes = capBytes;
    const device = new Int32Array(1);
    driver.call("cuDeviceGet", device, ordinal);
    this.#device = device[0]!;
    const name = new Uint8Array(256);
    driver.call("cuDeviceGetName", name, name.length, this.#device);
    this.name = new TextDecoder().decode(name.subarray(0, name.indexOf(0)));
    const total = new BigUint64Array(1);
    driver.call("cuDeviceTotalMem_v2", total, this.#device);
    this.totalBytes = Number(total[0]);
    this.attributes = readAttributes(driver, this.#device);
    const context = new BigUint64Array(1);
    driver.call("cuDevicePrimaryCtxRetain", context, this.#device);
    this.#context = takeHandle(context);
    this.makeCurrent();
  }

  /** Number like 90 for compute capability 9.0. */
  get computeCapability(): number {
    return this.attributes.major * 10 + this.attributes.minor;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Before calls from a thread on which another context may be current. */
  makeCurrent(): void {
    this.driver.call("cuCtxSetCurrent", this.#context);
  }

  /** Memory of at least one byte; over the cap it is CUD003. */
  allocate(bytes: number): Result<CudaMemory> {
    const size = Math.max(bytes, 1);
    if (this.#usedBytes + size > this.#capBytes) {
      return fail(
        diagnostic("CUD003", `${size} bytes do not fit under the cap of ${this.#capBytes}`, {
          notes: [`${this.#usedBytes} bytes are in use on ${this.name}`],
          help: "raise the cap, dispose of models that are not needed, or use a smaller batch",
        }),
      );
    }
    return guardCuda(() => {
      const cell = new BigUint64Array(1);
      this.driver.call("cuMemAlloc_v2", cell, size);
      const address = takeHandle(cell);
      this.#allocated.set(address, size);
      this.#usedBytes += size;
      return { address, bytes: size };
    });
  }

  free({ address, bytes }: CudaMemory): void {
    if (!this.#allocated.delete(address)) return;
    this.#usedBytes -= bytes;
    this.driver.call("cuMemFree_v2", address);
  }

  upload(to: bigint, from: Uint8Array): void {
    if (from.length > 0) this.driver.call("cuMemcpyHtoD_v2", to, from, from.length);
  }

  download(from: bigint, to: Uint8Array): void {
    if (to.length > 0) this.driver.call("cuMemcpyDtoH_v2", to, from, to.length);
  }

  fill(at: bigint, value: number, bytes: number): void {
    if (bytes > 0) this.driver.call("cuMemsetD8_v2", at, value, bytes);
  }

  /** Waits for all work; a fault of an earlier kernel comes to light here. */
  synchronize(): void {
    this.driver.call("cuCtxSynchronize");
  }

  /** Has `close` run by `close` of the device unless it ran before. */
  own(close: () => void): () => void {
    const once = (): void => {
      if (this.#closers.delete(once)) close();
    };
    this.#closers.add(once);
    return once;
  }

  /** Returns everything; the answer is the bytes that nobody had freed. */
  close(): number {
    const leaked = this.#usedBytes;
    for (const close of [...this.#closers]) close();
    for (const [address, bytes] of [...this.#allocated]) this.free({ address, bytes });
    this.driver.call("cuDevicePrimaryCtxRelease_v2", this.#device);
    return leaked;
  }
}

function readAttributes(driver: CudaDriver, device: number): CudaAttributes {
  const value = new Int32Array(1);
  const rows = Object.entries(attributeNumbers).map(([name, number]) => {
    driver.call("cuDeviceGetAttribute", value, number, device);
    return [name, value[0]!] as const;
  });
  return Object.fromEntries(rows) as CudaAttributes;
}
