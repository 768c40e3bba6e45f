/**
 * Puts rewritten parts back into the graph that they were cut from: at the first node of a segment the
 * part's graph is written out over the values from outside, later nodes of the segment are its outputs.
 */
import type { GraphBuilder } from "../graph/builder.ts";
import type { Graph, Model, NodeOf, OpKind, ValueId } from "../graph/graph.ts";
import { eliminateDeadCode } from "../graph/transforms/clean.ts";
import { rebuildGraph } from "../graph/transforms/rebuild.ts";
import type { Part } from "./part.ts";
import type { Segment } from "./segment.ts";

export interface Replacement {
  readonly segment: Segment;
  readonly part: Part;
  /** Has the part's inputs, outputs and weights, and the origins of `first`. */
  readonly graph: Graph;
  /** A segment like this one, or this one. */
  readonly first: Segment;
}

export function spliceParts(model: Model, replacements: readonly Replacement[]): Model {
  const byStart = new Map(replacements.map((r) => [r.segment.start, r]));
  const inside = new Set(replacements.flatMap(({ segment }) => nodesOf(segment)));
  const made = new Map<ValueId, ValueId>();
  const { graph } = model;
  const { graph: spliced, constants } = rebuildGraph(graph, {
    node: ({ b, old, node, newValue }) => {
      if (old !== graph || !inside.has(node.id)) return undefined;
      const replacement = byStart.get(node.id);
      if (replacement) {
        const origin = node.origin;
        const origins = originsOf(replacement, graph);
        const write = () => writePart(b, replacement, { newValue, origins });
        const before = b.valueCount;
        const outputs = origin === undefined ? write() : b.withOrigin(origin, write);
        for (const [i, id] of replacement.part.outputs.entries()) {
          made.set(id, outputs[i]!);
          if (outputs[i]! >= before) b.rename(outputs[i]!, graph.values[id]!.name);
        }
      }
      // What is used in the segment alone is gone; the first value stands in for it, and nobody reads it.
      return node.outputs.map((id) => made.get(id) ?? 0);
    },
  });
  const { weights } = model;
  const store = { read: (key: string) => constants.get(key) ?? weights.read(key) };
  return { graph: eliminateDeadCode(spliced), weights: store };
}

function nodesOf({ start, end }: Segment): readonly number[] {
  return Array.from({ length: end - start }, (_, i) => start + i);
}

/** Origins of the first segment's nodes, with those of the nodes that stand there in this one. */
function originsOf({ segment, first }: Replacement, graph: Graph): ReadonlyMap<string, string> {
  const origins = new Map<string, string>();
  for (let i = first.start; i < first.end; i++) {
    const there = graph.nodes[i]!.origin;
    const here = graph.nodes[segment.start + i - first.start]!.origin;
    if (there !== undefined && here !== undefined && !origins.has(there)) origins.set(there, here);
  }
  return origins;
}

interface Surroundings {
  readonly newValue: (old: ValueId) => ValueId;
  readonly origins: ReadonlyMap<string, string>;
}

function writePart(
  b: GraphBuilder,
  { part, graph }: Replacement,
  { newValue, origins }: Surroundings,
): readonly ValueId[] {
  const values = new Map<ValueId, ValueId>();
  for (const [i, id] of graph.inputs.entries()) values.set(id, newValue(part.inputs[i]!));
  for (const { value, source } of graph.weights) {
    const id =
      source.kind === "inline"
        ? b.constant(source.tensor)
        : newValue(part.weights.get(source.key)!);
    values.set(value, id);
  }
  for (const node of graph.nodes) {
    const { op, attrs } = node as NodeOf<OpKind>;
    const operands = node.inputs.map((id) => values.get(id)!);
    const origin = node.origin === undefined ? undefined : origins.get(node.origin);
    const results = b.nodes(op, operands, attrs, origin === undefined ? {} : { origin });
    for (const [i, id] of results.entries()) values.set(node.outputs[i]!, id);
  }
  return graph.outputs.map((id) => values.get(id)!);
}
