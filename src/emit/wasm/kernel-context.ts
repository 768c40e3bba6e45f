/** What the parts of the kernel emitter share while one kernel is printed. */
import { flatIndex } from "../../program/addresses.ts";
import type { Buffer } from "../../program/program.ts";
import type { Statement } from "../../program/statement.ts";
import type { DType } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { reject } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { FunctionBuilder, Local } from "./function-builder.ts";
import type { IndexScope } from "./index-scope.ts";
import { chunkCount, findRepresentation, storageBytes } from "./lanes.ts";
import type { Library } from "./library.ts";

/** A buffer in linear memory: `base` is the address of its first byte over index variables. */
export interface MemoryPlace {
  readonly kind: "memory";
  readonly buffer: Buffer;
  readonly base: ix.IndexExpr;
}

/** A buffer in locals: for each element the chunks of its value. */
export interface RegisterPlace {
  readonly kind: "register";
  readonly buffer: Buffer;
  readonly elements: Map<number, readonly Local[]>;
}

export type BufferPlace = MemoryPlace | RegisterPlace;

export class KernelContext {
  readonly f: FunctionBuilder;
  readonly scope: IndexScope;
  readonly library: Library;
  readonly places: ReadonlyMap<string, BufferPlace>;
  /** f32x4.relaxed_madd may be used for fma. */
  readonly relaxedFma: boolean;
  readonly kernel: string;
  /** Address of this thread's place for parked registers. */
  readonly parking: ix.IndexExpr;
  /** The statement being printed, for diagnostics. */
  statement = "";
  /** The last place that an index array was asked about: two accesses may share one. */
  readonly #addresses = new WeakMap<
    readonly ix.IndexExpr[],
    { readonly place: MemoryPlace; readonly address: ix.IndexExpr }
  >();

  constructor(fields: {
    f: FunctionBuilder;
    scope: IndexScope;
    library: Library;
    places: ReadonlyMap<string, BufferPlace>;
    relaxedFma: boolean;
    kernel: string;
    parking: ix.IndexExpr;
  }) {
    this.f = fields.f;
    this.scope = fields.scope;
    this.library = fields.library;
    this.places = fields.places;
    this.relaxedFma = fields.relaxedFma;
    this.kernel = fields.kernel;
    this.parking = fields.parking;
  }

  /** Gives up on the program: the statement cannot be spelled in WebAssembly. */
  refuse(what: string, help?: string): never {
    const at = `kernel ${this.kernel}: ${this.statement}`;
    return reject("EMT001", `WebAssembly has no spelling for ${what}`, {
      at,
      ...(help === undefined ? {} : { help }),
    });
  }

  place(name: string): BufferPlace {
    const place = this.places.get(name);
    invariant(place, () => `kernel ${this.kernel}: unknown buffer ${name}`);
    return place;
  }

  /** Address of the first byte of an element of at least one (packed-memory.ts has the others). */
  address(place: MemoryPlace, index: readonly ix.IndexExpr[]): ix.IndexExpr {
    const known = this.#addresses.get(index);
    if (known?.place === place) return known.address;
    const { buffer, base } = place;
    const bytes = storageBytes(buffer.dtype);
    const address = ix.add(base, ix.mul(bytes * buffer.lanes, flatIndex(buffer, index)));
    this.#addresses.set(index, { place, address });
    return address;
  }

  /** The locals of an element of a register buffer. */
  element(place: RegisterPlace, index: readonly ix.IndexExpr[]): readonly Local[] {
    const { buffer, elements } = place;
    const flat = ix.constantValue(flatIndex(buffer, index));
    if (flat === undefined) this.refuse(`a varying index of register buffer ${buffer.name}`);
    const known = elements.get(flat);
    if (known) return known;
    const locals = this.newLocals(buffer.dtype, buffer.lanes);
    elements.set(flat, locals);
    return locals;
  }

  chunks(dtype: DType, lanes: number): number {
    const representation = findRepresentation(dtype);
    if (!representation) this.refuse(`values of type ${dtype}`, "convert the model to f32");
    if (lanes === 1) return 1;
    return chunkCount(representation.shape, lanes);
  }

  newLocals(dtype: DType, lanes: number): readonly Local[] {
    const count = this.chunks(dtype, lanes);
    const type = lanes > 1 ? "v128" : findRepresentation(dtype)!.scalar;
    return Array.from({ length: count }, () => this.f.local(type));
  }

  at(statement: Statement, text: string): void {
    this.statement = text;
    this.f.mark(`${this.kernel}: ${statement.kind === "for" ? `for ${statement.variable}` : text}`);
  }
}
