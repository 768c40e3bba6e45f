/** Conversions as they are spelled, run instruction by instruction (PTX ISA, "Instruction Set"), against the codec. */
import { describe, expect, it } from "vitest";
import type { DType } from "../../semantics/dtype.ts";
import { decodeFloat, encodeFloat } from "../../semantics/float-codec.ts";
import { castScalar as meaningOfCast } from "../../semantics/scalar-meaning.ts";
import { Rng } from "../../support/rng.ts";
import { castScalar } from "./casts.ts";
import { PtxCode } from "./ptx-code.ts";
import type { TinyFloat } from "./tiny-floats.ts";

const cell = new DataView(new ArrayBuffer(4));
const bitsOf = (x: number): number => {
  cell.setFloat32(0, x);
  return cell.getUint32(0);
};
const numberOf = (bits: number): number => {
  cell.setUint32(0, bits);
  return cell.getFloat32(0);
};
const f32 = (f: (a: number, b: number) => number) => (a: number, b: number) =>
  bitsOf(f(numberOf(a), numberOf(b)));

/** On words of 32 bits without a sign; predicates are 0 and 1. */
const rows: Readonly<Record<string, (a: number, b: number, c: number) => number>> = {
  "and.b32": (a, b) => a & b,
  "or.b32": (a, b) => a | b,
  "shl.b32": (a, b) => (b > 31 ? 0 : a << b),
  "shr.u32": (a, b) => (b > 31 ? 0 : a >>> b),
  "add.u32": (a, b) => a + b,
  "sub.u32": (a, b) => a - b,
  "mul.rn.f32": f32((a, b) => Math.fround(a * b)),
  "add.rn.f32": f32((a, b) => Math.fround(a + b)),
  "bfe.u32": (a, b, c) => (a >>> b) & (2 ** c - 1),
  "setp.eq.u32": (a, b) => Number(a === b),
  "setp.lt.u32": (a, b) => Number(a < b),
  "setp.le.u32": (a, b) => Number(a <= b),
  "setp.gt.u32": (a, b) => Number(a > b),
  "setp.ge.u32": (a, b) => Number(a >= b),
  "selp.b32": (a, b, c) => (c !== 0 ? a : b),
};

/** The word that the code leaves in its last register, of one that `%x` holds. */
function run(from: DType, to: DType, saturate: boolean): (x: number) => number {
  const code = new PtxCode();
  const result = castScalar(code, [from, to], saturate, "%x");
  const lines = code.toString().split("\n");
  const steps = lines.filter((line) => /^\s*[a-z]+\./.test(line));
  return (x) => {
    const registers = new Map([["%x", x]]);
    const read = (operand: string): number => {
      if (operand.startsWith("%")) return registers.get(operand)!;
      return operand.startsWith("0f") ? Number.parseInt(operand.slice(2), 16) : Number(operand);
    };
    for (const step of steps) {
      const [, opcode, operands] = /^\s*(\S+) (.*);/.exec(step)!;
      const [target, a, b, c] = operands!.split(", ");
      const row = rows[opcode!];
      if (!row) throw new Error(`no meaning of ${opcode}`);
      registers.set(target!, row(read(a!), read(b ?? "0"), read(c ?? "0")) >>> 0);
    }
    return registers.get(result)!;
  };
}

const formats: readonly TinyFloat[] = [
  ...(["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1", "e8m0"] as const),
];

const patternsOf = (dtype: TinyFloat): readonly number[] =>
  Array.from({ length: dtype === "f4e2m1" ? 16 : 256 }, (_, i) => i);

/** Values of the format, halves of the steps between them and what lies just beside, beyond and special. */
function inputs(dtype: TinyFloat): readonly number[] {
  const rng = new Rng(11);
  const exact = patternsOf(dtype)
    .map((p) => decodeFloat(dtype, p))
    .filter(Number.isFinite);
  const sorted = [...exact].sort((a, b) => a - b);
  const middles = sorted.slice(1).map((x, i) => (x + sorted[i]!) / 2);
  const beside = [...exact, ...middles].flatMap((x) => [x, x * (1 + 2 ** -20), x * (1 - 2 ** -20)]);
  const drawn = Array.from({ length: 500 }, () => rng.normal() * 2 ** rng.integer(-140, 127));
  return [...beside, ...drawn, 0, -0, Infinity, -Infinity, Number.NaN, 3e38].map(Math.fround);
}

describe.each(formats)("%s", (dtype) => {
  it("widens every pattern", () => {
    const widen = run(dtype, "f32", false);
    const wrong = patternsOf(dtype).filter(
      (p) => !Object.is(numberOf(widen(p)), decodeFloat(dtype, p)),
    );
    expect(wrong).toEqual([]);
  });

  it.each([false, true])("rounds once, saturating: %s", (saturate) => {
    const narrow = run("f32", dtype, saturate);
    const overflow = saturate ? "saturate" : "special";
    const wrong = inputs(dtype).filter((x) => {
      const pattern = narrow(bitsOf(x));
      const found = decodeFloat(dtype, pattern);
      // Zeros and numbers are the very pattern; of NaNs there may be several.
      const isPattern = Number.isNaN(found) || pattern === encodeFloat(dtype, x, overflow);
      return !isPattern || !Object.is(found, meaningOfCast(x, dtype, saturate));
    });
    expect(wrong).toEqual([]);
  });
});
