/**
 * Operators on integer scalars in general registers, extended from their width. Division and remainder
 * by zero give zero, shifts by the width or more what one-bit shifts would give
 * (semantics/scalar-meaning.ts).
 */
import { type DType, dtypes } from "../../semantics/dtype.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { type FunctionCode, scratchA, scratchD } from "./function-code.ts";
import type { KernelContext } from "./kernel-context.ts";
import { isPacked, isUnsigned, scalarBits } from "./lanes.ts";
import { type Register, sized } from "./operand.ts";
import type { ConditionCode } from "./rows/general-rows.ts";

/** 1 where the condition holds after a comparison, else 0. */
export function flagOf(f: FunctionCode, condition: ConditionCode): Register {
  const r = f.gpr(32);
  f.emit(`set${condition}`, sized(r, 8)).emit("movzx8", r, sized(r, 8));
  return r;
}

/** Extends what an operation left outside the width of a dtype below 32 bits. */
export function normalize(f: FunctionCode, dtype: DType, r: Register): Register {
  if (dtype === "i8") f.emit("movsx8", r, sized(r, 8));
  else if (dtype === "i16") f.emit("movsx16", r, sized(r, 16));
  else if (dtype === "u8") f.emit("movzx8", r, sized(r, 8));
  else if (dtype === "u16") f.emit("movzx16", r, sized(r, 16));
  else if (isPacked(dtype)) {
    const { bits } = dtypes[dtype];
    if (isUnsigned(dtype)) f.emit("and", r, 2 ** bits - 1);
    else f.emit("shl", r, 32 - bits).emit("sar", r, 32 - bits);
  }
  return r;
}

export function applyInteger(
  context: KernelContext,
  op: ScalarOp,
  dtype: DType,
  operands: readonly Register[],
): Register {
  const row = rows[op];
  if (!row) context.refuse(`${op} of ${dtype}`, "cast the operand to f32 in the model");
  const code = new IntegerCode(context.f, scalarBits(dtype), isUnsigned(dtype));
  const result = row(code, operands[0]!, operands[1]!);
  const predicate = op === "equal" || op === "less" || op === "lessEqual" || op === "isNan";
  return predicate ? result : normalize(context.f, dtype, result);
}

/** Writes code for one width and sign. */
class IntegerCode {
  readonly f: FunctionCode;
  readonly bits: 32 | 64;
  readonly unsigned: boolean;

  constructor(f: FunctionCode, bits: 32 | 64, unsigned: boolean) {
    this.f = f;
    this.bits = bits;
    this.unsigned = unsigned;
  }

  copy(a: Register): Register {
    const r = this.f.gpr(this.bits);
    this.f.emit("mov", r, a);
    return r;
  }

  constant(value: number): Register {
    const r = this.f.gpr(this.bits);
    if (value === 0) this.f.emit("xor", sized(r, 32), sized(r, 32));
    else this.f.emit("mov", r, value);
    return r;
  }

  binary(op: string, a: Register, b: Register | number): Register {
    const r = this.copy(a);
    this.f.emit(op, r, b);
    return r;
  }

  compare(condition: ConditionCode, a: Register, b: Register): Register {
    this.f.emit("cmp", a, b);
    return flagOf(this.f, condition);
  }

  /** `then` where a condition holds between a and b. */
  choose(
    condition: ConditionCode,
    [a, b]: readonly [Register, Register | number],
    [then, otherwise]: readonly [Register, Register],
  ): Register {
    const r = this.copy(otherwise);
    this.f.emit("cmp", a, b).emit(`cmov${condition}`, r, then);
    return r;
  }

  /**
   * a divided by b: zero divisors give zero; -1 negates (the one signed overflow). `part` is the
   * hardware's quotient or remainder.
   */
  divided(a: Register, b: Register, part: "quotient" | "remainder"): Register {
    const { f } = this;
    const r = this.constant(0);
    const end = f.label();
    f.emit("test", b, b).emit("je", end);
    if (!this.unsigned) {
      const plain = f.label();
      f.emit("cmp", b, -1).emit("jne", plain);
      if (part === "quotient") f.emit("mov", r, a).emit("neg", r);
      f.emit("jmp", end).place(plain);
    }
    const low = sized(scratchA, this.bits);
    f.emit("mov", low, a);
    if (this.unsigned) f.emit("xor", sized(scratchD, 32), sized(scratchD, 32)).emit("div", b);
    else f.emit(this.bits === 64 ? "cqo" : "cdq").emit("idiv", b);
    f.emit("mov", r, part === "quotient" ? low : sized(scratchD, this.bits));
    f.place(end);
    return r;
  }

  floorMod(a: Register, b: Register): Register {
    const r = this.divided(a, b, "remainder");
    if (this.unsigned) return r;
    // Add the divisor where the remainder is not zero and has the other sign.
    const { f } = this;
    const end = f.label();
    const sign = this.binary("xor", r, b);
    f.emit("test", r, r).emit("je", end).emit("test", sign, sign).emit("jns", end);
    f.emit("add", r, b).place(end);
    return r;
  }

  shiftLeft(a: Register, b: Register): Register {
    const r = this.f.gpr(this.bits);
    this.f.emit("shlx", r, a, b);
    return this.choose("ae", [b, this.bits], [this.constant(0), r]);
  }

  /** Past the width: all sign bits, or zero; a negative count gives zero. */
  shiftRight(a: Register, b: Register): Register {
    const r = this.f.gpr(this.bits);
    if (this.unsigned) {
      this.f.emit("shrx", r, a, b);
      return this.choose("ae", [b, this.bits], [this.constant(0), r]);
    }
    const count = this.choose("ae", [b, this.bits], [this.constant(this.bits - 1), b]);
    this.f.emit("sarx", r, a, count);
    return this.choose("l", [b, 0], [this.constant(0), r]);
  }

  /** Square and multiply; a negative exponent gives what is left of 1 / x^n after truncation. */
  power(base: Register, exponent: Register): Register {
    const { f } = this;
    const [square, left, result] = [this.copy(base), this.copy(exponent), this.constant(1)];
    const [again, even, negative, end] = [f.label(), f.label(), f.label(), f.label()];
    if (!this.unsigned) f.emit("test", left, left).emit("js", negative);
    f.inLoop(() => {
      f.place(again).emit("test", left, left).emit("je", end);
      f.emit("test", left, 1).emit("je", even).emit("imul", result, square).place(even);
      f.emit("imul", square, square).emit("shr", left, 1).emit("jmp", again);
    });
    if (!this.unsigned) {
      // 1 and -1 to an even power are 1, to an odd one themselves; all others vanish.
      f.place(negative);
      const unit = this.binary("add", base, 1);
      f.emit("mov", result, base).emit("test", left, 1);
      const odd = f.label();
      f.emit("jne", odd).emit("imul", result, base).place(odd);
      f.emit("test", unit, -3).emit("je", end).emit("xor", result, result);
    }
    f.place(end);
    return result;
  }
}

type Row = (c: IntegerCode, a: Register, b: Register) => Register;

const itself: Row = (c, a) => c.copy(a);

const rows: Partial<Record<ScalarOp, Row>> = {
  ...{ floor: itself, ceil: itself, round: itself, trunc: itself },
  isNan: (c) => c.constant(0),
  add: (c, a, b) => c.binary("add", a, b),
  sub: (c, a, b) => c.binary("sub", a, b),
  mul: (c, a, b) => c.binary("imul", a, b),
  bitAnd: (c, a, b) => c.binary("and", a, b),
  bitOr: (c, a, b) => c.binary("or", a, b),
  bitXor: (c, a, b) => c.binary("xor", a, b),
  bitNot: (c, a) => c.binary("xor", a, -1),
  equal: (c, a, b) => c.compare("e", a, b),
  less: (c, a, b) => c.compare(c.unsigned ? "b" : "l", a, b),
  lessEqual: (c, a, b) => c.compare(c.unsigned ? "be" : "le", a, b),
  min: (c, a, b) => c.choose(c.unsigned ? "b" : "l", [a, b], [a, b]),
  max: (c, a, b) => c.choose(c.unsigned ? "a" : "g", [a, b], [a, b]),
  div: (c, a, b) => c.divided(a, b, "quotient"),
  mod: (c, a, b) => c.divided(a, b, "remainder"),
  floorMod: (c, a, b) => c.floorMod(a, b),
  shiftLeft: (c, a, b) => c.shiftLeft(a, b),
  shiftRight: (c, a, b) => c.shiftRight(a, b),
  pow: (c, a, b) => c.power(a, b),
  neg: (c, a) => {
    const r = c.copy(a);
    c.f.emit("neg", r);
    return r;
  },
  abs: (c, a) => {
    if (c.unsigned) return c.copy(a);
    const sign = c.binary("sar", a, c.bits - 1);
    return c.binary("sub", c.binary("xor", a, sign), sign);
  },
  relu: (c, a) => (c.unsigned ? c.copy(a) : c.choose("l", [a, 0], [c.constant(0), a])),
  sign: (c, a) => {
    const one = c.choose("ne", [a, 0], [c.constant(1), c.constant(0)]);
    return c.unsigned ? one : c.choose("l", [a, 0], [c.constant(-1), one]);
  },
  /** 1 / x truncated: itself for 1 and -1, else zero. */
  reciprocal: (c, a) => {
    const one = c.choose("e", [a, 1], [a, c.constant(0)]);
    return c.unsigned ? one : c.choose("e", [a, -1], [a, one]);
  },
};
