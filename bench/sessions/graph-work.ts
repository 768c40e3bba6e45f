/** Operations of a graph, and bytes that its nodes read and write, at the largest extents; of branches the most. */
import { compulsoryBytes, graphFlops, rangesOf } from "../../src/graph/counts.ts";
import type { Graph, Node } from "../../src/graph/graph.ts";
import { rangeOf } from "../../src/semantics/index-range.ts";
import type { GraphWork } from "./session.ts";

export function workOfGraph(graph: Graph): GraphWork {
  return { flops: rangeOf(graphFlops(graph), rangesOf(graph)).max, bytes: bytesOfGraph(graph) };
}

function bytesOfGraph(graph: Graph): number {
  const ranges = rangesOf(graph);
  const bytesOf = (node: Node): number =>
    node.op === "if"
      ? Math.max(bytesOfGraph(node.attrs.then), bytesOfGraph(node.attrs.else))
      : rangeOf(compulsoryBytes(node, graph), ranges).max;
  return graph.nodes.reduce((sum, node) => sum + bytesOf(node), 0);
}
