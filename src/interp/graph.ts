/**
 * The oracle: runs a graph on reference tensors through the float64 references, node by node. Slow and
 * obvious; everything else is compared with it. Symbols are bound from the inputs' shapes (and, for
 * extents that data decide, from results as they appear), constraints are checked, a value is dropped
 * after its last use, subgraphs run the same way with the outer symbols in scope.
 */
import type { Graph, Node, ValueId, WeightStore } from "../graph/graph.ts";
import { expandComposites } from "../graph/transforms/expand-composites.ts";
import type { CoreOpKind } from "../semantics/core-ops.ts";
import { evaluate, substitute, variablesOf } from "../semantics/index-expr.ts";
import { type ReferenceContext, runReference } from "../semantics/references/references.ts";
import { type RefTensor, type Tensor, toRef } from "../semantics/tensor.ts";
import { attempt, DiagnosticError, type Result, reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { bindShapes } from "./bind-shapes.ts";
import { emptyResults } from "./empty-results.ts";

/** A store for graphs whose weights are all inline. */
export const noWeights: WeightStore = {
  read(key) {
    return reject("INT001", `no weight ${JSON.stringify(key)}`);
  },
};

/** Outputs of a graph, in the graph's order; composites are run by their definitions. */
export function runGraph(
  graph: Graph,
  inputs: readonly RefTensor[],
  weights: WeightStore = noWeights,
): Result<readonly RefTensor[]> {
  return attempt(() => {
    const expanded = expandComposites(graph);
    const store = withConstants(weights, expanded.constants);
    return new GraphRun(expanded.graph, store, new Map()).run(inputs);
  });
}

/**
 * As runGraph, of a graph without composites and inputs of shapes that `bindGraphSymbols` has found to fit:
 * neither is done again.
 */
export function runBoundGraph(
  graph: Graph,
  inputs: readonly RefTensor[],
  symbols: ReadonlyMap<string, number>,
  weights: WeightStore,
): Result<readonly RefTensor[]> {
  return attempt(() => new GraphRun(graph, weights, symbols).runBound(inputs));
}

/** The store with the constants that definitions made. */
function withConstants(weights: WeightStore, made: ReadonlyMap<string, Tensor>): WeightStore {
  return { read: (key) => made.get(key) ?? weights.read(key) };
}

/** The symbols' values for these inputs; constraints and ranges are checked. */
export function bindGraphSymbols(
  graph: Graph,
  inputs: readonly RefTensor[],
): Result<ReadonlyMap<string, number>> {
  return attempt(() => {
    const run = new GraphRun(graph, noWeights, new Map());
    run.bindInputs(inputs);
    return run.symbols;
  });
}

class GraphRun {
  readonly symbols: Map<string, number>;
  readonly #graph: Graph;
  readonly #weights: WeightStore;
  readonly #values = new Map<ValueId, RefTensor>();
  /** Read when a node needs them. */
  readonly #sources = new Map<ValueId, Graph["weights"][number]["source"]>();
  readonly #usesLeft = new Map<ValueId, number>();

  constructor(graph: Graph, weights: WeightStore, outer: ReadonlyMap<string, number>) {
    this.#graph = graph;
    this.#weights = weights;
    this.symbols = new Map(outer);
  }

  run(inputs: readonly RefTensor[]): readonly RefTensor[] {
    this.bindInputs(inputs);
    return this.runBound(inputs);
  }

  /** With symbols that are those of the inputs already. */
  runBound(inputs: readonly RefTensor[]): readonly RefTensor[] {
    const { inputs: declared, nodes, outputs } = this.#graph;
    for (const [i, v] of declared.entries()) this.#values.set(v, inputs[i]!);
    for (const { value, source } of this.#graph.weights) this.#sources.set(value, source);
    for (const value of [...nodes.flatMap((n) => n.inputs), ...outputs]) {
      this.#usesLeft.set(value, (this.#usesLeft.get(value) ?? 0) + 1);
    }
    for (const node of nodes) this.#runNode(node);
    this.#checkConstraints(true);
    return outputs.map((v) => this.#valueOf(v));
  }

  bindInputs(inputs: readonly RefTensor[]): void {
    const { inputs: declared, symbols } = this.#graph;
    if (inputs.length !== declared.length) {
      reject("INT001", `${inputs.length} inputs for ${declared.length} of ${this.#graph.name}`);
    }
    bindShapes(
      declared.map((v, i) => ({ ...this.#graph.values[v]!, tensor: inputs[i]! })),
      this.symbols,
    );
    for (const { name, min, max } of symbols) {
      const value = this.symbols.get(name);
      if (value !== undefined && (value < min || value > max)) {
        reject("INT002", `${name} is ${value}, allowed are ${min} to ${max}`);
      }
    }
    this.#checkConstraints(false);
  }

  /** Constraints over symbols that are still unknown wait until `all`. */
  #checkConstraints(all: boolean): void {
    for (const { left, right, origin } of this.#graph.constraints) {
      const known = [left, right].map((e) => substitute(e, this.symbols));
      if (!all && variablesOf(...known).size > 0) continue;
      const [a, b] = known.map((e) => evaluate(e, this.symbols));
      if (a !== b) {
        reject("INT003", `${left.key} = ${right.key} is needed, but ${a} is not ${b}`, {
          at: origin,
        });
      }
    }
  }

  #valueOf(value: ValueId): RefTensor {
    const tensor = this.#values.get(value) ?? this.#weight(value);
    invariant(tensor, () => `value ${this.#graph.values[value]?.name} has not been computed`);
    return tensor;
  }

  #weight(value: ValueId): RefTensor | undefined {
    const source = this.#sources.get(value);
    if (!source) return undefined;
    const read = source.kind === "inline" ? source.tensor : this.#weights.read(source.key);
    const tensor = toRef(read);
    this.#values.set(value, tensor);
    return tensor;
  }

  #runNode(node: Node): void {
    const empty = emptyResults(node, this.#graph, this.symbols);
    if (empty) {
      for (const [i, value] of node.outputs.entries()) this.#values.set(value, empty[i]!);
      for (const value of node.inputs) this.#release(value);
      return;
    }
    const inputs = node.inputs.map((v) => this.#valueOf(v));
    const call = {
      kind: node.op as CoreOpKind,
      attrs: node.attrs as never,
      inputs,
      evaluate: (e: Parameters<typeof evaluate>[0]) => evaluate(e, this.symbols),
    };
    const result = runReference<CoreOpKind, Graph>(call, this.#subgraphs());
    if (!result.ok) {
      const at = node.origin ?? this.#graph.values[node.outputs[0]!]!.name;
      throw new DiagnosticError(result.diagnostics.map((d) => ({ at, ...d })));
    }
    for (const [i, value] of node.outputs.entries()) {
      const tensor = result.value[i]!;
      bindShapes([{ ...this.#graph.values[value]!, tensor }], this.symbols);
      this.#values.set(value, tensor);
    }
    for (const value of node.inputs) this.#release(value);
  }

  #release(value: ValueId): void {
    const left = this.#usesLeft.get(value)! - 1;
    this.#usesLeft.set(value, left);
    if (left === 0) this.#values.delete(value);
  }

  #subgraphs(): ReferenceContext<Graph> {
    const start = (body: Graph) => new GraphRun(body, this.#weights, this.symbols);
    return {
      runSubgraph: (body, inputs) => attempt(() => start(body).run(inputs)),
      subgraphOutputTypes: (body, inputs) => {
        const run = start(body);
        run.bindInputs(inputs);
        return body.outputs.map((v) => {
          const { dtype, shape } = body.values[v]!.type;
          return { dtype, shape: shape.map((d) => evaluate(d, run.symbols)) };
        });
      },
    };
  }
}
