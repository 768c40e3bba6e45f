/** Operations of a graph, and bytes that its nodes read and write, at the largest extents. */
import { compulsoryBytes, graphFlops, rangesOf } from "../../src/graph/counts.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { rangeOf } from "../../src/semantics/index-range.ts";
import type { GraphWork } from "./session.ts";

export function workOfGraph(graph: Graph): GraphWork {
  const ranges = rangesOf(graph);
  const bytes = graph.nodes.map((node) => rangeOf(compulsoryBytes(node, graph), ranges).max);
  return {
    flops: rangeOf(graphFlops(graph), ranges).max,
    bytes: bytes.reduce((sum, n) => sum + n, 0),
  };
}
