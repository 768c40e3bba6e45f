/**
 * A segment of a graph as a graph of its own, under names that say nothing of where it came from: two
 * segments with one text are one question. Values from outside are inputs, weights are weights, small
 * constants stay with their elements, unless these differ between segments that are otherwise one:
 * what differs between repetitions is a weight.
 */
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, NodeOf, OpKind, ValueId, Weight } from "../graph/graph.ts";
import { printGraph } from "../graph/graph-text.ts";
import { variablesOf } from "../semantics/index-expr.ts";
import { type Tensor, tensorBytes } from "../semantics/tensor.ts";
import type { Segment } from "./segment.ts";
import { knownElements } from "./terms.ts";

export interface Part {
  readonly graph: Graph;
  /** Values of the whole graph, in the order of the part's inputs. */
  readonly inputs: readonly ValueId[];
  /** Values of the whole graph by the key of the part's weight. */
  readonly weights: ReadonlyMap<string, ValueId>;
  /** Values of the whole graph by the part's constants. */
  readonly constants: ReadonlyMap<ValueId, ValueId>;
  /** Values of the whole graph that the part's outputs are. */
  readonly outputs: readonly ValueId[];
}

/** What is asked of a graph once for all its parts. */
export interface PartContext {
  readonly graph: Graph;
  readonly weights: ReadonlyMap<ValueId, Tensor | undefined>;
  /** The last node that uses a value; beyond all nodes for outputs. */
  readonly lastUse: ReadonlyMap<ValueId, number>;
}

export function contextOf(graph: Graph): PartContext {
  const lastUse = new Map<ValueId, number>();
  for (const node of graph.nodes) for (const id of node.inputs) lastUse.set(id, node.id);
  for (const id of graph.outputs) lastUse.set(id, graph.nodes.length);
  const weights = new Map(
    graph.weights.map(({ value, source }) => [
      value,
      source.kind === "inline" && source.tensor.data.length <= knownElements
        ? source.tensor
        : undefined,
    ]),
  );
  return { graph, weights, lastUse };
}

export function partOf(context: PartContext, { start, end }: Segment): Part {
  const { graph, weights: allWeights, lastUse } = context;
  const nodes = graph.nodes.slice(start, end);
  const made = new Set(nodes.flatMap((n) => n.outputs));
  const outside = [...new Set(nodes.flatMap((n) => n.inputs))].filter((id) => !made.has(id));
  const inputs = outside.filter((id) => !allWeights.has(id));
  const b = new GraphBuilder("part");
  const types = [...outside, ...made].flatMap((id) => graph.values[id]!.type.shape);
  const named = variablesOf(...types);
  for (const { name, min, max } of graph.symbols) if (named.has(name)) b.symbol(name, min, max);
  for (const { left, right, origin } of graph.constraints) {
    if ([...variablesOf(left, right)].every((name) => named.has(name))) {
      b.constrain(left, right, origin);
    }
  }
  const values = new Map<ValueId, ValueId>();
  for (const [i, id] of inputs.entries()) values.set(id, b.input(`x${i}`, graph.values[id]!.type));
  const weights = new Map<string, ValueId>();
  const constants = new Map<ValueId, ValueId>();
  for (const id of outside) {
    if (!allWeights.has(id)) continue;
    const tensor = allWeights.get(id);
    const key = `w${weights.size}`;
    if (tensor) {
      const made = b.constant(tensor);
      values.set(id, made);
      if (!constants.has(made)) constants.set(made, id);
    } else {
      values.set(id, b.weight(key, graph.values[id]!.type));
      weights.set(key, id);
    }
  }
  for (const node of nodes) {
    const { op, attrs } = node as NodeOf<OpKind>;
    const operands = node.inputs.map((id) => values.get(id)!);
    for (const [i, id] of b.nodes(op, operands, attrs).entries()) values.set(node.outputs[i]!, id);
  }
  const outputs = [...made].filter((id) => (lastUse.get(id) ?? -1) >= end);
  const finished = b.finish(outputs.map((id) => values.get(id)!));
  return { graph: finished, inputs, weights, constants, outputs };
}

/** The text of a part whatever the elements of its constants. */
export function formOf({ graph }: Part): string {
  const weights = graph.weights.map(({ value, source }) => {
    const key = source.kind === "inline" ? `constant ${value}` : source.key;
    return { value, source: { kind: "stored", key } } as const;
  });
  return printGraph({ ...graph, weights });
}

/** Parts of one form with the constants that are not the same in all of them as weights. */
export function unifyParts(parts: readonly Part[]): readonly Part[] {
  const [first] = parts as readonly [Part, ...Part[]];
  const differing = new Set(
    first.graph.weights.flatMap(({ value }, i) => {
      const texts = parts.map(({ graph }) => elementsText(graph.weights[i]!));
      return texts.every((text) => text === texts[0]) ? [] : [value];
    }),
  );
  return differing.size === 0 ? parts : parts.map((part) => abstractConstants(part, differing));
}

function elementsText({ source }: Weight): string {
  return source.kind === "inline" ? tensorBytes(source.tensor).join(" ") : "";
}

function abstractConstants(part: Part, differing: ReadonlySet<ValueId>): Part {
  const weights = new Map(part.weights);
  const sources = part.graph.weights.map((weight): Weight => {
    const { value } = weight;
    if (!differing.has(value)) return weight;
    const key = `c${value}`;
    weights.set(key, part.constants.get(value)!);
    return { value, source: { kind: "stored", key } };
  });
  return { ...part, weights, graph: { ...part.graph, weights: sources } };
}
