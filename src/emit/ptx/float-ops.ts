/**
 * Float operators on f32 and f64 registers: IEEE instructions where there are (rounded to nearest even,
 * subnormals kept), short sequences, and the functions of math-rows.ts. f16 and bf16 come widened to f32
 * and are rounded once afterwards, which is exact for the basic operators (24 >= 2 * 11 + 2 bits).
 */
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { FloatCode } from "./float-code.ts";
import { mathApply } from "./math-rows.ts";
import type { Operand, PtxCode } from "./ptx-code.ts";

type Row = (c: FloatCode, a: Operand, b: Operand) => Operand;

/** NaN if either is: f64 has no such instruction. */
function extremum(name: "min" | "max"): Row {
  return (c, a, b) => {
    if (c.bits === 32) return c.op(`${name}.NaN`, a, b);
    const plain = c.op(name, a, b);
    return c.select(c.test("nan", a, b), Number.NaN, plain);
  };
}

function rounded(mode: string): Row {
  return (c, a) => c.code.op(`cvt.${mode}.f${c.bits}.f${c.bits}`, c.kind, a);
}

/** The remainder of truncated division, exact: subtracts the largest halvings of |b| 2^k that fit. */
function remainder(c: FloatCode, a: Operand, b: Operand): Operand {
  const { code } = c;
  const size = c.abs(b);
  const rest = c.variable(c.abs(a));
  const step = c.variable(size);
  const finite = c.test("lt", rest, Number.POSITIVE_INFINITY);
  const usable = code.op("and.pred", "p", finite, c.test("gt", size, 0));
  const bounded = c.test("lt", size, Number.POSITIVE_INFINITY);
  c.when(
    code.op("and.pred", "p", usable, bounded),
    () => {
      const [grow, grown] = [code.newLabel(), code.newLabel()];
      const half = c.mul(rest, 0.5);
      code.place(grow).emit(`@!${c.test("le", step, half)} bra ${grown}`);
      c.set(step, c.add(step, step));
      code.emit(`bra ${grow}`).place(grown);
      const [again, end] = [code.newLabel(), code.newLabel()];
      code.place(again).emit(`@!${c.test("ge", step, size)} bra ${end}`);
      const fits = c.test("ge", rest, step);
      c.set(rest, c.select(fits, c.sub(rest, step), rest));
      c.set(step, c.mul(step, 0.5));
      code.emit(`bra ${again}`).place(end);
    },
    // An infinite divisor leaves the dividend.
    () => c.set(rest, c.select(usable, rest, Number.NaN)),
  );
  return c.copySign(rest, a);
}

function floorMod(c: FloatCode, a: Operand, b: Operand): Operand {
  const rest = remainder(c, a, b);
  const present = c.test("neu", rest, 0);
  const restBelow = c.test("lt", rest, 0);
  const differs = c.code.op("xor.pred", "p", restBelow, c.test("lt", b, 0));
  const raise = c.code.op("and.pred", "p", present, differs);
  return c.select(raise, c.add(rest, b), rest);
}

/** Bits of a negative number are its magnitude's above those of -0: what is left of them there is minus the magnitude. */
function orderKey(c: FloatCode, a: Operand): Operand {
  const { code } = c;
  const bits = code.op("mov.b32", "r", c.operand(a));
  const below = code.op("setp.lt.s32", "p", bits, "0");
  const opposite = code.op("sub.s32", "r", "-2147483648", bits);
  const key = code.op("selp.b32", "r", opposite, bits, below);
  return code.op("selp.b32", "r", "2147483647", key, c.test("nan", a, a));
}

const rows: Partial<Record<ScalarOp, Row>> = {
  neg: (c, a) => c.neg(a),
  abs: (c, a) => c.abs(a),
  sign: (c, a) => {
    const large = c.test("gt", c.abs(a), 0);
    return c.select(large, c.copySign(1, a), a);
  },
  floor: rounded("rmi"),
  ceil: rounded("rpi"),
  round: rounded("rni"),
  trunc: rounded("rzi"),
  sqrt: (c, a) => c.sqrt(a),
  reciprocal: (c, a) => c.reciprocal(a),
  relu: (c, a) => extremum("max")(c, a, c.operand(0)),
  not: (c, a) => c.select(c.test("eq", a, 0), 1, 0),
  add: (c, a, b) => c.add(a, b),
  sub: (c, a, b) => c.sub(a, b),
  mul: (c, a, b) => c.mul(a, b),
  div: (c, a, b) => c.div(a, b),
  min: extremum("min"),
  max: extremum("max"),
  mod: remainder,
  floorMod,
  // Of f32 alone, as which wider and narrower ones come.
  orderKey: (c, a) => orderKey(c, a),
};

const predicates: Partial<Record<ScalarOp, (c: FloatCode, a: Operand, b: Operand) => Operand>> = {
  isNan: (c, a) => c.test("nan", a, a),
  equal: (c, a, b) => c.test("eq", a, b),
  less: (c, a, b) => c.test("lt", a, b),
  lessEqual: (c, a, b) => c.test("le", a, b),
};

/** Operators that give a predicate. */
export function isPredicate(op: ScalarOp): boolean {
  return predicates[op] !== undefined;
}

/** The operator on f32 or f64 registers; undefined where it has no spelling. */
export function floatApply(
  code: PtxCode,
  op: ScalarOp,
  bits: 32 | 64,
  operands: readonly Operand[],
): Operand | undefined {
  const [a, b = ""] = operands as [Operand, Operand?];
  const row = predicates[op] ?? rows[op];
  return row ? row(new FloatCode(code, bits), a, b) : mathApply(code, op, bits, operands);
}
