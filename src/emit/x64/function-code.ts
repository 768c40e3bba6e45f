/**
 * A function under construction: instructions over virtual registers, labels, stack slots, constants.
 * allocate.ts gives the registers, link.ts the bytes. Constants that instructions read as whole
 * registers are loaded ahead of everything else; the allocator moves their load to the use where
 * registers are short.
 */
import { invariant } from "../../support/invariant.ts";
import type { ConstantPool } from "./constant-pool.ts";
import {
  firstVirtual,
  gpr,
  type Immediate,
  type Instruction,
  immediate,
  type Label,
  type Memory,
  type Operand,
  type Register,
  type RegisterBits,
  type RegisterClass,
  sized,
} from "./operand.ts";

/** rsp: stack slots lie from it upwards. */
export const stackPointer = gpr(4);
/** The context of the running thread, the same everywhere in emitted code. */
export const contextPointer = gpr(15);
/** Scratch of single emitter sequences (division); never allocated. */
export const scratchA = gpr(0);
export const scratchD = gpr(2);

/** An instruction with how often it is expected to run: the depth of the loops around it. */
export interface PlacedInstruction extends Instruction {
  readonly depth: number;
  /** Clobbers every register but rsp and the context. */
  readonly calls?: boolean;
}

/** Where a piece of code came from. */
export interface CodeMark {
  readonly at: number;
  readonly text: string;
}

/** What the functions of one program share. */
export interface FunctionParts {
  readonly constants: ConstantPool;
  readonly newLabel: () => Label;
  /** Bytes from the stack pointer on that functions called from here may overwrite. */
  readonly reservedBytes: number;
}

/** A constant in a register, and the place in the prologue where it is loaded. */
interface LoadedConstant {
  readonly register: Register;
  readonly at: number;
}

export class FunctionCode {
  readonly name: string;
  readonly entry: Label;
  readonly body: PlacedInstruction[] = [];
  /** Loads of constants, run before the body. */
  readonly prologue: PlacedInstruction[] = [];
  readonly marks: CodeMark[] = [];
  readonly constants: ConstantPool;
  #nextRegister = firstVirtual;
  #slotBytes: number;
  #slotTop: number;
  readonly #reserved: number;
  #depth = 0;
  readonly #loaded = new Map<string, LoadedConstant>();
  readonly #newLabel: () => Label;

  constructor(name: string, parts: FunctionParts) {
    this.name = name;
    this.constants = parts.constants;
    this.#newLabel = parts.newLabel;
    this.#reserved = parts.reservedBytes;
    this.#slotBytes = 0;
    this.#slotTop = this.#reserved;
    this.entry = parts.newLabel();
  }

  get slotBytes(): number {
    return this.#slotBytes;
  }

  get registerCount(): number {
    return this.#nextRegister;
  }

  gpr(bits: RegisterBits = 64): Register {
    return this.#register("gpr", bits);
  }

  vec(bits: RegisterBits): Register {
    return this.#register("vec", bits);
  }

  mask(): Register {
    return this.#register("mask", 64);
  }

  #register(kind: RegisterClass, bits: RegisterBits): Register {
    return { kind: "register", class: kind, id: this.#nextRegister++, bits };
  }

  emit(op: string, ...operands: readonly (Operand | number)[]): this {
    this.body.push({ op, operands: operands.map(asOperand), depth: this.#depth });
    return this;
  }

  /** Under a mask; lanes left out become zero or keep what the destination has. */
  masked(
    mask: Register,
    zeroing: boolean,
    op: string,
    ...operands: readonly (Operand | number)[]
  ): this {
    this.body.push({ op, operands: operands.map(asOperand), mask, zeroing, depth: this.#depth });
    return this;
  }

  label(): Label {
    return this.#newLabel();
  }

  place(label: Label): this {
    return this.emit("label", label);
  }

  /** Calls a function that may use every register. */
  call(target: Label | Register): this {
    const op = target.kind === "label" ? "call" : "callreg";
    this.body.push({ op, operands: [target], depth: this.#depth, calls: true });
    return this;
  }

  /** Everything that `fill` emits runs once a trip of one more loop. */
  inLoop(fill: () => void): void {
    this.#depth++;
    fill();
    this.#depth--;
  }

  /** Bytes of this call's stack frame until releaseSlots, as an operand at their first byte. */
  slot(bytes: number): Memory {
    const at = this.#slotTop;
    this.#slotTop += Math.ceil(bytes / 64) * 64;
    this.#slotBytes = Math.max(this.#slotBytes, this.#slotTop);
    return { kind: "memory", base: stackPointer, scale: 1, disp: at };
  }

  /** What stands in slots is not read any more. */
  releaseSlots(): void {
    this.#slotTop = this.#reserved;
  }

  /** A register with a 32-bit pattern in every lane. */
  splat32(pattern: number, bits: RegisterBits): Register {
    return this.#held(`${pattern >>> 0}`, bits, (register) =>
      pattern === 0
        ? { op: "vxorps", operands: [register, register, register] }
        : { op: "vbroadcastss", operands: [register, this.constants.word(pattern)] },
    );
  }

  /** As splat32, of 64 bits. */
  splat64(pattern: bigint, bits: RegisterBits): Register {
    return this.#held(`q${pattern}`, bits, (register) => {
      if (pattern === 0n) return { op: "vxorps", operands: [register, register, register] };
      const op = register.bits === 128 ? "vmovups" : "vbroadcastsd";
      return { op, operands: [register, this.constants.pair(pattern)] };
    });
  }

  /** A register that holds these bytes. */
  constantVector(bytes: Uint8Array, bits: RegisterBits): Register {
    return this.#held(`b${bytes.join()}/${bits}`, bits, (register) => {
      return { op: "vmovups", operands: [register, this.constants.bytes(bytes)] };
    });
  }

  mark(text: string): void {
    this.marks.push({ at: this.body.length, text });
  }

  /** A constant in one register for all widths: as wide as the widest that is asked for. */
  #held(
    key: string,
    bits: RegisterBits,
    load: (into: Register) => Pick<PlacedInstruction, "op" | "operands">,
  ): Register {
    const known = this.#loaded.get(key);
    if (known && known.register.bits >= bits) return sized(known.register, bits);
    const register = known ? sized(known.register, bits) : this.vec(bits);
    const at = known?.at ?? this.prologue.length;
    this.prologue[at] = { ...load(register), depth: 0 };
    this.#loaded.set(key, { register, at });
    return register;
  }
}

function asOperand(o: Operand | number): Operand {
  if (typeof o !== "number") return o;
  invariant(Number.isSafeInteger(o), () => `immediate ${o}`);
  return immediate(o) satisfies Immediate;
}

/** The operand `bytes` further on. */
export function offsetBy(m: Memory, bytes: number): Memory {
  return bytes === 0 ? m : { ...m, disp: m.disp + bytes };
}
