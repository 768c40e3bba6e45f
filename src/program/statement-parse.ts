/**
 * Reads statements and expressions of the program text (spelled by program-text.ts). Types are
 * checked as they are read (expr.ts, typeFault); a local takes its type from the let that binds it.
 */
import type { Condition } from "../semantics/condition.ts";
import { type DType, isBigDType, isDType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { readIndexExpr } from "../semantics/index-text.ts";
import { resultType, type ScalarOp, scalarOps } from "../semantics/scalar-expr.ts";
import type { TextReader } from "../support/text-reader.ts";
import { typeFault } from "./expr.ts";
import { findValueIntrinsic } from "./intrinsic-table.ts";
import type {
  Completion,
  Expr,
  IntrinsicOperand,
  LoopMode,
  Statement,
  ValueType,
} from "./statement.ts";

/** Types of the values in scope. */
type Locals = Map<string, ValueType>;

/** One of `words`. */
export function readWord<T extends string>(reader: TextReader, words: readonly T[]): T {
  const found = words.find((word) => reader.at(word));
  if (found === undefined) return reader.fail(words.join(", "));
  reader.next();
  return found;
}

export function readInteger(reader: TextReader): number {
  const value = reader.number("an integer");
  return Number.isSafeInteger(value) ? value : reader.fail("an integer before this");
}

/** `[i, j + 1]` */
export function readBrackets(reader: TextReader): readonly IndexExpr[] {
  reader.expect("[");
  return reader.list("]", () => readIndexExpr(reader));
}

/** `i + 1 >= 0` or `i == 0` */
export function readCondition(reader: TextReader): Condition {
  const expr = readIndexExpr(reader);
  const kind = reader.accept("==") ? "zero" : "nonNegative";
  if (kind === "nonNegative") reader.expect(">=");
  if (readInteger(reader) !== 0) reader.fail("0 before this");
  return { kind, expr };
}

/** Conditions separated by commas, up to and over the closing token. */
export function readConditions(reader: TextReader, close: string): readonly Condition[] {
  return reader.list(close, () => readCondition(reader));
}

/** `f32x16` as a type. */
export function readType(reader: TextReader, spelled: string): ValueType {
  return typeOf(spelled) ?? reader.fail(`a type, not ${spelled}, before this`);
}

function typeOf(spelled: string): ValueType | undefined {
  const match = /^(\w+?)(?:x([1-9]\d{0,5}))?$/.exec(spelled);
  const dtype = match?.[1];
  if (dtype === undefined || !isDType(dtype)) return undefined;
  return { dtype, lanes: match?.[2] === undefined ? 1 : Number(match[2]) };
}

/** `{ … }` with no value in scope. */
export function readBlock(reader: TextReader): readonly Statement[] {
  return readBody(reader, new Map());
}

function readBody(reader: TextReader, outer: Locals): readonly Statement[] {
  reader.expect("{");
  return readRest(reader, new Map(outer));
}

function readRest(reader: TextReader, locals: Locals): readonly Statement[] {
  const body: Statement[] = [];
  while (!reader.accept("}")) body.push(readStatement(reader, locals));
  return body;
}

type StatementReader = (reader: TextReader, locals: Locals) => Statement;

const statementReaders: Readonly<Record<string, StatementReader>> = {
  for: readFor,
  if: readIf,
  when: readWhen,
  let: readLet,
  index: readLetIndex,
  store: readStore,
  issue: readIssue,
  commit: (reader) => ({ kind: "commitGroup", group: reader.name() }),
  await: readAwait,
  wait: readWait,
  signal: readSignal,
  expect: readExpect,
  barrier: (reader) => ({ kind: "barrier", scope: readWord(reader, barrierScopes) }),
  fence: (reader) => ({ kind: "fence", scope: readWord(reader, ["shared", "memory"] as const) }),
  dependents: (reader) => {
    reader.expect("begin");
    return { kind: "launchDependents" };
  },
  prerequisites: (reader) => {
    reader.expect("end");
    return { kind: "awaitPrerequisites" };
  },
};

const barrierScopes = ["copy", "role", "instance", "cluster", "grid"] as const;
const reaches = ["instance", "cluster"] as const;

function readStatement(reader: TextReader, locals: Locals): Statement {
  const { kind, text } = reader.peek();
  if (kind !== "name" || !Object.hasOwn(statementReaders, text)) return reader.fail("a statement");
  reader.next();
  return statementReaders[text]!(reader, locals);
}

function readFor(reader: TextReader, locals: Locals): Statement {
  const variable = reader.name();
  reader.expect("<");
  const extent = readIndexExpr(reader);
  const mode = readMode(reader);
  return { kind: "for", variable, extent, mode, body: readBody(reader, locals) };
}

function readMode(reader: TextReader): LoopMode {
  if (reader.accept("unrolled")) return { kind: "unrolled" };
  return reader.accept("over") ? { kind: "grid", axis: reader.name() } : { kind: "serial" };
}

function readElse(reader: TextReader, locals: Locals): readonly Statement[] {
  return reader.accept("else") ? readBody(reader, locals) : [];
}

function readIf(reader: TextReader, locals: Locals): Statement {
  const conditions = readConditions(reader, "{");
  const then = readRest(reader, new Map(locals));
  return { kind: "if", conditions, then, else: readElse(reader, locals) };
}

function readWhen(reader: TextReader, locals: Locals): Statement {
  const condition = readExpr(reader, locals);
  const then = readBody(reader, locals);
  return { kind: "when", condition, then, else: readElse(reader, locals) };
}

function readLet(reader: TextReader, locals: Locals): Statement {
  const name = reader.name();
  reader.expect("=");
  const value = readExpr(reader, locals);
  locals.set(name, { dtype: value.dtype, lanes: value.lanes });
  return { kind: "let", name, value };
}

function readLetIndex(reader: TextReader, locals: Locals): Statement {
  const name = reader.name();
  reader.expect("<");
  const extent = readIndexExpr(reader);
  const range = readWord(reader, ["proved", "checked"] as const);
  const wraps = reader.accept("wraps");
  reader.expect("=");
  return { kind: "letIndex", name, value: readExpr(reader, locals), extent, wraps, range };
}

function readStore(reader: TextReader, locals: Locals): Statement {
  const buffer = reader.name();
  const index = readBrackets(reader);
  reader.expect("=");
  return { kind: "store", buffer, index, value: readExpr(reader, locals) };
}

function readIssue(reader: TextReader, locals: Locals): Statement {
  const intrinsic = reader.name();
  reader.expect("(");
  const operands = reader.list(")", () => readOperand(reader, locals));
  return { kind: "intrinsic", intrinsic, operands, completion: readCompletion(reader) };
}

function readOperand(reader: TextReader, locals: Locals): IntrinsicOperand {
  if (reader.accept("value")) return { kind: "value", value: readExpr(reader, locals) };
  const buffer = reader.name();
  const index = readBrackets(reader);
  reader.expect("box");
  reader.expect("[");
  return { kind: "tile", buffer, index, extents: reader.list("]", () => readInteger(reader)) };
}

function readCompletion(reader: TextReader): Completion {
  if (reader.accept("sync")) return { kind: "sync" };
  if (reader.accept("group")) return { kind: "group", group: reader.name() };
  reader.expect("signals");
  const counter = reader.name();
  const index = readBrackets(reader);
  reader.expect("in");
  const signals = { kind: "signals", counter, index } as const;
  if (reader.accept("peer")) return { ...signals, scope: "instance", peer: readIndexExpr(reader) };
  return { ...signals, scope: readWord(reader, reaches) };
}

function readAwait(reader: TextReader): Statement {
  const group = reader.name();
  reader.expect("pending");
  return { kind: "waitGroup", group, pending: readInteger(reader) };
}

function readWait(reader: TextReader): Statement {
  const counter = reader.name();
  const index = readBrackets(reader);
  reader.expect("for");
  return { kind: "wait", counter, index, value: readIndexExpr(reader) };
}

function readSignal(reader: TextReader): Statement {
  const counter = reader.name();
  const index = readBrackets(reader);
  reader.expect("by");
  const amount = readIndexExpr(reader);
  reader.expect("in");
  return { kind: "signal", counter, index, amount, scope: readWord(reader, reaches) };
}

function readExpect(reader: TextReader): Statement {
  const counter = reader.name();
  const index = readBrackets(reader);
  reader.expect("bytes");
  return { kind: "expect", counter, index, bytes: readIndexExpr(reader) };
}

function readExpr(reader: TextReader, locals: Locals): Expr {
  const expr = readUnchecked(reader, locals);
  const fault = typeFault(expr);
  return fault === undefined ? expr : reader.fail(`a well-typed expression (${fault}) before this`);
}

function readUnchecked(reader: TextReader, locals: Locals): Expr {
  const head = reader.name("an expression");
  const type = locals.get(head);
  if (type && !reader.at("(")) return { kind: "local", name: head, ...type };
  const [first, second, third] = head.split(".");
  if (first === "load" && second !== undefined) return readLoad(reader, readType(reader, second));
  if (!reader.accept("(")) return reader.fail(`let ${head} before this`);
  if (first === "index" && second !== undefined) {
    return readIndexValue(reader, readType(reader, second));
  }
  const literal = typeOf(head);
  if (literal) return readLiteral(reader, literal);
  const operands = reader.list(")", () => readExpr(reader, locals));
  const operand = operands[0];
  if (operand === undefined) return reader.fail("an operand before this");
  switch (first) {
    case "cast":
      return castTo(reader, operand, second, third === "saturate");
    case "splat":
      return { kind: "splat", dtype: operand.dtype, lanes: Number(second), operand };
    case "extract":
      return { kind: "extract", dtype: operand.dtype, lanes: 1, operand, lane: Number(second) };
    case "pack":
      return { kind: "pack", dtype: operand.dtype, lanes: operands.length, operands };
    default:
      return applyOrCall(reader, head, operands);
  }
}

function castTo(
  reader: TextReader,
  operand: Expr,
  dtype: string | undefined,
  saturate: boolean,
): Expr {
  if (dtype === undefined || !isDType(dtype)) return reader.fail("cast.TYPE before this");
  return { kind: "cast", dtype, lanes: operand.lanes, saturate, operand };
}

function applyOrCall(reader: TextReader, head: string, operands: readonly Expr[]): Expr {
  const row = findValueIntrinsic(head);
  if (row) return { kind: "call", dtype: row.result, lanes: row.lanes, intrinsic: head, operands };
  if (!Object.hasOwn(scalarOps, head)) {
    return reader.fail(`an operator or intrinsic, not ${head}, before this`);
  }
  const op = head as ScalarOp;
  const { dtype, lanes } = operands[operands.length - 1]!;
  return { kind: "apply", dtype: resultType(op, dtype), lanes, op, operands };
}

function readIndexValue(reader: TextReader, type: ValueType): Expr {
  const expr = readIndexExpr(reader);
  const laneStep = reader.accept("step") ? readInteger(reader) : 0;
  reader.expect(")");
  return { kind: "index", ...type, expr, laneStep };
}

function readLiteral(reader: TextReader, type: ValueType): Expr {
  const value = readValue(reader, type.dtype);
  reader.expect(")");
  return { kind: "literal", ...type, value };
}

function readLoad(reader: TextReader, type: ValueType): Expr {
  const buffer = reader.name();
  const index = readBrackets(reader);
  const guarded = reader.accept("where");
  const zero = isBigDType(type.dtype) ? 0n : 0;
  if (!guarded) return { kind: "load", ...type, buffer, index, guard: [], fill: zero };
  reader.expect("{");
  const guard = readConditions(reader, "}");
  reader.expect("else");
  return { kind: "load", ...type, buffer, index, guard, fill: readValue(reader, type.dtype) };
}

function readValue(reader: TextReader, dtype: DType): number | bigint {
  if (!isBigDType(dtype)) return reader.number();
  const negative = reader.accept("-");
  const token = reader.next();
  if (token.kind !== "number" || !/^\d+$/.test(token.text)) return reader.fail("an integer");
  return negative ? -BigInt(token.text) : BigInt(token.text);
}
