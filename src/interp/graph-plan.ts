/**
 * What of a graph's run does not hang on data: which results are empty, when a value is read for the last time,
 * which constraints are still open. Made for the symbols that the inputs' shapes decide; runs on inputs of equal
 * shapes share it.
 */
import type {
  Graph,
  Node,
  ShapeConstraint,
  TensorType,
  ValueId,
  WeightSource,
} from "../graph/graph.ts";
import { variablesOf } from "../semantics/index-expr.ts";
import type { RefTensor } from "../semantics/tensor.ts";
import { emptyResults } from "./empty-results.ts";

export interface GraphPlan {
  readonly graph: Graph;
  readonly symbols: ReadonlyMap<string, number>;
  readonly steps: readonly Step[];
  readonly sources: ReadonlyMap<ValueId, WeightSource>;
  /** Those that the known symbols do not decide. */
  readonly open: readonly ShapeConstraint[];
}

/** A node in its turn. */
export interface Step {
  readonly node: Node;
  readonly empty: readonly RefTensor[] | "elements" | "unknown";
  readonly results: readonly { readonly name: string; readonly type: TensorType }[];
  /** Values that nothing reads any more. */
  readonly dropped: readonly ValueId[];
}

export function planGraph(graph: Graph, symbols: ReadonlyMap<string, number>): GraphPlan {
  const { nodes, outputs, weights, constraints, values } = graph;
  const readLater = new Set(outputs);
  const steps: Step[] = [];
  for (const node of [...nodes].reverse()) {
    const dropped = new Set(node.inputs.filter((value) => !readLater.has(value)));
    for (const value of dropped) readLater.add(value);
    steps.push({
      node,
      empty: emptyResults(node, graph, symbols),
      results: node.outputs.map((value) => values[value]!),
      dropped: [...dropped],
    });
  }
  return {
    graph,
    symbols,
    steps: steps.reverse(),
    sources: new Map(weights.map(({ value, source }) => [value, source])),
    open: constraints.filter(({ left, right }) =>
      [...variablesOf(left, right)].some((name) => !symbols.has(name)),
    ),
  };
}
