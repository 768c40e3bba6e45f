/**
 * The reference of one stage of a model (staged-run.ts), run after run: composites are expanded once, and for inputs
 * of the same shapes symbols are bound once, and nodes whose results have no elements, or are their operand because
 * nothing is put into it, are left out from the second run on, with what only they read. An expert without tokens
 * then passes its sum on and does nothing else.
 */
import type { Graph, Node, ValueId, WeightStore } from "../../graph/graph.ts";
import { traitsOf } from "../../graph/op-table.ts";
import { expandComposites } from "../../graph/transforms/expand-composites.ts";
import { emptyResults } from "../../interp/empty-results.ts";
import { bindGraphSymbols, runBoundGraph, runGraph } from "../../interp/graph.ts";
import type { Feeds, Outputs } from "../../runtime/model-session.ts";
import { evaluate, variablesOf } from "../../semantics/index-expr.ts";
import { fromRef, type Tensor, toRef } from "../../semantics/tensor.ts";
import { ok, type Result } from "../../support/diagnostic.ts";

/** Shapes of inputs that are remembered; then it begins anew. */
const mostShapes = 16;

/** The graph for inputs of known shapes. */
interface Reduced {
  readonly graph: Graph;
  readonly symbols: ReadonlyMap<string, number>;
  /** Of each output: where it is known without running anything, a constant or the name of the input that it is. */
  readonly known: readonly (Tensor | string | undefined)[];
}

export class StageReference {
  readonly #graph: Graph;
  readonly #weights: WeightStore;
  readonly #inputs: readonly string[];
  readonly #outputs: readonly string[];
  readonly #reduced = new Map<string, Reduced>();

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
    const key = this.#inputs
      .map((name) => feeds[name]!.dtype + feeds[name]!.shape.join())
      .join(" ");
    const reduced = this.#reduced.get(key);
    if (reduced) return this.#runReduced(reduced, feeds);
    const inputs = this.#inputs.map((name) => toRef(feeds[name]!));
    const found = runGraph(this.#graph, inputs, this.#weights);
    if (!found.ok) return found;
    const symbols = bindGraphSymbols(this.#graph, inputs);
    if (symbols.ok) {
      if (this.#reduced.size >= mostShapes) this.#reduced.clear();
      this.#reduced.set(key, reduce(this.#graph, symbols.value));
    }
    return ok(Object.fromEntries(this.#outputs.map((name, i) => [name, fromRef(found.value[i]!)])));
  }

  #runReduced({ graph, symbols, known }: Reduced, feeds: Feeds): Result<Outputs> {
    const outputs: Outputs = {};
    if (known.includes(undefined)) {
      const inputs = this.#inputs.map((name) => toRef(feeds[name]!));
      const found = runBoundGraph(graph, inputs, symbols, this.#weights);
      if (!found.ok) return found;
      for (const [i, name] of this.#outputs.entries()) outputs[name] = fromRef(found.value[i]!);
    }
    for (const [i, name] of this.#outputs.entries()) {
      const value = known[i];
      if (value !== undefined) outputs[name] = typeof value === "string" ? feeds[value]! : value;
    }
    return ok(outputs);
  }
}

/** What is empty becomes a constant, what gets nothing is passed on, and what nothing reads then is gone. */
function reduce(graph: Graph, symbols: ReadonlyMap<string, number>): Reduced {
  const empty = new Map<ValueId, Tensor>();
  const same = new Map<ValueId, ValueId>();
  const resolve = (id: ValueId): ValueId => same.get(id) ?? id;
  const full: Node[] = [];
  for (const node of graph.nodes) {
    const results = emptyResults(node, graph, symbols);
    const passed = results ? undefined : passedOn(node, graph, symbols);
    if (results) for (const [i, id] of node.outputs.entries()) empty.set(id, fromRef(results[i]!));
    else if (passed !== undefined) same.set(node.outputs[0]!, resolve(passed));
    else full.push({ ...node, inputs: node.inputs.map(resolve) } as Node);
  }
  const outputs = graph.outputs.map(resolve);
  const read = new Set(outputs);
  const nodes = full.reverse().filter((node) => {
    if (!node.outputs.some((value) => read.has(value))) return false;
    for (const value of node.inputs) read.add(value);
    return true;
  });
  const constants = [...empty].map(
    ([value, tensor]) => ({ value, source: { kind: "inline", tensor } }) as const,
  );
  const inputs = new Set(graph.inputs);
  const nameOf = (id: ValueId): string | undefined =>
    inputs.has(id) ? graph.values[id]!.name : undefined;
  return {
    graph: { ...graph, weights: [...graph.weights, ...constants], nodes: nodes.reverse(), outputs },
    symbols,
    known: outputs.map((id) => empty.get(id) ?? nameOf(id)),
  };
}

/** The operand that a node passes on as it is, because what it would put into it has no elements. */
function passedOn(
  node: Node,
  graph: Graph,
  symbols: ReadonlyMap<string, number>,
): ValueId | undefined {
  const { updates } = traitsOf(node, graph);
  if (updates === undefined) return undefined;
  const { shape } = graph.values[node.inputs[updates]!]!.type;
  if ([...variablesOf(...shape)].some((name) => !symbols.has(name))) return undefined;
  return shape.some((e) => evaluate(e, symbols) === 0) ? node.inputs[0]! : undefined;
}
