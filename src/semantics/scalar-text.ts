/**
 * Text form of scalar expressions: calls all the way, `max(add(x[i], b[j]), f32(0))`. Literals are a
 * type applied to a number, conversions `cast<f16>(…)` (`cast<i8, saturate>(…)`), index values
 * `index<i64>(i + 1)`. How an argument is spelled is the owner's business: a nest prints an access, a
 * program a load.
 */
import type { TextReader } from "../support/text-reader.ts";
import type { DType } from "./dtype.ts";
import { readIndexExpr } from "./index-text.ts";
import { apply, literal, type ScalarExpr, type ScalarOp, scalarOps } from "./scalar-expr.ts";

type Argument = Extract<ScalarExpr, { kind: "argument" }>;

export function printScalar(expr: ScalarExpr, printArgument: (a: Argument) => string): string {
  const print = (e: ScalarExpr): string => printScalar(e, printArgument);
  switch (expr.kind) {
    case "literal":
      return `${expr.dtype}(${printNumber(expr.value)})`;
    case "argument":
      return printArgument(expr);
    case "index":
      return `index<${expr.dtype}>(${expr.expr.key})`;
    case "cast": {
      const saturate = expr.saturate ? ", saturate" : "";
      return `cast<${expr.dtype}${saturate}>(${print(expr.operand)})`;
    }
    case "apply":
      return `${expr.op}(${expr.operands.map(print).join(", ")})`;
  }
}

/** The shortest decimal that reads back as the same value; `inf`, `-inf`, `nan`, `-0`. */
export function printNumber(value: number | bigint): string {
  if (typeof value === "bigint") return value.toString();
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  return Object.is(value, -0) ? "-0" : String(value);
}

/**
 * Reads one expression. `readArgument` is asked first at each leaf and returns undefined when what
 * stands there is not an argument.
 */
export function readScalar(
  reader: TextReader,
  readArgument: () => ScalarExpr | undefined,
): ScalarExpr {
  const spelled = readArgument();
  if (spelled) return spelled;
  const head = reader.name("a scalar expression");
  if (head === "cast") {
    const [dtype, saturate] = readTypeArguments(reader);
    const operand = readScalar(reader, readArgument);
    reader.expect(")");
    return { kind: "cast", dtype, saturate, operand };
  }
  if (head === "index") {
    const [dtype] = readTypeArguments(reader);
    const expr = readIndexExpr(reader);
    reader.expect(")");
    return { kind: "index", dtype, expr };
  }
  reader.expect("(");
  if (isScalarOp(head)) {
    const operands = reader.list(")", () => readScalar(reader, readArgument));
    if (operands.length !== scalarOps[head].arity) {
      reader.fail(`${scalarOps[head].arity} operands of ${head}`);
    }
    return apply(head, ...operands);
  }
  return readLiteral(reader, head as DType);
}

function readTypeArguments(reader: TextReader): readonly [DType, boolean] {
  reader.expect("<");
  const dtype = reader.name("an element type") as DType;
  const saturate = reader.accept(",");
  if (saturate) reader.expect("saturate");
  reader.expect(">");
  reader.expect("(");
  return [dtype, saturate];
}

function readLiteral(reader: TextReader, dtype: DType): ScalarExpr {
  const wide = dtype === "i64" || dtype === "u64";
  if (!wide) {
    const value = reader.number();
    reader.expect(")");
    return literal(value, dtype);
  }
  const negative = reader.accept("-");
  const token = reader.next();
  if (token.kind !== "number" || !/^\d+$/.test(token.text)) reader.fail("an integer");
  reader.expect(")");
  return literal(negative ? -BigInt(token.text) : BigInt(token.text), dtype);
}

function isScalarOp(name: string): name is ScalarOp {
  return Object.hasOwn(scalarOps, name);
}
