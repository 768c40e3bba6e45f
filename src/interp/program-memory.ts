/**
 * Memory of a program run: byte storage with a shadow that knows, per granule, who wrote last and who
 * read since, so that a read of something never written, two unordered accesses of which one writes,
 * and an asynchronous access to ordinary writes without a fence between are faults at once, whatever
 * the values. Fresh storage is poisoned with 0xff bytes (NaN in every float format).
 *
 * A View is a buffer bound to a storage: shape, dtype, swizzle; it turns indices into addresses.
 */
import { type DType, dtypes, isBigDType } from "../semantics/dtype.ts";
import { decodeFloat, decodeTableOf, encodeFloat } from "../semantics/float-codec.ts";
import type { ScalarValue } from "../semantics/scalar-meaning.ts";
import type { Agent } from "./program-clock.ts";
import { raise } from "./program-fault.ts";

/** Bits [from, to) as part of the buffer `owner` (views of a buffer share its number). */
export interface BitSpan {
  readonly from: number;
  readonly to: number;
  readonly owner: number;
}

/** Bits of a granule of shadow: the smallest element that stands in the storage. */
export type Granule = 2 | 4 | 8 | 16 | 32;

/**
 * What the shadow keeps of a granule: who wrote it last, -1 for nobody; through which buffer, whose bytes mean
 * nothing to another one; whether the ordinary way (1) or the asynchronous one (0); and who read it since, -1 for
 * nobody, -2 for several.
 */
const [writeSlot, writeClock, writeOwner, writeOrdinary, readSlot, readClock] = [0, 1, 2, 3, 4, 5];
const fields = 6;

/** Bytes with a shadow. */
export class Storage {
  readonly label: string;
  readonly bytes: Uint8Array;
  readonly data: DataView;
  readonly scope: "memory" | "shared" | "register";
  /** Logarithm of a granule's bits. */
  readonly #shift: number;
  /** `fields` numbers of each granule, at these places. */
  readonly #marks: Int32Array;
  /** Readers of granules that several unordered agents have read since the last write. */
  #readers: Map<number, Map<number, number>> | undefined;

  constructor(label: string, byteCount: number, granule: Granule, scope: Storage["scope"]) {
    this.label = label;
    this.scope = scope;
    const unit = Math.max(1, granule / 8);
    this.bytes = new Uint8Array(Math.ceil(byteCount / unit) * unit).fill(0xff);
    this.data = new DataView(this.bytes.buffer);
    this.#shift = Math.log2(granule);
    const count = (8 * this.bytes.length) / granule;
    this.#marks = new Int32Array(fields * count).fill(-1);
  }

  /** Records and checks a read of bits [from, to) through a view. */
  noteRead(agent: Agent, from: number, to: number, view: View): void {
    const marks = this.#marks;
    const { owner } = view;
    const isOrdinary = agent.proxy === "ordinary";
    const last = (to - 1) >>> this.#shift;
    for (let g = from >>> this.#shift; g <= last; g++) {
      const slot = marks[fields * g + writeSlot];
      if (slot === -1 || marks[fields * g + writeOwner] !== owner) {
        this.#raiseUnwritten(agent, g, from, view);
      }
      // What it wrote itself needs no order, but for the ways of memory.
      if (slot !== agent.slot || !isOrdinary) this.#checkAfterWrite(agent, g, from, view);
      this.#addReader(agent, g);
    }
  }

  /** Records and checks a write of bits [from, to) through a view. */
  noteWrite(agent: Agent, from: number, to: number, view: View): void {
    const marks = this.#marks;
    const { owner } = view;
    const isOrdinary = agent.proxy === "ordinary";
    const last = (to - 1) >>> this.#shift;
    for (let g = from >>> this.#shift; g <= last; g++) {
      const at = fields * g;
      const slot = marks[at + writeSlot];
      const isOwn = slot === agent.slot && isOrdinary;
      if (slot !== -1 && !isOwn) this.#checkAfterWrite(agent, g, from, view);
      if (marks[at + readSlot] !== -1) this.#checkAfterReads(agent, g, from, view);
      marks[at + writeSlot] = agent.slot;
      marks[at + writeClock] = agent.clock;
      marks[at + writeOwner] = owner;
      marks[at + writeOrdinary] = isOrdinary ? 1 : 0;
      marks[at + readSlot] = -1;
    }
  }

  /** The first bit of the span that its buffer has not written, or -1. */
  firstUnwritten(span: BitSpan): number {
    const last = (span.to - 1) >>> this.#shift;
    for (let g = span.from >>> this.#shift; span.to > span.from && g <= last; g++) {
      const isWritten = this.#get(g, writeSlot) !== -1 && this.#get(g, writeOwner) === span.owner;
      if (!isWritten) return Math.max(span.from, g * 2 ** this.#shift);
    }
    return -1;
  }

  #get(g: number, field: number): number {
    return this.#marks[fields * g + field]!;
  }

  /** The element of an access from bit `from` on to which granule `g` belongs. */
  #nameOf(g: number, from: number, view: View): string {
    const bit = Math.max(from, g * 2 ** this.#shift);
    return `${view.name} at element ${view.scalarAt(bit)}`;
  }

  #raiseUnwritten(agent: Agent, g: number, from: number, view: View): never {
    const reads = `${agent.label} reads ${this.#nameOf(g, from, view)}`;
    const isWritten = this.#get(g, writeSlot) !== -1;
    return raise(
      "uninitialised",
      `${reads}${isWritten ? ", overwritten through another buffer" : ""}`,
    );
  }

  #checkAfterWrite(agent: Agent, g: number, from: number, view: View): void {
    const slot = this.#get(g, writeSlot);
    const clock = this.#get(g, writeClock);
    // Matrix instructions of one group see each other's accumulators in order of issue.
    if (this.scope === "register" && slot === agent.slot) return;
    if (clock > agent.knows.seen.of(slot)) {
      const touches = `${agent.label} touches ${this.#nameOf(g, from, view)}`;
      raise("race", `${touches}, not ordered after a write of it`);
    }
    if (agent.proxy === "ordinary" || this.#get(g, writeOrdinary) === 0) return;
    const { fencedShared, fencedMemory } = agent.knows;
    const fenced = this.scope === "shared" ? fencedShared : fencedMemory;
    if (this.scope !== "register" && clock > fenced.of(slot)) {
      const touches = `${agent.label} touches ${this.#nameOf(g, from, view)}`;
      raise("missingFence", `${touches}, written the ordinary way`);
    }
  }

  #checkAfterReads(agent: Agent, g: number, from: number, view: View): void {
    const slot = this.#get(g, readSlot);
    const isOrdered =
      slot === -2
        ? [...this.#readers!.get(g)!].every(([reader, at]) => this.#isOrdered(agent, reader, at))
        : this.#isOrdered(agent, slot, this.#get(g, readClock));
    if (!isOrdered) {
      const writes = `${agent.label} writes ${this.#nameOf(g, from, view)}`;
      raise("race", `${writes}, not ordered after a read of it`);
    }
    if (slot === -2) this.#readers!.delete(g);
  }

  /** Whether an agent that writes knows of a read. */
  #isOrdered(agent: Agent, reader: number, clock: number): boolean {
    if (this.scope === "register" && reader === agent.slot) return true;
    return clock <= agent.knows.seen.of(reader);
  }

  #addReader(agent: Agent, g: number): void {
    const slot = this.#get(g, readSlot);
    if (slot === -2) {
      this.#readers!.get(g)!.set(agent.slot, agent.clock);
      return;
    }
    const known = slot === -1 || this.#get(g, readClock) <= agent.knows.seen.of(slot);
    if (known || slot === agent.slot) {
      this.#marks[fields * g + readSlot] = agent.slot;
      this.#marks[fields * g + readClock] = agent.clock;
      return;
    }
    const both = [[slot, this.#get(g, readClock)] as const, [agent.slot, agent.clock] as const];
    this.#readers ??= new Map();
    this.#readers.set(g, new Map(both));
    this.#marks[fields * g + readSlot] = -2;
  }
}

/**
 * The granule of storage that holds elements of these dtypes. Elements below a byte have one each where threads
 * store them without their neighbours (on blocks), else neighbours are written with them.
 */
export function granuleOf(kinds: readonly DType[], isBelowByte: boolean): Granule {
  const bits = Math.min(32, ...kinds.map((dtype) => dtypes[dtype].bits));
  return Math.max(isBelowByte ? 2 : 8, bits) as Granule;
}

type Reader = (data: DataView, byte: number, bit: number) => ScalarValue;
type Writer = (data: DataView, byte: number, bit: number, value: ScalarValue) => void;

function makeReader(dtype: DType): Reader {
  const { bits, kind } = dtypes[dtype];
  if (dtype === "i64") return (d, at) => d.getBigInt64(at, true);
  if (dtype === "u64") return (d, at) => d.getBigUint64(at, true);
  if (dtype === "f64") return (d, at) => d.getFloat64(at, true);
  if (dtype === "f32") return (d, at) => d.getFloat32(at, true);
  const raw: (d: DataView, at: number, bit: number) => number =
    bits === 32
      ? (d, at) => d.getUint32(at, true)
      : bits === 16
        ? (d, at) => d.getUint16(at, true)
        : bits === 8
          ? (d, at) => d.getUint8(at)
          : (d, at, bit) => (d.getUint8(at) >> bit) & (2 ** bits - 1);
  if (kind === "float" || kind === "exponent") {
    if (bits > 16) return (d, at, bit) => decodeFloat(dtype, raw(d, at, bit));
    const values = decodeTableOf(dtype);
    return (d, at, bit) => values[raw(d, at, bit)]!;
  }
  if (kind !== "int") return raw;
  const shift = 32 - bits;
  return (d, at, bit) => (raw(d, at, bit) << shift) >> shift;
}

function makeWriter(dtype: DType): Writer {
  const { bits, kind } = dtypes[dtype];
  if (dtype === "i64") return (d, at, _, v) => d.setBigInt64(at, BigInt(v), true);
  if (dtype === "u64") return (d, at, _, v) => d.setBigUint64(at, BigInt(v), true);
  if (dtype === "f64") return (d, at, _, v) => d.setFloat64(at, Number(v), true);
  if (dtype === "f32") return (d, at, _, v) => d.setFloat32(at, Number(v), true);
  const encoded = kind === "float" || kind === "exponent";
  const pattern = (v: ScalarValue): number => (encoded ? encodeFloat(dtype, Number(v)) : Number(v));
  if (bits === 32) return (d, at, _, v) => d.setUint32(at, pattern(v), true);
  if (bits === 16) return (d, at, _, v) => d.setUint16(at, pattern(v), true);
  if (bits === 8) return (d, at, _, v) => d.setUint8(at, pattern(v));
  const mask = 2 ** bits - 1;
  return (d, at, bit, v) =>
    d.setUint8(at, (d.getUint8(at) & ~(mask << bit)) | ((pattern(v) & mask) << bit));
}

/** Views of an element type share these: there is one of each register buffer for each thread. */
const readers = new Map<DType, Reader>();
const writers = new Map<DType, Writer>();

function kept<T>(known: Map<DType, T>, dtype: DType, make: (dtype: DType) => T): T {
  const made = known.get(dtype) ?? make(dtype);
  known.set(dtype, made);
  return made;
}

/** What a view is made of. */
export interface ViewParts {
  readonly name: string;
  readonly storage: Storage;
  readonly byteOffset: number;
  readonly owner: number;
  readonly dtype: DType;
  readonly lanes: number;
  readonly shape: readonly number[];
  readonly swizzleBytes: number;
}

/** A buffer bound to storage. */
export class View {
  readonly name: string;
  readonly storage: Storage;
  readonly dtype: DType;
  readonly lanes: number;
  readonly shape: readonly number[];
  readonly swizzleBytes: number;
  readonly byteOffset: number;
  readonly owner: number;
  readonly elementBits: number;
  readonly #read: Reader;
  readonly #write: Writer;

  constructor(parts: ViewParts) {
    this.name = parts.name;
    this.storage = parts.storage;
    this.dtype = parts.dtype;
    this.lanes = parts.lanes;
    this.shape = parts.shape;
    this.swizzleBytes = parts.swizzleBytes;
    this.byteOffset = parts.byteOffset;
    this.owner = parts.owner;
    this.elementBits = dtypes[parts.dtype].bits;
    this.#read = kept(readers, parts.dtype, makeReader);
    this.#write = kept(writers, parts.dtype, makeWriter);
  }

  get zero(): ScalarValue {
    return isBigDType(this.dtype) ? 0n : 0;
  }

  /** Scalars (elements times lanes) in the view. */
  get count(): number {
    return this.shape.reduce((a, b) => a * b, this.lanes);
  }

  get byteCount(): number {
    return Math.ceil((this.count * this.elementBits) / 8);
  }

  /** Its part of the storage. */
  get bytes(): Uint8Array {
    return this.storage.bytes.subarray(this.byteOffset, this.byteOffset + this.byteCount);
  }

  /** All bits of the view. */
  get span(): BitSpan {
    const from = 8 * this.byteOffset;
    return { from, to: from + this.count * this.elementBits, owner: this.owner };
  }

  /** Number of the first scalar at `index`, after a bounds check of `span` scalars from there. */
  offsetOf(index: readonly number[], span: number): number {
    let offset = 0;
    const rank = this.shape.length;
    const last = this.lanes === 1 ? span : 1;
    for (let axis = 0; axis < rank; axis++) {
      const i = index[axis]!;
      const extent = this.shape[axis]!;
      if (i < 0 || i + (axis === rank - 1 ? last : 1) > extent) this.outOfBounds(index, span);
      offset = offset * extent + i;
    }
    return offset * this.lanes;
  }

  /** Whether `count` elements from `index` on lie inside, along the last axis. */
  contains(index: readonly number[], count = 1): boolean {
    const last = this.shape.length - 1;
    return this.shape.every((extent, axis) => {
      const i = index[axis]!;
      return i >= 0 && i + (axis === last ? count : 1) <= extent;
    });
  }

  outOfBounds(index: readonly number[], span: number): never {
    const where = `${this.name}[${index.join(", ")}]`;
    return raise("outOfBounds", `${where} (${span} elements) of shape [${this.shape.join(", ")}]`);
  }

  /** Byte address of scalar `offset`; swizzle XORs 16-byte chunks by rows of the pattern. */
  addressOf(offset: number, swizzleBytes = this.swizzleBytes): number {
    const linear = Math.floor((offset * this.elementBits) / 8);
    return this.byteOffset + swizzled(linear, swizzleBytes);
  }

  /** The scalar in whose bits, as swizzled, bit `bit` of the storage lies. */
  scalarAt(bit: number): number {
    const byte = Math.floor(bit / 8) - this.byteOffset;
    // What is swizzled twice is as it was.
    const linear = 8 * swizzled(byte, this.swizzleBytes) + (bit % 8);
    return Math.floor(linear / this.elementBits);
  }

  readAt(offset: number, swizzleBytes = this.swizzleBytes): ScalarValue {
    const bit = (offset * this.elementBits) % 8;
    return this.#read(this.storage.data, this.addressOf(offset, swizzleBytes), bit);
  }

  writeAt(offset: number, value: ScalarValue, swizzleBytes = this.swizzleBytes): void {
    const bit = (offset * this.elementBits) % 8;
    this.#write(this.storage.data, this.addressOf(offset, swizzleBytes), bit, value);
  }

  /** Shadow of a run of scalars. */
  note(agent: Agent, access: "read" | "write", offset: number, span: number): void {
    if (span <= 0) return;
    const bits = this.elementBits;
    if (this.swizzleBytes === 0) {
      const from = 8 * this.byteOffset + offset * bits;
      this.#noteBits(agent, access, from, from + span * bits);
      return;
    }
    // Chunks stay whole.
    const chunk = chunkBits / bits;
    const end = offset + span;
    for (let i = offset; i < end; ) {
      const next = Math.min(end, i - (i % chunk) + chunk);
      const from = 8 * this.addressOf(i) + ((i * bits) % 8);
      this.#noteBits(agent, access, from, from + (next - i) * bits);
      i = next;
    }
  }

  #noteBits(agent: Agent, access: "read" | "write", from: number, to: number): void {
    if (access === "read") this.storage.noteRead(agent, from, to, this);
    else this.storage.noteWrite(agent, from, to, this);
  }
}

/** What a swizzle moves as a whole. */
const chunkBits = 128;

function swizzled(byte: number, swizzleBytes: number): number {
  if (swizzleBytes === 0) return byte;
  const chunks = swizzleBytes / 16;
  return byte ^ (((byte >> 7) & (chunks - 1)) << 4);
}
