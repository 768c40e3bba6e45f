/**
 * One ONNX graph under construction: nodes in order, extents as i64 tensors of one element, and the
 * subgraphs inside. A symbolic extent is computed where it is first needed, from the shape of the first
 * value that has the symbol in a linear extent. What rows (rows/) write an op with.
 */
import type { Graph, TensorType, ValueId } from "../../../graph/graph.ts";
import type { DType } from "../../../semantics/dtype.ts";
import {
  constantValue,
  type IndexAtom,
  type IndexExpr,
  type IndexTerm,
  splitLinear,
  toIndex,
  variablesOf,
} from "../../../semantics/index-expr.ts";
import { fromRef, refTensor, type Tensor } from "../../../semantics/tensor.ts";
import { reject } from "../../../support/diagnostic.ts";
import type { AttributeValue, GraphSpec, NodeSpec, ValueSpec } from "../model-writer.ts";
import type { ExportSpace } from "./export-space.ts";

export type Attributes = Readonly<Record<string, AttributeValue>>;

/** A subgraph: what it is given by name from outside stays outside, the rest are its inputs. */
export interface SubgraphInputs {
  readonly graph: Graph;
  /** Names of outer values by input; undefined where the subgraph declares an input of its own. */
  readonly given: readonly (string | undefined)[];
}

/** Names of a graph's values: those of its inputs when writing starts, all others after it. */
export type ValueNames = Map<ValueId, string>;

/** How a graph's nodes are written; injected, since rows and this file need each other. */
export type WriteNodes = (graph: Graph, names: ValueNames, sink: GraphSink) => void;

/** Where a symbol can be read off: `extent = coefficient * symbol + rest`. */
interface Binding {
  readonly value: string;
  readonly axis: number;
  readonly coefficient: number;
  readonly rest: IndexExpr;
}

export class GraphSink {
  readonly space: ExportSpace;
  readonly nodes: NodeSpec[] = [];
  /** Said in diagnostics. */
  at = "";
  readonly #writeNodes: WriteNodes;
  readonly #outer: GraphSink | undefined;
  readonly #bindings = new Map<string, Binding>();
  readonly #extents = new Map<string, string>();

  constructor(space: ExportSpace, writeNodes: WriteNodes, outer?: GraphSink) {
    this.space = space;
    this.#writeNodes = writeNodes;
    this.#outer = outer;
  }

  /** Adds a node with one result; gives its name. */
  op(op: string, inputs: readonly string[], attributes: Attributes = {}): string {
    return this.ops(op, inputs, attributes, 1)[0]!;
  }

  ops(
    op: string,
    inputs: readonly string[],
    attributes: Attributes,
    count: number,
  ): readonly string[] {
    const outputs = Array.from({ length: count }, () => this.space.name(op));
    const used = inputs.slice(0, inputs.findLastIndex((name) => name !== "") + 1);
    this.nodes.push({ op, inputs: used, outputs, attributes });
    return outputs;
  }

  /** The value under one more name. */
  copy(from: string, to: string): void {
    this.nodes.push({ op: "Identity", inputs: [from], outputs: [to] });
  }

  refuse(what: string, help: string): never {
    reject("ONX018", `${what} has no ONNX counterpart`, { at: this.at, help });
  }

  /** A constant of numbers in any element type; a scalar unless a shape is given. */
  numbers(dtype: DType, values: readonly number[], shape: readonly number[] = []): string {
    return this.tensor(fromRef(refTensor(dtype, shape, values)));
  }

  tensor(tensor: Tensor): string {
    const { dtype, shape } = tensor;
    return this.space.constant({ dtype, shape: shape.map(toIndex) }, tensor);
  }

  /** i64[n] */
  integers(values: readonly number[]): string {
    return this.numbers("i64", values, [values.length]);
  }

  /** Lets extents be read off a value. */
  bind(type: TensorType, value: string): void {
    for (const [axis, extent] of type.shape.entries()) {
      const [symbol, second] = variablesOf(extent);
      if (symbol === undefined || second !== undefined || this.#bindingOf(symbol)) continue;
      const split = splitLinear(extent, symbol);
      if (split && split.coefficient > 0) this.#bindings.set(symbol, { value, axis, ...split });
    }
  }

  #bindingOf(symbol: string): Binding | undefined {
    return this.#bindings.get(symbol) ?? (this.#outer ? this.#outer.#bindingOf(symbol) : undefined);
  }

  /** The extents as i64[n]. */
  shape(extents: readonly IndexExpr[]): string {
    const fixed = extents.map(constantValue);
    if (fixed.every((n) => n !== undefined)) return this.integers(fixed);
    const parts = extents.map((d) => this.extent(d));
    return parts.length === 1 ? parts[0]! : this.op("Concat", parts, { axis: 0n });
  }

  /** An extent as i64[1]. */
  extent(expr: IndexExpr): string {
    const fixed = constantValue(expr);
    if (fixed !== undefined) return this.integers([fixed]);
    const known = this.#extentOf(expr.key);
    if (known !== undefined) return known;
    const terms = expr.terms.map((term) => this.#term(term));
    const all = expr.constant === 0 ? terms : [...terms, this.integers([expr.constant])];
    const name = all.reduce((sum, term) => this.op("Add", [sum, term]));
    this.#extents.set(expr.key, name);
    return name;
  }

  #extentOf(key: string): string | undefined {
    return this.#extents.get(key) ?? (this.#outer ? this.#outer.#extentOf(key) : undefined);
  }

  /** An extent as a scalar. */
  scalar(expr: IndexExpr): string {
    const fixed = constantValue(expr);
    if (fixed !== undefined) return this.numbers("i64", [fixed]);
    return this.op("Reshape", [this.extent(expr), this.integers([])]);
  }

  #term({ coefficient, atoms }: IndexTerm): string {
    const factors = atoms.map((atom) => this.#atom(atom));
    const all = coefficient === 1 ? factors : [...factors, this.integers([coefficient])];
    return all.reduce((product, factor) => this.op("Mul", [product, factor]));
  }

  #atom(atom: IndexAtom): string {
    if (atom.kind === "variable") return this.#symbol(atom.name);
    if ("operands" in atom) {
      const operands = atom.operands.map((o) => this.extent(o));
      return this.op(atom.kind === "min" ? "Min" : "Max", operands);
    }
    const [a, b] = [this.extent(atom.numerator), this.extent(atom.denominator)];
    const rest = this.op("Mod", [a, b]);
    return atom.kind === "mod" ? rest : this.op("Div", [this.op("Sub", [a, rest]), b]);
  }

  #symbol(name: string): string {
    const known = this.#extentOf(name);
    if (known !== undefined) return known;
    const binding = this.#bindingOf(name);
    if (!binding) {
      this.refuse(`the extent ${name}`, "fix it with --shape: no value has it by itself");
    }
    const { value, axis, coefficient, rest } = binding;
    const extent = this.op("Shape", [value], { start: BigInt(axis), end: BigInt(axis + 1) });
    const shifted =
      rest.key === "0" ? extent : this.op("Sub", [extent, this.integers([rest.constant])]);
    const made =
      coefficient === 1 ? shifted : this.op("Div", [shifted, this.integers([coefficient])]);
    this.#extents.set(name, made);
    return made;
  }

  /** A graph in the place of a node: results by name. */
  inline(graph: Graph, inputs: readonly string[]): readonly string[] {
    const values = new Map(graph.inputs.map((id, i) => [id, inputs[i]!]));
    this.#writeNodes(graph, values, this);
    return graph.outputs.map((id) => values.get(id)!);
  }

  subgraph({ graph, given }: SubgraphInputs): GraphSpec {
    const inner = new GraphSink(this.space, this.#writeNodes, this);
    inner.at = this.at;
    const inputs: ValueSpec[] = [];
    const values = new Map<number, string>();
    for (const [i, id] of graph.inputs.entries()) {
      const { name, type } = graph.values[id]!;
      const outer = given[i];
      const own = outer ?? this.space.name(name);
      values.set(id, own);
      if (outer !== undefined) continue;
      inputs.push(valueSpec(own, type));
      inner.bind(type, own);
    }
    this.#writeNodes(graph, values, inner);
    const seen = new Set<string>();
    const made = new Set(inner.nodes.flatMap((n) => n.outputs));
    const outputs = graph.outputs.map((id) => {
      const name = values.get(id)!;
      const own = made.has(name) && !seen.has(name) ? name : inner.op("Identity", [name]);
      seen.add(own);
      return valueSpec(own, graph.values[id]!.type);
    });
    return { name: this.space.name("body"), inputs, outputs, nodes: inner.nodes };
  }

  /** Gives the nodes from `start` on another name for what one of them makes. */
  rename(start: number, old: string, name: string): void {
    for (let i = start; i < this.nodes.length; i++) {
      this.nodes[i] = renamedNode(this.nodes[i]!, old, name);
    }
  }
}

function renamedNode(node: NodeSpec, old: string, name: string): NodeSpec {
  const renamed = (names: readonly string[]) => names.map((n) => (n === old ? name : n));
  const attributes = Object.entries(node.attributes ?? {}).map(([key, value]) =>
    isGraph(value)
      ? [key, { ...value, nodes: value.nodes.map((n) => renamedNode(n, old, name)) }]
      : [key, value],
  );
  return {
    ...node,
    inputs: renamed(node.inputs),
    outputs: renamed(node.outputs),
    attributes: Object.fromEntries(attributes),
  };
}

function isGraph(value: AttributeValue): value is GraphSpec {
  return typeof value === "object" && "nodes" in value;
}

/** Extents that are numbers or names stay; others ONNX cannot say. */
export function valueSpec(name: string, { dtype, shape }: TensorType): ValueSpec {
  const dims = shape.map((d) => {
    const fixed = constantValue(d);
    if (fixed !== undefined) return fixed;
    const [symbol] = variablesOf(d);
    return d.key === symbol ? symbol : null;
  });
  return { name, dtype, shape: dims };
}
