/**
 * Branches that data choose, each rewritten as a graph by itself: for graphs that go to runtimes which run one
 * of them. In: a model, and what rewrites a model. Out: the model with these bodies; a body whose extents are
 * not all known, or that draws or asks something of symbols, stays as it was.
 */

import type { GraphBuilder } from "../graph/builder.ts";
import type { Graph, Model, NodeOf, Weight } from "../graph/graph.ts";
import { inlineSubgraph, isCopyable } from "../graph/transforms/inline-subgraph.ts";
import { type RebuildSite, rebuildGraph } from "../graph/transforms/rebuild.ts";
import { constantValue } from "../semantics/index-expr.ts";

export type RewriteBody = (body: Model) => Model;

export function rewriteBranches({ graph, weights }: Model, rewrite: RewriteBody): Model {
  if (!graph.nodes.some((node) => node.op === "if")) return { graph, weights };
  const branch = ({ b, inputs }: RebuildSite, { attrs }: NodeOf<"if">) => {
    const read = (key: string) => b.storedConstants.get(key) ?? weights.read(key);
    const [then, otherwise] = [attrs.then, attrs.else].map((body) =>
      isClosed(body) ? copied(b, body, rewrite({ graph: body, weights: { read } })) : body,
    );
    return b.nodes("if", inputs, { ...attrs, then: then!, else: otherwise! });
  };
  const { graph: rebuilt, constants } = rebuildGraph(graph, {
    node: (site) => (site.node.op === "if" ? branch(site, site.node) : undefined),
  });
  return {
    graph: rebuilt,
    weights: { read: (key) => constants.get(key) ?? weights.read(key) },
  };
}

/** Whether a body can be read without the graph around it. */
function isClosed(body: Graph): boolean {
  const known = body.values.every(({ type }) =>
    type.shape.every((d) => constantValue(d) !== undefined),
  );
  return known && body.nodes.length > 0 && body.constraints.length === 0 && isCopyable(body);
}

/** A rewritten body in the names of the graph around it; constants that rewriting made are stored there. */
function copied(b: GraphBuilder, body: Graph, { graph, weights }: Model): Graph {
  const known = new Set(
    body.weights.flatMap((w) => (w.source.kind === "stored" ? [w.source.key] : [])),
  );
  const settled = graph.weights.map((weight): Weight => {
    const { source } = weight;
    if (source.kind === "inline" || known.has(source.key)) return weight;
    return { ...weight, source: { kind: "inline", tensor: weights.read(source.key) } };
  });
  const inner = b.nested(body.name);
  const inputs = graph.inputs.map((id) => {
    const { name, type } = graph.values[id]!;
    return inner.input(name, type);
  });
  return inner.finish(inlineSubgraph(inner, { ...graph, weights: settled }, inputs));
}
