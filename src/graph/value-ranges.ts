/**
 * How large the values of a graph are likely to become: an interval for each, from the elements of the
 * weights and from what operators do to intervals. This is an estimate, not a bound: inputs are taken to be
 * within a stated range, long sums of products of both signs to grow with the root of their length (Higham
 * and Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019, argue the same way about
 * errors), and where the interval of a quotient says nothing it is taken to be an activation like the
 * inputs. What follows from it may cost time or space, never a wrong result.
 */
import { type DType, isFloatDType } from "../semantics/dtype.ts";
import { type IndexRange, rangeOf } from "../semantics/index-range.ts";
import { type Tensor, toRef } from "../semantics/tensor.ts";
import type { Graph, Model, Node, ValueId, WeightStore } from "./graph.ts";
import { traitsOf } from "./op-table.ts";

/** Least and greatest element. */
export interface ValueRange {
  readonly low: number;
  readonly high: number;
  /** Root of the mean square, where it was seen. */
  readonly rms?: number;
}

/** What nobody knows: activations of nets that work are seldom larger (outliers of language models). */
export const assumed: ValueRange = { low: -1024, high: 1024 };

/** Elements of a weight that are looked at. */
const mostSamples = 2 ** 16;

type Ranges = Map<ValueId, ValueRange>;

/** Of a graph and of the bodies in it, by the graph. */
export type GraphRanges = ReadonlyMap<Graph, ReadonlyMap<ValueId, ValueRange>>;

export function estimateRanges({ graph, weights }: Model): GraphRanges {
  const all = new Map<Graph, Ranges>();
  estimateIn(graph, { weights, all, given: [] });
  return all;
}

interface Estimate {
  readonly weights: WeightStore;
  /** What was found of each graph, the last that was found of it. */
  readonly all: Map<Graph, Ranges>;
  /** Of its inputs; undefined: unknown. */
  readonly given: readonly (ValueRange | undefined)[];
}

function estimateIn(graph: Graph, { weights, all, given }: Estimate): Ranges {
  const ranges: Ranges = new Map();
  all.set(graph, ranges);
  for (const { value, source } of graph.weights) {
    const tensor = source.kind === "inline" ? source.tensor : readFor(weights, source.key);
    ranges.set(value, rangeOfElements(tensor));
  }
  for (const [i, value] of graph.inputs.entries()) {
    ranges.set(value, given[i] ?? rangeOfType(graph, value));
  }
  const producers = new Map(graph.nodes.flatMap((n) => n.outputs.map((id) => [id, n] as const)));
  for (const node of graph.nodes) {
    const inputs = node.inputs.map((id) => ranges.get(id) ?? assumed);
    const inside = rangesOfBodies(node, graph, inputs, (body, given) => {
      const found = estimateIn(body, { weights, all, given });
      return body.outputs.map((id) => found.get(id)!);
    });
    const found = inside ? undefined : rangeAfter({ node, graph, inputs, producers });
    for (const [i, id] of node.outputs.entries()) {
      const { dtype } = graph.values[id]!.type;
      const range = inside?.[i] ?? found;
      ranges.set(id, range && isFloatDType(dtype) ? range : rangeOfType(graph, id));
    }
  }
  return ranges;
}

function readFor(weights: WeightStore, key: string): Tensor {
  return weights.read(key);
}

function rangeOfElements(tensor: Tensor): ValueRange {
  const { dtype, data } = tensor;
  const step = Math.max(1, Math.ceil(data.length / mostSamples));
  const sample = step === 1 ? data : data.filter((_: number | bigint, i: number) => i % step === 0);
  const elements = toRef({ dtype, shape: [sample.length], data: sample as Tensor["data"] }).data;
  let [low, high, squares, count] = [Infinity, -Infinity, 0, 0];
  for (const element of elements) {
    const x = Number(element);
    if (!Number.isFinite(x)) continue;
    low = Math.min(low, x);
    high = Math.max(high, x);
    squares += x * x;
    count++;
  }
  return count === 0 ? { low: 0, high: 0 } : { low, high, rms: Math.sqrt(squares / count) };
}

const integerRanges: Readonly<Record<string, ValueRange>> = {
  bool: { low: 0, high: 1 },
  i8: { low: -128, high: 127 },
  u8: { low: 0, high: 255 },
};

function rangeOfType(graph: Graph, value: ValueId): ValueRange {
  return integerRanges[graph.values[value]!.type.dtype] ?? assumed;
}

export const magnitudeOf = ({ low, high }: ValueRange): number =>
  Math.max(Math.abs(low), Math.abs(high));

/** The largest number of f16. */
export const largestHalf = 65_504;

/** Whether values of f16 in this range, if anything is known of it, are likely to become infinite. */
export function mayLeaveHalf(dtype: DType, range: ValueRange | undefined): boolean {
  return dtype === "f16" && range !== undefined && magnitudeOf(range) > largestHalf;
}

interface Step {
  readonly node: Node;
  readonly graph: Graph;
  readonly inputs: readonly ValueRange[];
  readonly producers: ReadonlyMap<ValueId, Node>;
}

/** The range of a node's float results; undefined: unknown. */
function rangeAfter(step: Step): ValueRange | undefined {
  const { node, graph, inputs } = step;
  const traits = traitsOf(node, graph);
  if (traits.elementwise) return rangeOfScalar(traits.elementwise, step);
  if (traits.dataMovement) return hull(inputs);
  if (traits.contraction) return rangeOfProduct(step);
  if (traits.reduction) return rangeOfReduction(step, traits.reduction);
  // A conversion, or a choice among elements of the first operand.
  if (keepers.has(node.op)) return inputs[0];
  return undefined;
}

const keepers: ReadonlySet<string> = new Set([
  "cast",
  "gather",
  "gatherElements",
  "gatherNd",
  "topK",
  "resize",
  "gridSample",
]);

/** What grows faster than by the same in every trip of a loop, or for longer than anyone knows. */
export const endless = 1e30;

type BodyRanges = (
  body: Graph,
  given: readonly (ValueRange | undefined)[],
) => readonly ValueRange[];

/** The ranges of what a node with bodies gives; undefined: it has none. */
function rangesOfBodies(
  node: Node,
  graph: Graph,
  inputs: readonly ValueRange[],
  run: BodyRanges,
): readonly ValueRange[] | undefined {
  if (node.op === "if") {
    const [yes, no] = [node.attrs.then, node.attrs.else].map((g) => run(g, inputs.slice(1)));
    return yes!.map((range, o) => hull([range, no![o]!]));
  }
  const symbols = new Map<string, IndexRange>(graph.symbols.map((s) => [s.name, s]));
  if (node.op === "loop") {
    const { body, carried, maxTrips } = node.attrs;
    const rest = inputs.slice(2 + carried);
    return settle(inputs.slice(2, 2 + carried), rangeOf(maxTrips, symbols).max, (held) =>
      run(body, [undefined, undefined, ...held, ...rest]).slice(1),
    );
  }
  if (node.op === "scan") {
    const { body, carried, inputAxes } = node.attrs;
    const { shape } = graph.values[node.inputs[carried]!]!.type;
    const rest = inputs.slice(carried);
    return settle(inputs.slice(0, carried), rangeOf(shape[inputAxes[0]!]!, symbols).max, (held) =>
      run(body, [...held, ...rest]),
    );
  }
  return undefined;
}

/** Trips that are followed before what still grows is taken to go on so to the last. */
const followedTrips = 3;

/** Results of a body whose first ones come back as what it is given, over all its trips. */
function settle(
  start: readonly ValueRange[],
  trips: number,
  run: (held: readonly ValueRange[]) => readonly ValueRange[],
): readonly ValueRange[] {
  const sizes = start.map((r) => [magnitudeOf(r)]);
  let held = start;
  for (let trip = 0; ; trip++) {
    const results = run(held);
    const next = held.map((range, i) => hull([range, results[i]!]));
    const isSettled = next.every((r, i) => r.low >= held[i]!.low && r.high <= held[i]!.high);
    if (isSettled || trip > followedTrips) return [...held, ...results.slice(held.length)];
    for (const [i, range] of next.entries()) sizes[i]!.push(magnitudeOf(range));
    held = trip < followedTrips ? next : next.map((r, i) => atTheEnd(r, sizes[i]!, trips));
  }
}

/** What has grown by `sizes` in the first trips, after all of them. */
function atTheEnd(range: ValueRange, sizes: readonly number[], trips: number): ValueRange {
  const [before, last] = sizes.slice(-2) as [number, number];
  if (last <= before) return range;
  const growth = sizes.slice(1).map((size, i) => size - sizes[i]!);
  const isSteady = last - before <= (1 + 1e-6) * Math.max(...growth.slice(0, -1));
  const most = isSteady ? sizes[0]! + Math.max(...growth) * trips : endless;
  return symmetric(Math.min(most, endless));
}

function hull(ranges: readonly ValueRange[]): ValueRange {
  const low = Math.min(...ranges.map((r) => r.low));
  const high = Math.max(...ranges.map((r) => r.high));
  const { rms } = ranges[0] ?? {};
  return { low, high, ...(ranges.length === 1 && rms !== undefined && { rms }) };
}

const symmetric = (high: number): ValueRange => ({ low: -high, high });

/** Elements that are summed into one result. */
function summedCount({ node, graph }: Step): number {
  const symbols = new Map<string, IndexRange>(graph.symbols.map((s) => [s.name, s]));
  const countOf = (id: ValueId): number =>
    graph.values[id]!.type.shape.reduce((n, d) => n * Math.max(1, rangeOf(d, symbols).max), 1);
  const [operands, result] = [node.inputs.map(countOf), countOf(node.outputs[0]!)];
  if (operands.length === 1) return operands[0]! / result;
  // For a product a·b·k = operands, a·b = result over batches: k is at most this.
  return Math.sqrt((operands[0]! * operands[1]!) / result);
}

/** Sums of products: signs are mixed unless both sides have one. */
function rangeOfProduct(step: Step): ValueRange {
  const [a, b] = step.inputs as [ValueRange, ValueRange];
  const count = productLength(step);
  const worst = magnitudeOf(a) * magnitudeOf(b) * count;
  const rms = (r: ValueRange): number => r.rms ?? magnitudeOf(r) / 4;
  const likely = 4 * Math.sqrt(count) * rms(a) * rms(b);
  if (!Number.isFinite(count)) return assumed;
  return symmetric(Math.min(worst, likely));
}

/** Terms of the sum behind one element of a contraction or convolution. */
function productLength(step: Step): number {
  const { node, graph } = step;
  if (!("strides" in node.attrs)) return Math.max(1, summedCount(step));
  // [output channel, input channel / groups, window…]
  const shape = graph.values[node.inputs[1]!]!.type.shape.slice(1);
  return shape.reduce((n, d) => n * Math.max(1, rangeOf(d, new Map()).max), 1);
}

function rangeOfReduction(step: Step, axes: readonly number[]): ValueRange | undefined {
  const { node, inputs } = step;
  const { kind } = node.attrs as { readonly kind?: string };
  const [x] = inputs as [ValueRange];
  if (axes.length === 0 || kind === "max" || kind === "min") return x;
  if (kind !== "sum") return undefined;
  const count = summedCount(step);
  return Number.isFinite(count) ? { low: x.low * count, high: x.high * count } : assumed;
}

type ScalarRange = (...operands: readonly ValueRange[]) => ValueRange | undefined;

const monotone =
  (f: (x: number) => number): ScalarRange =>
  (x) => ({ low: f(x!.low), high: f(x!.high) });
const fixed =
  (low: number, high: number): ScalarRange =>
  () => ({ low, high });
const corners = (a: ValueRange, b: ValueRange, f: (x: number, y: number) => number): ValueRange => {
  const all = [f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)];
  return { low: Math.min(...all), high: Math.max(...all) };
};
const sameOne = fixed(-1, 1);

/** Absent: unknown. */
const scalarRanges: Readonly<Record<string, ScalarRange>> = {
  neg: (x) => ({ low: -x!.high, high: -x!.low }),
  abs: (x) => ({ low: Math.max(x!.low, 0), high: magnitudeOf(x!) }),
  floor: monotone(Math.floor),
  ceil: monotone(Math.ceil),
  round: monotone(Math.round),
  trunc: monotone(Math.trunc),
  exp: monotone((x) => Math.exp(Math.min(x, 700))),
  sqrt: monotone((x) => Math.sqrt(Math.max(x, 0))),
  relu: monotone((x) => Math.max(x, 0)),
  reciprocal: (x) => quotient({ low: 1, high: 1 }, x!),
  sign: sameOne,
  sin: sameOne,
  cos: sameOne,
  tanh: sameOne,
  erf: sameOne,
  sigmoid: fixed(0, 1),
  atan: fixed(-Math.PI / 2, Math.PI / 2),
  add: (a, b) => ({ low: a!.low + b!.low, high: a!.high + b!.high }),
  sub: (a, b) => ({ low: a!.low - b!.high, high: a!.high - b!.low }),
  mul: (a, b) => corners(a!, b!, (x, y) => x * y),
  div: (a, b) => quotient(a!, b!),
  pow: (a, b) => power(a!, b!),
  min: (a, b) => ({ low: Math.min(a!.low, b!.low), high: Math.min(a!.high, b!.high) }),
  max: (a, b) => ({ low: Math.max(a!.low, b!.low), high: Math.max(a!.high, b!.high) }),
  select: (_, a, b) => hull([a!, b!]),
};

/** A divisor that spans many sizes (a norm) is as large as what it divides, most likely. */
function quotient(a: ValueRange, b: ValueRange): ValueRange | undefined {
  const least = Math.min(Math.abs(b.low), Math.abs(b.high));
  const spans = b.low <= 0 && b.high >= 0;
  if (spans || magnitudeOf(b) > 16 * least) {
    return symmetric(Math.min(magnitudeOf(a), magnitudeOf(assumed)));
  }
  return corners(a, b, (x, y) => x / y);
}

function power(a: ValueRange, b: ValueRange): ValueRange | undefined {
  if (b.low !== b.high) return undefined;
  const exponent = b.low;
  if (exponent < 0) return undefined;
  const high = magnitudeOf(a) ** exponent;
  const isEven = exponent % 2 === 0;
  return isEven || a.low >= 0 ? { low: 0, high } : symmetric(high);
}

function rangeOfScalar(
  op: string,
  { node, graph, inputs, producers }: Step,
): ValueRange | undefined {
  const [a, b] = node.inputs;
  if (op === "mul" && a === b) return { low: 0, high: magnitudeOf(inputs[0]!) ** 2 };
  const found = scalarRanges[op]?.(...inputs);
  const reaches = op === "sub" && isMaximumOf(b!, a!, graph, producers);
  return found && reaches ? { low: found.low, high: 0 } : found;
}

/** Whether a value is the maximum of another along some axes, spread or not (as in softmax). */
function isMaximumOf(
  value: ValueId,
  of: ValueId,
  graph: Graph,
  producers: ReadonlyMap<ValueId, Node>,
): boolean {
  const node = producers.get(value);
  if (!node) return false;
  const traits = traitsOf(node, graph);
  if (traits.dataMovement && node.inputs.length === 1) {
    return isMaximumOf(node.inputs[0]!, of, graph, producers);
  }
  const { kind } = node.attrs as { readonly kind?: string };
  return traits.reduction !== undefined && kind === "max" && node.inputs[0] === of;
}
