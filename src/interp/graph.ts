/**
 * The oracle: runs a graph on reference tensors through the float64 references, node by node. Slow and
 * obvious; everything else is compared with it. Symbols are bound from the inputs' shapes (and, for
 * extents that data decide, from results as they appear), constraints are checked, a value is dropped
 * after its last use, subgraphs run the same way with the outer symbols in scope.
 */
import type { Graph, Node, ShapeConstraint, ValueId, WeightStore } from "../graph/graph.ts";
import { narrowedBits } from "../graph/narrowing.ts";
import { traitsOf } from "../graph/op-table.ts";
import { expandComposites } from "../graph/transforms/expand-composites.ts";
import type { CoreOpKind } from "../semantics/core-ops.ts";
import { evaluate, type IndexExpr, substitute, variablesOf } from "../semantics/index-expr.ts";
import { type ReferenceContext, runReference } from "../semantics/references/references.ts";
import { type RefTensor, type Tensor, toRef } from "../semantics/tensor.ts";
import { attempt, DiagnosticError, type Result, reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import { bindShapes } from "./bind-shapes.ts";
import { BodyWork, mostBodyWork } from "./body-work.ts";
import { onOtherSide } from "./edge-steps.ts";
import { emptyResults } from "./empty-results.ts";
import { type GraphPlan, planGraph, type Step } from "./graph-plan.ts";
import { nudged, rounds } from "./nudged.ts";

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
  return runExpanded(graph, inputs, { weights });
}

/** As runGraph, with an end to what bodies of control flow may take (RUN007). */
export function runBounded(
  graph: Graph,
  inputs: readonly RefTensor[],
  weights: WeightStore,
  most = mostBodyWork,
): Result<readonly RefTensor[]> {
  return runExpanded(graph, inputs, { weights, work: new BodyWork(most) });
}

/** How far each value of a graph without composites may be off, relative to its largest element. */
export type ErrorsOf = (graph: Graph) => ReadonlyMap<ValueId, number>;

/**
 * As runGraph, where each quantisation has every integer that its operand's error could change changed: how far the
 * outputs are from those of runGraph says what such steps come to (edge-steps.ts). Those inside of bodies stay.
 */
export function runNearEdges(
  graph: Graph,
  inputs: readonly RefTensor[],
  weights: WeightStore,
  errorsOf: ErrorsOf,
): Result<readonly RefTensor[]> {
  return runExpanded(graph, inputs, { weights, errorsOf });
}

/**
 * As runGraph, where every value that is rounded to f32 is a neighbour of what it is (nudged.ts): how far the outputs
 * are from those of runGraph says how much the model hangs on last bits, for these inputs. What is inside of bodies stays.
 */
export function runNudged(
  graph: Graph,
  inputs: readonly RefTensor[],
  weights: WeightStore,
): Result<readonly RefTensor[]> {
  return runExpanded(graph, inputs, { weights, isNudged: true });
}

interface RunParts {
  readonly weights: WeightStore;
  readonly errorsOf?: ErrorsOf;
  readonly isNudged?: boolean;
  readonly work?: BodyWork;
}

function runExpanded(
  graph: Graph,
  inputs: readonly RefTensor[],
  { weights, errorsOf, isNudged, work }: RunParts,
): Result<readonly RefTensor[]> {
  return attempt(() => {
    const expanded = expandComposites(graph);
    const store = withConstants(weights, expanded.constants);
    const errors = errorsOf?.(expanded.graph);
    return new GraphRun(expanded.graph, store, new Map(), { errors, isNudged, work }).run(inputs);
  });
}

/**
 * As runBounded, of a graph without composites and inputs of shapes that `bindGraphSymbols` has found to fit and
 * given the symbols of: none of this is done again.
 */
export function runPlannedGraph(
  plan: GraphPlan,
  inputs: readonly RefTensor[],
  weights: WeightStore,
): Result<readonly RefTensor[]> {
  return attempt(() => {
    const work = new BodyWork(mostBodyWork);
    return new GraphRun(plan.graph, weights, plan.symbols, { work }).runPlanned(plan, inputs);
  });
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

interface GraphRunOptions {
  /** See runNearEdges. */
  readonly errors?: ReadonlyMap<ValueId, number> | undefined;
  /** See runNudged. */
  readonly isNudged?: boolean | undefined;
  /** What the bodies inside may take together. */
  readonly work?: BodyWork | undefined;
  /** Whether it is of a body. */
  readonly isInside?: boolean;
}

/** One run; bodies are run in it, as references ask for them. */
class GraphRun implements ReferenceContext<Graph> {
  readonly symbols: Map<string, number>;
  readonly #graph: Graph;
  readonly #weights: WeightStore;
  readonly #values = new Map<ValueId, RefTensor>();
  readonly #options: GraphRunOptions;
  readonly #evaluate = (expr: IndexExpr): number => evaluate(expr, this.symbols);

  constructor(
    graph: Graph,
    weights: WeightStore,
    outer: ReadonlyMap<string, number>,
    options: GraphRunOptions = {},
  ) {
    this.#graph = graph;
    this.#weights = weights;
    this.symbols = new Map(outer);
    this.#options = options;
  }

  run(inputs: readonly RefTensor[]): readonly RefTensor[] {
    this.bindInputs(inputs);
    return this.runPlanned(planGraph(this.#graph, this.symbols), inputs);
  }

  /** With symbols that are those of the inputs already. */
  runPlanned(plan: GraphPlan, inputs: readonly RefTensor[]): readonly RefTensor[] {
    const { inputs: declared, outputs } = this.#graph;
    for (const [i, v] of declared.entries()) this.#values.set(v, inputs[i]!);
    for (const step of plan.steps) this.#runStep(step, plan);
    for (const constraint of plan.open) this.#checkConstraint(constraint, true);
    return outputs.map((v) => this.#valueOf(v, plan));
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
    for (const constraint of this.#graph.constraints) this.#checkConstraint(constraint, false);
  }

  /** One over symbols that are still unknown waits until all are known. */
  #checkConstraint({ left, right, origin }: ShapeConstraint, areKnown: boolean): void {
    const known = [left, right].map((e) => substitute(e, this.symbols));
    if (!areKnown && variablesOf(...known).size > 0) return;
    const [a, b] = known.map((e) => evaluate(e, this.symbols));
    if (a === b) return;
    reject("INT003", `${left.key} = ${right.key} is needed, but ${a} is not ${b}`, { at: origin });
  }

  #valueOf(value: ValueId, plan: GraphPlan): RefTensor {
    const tensor = this.#values.get(value) ?? this.#weight(value, plan);
    invariant(tensor, () => `value ${this.#graph.values[value]?.name} has not been computed`);
    return tensor;
  }

  /** Read when a node needs it. */
  #weight(value: ValueId, { sources }: GraphPlan): RefTensor | undefined {
    const source = sources.get(value);
    if (!source) return undefined;
    const read = source.kind === "inline" ? source.tensor : this.#weights.read(source.key);
    const tensor = toRef(read);
    this.#values.set(value, tensor);
    return tensor;
  }

  #runStep({ node, empty, results, dropped }: Step, plan: GraphPlan): void {
    const known = empty === "unknown" ? emptyResults(node, this.#graph, this.symbols) : empty;
    const made = typeof known === "object" ? known : this.#runNode(node, plan);
    for (const [i, value] of node.outputs.entries()) {
      const tensor = made[i]!;
      if (made !== known) {
        const { name, type } = results[i]!;
        bindShapes([{ name, type, tensor }], this.symbols);
      }
      this.#values.set(value, tensor);
    }
    const { work, isInside } = this.#options;
    if (isInside) work?.add(node, this.#graph, made, this.symbols);
    for (const value of dropped) this.#values.delete(value);
  }

  #runNode(node: Node, plan: GraphPlan): readonly RefTensor[] {
    const inputs = node.inputs.map((v) => this.#valueOf(v, plan));
    const made = this.#runReference(node, inputs);
    const { errors, isNudged } = this.#options;
    if (isNudged && rounds(traitsOf(node, this.#graph)))
      return made.map((tensor, i) => nudged(tensor, node.outputs[i]!));
    const error = errors?.get(node.inputs[0]!) ?? 0;
    if (error === 0 || narrowedBits(node, this.#graph) === 0) return made;
    const run = (x: RefTensor) => this.#runReference(node, [x, ...inputs.slice(1)]);
    return onOtherSide(inputs, made, error, run);
  }

  #runReference(node: Node, inputs: readonly RefTensor[]): readonly RefTensor[] {
    const call = {
      kind: node.op as CoreOpKind,
      attrs: node.attrs as never,
      inputs,
      evaluate: this.#evaluate,
    };
    const result = runReference<CoreOpKind, Graph>(call, this);
    if (result.ok) return result.value;
    const at = node.origin ?? this.#graph.values[node.outputs[0]!]!.name;
    throw new DiagnosticError(result.diagnostics.map((d) => ({ at, ...d })));
  }

  runSubgraph(body: Graph, inputs: readonly RefTensor[]): Result<readonly RefTensor[]> {
    const { work } = this.#options;
    const run = new GraphRun(body, this.#weights, this.symbols, { work, isInside: true });
    return attempt(() => run.run(inputs));
  }

  subgraphOutputTypes(
    body: Graph,
    inputs: readonly RefTensor[],
  ): readonly Pick<RefTensor, "dtype" | "shape">[] {
    const run = new GraphRun(body, this.#weights, this.symbols);
    run.bindInputs(inputs);
    return body.outputs.map((v) => {
      const { dtype, shape } = body.values[v]!.type;
      return { dtype, shape: shape.map((d) => evaluate(d, run.symbols)) };
    });
  }
}
