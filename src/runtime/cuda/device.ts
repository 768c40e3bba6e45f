/**
 * One GPU: its primary context, a pool of memory with a cap and a ledger, copies to other GPUs. Each method
 * makes the context current on the calling thread, so that one thread may have several devices; another
 * thread opens its own (the context is shared and counted by the driver). Everything that was made is
 * returned by `close`, which names what the caller left behind.
 */
import { diagnostic, fail, ok, type Result } from "../../support/diagnostic.ts";
import { type CudaDriver, CudaFault, guardCuda, takeHandle } from "./driver.ts";
import { MemoryPool } from "./memory-pool.ts";

/** CUdevice_attribute of cuda.h. */
const attributeNumbers = {
  maxThreadsPerBlock: 1,
  multiprocessors: 16,
  l2Bytes: 38,
  maxThreadsPerMultiprocessor: 39,
  major: 75,
  minor: 76,
  sharedBytesPerMultiprocessor: 81,
  registersPerMultiprocessor: 82,
  cooperativeLaunch: 95,
  sharedBytesPerBlock: 97,
  reservedSharedBytes: 111,
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
  readonly #pool: MemoryPool;
  readonly #closers = new Set<() => void>();
  readonly #peers = new Set<bigint>();

  /** @param capBytes most memory that this object will hold at once; default: all of the device. */
  static open(driver: CudaDriver, ordinal: number, capBytes = Infinity): Result<CudaDevice> {
    return guardCuda(() => new CudaDevice(driver, ordinal, capBytes));
  }

  /** Names of the devices that the driver shows, by ordinal. */
  static names(driver: CudaDriver): Result<readonly string[]> {
    return guardCuda(() => {
      const count = new Int32Array(1);
      driver.call("cuDeviceGetCount", count);
      return Array.from({ length: count[0]! }, (_, i) => nameOf(driver, handleOf(driver, i)));
    });
  }

  private constructor(driver: CudaDriver, ordinal: number, capBytes: number) {
    this.driver = driver;
    this.#capBytes = capBytes;
    this.#device = handleOf(driver, ordinal);
    this.name = nameOf(driver, this.#device);
    const total = new BigUint64Array(1);
    driver.call("cuDeviceTotalMem_v2", total, this.#device);
    this.totalBytes = Number(total[0]);
    this.attributes = readAttributes(driver, this.#device);
    const context = new BigUint64Array(1);
    driver.call("cuDevicePrimaryCtxRetain", context, this.#device);
    this.#context = takeHandle(context);
    this.makeCurrent();
    const allocate = (bytes: number): bigint | undefined => this.#allocate(bytes);
    const release = (address: bigint): void => this.#unlessLost("cuMemFree_v2", address);
    this.#pool = new MemoryPool({ allocate, release }, capBytes);
  }

  /** Number like 90 for compute capability 9.0. */
  get computeCapability(): number {
    return this.attributes.major * 10 + this.attributes.minor;
  }

  get usedBytes(): number {
    return this.#pool.usedBytes;
  }

  /** Bytes of the whole device that no process holds now. */
  freeBytes(): number {
    this.makeCurrent();
    const [free, total] = [new BigUint64Array(1), new BigUint64Array(1)];
    this.driver.call("cuMemGetInfo_v2", free, total);
    return Number(free[0]);
  }

  /** Whether a fault of a kernel has made the context unusable, which holds until the process ends. */
  isLost(): boolean {
    this.driver.ask("cuCtxSetCurrent", this.#context);
    return this.driver.ask("cuCtxSynchronize") !== 0;
  }

  /** Before calls from a thread on which another context may be current. */
  makeCurrent(): void {
    this.driver.call("cuCtxSetCurrent", this.#context);
  }

  /** Memory of at least one byte; over the cap, or more than the device has, it is CUD003. */
  allocate(bytes: number): Result<CudaMemory> {
    const size = Math.max(bytes, 1);
    const taken = guardCuda(() => this.#pool.take(size));
    if (!taken.ok) return taken;
    if (taken.value.kind === "taken") return ok({ address: taken.value.address, bytes: size });
    const overCap = taken.value.kind === "overCap";
    const limit = overCap ? `under the cap of ${this.#capBytes}` : `on ${this.name}`;
    return fail(
      diagnostic("CUD003", `${size} bytes do not fit ${limit}`, {
        notes: [`${this.usedBytes} bytes are in use here, ${this.freeBytes()} of all are free`],
        help: overCap
          ? "raise the cap, dispose of models that are not needed, or use a smaller batch"
          : "end other programs on the GPU, dispose of models that are not needed, or use a smaller batch",
      }),
    );
  }

  /** Back to the pool; work that was enqueued before on one stream may still use it. */
  free({ address }: CudaMemory): void {
    this.#pool.give(address);
  }

  upload(to: bigint, from: Uint8Array): void {
    this.makeCurrent();
    if (from.length === 0) return;
    this.driver.call("cuMemcpyHtoD_v2", to, from, from.length);
    this.#settle();
  }

  download(from: bigint, to: Uint8Array): void {
    this.makeCurrent();
    if (to.length > 0) this.driver.call("cuMemcpyDtoH_v2", to, from, to.length);
  }

  fill(at: bigint, value: number, bytes: number): void {
    this.makeCurrent();
    if (bytes === 0) return;
    this.driver.call("cuMemsetD8_v2", at, value, bytes);
    this.#settle();
  }

  /** Within the device. */
  copy(to: bigint, from: bigint, bytes: number): void {
    this.makeCurrent();
    if (bytes === 0) return;
    this.driver.call("cuMemcpyDtoD_v2", to, from, bytes);
    this.#settle();
  }

  /** Copies memory of this device to another's, directly where the two are linked; waits for it. */
  copyTo(other: CudaDevice, to: bigint, from: bigint, bytes: number): void {
    this.makeCurrent();
    this.#reach(other);
    this.driver.call("cuMemcpyPeer", to, other.#context, from, this.#context, bytes);
    this.driver.call("cuCtxSynchronize");
  }

  /** Whether the two devices read each other's memory without a copy through the host. */
  canReach(other: CudaDevice): boolean {
    const answer = new Int32Array(1);
    this.driver.call("cuDeviceCanAccessPeer", answer, this.#device, other.#device);
    return answer[0] === 1;
  }

  /** Waits for all work; a fault of an earlier kernel comes to light here. */
  synchronize(): void {
    this.makeCurrent();
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
    const leaked = this.usedBytes;
    // Of a lost context the driver takes all back at once, and refuses to be asked piece by piece.
    if (this.isLost()) this.#closers.clear();
    for (const close of [...this.#closers]) close();
    this.#pool.close();
    this.#unlessLost("cuDevicePrimaryCtxRelease_v2", this.#device);
    return leaked;
  }

  /**
   * Waits for the legacy stream. What is filled, copied within the device, or uploaded from memory that is
   * not page-locked may still be under way when the call answers, and our own streams do not wait for it
   * (CUDA driver API, "API synchronization behavior").
   */
  #settle(): void {
    this.driver.call("cuStreamSynchronize", 0n);
  }

  #allocate(bytes: number): bigint | undefined {
    this.makeCurrent();
    const cell = new BigUint64Array(1);
    try {
      this.driver.call("cuMemAlloc_v2", cell, bytes);
    } catch (error) {
      if (error instanceof CudaFault && error.status === outOfMemory) return undefined;
      throw error;
    }
    return takeHandle(cell);
  }

  #reach(other: CudaDevice): void {
    if (this.#peers.has(other.#context) || !this.canReach(other)) return;
    this.#peers.add(other.#context);
    const status = this.driver.ask("cuCtxEnablePeerAccess", other.#context, 0);
    if (status !== 0 && status !== alreadyEnabled) {
      this.driver.call("cuCtxEnablePeerAccess", other.#context, 0);
    }
  }

  #unlessLost(name: "cuMemFree_v2" | "cuDevicePrimaryCtxRelease_v2", of: bigint | number): void {
    if (this.driver.ask("cuCtxSetCurrent", this.#context) !== 0) return;
    try {
      this.driver.call(name, of);
    } catch (error) {
      if (!(error instanceof CudaFault) || !this.isLost()) throw error;
    }
  }
}

/** CUresult of cuda.h. */
const [outOfMemory, alreadyEnabled] = [2, 704];

function handleOf(driver: CudaDriver, ordinal: number): number {
  const device = new Int32Array(1);
  driver.call("cuDeviceGet", device, ordinal);
  return device[0]!;
}

function nameOf(driver: CudaDriver, device: number): string {
  const name = new Uint8Array(256);
  driver.call("cuDeviceGetName", name, name.length, device);
  return new TextDecoder().decode(name.subarray(0, name.indexOf(0)));
}

function readAttributes(driver: CudaDriver, device: number): CudaAttributes {
  const value = new Int32Array(1);
  const rows = Object.entries(attributeNumbers).map(([name, number]) => {
    driver.call("cuDeviceGetAttribute", value, number, device);
    return [name, value[0]!] as const;
  });
  return Object.fromEntries(rows) as CudaAttributes;
}
