/**
 * The objects whose bytes the threads of a cooperative kernel access (trace.ts): a buffer of scope memory, that
 * of an instance, that of a thread. In: the buffers of a launch, whose sizes are constants. Out: the bytes that
 * boxes of elements are, and how fine each object has to be looked at.
 */
import { dtypes } from "../../semantics/dtype.ts";
import type { IndexExpr } from "../../semantics/index-expr.ts";
import type { Buffer } from "../program.ts";
import { type LaunchView, rootOf } from "./launch-view.ts";

/** A buffer of one instance or thread, or of scope memory: the key says whose. */
export interface ByteRange {
  readonly object: string;
  readonly from: number;
  readonly to: number;
}

export interface Touch {
  readonly write: boolean;
  readonly ranges: readonly ByteRange[];
}

export interface ObjectInfo {
  readonly byteCount: number;
  /** Bytes that are looked at together: every write is of whole ones. */
  granule: number;
  readonly scope: "memory" | "shared" | "private";
  /** Program buffer behind it. */
  readonly root: string | undefined;
}

/** Which thread it is; what its buffers are is found once. */
export interface Owner {
  readonly instance: number;
  readonly role: { readonly name: string };
  readonly copy: number;
  readonly number: number;
  readonly env: ReadonlyMap<string, number>;
  readonly places: Map<Buffer, BufferPlace>;
}

/** A buffer as a thread has it. */
export interface BufferPlace {
  readonly object: string;
  readonly info: ObjectInfo;
  readonly shape: readonly number[];
  /** Bits of an element with all its lanes. */
  readonly bits: number;
}

/** How an index is evaluated and how a walk is left. */
export interface TraceTools {
  readonly value: (e: IndexExpr, env: ReadonlyMap<string, number>) => number;
  readonly refuse: (what: string) => never;
  readonly outside: (what: string) => never;
}

/** What is accessed; with `clips`, elements outside are left out, else they are a fault. */
export interface Box {
  readonly index: readonly number[];
  /** Of the last axes. */
  readonly extents: readonly number[];
  readonly clips: boolean;
}

export class TracedObjects {
  readonly #view: LaunchView;
  readonly #tools: TraceTools;
  readonly #granules: Readonly<Record<ObjectInfo["scope"], number>>;
  readonly #infos = new Map<string, ObjectInfo>();

  /** @param granules what objects begin with; writes of less make them smaller */
  constructor(
    view: LaunchView,
    tools: TraceTools,
    granules: Readonly<Record<ObjectInfo["scope"], number>> | undefined,
  ) {
    this.#view = view;
    this.#tools = tools;
    const sizes = [...view.buffers.values()].map((b) => Math.max(1, dtypes[b.dtype].bits / 8));
    const least = Math.min(4, ...sizes);
    this.#granules = granules ?? { memory: least, shared: least, private: least };
  }

  get infos(): ReadonlyMap<string, ObjectInfo> {
    return this.#infos;
  }

  placeOf(buffer: Buffer, owner: Owner): BufferPlace {
    const known = owner.places.get(buffer);
    if (known) return known;
    const object = this.#object(buffer, owner);
    const place: BufferPlace = {
      object,
      info: this.#infos.get(object)!,
      shape: buffer.shape.map((e) => this.#tools.value(e, owner.env)),
      bits: dtypes[buffer.dtype].bits * buffer.lanes,
    };
    owner.places.set(buffer, place);
    return place;
  }

  #object(buffer: Buffer, owner: Owner): string {
    const { kernel, roots: allRoots, buffers } = this.#view;
    const roots = allRoots.get(buffer.name);
    if (roots && roots.length > 1) this.#tools.refuse(`table ${buffer.name}`);
    const own = kernel.buffers;
    const name = roots?.[0] ?? rootOf(own, buffer.name);
    const root = roots ? buffers.get(name)! : own.find((b) => b.name === name)!;
    const whose = { memory: "", shared: `@${owner.instance}` } as const;
    const key =
      root.scope === "memory" || root.scope === "shared"
        ? `${name}${whose[root.scope]}`
        : `${name}@${owner.instance}.${owner.role.name}.${owner.copy}.${owner.number}`;
    if (this.#infos.has(key)) return key;
    const count = root.shape.reduce((n, e) => n * this.#tools.value(e, owner.env), root.lanes);
    const byteCount = Math.ceil((count * dtypes[root.dtype].bits) / 8);
    if (byteCount > 1 << 24) this.#tools.refuse(`${name} of ${byteCount} bytes`);
    const scope = root.scope === "memory" || root.scope === "shared" ? root.scope : "private";
    const granule = this.#granules[scope];
    this.#infos.set(key, { byteCount, granule, scope, root: roots ? name : undefined });
    return key;
  }

  /** The bytes of elements [start, end). */
  rangeOf({ object, bits }: BufferPlace, start: number, end: number): ByteRange {
    return { object, from: Math.floor((start * bits) / 8), to: Math.ceil((end * bits) / 8) };
  }

  /** Byte ranges of a box, those behind each other as one; outside is a fault, or left out. */
  boxOf(buffer: Buffer, box: Box, owner: Owner): ByteRange[] {
    const place = this.placeOf(buffer, owner);
    const { shape } = place;
    this.checkBox(buffer, box, owner);
    const lead = box.index.length - box.extents.length;
    const ranges: ByteRange[] = [];
    let [start, end] = [0, 0];
    const add = (from: number, to: number): void => {
      if (from === end && end > start) {
        end = to;
        return;
      }
      if (end > start) ranges.push(this.rangeOf(place, start, end));
      [start, end] = [from, to];
    };
    const visit = (axis: number, offset: number): void => {
      const extent = shape[axis];
      if (extent === undefined) {
        add(offset, offset + 1);
        return;
      }
      const first = box.index[axis]!;
      const count = axis < lead ? 1 : box.extents[axis - lead]!;
      const from = Math.max(0, first);
      const to = Math.min(extent, first + count);
      if (to <= from) return;
      if (axis === shape.length - 1) add(offset * extent + from, offset * extent + to);
      else for (let i = from; i < to; i++) visit(axis + 1, offset * extent + i);
    };
    visit(0, 0);
    if (end > start) ranges.push(this.rangeOf(place, start, end));
    return ranges;
  }

  /** A fault where a box that does not clip lies outside. */
  checkBox(buffer: Buffer, box: Box, owner: Owner): void {
    if (box.clips) return;
    const { shape } = this.placeOf(buffer, owner);
    const lead = box.index.length - box.extents.length;
    for (let axis = 0; axis < shape.length; axis++) {
      const first = box.index[axis]!;
      const count = axis < lead ? 1 : box.extents[axis - lead]!;
      if (first < 0 || first + count > shape[axis]!) this.fail(buffer, box, shape);
    }
  }

  fail({ name }: Buffer, { index, extents }: Box, shape: readonly number[]): never {
    return this.#tools.outside(`${name}[${index}] (box [${extents}]) of shape [${shape}]`);
  }

  /** Granules of an object become as small as the ranges that are written. */
  narrow(ranges: readonly ByteRange[]): void {
    for (const { object, from, to } of ranges) {
      const info = this.#infos.get(object)!;
      while (from % info.granule !== 0 || to % info.granule !== 0) info.granule /= 2;
    }
  }
}
