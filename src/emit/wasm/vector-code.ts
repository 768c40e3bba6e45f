/**
 * A few words for writing v128 arithmetic as expressions. A `V` pushes its value; `keep` evaluates it
 * once into a local. Used by the tables of library functions.
 */
import type { FunctionBuilder, Local } from "./function-builder.ts";
import { pushSplatLiteral } from "./lanes.ts";
import type { PlainOp } from "./opcodes.ts";

/** Code that pushes one v128. */
export type V = () => void;

export class VectorCode {
  readonly f: FunctionBuilder;
  readonly #kept: Local[] = [];

  constructor(f: FunctionBuilder) {
    this.f = f;
  }

  param(n: number): V {
    return () => this.f.get(this.f.param(n));
  }

  local(local: Local): V {
    return () => this.f.get(local);
  }

  /** The value in all f32 lanes. */
  f32(value: number): V {
    return () => pushSplatLiteral(this.f, "f32", value);
  }

  /** The value in all i32 lanes. */
  i32(value: number): V {
    return () => pushSplatLiteral(this.f, "i32", value);
  }

  op(name: PlainOp, ...operands: readonly V[]): V {
    return () => {
      for (const operand of operands) operand();
      this.f.op(name);
    };
  }

  add(a: V, b: V): V {
    return this.op("f32x4.add", a, b);
  }

  sub(a: V, b: V): V {
    return this.op("f32x4.sub", a, b);
  }

  mul(a: V, b: V): V {
    return this.op("f32x4.mul", a, b);
  }

  div(a: V, b: V): V {
    return this.op("f32x4.div", a, b);
  }

  and(a: V, b: V): V {
    return this.op("v128.and", a, b);
  }

  or(a: V, b: V): V {
    return this.op("v128.or", a, b);
  }

  abs(a: V): V {
    return this.op("f32x4.abs", a);
  }

  /** a where the mask is set, else b. */
  select(mask: V, a: V, b: V): V {
    return this.op("v128.bitselect", a, b, mask);
  }

  /** Shifts all i32 lanes. */
  shift(kind: "shl" | "shr_s" | "shr_u", a: V, bits: number): V {
    return () => {
      a();
      this.f.i32Const(bits).op(`i32x4.${kind}`);
    };
  }

  /** c0 + x (c1 + x (c2 + …)) */
  polynomial(x: V, coefficients: readonly number[]): V {
    return coefficients
      .slice(0, -1)
      .reduceRight<V>(
        (sum, c) => this.add(this.mul(sum, x), this.f32(c)),
        this.f32(coefficients.at(-1)!),
      );
  }

  keep(value: V): V {
    const local = this.f.local("v128");
    this.#kept.push(local);
    value();
    this.f.set(local);
    return () => this.f.get(local);
  }

  /** Gives the locals of what was kept back; the values are read no more. */
  end(): void {
    this.f.release(...this.#kept.splice(0));
  }
}
