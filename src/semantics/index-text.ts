/** Parsing of index expressions: `2*N + floorDiv(W + 3, 4) - 1`, `min(a, b)`, parentheses. */
import type { TextReader, Token } from "../support/text-reader.ts";
import * as index from "./index-expr.ts";

const calls = {
  floorDiv: index.floorDiv,
  ceilDiv: index.ceilDiv,
  mod: index.mod,
} as const;

/** Words of index expressions and literals, which no value or variable can be called. */
export const reservedWords: ReadonlySet<string> = new Set([
  ...Object.keys(calls),
  "min",
  "max",
  "inf",
  "nan",
]);

/** Expressions that a reader has met, by their spelling: programs repeat theirs hundreds of times. */
const known = new WeakMap<TextReader, Map<string, index.IndexExpr>>();

/** Reads one expression; rejects with TXT001 where the text is none. */
export function readIndexExpr(reader: TextReader): index.IndexExpr {
  // A number alone is half of them.
  if (reader.peek().kind === "number" && endsExpression(reader.peek(1))) return readFactor(reader);
  const count = countTokens(reader);
  const spelled = reader.ahead(count);
  const met = known.get(reader) ?? new Map<string, index.IndexExpr>();
  known.set(reader, met);
  const before = met.get(spelled);
  if (before) {
    reader.pass(count);
    return before;
  }
  const start = reader.position;
  const tooLarge = (): never => reader.fail("an expression whose numbers stay below 2^53");
  const expr = index.withinExactIntegers(() => readSum(reader), tooLarge);
  if (reader.position === start + count) met.set(spelled, expr);
  return expr;
}

function endsExpression({ kind, text }: Token): boolean {
  return kind === "punctuation" && (text === ")" || text === "]" || text === ",");
}

/** Tokens up to the first that cannot continue an expression: all that the grammar would take. */
function countTokens(reader: TextReader): number {
  let depth = 0;
  let operand = false;
  for (let count = 0; ; count++) {
    const { kind, text } = reader.peek(count);
    if (kind === "name" || kind === "number") {
      if (operand && depth === 0) return count;
      operand = true;
    } else if (text === "(") depth++;
    else if (text === ")") {
      if (--depth < 0) return count;
      operand = true;
    } else if (text === "+" || text === "-" || text === "*") operand = false;
    else if (text !== "," || depth === 0) return count;
  }
}

function readSum(reader: TextReader): index.IndexExpr {
  let total = readProduct(reader);
  for (;;) {
    if (reader.accept("+")) total = index.add(total, readProduct(reader));
    else if (reader.accept("-")) total = index.sub(total, readProduct(reader));
    else return total;
  }
}

function readProduct(reader: TextReader): index.IndexExpr {
  let product = readFactor(reader);
  while (reader.accept("*")) product = index.mul(product, readFactor(reader));
  return product;
}

function readFactor(reader: TextReader): index.IndexExpr {
  if (reader.accept("-")) return index.negate(readFactor(reader));
  if (reader.accept("(")) {
    const inner = readIndexExpr(reader);
    reader.expect(")");
    return inner;
  }
  if (reader.peek().kind === "number") {
    const value = reader.number("an integer");
    if (!Number.isSafeInteger(value)) reader.fail("an integer below 2^53");
    return index.constant(value);
  }
  const name = reader.name("an index expression");
  if (!reader.accept("(")) return index.variable(name);
  const args = reader.list(")", () => readIndexExpr(reader));
  if ((name === "min" || name === "max") && args.length > 0) return index[name](...args);
  if (name in calls && args.length === 2) {
    const divisor = index.constantValue(args[1]!);
    if (divisor !== undefined && divisor <= 0) reader.fail("a positive divisor");
    return calls[name as keyof typeof calls](args[0]!, args[1]!);
  }
  return reader.fail("floorDiv, ceilDiv, mod (two operands), min or max");
}
