/**
 * Operands and instructions of x86-64 as values. A register is physical (`id` is its number) or virtual
 * (`id` from `firstVirtual` on, until allocate.ts gives it one); `bits` says how much of it an
 * instruction sees. What an instruction means and how it is encoded is in the tables (rows/).
 */
export type RegisterClass = "gpr" | "vec" | "mask" | "tile";
export type RegisterBits = 8 | 16 | 32 | 64 | 128 | 256 | 512;

export interface Register {
  readonly kind: "register";
  readonly class: RegisterClass;
  readonly id: number;
  readonly bits: RegisterBits;
}

/** Numbers below are physical registers. */
export const firstVirtual = 64;

export interface Label {
  readonly kind: "label";
  readonly id: number;
}

/** `[base + index * scale + disp]`, or `[rip + label + disp]`. */
export interface Memory {
  readonly kind: "memory";
  readonly base?: Register | undefined;
  readonly index?: Register | undefined;
  readonly scale: 1 | 2 | 4 | 8;
  readonly disp: number;
  readonly label?: Label;
}

export interface Immediate {
  readonly kind: "immediate";
  readonly value: number | bigint;
}

export type Operand = Register | Memory | Immediate | Label;

export interface Instruction {
  /** Name of a row of the table, or of a pseudo-instruction (`label`, `align`). */
  readonly op: string;
  readonly operands: readonly Operand[];
  /** Opmask k1 to k7. */
  readonly mask?: Register | undefined;
  /** Lanes that the mask leaves out become zero instead of keeping their value. */
  readonly zeroing?: boolean | undefined;
  /** The memory operand is one element for all lanes. */
  readonly broadcast?: boolean | undefined;
}

export function gpr(id: number, bits: RegisterBits = 64): Register {
  return { kind: "register", class: "gpr", id, bits };
}

export function vec(id: number, bits: RegisterBits): Register {
  return { kind: "register", class: "vec", id, bits };
}

export function maskRegister(id: number): Register {
  return { kind: "register", class: "mask", id, bits: 64 };
}

/** A tile of AMX: up to 16 rows of 64 bytes. */
export function tileRegister(id: number): Register {
  return { kind: "register", class: "tile", id, bits: 512 };
}

/** The same register under another width. */
export function sized(register: Register, bits: RegisterBits): Register {
  return register.bits === bits ? register : { ...register, bits };
}

export function memory(base: Register | undefined, disp = 0): Memory {
  return { kind: "memory", base, scale: 1, disp };
}

export function immediate(value: number | bigint): Immediate {
  return { kind: "immediate", value };
}

const names64 = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
const names8 = ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"];

/** Names as the vendor's manual has them; virtual registers print as `%n`. */
export function registerName({ class: kind, id, bits }: Register): string {
  if (id >= firstVirtual) return `%${id}.${bits}`;
  if (kind === "mask") return `k${id}`;
  if (kind === "tile") return `tmm${id}`;
  if (kind === "vec") return `${bits === 512 ? "z" : bits === 256 ? "y" : "x"}mm${id}`;
  if (id >= 8) return `r${id}${bits === 64 ? "" : bits === 32 ? "d" : bits === 16 ? "w" : "b"}`;
  if (bits === 8) return names8[id]!;
  const name = names64[id]!;
  return bits === 64 ? name : bits === 32 ? `e${name.slice(1)}` : name.slice(1);
}
