/** What the parts of the kernel emitter share while one role of a kernel is printed. */
import { flatIndex } from "../../program/addresses.ts";
import type { Buffer } from "../../program/program.ts";
import type { DType } from "../../semantics/dtype.ts";
import { dtypes } from "../../semantics/dtype.ts";
import * as ix from "../../semantics/index-expr.ts";
import { reject } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { GpuArchitecture, GpuFeature } from "../../target/machine.ts";
import type { IndexScope } from "./index-scope.ts";
import type { Operand, PtxCode, RegisterClass } from "./ptx-code.ts";
import { classOfRegisters, findClass } from "./values.ts";

/** A buffer with addresses: `base` is that of its first byte over index variables. */
export interface MemoryPlace {
  readonly kind: "memory";
  readonly space: "global" | "shared" | "local";
  readonly buffer: Buffer;
  readonly base: ix.IndexExpr;
  /** Nothing writes it while the kernel runs. */
  readonly isConstant: boolean;
  readonly swizzleBytes: 0 | 32 | 64 | 128;
}

/** A buffer in registers: by flat element and lane, in words of `perWord` of them. */
export interface RegisterPlace {
  readonly kind: "register";
  readonly buffer: Buffer;
  /** 16-bit floats stand in pairs and bytes in fours where matrix instructions take them so; else 1. */
  readonly perWord: 1 | 2 | 4;
  readonly registers: Map<number, Operand>;
}

export type BufferPlace = MemoryPlace | RegisterPlace;

export class KernelContext {
  readonly code: PtxCode;
  readonly scope: IndexScope;
  readonly places: ReadonlyMap<string, BufferPlace>;
  readonly architecture: GpuArchitecture;
  readonly kernel: string;
  /** The statement being printed, for diagnostics. */
  statement = "";
  /** Threads of a warp have told each other values, and a barrier came behind that. */
  hasExchanged = false;
  isBehindFold = false;
  /** The last place that an index array was asked about: two accesses may share one. */
  readonly #addresses = new WeakMap<
    readonly ix.IndexExpr[],
    { readonly place: MemoryPlace; readonly address: ix.IndexExpr }
  >();

  constructor(fields: {
    code: PtxCode;
    scope: IndexScope;
    places: ReadonlyMap<string, BufferPlace>;
    architecture: GpuArchitecture;
    kernel: string;
  }) {
    this.code = fields.code;
    this.scope = fields.scope;
    this.places = fields.places;
    this.architecture = fields.architecture;
    this.kernel = fields.kernel;
  }

  /** Gives up on the program: the statement cannot be spelled for the architecture. */
  refuse(what: string, help?: string): never {
    const at = `kernel ${this.kernel}: ${this.statement}`;
    return reject("EMT001", `${this.architecture.name} has no spelling for ${what}`, {
      at,
      ...(help === undefined ? {} : { help }),
    });
  }

  has(feature: GpuFeature): boolean {
    return this.architecture.features.includes(feature);
  }

  place(name: string): BufferPlace {
    const place = this.places.get(name);
    invariant(place, () => `kernel ${this.kernel}: unknown buffer ${name}`);
    return place;
  }

  /** The class of a scalar of the dtype. */
  classOf(dtype: DType): RegisterClass {
    return findClass(dtype) ?? this.refuse(`values of type ${dtype}`, "convert the model to f32");
  }

  elementBytes(buffer: Buffer): number {
    const { bits } = dtypes[buffer.dtype];
    if (bits < 8) this.refuse(`copies of packed ${buffer.dtype}`, "unpack the weights ahead");
    return bits / 8;
  }

  /** Address of an element's first byte, before any swizzle. */
  address(place: MemoryPlace, index: readonly ix.IndexExpr[]): ix.IndexExpr {
    const known = this.#addresses.get(index);
    if (known?.place === place) return known.address;
    const bytes = this.elementBytes(place.buffer) * place.buffer.lanes;
    const address = ix.add(place.base, ix.mul(bytes, flatIndex(place.buffer, index)));
    this.#addresses.set(index, { place, address });
    return address;
  }

  /** Position of an element of a register buffer, in lanes. */
  flatRegister(place: RegisterPlace, index: readonly ix.IndexExpr[]): number {
    const flat = ix.constantValue(flatIndex(place.buffer, index));
    if (flat === undefined) {
      this.refuse(
        `a varying index of register buffer ${place.buffer.name}`,
        "unroll the loop, or put the buffer in scope local",
      );
    }
    return flat * place.buffer.lanes;
  }

  /** The register of a lane, which others may share. */
  registerOf(place: RegisterPlace, lane: number): Operand {
    const number = Math.floor(lane / place.perWord);
    const known = place.registers.get(number);
    if (known) return known;
    const { dtype } = place.buffer;
    this.classOf(dtype);
    const kind = place.perWord > 1 ? "r" : classOfRegisters(dtype, 1);
    const register = this.code.fresh(kind);
    place.registers.set(number, register);
    return register;
  }
}
