/**
 * Segments of a graph as graphs of their own, under names that say nothing of where they came from.
 * Segments that are alike (equal ops over values wired alike) are one question: the first is written as a
 * graph, the others only say which of their values stand where. Values from outside are inputs, weights
 * are weights, small constants stay with their elements, unless these differ between segments that are
 * otherwise one: what differs between repetitions is a weight.
 */
import { GraphBuilder } from "../graph/builder.ts";
import type { Graph, Node, NodeOf, OpKind, ValueId, Weight } from "../graph/graph.ts";
import { variablesOf } from "../semantics/index-expr.ts";
import { type Tensor, tensorBytes } from "../semantics/tensor.ts";
import { labelNodes, type Segment, segmentGraph } from "./segment.ts";
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

/**
 * Segments that ask the same question, each with its part; all parts have the graph of the first, origins
 * included.
 */
export interface PartQuestion {
  readonly segments: readonly Segment[];
  readonly parts: readonly Part[];
  /** Where the nodes of the first segment come from. */
  readonly origins: readonly string[];
}

export function askParts(graph: Graph): readonly PartQuestion[] {
  const context = contextOf(graph);
  const alike = new Map<string, Outline[]>();
  for (const segment of segmentGraph(graph, context.labels)) {
    const outline = outlineOf(context, segment);
    const key = wiringOf(context, outline);
    const known = alike.get(key);
    if (known) known.push(outline);
    else alike.set(key, [outline]);
  }
  return [...alike.values()].map((outlines) => {
    const [first] = outlines as [Outline, ...Outline[]];
    const part = partOf(context, first);
    const parts = outlines.map((other) => (other === first ? part : partLike(part, first, other)));
    const segments = outlines.map((outline) => outline.segment);
    const origins = first.nodes.flatMap((n) => n.origin ?? []);
    return { segments, parts: unifyParts(context, parts), origins: [...new Set(origins)] };
  });
}

/** What is asked of a graph once for all its parts. */
interface PartContext {
  readonly graph: Graph;
  readonly labels: readonly number[];
  /** Weights, with the elements of the small ones. */
  readonly weights: ReadonlyMap<ValueId, Tensor | undefined>;
  /** Small constants with equal elements have equal texts. */
  readonly texts: ReadonlyMap<ValueId, string>;
  /** The last node that uses a value; beyond all nodes for outputs. */
  readonly lastUse: ReadonlyMap<ValueId, number>;
}

function contextOf(graph: Graph): PartContext {
  const lastUse = new Map<ValueId, number>();
  for (const node of graph.nodes) for (const id of node.inputs) lastUse.set(id, node.id);
  for (const id of graph.outputs) lastUse.set(id, graph.nodes.length);
  const weights = new Map<ValueId, Tensor | undefined>();
  const texts = new Map<ValueId, string>();
  for (const { value, source } of graph.weights) {
    const isSmall = source.kind === "inline" && source.tensor.data.length <= knownElements;
    weights.set(value, isSmall ? source.tensor : undefined);
    if (isSmall) texts.set(value, textOf(source.tensor));
  }
  return { graph, labels: labelNodes(graph), weights, texts, lastUse };
}

function textOf(tensor: Tensor): string {
  return `${tensor.dtype} ${tensor.shape.join(" ")}: ${tensorBytes(tensor).join(" ")}`;
}

/** A segment's values: from outside in the order of first use, and those that it makes. */
interface Outline {
  readonly segment: Segment;
  readonly nodes: readonly Node[];
  readonly outside: readonly ValueId[];
  readonly made: readonly ValueId[];
}

function outlineOf({ graph }: PartContext, segment: Segment): Outline {
  const nodes = graph.nodes.slice(segment.start, segment.end);
  const made: ValueId[] = [];
  const seen = new Set<ValueId>();
  const outside: ValueId[] = [];
  for (const { inputs, outputs } of nodes) {
    for (const id of inputs) {
      if (seen.has(id)) continue;
      seen.add(id);
      outside.push(id);
    }
    for (const id of outputs) {
      seen.add(id);
      made.push(id);
    }
  }
  return { segment, nodes, outside, made };
}

/** Equal for segments whose parts are equal but for the elements of constants. */
function wiringOf(context: PartContext, { segment, nodes, outside, made }: Outline): string {
  const { labels, lastUse, texts, weights } = context;
  const numbers = new Map<ValueId, string>();
  // Constants with equal elements are one in a part.
  const same = new Map<string, number>();
  for (const [i, id] of outside.entries()) {
    const text = texts.get(id);
    if (text !== undefined && !same.has(text)) same.set(text, i);
    const kind = text !== undefined ? `c${same.get(text)}` : weights.has(id) ? "w" : "x";
    numbers.set(id, `${kind}${i}`);
  }
  for (const [i, id] of made.entries()) numbers.set(id, String(i));
  let text = "";
  for (const { id, inputs } of nodes) {
    text += `${labels[id]}(`;
    for (const input of inputs) text += `${numbers.get(input)},`;
    text += ")";
  }
  for (const [i, id] of made.entries()) {
    if ((lastUse.get(id) ?? -1) >= segment.end) text += ` ${i}`;
  }
  return text;
}

function partOf(context: PartContext, { segment, nodes, outside, made }: Outline): Part {
  const { graph, weights: allWeights, lastUse } = context;
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
    const origin = node.origin === undefined ? {} : { origin: node.origin };
    const results = b.nodes(op, operands, attrs, origin);
    for (const [i, id] of results.entries()) values.set(node.outputs[i]!, id);
  }
  const outputs = made.filter((id) => (lastUse.get(id) ?? -1) >= segment.end);
  const finished = b.finish(outputs.map((id) => values.get(id)!));
  return { graph: finished, inputs, weights, constants, outputs };
}

/** The part of a segment that is wired like that of a part at hand: the values at the same places. */
function partLike(part: Part, first: Outline, other: Outline): Part {
  const places = new Map<ValueId, ValueId>();
  for (const [i, id] of first.outside.entries()) places.set(id, other.outside[i]!);
  for (const [i, id] of first.made.entries()) places.set(id, other.made[i]!);
  const there = (id: ValueId): ValueId => places.get(id)!;
  return {
    graph: part.graph,
    inputs: part.inputs.map(there),
    weights: new Map([...part.weights].map(([key, id]) => [key, there(id)])),
    constants: new Map([...part.constants].map(([value, id]) => [value, there(id)])),
    outputs: part.outputs.map(there),
  };
}

/** The parts with the constants that are not the same in all of them as weights. */
function unifyParts({ texts }: PartContext, parts: readonly Part[]): readonly Part[] {
  const [first] = parts as readonly [Part, ...Part[]];
  const differing = new Set(
    [...first.constants.keys()].filter((value) => {
      const text = texts.get(first.constants.get(value)!);
      return parts.some((part) => texts.get(part.constants.get(value)!) !== text);
    }),
  );
  return differing.size === 0 ? parts : parts.map((part) => abstractConstants(part, differing));
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
