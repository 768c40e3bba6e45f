/**
 * How values of the program form are held in registers. One register a lane: 32 bits for f32 and for
 * integers up to 32 bits (extended from their width), 64 bits for f64, i64 and u64, a predicate for
 * bool. f16 and bf16 are kept as patterns: 16 bits for a scalar, two lanes in a word for vectors, as
 * memory and matrix instructions have them; arithmetic widens them to f32 and rounds once, as it does floats of
 * at most 8 bits, which are patterns in a word each (tiny-floats.ts).
 */
import { type DType, dtypes } from "../../semantics/dtype.ts";
import { encodeFloat } from "../../semantics/float-codec.ts";
import type { Operand, PtxCode, RegisterClass } from "./ptx-code.ts";
import { f32Immediate, f64Immediate } from "./ptx-code.ts";
import { isTinyFloat } from "./tiny-floats.ts";

/** Registers of a value: one a lane, or one for two lanes (`isPacked`). */
export type Registers = readonly Operand[];

const computed: Partial<Record<DType, RegisterClass>> = {
  ...{ f64: "d", i64: "d", u64: "d" },
  ...{ f32: "r", i32: "r", u32: "r", i16: "r", u16: "r", i8: "r", u8: "r" },
  ...{ i4: "r", u4: "r", i2: "r", u2: "r" },
  ...{ f8e4m3fn: "r", f8e4m3fnuz: "r", f8e5m2: "r", f8e5m2fnuz: "r", f4e2m1: "r", e8m0: "r" },
  ...{ f16: "h", bf16: "h", bool: "p" },
};

/** The register class of a scalar; undefined for dtypes that cannot be computed with. */
export function findClass(dtype: DType): RegisterClass | undefined {
  return computed[dtype];
}

export function isNarrowFloat(dtype: DType): dtype is "f16" | "bf16" {
  return dtype === "f16" || dtype === "bf16";
}

export function isFloat(dtype: DType): boolean {
  return dtypes[dtype].kind === "float";
}

export function isUnsigned(dtype: DType): boolean {
  return dtypes[dtype].kind === "uint";
}

export function isPacked(dtype: DType, lanes: number): boolean {
  return lanes > 1 && isNarrowFloat(dtype);
}

/** Registers that a value takes. */
export function registerCount(dtype: DType, lanes: number): number {
  return isPacked(dtype, lanes) ? Math.ceil(lanes / 2) : lanes;
}

export function classOfRegisters(dtype: DType, lanes: number): RegisterClass {
  return isPacked(dtype, lanes) ? "r" : findClass(dtype)!;
}

/** One register a lane: packed words taken apart. */
export function lanesOf(code: PtxCode, dtype: DType, lanes: number, value: Registers): Registers {
  if (!isPacked(dtype, lanes)) return value;
  const parts: Operand[] = [];
  for (const word of value) {
    const [low, high] = [code.fresh("h"), code.fresh("h")];
    code.emit(`mov.b32 {${low}, ${high}}, ${word}`);
    parts.push(low, high);
  }
  return parts.slice(0, lanes);
}

/** The inverse of lanesOf. */
export function joinLanes(code: PtxCode, dtype: DType, parts: Registers): Registers {
  if (!isPacked(dtype, parts.length)) return parts;
  return pairsOf(parts).map(([low, high]) => {
    const word = code.fresh("r");
    code.emit(`mov.b32 ${word}, {${low}, ${high}}`);
    return word;
  });
}

/** Neighbours; an odd last one is its own neighbour. */
function pairsOf(parts: Registers): (readonly [Operand, Operand])[] {
  const count = Math.ceil(parts.length / 2);
  return Array.from({ length: count }, (_, i) => [
    parts[2 * i]!,
    parts[2 * i + 1] ?? parts[2 * i]!,
  ]);
}

/** f16 or bf16 as f32, one register a lane. */
export function widen(
  code: PtxCode,
  dtype: "f16" | "bf16",
  lanes: number,
  value: Registers,
): Registers {
  if (dtype === "bf16" && isPacked(dtype, lanes)) {
    const parts = value.flatMap((word) => [
      code.op("shl.b32", "r", word, "16"),
      code.op("and.b32", "r", word, "0xffff0000"),
    ]);
    return parts.slice(0, lanes);
  }
  return lanesOf(code, dtype, lanes, value).map((part) => {
    if (dtype === "f16") return code.op("cvt.f32.f16", "r", part);
    return code.op("shl.b32", "r", code.op("cvt.u32.u16", "r", part), "16");
  });
}

/** f32 rounded to f16 or bf16, in the form of a value. */
export function narrow(code: PtxCode, dtype: "f16" | "bf16", parts: Registers): Registers {
  if (parts.length === 1) return [code.op(`cvt.rn.${dtype}.f32`, "h", parts[0]!)];
  return pairsOf(parts).map(([low, high]) => code.op(`cvt.rn.${dtype}x2.f32`, "r", high, low));
}

/** A constant as an immediate; a predicate is made. */
export function literal(code: PtxCode, dtype: DType, value: number | bigint): Operand {
  if (dtype === "bool") {
    return code.op("setp.ne.s32", "p", value ? "1" : "0", "0");
  }
  if (dtype === "f32") return f32Immediate(Number(value));
  if (dtype === "f64") return f64Immediate(Number(value));
  if (isTinyFloat(dtype)) return String(encodeFloat(dtype, Number(value)));
  if (isNarrowFloat(dtype)) {
    return narrow(code, dtype, [code.op("mov.b32", "r", f32Immediate(Number(value)))])[0]!;
  }
  const integer = BigInt(typeof value === "bigint" ? value : Math.trunc(value));
  return String(isUnsigned(dtype) ? integer : BigInt.asIntN(64, integer));
}

/** A register with the value of an operand, which may be an immediate. */
export function toRegister(code: PtxCode, kind: RegisterClass, operand: Operand): Operand {
  if (operand.startsWith("%")) return operand;
  const bits = kind === "d" ? 64 : kind === "h" ? 16 : 32;
  return code.op(`mov.b${bits}`, kind, operand);
}

/** Copies registers: both sides of one class. */
export function copyRegister(code: PtxCode, kind: RegisterClass, to: Operand, from: Operand): void {
  const type = { p: "pred", h: "b16", r: "b32", d: "b64" }[kind];
  code.emit(`mov.${type} ${to}, ${from}`);
}
