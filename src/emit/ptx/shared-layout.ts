/**
 * Where the buffers and counters of a kernel's shared memory lie, and which register buffers hold pairs.
 * Swizzled buffers begin at a multiple of eight rows of their swizzle, others where bulk copies may go;
 * views lie where what they view does.
 */

import { findTileIntrinsic } from "../../program/intrinsic-table.ts";
import type { Buffer, Kernel } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
import { visitStatements } from "../../program/walk.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import { reject } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { GpuArchitecture } from "../../target/machine.ts";
import type { BufferPlace, RegisterPlace } from "./kernel-context.ts";
import { monotoneBytes, phaseBytes } from "./sync-emitter.ts";
import { roundUp } from "./thread-layout.ts";
import { isNarrowFloat } from "./values.ts";

export interface MemoryLayout {
  /** Byte offsets of buffers of scope shared. */
  readonly buffers: ReadonlyMap<string, number>;
  readonly counters: ReadonlyMap<string, { readonly offset: number; readonly cells: number }>;
  readonly bytes: number;
  readonly alignment: number;
  /** Asked for at the launch instead of declared: more than 48 KiB, or alignment is made by hand. */
  readonly isDynamic: boolean;
}

/** Alignment that a bulk copy wants of shared memory. */
const bulkAlignment = 128;
const plainAlignment = 16;

export function storageBytes(buffer: Buffer): number {
  const extents = (buffer.capacity ?? buffer.shape).map((e) => constantValue(e));
  const count = extents.reduce<number>((a, b) => {
    invariant(b !== undefined, () => `extents of ${buffer.name} are no constants`);
    return a * b;
  }, buffer.lanes);
  return Math.ceil((count * dtypes[buffer.dtype].bits) / 8);
}

export function layOutMemory(kernel: Kernel, architecture: GpuArchitecture): MemoryLayout {
  const moved = buffersOfBulkCopies(kernel);
  const buffers = new Map<string, number>();
  const counters = new Map<string, { readonly offset: number; readonly cells: number }>();
  const own = kernel.buffers.filter((b) => b.scope === "shared" && b.viewOf === undefined);
  const alignmentOf = (b: Buffer): number => {
    if (b.swizzleBytes !== undefined) return 8 * b.swizzleBytes;
    return moved.has(b.name) ? bulkAlignment : plainAlignment;
  };
  // Views may be what is swizzled or moved.
  const wanted = (b: Buffer): number => Math.max(...viewsOf(kernel, b).map(alignmentOf));
  let at = 0;
  let alignment = plainAlignment;
  for (const b of own.toSorted((x, y) => wanted(y) - wanted(x))) {
    at = roundUp(at, wanted(b));
    alignment = Math.max(alignment, wanted(b));
    for (const view of viewsOf(kernel, b)) buffers.set(view.name, at);
    at += Math.max(...viewsOf(kernel, b).map(storageBytes));
  }
  at = roundUp(at, phaseBytes);
  for (const counter of kernel.counters) {
    const cells = counter.shape.reduce((n, e) => n * (constantValue(e) ?? 1), 1);
    const size = counter.protocol === "phase" ? phaseBytes : monotoneBytes;
    at = roundUp(at, size);
    counters.set(counter.name, { offset: at, cells });
    at += size * cells;
  }
  const isDynamic =
    at > 0 && (at > architecture.sharedBytesPerBlockDefault.value || alignment > plainAlignment);
  const bytes = isDynamic && alignment > plainAlignment ? at + alignment - plainAlignment : at;
  const most = architecture.sharedBytesPerBlock.value;
  if (bytes > most) {
    reject("EMT001", `${architecture.name} has no room for ${bytes} bytes of shared memory`, {
      at: `kernel ${kernel.name}`,
      help: `use smaller tiles or fewer stages: a block has ${most} bytes`,
    });
  }
  return { buffers, counters, bytes, alignment, isDynamic };
}

/** A buffer and all views of it. */
function viewsOf(kernel: Kernel, base: Buffer): readonly Buffer[] {
  return kernel.buffers.filter((b) => baseOf(kernel, b) === base);
}

export function baseOf(kernel: Kernel, buffer: Buffer): Buffer {
  let base = buffer;
  while (base.viewOf !== undefined) base = kernel.buffers.find((b) => b.name === base.viewOf)!;
  return base;
}

function buffersOfBulkCopies(kernel: Kernel): ReadonlySet<string> {
  const names = new Set<string>();
  for (const role of kernel.roles) {
    visitStatements(role.body, (s) => {
      if (s.kind !== "intrinsic" || !s.intrinsic.startsWith("bulk.")) return;
      for (const o of s.operands) if (o.kind === "tile") names.add(o.buffer);
    });
  }
  return names;
}

/** Register buffers of 16-bit floats and bytes that matrix instructions take as fragments. */
export function packedBuffers(body: readonly Statement[]): ReadonlySet<string> {
  const names = new Set<string>();
  visitStatements(body, (s) => {
    if (s.kind !== "intrinsic") return;
    const row = findTileIntrinsic(s.intrinsic);
    s.operands.forEach((operand, i) => {
      const wanted = row?.operands[i];
      if (operand.kind !== "tile" || wanted?.layout !== "fragment") return;
      if (wanted.dtype !== "any" && wordOf(wanted.dtype) > 1) names.add(operand.buffer);
    });
  });
  return names;
}

/** Elements that fragments have in one register. */
function wordOf(dtype: DType): RegisterPlace["perWord"] {
  if (isNarrowFloat(dtype)) return 2;
  return isWholeByte(dtype) ? 4 : 1;
}

function isWholeByte(dtype: DType): boolean {
  return dtype === "u8" || dtype === "i8" || dtype === "f8e4m3fn" || dtype === "f8e5m2";
}

/** Registers of a buffer; a view of one type and count shares those of what it views. */
export function registerPlace(
  kernel: Kernel,
  buffer: Buffer,
  packed: ReadonlySet<string>,
  places: ReadonlyMap<string, BufferPlace>,
): RegisterPlace {
  const base = baseOf(kernel, buffer);
  const shared = base === buffer ? undefined : places.get(base.name);
  const isPairs = (b: Buffer): boolean => isNarrowFloat(b.dtype) && b.lanes % 2 === 0;
  const isPacked = viewsOf(kernel, base).some((b) => packed.has(b.name) || isPairs(b));
  const perWord = isPacked ? wordOf(buffer.dtype) : 1;
  if (shared?.kind === "register") {
    if (shared.buffer.dtype !== buffer.dtype) {
      reject("EMT001", `registers have no view of ${shared.buffer.dtype} as ${buffer.dtype}`, {
        at: `kernel ${kernel.name}: buffer ${buffer.name}`,
      });
    }
    return { ...shared, buffer };
  }
  return { kind: "register", buffer, perWord, registers: new Map() };
}
