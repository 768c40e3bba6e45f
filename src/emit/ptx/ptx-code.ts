/**
 * Text of one kernel's body as it grows: virtual registers by size, labels, lines. PTX has as many
 * registers as one likes and assigns them itself, so every value gets a new one. Registers are untyped
 * (.b32 serves f32 and s32 alike): PTX ISA, "Operand Type Checking".
 */
import { TextWriter } from "../../support/text-writer.ts";

/** Predicate, 16, 32 and 64 bits. */
export type RegisterClass = "p" | "h" | "r" | "d";

/** A register or an immediate as it is spelled. */
export type Operand = string;

const types: Readonly<Record<RegisterClass, string>> = {
  p: ".pred",
  h: ".b16",
  r: ".b32",
  d: ".b64",
};

export class PtxCode {
  /**
   * Nothing may become a function of the assembler's: beside wgmma, whose sums are in registers on their way, a call makes
   * each instruction wait for the one before (C7509).
   */
  readonly isCallFree: boolean;
  readonly #lines: string[] = [];
  readonly #used: Record<RegisterClass, number> = { p: 0, h: 0, r: 0, d: 0 };
  #labels = 0;

  constructor({ isCallFree = false } = {}) {
    this.isCallFree = isCallFree;
  }

  fresh(kind: RegisterClass): Operand {
    return `%${kind}${this.#used[kind]++}`;
  }

  /** A line of text without its semicolon. */
  emit(line: string): this {
    this.#lines.push(`  ${line};`);
    return this;
  }

  comment(text: string): this {
    this.#lines.push(`  // ${text}`);
    return this;
  }

  /** An instruction whose result goes to a new register. */
  op(opcode: string, kind: RegisterClass, ...operands: readonly Operand[]): Operand {
    const result = this.fresh(kind);
    this.emit(`${opcode} ${[result, ...operands].join(", ")}`);
    return result;
  }

  newLabel(): string {
    return `L${this.#labels++}`;
  }

  place(label: string): this {
    this.#lines.push(`${label}:`);
    return this;
  }

  /** Declarations of the registers, then the lines. */
  writeTo(out: TextWriter): void {
    for (const kind of ["p", "h", "r", "d"] as const) {
      if (this.#used[kind] > 0) out.line(`.reg ${types[kind]} %${kind}<${this.#used[kind]}>;`);
    }
    for (const line of this.#lines) out.line(line);
  }

  toString(): string {
    const out = new TextWriter();
    this.writeTo(out);
    return out.toString();
  }
}

const word = new DataView(new ArrayBuffer(8));

export function f32Immediate(value: number): Operand {
  word.setFloat32(0, value);
  return `0f${word.getUint32(0).toString(16).padStart(8, "0")}`;
}

export function f64Immediate(value: number): Operand {
  word.setFloat64(0, value);
  return `0d${word.getBigUint64(0).toString(16).padStart(16, "0")}`;
}

/** Runs `then` where the predicate holds, else `otherwise`. */
export function branch(
  code: PtxCode,
  predicate: Operand,
  then: () => void,
  otherwise?: () => void,
): void {
  const end = code.newLabel();
  if (!otherwise) {
    code.emit(`@!${predicate} bra ${end}`);
    then();
    code.place(end);
    return;
  }
  const other = code.newLabel();
  code.emit(`@!${predicate} bra ${other}`);
  then();
  code.emit(`bra ${end}`).place(other);
  otherwise();
  code.place(end);
}
