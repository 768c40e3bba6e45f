/** Instructions as text in Intel syntax, as assemblers take it and `inspect --asm` shows it. */
import { findRow, memoryBytesOf, vectorBits } from "./forms.ts";
import { type Instruction, type Memory, type Operand, registerName } from "./operand.ts";
import type { InstructionRow } from "./rows/instruction-row.ts";

const sizeNames: Readonly<Record<number, string>> = {
  1: "byte ptr ",
  2: "word ptr ",
  4: "dword ptr ",
  8: "qword ptr ",
  16: "xmmword ptr ",
  32: "ymmword ptr ",
  64: "zmmword ptr ",
};

/** `labelName` spells labels; by default `L<id>`. */
export function printInstruction(
  instruction: Instruction,
  labelName: (id: number) => string = (id) => `L${id}`,
): string {
  const { op, operands, mask, zeroing } = instruction;
  if (op === "label") return `${operands.map((o) => printPlain(o, labelName)).join(", ")}:`;
  if (op === "align") return `align ${operands.map((o) => printPlain(o, labelName)).join(", ")}`;
  const row = findRow(instruction);
  const texts = operands.map((o) =>
    o.kind === "memory" ? printMemory(o, instruction, row, labelName) : printPlain(o, labelName),
  );
  if (mask && texts.length > 0) {
    texts[0] += ` {${registerName(mask)}}${zeroing ? " {z}" : ""}`;
  }
  return `${row?.mnemonic ?? op} ${texts.join(", ")}`.trimEnd();
}

function printPlain(o: Operand, labelName: (id: number) => string): string {
  if (o.kind === "register") return registerName(o);
  if (o.kind === "immediate") return String(o.value);
  return o.kind === "label" ? labelName(o.id) : "[?]";
}

function printMemory(
  m: Memory,
  instruction: Instruction,
  row: InstructionRow | undefined,
  labelName: (id: number) => string,
): string {
  const length = row ? vectorBits(row, instruction.operands) : 0;
  const wide = instruction.operands.some((o) => o.kind === "register" && o.bits === 64);
  const bytes = row && memoryBytesOf(row, length, wide ? 1 : 0);
  const element = row?.broadcastBytes ?? 0;
  const size = instruction.broadcast ? sizeNames[element] : sizeNames[bytes ?? 0];
  const plain = row?.name === "lea" || row?.memory === undefined;
  const parts: string[] = [];
  if (m.label) parts.push("rip", labelName(m.label.id));
  if (m.base) parts.push(registerName(m.base));
  if (m.index) parts.push(`${m.scale}*${registerName(m.index)}`);
  const sum = parts.join(" + ");
  const disp =
    m.disp === 0 && sum !== ""
      ? ""
      : sum === ""
        ? String(m.disp)
        : m.disp < 0
          ? ` - ${-m.disp}`
          : ` + ${m.disp}`;
  const lanes = instruction.broadcast ? `{1to${(bytes ?? 0) / element}}` : "";
  return `${plain ? "" : (size ?? "")}[${sum}${disp}]${lanes}`;
}
