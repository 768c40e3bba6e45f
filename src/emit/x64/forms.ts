/** Which form of the table an instruction takes, and what follows from it: vector length, memory size. */
import { firstVirtual, type Instruction, type Operand } from "./operand.ts";
import { type InstructionRow, rowsOf } from "./rows/instruction-row.ts";

/** The form that an instruction is encoded in; undefined: there is none. */
export function findRow(instruction: Instruction): InstructionRow | undefined {
  return rowsOf(instruction.op).find((row) => fits(row, instruction));
}

function fits(row: InstructionRow, { operands, mask, zeroing, broadcast }: Instruction): boolean {
  if (operands.length !== row.types.length) return false;
  if (row.encoding !== "evex" && (mask || zeroing || broadcast)) return false;
  if (broadcast && row.broadcastBytes === 0) return false;
  const length = vectorBits(row, operands);
  if (row.lengths.length > 0 && !row.lengths.includes(length)) return false;
  return operands.every((o, i) => row.types[i]!.some((t) => matches(t, o, length, row)));
}

/** Length of the vectors in bits: of the first operand of type v. */
export function vectorBits(row: InstructionRow, operands: readonly Operand[]): number {
  const at = row.types.findIndex((t, i) => t[0] === "v" && operands[i]?.kind === "register");
  const operand = operands[at];
  return operand?.kind === "register" ? operand.bits : 0;
}

const parts: Readonly<Record<string, number>> = { v: 1, h: 2, q: 4, e: 8 };

function matches(type: string, o: Operand, length: number, row: InstructionRow): boolean {
  switch (o.kind) {
    case "memory":
      return type === "m" || (type === "s" && o.index !== undefined);
    case "label":
      return type === "rel";
    case "immediate":
      return immediateFits(type, o.value);
    case "register":
      break;
  }
  if (o.class === "mask") return type === "k";
  if (o.class === "tile") return type === "t";
  if (o.class === "vec") {
    if (row.encoding === "vex" && o.id >= 16 && o.id < firstVirtual) return false;
    if (type === "x") return o.bits === 128;
    const part = parts[type];
    return part !== undefined && o.bits === Math.max(128, length / part);
  }
  return type === "g" ? o.bits >= 32 : type === `r${o.bits}`;
}

function immediateFits(type: string, value: number | bigint): boolean {
  if (type === "i64") return true;
  const [low, high] = type === "i8" ? [-128, 127] : [-(2 ** 31), 2 ** 31 - 1];
  return (type === "i8" || type === "i32") && value >= low && value <= high;
}

/** Bytes that the memory operand of a form has. */
export function memoryBytesOf(row: InstructionRow, length: number, w: number): number {
  switch (row.memory) {
    case "full":
      return length / 8;
    case "half":
      return length / 16;
    case "quarter":
      return length / 32;
    case "eighth":
      return length / 64;
    case "size":
      return w ? 8 : 4;
    case undefined:
      return 1;
    default:
      return row.memory;
  }
}
