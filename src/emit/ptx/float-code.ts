/** Arithmetic on f32 or f64 registers, for spelling functions: constants become immediates. */
import { branch, f32Immediate, f64Immediate, type Operand, type PtxCode } from "./ptx-code.ts";

/** A register, or a number that becomes an immediate. */
export type Number = Operand | number;

export class FloatCode {
  readonly code: PtxCode;
  readonly bits: 32 | 64;
  readonly kind: "r" | "d";
  readonly #type: string;
  /** Divisions and roots within 2 units in the last place, in a few instructions; else rounded correctly. */
  readonly #isShort: boolean;

  constructor(code: PtxCode, bits: 32 | 64) {
    this.code = code;
    this.#isShort = code.isCallFree && bits === 32;
    this.bits = bits;
    this.kind = bits === 32 ? "r" : "d";
    this.#type = `f${bits}`;
  }

  operand(x: Number): Operand {
    if (typeof x !== "number") return x;
    return this.bits === 32 ? f32Immediate(x) : f64Immediate(x);
  }

  /** `opcode` with the type appended. */
  op(opcode: string, ...operands: readonly Number[]): Operand {
    const spelled = operands.map((o) => this.operand(o));
    return this.code.op(`${opcode}.${this.#type}`, this.kind, ...spelled);
  }

  add = (a: Number, b: Number): Operand => this.op("add.rn", a, b);
  sub = (a: Number, b: Number): Operand => this.op("sub.rn", a, b);
  mul = (a: Number, b: Number): Operand => this.op("mul.rn", a, b);
  fma = (a: Number, b: Number, c: Number): Operand => this.op("fma.rn", a, b, c);
  div = (a: Number, b: Number): Operand => this.op(this.#isShort ? "div.full" : "div.rn", a, b);
  sqrt = (a: Number): Operand => this.op(this.#isShort ? "sqrt.approx" : "sqrt.rn", a);
  reciprocal = (a: Number): Operand => this.op(this.#isShort ? "rcp.approx" : "rcp.rn", a);
  neg = (a: Number): Operand => this.op("neg", a);
  abs = (a: Number): Operand => this.op("abs", a);

  /** The other operand where one is NaN. */
  min = (a: Number, b: Number): Operand => this.op("min", a, b);
  max = (a: Number, b: Number): Operand => this.op("max", a, b);

  /** A predicate; `eq`, `lt`, … are false on NaN, `neu` true. */
  test(compare: string, a: Number, b: Number): Operand {
    return this.code.op(`setp.${compare}.${this.#type}`, "p", this.operand(a), this.operand(b));
  }

  select(predicate: Operand, yes: Number, no: Number): Operand {
    return this.code.op(
      `selp.b${this.bits}`,
      this.kind,
      this.operand(yes),
      this.operand(no),
      predicate,
    );
  }

  /** x with the sign of y. */
  copySign(x: Number, y: Number): Operand {
    return this.op("copysign", y, x);
  }

  /** coefficients[0] + coefficients[1] x + … */
  polynomial(x: Operand, coefficients: readonly number[]): Operand {
    const [last, ...rest] = coefficients.toReversed();
    return rest.reduce<Number>((sum, c) => this.fma(sum, x, c), last!) as Operand;
  }

  /** An integer instruction of the same width. */
  int(opcode: string, ...operands: readonly (Operand | number)[]): Operand {
    return this.code.op(opcode, this.kind, ...operands.map(String));
  }

  /** A register that branches may set. */
  variable(value: Number): Operand {
    return this.code.op(`mov.b${this.bits}`, this.kind, this.operand(value));
  }

  set(variable: Operand, value: Number): void {
    this.code.emit(`mov.b${this.bits} ${variable}, ${this.operand(value)}`);
  }

  when(predicate: Operand, then: () => void, otherwise?: () => void): void {
    branch(this.code, predicate, then, otherwise);
  }
}
