/**
 * Nodes over weights alone become weights: their elements are computed when somebody reads them, by the
 * references, so that rewriting a model never reads its weights. What foldable.ts refuses stays a node.
 */
import { type AnyAttrs, attrParts } from "../graph/attr-schema.ts";
import { flopsOf } from "../graph/counts.ts";
import type { Graph, Model, Node, NodeOf, OpKind, ValueId, WeightStore } from "../graph/graph.ts";
import { isComposite, schemaOf } from "../graph/op-table.ts";
import { elementsOf } from "../graph/tensor-type.ts";
import { eliminateDeadCode, liveValues } from "../graph/transforms/clean.ts";
import { rebuildGraph } from "../graph/transforms/rebuild.ts";
import type { CoreOpKind } from "../semantics/core-ops.ts";
import { constantValue, type IndexExpr } from "../semantics/index-expr.ts";
import { type ReferenceContext, runReference } from "../semantics/references/references.ts";
import { fromRef, type RefTensor, type Tensor, toRef } from "../semantics/tensor.ts";
import { invariant } from "../support/invariant.ts";
import { isFoldable } from "./foldable.ts";
import { isTransparent } from "./terms.ts";

type Read = () => Tensor;

/**
 * The model with results as weights, which are computed once, before it runs; itself where none can be. Of weights
 * alone it stores also what takes more than some operations an element and does not grow (a sum): a kernel that makes
 * it on the way to something else would do so in every run.
 */
export function storedResults(model: Model, constant: ReadonlySet<string>): Model {
  const isWanted = (name: string, node: Node): boolean =>
    constant.has(name) || isCostly(node, model.graph, constantValue(flopsOf(node, model.graph)));
  const stored = deriveConstants(model, isWanted, true);
  return stored === model ? model : { ...stored, graph: eliminateDeadCode(stored.graph) };
}

/**
 * @param isWanted of which results, by name; default: of all
 * @param withSources whether also what is made of nothing (numbers in a row), up to some size
 * @returns the model itself where nothing becomes a weight
 */
export function deriveConstants(
  model: Model,
  isWanted: (name: string, node: Node) => boolean = () => true,
  withSources = false,
): Model {
  const { graph, weights } = model;
  const readers = readersOf(graph, weights);
  const derived = new Map<string, Read>();
  const taken = new Set(
    graph.weights.flatMap(({ source }) => (source.kind === "stored" ? [source.key] : [])),
  );
  const keyFor = (name: string): string => {
    let key = name;
    for (let i = 1; taken.has(key); i++) key = `${name}#${i}`;
    taken.add(key);
    return key;
  };
  const rebuilt = rebuildGraph(graph, {
    live: liveValues,
    node: ({ b, old, node }) => {
      if (
        old !== graph ||
        !isTransparent(node, graph) ||
        !(node.inputs.length === 0
          ? withSources && isSmallSource(node as NodeOf<OpKind>, graph)
          : foldsIn(node as NodeOf<OpKind>, graph, readers))
      ) {
        return undefined;
      }
      const [output] = node.outputs as readonly [ValueId];
      const { name, type } = graph.values[output]!;
      const read = evaluator(
        node as NodeOf<CoreOpKind>,
        node.inputs.map((id) => readers.get(id)!),
      );
      readers.set(output, read);
      if (!isWanted(name, node)) return undefined;
      const key = keyFor(name);
      derived.set(key, read);
      return [b.weight(name, type, key)];
    },
  });
  if (derived.size === 0) return model;
  const { constants } = rebuilt;
  const store: WeightStore = {
    read: (key) => derived.get(key)?.() ?? constants.get(key) ?? weights.read(key),
  };
  return { graph: rebuilt.graph, weights: store };
}

/** Operations of a result above which it is stored. */
const fewOperations = 2;

function isCostly({ inputs, outputs }: Node, graph: Graph, flops: number | undefined): boolean {
  const elements = (id: ValueId): number =>
    constantValue(elementsOf(graph.values[id]!.type)) ?? Infinity;
  const results = elements(outputs[0]!);
  // What grows is read in less time than its results.
  const grows = results > Math.max(...inputs.map(elements));
  return !grows && flops !== undefined && flops > fewOperations * results;
}

/** Elements of what nothing is read for (numbers in a row), up to which all of them may be stored. */
const mostOfSource = 2 ** 20;

function isSmallSource({ op, attrs, outputs }: NodeOf<OpKind>, graph: Graph): boolean {
  const { dims } = attrParts(schemaOf(op), attrs as AnyAttrs);
  const isFixed = dims.every((d) => constantValue(d) !== undefined);
  const elements = outputs.map(
    (id) => constantValue(elementsOf(graph.values[id]!.type)) ?? Infinity,
  );
  return !isComposite(op) && isFixed && Math.max(...elements) <= mostOfSource;
}

function foldsIn(
  { op, attrs, inputs, outputs }: NodeOf<OpKind>,
  graph: Graph,
  readers: ReadonlyMap<ValueId, Read>,
): boolean {
  const types = (ids: readonly ValueId[]) => ids.map((id) => graph.values[id]!.type);
  return (
    inputs.every((id) => readers.has(id)) &&
    isFoldable({ op, attrs: attrs as AnyAttrs, inputs: types(inputs), outputs: types(outputs) })
  );
}

function readersOf(graph: Graph, weights: WeightStore): Map<ValueId, Read> {
  return new Map(
    graph.weights.map(({ value, source }) => {
      const read: Read =
        source.kind === "inline" ? () => source.tensor : () => weights.read(source.key);
      return [value, read] as const;
    }),
  );
}

function refuseSubgraph(): never {
  invariant(false, () => "a node with a subgraph was folded");
}

const noSubgraphs: ReferenceContext<Graph> = {
  runSubgraph: refuseSubgraph,
  subgraphOutputTypes: refuseSubgraph,
};

/** Computes the node's result once, when it is first asked for. */
function evaluator({ op, attrs }: NodeOf<CoreOpKind>, operands: readonly Read[]): Read {
  let known: Tensor | undefined;
  return () => {
    known ??= evaluateNode(
      op,
      attrs,
      operands.map((read) => toRef(read())),
    );
    return known;
  };
}

function evaluateNode(op: CoreOpKind, attrs: unknown, inputs: readonly RefTensor[]): Tensor {
  const evaluate = (d: IndexExpr): number => constantValue(d)!;
  const result = runReference({ kind: op, attrs: attrs as never, inputs, evaluate }, noSubgraphs);
  // Ops over weights that only running can refuse (indices) are not foldable.
  invariant(result.ok, () => `${op} over weights was refused`);
  return fromRef(result.value[0]!);
}
