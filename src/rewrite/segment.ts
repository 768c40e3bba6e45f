/**
 * Cuts a graph into stretches of consecutive nodes that are rewritten one by one, so that the work is
 * linear in the length of a model. A short stretch stays whole. In a long one what repeats (the layers of
 * a transformer, the blocks of a convolution network) becomes one segment a repetition, all alike, so that
 * it is rewritten once; the rest is cut where few values cross. Nodes that rules cannot look into end a
 * stretch and stay as they are. A stretch of a topological order has no way out and in again.
 */
import type { AnyAttrs } from "../graph/attr-schema.ts";
import { printAttrs } from "../graph/attr-text.ts";
import type { Graph, Node, ValueId } from "../graph/graph.ts";
import { printGraph } from "../graph/graph-text.ts";
import { schemaOf } from "../graph/op-table.ts";
import { printType } from "../graph/tensor-type.ts";
import { isTransparent } from "./terms.ts";

/** Nodes from `start` up to, not with, `end`. */
export interface Segment {
  readonly start: number;
  readonly end: number;
}

export interface SegmentOptions {
  /** Nodes of a segment at most. */
  readonly most: number;
  /** Nodes of a repeating stretch at least. */
  readonly leastPeriod: number;
}

export const defaultSegments: SegmentOptions = { most: 160, leastPeriod: 6 };

/** @param labels of the graph's nodes: equal for equal ops with equal attributes and types */
export function segmentGraph(
  graph: Graph,
  labels: readonly number[],
  options: SegmentOptions = defaultSegments,
): readonly Segment[] {
  const cutter = new Cutter(graph, labels, options);
  const segments: Segment[] = [];
  let start = 0;
  for (let at = 0; at <= graph.nodes.length; at++) {
    const node = graph.nodes[at];
    if (node && isTransparent(node, graph)) continue;
    if (at > start) segments.push(...cutter.cut({ start, end: at }));
    start = at + 1;
  }
  return segments;
}

interface Repetition {
  readonly start: number;
  readonly period: number;
  readonly count: number;
}

class Cutter {
  readonly #options: SegmentOptions;
  readonly #labels: readonly number[];
  /** Values alive between node i - 1 and node i. */
  readonly #crossing: readonly number[];

  constructor(graph: Graph, labels: readonly number[], options: SegmentOptions) {
    this.#options = options;
    this.#labels = labels;
    this.#crossing = countCrossings(graph);
  }

  cut(whole: Segment): Segment[] {
    if (whole.end - whole.start <= this.#options.most) return [whole];
    const segments: Segment[] = [];
    let at = whole.start;
    while (at < whole.end) {
      const found = this.#nextRepetition(at, whole.end);
      const until = found ? found.start : whole.end;
      segments.push(...this.#cutPlain({ start: at, end: until }));
      if (!found) break;
      const { start, period, count } = found;
      for (let i = 0; i < count; i++) {
        const block = { start: start + i * period, end: start + (i + 1) * period };
        segments.push(...this.#cutAlike(block, start, period));
      }
      at = start + count * period;
    }
    return segments;
  }

  /** The first stretch that comes twice or more in a row, at the phase where fewest values cross. */
  #nextRepetition(from: number, end: number): Repetition | undefined {
    for (let start = from; start < end; start++) {
      const best = this.#longestAt(start, end);
      if (best) return this.#rotate(best, end);
    }
    return undefined;
  }

  #longestAt(start: number, end: number): Repetition | undefined {
    const labels = this.#labels;
    let best: Repetition | undefined;
    const longest = Math.floor((end - start) / 2);
    for (let period = this.#options.leastPeriod; period <= longest; period++) {
      if (labels[start] !== labels[start + period]) continue;
      let length = 0;
      while (
        start + period + length < end &&
        labels[start + length] === labels[start + period + length]
      ) {
        length++;
      }
      const count = Math.floor(length / period) + 1;
      if (count >= 2 && (!best || count * period > best.count * best.period)) {
        best = { start, period, count };
      }
    }
    return best;
  }

  /** Moves the start within the first period to the quietest place that keeps the count or all but one. */
  #rotate({ start, period, count }: Repetition, end: number): Repetition {
    const labels = this.#labels;
    let length = 0;
    while (
      start + period + length < end &&
      labels[start + length] === labels[start + period + length]
    ) {
      length++;
    }
    let best = { start, period, count };
    for (let shift = 1; shift < period; shift++) {
      const repeats = Math.floor((length - shift) / period) + 1;
      if (repeats < 2 || repeats < count - 1) break;
      if (this.#crossing[start + shift]! < this.#crossing[best.start]!) {
        best = { start: start + shift, period, count: repeats };
      }
    }
    return best;
  }

  /** A repetition that is too long is cut like the first one. */
  #cutAlike(block: Segment, first: number, period: number): Segment[] {
    const offset = block.start - first;
    const plain = this.#cutPlain({ start: first, end: first + period });
    return plain.map((s) => ({ start: s.start + offset, end: s.end + offset }));
  }

  #cutPlain({ start, end }: Segment): Segment[] {
    const { most } = this.#options;
    const segments: Segment[] = [];
    let from = start;
    while (end - from > most) {
      let at = from + most;
      for (let i = at; i > from + most / 2; i--) {
        if (this.#crossing[i]! < this.#crossing[at]!) at = i;
      }
      segments.push({ start: from, end: at });
      from = at;
    }
    if (end > from) segments.push({ start: from, end });
    return segments;
  }
}

/** Equal numbers for nodes of one op with equal attributes and types. */
export function labelNodes(graph: Graph): readonly number[] {
  const kinds = valueKinds(graph);
  const numbers = new Numbering();
  return graph.nodes.map((node: Node) => {
    const attrs = printAttrs(schemaOf(node.op), node.attrs as AnyAttrs, printGraph);
    let text = `${node.op} ${attrs} `;
    for (const id of node.inputs) text += `${kinds[id]},`;
    text += ">";
    for (const id of node.outputs) text += `${kinds[id]},`;
    return numbers.of(text);
  });
}

/**
 * Equal numbers for weights and for all other values of equal types: what the first block of a model takes from
 * outside the others take from the one before.
 */
function valueKinds(graph: Graph): readonly number[] {
  const weights = new Set(graph.weights.map(({ value }) => value));
  const numbers = new Numbering();
  return graph.values.map(({ type }, id) =>
    numbers.of(`${weights.has(id) ? "weight" : ""} ${printType(type)}`),
  );
}

class Numbering {
  readonly #numbers = new Map<string, number>();

  of(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.#numbers.size);
    return this.#numbers.size - 1;
  }
}

/** For each place between nodes the number of values that are made before and used after it. */
function countCrossings(graph: Graph): readonly number[] {
  const changes = new Array<number>(graph.nodes.length + 2).fill(0);
  const lastUse = new Map<ValueId, number>();
  for (const node of graph.nodes) for (const id of node.inputs) lastUse.set(id, node.id);
  for (const id of graph.outputs) lastUse.set(id, graph.nodes.length);
  for (const node of graph.nodes) {
    for (const id of node.outputs) {
      const last = lastUse.get(id) ?? node.id;
      changes[node.id + 1]! += 1;
      changes[last + 1]! -= 1;
    }
  }
  let alive = 0;
  return changes.map((change) => {
    alive += change;
    return alive;
  });
}
