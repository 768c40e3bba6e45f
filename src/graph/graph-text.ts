/**
 * The text form of graphs, which parses back to an equal graph:
 *
 *   graph mlp(x: f32[M, 768]) -> (y) where 1 <= M <= 4096 {
 *     w = weight "fc1.weight" : f32[768, 3072]
 *     c = constant f32[2] (1, 2)
 *     t0 = contract(x, w) {lhs: "i k", rhs: "k j", output: "i j", accumulator: f32} : f32[M, 3072]
 *     (v, n) = topK(t0) {…} : (f32[M, 5], i64[M, 5]) from "TopK_3"
 *   }
 *
 * After the outputs may stand `states (in -> out, …)`; after `where` also constraints
 * `M == 2*N from "origin"`. Statements are in the order of the values. Subgraphs are attributes.
 */
import { type DType, isBigDType, isDType } from "../semantics/dtype.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { readIndexExpr } from "../semantics/index-text.ts";
import { printNumber } from "../semantics/scalar-text.ts";
import { elementCount } from "../semantics/shape.ts";
import { fromRef, refTensor, type Tensor, toRef } from "../semantics/tensor.ts";
import { attempt, fail, ok, type Result, reject } from "../support/diagnostic.ts";
import { TextReader } from "../support/text-reader.ts";
import type { AnyAttrs } from "./attr-schema.ts";
import { printAttrs, readAttrs } from "./attr-text.ts";
import type {
  Graph,
  GraphSymbol,
  Node,
  ShapeConstraint,
  StatePair,
  TensorType,
  Value,
  ValueId,
  Weight,
} from "./graph.ts";
import { isOpKind, schemaOf } from "./op-table.ts";
import { printType } from "./tensor-type.ts";
import { verifyGraph } from "./verify.ts";

export function printGraph(graph: Graph): string {
  return `${printBlock(graph, "")}\n`;
}

/** Reads and verifies a graph. */
export function parseGraph(text: string): Result<Graph> {
  const read = readGraphText(text);
  if (!read.ok) return read;
  const faults = verifyGraph(read.value);
  return faults.length > 0 ? fail(...faults) : ok(read.value);
}

/** Reads a graph without verifying it: types stand as written. */
export function readGraphText(text: string): Result<Graph> {
  return attempt(() => {
    const reader = new TextReader(text);
    const graph = readBlock(reader);
    if (reader.peek().kind !== "end") reader.fail("the end of the graph");
    return graph;
  });
}

function printBlock(graph: Graph, indent: string): string {
  const inner = `${indent}  `;
  const lines = [`${printHeader(graph)} {`];
  const producers = new Map<ValueId, Node>(graph.nodes.map((n) => [n.outputs[0]!, n]));
  const weights = new Map<ValueId, Weight>(graph.weights.map((w) => [w.value, w]));
  for (const { id } of graph.values) {
    const node = producers.get(id);
    const weight = weights.get(id);
    if (node) lines.push(inner + printNode(graph, node, inner));
    if (weight) lines.push(inner + printWeight(graph, weight));
  }
  lines.push(`${indent}}`);
  return lines.join("\n");
}

function printHeader(graph: Graph): string {
  const name = (id: ValueId): string => graph.values[id]!.name;
  const inputs = graph.inputs.map((id) => `${name(id)}: ${printType(graph.values[id]!.type)}`);
  const states = graph.states.map((s) => `${name(s.input)} -> ${name(s.output)}`);
  const conditions = [
    ...graph.symbols.map((s) => `${s.min} <= ${s.name} <= ${printNumber(s.max)}`),
    ...graph.constraints.map(
      (c) => `${c.left.key} == ${c.right.key} from ${JSON.stringify(c.origin)}`,
    ),
  ];
  return [
    `graph ${JSON.stringify(graph.name)} (${inputs.join(", ")})`,
    ` -> (${graph.outputs.map(name).join(", ")})`,
    states.length > 0 ? ` states (${states.join(", ")})` : "",
    conditions.length > 0 ? ` where ${conditions.join(", ")}` : "",
  ].join("");
}

function printNode(graph: Graph, node: Node, indent: string): string {
  const names = (ids: readonly ValueId[]) => ids.map((id) => graph.values[id]!.name).join(", ");
  const types = node.outputs.map((id) => printType(graph.values[id]!.type)).join(", ");
  const single = node.outputs.length === 1;
  const attrs = printAttrs(schemaOf(node.op), node.attrs as AnyAttrs, (g) => printBlock(g, indent));
  return [
    single ? names(node.outputs) : `(${names(node.outputs)})`,
    ` = ${node.op}(${names(node.inputs)})${attrs} : ${single ? types : `(${types})`}`,
    node.origin === undefined ? "" : ` from ${JSON.stringify(node.origin)}`,
  ].join("");
}

function printWeight(graph: Graph, { value, source }: Weight): string {
  const { name, type } = graph.values[value]!;
  if (source.kind === "stored") {
    return `${name} = weight ${JSON.stringify(source.key)} : ${printType(type)}`;
  }
  const elements = [...toRef(source.tensor).data].map(printNumber);
  return `${name} = constant ${printType(type)} (${elements.join(", ")})`;
}

/** What has been read of a graph. */
class GraphDraft {
  readonly values: Value[] = [];
  readonly weights: Weight[] = [];
  readonly nodes: Node[] = [];
  readonly #ids = new Map<string, ValueId>();

  define(reader: TextReader, name: string, type: TensorType): ValueId {
    if (this.#ids.has(name)) {
      const at = `line ${reader.peek().line}`;
      reject("GRF005", `value "${name}" is defined twice`, { at });
    }
    const id = this.values.length;
    this.#ids.set(name, id);
    this.values.push({ id, name, type });
    return id;
  }

  use(reader: TextReader, name: string): ValueId {
    const id = this.#ids.get(name);
    const at = `line ${reader.peek().line}`;
    return id ?? reject("GRF007", `value "${name}" is not defined before its use`, { at });
  }
}

function readBlock(reader: TextReader): Graph {
  const draft = new GraphDraft();
  reader.expect("graph");
  const name = reader.peek().kind === "string" ? reader.string() : reader.name("the graph's name");
  reader.expect("(");
  const inputs = reader.list(")", () => {
    const input = reader.name("an input");
    reader.expect(":");
    return draft.define(reader, input, readType(reader));
  });
  reader.expect("->");
  reader.expect("(");
  const outputs = reader.list(")", () => reader.name("an output"));
  const states = reader.accept("states") ? readStates(reader) : [];
  const conditions = readConditions(reader);
  reader.expect("{");
  while (!reader.accept("}")) readStatement(reader, draft);
  return {
    name,
    ...conditions,
    values: draft.values,
    inputs,
    weights: draft.weights,
    nodes: draft.nodes,
    outputs: outputs.map((output) => draft.use(reader, output)),
    states: states.map(
      ([input, output]): StatePair => ({
        input: draft.use(reader, input),
        output: draft.use(reader, output),
      }),
    ),
  };
}

function readStates(reader: TextReader): readonly (readonly [string, string])[] {
  reader.expect("(");
  return reader.list(")", () => {
    const input = reader.name("a state input");
    reader.expect("->");
    return [input, reader.name("a state output")] as const;
  });
}

function readConditions(reader: TextReader): Pick<Graph, "symbols" | "constraints"> {
  const symbols: GraphSymbol[] = [];
  const constraints: ShapeConstraint[] = [];
  if (!reader.accept("where")) return { symbols, constraints };
  do {
    if (reader.peek().kind === "number" && reader.peek(1).text === "<=") {
      const min = reader.number();
      reader.expect("<=");
      const name = reader.name("a symbol");
      reader.expect("<=");
      symbols.push({ name, min, max: reader.number() });
    } else {
      const left = readIndexExpr(reader);
      reader.expect("==");
      const right = readIndexExpr(reader);
      reader.expect("from");
      constraints.push({ left, right, origin: reader.string() });
    }
  } while (reader.accept(","));
  return { symbols, constraints };
}

function readStatement(reader: TextReader, draft: GraphDraft): void {
  const names = reader.accept("(")
    ? reader.list(")", () => reader.name("an output"))
    : [reader.name("a statement")];
  reader.expect("=");
  const line = reader.peek().line;
  const op = reader.name("an op");
  if (op === "weight") readStored(reader, draft, names[0]!);
  else if (op === "constant") readConstant(reader, draft, names[0]!);
  else if (isOpKind(op)) {
    readNode(reader, draft, { op, names });
  } else reject("GRF010", `unknown op "${op}"`, { at: `line ${line}` });
}

function readStored(reader: TextReader, draft: GraphDraft, name: string): void {
  const key = reader.string("a weight's key");
  reader.expect(":");
  const value = draft.define(reader, name, readType(reader));
  draft.weights.push({ value, source: { kind: "stored", key } });
}

function readConstant(reader: TextReader, draft: GraphDraft, name: string): void {
  const type = readType(reader);
  const shape = type.shape.map((d) =>
    d.terms.length === 0 && d.constant >= 0 ? d.constant : reader.fail("a constant of fixed shape"),
  );
  reader.expect("(");
  const elements = reader.list(")", () => readElement(reader, type.dtype));
  if (elements.length !== elementCount(shape)) reader.fail(`${elementCount(shape)} elements`);
  const tensor: Tensor = fromRef(refTensor(type.dtype, shape, elements as number[]));
  const value = draft.define(reader, name, type);
  draft.weights.push({ value, source: { kind: "inline", tensor } });
}

function readElement(reader: TextReader, dtype: DType): number | bigint {
  if (!isBigDType(dtype)) return reader.number();
  const negative = reader.accept("-");
  const token = reader.next();
  if (token.kind !== "number" || !/^\d+$/.test(token.text)) reader.fail("an integer");
  return negative ? -BigInt(token.text) : BigInt(token.text);
}

function readNode(
  reader: TextReader,
  draft: GraphDraft,
  { op, names }: { readonly op: Node["op"]; readonly names: readonly string[] },
): void {
  reader.expect("(");
  const inputs = reader.list(")", () => draft.use(reader, reader.name("an operand")));
  const attrs = readAttrs(reader, schemaOf(op), () => readBlock(reader));
  reader.expect(":");
  const types = reader.accept("(") ? reader.list(")", () => readType(reader)) : [readType(reader)];
  if (types.length !== names.length) reader.fail(`${names.length} types before this`);
  const outputs = names.map((name, i) => draft.define(reader, name, types[i]!));
  const base = { id: draft.nodes.length, op, inputs, outputs, attrs };
  const origin = reader.accept("from") ? { origin: reader.string() } : {};
  draft.nodes.push({ ...base, ...origin } as unknown as Node);
}

function readType(reader: TextReader): TensorType {
  const token = reader.peek();
  if (token.kind !== "name" || !isDType(token.text)) reader.fail("an element type");
  const dtype = reader.next().text as DType;
  reader.expect("[");
  const shape: readonly IndexExpr[] = reader.list("]", () => readIndexExpr(reader));
  return { dtype, shape };
}
