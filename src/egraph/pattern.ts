/**
 * Patterns: terms with variables, as values and as text. `(op ?x (op2 ?y))` matches nodes;
 * `(op[key] …)` asks for a payload, `(op[?p] …)` binds it, `(op[_] …)` takes any; without brackets the
 * payload is the empty one. `(op ?x ...)` takes any further children. `?m@(op …)` also names the class
 * of the inner term. A number is `(const["3"])`; any other bare word a node without children. Printing
 * and parsing are inverse.
 */
import { reject } from "../support/diagnostic.ts";
import { TextReader } from "../support/text-reader.ts";

export type PayloadPattern =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "any" };

export interface VariablePattern {
  readonly kind: "variable";
  readonly name: string;
}

export interface NodePattern {
  readonly kind: "node";
  readonly op: string;
  readonly payload: PayloadPattern;
  readonly children: readonly Pattern[];
  /** Further children may follow. */
  readonly open: boolean;
  /** Name of the class that the term is in. */
  readonly name?: string;
}

export type Pattern = VariablePattern | NodePattern;

/** Operator of literal numbers in text. */
export const literalOp = "const";

export function variable(name: string): VariablePattern {
  return { kind: "variable", name };
}

/** A node pattern; the payload is a key. */
export function term(op: string, children: readonly Pattern[] = [], key = ""): NodePattern {
  return { kind: "node", op, payload: { kind: "key", key }, children, open: false };
}

export function parsePattern(text: string): Pattern {
  const reader = new TextReader(text);
  const pattern = readPattern(reader);
  if (reader.peek().kind !== "end") reader.fail("the end of the pattern");
  return pattern;
}

function readPattern(reader: TextReader): Pattern {
  if (reader.accept("?")) {
    const name = reader.name("the name of a variable");
    if (!reader.accept("@")) return variable(name);
    reader.expect("(");
    return { ...readNode(reader), name };
  }
  if (reader.accept("(")) return readNode(reader);
  const { kind, text } = reader.peek();
  if (kind === "number" || text === "-") return term(literalOp, [], String(reader.number()));
  return readAtom(reader);
}

function readAtom(reader: TextReader): NodePattern {
  const op = readOp(reader);
  return { kind: "node", op, payload: readPayload(reader), children: [], open: false };
}

/** After the opening parenthesis, over the closing one. */
function readNode(reader: TextReader): NodePattern {
  const op = readOp(reader);
  const payload = readPayload(reader);
  const children: Pattern[] = [];
  let open = false;
  while (!reader.accept(")")) {
    if (open) reader.fail(")");
    if (reader.accept("..")) {
      reader.expect(".");
      open = true;
    } else children.push(readPattern(reader));
  }
  return { kind: "node", op, payload, children, open };
}

const notOps = new Set(["(", ")", "[", "]", "?", "@", ".", ".."]);

function readOp(reader: TextReader): string {
  const { kind, text } = reader.peek();
  if (kind === "end" || kind === "number" || (kind === "punctuation" && notOps.has(text))) {
    return reader.fail("an operator");
  }
  return reader.next().text;
}

function readPayload(reader: TextReader): PayloadPattern {
  if (!reader.accept("[")) return { kind: "key", key: "" };
  const payload = readPayloadBody(reader);
  reader.expect("]");
  return payload;
}

function readPayloadBody(reader: TextReader): PayloadPattern {
  if (reader.accept("?")) return { kind: "variable", name: reader.name("the name of a payload") };
  const { kind, text } = reader.peek();
  if (kind === "number" || text === "-") return { kind: "key", key: String(reader.number()) };
  if (kind === "string") return { kind: "key", key: reader.next().text };
  const name = reader.name("a payload");
  return name === "_" ? { kind: "any" } : { kind: "key", key: name };
}

export function printPattern(pattern: Pattern): string {
  if (pattern.kind === "variable") return `?${pattern.name}`;
  const { op, payload, children, open, name } = pattern;
  const isLiteral = op === literalOp && children.length === 0 && payload.kind === "key" && !open;
  if (isLiteral && name === undefined && isCanonicalNumber(payload.key)) return payload.key;
  const head = printOp(op) + printPayload(payload);
  const parts = [head, ...children.map(printPattern), ...(open ? ["..."] : [])];
  if (name !== undefined) return `?${name}@(${parts.join(" ")})`;
  const isWord = /^[A-Za-z_"]/.test(head) && parts.length === 1;
  return isWord ? head : `(${parts.join(" ")})`;
}

function isCanonicalNumber(key: string): boolean {
  return /^-?\d+(\.\d+)?$/.test(key) && String(Number(key)) === key && key !== "-0";
}

const plainWord = /^[A-Za-z_][\w.$%]*$/;
const plainSign = /^(->|<=|>=|==|!=|&&|\|\||:=|[-+*/%{}<>=,:;!&|^~])$/;

function printOp(op: string): string {
  return plainWord.test(op) || plainSign.test(op) ? op : JSON.stringify(op);
}

function printPayload(payload: PayloadPattern): string {
  if (payload.kind === "variable") return `[?${payload.name}]`;
  if (payload.kind === "any") return "[_]";
  if (payload.key === "") return "";
  const plain = plainWord.test(payload.key) && payload.key !== "_";
  return `[${plain || isCanonicalNumber(payload.key) ? payload.key : JSON.stringify(payload.key)}]`;
}

/** Nodes of a pattern; a bare variable as a whole left side counts as one. */
export function atomCount(pattern: Pattern): number {
  if (pattern.kind === "variable") return 1;
  const inner = pattern.children.filter((child) => child.kind === "node");
  return inner.reduce((sum, child) => sum + atomCount(child), 1);
}

/** Names of the class variables, in the order of their first occurrence; inner names included. */
export function classNames(patterns: readonly Pattern[]): string[] {
  const names = new Set<string>();
  const visit = (pattern: Pattern): void => {
    if (pattern.name !== undefined) names.add(pattern.name);
    if (pattern.kind === "node") pattern.children.forEach(visit);
  };
  patterns.forEach(visit);
  return [...names];
}

export function payloadNames(patterns: readonly Pattern[]): string[] {
  const names = new Set<string>();
  const visit = (pattern: Pattern): void => {
    if (pattern.kind === "variable") return;
    if (pattern.payload.kind === "variable") names.add(pattern.payload.name);
    pattern.children.forEach(visit);
  };
  patterns.forEach(visit);
  return [...names];
}

/** Refuses what only makes sense on a left side. */
export function requireBuildable(pattern: Pattern, rule: string): void {
  if (pattern.kind === "variable") return;
  if (pattern.open || pattern.payload.kind === "any" || pattern.name !== undefined) {
    reject("EGR001", `"${printPattern(pattern)}" cannot be built`, {
      at: `rule "${rule}"`,
      help: "write every child and payload of a right side, and name no inner term",
    });
  }
  for (const child of pattern.children) requireBuildable(child, rule);
}
