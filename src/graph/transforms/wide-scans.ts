/**
 * Scans of floats of 16 bits and fewer along any axis but the last, computed in f32 and rounded once: a scan reads its
 * own result one step back, so that in its own type each step would round what all steps before have summed.
 * On targets of blocks a kernel over rows keeps in f32 what it carries, along any axis (lower/rows/row-scan.ts).
 */
import { dtypes, isFloatDType } from "../../semantics/dtype.ts";
import type { Graph } from "../graph.ts";
import { type Rebuilt, rebuildGraph } from "./rebuild.ts";

export function wideScans(graph: Graph): Rebuilt {
  return rebuildGraph(graph, {
    node: ({ b, node, inputs }) => {
      if (node.op !== "cumulative") return undefined;
      const x = inputs[0]!;
      const { dtype } = b.typeOf(x);
      if (!isFloatDType(dtype) || dtypes[dtype].bits >= 32) return undefined;
      if (node.attrs.axis === b.shapeOf(x).length - 1) return undefined;
      return [b.cast(b.node("cumulative", [b.cast(x, "f32")], node.attrs), dtype)];
    },
  });
}
