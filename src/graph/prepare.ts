/**
 * The graph passes of the compiler in order: batch norms into the weights before them, composites into
 * core ops (products of quantised values before that, where the machine multiplies bytes), Fourier
 * transforms into products, topK of long axes by groups, constants folded, bodies of control flow copied out where
 * they are decided or few, transposes in front of products into their labels (where the machine takes any order),
 * equal nodes once, dead ones gone. Constants that are too large to stand in
 * the graph join the model's weights.
 */
import type { Tensor } from "../semantics/tensor.ts";
import type { Graph, Model, Node, WeightStore } from "./graph.ts";
import { byteFloatProducts } from "./transforms/byte-float-products.ts";
import { eliminateCommonSubexpressions, eliminateDeadCode } from "./transforms/clean.ts";
import { consecutiveUpdates } from "./transforms/consecutive-updates.ts";
import { expandComposites } from "./transforms/expand-composites.ts";
import { expandFourier } from "./transforms/expand-fourier.ts";
import { foldBatchNorm } from "./transforms/fold-batch-norm.ts";
import { foldConstants } from "./transforms/fold-constants.ts";
import { foldEmpty } from "./transforms/fold-empty.ts";
import { foldTransposes, type ProductOrders } from "./transforms/fold-transposes.ts";
import { inlineControl } from "./transforms/inline-control.ts";
import { integerProducts } from "./transforms/integer-products.ts";
import { lateFactors } from "./transforms/late-factors.ts";
import { lateScales } from "./transforms/late-scales.ts";
import { mapParts } from "./transforms/map-parts.ts";
import { nestConcats } from "./transforms/nested-concats.ts";
import { packAttention } from "./transforms/pack-attention.ts";
import { dequantizedOperands, type ProductOptions } from "./transforms/quantized-operands.ts";
import type { Rebuilt } from "./transforms/rebuild.ts";
import { repeatableLoops } from "./transforms/repeatable-loops.ts";
import { hoistBodyWeights } from "./transforms/scan-steps.ts";
import { selectTop } from "./transforms/select-top.ts";
import { wideScans } from "./transforms/wide-scans.ts";

/** Elements and operations up to which a constant node is computed ahead. */
const foldLimits = { elements: 2 ** 22, flops: 2 ** 27 };

/** Elements of the matrix of a Fourier transform: 16 MiB of f32. */
const fourierLimits = { elements: 2 ** 22 };

/** Copies of one body, and nodes in all, up to which control flow becomes straight code. */
const inlineLimits = { trips: 64, nodes: 5_000 };

/** Steps of a scan up to which copies are better than tasks that are repeated. */
const mostCopiedSteps = 8;

type Pass = (graph: Graph, weights: WeightStore) => Rebuilt;

const fold: Pass = (graph, weights) => foldConstants(graph, { ...foldLimits, weights });

/** Everything but quantised weights of products, which prices say how to store. */
const foldButOperands: Pass = (graph, weights) => {
  const operands = dequantizedOperands(graph);
  const leave = (node: Node): boolean => operands.has(node.outputs[0]!);
  return foldConstants(graph, { ...foldLimits, weights, leave });
};

/** Everything but the values of quantised weights. */
const foldButDequantized: Pass = (graph, weights) =>
  foldConstants(graph, { ...foldLimits, weights, leave: (node) => node.op === "dequantize" });

export interface PrepareOptions {
  /** Products of quantised values are sums of integers: the machine has an instruction for such data. */
  readonly integerProducts?: ProductOptions;
  /** Products of dequantised 8-bit floats are those of the stored elements: the machine multiplies such. */
  readonly byteFloatProducts?: boolean;
  /** Attention leaves out columns that a row does not meet: sequences behind each other stay so. */
  readonly packsAttention?: boolean;
  /**
   * Products take operands in any order of axes: transposes in front of them are orders. Default: they stay,
   * since processors multiply what they have packed into panels, which costs more across the depth.
   */
  readonly productOrders?: ProductOrders;
  /** Lines whose first k are wanted are folded by many threads at once: they are selected by digits. */
  readonly selectsByDigits?: boolean;
  /** The machine has many threads: no updates in order, and no joined value in memory that only maps read. */
  readonly forBlocks?: boolean;
  /** Programs repeat the steps of scans and loops: only short scans are copied out. */
  readonly repeatsSteps?: boolean;
  /** As InlineLimits: the graph goes to a runtime that runs the branch alone that is taken. */
  readonly keepsChoices?: boolean;
}

export function prepareModel(model: Model, options: PrepareOptions = {}): Model {
  const { integerProducts: data, byteFloatProducts: takesFloats = false } = options;
  const { productOrders } = options;
  const folding = options.forBlocks ? foldButOperands : fold;
  const onBytes: readonly Pass[] = [
    ...(data || takesFloats ? [foldButDequantized] : []),
    ...(data
      ? [(graph: Graph, weights: WeightStore) => integerProducts(graph, weights, data)]
      : []),
    ...(takesFloats ? [byteFloatProducts] : []),
  ];
  const expanded = runPasses(model, [
    foldBatchNorm,
    ...onBytes,
    ...(options.packsAttention ? [(graph: Graph) => packAttention(graph)] : []),
    (graph) => expandComposites(graph),
    (graph) => expandFourier(graph, fourierLimits),
    foldEmpty,
    folding,
  ]);
  const straight = withoutControlFlow(expanded, options);
  const { graph, weights } = runPasses(straight, [
    ...(options.repeatsSteps ? [repeatableLoops, hoistBodyWeights] : []),
    ...(options.forBlocks
      ? [(graph: Graph) => selectTop(graph, { byDigits: options.selectsByDigits ?? false })]
      : []),
    ...(options.forBlocks ? [] : [wideScans, nestConcats]),
    ...(options.forBlocks ? [consecutiveUpdates, mapParts, lateFactors, folding] : []),
    ...(productOrders ? [(graph: Graph) => foldTransposes(graph, productOrders)] : []),
    ...(options.forBlocks ? [lateScales] : []),
    eliminateCommonSubexpressions,
  ]);
  return { graph: eliminateDeadCode(graph), weights };
}

function runPasses(model: Model, passes: readonly Pass[]): Model {
  let { graph, weights } = model;
  for (const pass of passes) {
    const rebuilt = pass(eliminateDeadCode(graph), weights);
    graph = rebuilt.graph;
    weights = withConstants(weights, rebuilt.constants);
  }
  return { graph, weights };
}

/** Copies and folds in turns: what a copy computes may decide the condition or count of another. */
function withoutControlFlow(
  model: Model,
  { repeatsSteps, keepsChoices = false, forBlocks }: PrepareOptions,
): Model {
  // A GPU's launches of one step after the other are as many either way.
  const steps = repeatsSteps && !forBlocks ? { steps: mostCopiedSteps } : {};
  const limits = { ...inlineLimits, ...steps, keepsChoices };
  let nodes = inlineLimits.nodes;
  let current = model;
  for (;;) {
    const graph = eliminateDeadCode(current.graph);
    const inlined = inlineControl(graph, { ...limits, nodes });
    if (inlined.count === 0) return current;
    nodes -= inlined.nodes;
    const weights = withConstants(current.weights, inlined.constants);
    current = runPasses({ graph: inlined.graph, weights }, [forBlocks ? foldButOperands : fold]);
  }
}

function withConstants(store: WeightStore, constants: ReadonlyMap<string, Tensor>): WeightStore {
  if (constants.size === 0) return store;
  return { read: (key) => constants.get(key) ?? store.read(key) };
}

/** Reads the elements of any weight of a model by the name of its value. */
export function weightReader(model: Model): (name: string) => Tensor {
  const sources = new Map(
    model.graph.weights.map((w) => [model.graph.values[w.value]!.name, w.source]),
  );
  return (name) => {
    const source = sources.get(name);
    if (source?.kind === "inline") return source.tensor;
    return model.weights.read(source?.key ?? name);
  };
}
