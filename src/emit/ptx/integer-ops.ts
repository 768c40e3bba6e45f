/**
 * Integer operators with the meanings of semantics/scalar-meaning.ts: wrapping arithmetic of the
 * dtype's width, division and remainder by zero give zero, shifts by the width or more what one-bit
 * shifts would. Integers narrower than 32 bits are computed in 32 and brought back to their width.
 */
import { type DType, dtypes } from "../../semantics/dtype.ts";
import type { ScalarOp } from "../../semantics/scalar-expr.ts";
import { branch, type Operand, type PtxCode } from "./ptx-code.ts";
import { isUnsigned, toRegister } from "./values.ts";

interface Width {
  readonly code: PtxCode;
  readonly bits: 32 | 64;
  /** s32, u64, … */
  readonly type: string;
  readonly kind: "r" | "d";
  readonly unsigned: boolean;
}

function widthOf(code: PtxCode, dtype: DType): Width {
  const unsigned = isUnsigned(dtype);
  const bits = dtypes[dtype].bits === 64 ? 64 : 32;
  return {
    code,
    bits,
    type: `${unsigned ? "u" : "s"}${bits}`,
    kind: bits === 64 ? "d" : "r",
    unsigned,
  };
}

type Row = (w: Width, a: Operand, b: Operand) => Operand;

/** An instruction of the type of the operands (`*`) or of bits (`#`). */
function plain(opcode: string): Row {
  return (w, ...operands) => {
    const name = opcode.replace("*", w.type).replace("#", `b${w.bits}`);
    return w.code.op(name, w.kind, ...operands.filter((o) => o !== ""));
  };
}

function compare(w: Width, test: string, a: Operand, b: Operand): Operand {
  return w.code.op(`setp.${test}.${w.type}`, "p", a, b);
}

function select(w: Width, predicate: Operand, yes: Operand, no: Operand): Operand {
  return w.code.op(`selp.b${w.bits}`, w.kind, yes, no, predicate);
}

/** `divide` on operands that cannot fault; zero for a zero divisor. */
function safely(w: Width, b: Operand, divide: (b: Operand) => Operand): Operand {
  const divisor = toRegister(w.code, w.kind, b);
  const zero = compare(w, "eq", divisor, "0");
  const result = divide(select(w, zero, "1", divisor));
  return select(w, zero, "0", result);
}

/** Truncated quotient; by -1 it is the negation, which wraps. */
function quotient(w: Width, a: Operand, b: Operand): Operand {
  if (w.unsigned) return w.code.op(`div.${w.type}`, w.kind, a, b);
  const minus = compare(w, "eq", b, "-1");
  const raw = w.code.op(`div.${w.type}`, w.kind, a, select(w, minus, "1", b));
  return select(w, minus, w.code.op(`neg.s${w.bits}`, w.kind, raw), raw);
}

function remainder(w: Width, a: Operand, b: Operand): Operand {
  if (w.unsigned) return w.code.op(`rem.${w.type}`, w.kind, a, b);
  const minus = compare(w, "eq", b, "-1");
  return w.code.op(`rem.${w.type}`, w.kind, a, select(w, minus, "1", b));
}

function floorMod(w: Width, a: Operand, b: Operand): Operand {
  const rest = remainder(w, a, b);
  if (w.unsigned) return rest;
  const mixed = w.code.op(`xor.b${w.bits}`, w.kind, rest, b);
  const differs = compare(w, "lt", mixed, "0");
  const raised = w.code.op(`setp.ne.and.${w.type}`, "p", rest, "0", differs);
  return select(w, raised, w.code.op(`add.${w.type}`, w.kind, rest, b), rest);
}

/** Square and multiply; a negative exponent truncates the fraction. */
function power(w: Width, base: Operand, exponent: Operand): Operand {
  const { code, kind, bits } = w;
  const [result, square, left] = [code.fresh(kind), code.fresh(kind), code.fresh(kind)];
  code.emit(`mov.b${bits} ${result}, 1`).emit(`mov.b${bits} ${square}, ${base}`);
  code.emit(`mov.b${bits} ${left}, ${exponent}`);
  const body = (): void => {
    const [again, end] = [code.newLabel(), code.newLabel()];
    code.place(again);
    code.emit(`@${compare(w, "eq", left, "0")} bra ${end}`);
    const odd = code.op(`and.b${bits}`, kind, left, "1");
    const product = code.op(`mul.lo.${w.type}`, kind, result, square);
    code.emit(`mov.b${bits} ${result}, ${select(w, compare(w, "ne", odd, "0"), product, result)}`);
    code.emit(`mul.lo.${w.type} ${square}, ${square}, ${square}`);
    code.emit(`shr.u${bits} ${left}, ${left}, 1`).emit(`bra ${again}`).place(end);
  };
  if (w.unsigned) {
    body();
    return result;
  }
  branch(
    code,
    compare(w, "lt", left, "0"),
    () => {
      const odd = compare(w, "ne", code.op(`and.b${bits}`, kind, left, "1"), "0");
      const ofMinus = select(w, odd, "-1", "1");
      const one = compare(w, "eq", square, "1");
      const minus = compare(w, "eq", square, "-1");
      const small = select(w, minus, ofMinus, "0");
      code.emit(`mov.b${bits} ${result}, ${select(w, one, "1", small)}`);
    },
    body,
  );
  return result;
}

/** The amount as 32 bits that are at least the width where it is not below it. */
function amountOf(w: Width, b: Operand): Operand {
  const amount = toRegister(w.code, w.kind, b);
  if (w.bits === 32) return amount;
  const small = w.code.op("min.u64", "d", amount, "64");
  return w.code.op("cvt.u32.u64", "r", small);
}

function shiftRight(w: Width, a: Operand, b: Operand): Operand {
  const shifted = w.code.op(`shr.${w.type}`, w.kind, a, amountOf(w, b));
  if (w.unsigned) return shifted;
  const backwards = compare(w, "lt", toRegister(w.code, w.kind, b), "0");
  return select(w, backwards, "0", shifted);
}

const rows: Partial<Record<ScalarOp, Row>> = {
  neg: (w, a) => w.code.op(`neg.s${w.bits}`, w.kind, a),
  bitNot: plain("not.#"),
  add: plain("add.*"),
  sub: plain("sub.*"),
  mul: plain("mul.lo.*"),
  min: plain("min.*"),
  max: plain("max.*"),
  bitAnd: plain("and.#"),
  bitOr: plain("or.#"),
  bitXor: plain("xor.#"),
  abs: (w, a) => (w.unsigned ? a : w.code.op(`abs.${w.type}`, w.kind, a)),
  relu: (w, a) => (w.unsigned ? a : w.code.op(`max.${w.type}`, w.kind, a, "0")),
  sign: (w, a) => {
    const positive = select(w, compare(w, "gt", a, "0"), "1", "0");
    return w.unsigned ? positive : select(w, compare(w, "lt", a, "0"), "-1", positive);
  },
  reciprocal: (w, a) => {
    const one = select(w, compare(w, "eq", a, "1"), "1", "0");
    return w.unsigned ? one : select(w, compare(w, "eq", a, "-1"), "-1", one);
  },
  div: (w, a, b) => safely(w, b, (by) => quotient(w, a, by)),
  mod: (w, a, b) => safely(w, b, (by) => remainder(w, a, by)),
  floorMod: (w, a, b) => safely(w, b, (by) => floorMod(w, a, by)),
  pow: power,
  shiftLeft: (w, a, b) => w.code.op(`shl.b${w.bits}`, w.kind, a, amountOf(w, b)),
  shiftRight,
};

const comparisons: Partial<Record<ScalarOp, string>> = { equal: "eq", less: "lt", lessEqual: "le" };
const identities = new Set<ScalarOp>(["floor", "ceil", "round", "trunc"]);

/** The operator on registers of the dtype; undefined where it has no spelling. */
export function integerApply(
  code: PtxCode,
  op: ScalarOp,
  dtype: DType,
  operands: readonly Operand[],
): Operand | undefined {
  const w = widthOf(code, dtype);
  const [a, b = ""] = operands;
  const first = toRegister(code, w.kind, a!);
  if (identities.has(op)) return first;
  if (op === "isNan") return code.op("setp.ne.s32", "p", "0", "0");
  if (op === "not") return select(w, compare(w, "eq", first, "0"), "1", "0");
  const test = comparisons[op];
  if (test) return compare(w, test, first, b);
  const row = rows[op];
  return row && normalized(code, dtype, row(w, first, b));
}

/** Brings a result of 32 bits back to a narrower width. */
export function normalized(code: PtxCode, dtype: DType, value: Operand): Operand {
  const { bits } = dtypes[dtype];
  if (bits >= 32) return value;
  return code.op(`bfe.${isUnsigned(dtype) ? "u" : "s"}32`, "r", value, "0", String(bits));
}

const boolRows: Partial<Record<ScalarOp, string>> = {
  ...{ and: "and", or: "or", xor: "xor", bitAnd: "and", bitOr: "or", bitXor: "xor" },
  ...{ add: "or", max: "or", mul: "and", min: "and" },
};

/** Operators on predicates. */
export function boolApply(
  code: PtxCode,
  op: ScalarOp,
  operands: readonly Operand[],
): Operand | undefined {
  const [a, b = ""] = operands as [Operand, Operand?];
  const row = boolRows[op];
  if (row) return code.op(`${row}.pred`, "p", a, b);
  const not = (p: Operand): Operand => code.op("not.pred", "p", p);
  switch (op) {
    case "not":
    case "bitNot":
      return not(a);
    case "equal":
      return not(code.op("xor.pred", "p", a, b));
    case "less":
      return code.op("and.pred", "p", not(a), b);
    case "lessEqual":
      return code.op("or.pred", "p", not(a), b);
    default:
      return undefined;
  }
}
