/**
 * Whether the float64 oracle of a whole model fits a budget of time, and at which shapes: the largest if
 * they fit, else the largest of some drawn ones that do. The oracle runs near 1e9 operations a second.
 */
import { flopsOf, rangesOf } from "../../graph/counts.ts";
import type { Graph } from "../../graph/graph.ts";
import { elementsOf } from "../../graph/tensor-type.ts";
import { evaluate, substitute, variablesOf } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { Rng } from "../../support/rng.ts";

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

function meets({ constraints }: Graph, symbols: Symbols): boolean {
  return constraints.every(({ left, right }) => {
    const known = [left, right].map((e) => substitute(e, symbols));
    if (variablesOf(...known).size > 0) return true;
    const [a, b] = known.map((e) => evaluate(e, symbols));
    return a === b;
  });
}
