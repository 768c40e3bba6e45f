/**
 * What tensors without elements leave to do: nothing. In: a graph; out: nodes all of whose results have an axis of no
 * elements as constants, and updates by none as what they update. Extents that a run decides are left.
 */
import { constantValue } from "../../semantics/index-expr.ts";
import { makeTensor } from "../../semantics/tensor.ts";
import type { Graph, Node, TensorType } from "../graph.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

export function foldEmpty(graph: Graph): Rebuilt {
  return rebuildGraph(graph, {
    node: (site) => {
      const { b, old, node, inputs } = site;
      if (updatesNothing(site)) return [inputs[0]!];
      const shapes = node.outputs.map((id) => emptyShape(old.values[id]!.type));
      if (shapes.length === 0 || shapes.includes(undefined)) return undefined;
      return node.outputs.map((id, i) => {
        const { name, type } = old.values[id]!;
        return b.constant(makeTensor(type.dtype, shapes[i]!), name);
      });
    },
  });
}

/** The extents of a type without elements, where all are known. */
function emptyShape({ shape }: TensorType): readonly number[] | undefined {
  const extents = shape.map(constantValue);
  if (!extents.includes(0) || extents.includes(undefined)) return undefined;
  return extents as readonly number[];
}

const updating: ReadonlySet<Node["op"]> = new Set(["scatterElements", "scatterNd"]);

/** Whether a node updates no place of its first operand. */
function updatesNothing({ b, node, inputs }: RebuildSite): boolean {
  const [, , updates] = inputs;
  if (!updating.has(node.op) || updates === undefined) return false;
  return b.shapeOf(updates).some((extent) => constantValue(extent) === 0);
}
