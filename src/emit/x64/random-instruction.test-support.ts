/** Random operands for a form of the instruction table, for the judges of the encoder. */
import type { Rng } from "../../support/rng.ts";
import { memoryBytesOf } from "./forms.ts";
import {
  gpr,
  type Instruction,
  immediate,
  type Memory,
  maskRegister,
  type Operand,
  type RegisterBits,
  tileRegister,
  vec,
} from "./operand.ts";
import type { InstructionRow } from "./rows/instruction-row.ts";

/** An instruction of exactly this form, unless a shorter form of the same name takes it. */
export function randomInstruction(row: InstructionRow, rng: Rng): Instruction {
  const length = row.lengths.length > 0 ? rng.pick(row.lengths) : 0;
  const wide = (rng.bits() & 1) === 1;
  const types = row.types.map((alternatives) => rng.pick(alternatives));
  const broadcast = row.broadcastBytes > 0 && types.includes("m") && (rng.bits() & 1) === 1;
  const bytes = broadcast ? row.broadcastBytes : memoryBytesOf(row, length, wide ? 1 : 0);
  const drawn = types.map((type) => randomOperand(type, { row, length, wide, bytes }, rng));
  const tile = rng.integer(0, 7);
  // No tile twice in one instruction.
  const operands = drawn.map((o, i) => (types[i] === "t" ? tileRegister((tile + 3 * i) % 8) : o));
  const evex = row.encoding === "evex" && row.lengths.length > 0;
  const stores = types[0] === "m";
  const compares = types[0] === "k";
  const takesMask =
    evex && !["vpmovd2m", "vpmovm2d", "vpmovm2q"].includes(row.name) && row.name !== "vmovntps";
  const mask = takesMask && (rng.bits() & 1) === 1 ? maskRegister(rng.integer(1, 7)) : undefined;
  const zeroing = mask !== undefined && !stores && !compares && (rng.bits() & 1) === 1;
  return {
    op: row.name,
    operands,
    ...(mask && { mask }),
    ...(zeroing && { zeroing }),
    ...(broadcast && { broadcast }),
  };
}

interface Shape {
  readonly row: InstructionRow;
  readonly length: number;
  readonly wide: boolean;
  readonly bytes: number;
}

const parts: Readonly<Record<string, number>> = { v: 1, h: 2, q: 4, e: 8 };

function randomOperand(type: string, shape: Shape, rng: Rng): Operand {
  const { row, length, wide } = shape;
  const registers = row.encoding === "evex" ? 32 : 16;
  if (type === "m") return randomMemory(shape.bytes, rng);
  if (type === "s") return { ...randomMemory(1, rng), index: gpr(rng.pick([0, 3, 9, 14])) };
  if (type === "t") return tileRegister(0);
  if (type === "k") return maskRegister(rng.integer(0, 7));
  if (type === "x") return vec(rng.integer(0, registers - 1), 128);
  if (type === "i8") return immediate(rng.integer(0, 127));
  if (type === "i32") return immediate(rng.integer(-(2 ** 31), 2 ** 31 - 1));
  if (type === "i64") return immediate(BigInt(rng.integer(-(2 ** 31), 2 ** 31)) * 123456789n);
  if (type === "rel") return { kind: "label", id: 0 };
  const part = parts[type];
  if (part !== undefined) {
    return vec(rng.integer(0, registers - 1), Math.max(128, length / part) as RegisterBits);
  }
  const bits = type === "g" ? (wide ? 64 : 32) : Number(type.slice(1));
  return gpr(rng.integer(0, 15), bits as RegisterBits);
}

function randomMemory(unit: number, rng: Rng): Memory {
  const disps = [
    0,
    rng.integer(-128, 127),
    unit * rng.integer(-128, 127),
    unit * rng.pick([-129, 128]),
  ];
  const disp = rng.pick([...disps, rng.integer(-(2 ** 30), 2 ** 30)]);
  const base = rng.integer(0, 9) > 0 ? gpr(rng.integer(0, 15)) : undefined;
  const index =
    (rng.bits() & 1) === 1
      ? gpr(rng.pick([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]))
      : undefined;
  return { kind: "memory", base, index, scale: index ? rng.pick([1, 2, 4, 8] as const) : 1, disp };
}
