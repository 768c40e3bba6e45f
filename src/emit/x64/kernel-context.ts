/** What the parts of the kernel emitter share while one kernel is printed. */
import { flatIndex } from "../../program/addresses.ts";
import type { Buffer } from "../../program/program.ts";
import type { DType } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { reject } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import { type MathFunction, mathWord } from "./context-block.ts";
import { contextPointer, type FunctionCode, offsetBy, scratchA } from "./function-code.ts";
import type { IndexScope } from "./index-scope.ts";
import { type Chunk, chunksOf, holdingOf, isFloat, scalarBits, storageBytes } from "./lanes.ts";
import { memory, type Register, vec } from "./operand.ts";
import { type Features, VectorCode } from "./vector-code.ts";

/** A buffer in memory: `base` is the address of its first byte over index variables. */
export interface MemoryPlace {
  readonly kind: "memory";
  readonly buffer: Buffer;
  readonly base: ix.IndexExpr;
}

/** A buffer in registers: for each element the chunks of its value. */
export interface RegisterPlace {
  readonly kind: "register";
  readonly buffer: Buffer;
  readonly elements: Map<number, readonly Register[]>;
}

export type BufferPlace = MemoryPlace | RegisterPlace;

interface ContextFields {
  readonly f: FunctionCode;
  readonly scope: IndexScope;
  readonly places: ReadonlyMap<string, BufferPlace>;
  readonly features: Features;
  readonly kernel: string;
}

export class KernelContext {
  readonly f: FunctionCode;
  readonly scope: IndexScope;
  readonly places: ReadonlyMap<string, BufferPlace>;
  readonly features: Features;
  readonly kernel: string;
  /** The statement being printed, for diagnostics. */
  statement = "";
  /** The last place that an index array was asked about: two accesses may share one. */
  readonly #addresses = new WeakMap<
    readonly ix.IndexExpr[],
    { readonly place: MemoryPlace; readonly address: ix.IndexExpr }
  >();

  constructor(fields: ContextFields) {
    this.f = fields.f;
    this.scope = fields.scope;
    this.places = fields.places;
    this.features = fields.features;
    this.kernel = fields.kernel;
  }

  /** Gives up on the program: the statement cannot be spelled in x86-64. */
  refuse(what: string, help?: string): never {
    const at = `kernel ${this.kernel}: ${this.statement}`;
    return reject("EMT001", `x86-64 has no spelling for ${what}`, {
      at,
      ...(help === undefined ? {} : { help }),
    });
  }

  place(name: string): BufferPlace {
    const place = this.places.get(name);
    invariant(place, () => `kernel ${this.kernel}: unknown buffer ${name}`);
    return place;
  }

  /** Address of an element's first byte. */
  address(place: MemoryPlace, index: readonly ix.IndexExpr[]): ix.IndexExpr {
    const known = this.#addresses.get(index);
    if (known?.place === place) return known.address;
    const { buffer, base } = place;
    const bytes = storageBytes(buffer.dtype);
    invariant(bytes >= 1, () => `elements of ${buffer.dtype} have no address of their own`);
    const address = ix.add(base, ix.mul(bytes * buffer.lanes, flatIndex(buffer, index)));
    this.#addresses.set(index, { place, address });
    return address;
  }

  /** The registers of an element of a register buffer. */
  element(place: RegisterPlace, index: readonly ix.IndexExpr[]): readonly Register[] {
    const { buffer, elements } = place;
    const flat = ix.constantValue(flatIndex(buffer, index));
    if (flat === undefined) this.refuse(`a varying index of register buffer ${buffer.name}`);
    const known = elements.get(flat);
    if (known) return known;
    const registers = this.newRegisters(buffer.dtype, buffer.lanes);
    elements.set(flat, registers);
    return registers;
  }

  chunks(dtype: DType, lanes: number): readonly Chunk[] {
    return chunksOf(holdingOf(dtype), lanes, this.features.vectorBits);
  }

  newRegisters(dtype: DType, lanes: number): readonly Register[] {
    if (lanes === 1) return [this.newScalar(dtype)];
    return this.chunks(dtype, lanes).map(({ bits }) => this.f.vec(bits));
  }

  newScalar(dtype: DType): Register {
    return isFloat(dtype) ? this.f.vec(128) : this.f.gpr(scalarBits(dtype));
  }

  vectorCode(bits: Register["bits"], dtype: DType): VectorCode {
    return new VectorCode(this.f, this.features, bits, dtype === "f64" ? "f64" : "f32");
  }

  /** A function of the C library on f64 scalars. Arguments travel over the stack: calls keep nothing. */
  callMath(name: MathFunction, args: readonly Register[]): Register {
    const { f } = this;
    const slot = f.slot(16);
    args.forEach((a, i) => {
      f.emit("vmovsd", offsetBy(slot, 8 * i), a);
    });
    f.emit("vzeroupper");
    args.forEach((_, i) => {
      f.emit("vmovsd", vec(i, 128), offsetBy(slot, 8 * i));
    });
    f.emit("mov", scratchA, memory(contextPointer, mathWord(name)));
    f.call(scratchA);
    const result = f.vec(128);
    f.emit("vmovaps", result, vec(0, 128));
    return result;
  }
}
