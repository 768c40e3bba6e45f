/**
 * Code that asks the processor what it can do: `probe(block)` reads leaf and subleaf from two 32-bit
 * words and writes eax, ebx, ecx, edx of CPUID over four words. With leaf `controlLeaf` it writes the
 * low half of XCR0 instead: which vector states the operating system saves (Intel SDM, CPUID, XGETBV).
 */
import { ConstantPool } from "./constant-pool.ts";
import { FunctionCode } from "./function-code.ts";
import { link } from "./link.ts";
import { gpr, type Label, memory, sized } from "./operand.ts";
import type { System } from "./thread-code.ts";

export const controlLeaf = 0xffff;

/** What `emitProbe` gives, but for the first move: every load asks the processor, and emitting it takes longer. */
const probeTail =
  "4989d9418b00418b480481f8ffff00000f850d00000031c90f01d0418900e91100" +
  "00000fa241890041895804418948084189500c4c89cbc30f1f440000";
const probeHeads: Readonly<Record<System, string>> = {
  linux: "4989f8",
  windows: "4989c8",
  other: "4989f8",
};

export function probeBytes(system: System): Uint8Array {
  const digits = probeHeads[system] + probeTail;
  return Uint8Array.from({ length: digits.length / 2 }, (_, i) =>
    Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16),
  );
}

export function emitProbe(system: System): Uint8Array {
  let labels = 0;
  const newLabel = (): Label => ({ kind: "label", id: labels++ });
  const constants = new ConstantPool(newLabel());
  const f = new FunctionCode("probe", { constants, newLabel, reservedBytes: 0 });
  const block = gpr(8);
  const [a, c, d, b] = [0, 1, 2, 3].map((id) => gpr(id, 32)) as [Reg, Reg, Reg, Reg];
  const [ordinary, end] = [f.label(), f.label()];
  f.emit("mov", block, gpr(system === "windows" ? 1 : 7)).emit("mov", gpr(9), gpr(3));
  f.emit("mov", a, memory(block, 0)).emit("mov", c, memory(block, 4));
  f.emit("cmp", a, controlLeaf).emit("jne", ordinary);
  f.emit("xor", c, c).emit("xgetbv").emit("mov", memory(block, 0), a).emit("jmp", end);
  f.place(ordinary).emit("cpuid");
  [a, b, c, d].forEach((r, i) => {
    f.emit("mov", memory(block, 4 * i), sized(r, 32));
  });
  f.place(end).emit("mov", gpr(3), gpr(9)).emit("ret");
  return link([f], constants, { vectors: 16, vectorBits: 256 }).bytes;
}

type Reg = ReturnType<typeof gpr>;
