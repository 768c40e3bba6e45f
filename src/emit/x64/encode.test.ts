import { describe, expect, it } from "vitest";
import { judgeInstructions, missingJudges } from "../../../test/x64/judges.ts";
import { Rng } from "../../support/rng.ts";
import { ConstantPool } from "./constant-pool.ts";
import { encode } from "./encode.ts";
import { FunctionCode } from "./function-code.ts";
import { link } from "./link.ts";
import { gpr, type Instruction, type Label, memory, vec } from "./operand.ts";
import { randomInstruction } from "./random-instruction.test-support.ts";
import { instructionRows } from "./rows/instruction-row.ts";

const missing = missingJudges();
const drawn = (seed: number, each: number): Instruction[] => {
  const rng = new Rng(seed);
  return instructionRows.flatMap((row) =>
    Array.from({ length: each }, () => randomInstruction(row, rng)),
  );
};

describe("encoder", () => {
  it("encodes by the manual where no judge is needed", () => {
    const bytes = (i: Instruction) => Buffer.from(encode(i).bytes).toString("hex");
    const load = { op: "vmovups", operands: [vec(0, 512), memory(gpr(7))] };
    expect(bytes(load)).toBe("62f17c481007");
    expect(bytes({ op: "vmovups", operands: [memory(gpr(6)), vec(0, 512)] })).toBe("62f17c481106");
    expect(bytes({ op: "vzeroupper", operands: [] })).toBe("c5f877");
    expect(bytes({ op: "mov", operands: [gpr(0), memory(gpr(4), 8)] })).toBe("488b442408");
  });

  it("has its judges in CI", () => {
    expect(process.env.CI ? missing : []).toEqual([]);
  });

  it.skipIf(missing.length > 0)("agrees with llvm-mc and objdump on every form", () => {
    expect(judgeInstructions(drawn(1, 12))).toEqual([]);
  });

  it("knows what no machine has executed, and code with it is refused", () => {
    const untried = instructionRows.filter((row) => !row.isExecuted).map((row) => row.name);
    expect(untried).toEqual(expect.arrayContaining(["vfmadd231ph", "tdpbf16ps", "tileloadd"]));
    let labels = 0;
    const newLabel = (): Label => ({ kind: "label", id: labels++ });
    const constants = new ConstantPool(newLabel());
    const f = new FunctionCode("f", { constants, newLabel, reservedBytes: 0 });
    f.emit("vaddph", vec(0, 512), vec(1, 512), vec(2, 512)).emit("ret");
    expect(() => link([f], constants, { vectors: 32, vectorBits: 512 })).toThrow(
      "no machine has executed vaddph zmm0, zmm1, zmm2",
    );
  });

  const mutants: Record<string, (bytes: readonly number[], i: Instruction) => readonly number[]> = {
    "wrong register": (b) => (b[0] === 0x62 ? [b[0], b[1]! ^ 0x10, ...b.slice(2)] : b),
    "displacement not scaled": (b, i) =>
      b[0] === 0x62 &&
      i.operands.some((o) => o.kind === "memory" && o.disp !== 0 && !o.index) &&
      (b[5]! & 0xc0) === 0x40
        ? [...b.slice(0, 6), (b[6]! + 1) & 255, ...b.slice(7)]
        : b,
    "dropped mask": (b, i) => (i.mask ? [...b.slice(0, 3), b[3]! & 0xf8, ...b.slice(4)] : b),
    "dropped zeroing": (b, i) => (i.zeroing ? [...b.slice(0, 3), b[3]! & 0x7f, ...b.slice(4)] : b),
    "missing vzeroupper": (b, i) => (i.op === "vzeroupper" ? [0x90] : b),
  };
  it.skipIf(missing.length > 0).each(Object.keys(mutants))("mutant is caught: %s", (name) => {
    const mutate = mutants[name]!;
    const faults = judgeInstructions(drawn(2, 2), (i) => mutate(encode(i).bytes, i));
    expect(faults.length).toBeGreaterThan(0);
  });
});
