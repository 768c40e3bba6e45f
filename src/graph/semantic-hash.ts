/**
 * A hash of what a graph computes: independent of the names and numbers of values, nodes and symbols,
 * of origins, of the order of independent nodes, and of nodes that no output needs. Stored weights
 * count by type and by which of them are the same, not by key or content: the hash names the
 * computation, not the trained model.
 */
import { type IndexExpr, substitute, variable, variablesOf } from "../semantics/index-expr.ts";
import { tensorBytes } from "../semantics/tensor.ts";
import { sha256Text } from "../support/hash.ts";
import { type AnyAttrs, mapAttrs } from "./attr-schema.ts";
import { printAttrs } from "./attr-text.ts";
import type { Graph, Node, NodeOf, OpKind, TensorType, ValueId } from "./graph.ts";
import { infoOf, schemaOf } from "./op-table.ts";
import { printType } from "./tensor-type.ts";

/** `sha256:` and 64 hexadecimal digits. */
export function semanticHash(graph: Graph): string {
  return `sha256:${sha256Text(new Canonical(graph, new Map()).print())}`;
}

/** Prints a graph with values numbered in the order in which a walk from the outputs meets them. */
class Canonical {
  readonly #graph: Graph;
  /** Canonical names of symbols; shared with subgraphs. */
  readonly #symbols: Map<string, IndexExpr>;
  readonly #numbers = new Map<ValueId, string>();
  readonly #lines: string[] = [];

  constructor(graph: Graph, symbols: Map<string, IndexExpr>) {
    this.#graph = graph;
    this.#symbols = symbols;
  }

  print(): string {
    const graph = this.#graph;
    for (const [i, id] of graph.inputs.entries()) {
      this.#numbers.set(id, `x${i}`);
      this.#lines.push(`x${i} : ${this.#type(graph.values[id]!.type)}`);
    }
    const producers = new Map(graph.nodes.flatMap((n) => n.outputs.map((id) => [id, n] as const)));
    for (const id of graph.outputs) this.#visit(id, producers);
    this.#lines.push(`outputs ${graph.outputs.map((id) => this.#numbers.get(id)).join(" ")}`);
    for (const { input, output } of graph.states) {
      this.#lines.push(`state ${this.#numbers.get(input)} ${this.#numbers.get(output)}`);
    }
    for (const { name, min, max } of graph.symbols) {
      const renamed = this.#symbols.get(name);
      if (renamed) this.#lines.push(`${min} <= ${renamed.key} <= ${max}`);
    }
    return this.#lines.join("\n");
  }

  /** Operands first, without recursion: graphs may be deep. */
  #visit(root: ValueId, producers: ReadonlyMap<ValueId, Node>): void {
    const stack = [root];
    while (stack.length > 0) {
      const id = stack.at(-1)!;
      const node = producers.get(id);
      const open = node?.inputs.filter((x) => !this.#numbers.has(x)) ?? [];
      if (!this.#numbers.has(id) && open.length > 0) {
        stack.push(...[...open].reverse());
        continue;
      }
      stack.pop();
      if (this.#numbers.has(id)) continue;
      if (node) this.#printNode(node);
      else this.#printWeight(id);
    }
  }

  #printNode(node: Node): void {
    const operands = node.inputs.map((id) => this.#numbers.get(id)).join(", ");
    const first = this.#numbers.size;
    for (const [i, id] of node.outputs.entries()) this.#numbers.set(id, `v${first + i}`);
    const types = node.outputs.map((id) => this.#type(this.#graph.values[id]!.type)).join(", ");
    this.#lines.push(`v${first} = ${node.op}(${operands})${this.#attrs(node)} : ${types}`);
  }

  #printWeight(id: ValueId): void {
    const name = `v${this.#numbers.size}`;
    this.#numbers.set(id, name);
    const source = this.#graph.weights.find((w) => w.value === id)?.source;
    const bytes = source?.kind === "inline" ? ` ${tensorBytes(source.tensor).join(" ")}` : "";
    this.#lines.push(`${name} = weight : ${this.#type(this.#graph.values[id]!.type)}${bytes}`);
  }

  #attrs(node: Node): string {
    const { op, attrs } = node as NodeOf<OpKind>;
    const renamed = mapAttrs(infoOf(op).schema, attrs, {
      dim: (d) => this.#dim(d),
      graph: (inner) => inner,
    });
    return printAttrs(schemaOf(op), renamed as AnyAttrs, (inner) => {
      return `{${new Canonical(inner, this.#symbols).print()}}`;
    });
  }

  #type(type: TensorType): string {
    return printType({ dtype: type.dtype, shape: type.shape.map((d) => this.#dim(d)) });
  }

  #dim(d: IndexExpr): IndexExpr {
    for (const name of variablesOf(d)) {
      if (!this.#symbols.has(name)) this.#symbols.set(name, variable(`s${this.#symbols.size}`));
    }
    return substitute(d, this.#symbols);
  }
}
