/** Which bodies of a fold are a product of reads: those of contractions and plain sums. */
import { type DType, dtypes } from "../semantics/dtype.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";

export interface ProductBody {
  readonly scale: number;
  /** Numbers of the reads that are multiplied. */
  readonly reads: readonly number[];
}

/**
 * The factors of a body that multiplies float reads and literals in the accumulator's type, operands
 * converted without loss; undefined for any other.
 */
export function productOf(body: ScalarExpr, accumulator: DType): ProductBody | undefined {
  if (dtypes[body.dtype].kind !== "float") return undefined;
  switch (body.kind) {
    case "argument":
      return { scale: 1, reads: [body.index] };
    case "literal":
      return { scale: Number(body.value), reads: [] };
    case "index":
      return undefined;
    case "cast":
      return holdsAll(body.dtype, body.operand.dtype)
        ? productOf(body.operand, accumulator)
        : undefined;
    case "apply": {
      if (body.op !== "mul" || body.dtype !== accumulator) return undefined;
      const [a, b] = body.operands.map((o) => productOf(o, accumulator));
      return a && b && { scale: a.scale * b.scale, reads: [...a.reads, ...b.reads] };
    }
  }
}

/**
 * The two reads of a product of integers of at most 16 bits that are added up in i32: the product is exact in
 * float64, and a sum wraps.
 */
export function integerProductOf(
  body: ScalarExpr,
  accumulator: DType,
): readonly [number, number] | undefined {
  if (accumulator !== "i32" || body.kind !== "apply" || body.op !== "mul") return undefined;
  const [a, b] = body.operands.map(widenedRead);
  return a === undefined || b === undefined ? undefined : [a, b];
}

/** The read of fewer bits that an i32 is made of. */
function widenedRead(expr: ScalarExpr): number | undefined {
  if (expr.kind !== "cast" || expr.dtype !== "i32" || expr.operand.kind !== "argument") {
    return undefined;
  }
  const { kind, bits } = dtypes[expr.operand.dtype];
  return (kind === "int" || kind === "uint") && bits <= 16 ? expr.operand.index : undefined;
}

/** Whether every value of a float type is one of another. */
function holdsAll(to: DType, from: DType): boolean {
  const [a, b] = [dtypes[to].format, dtypes[from].format];
  if (!a || !b) return false;
  return a.mantissaBits >= b.mantissaBits && a.exponentBits >= b.exponentBits;
}
