/**
 * A choice of e-nodes as a graph: the nodes that the outputs need, in an order that the choice decides,
 * over the inputs and weights of the graph that was rewritten. Nested concatenations become one again. What
 * computes a value of that graph has the origin that it had there, new nodes that of a node they are for.
 */
import type { EGraph, NodeId } from "../egraph/index.ts";
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, OpAttrs, OpKind, ValueId } from "../graph/graph.ts";
import type { Tensor } from "../semantics/tensor.ts";
import { invariant } from "../support/invariant.ts";
import type { Facts } from "./facts.ts";
import { callOf, constantOp, type Leaf, leafOp } from "./terms.ts";

/** The chosen e-node of a class. */
export type ChosenNode = (id: NodeId) => NodeId;

/** What is chosen from. */
export interface ExtractionSource {
  readonly graph: Graph;
  readonly egraph: EGraph<Facts>;
  /** Where the graph's values are in the e-graph. */
  readonly ids: ReadonlyMap<ValueId, NodeId>;
}

export function extractedGraph(source: ExtractionSource, chosen: ChosenNode): Graph {
  const outputs = source.graph.outputs.map((id) => source.ids.get(id)!);
  return new Extraction(source, chosen).run(outputs);
}

class Extraction {
  readonly #source: Graph;
  readonly #egraph: EGraph<Facts>;
  readonly #chosen: ChosenNode;
  readonly #b: GraphBuilder;
  readonly #values = new Map<NodeId, ValueId>();
  readonly #leaves = new Map<ValueId, ValueId>();
  readonly #uses = new Map<NodeId, number>();
  /** Of classes. */
  readonly #origins = new Map<NodeId, string>();

  constructor({ graph, egraph, ids }: ExtractionSource, chosen: ChosenNode) {
    this.#source = graph;
    this.#egraph = egraph;
    this.#chosen = chosen;
    this.#b = new GraphBuilder(graph.name);
    for (const { outputs, origin } of graph.nodes) {
      for (const output of outputs) this.#giveOrigin(ids.get(output)!, origin);
    }
  }

  /** The first one holds. */
  #giveOrigin(id: NodeId, origin: string | undefined): void {
    const root = this.#egraph.find(id);
    if (origin !== undefined && !this.#origins.has(root)) this.#origins.set(root, origin);
  }

  run(outputs: readonly NodeId[]): Graph {
    const source = this.#source;
    const b = this.#b;
    for (const { name, min, max } of source.symbols) b.symbol(name, min, max);
    for (const { left, right, origin } of source.constraints) b.constrain(left, right, origin);
    const add = (id: ValueId, value: ValueId) => this.#leaves.set(id, value);
    for (const id of source.inputs) {
      const { name, type } = source.values[id]!;
      add(id, b.input(name, type));
    }
    const order = this.#order(outputs);
    const needed = new Set(order.map((node) => this.#leafOf(node)?.value));
    for (const { value, source: from } of source.weights) {
      if (!needed.has(value)) continue;
      const { name, type } = source.values[value]!;
      add(
        value,
        from.kind === "inline" ? b.constant(from.tensor, name) : b.weight(name, type, from.key),
      );
    }
    for (const node of order.toReversed()) {
      const origin = this.#origins.get(this.#egraph.find(node));
      for (const child of this.#egraph.children(node)) this.#giveOrigin(child, origin);
    }
    for (const node of order) this.#values.set(this.#egraph.find(node), this.#write(node));
    return b.finish(outputs.map((id) => this.#valueOf(id)));
  }

  /** The chosen nodes with operands before users. */
  #order(outputs: readonly NodeId[]): readonly NodeId[] {
    const order: NodeId[] = [];
    const state = new Map<NodeId, "open" | "done">();
    const stack: { readonly root: NodeId; readonly node: NodeId; next: number }[] = [];
    const open = (id: NodeId): void => {
      const root = this.#egraph.find(id);
      this.#uses.set(root, (this.#uses.get(root) ?? 0) + 1);
      if (state.get(root) === "done") return;
      invariant(!state.has(root), () => "the chosen terms go in a circle");
      state.set(root, "open");
      stack.push({ root, node: this.#chosen(root), next: 0 });
    };
    for (const output of outputs) {
      open(output);
      for (let top = stack.at(-1); top; top = stack.at(-1)) {
        const children = this.#egraph.children(top.node);
        if (top.next < children.length) {
          open(children[top.next++]!);
          continue;
        }
        stack.pop();
        state.set(top.root, "done");
        order.push(top.node);
      }
    }
    return order;
  }

  #leafOf(node: NodeId): Leaf | undefined {
    if (this.#egraph.opName(node) !== leafOp) return undefined;
    return this.#egraph.payloadValue(node) as Leaf;
  }

  #valueOf(id: NodeId): ValueId {
    return this.#values.get(this.#egraph.find(id))!;
  }

  #write(node: NodeId): ValueId {
    const egraph = this.#egraph;
    const leaf = this.#leafOf(node);
    if (leaf) return this.#leaves.get(leaf.value)!;
    const op = egraph.opName(node);
    const value = egraph.payloadValue(node);
    if (op === constantOp) return this.#b.constant(value as Tensor);
    const call = callOf(op, egraph.vocabulary.payloadKey(egraph.payload(node)), value);
    invariant(call, () => `"${op}" is no op`);
    const children = op === "concat" ? this.#flatten(node) : egraph.children(node);
    const operands = children.map((child) => this.#valueOf(child));
    const origin = this.#origins.get(egraph.find(node));
    const options = origin === undefined ? {} : { origin };
    return this.#b.node<OpKind>(call.op, operands, call.attrs as OpAttrs[OpKind], options);
  }

  /** Operands of a concatenation, with those of its left operand where only it uses that. */
  #flatten(node: NodeId): readonly NodeId[] {
    const egraph = this.#egraph;
    const [left, right] = egraph.children(node) as [NodeId, NodeId];
    const inner = this.#chosen(egraph.find(left));
    const same =
      egraph.opName(inner) === "concat" &&
      egraph.payload(inner) === egraph.payload(node) &&
      this.#uses.get(egraph.find(left)) === 1;
    return [...(same ? this.#flatten(inner) : [left]), right];
  }
}
