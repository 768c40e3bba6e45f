/**
 * What a model in half precision means to a reference: values that are likely to leave the range of f16 are single
 * (keep-wide.ts), as they are in every program that is made of it (GRF015), and all others are rounded as they are
 * written. Composites become core ops, since what they hold may leave the range too.
 */
import type { Graph, Model } from "../graph.ts";
import { subgraphsOf } from "../op-table.ts";
import { expandComposites } from "./expand-composites.ts";
import { keepWide } from "./keep-wide.ts";

/** The model itself where nothing of it is f16. */
export function keepRange(model: Model): Model {
  if (!holdsF16(model.graph)) return model;
  const { graph, constants } = expandComposites(model.graph);
  const weights = { read: (key: string) => constants.get(key) ?? model.weights.read(key) };
  return keepWide({ graph, weights }).model;
}

function holdsF16({ values, nodes }: Graph): boolean {
  return (
    values.some((v) => v.type.dtype === "f16") || nodes.some((n) => subgraphsOf(n).some(holdsF16))
  );
}
