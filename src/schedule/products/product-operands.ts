/**
 * What a product multiplies: each operand is the elements of a tensor as they are, or a value made of them where they
 * pass through registers on their way to the multiplication (a prologue): converted from another type, scaled by
 * what is read beside them (for all, a row, a column, or parts of the depth), dequantised, cut off at zero. In: a sum
 * of products. Out: its two operands, or why it has none.
 */
import type { Access, Region, Statement } from "../../region/nest.ts";
import { loopsThrough } from "../../region/picks.ts";
import { numberAs } from "../../region/statement.ts";
import { type DType, dtypes } from "../../semantics/dtype.ts";
import {
  argument,
  bindArguments,
  type ScalarExpr,
  scalarOperands,
} from "../../semantics/scalar-expr.ts";
import { evaluateScalar } from "../../semantics/scalar-meaning.ts";
import { isByteFloat } from "./apart-sums.ts";

export interface Prologue {
  /** The operand's own elements first, then what is read beside them. */
  readonly reads: readonly Access[];
  /** Of the reads by number, in the type that is multiplied; 0 where all that is read is 0. */
  readonly value: ScalarExpr;
  /** Bits that are read for each element, and the widest of these reads. */
  readonly bits: number;
  readonly widestBits: number;
}

export interface ProductOperand {
  /** Of its own elements. */
  readonly access: Access;
  /** In which it is multiplied. */
  readonly dtype: DType;
  /** Absent: elements are multiplied as they are. */
  readonly prologue?: Prologue;
  /** Loops that move it. */
  readonly loops: ReadonlySet<string>;
}

type Sum = "f32" | "i32";

const noProduct = "its body is not a product of two operands";

export function operandsOf(
  statement: Statement,
  sum: Sum,
  { tensors }: Pick<Region, "tensors">,
): readonly [ProductOperand, ProductOperand] | string {
  const { body, reads } = statement;
  const [value] = body;
  if (value?.kind !== "apply" || value.op !== "mul" || value.dtype !== sum) return noProduct;
  const factors = multipliedOf(value.operands, sum);
  const used = factors.map(argumentsOf);
  const [first, second] = used as [ReadonlySet<number>, ReadonlySet<number>];
  if (first.size === 0 || second.size === 0) return noProduct;
  if ([...first].some((i) => second.has(i)) || first.size + second.size !== reads.length)
    return noProduct;
  const dtypeOf = ({ tensor }: Access): DType => tensors.get(tensor)!.dtype;
  const made = factors.map((factor, i) => operandOf(statement, factor, [...used[i]!], dtypeOf));
  const fault = made.find((o) => typeof o === "string");
  if (typeof fault === "string") return fault;
  const [left, right] = made as [ProductOperand, ProductOperand];
  const isMade = left.prologue ?? right.prologue;
  if (isMade && (sum !== "f32" || [left, right].some((o) => !isMadeFor(o.dtype))))
    return "operands that are made of others are floats of 16 or 32 bits";
  if (isMade && statement.indirects.length > 0) return "operands by number are read as they are";
  return [left, right];
}

/** Types in which what is made of others is multiplied. */
function isMadeFor(dtype: DType): boolean {
  return dtype === "f32" || dtype === "bf16" || dtype === "f16";
}

/** What is multiplied: in the type of both factors where conversions from it change no value, else in that of the sum. */
function multipliedOf(factors: readonly ScalarExpr[], sum: Sum): readonly ScalarExpr[] {
  const narrow = factors.map((factor) => multiplied(factor, sum));
  const types = [...new Set(narrow.map((f) => f.dtype))];
  const isOne = types.length === 1 || sum === "i32" || types.every(isByteFloat);
  return isOne ? narrow : factors;
}

/** What is multiplied, without a conversion to the type of the sum that changes no value. */
function multiplied(factor: ScalarExpr, sum: Sum): ScalarExpr {
  if (factor.kind !== "cast") return factor;
  const { operand } = factor;
  const isKept = sum === "f32" ? isExactlyF32(operand.dtype) : isByte(operand.dtype);
  return isKept ? operand : factor;
}

function isExactlyF32(dtype: DType): boolean {
  return ["bf16", "f16", "f8e4m3fn", "f8e5m2"].includes(dtype);
}

export function isByte(dtype: DType): boolean {
  return dtype === "u8" || dtype === "i8";
}

function argumentsOf(expr: ScalarExpr): ReadonlySet<number> {
  if (expr.kind === "argument") return new Set([expr.index]);
  return new Set(scalarOperands(expr).flatMap((o) => [...argumentsOf(o)]));
}

function operandOf(
  statement: Statement,
  factor: ScalarExpr,
  used: readonly number[],
  dtypeOf: (access: Access) => DType,
): ProductOperand | string {
  const moving = (i: number): ReadonlySet<string> => loopsThrough(statement, statement.reads[i]!);
  const loops = new Set(used.flatMap((i) => [...moving(i)]));
  const own = used.find((i) => moving(i).size === loops.size);
  if (own === undefined) return "no read of an operand has an element for each of its own";
  const access = statement.reads[own]!;
  if (factor.kind === "argument") return { access, dtype: factor.dtype, loops };
  if (hasIndexValue(factor)) return "an operand is made of places";
  const order = [own, ...used.filter((i) => i !== own)];
  const reads = order.map((i) => statement.reads[i]!);
  const numbers = new Map(order.map((old, i) => [old, i]));
  const value = bindArguments(
    factor,
    statement.reads.map((read, i) => argument(numbers.get(i) ?? 0, dtypeOf(read))),
  );
  const zeros = reads.map((read) => numberAs(dtypeOf(read), 0));
  // Tiles are filled up with zeros, which are what is read where nothing is.
  if (Number(evaluateScalar(value, zeros)) !== 0) return "an operand is not zero beside its tensor";
  const each = order.flatMap((i) =>
    moving(i).size === loops.size ? [dtypes[dtypeOf(statement.reads[i]!)].bits] : [],
  );
  const bits = each.reduce((sum, n) => sum + n, 0);
  const prologue = { reads, value, bits, widestBits: Math.max(...each) };
  return { access, dtype: value.dtype, loops, prologue };
}

function hasIndexValue(expr: ScalarExpr): boolean {
  return expr.kind === "index" || scalarOperands(expr).some(hasIndexValue);
}
