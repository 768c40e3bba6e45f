/**
 * Whether the float64 oracle of a whole model fits a budget of time, and at which shapes: the largest if
 * they fit, else the largest of some drawn ones that do. The oracle runs near 1e9 operations a second.
 */
import { flopsOf, rangesOf } from "../../graph/counts.ts";
import type { Graph, Node, NodeOf, ValueId } from "../../graph/graph.ts";
import { elementsOf } from "../../graph/tensor-type.ts";
import {
  evaluate,
  min,
  substitute,
  variableName,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { Rng } from "../../support/rng.ts";
import type { Tensors } from "../library/loaded-model.ts";

const operationsPerSecond = 1e9;
/** What making one element costs beside its arithmetic. */
const operationsPerElement = 20;
const draws = 64;

export type Symbols = ReadonlyMap<string, number>;

/** Seconds that the oracle takes at these shapes, roughly. */
export function oracleSeconds(graph: Graph, symbols: Symbols): number {
  const ranges = rangesOf(graph);
  let operations = 0;
  for (const node of graph.nodes) {
    operations += rangeOf(substitute(flopsOf(node, graph), symbols), ranges).max;
    for (const v of node.outputs) {
      const elements = substitute(elementsOf(graph.values[v]!.type), symbols);
      operations += operationsPerElement * rangeOf(elements, ranges).max;
    }
  }
  return operations / operationsPerSecond;
}

/** Shapes at which the oracle fits; undefined where none was found. */
export function shapesWithin(graph: Graph, seconds: number, seed: number): Symbols | undefined {
  const largest = new Map(graph.symbols.map((s) => [s.name, s.max]));
  if (oracleSeconds(graph, largest) <= seconds) return largest;
  if (graph.symbols.every((s) => s.min === s.max)) return undefined;
  const rng = new Rng(seed);
  let best: { readonly symbols: Symbols; readonly seconds: number } | undefined;
  for (let i = 0; i < draws; i++) {
    const symbols = new Map(graph.symbols.map((s) => [s.name, rng.integer(s.min, s.max)]));
    const cost = meets(graph, symbols) ? oracleSeconds(graph, symbols) : Infinity;
    if (cost <= seconds && cost > (best?.seconds ?? 0)) best = { symbols, seconds: cost };
  }
  return best?.symbols;
}

/**
 * The graph with the trips of its loops that these inputs give, and what they collect as long: an estimate of work
 * would otherwise take the longest that a model allows, mostly 2^31. Loops inside of bodies stay as they are.
 * @param names of the graph's inputs, in order
 */
export function atTrips(graph: Graph, names: readonly string[], feeds: Tensors): Graph {
  const makers = new Map(graph.nodes.flatMap((n) => n.outputs.map((id) => [id, n] as const)));
  const fedTo = (id: ValueId): number | undefined => {
    const maker = makers.get(id);
    if (maker) return passes(maker) ? fedTo(maker.inputs[0]!) : undefined;
    const name = names[graph.inputs.indexOf(id)];
    const tensor = name !== undefined && Object.hasOwn(feeds, name) ? feeds[name] : undefined;
    return tensor?.data.length === 1 ? Math.max(0, Number(tensor.data[0])) : undefined;
  };
  const collected = new Map<string, number>();
  const nodes = graph.nodes.map((node) => {
    const trips =
      node.op === "loop"
        ? countsOf(node)
            .map(fedTo)
            .find((n) => n !== undefined)
        : undefined;
    if (node.op !== "loop" || trips === undefined) return node;
    for (const id of node.outputs.slice(node.attrs.carried)) {
      const symbol = variableName(graph.values[id]!.type.shape[0]!);
      if (symbol !== undefined) collected.set(symbol, trips);
    }
    return { ...node, attrs: { ...node.attrs, maxTrips: min(node.attrs.maxTrips, trips) } };
  });
  const symbols = graph.symbols.map((s) => {
    const max = Math.min(s.max, collected.get(s.name) ?? s.max);
    return { ...s, max, min: Math.min(s.min, max) };
  });
  return { ...graph, nodes, symbols };
}

/** Where a loop's count may stand: what its body counts up to is the first that it reads (repeatable-loops.ts). */
function countsOf({ inputs, attrs }: NodeOf<"loop">): readonly ValueId[] {
  const first = inputs[2 + attrs.carried];
  return inputs[1] === inputs[2] && first !== undefined ? [inputs[0]!, first] : [inputs[0]!];
}

/** Gives its operand's one element as it is. */
function passes({ op, inputs }: Node): boolean {
  return inputs.length === 1 && (op === "reshape" || op === "cast");
}

function meets({ constraints }: Graph, symbols: Symbols): boolean {
  return constraints.every(({ left, right }) => {
    const known = [left, right].map((e) => substitute(e, symbols));
    if (variablesOf(...known).size > 0) return true;
    const [a, b] = known.map((e) => evaluate(e, symbols));
    return a === b;
  });
}
