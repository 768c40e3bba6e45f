/**
 * One instruction to bytes: the first form of the table that its operands fit, then prefixes, opcode,
 * ModRM, SIB, displacement (compressed by the memory operand's size under EVEX) and immediate. Labels
 * become 32-bit distances that link.ts fills in. Source: Intel SDM volume 2, chapter 2.
 */
import { invariant } from "../../support/invariant.ts";
import { findRow, memoryBytesOf, vectorBits } from "./forms.ts";
import type { Instruction, Memory, Operand, Register } from "./operand.ts";
import { printInstruction } from "./print.ts";
import type { InstructionRow } from "./rows/instruction-row.ts";

/** A 32-bit distance at `at` from the end of the instruction (`end`) to a label. */
export interface Fixup {
  readonly at: number;
  readonly end: number;
  readonly label: number;
  readonly addend: number;
}

export interface Encoded {
  readonly bytes: readonly number[];
  readonly fixup?: Fixup;
}

export function encode(instruction: Instruction): Encoded {
  const row = findRow(instruction);
  invariant(row, () => `no encoding of ${printInstruction(instruction)}`);
  return new InstructionEncoder(instruction, row).encode();
}

class InstructionEncoder {
  readonly #i: Instruction;
  readonly #row: InstructionRow;
  readonly #bytes: number[] = [];
  readonly #slot = new Map<string, Operand>();
  readonly #w: 0 | 1;
  readonly #length: number;

  constructor(instruction: Instruction, row: InstructionRow) {
    this.#i = instruction;
    this.#row = row;
    instruction.operands.forEach((o, i) => {
      this.#slot.set(row.slots[i]!, o);
    });
    this.#length = vectorBits(row, instruction.operands);
    this.#w = row.w ?? (instruction.operands.some(isWide(row)) ? 1 : 0);
  }

  encode(): Encoded {
    const { encoding, opcode, slots } = this.#row;
    if (encoding === "legacy") this.#legacyPrefix();
    else if (encoding === "vex") this.#vexPrefix();
    else this.#evexPrefix();
    const inOpcode = this.#register("O");
    this.#bytes.push(opcode + (inOpcode ? inOpcode.id & 7 : 0));
    if (this.#row.secondByte !== undefined) this.#bytes.push(this.#row.secondByte);
    const rm = this.#slot.get("M");
    const after =
      (slots.includes("I") ? this.#immediateBytes() : 0) + (slots.includes("S") ? 1 : 0);
    let fixup: Fixup | undefined;
    if (rm) fixup = this.#modrm(rm as Register | Memory, after);
    else if (slots === "R") this.#bytes.push(0xc0 | (((this.#register("R")?.id ?? 0) & 7) << 3));
    this.#immediate();
    const target = this.#slot.get("D");
    if (target?.kind === "label") {
      const at = this.#bytes.length;
      this.#bytes.push(0, 0, 0, 0);
      fixup = { at, end: at + 4, label: target.id, addend: 0 };
    }
    return fixup ? { bytes: this.#bytes, fixup } : { bytes: this.#bytes };
  }

  #register(slot: string): Register | undefined {
    const operand = this.#slot.get(slot);
    return operand?.kind === "register" ? operand : undefined;
  }

  /** Bit `n` of the register number in R, V, or of M as a register. */
  #bit(slot: string, n: number): number {
    return ((this.#register(slot)?.id ?? 0) >> n) & 1;
  }

  get #memory(): Memory | undefined {
    const operand = this.#slot.get("M");
    return operand?.kind === "memory" ? operand : undefined;
  }

  /** Extension bits R, X, B of the three registers that ModRM and SIB name. */
  #extensions(): { r: number; x: number; b: number } {
    const memory = this.#memory;
    const r = this.#bit("R", 3);
    if (!memory) return { r, x: 0, b: this.#bit("M", 3) | this.#bit("O", 3) };
    return { r, x: ((memory.index?.id ?? 0) >> 3) & 1, b: ((memory.base?.id ?? 0) >> 3) & 1 };
  }

  #legacyPrefix(): void {
    const { prefix, map, lock } = this.#row;
    if (lock) this.#bytes.push(0xf0);
    if (prefix) this.#bytes.push(prefix);
    const { r, x, b } = this.#extensions();
    const rex = (this.#w << 3) | (r << 2) | (x << 1) | b;
    // spl, bpl, sil and dil exist only with a REX prefix.
    const low = this.#i.operands.some(
      (o) => o.kind === "register" && o.class === "gpr" && o.bits === 8 && o.id >= 4,
    );
    if (rex || low) this.#bytes.push(0x40 | rex);
    if (map > 0) this.#bytes.push(0x0f);
    if (map === 2) this.#bytes.push(0x38);
    if (map === 3) this.#bytes.push(0x3a);
  }

  #vexPrefix(): void {
    const { map, lengths, fixedLength } = this.#row;
    const { r, x, b } = this.#extensions();
    const l = lengths.length > 0 ? (this.#length === 256 ? 1 : 0) : fixedLength;
    const vvvv = ~(this.#register("V")?.id ?? 0) & 15;
    const last = (vvvv << 3) | (l << 2) | this.#pp();
    if (map === 1 && !x && !b && !this.#w) {
      this.#bytes.push(0xc5, ((r ^ 1) << 7) | last);
      return;
    }
    const rxb = ((r ^ 1) << 7) | ((x ^ 1) << 6) | ((b ^ 1) << 5);
    this.#bytes.push(0xc4, rxb | map, (this.#w << 7) | last);
  }

  #evexPrefix(): void {
    const { map } = this.#row;
    const { r, b } = this.#extensions();
    const x = this.#memory ? this.#extensions().x : this.#bit("M", 4);
    const rxb = ((r ^ 1) << 7) | ((x ^ 1) << 6) | ((b ^ 1) << 5) | ((this.#bit("R", 4) ^ 1) << 4);
    const v = this.#register("V")?.id ?? 0;
    const ll = this.#length === 512 ? 2 : this.#length === 256 ? 1 : 0;
    const { mask, zeroing, broadcast } = this.#i;
    this.#bytes.push(
      0x62,
      rxb | map,
      (this.#w << 7) | ((~v & 15) << 3) | 4 | this.#pp(),
      ((zeroing ? 1 : 0) << 7) |
        (ll << 5) |
        ((broadcast ? 1 : 0) << 4) |
        ((((v >> 4) & 1) ^ 1) << 3) |
        (mask?.id ?? 0),
    );
  }

  #pp(): number {
    return [0, 0x66, 0xf3, 0xf2].indexOf(this.#row.prefix);
  }

  #modrm(rm: Register | Memory, after: number): Fixup | undefined {
    const reg = this.#row.digit ?? (this.#register("R")?.id ?? 0) & 7;
    if (rm.kind === "register") {
      this.#bytes.push(0xc0 | (reg << 3) | (rm.id & 7));
      return undefined;
    }
    if (rm.label) {
      this.#bytes.push((reg << 3) | 5);
      const at = this.#bytes.length;
      this.#bytes.push(0, 0, 0, 0);
      return { at, end: at + 4 + after, label: rm.label.id, addend: rm.disp };
    }
    this.#address(rm, reg);
    return undefined;
  }

  #address({ base, index, scale, disp }: Memory, reg: number): void {
    invariant(index?.id !== 4, () => "rsp as an index");
    const unit = this.#row.encoding === "evex" ? this.#memoryBytes() : 1;
    const short = disp / unit;
    const mod = !base
      ? 0
      : disp === 0 && (base.id & 7) !== 5
        ? 0
        : Number.isInteger(short) && short >= -128 && short <= 127
          ? 1
          : 2;
    const needsSib = !base || index !== undefined || (base.id & 7) === 4;
    this.#bytes.push((mod << 6) | (reg << 3) | (needsSib ? 4 : base.id & 7));
    if (needsSib) {
      const low = base ? base.id & 7 : 5;
      this.#bytes.push((Math.log2(scale) << 6) | ((index ? index.id & 7 : 4) << 3) | low);
    }
    if (mod === 1) this.#bytes.push(short & 255);
    else if (mod === 2 || !base) this.#number(disp, 4);
  }

  /** Bytes of the memory operand, which scale a short displacement under EVEX. */
  #memoryBytes(): number {
    if (this.#i.broadcast) return this.#row.broadcastBytes;
    return memoryBytesOf(this.#row, this.#length, this.#w);
  }

  #immediateBytes(): number {
    const at = this.#row.slots.indexOf("I");
    const type = this.#row.types[at]![0];
    return type === "i8" ? 1 : type === "i32" ? 4 : 8;
  }

  #immediate(): void {
    const third = this.#register("S");
    if (third) this.#bytes.push(third.id << 4);
    const value = this.#slot.get("I");
    if (value?.kind === "immediate") this.#number(value.value, this.#immediateBytes());
  }

  #number(value: number | bigint, bytes: number): void {
    if (bytes <= 4) {
      const low = Number(value) | 0;
      for (let i = 0; i < bytes; i++) this.#bytes.push((low >> (8 * i)) & 255);
      return;
    }
    const wide = BigInt.asUintN(bytes * 8, BigInt(value));
    for (let i = 0; i < bytes; i++) this.#bytes.push(Number((wide >> BigInt(8 * i)) & 255n));
  }
}

function isWide(row: InstructionRow): (o: Operand, i: number) => boolean {
  return (o, i) => o.kind === "register" && o.bits === 64 && row.types[i]!.includes("g");
}
