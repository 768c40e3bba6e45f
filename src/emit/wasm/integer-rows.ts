/**
 * Library functions for integer operators that are more than one instruction, for i32 and i64 in both
 * signs. Division and remainder by zero give zero, shifts by the width or more what one-bit shifts
 * would give (semantics/scalar-meaning.ts); results may leave a narrow dtype's width.
 */
import type { FunctionBuilder, Local } from "./function-builder.ts";
import type { LibraryRow } from "./library.ts";
import type { PlainOp } from "./opcodes.ts";

type Width = "i32" | "i64";
type Sign = "s" | "u";

/** Writes code for one width and sign. */
class IntegerCode {
  readonly f: FunctionBuilder;
  readonly width: Width;
  readonly sign: Sign;

  constructor(f: FunctionBuilder, width: Width, sign: Sign) {
    this.f = f;
    this.width = width;
    this.sign = sign;
  }

  constant(value: number): this {
    if (this.width === "i32") this.f.i32Const(value);
    else this.f.i64Const(BigInt(value));
    return this;
  }

  /** `op` without width; a trailing `*` becomes the sign. */
  op(op: string): this {
    this.f.op(`${this.width}.${op.replace("*", `_${this.sign}`)}` as PlainOp);
    return this;
  }

  get(n: number): this {
    this.f.get(this.f.param(n));
    return this;
  }

  select(): this {
    this.f.op("select");
    return this;
  }

  local(): Local {
    return this.f.local(this.width);
  }
}

type Body = (c: IntegerCode) => void;

const unary: Record<string, Body> = {
  neg: (c) => c.constant(0).get(0).op("sub"),
  bitNot: (c) => c.get(0).constant(-1).op("xor"),
  abs: (c) => {
    if (c.sign === "u") c.get(0);
    else c.constant(0).get(0).op("sub").get(0).get(0).constant(0).op("lt_s").select();
  },
  relu: (c) => {
    if (c.sign === "u") c.get(0);
    else c.constant(0).get(0).get(0).constant(0).op("lt_s").select();
  },
  sign: (c) => {
    if (c.sign === "u") c.constant(1).constant(0).get(0).constant(0).op("ne").select();
    else {
      const bits = c.width === "i32" ? 31 : 63;
      c.get(0).constant(bits).op("shr_s");
      c.constant(1).constant(0).get(0).constant(0).op("gt_s").select().op("or");
    }
  },
  /** 1 / x truncated: itself for 1 and -1, else zero. */
  reciprocal: (c) => {
    c.get(0).constant(0);
    c.get(0).constant(1).op("eq");
    if (c.sign === "s") {
      c.get(0).constant(-1).op("eq");
      c.f.op("i32.or");
    }
    c.select();
  },
};

/** Guards a division: zero divisors give zero, -1 negates (the one signed overflow). */
function safely(c: IntegerCode, byMinusOne: () => void, divide: () => void): void {
  const { f } = c;
  c.get(1).op("eqz");
  f.if(() => {
    c.constant(0);
    f.op("return");
  });
  if (c.sign === "s") {
    c.get(1).constant(-1).op("eq");
    f.if(() => {
      byMinusOne();
      f.op("return");
    });
  }
  divide();
}

const binary: Record<string, Body> = {
  min: (c) => c.get(0).get(1).get(0).get(1).op("lt*").select(),
  max: (c) => c.get(0).get(1).get(0).get(1).op("gt*").select(),
  div: (c) =>
    safely(
      c,
      () => c.constant(0).get(0).op("sub"),
      () => c.get(0).get(1).op("div*"),
    ),
  mod: (c) =>
    safely(
      c,
      () => c.constant(0),
      () => c.get(0).get(1).op("rem*"),
    ),
  floorMod: (c) =>
    safely(
      c,
      () => c.constant(0),
      () => floorMod(c),
    ),
  shiftLeft: (c) => {
    const bits = c.width === "i32" ? 32 : 64;
    c.get(0).get(1).op("shl").constant(0).get(1).constant(bits).op("lt_u").select();
  },
  shiftRight: shiftRight,
  pow: power,
};

function floorMod(c: IntegerCode): void {
  const { f } = c;
  c.get(0).get(1).op("rem*");
  if (c.sign === "u") return;
  const r = c.local();
  // Add the divisor where the remainder is not zero and has the other sign.
  f.tee(r);
  c.get(1).constant(0);
  f.get(r);
  c.get(1).op("xor").constant(0).op("lt_s");
  f.get(r);
  c.constant(0).op("ne");
  f.op("i32.and").op("select");
  c.op("add");
}

/** Past the width: all sign bits, or zero; a negative count gives zero. */
function shiftRight(c: IntegerCode): void {
  const bits = c.width === "i32" ? 32 : 64;
  c.get(0).get(1).op("shr*");
  if (c.sign === "s") {
    c.get(0)
      .constant(bits - 1)
      .op("shr_s")
      .constant(0);
    c.get(1).constant(0).op("ge_s").select();
  } else c.constant(0);
  c.get(1).constant(bits).op("lt_u").select();
}

/** Square and multiply; a negative exponent gives what is left of 1 / x^n after truncation. */
function power(c: IntegerCode): void {
  const { f } = c;
  const result = c.local();
  if (c.sign === "s") {
    c.get(1).constant(0).op("lt_s");
    f.if(() => {
      c.get(1).constant(1).op("and").op("eqz");
      // Even: 1 for both units. Odd: the unit itself.
      f.if(
        () => c.get(0).get(0).op("mul"),
        () => c.get(0),
        c.width,
      );
      c.constant(0);
      c.get(0).constant(1).op("eq");
      c.get(0).constant(-1).op("eq");
      f.op("i32.or").op("select").op("return");
    });
  }
  c.constant(1);
  f.set(result);
  f.block((leave) => {
    f.loop((again) => {
      c.get(1).op("eqz");
      f.brIf(leave);
      f.get(result);
      c.get(0).constant(1);
      c.get(1).constant(1).op("and").constant(0).op("ne");
      f.op("select");
      c.op("mul");
      f.set(result);
      c.get(0).get(0).op("mul");
      f.set(f.param(0));
      c.get(1).constant(1).op("shr_u");
      f.set(f.param(1)).br(again);
    });
  });
  f.get(result);
}

function row(body: Body, width: Width, sign: Sign, arity: 1 | 2): LibraryRow {
  const params = arity === 1 ? [width] : [width, width];
  return {
    signature: { params, results: [width] },
    body: (f) => body(new IntegerCode(f, width, sign)),
  };
}

/** Rows named `div.i32_s` and so on. */
export const integerRows: readonly (readonly [string, LibraryRow])[] = (
  ["i32", "i64"] as const
).flatMap((width) =>
  (["s", "u"] as const).flatMap((sign) => [
    ...Object.entries(unary).map(
      ([op, body]) => [`${op}.${width}_${sign}`, row(body, width, sign, 1)] as const,
    ),
    ...Object.entries(binary).map(
      ([op, body]) => [`${op}.${width}_${sign}`, row(body, width, sign, 2)] as const,
    ),
  ]),
);
