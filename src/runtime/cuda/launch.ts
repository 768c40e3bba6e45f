/**
 * Launches: a configuration and arguments, packed once into native structures and launched any number of
 * times. The object holds every buffer that those structures point to: a configuration whose buffer was
 * collected would launch with whatever came to lie there. Layouts: CUlaunchConfig (56 bytes) and
 * CUlaunchAttribute (72 bytes) of cuda.h.
 */
import { DiagnosticError, diagnostic } from "../../support/diagnostic.ts";
import { addressOf } from "../ffi/library.ts";
import type { CudaDevice } from "./device.ts";
import { type CudaKernel, maxDynamicShared } from "./module.ts";

export type Extent3 = readonly [number, number, number];

export interface LaunchConfig {
  readonly grid: Extent3;
  readonly block: Extent3;
  /** Bytes of dynamic shared memory. */
  readonly sharedBytes?: number;
  readonly cluster?: Extent3;
  /** All blocks resident at once, so that they may wait for each other. */
  readonly cooperative?: boolean;
  /** May begin while the kernel before it still runs, up to its own wait. */
  readonly dependent?: boolean;
}

export type KernelArgument =
  | { readonly kind: "u32"; readonly value: number }
  | { readonly kind: "u64"; readonly value: bigint }
  | { readonly kind: "f32"; readonly value: number }
  /** A structure by value, such as a tensor map. */
  | { readonly kind: "bytes"; readonly value: Uint8Array };

/** CUlaunchAttributeID of cuda.h. */
const attributeIds = { cooperative: 2, cluster: 4, dependent: 6 } as const;
const attributeBytes = 72;
const configBytes = 56;
/** Steps in which shared memory is given out. */
const sharedUnit = 128;

export class CudaLaunch {
  readonly #device: CudaDevice;
  readonly #kernel: CudaKernel;
  readonly #config = new Uint8Array(configBytes);
  readonly #attributes: Uint8Array;
  readonly #values: readonly Uint8Array[];
  readonly #pointers: BigUint64Array;

  /** Throws DiagnosticError (PRG042) where blocks wait for each other that the device does not hold at once. */
  constructor(
    device: CudaDevice,
    kernel: CudaKernel,
    config: LaunchConfig,
    args: readonly KernelArgument[],
  ) {
    const sharedBytes = sharedBytesOf(device, kernel, config);
    this.#device = device;
    this.#kernel = kernel;
    this.#attributes = packAttributes(config);
    this.#values = args.map(packArgument);
    this.#pointers = BigUint64Array.from(this.#values, addressOf);
    const view = new DataView(this.#config.buffer);
    [...config.grid, ...config.block, sharedBytes].forEach((value, i) => {
      view.setUint32(4 * i, value, true);
    });
    view.setBigUint64(40, addressOf(this.#attributes), true);
    view.setUint32(48, this.#attributes.length / attributeBytes, true);
    if (config.cooperative) checkResident(device, kernel, { ...config, packed: this.#config });
  }

  /** Enqueues the kernel; faults of the kernel itself come to light at the next synchronisation. */
  launch(stream: bigint): void {
    new DataView(this.#config.buffer).setBigUint64(32, stream, true);
    const { handle } = this.#kernel;
    this.#device.driver.call("cuLaunchKernelEx", this.#config, handle, this.#pointers, null);
  }
}

/**
 * A kernel that begins beside the one before finds room on some multiprocessors only, and would crowd there what
 * all of them could share evenly: its blocks ask for so much shared memory that none takes more than its share
 * (H200, ResNet-50: 0.93 of the time at batch 1, 0.89 at 32). Clusters have places of their own.
 */
function sharedBytesOf(device: CudaDevice, kernel: CudaKernel, config: LaunchConfig): number {
  const { grid, sharedBytes = 0, dependent, cluster } = config;
  if (!dependent || cluster || sharedBytes === 0) return sharedBytes;
  const {
    multiprocessors,
    sharedBytesPerMultiprocessor,
    reservedSharedBytes,
    sharedBytesPerBlock,
  } = device.attributes;
  const share = Math.ceil(product(grid) / multiprocessors);
  if (heldAtOnce(device, kernel, config) <= share) return sharedBytes;
  const tooMany = sharedBytesPerMultiprocessor / (share + 1) - reservedSharedBytes;
  const more = (Math.floor(tooMany / sharedUnit) + 1) * sharedUnit - kernel.sharedBytes;
  const most = sharedBytesPerBlock - kernel.sharedBytes;
  device.driver.call("cuFuncSetAttribute", kernel.handle, maxDynamicShared, most);
  return Math.min(more, most);
}

/** Blocks that a multiprocessor holds, with the registers that the assembler took. */
function heldAtOnce(device: CudaDevice, kernel: CudaKernel, config: LaunchConfig): number {
  const { block, sharedBytes = 0 } = config;
  const held = new Int32Array(1);
  device.driver.call(
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    held,
    kernel.handle,
    product(block),
    sharedBytes,
  );
  return held[0]!;
}

function product(extents: Extent3): number {
  return extents.reduce((n, e) => n * e, 1);
}

/** A launch with the structure that the driver takes of it. */
type PackedLaunch = LaunchConfig & { readonly packed: Uint8Array };

/** Blocks that the device holds: those of a cluster lie in one group of multiprocessors, which leaves some over. */
function heldByAll(device: CudaDevice, kernel: CudaKernel, config: PackedLaunch): number {
  const { cluster, packed } = config;
  if (!cluster) return heldAtOnce(device, kernel, config) * device.attributes.multiprocessors;
  const clusters = new Int32Array(1);
  device.driver.call("cuOccupancyMaxActiveClusters", clusters, kernel.handle, packed);
  return clusters[0]! * product(cluster);
}

function checkResident(device: CudaDevice, kernel: CudaKernel, config: PackedLaunch): void {
  const { grid } = config;
  const { cooperativeLaunch } = device.attributes;
  const atOnce = cooperativeLaunch === 0 ? 0 : heldByAll(device, kernel, config);
  if (product(grid) <= atOnce) return;
  throw new DiagnosticError([
    diagnostic("PRG042", `the ${product(grid)} blocks of ${kernel.name} wait for each other`, {
      notes: [
        `${device.name} holds ${atOnce} of them at once, with ${kernel.registers} registers a thread`,
      ],
      help: "use fewer blocks, or blocks of fewer threads or less shared memory",
    }),
  ]);
}

function packAttributes(config: LaunchConfig): Uint8Array {
  const rows: (readonly [number, readonly number[]])[] = [];
  if (config.cooperative) rows.push([attributeIds.cooperative, [1]]);
  if (config.cluster) rows.push([attributeIds.cluster, config.cluster]);
  if (config.dependent) rows.push([attributeIds.dependent, [1]]);
  const packed = new Uint8Array(rows.length * attributeBytes);
  const view = new DataView(packed.buffer);
  rows.forEach(([id, words], row) => {
    view.setUint32(row * attributeBytes, id, true);
    words.forEach((word, i) => {
      view.setUint32(row * attributeBytes + 8 + 4 * i, word, true);
    });
  });
  return packed;
}

function packArgument(argument: KernelArgument): Uint8Array {
  if (argument.kind === "bytes") return alignedCopy(argument.value);
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  if (argument.kind === "u32") view.setUint32(0, argument.value, true);
  if (argument.kind === "f32") view.setFloat32(0, argument.value, true);
  if (argument.kind === "u64") view.setBigUint64(0, argument.value, true);
  return bytes;
}

/** A copy whose address is a multiple of 64, which tensor maps need and array buffers do not promise. */
export function alignedCopy(bytes: Uint8Array): Uint8Array {
  const alignment = 64;
  const room = new Uint8Array(bytes.length + alignment);
  const start = Number(
    (BigInt(alignment) - (addressOf(room) % BigInt(alignment))) % BigInt(alignment),
  );
  const copy = room.subarray(start, start + bytes.length);
  copy.set(bytes);
  return copy;
}
