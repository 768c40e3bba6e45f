/** Specialises a graph: symbols become numbers (or expressions over the other symbols). */
import { type IndexLike, toIndex } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { attempt, type Result, reject } from "../../support/diagnostic.ts";
import { rangesOf } from "../counts.ts";
import type { Graph } from "../graph.ts";
import { rebuildGraph, symbolsIntroduced } from "./rebuild.ts";

/**
 * The graph with symbols bound: `bindSymbols(graph, {W: 320})`. A name that is no symbol of the graph,
 * a value outside its range or against a constraint, and extents that the data decide are refused.
 */
export function bindSymbols(
  graph: Graph,
  values: Readonly<Record<string, IndexLike>>,
): Result<Graph> {
  return attempt(() => {
    for (const [name, value] of Object.entries(values)) checkBinding(graph, name, value);
    const bindings = new Map(Object.entries(values));
    return rebuildGraph(graph, { bindings }).graph;
  });
}

function checkBinding(graph: Graph, name: string, value: IndexLike): void {
  const symbol = graph.symbols.find((s) => s.name === name);
  if (!symbol) {
    const known = graph.symbols.map((s) => s.name).join(", ");
    reject("GRF013", `"${name}" is no symbol of graph "${graph.name}"`, {
      help: known === "" ? "the graph has no symbols" : `its symbols are ${known}`,
    });
  }
  if (graph.nodes.some((node) => symbolsIntroduced(node, graph).includes(name))) {
    reject("GRF013", `"${name}" is an extent that the data decide`);
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    reject("GRF013", `${name} = ${value} is not an integer`);
  }
  const range = rangeOf(toIndex(value), rangesOf(graph));
  if (range.max < symbol.min || range.min > symbol.max) {
    reject("GRF013", `${name} = ${toIndex(value).key}, allowed are ${symbol.min} to ${symbol.max}`);
  }
}
