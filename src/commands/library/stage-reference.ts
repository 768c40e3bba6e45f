/**
 * The reference of one stage of a model (staged-run.ts), run after run: composites are expanded once, and of inputs of
 * the same shapes the nodes whose results have no elements are left out from the second run on, with what only they
 * read. An expert without tokens then costs no more than passing its sum on.
 */
import type { Graph, Node, ValueId, WeightStore } from "../../graph/graph.ts";
import { expandComposites } from "../../graph/transforms/expand-composites.ts";
import { emptyResults } from "../../interp/empty-results.ts";
import { bindGraphSymbols, runGraph } from "../../interp/graph.ts";
import type { Feeds, Outputs } from "../../runtime/model-session.ts";
import { fromRef, type RefTensor, toRef } from "../../semantics/tensor.ts";
import { ok, type Result } from "../../support/diagnostic.ts";

/** Shapes of inputs that are remembered; then it begins anew. */
const mostShapes = 16;

export class StageReference {
  readonly #graph: Graph;
  readonly #weights: WeightStore;
  readonly #inputs: readonly string[];
  readonly #outputs: readonly string[];
  readonly #reduced = new Map<string, Graph>();

  constructor(graph: Graph, weights: WeightStore) {
    // Sizes that data decide may be zero here.
    const widened = { ...graph, symbols: graph.symbols.map((s) => ({ ...s, min: 0 })) };
    const expanded = expandComposites(widened);
    this.#graph = expanded.graph;
    this.#weights = { read: (key) => expanded.constants.get(key) ?? weights.read(key) };
    const names = (ids: readonly ValueId[]) => ids.map((id) => graph.values[id]!.name);
    this.#inputs = names(graph.inputs);
    this.#outputs = names(graph.outputs);
  }

  run(feeds: Feeds): Result<Outputs> {
    const inputs = this.#inputs.map((name) => toRef(feeds[name]!));
    const key = inputs.map(({ shape }) => shape.join()).join(" ");
    const found = runGraph(this.#reduced.get(key) ?? this.#graph, inputs, this.#weights);
    if (!found.ok) return found;
    if (!this.#reduced.has(key)) {
      if (this.#reduced.size >= mostShapes) this.#reduced.clear();
      this.#reduced.set(key, withoutEmpty(this.#graph, inputs));
    }
    return ok(Object.fromEntries(this.#outputs.map((name, i) => [name, fromRef(found.value[i]!)])));
  }
}

/** The graph for inputs of these shapes: what is empty is a constant, and what nothing reads is gone. */
function withoutEmpty(graph: Graph, inputs: readonly RefTensor[]): Graph {
  const symbols = bindGraphSymbols(graph, inputs);
  if (!symbols.ok) return graph;
  const weights = [...graph.weights];
  const full: Node[] = [];
  for (const node of graph.nodes) {
    const empty = emptyResults(node, graph, symbols.value);
    if (!empty) full.push(node);
    else {
      for (const [i, value] of node.outputs.entries()) {
        weights.push({ value, source: { kind: "inline", tensor: fromRef(empty[i]!) } });
      }
    }
  }
  const read = new Set(graph.outputs);
  const nodes = full.reverse().filter((node) => {
    if (!node.outputs.some((value) => read.has(value))) return false;
    for (const value of node.inputs) read.add(value);
    return true;
  });
  return { ...graph, weights, nodes: nodes.reverse() };
}
