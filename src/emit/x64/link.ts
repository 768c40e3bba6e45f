/**
 * Functions to one piece of position-independent code: registers, frames, encodings, distances to
 * labels, and the constants behind it all.
 */
import { invariant } from "../../support/invariant.ts";
import {
  type AllocatedFunction,
  alignedFrame,
  allocateRegisters,
  type RegisterFile,
} from "./allocate.ts";
import type { ConstantPool } from "./constant-pool.ts";
import { encode, type Fixup } from "./encode.ts";
import { type FunctionCode, stackPointer } from "./function-code.ts";
import { type Instruction, immediate } from "./operand.ts";
import { printInstruction } from "./print.ts";
import { rowsOf } from "./rows/instruction-row.ts";

/** A stretch of the code and what it was printed from. */
export interface CodeRange {
  readonly start: number;
  readonly end: number;
  readonly what: string;
}

/** What the allocator did to a function. */
export interface FunctionReport {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  /** Values kept on the stack, and constants loaded again at their uses, for want of registers. */
  readonly spills: number;
  /** Of the values on the stack, vectors and floats. */
  readonly vectorSpills: number;
  readonly reloads: number;
  readonly frameBytes: number;
}

export interface LinkedCode {
  readonly bytes: Uint8Array;
  /** Where each of the asked-for labels is. */
  readonly entries: ReadonlyMap<number, number>;
  readonly map: readonly CodeRange[];
  readonly functions: readonly FunctionReport[];
  /** The code as assembler text, one instruction a line. */
  readonly text: () => string;
}

const functionAlignment = 64;
const nop = 0x90;
/** Of 1 to 9 bytes (Intel SDM, NOP). */
const longNops = [
  [nop],
  [0x66, nop],
  [0x0f, 0x1f, 0x00],
  [0x0f, 0x1f, 0x40, 0x00],
  [0x0f, 0x1f, 0x44, 0x00, 0x00],
  [0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
  [0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
  [0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
  [0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
] as const;

/** Functions whose registers are physical already give no `FunctionReport` of interest but are linked alike. */
export function link(
  functions: readonly FunctionCode[],
  constants: ConstantPool,
  file: RegisterFile,
): LinkedCode {
  const linker = new Linker(file);
  for (const f of functions) linker.add(f);
  return linker.finish(constants);
}

class Linker {
  readonly #file: RegisterFile;
  #bytes = new Uint8Array(4096);
  #length = 0;
  readonly #labels = new Map<number, number>();
  readonly #fixups: (Fixup & { readonly base: number })[] = [];
  readonly #map: CodeRange[] = [];
  readonly #functions: FunctionReport[] = [];
  readonly #listing: (readonly [number, Instruction | string])[] = [];

  constructor(file: RegisterFile) {
    this.#file = file;
  }

  add(code: FunctionCode): void {
    this.#align(functionAlignment);
    const allocated = allocateRegisters(code, this.#file);
    const { spills, vectorSpills, reloads } = allocated;
    const calls = code.body.some((i) => i.calls);
    const frame = allocated.frameBytes > 0 || calls ? alignedFrame(allocated.frameBytes) : 0;
    const start = this.#length;
    this.#labels.set(code.entry.id, start);
    this.#listing.push([start, code.name]);
    if (frame > 0) this.#put({ op: "sub", operands: [stackPointer, immediate(frame)] });
    const places = this.#addBody(allocated, frame);
    const end = this.#length;
    const counts = { spills, vectorSpills, reloads, frameBytes: frame };
    this.#functions.push({ name: code.name, start, end, ...counts });
    code.marks.forEach(({ at, text }, i) => {
      const from = places[allocated.placeOf[at]!] ?? end;
      const next = code.marks[i + 1];
      const to = next ? (places[allocated.placeOf[next.at]!] ?? end) : end;
      if (to > from) this.#map.push({ start: from, end: to, what: text });
    });
  }

  finish(constants: ConstantPool): LinkedCode {
    this.#align(64);
    this.#labels.set(constants.label.id, this.#length);
    for (const byte of constants.contents()) this.#byte(byte);
    const bytes = this.#bytes.slice(0, this.#length);
    const view = new DataView(bytes.buffer);
    for (const { at, end, label, addend, base } of this.#fixups) {
      const target = this.#labels.get(label);
      invariant(target !== undefined, () => `label ${label} is nowhere`);
      view.setInt32(base + at, target + addend - (base + end), true);
    }
    return {
      bytes,
      entries: this.#labels,
      map: this.#map,
      functions: this.#functions,
      text: () => this.#print(),
    };
  }

  /** Byte positions of the allocated instructions. */
  #addBody({ instructions }: AllocatedFunction, frame: number): number[] {
    const places: number[] = [];
    for (const instruction of instructions) {
      places.push(this.#length);
      const [operand] = instruction.operands;
      if (instruction.op === "label") {
        invariant(operand?.kind === "label", () => "a label without a name");
        this.#labels.set(operand.id, this.#length);
        this.#listing.push([this.#length, instruction]);
      } else if (instruction.op === "align") {
        this.#align(operand?.kind === "immediate" ? Number(operand.value) : 1);
      } else {
        if (instruction.op === "ret" && frame > 0) {
          this.#put({ op: "add", operands: [stackPointer, immediate(frame)] });
        }
        this.#put(instruction);
      }
    }
    return places;
  }

  #put(instruction: Instruction): void {
    const isExecuted = rowsOf(instruction.op)[0]!.isExecuted;
    invariant(isExecuted, () => `no machine has executed ${printInstruction(instruction)}`);
    const { bytes, fixup } = encode(instruction);
    if (fixup) this.#fixups.push({ ...fixup, base: this.#length });
    this.#listing.push([this.#length, instruction]);
    for (const byte of bytes) this.#byte(byte);
  }

  #byte(value: number): void {
    if (this.#length === this.#bytes.length) {
      const larger = new Uint8Array(2 * this.#length);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes[this.#length++] = value;
  }

  #align(bytes: number): void {
    let missing = (bytes - (this.#length % bytes)) % bytes;
    while (missing > 0) {
      const piece = longNops[Math.min(missing, longNops.length) - 1]!;
      for (const byte of piece) this.#byte(byte);
      missing -= piece.length;
    }
  }

  #print(): string {
    const lines = this.#listing.map(([at, what]) => {
      const address = at.toString(16).padStart(6, "0");
      if (typeof what === "string") return `\n${what}:`;
      return what.op === "label"
        ? printInstruction(what)
        : `  ${address}  ${printInstruction(what)}`;
    });
    return `${lines.join("\n").trimStart()}\n`;
  }
}
