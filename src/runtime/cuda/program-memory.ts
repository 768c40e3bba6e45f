/**
 * A program's buffers on a device: one allocation an arena of the memory plan, one a buffer that the plan
 * left alone. Inputs and outputs have page-locked copies in this process, so that a run's transfers can
 * stand in its graph; all else is transferred when it is asked for.
 */
import type { Buffer, Placement, Program } from "../../program/program.ts";
import { arenaSizes, capacityBytes } from "../../program/storage-sizes.ts";
import { storageBytes } from "../../semantics/dtype.ts";
import { evaluate } from "../../semantics/index-expr.ts";
import { DiagnosticError, type Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { BufferMemory } from "../buffer-memory.ts";
import type { CudaDevice, CudaMemory } from "./device.ts";
import { allocateHost, type HostMemory } from "./host-memory.ts";

export class ProgramMemory implements BufferMemory {
  readonly #program: Program;
  readonly #device: CudaDevice;
  readonly #buffers: ReadonlyMap<string, Buffer>;
  readonly #arenas = new Map<Placement["arena"], bigint>();
  readonly #alone = new Map<string, bigint>();
  readonly #staged = new Map<string, HostMemory>();
  readonly #held: CudaMemory[] = [];

  /**
   * Throws DiagnosticError where the device has no room.
   * @param staged whether inputs and outputs have copies in this process
   */
  constructor(program: Program, device: CudaDevice, { staged } = { staged: true }) {
    this.#program = program;
    this.#device = device;
    this.#buffers = new Map(program.buffers.map((b) => [b.name, b]));
    for (const [arena, bytes] of Object.entries(arenaSizes(program))) {
      if (bytes > 0) this.#arenas.set(arena as Placement["arena"], this.take(bytes));
    }
    for (const b of program.buffers) {
      if (b.viewOf !== undefined) continue;
      const bytes = capacityBytes(program, b);
      if (!b.placement) this.#alone.set(b.name, this.take(bytes));
      if (staged && (b.kind === "input" || b.kind === "output")) {
        this.#staged.set(b.name, allocateHost(device, bytes));
      }
    }
  }

  /** More memory of the device, returned with the rest. */
  take(bytes: number): bigint {
    const memory = unwrap(this.#device.allocate(bytes));
    this.#held.push(memory);
    return memory.address;
  }

  addressOf(name: string): bigint {
    const buffer = this.#buffer(name);
    if (buffer.viewOf !== undefined) return this.addressOf(buffer.viewOf);
    if (!buffer.placement) return this.#alone.get(name)!;
    const { arena, byteOffset } = buffer.placement;
    return this.#arenas.get(arena)! + BigInt(evaluate(byteOffset, new Map()));
  }

  /** Enqueues the copies of the inputs to the device, or of the outputs from it. */
  transfer(kind: "input" | "output", at: ReadonlyMap<string, number>, stream: bigint): void {
    const { driver } = this.#device;
    for (const [name, host] of this.#staged) {
      const buffer = this.#buffer(name);
      if (buffer.kind !== kind) continue;
      const elements = buffer.shape.reduce((n, e) => n * evaluate(e, at), buffer.lanes);
      const bytes = storageBytes(buffer.dtype, elements);
      if (bytes === 0) continue;
      const device = this.addressOf(name);
      if (kind === "input") {
        driver.call("cuMemcpyHtoDAsync_v2", device, host.address, bytes, stream);
      } else driver.call("cuMemcpyDtoHAsync_v2", host.address, device, bytes, stream);
    }
  }

  compose(name: string, put: (bytes: Uint8Array) => void): void {
    const bytes = new Uint8Array(capacityBytes(this.#program, this.#buffer(name)));
    put(bytes);
    this.write(name, bytes);
  }

  write(name: string, bytes: Uint8Array): void {
    if (this.#buffer(name).kind === "input") this.#staged.get(name)!.bytes.set(bytes);
    else this.#device.upload(this.addressOf(name), bytes);
  }

  read(name: string, count: number): Uint8Array<ArrayBuffer> {
    const staged = this.#staged.get(name);
    if (staged) return staged.bytes.slice(0, count);
    const bytes = new Uint8Array(count);
    this.#device.download(this.addressOf(name), bytes);
    return bytes;
  }

  readInto(name: string, bytes: Uint8Array): void {
    const staged = this.#staged.get(name);
    if (staged) bytes.set(staged.bytes.subarray(0, bytes.length));
    else this.#device.download(this.addressOf(name), bytes);
  }

  fill(name: string, value: number): void {
    this.#staged.get(name)?.bytes.fill(value);
    const bytes = capacityBytes(this.#program, this.#buffer(name));
    this.#device.fill(this.addressOf(name), value, bytes);
  }

  copy(from: string, to: string): void {
    const bytes = capacityBytes(this.#program, this.#buffer(from));
    this.#device.copy(this.addressOf(to), this.addressOf(from), bytes);
  }

  /** The same program's buffers over again, with what they hold now. */
  duplicate(): ProgramMemory {
    const twin = new ProgramMemory(this.#program, this.#device, { staged: false });
    this.#held.slice(0, twin.#held.length).forEach(({ address, bytes }, i) => {
      this.#device.copy(twin.#held[i]!.address, address, bytes);
    });
    return twin;
  }

  dispose(): void {
    for (const memory of this.#held.splice(0)) this.#device.free(memory);
  }

  #buffer(name: string): Buffer {
    const buffer = this.#buffers.get(name);
    invariant(buffer, () => `no buffer ${name}`);
    return buffer;
  }
}

function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new DiagnosticError(result.diagnostics);
}
