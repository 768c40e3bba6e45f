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
import { bindGraphSymbols, runBounded, runPlannedGraph } from "../../interp/graph.ts";
import { type GraphPlan, planGraph } from "../../interp/graph-plan.ts";
import { tooLarge } from "../../interp/reference-limit.ts";
import type { DType } from "../../semantics/dtype.ts";
import { evaluate, variablesOf } from "../../semantics/index-expr.ts";
import { fromRef, type Tensor, toRef } from "../../semantics/tensor.ts";
import { ByExtents } from "../../support/by-extents.ts";
import { fail, ok, type Result } from "../../support/diagnostic.ts";

/** Shapes of inputs that are remembered. */
const mostShapes = 16;

/** The graph for inputs of known shapes. */
interface Reduced {
  readonly plan: GraphPlan;
  /** Of each output: where it is known without running anything, a constant or which of the inputs it is. */
  readonly known: readonly (Tensor | number | undefined)[];
  /** Whether one has to be computed. */
  readonly runs: boolean;
}

export class StageReference {
  readonly #graph: Graph;
  readonly #weights: WeightStore;
  readonly #dtypes: readonly DType[];
  readonly #reduced = new ByExtents<Reduced>(mostShapes);

  constructor(graph: Graph, weights: WeightStore) {
    // Sizes that data decide may be zero here.
    const widened = { ...graph, symbols: graph.symbols.map((s) => ({ ...s, min: 0 })) };
    const expanded = expandComposites(widened);
    this.#graph = expanded.graph;
    this.#weights = { read: (key) => expanded.constants.get(key) ?? weights.read(key) };
    this.#dtypes = graph.inputs.map((id) => graph.values[id]!.type.dtype);
  }

  /** @param given the graph's inputs in its order, as what comes back are its outputs */
  run(given: readonly Tensor[]): Result<readonly Tensor[]> {
    const extents = given.map((t) => t.shape);
    const areDeclared = given.every((t, i) => t.dtype === this.#dtypes[i]);
    const reduced = areDeclared ? this.#reduced.find(extents) : undefined;
    if (reduced) return this.#runReduced(reduced, given);
    const sizes = this.#sizesOf(given);
    const large = sizes && tooLarge(this.#graph, sizes);
    if (large) return fail(large);
    const inputs = given.map(toRef);
    const found = runBounded(this.#graph, inputs, this.#weights);
    if (!found.ok) return found;
    const symbols = bindGraphSymbols(this.#graph, inputs);
    if (symbols.ok) this.#reduced.keep(extents, reduce(this.#graph, symbols.value));
    return ok(found.value.map(fromRef));
  }

  /** Of the symbols; undefined where the run will say what does not fit. */
  #sizesOf(given: readonly Tensor[]): ReadonlyMap<string, number> | undefined {
    // Elements tell nothing of sizes.
    const bare = given.map(({ dtype, shape }) => ({ dtype, shape, data: new Float64Array(0) }));
    const symbols = bindGraphSymbols(this.#graph, bare);
    return symbols.ok ? symbols.value : undefined;
  }

  #runReduced({ plan, known, runs }: Reduced, given: readonly Tensor[]): Result<readonly Tensor[]> {
    const found = runs ? runPlannedGraph(plan, given.map(toRef), this.#weights) : ok([]);
    if (!found.ok) return found;
    const outputs = known.map((value, i) => {
      if (value === undefined) return fromRef(found.value[i]!);
      return typeof value === "number" ? given[value]! : value;
    });
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
    const isEmpty = typeof results === "object";
    const passed = isEmpty ? undefined : passedOn(node, graph, symbols);
    if (isEmpty) for (const [i, id] of node.outputs.entries()) empty.set(id, fromRef(results[i]!));
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
  const known = outputs.map((id) => {
    const input = graph.inputs.indexOf(id);
    return empty.get(id) ?? (input < 0 ? undefined : input);
  });
  const weights = [...graph.weights, ...constants];
  const rest = { ...graph, weights, nodes: nodes.reverse(), outputs };
  return { plan: planGraph(rest, symbols), known, runs: known.includes(undefined) };
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
