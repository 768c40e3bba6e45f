/** Text form of attributes: `{axis: 1, mode: edge, lhs: "i k", shape: [N, 2*W], body: graph …}`. */
import { isDType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { readIndexExpr } from "../semantics/index-text.ts";
import { printNumber } from "../semantics/scalar-text.ts";
import type { TextReader } from "../support/text-reader.ts";
import type { AnyAttrs, AnySchema, AttrKind, AttrRow } from "./attr-schema.ts";
import type { Graph } from "./graph.ts";

/** How graphs inside attributes are printed and read: the owner's business (graph-text.ts). */
export type PrintGraph = (graph: Graph) => string;
export type ReadGraph = () => Graph;

type Print = (value: never, printGraph: PrintGraph) => string;
type Read = (reader: TextReader, row: AttrRow, readGraph: ReadGraph) => unknown;

function printList<T>(print: (item: T) => string): (items: readonly T[]) => string {
  return (items) => `[${items.map(print).join(", ")}]`;
}

function readList(reader: TextReader, item: () => unknown): readonly unknown[] {
  reader.expect("[");
  return reader.list("]", item);
}

function readInteger(reader: TextReader): number {
  const value = reader.number("an integer");
  return Number.isSafeInteger(value) ? value : reader.fail("an integer below 2^53");
}

function readBoolean(reader: TextReader): boolean {
  if (reader.accept("true")) return true;
  return reader.accept("false") ? false : reader.fail("true or false");
}

function readChoice(reader: TextReader, row: AttrRow): string {
  const allowed = row.choices!;
  const found = allowed.find((word) => reader.accept(word));
  return found ?? reader.fail(`one of ${allowed.join(", ")}`);
}

function readDType(reader: TextReader): string {
  const token = reader.peek();
  if (token.kind !== "name" || !isDType(token.text)) reader.fail("an element type");
  return reader.next().text;
}

function readLabels(reader: TextReader): readonly string[] {
  return reader
    .string("a string of labels")
    .split(" ")
    .filter((label) => label !== "");
}

const printLabels = (names: readonly string[]): string => JSON.stringify(names.join(" "));
const printDim = (d: IndexExpr): string => d.key;

/** Integers print without exponent, so that a dimension and a number look alike. */
const spellings: Readonly<Record<AttrKind, { readonly print: Print; readonly read: Read }>> = {
  integer: { print: printNumber, read: readInteger },
  number: { print: printNumber, read: (reader) => reader.number() },
  boolean: { print: String, read: readBoolean },
  dtype: { print: String, read: readDType },
  choice: { print: String, read: readChoice },
  choices: {
    print: printList(String),
    read: (reader, row) => readList(reader, () => readChoice(reader, row)),
  },
  dim: { print: printDim, read: readIndexExpr },
  dims: {
    print: printList(printDim),
    read: (reader) => readList(reader, () => readIndexExpr(reader)),
  },
  integers: {
    print: printList(printNumber),
    read: (reader) => readList(reader, () => readInteger(reader)),
  },
  numbers: {
    print: printList(printNumber),
    read: (reader) => readList(reader, () => reader.number()),
  },
  booleans: {
    print: printList(String),
    read: (reader) => readList(reader, () => readBoolean(reader)),
  },
  labels: { print: printLabels, read: readLabels },
  labelLists: {
    print: printList(printLabels),
    read: (reader) => readList(reader, () => readLabels(reader)),
  },
  graph: {
    print: (value, printGraph) => printGraph(value),
    read: (_reader, _row, readGraph) => readGraph(),
  },
};

/** ` {name: value, …}` in schema order; nothing when there are no attributes. */
export function printAttrs(schema: AnySchema, attrs: AnyAttrs, printGraph: PrintGraph): string {
  const parts = Object.entries(schema).flatMap(([name, row]) => {
    const value = attrs[name];
    if (value === undefined) return [];
    return [`${name}: ${spellings[row.kind].print(value as never, printGraph)}`];
  });
  return parts.length === 0 ? "" : ` {${parts.join(", ")}}`;
}

/** Reads attributes if there are any; every one must be in the schema, once, and of its kind. */
export function readAttrs(reader: TextReader, schema: AnySchema, readGraph: ReadGraph): AnyAttrs {
  const attrs: Record<string, unknown> = {};
  if (!reader.accept("{")) return attrs;
  reader.list("}", () => {
    const allowed = Object.keys(schema).filter((name) => !Object.hasOwn(attrs, name));
    const token = reader.peek();
    if (token.kind !== "name" || !allowed.includes(token.text)) {
      reader.fail(allowed.length > 0 ? `attribute ${allowed.join(", ")}` : "no further attribute");
    }
    const name = reader.name();
    const row = schema[name]!;
    reader.expect(":");
    attrs[name] = spellings[row.kind].read(reader, row, readGraph);
  });
  return attrs;
}
