/**
 * Words for vector arithmetic on 32-bit and 64-bit float lanes, and 32-bit integer lanes, the same for
 * EVEX and VEX code: each takes registers and gives a new one. A comparison gives a `Mask`: an opmask
 * under EVEX, lanes of all ones or zeros under VEX.
 */
import type { FunctionCode } from "./function-code.ts";
import { type Register, type RegisterBits, sized } from "./operand.ts";

export interface Features {
  /** EVEX encodings: 32 registers, opmasks (AVX-512 F, BW, VL, DQ); else AVX2 and FMA. */
  readonly evex: boolean;
  readonly vectorBits: 256 | 512;
}

/** Predicates of vcmpps; the ordered ones are false on NaN. */
export const floatPredicates = {
  ...{ equal: 0, less: 1, lessEqual: 2, unordered: 3, notEqual: 4, notLess: 5, ordered: 7 },
  ...{ greaterEqual: 13, greater: 14 },
} as const;

export type FloatPredicate = keyof typeof floatPredicates;

/** Predicates of vpcmpd. */
export const integerPredicates = {
  ...{ equal: 0, less: 1, lessEqual: 2, notEqual: 4, greaterEqual: 5, greater: 6 },
} as const;

export type IntegerPredicate = keyof typeof integerPredicates;

export type Mask = Register;

/** Rounding of vrndscaleps without exceptions. */
export const roundings = { round: 8, floor: 9, ceil: 10, trunc: 11 } as const;

const floatBits = new DataView(new ArrayBuffer(8));

export function patternOfF32(value: number): number {
  floatBits.setFloat32(0, value);
  return floatBits.getInt32(0);
}

export function patternOfF64(value: number): bigint {
  floatBits.setFloat64(0, value);
  return floatBits.getBigUint64(0);
}

export class VectorCode {
  readonly f: FunctionCode;
  readonly bits: RegisterBits;
  readonly evex: boolean;
  /** Suffix of the float instructions: ps or pd. */
  readonly #p: "ps" | "pd";

  constructor(
    f: FunctionCode,
    features: Features,
    bits: RegisterBits,
    lane: "f32" | "f64" = "f32",
  ) {
    this.f = f;
    this.bits = bits;
    this.evex = features.evex;
    this.#p = lane === "f32" ? "ps" : "pd";
  }

  op(name: string, ...operands: readonly (Register | number)[]): Register {
    const r = this.f.vec(this.bits);
    this.f.emit(name, r, ...operands);
    return r;
  }

  /** A float in every lane. */
  constant(value: number): Register {
    if (this.#p === "pd") return this.f.splat64(patternOfF64(value), this.bits);
    return this.f.splat32(patternOfF32(value), this.bits);
  }

  /** A 32-bit pattern in every lane. */
  i32(pattern: number): Register {
    return this.f.splat32(pattern, this.bits);
  }

  /** The sign bit in every lane. */
  signs(): Register {
    if (this.#p === "pd") return this.f.splat64(1n << 63n, this.bits);
    return this.i32(0x80000000);
  }

  add = (a: Register, b: Register): Register => this.op(`vadd${this.#p}`, a, b);
  sub = (a: Register, b: Register): Register => this.op(`vsub${this.#p}`, a, b);
  mul = (a: Register, b: Register): Register => this.op(`vmul${this.#p}`, a, b);
  div = (a: Register, b: Register): Register => this.op(`vdiv${this.#p}`, a, b);
  sqrt = (a: Register): Register => this.op(`vsqrt${this.#p}`, a);
  /** The second where the first is less than, equal to, or not comparable with it. */
  minOrSecond = (a: Register, b: Register): Register => this.op(`vmin${this.#p}`, a, b);
  maxOrSecond = (a: Register, b: Register): Register => this.op(`vmax${this.#p}`, a, b);
  and = (a: Register, b: Register): Register => this.op("vandps", a, b);
  /** b without the bits of a. */
  without = (a: Register, b: Register): Register => this.op("vandnps", a, b);
  or = (a: Register, b: Register): Register => this.op("vorps", a, b);
  xor = (a: Register, b: Register): Register => this.op("vxorps", a, b);
  shl = (a: Register, n: number): Register => this.op("vpslld", a, n);
  shr = (a: Register, n: number): Register => this.op("vpsrld", a, n);
  sar = (a: Register, n: number): Register => this.op("vpsrad", a, n);

  abs(a: Register): Register {
    return this.without(this.signs(), a);
  }

  neg(a: Register): Register {
    return this.xor(a, this.signs());
  }

  rounded(a: Register, how: keyof typeof roundings): Register {
    return this.op(`${this.evex ? "vrndscale" : "vround"}${this.#p}`, a, roundings[how]);
  }

  /** a * b + c */
  fma(a: Register, b: Register, c: Register): Register {
    const r = this.copy(a);
    this.f.emit(`vfmadd213${this.#p}`, r, b, c);
    return r;
  }

  /** a * b + k; where registers are few, k is read from memory by the instruction itself. */
  fmaConstant(a: Register, b: Register, k: number): Register {
    if (this.evex || this.#p === "pd") return this.fma(a, b, this.constant(k));
    const r = this.copy(a);
    this.f.emit("vfmadd213ps", r, b, this.f.constants.lanes(patternOfF32(k), this.bits / 32));
    return r;
  }

  /** Of sixteen floats, for each lane the one whose number its lowest four bits are (EVEX). */
  lookUp(table: readonly number[], numbers: Register): Register {
    const found = this.f.vec(512);
    const bytes = new Uint8Array(Float32Array.from(table).buffer);
    this.f.emit("vpermps", found, sized(numbers, 512), this.f.constants.bytes(bytes));
    return sized(found, this.bits);
  }

  copy(a: Register): Register {
    return this.op("vmovaps", a);
  }

  compare(predicate: FloatPredicate, a: Register, b: Register): Mask {
    const mask = this.evex ? this.f.mask() : this.f.vec(this.bits);
    this.f.emit(`vcmp${this.#p}`, mask, a, b, floatPredicates[predicate]);
    return mask;
  }

  /** Of 32-bit integers. */
  compareIntegers(predicate: IntegerPredicate, a: Register, b: Register, unsigned: boolean): Mask {
    if (this.evex) {
      const mask = this.f.mask();
      this.f.emit(unsigned ? "vpcmpud" : "vpcmpd", mask, a, b, integerPredicates[predicate]);
      return mask;
    }
    const bias = (x: Register): Register => (unsigned ? this.xor(x, this.signs()) : x);
    const not = (x: Register): Register => this.xor(x, this.i32(-1));
    switch (predicate) {
      case "equal":
        return this.op("vpcmpeqd", a, b);
      case "notEqual":
        return not(this.op("vpcmpeqd", a, b));
      case "less":
        return this.op("vpcmpgtd", bias(b), bias(a));
      case "greater":
        return this.op("vpcmpgtd", bias(a), bias(b));
      case "lessEqual":
        return not(this.op("vpcmpgtd", bias(a), bias(b)));
      case "greaterEqual":
        return not(this.op("vpcmpgtd", bias(b), bias(a)));
    }
  }

  /** `then` where the mask is set. */
  select(mask: Mask, then: Register, otherwise: Register): Register {
    const r = this.f.vec(this.bits);
    if (this.evex) this.f.masked(mask, false, `vblendm${this.#p}`, r, otherwise, then);
    else this.f.emit(`vblendv${this.#p}`, r, otherwise, then, mask);
    return r;
  }

  /** All ones where the mask is set: how bool vectors are held. */
  lanesOf(mask: Mask): Register {
    return this.evex ? this.op("vpmovm2d", mask) : mask;
  }

  /** As lanesOf, for 64-bit lanes. */
  lanes64(mask: Mask): Register {
    return this.evex ? this.op("vpmovm2q", mask) : mask;
  }

  maskOf(lanes: Register): Mask {
    if (!this.evex) return lanes;
    const mask = this.f.mask();
    this.f.emit("vpmovd2m", mask, lanes);
    return mask;
  }

  /** Coefficients from the constant one up, by Horner's rule with fused steps. */
  polynomial(x: Register, coefficients: readonly number[]): Register {
    const [last, ...rest] = coefficients.toReversed();
    return rest.reduce((sum, k) => this.fmaConstant(sum, x, k), this.constant(last!));
  }

  /** Keeps a NaN of x. */
  clamp(x: Register, low: number, high: number): Register {
    return this.maxOrSecond(this.constant(low), this.minOrSecond(this.constant(high), x));
  }
}
