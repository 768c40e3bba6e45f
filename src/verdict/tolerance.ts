/**
 * How far two orders of evaluation of one graph may lie apart through rounding alone. A sum of K terms
 * in any order is off by about sqrt(K) roundings of its size (Higham, Accuracy and Stability of
 * Numerical Algorithms, 2.6), and errors add along a path. The unit is the rounding of f32, in which
 * programs accumulate; a value that is stored in a coarser type is rounded to it besides.
 *
 * A scan that rounds floats to integers of a few bits in each step feeds them back: a value between two integers
 * becomes either of them, by the last bit of a sum, and from there on all later steps differ by as much. States that
 * saturate lie there by themselves (1 / (2 / 255) is 127.5). Such a step of 2^-bits of the range is an error of
 * its own for each step of the scan; of many they add like roundings.
 *
 * Quantisations outside of scans do the same once each, and values of 16 bits are rounded elsewhere by a program that
 * keeps them in wider registers: what that comes to depends on the model and its inputs (of a hundred nodes in f16 the
 * sum of their roundings is a tenth of the largest value, found is a hundredth of that), so the oracle runs twice, the
 * second time with every integer changed that is near enough to an edge, and with no value rounded to 16 bits.
 */
import { flopsOf, rangesOf } from "../graph/counts.ts";
import type { Graph, Node, NodeOf, ValueId } from "../graph/graph.ts";
import { narrowedBits } from "../graph/narrowing.ts";
import { subgraphsOf } from "../graph/op-table.ts";
import { elementsOf } from "../graph/tensor-type.ts";
import { type DType, dtypes, isHalfDType } from "../semantics/dtype.ts";
import { rangeOf } from "../semantics/index-range.ts";
import type { RefTensor } from "../semantics/tensor.ts";

/** Roundings of a step that sums nothing: the arithmetic and the approximation of a function. */
const roundingsOfOneStep = 2;

/** What tolerances are made of. */
interface ToleranceOptions {
  /** Whether what roundings to 16 bits come to is known (moveTolerances): those of outputs alone count. Default: no. */
  readonly isMoved?: boolean;
}

/** Programs accumulate in f32. */
const unitOfSums = 2 ** -23;

/** What it is to store a value in a type that is coarser than that, twice: with the program and with the oracle. */
function storedRounding(dtype: DType): number {
  const { kind, format } = dtypes[dtype];
  if (kind !== "float" || !format || format.mantissaBits >= 23) return 0;
  return roundingsOfOneStep * 2 ** -format.mantissaBits;
}

/** Tolerance of each output, relative to its largest value; 0 for types that are not floats. */
export function tolerancesOf(graph: Graph, options: ToleranceOptions = {}): readonly number[] {
  const errors = errorsOf(graph, options);
  return graph.outputs.map((v) => errors.get(v) ?? 0);
}

/** How far each value that a node makes may be off, relative to its largest element; nothing for types that are not floats. */
export function errorsOf(
  graph: Graph,
  { isMoved = false }: ToleranceOptions = {},
): ReadonlyMap<ValueId, number> {
  const errors = new Map<ValueId, number>();
  const ranges = rangesOf(graph);
  /** Errors of roundings, which add along a path. */
  const sums = new Map<ValueId, number>();
  /** Squares of errors that steps of a quantisation make. */
  const squares = new Map<ValueId, number>();
  for (const node of graph.nodes) {
    const elements = node.outputs.reduce(
      (n, v) => n + rangeOf(elementsOf(graph.values[v]!.type), ranges).max,
      0,
    );
    const terms = rangeOf(flopsOf(node, graph), ranges).max / Math.max(1, elements) / 2;
    const own = Math.max(roundingsOfOneStep, Math.sqrt(terms)) * unitOfSums;
    const before = Math.max(0, ...node.inputs.map((v) => sums.get(v) ?? 0));
    const quantised = quantisedSquares(node, graph);
    const known = Math.max(0, ...node.inputs.map((v) => squares.get(v) ?? 0));
    for (const output of node.outputs) {
      const { dtype } = graph.values[output]!.type;
      const stored = storedRounding(dtype);
      const isKnown = isMoved && isHalfDType(dtype);
      const inside = isMoved ? 0 : roundingsInBodies(node, graph);
      sums.set(output, before + own + inside + (isKnown ? 0 : stored));
      squares.set(output, known + quantised);
      if (dtypes[dtype].kind !== "float") continue;
      errors.set(output, before + own + inside + stored + Math.sqrt(known + quantised));
    }
  }
  return errors;
}

/**
 * What is granted of roundings to 16 bits whatever the second run of the oracle finds: the coarsest of a graph once,
 * because of few outputs some happen to be the same without it; and those in bodies of control flow for each of their
 * trips, adding up as roundings of either sign do, because the second run has them too.
 */
export function leastOfHalves(graph: Graph): number {
  const largest = graph.values.reduce((most, { type }) => Math.max(most, halfRounding(type)), 0);
  const inside = graph.nodes.reduce((sum, node) => sum + roundingsInBodies(node, graph), 0);
  return largest + inside;
}

function halfRounding({ dtype }: { readonly dtype: DType }): number {
  return isHalfDType(dtype) ? storedRounding(dtype) : 0;
}

/** Of a loop whose trips data decide. */
const tripsTaken = 256;

function roundingsInBodies(node: Node, graph: Graph): number {
  const each = subgraphsOf(node).flatMap((body) =>
    body.nodes.flatMap((n) => [
      ...n.outputs.map((v) => halfRounding(body.values[v]!.type)),
      roundingsInBodies(n, body),
    ]),
  );
  const once = Math.hypot(...each);
  if (once === 0 || node.op === "if") return once;
  return once * Math.sqrt(node.op === "scan" ? stepsOf(node, graph) : tripsTaken);
}

function stepsOf(node: NodeOf<"scan">, graph: Graph): number {
  const sequence = graph.values[node.inputs[node.attrs.carried]!]!.type;
  return rangeOf(sequence.shape[node.attrs.inputAxes[0]!]!, rangesOf(graph)).max;
}

/** Programs round in another order than the oracle: other values change, and further on more. */
const movesGranted = 2;

/**
 * What steps of quantisations and roundings to 16 bits may move each output, relative to its largest value: twice what
 * it makes to change every integer that is near enough to an edge (interp/edge-steps.ts) and to round nothing to
 * 16 bits (graph/transforms/keep-wide.ts).
 * @param near outputs of such a run
 */
export function moveTolerances(
  near: readonly RefTensor[],
  expected: readonly RefTensor[],
): readonly number[] {
  return expected.map((tensor, i) => {
    const { kind, bits } = dtypes[tensor.dtype];
    if (kind === "bool" || (kind !== "float" && bits > 8)) return 0;
    const { relative } = worstDifference(near[i]!, tensor);
    return Number.isFinite(relative) ? movesGranted * relative : 0;
  });
}

/** Whether a graph rounds floats to a byte or less. */
export function isQuantised(graph: Graph): boolean {
  return graph.nodes.some((node) => narrowedBits(node, graph) > 0);
}

/** Whether programs may differ from the oracle by more than roundings of 32 bits, as `moveTolerances` says. */
export function isMovable(graph: Graph): boolean {
  return isQuantised(graph) || holdsHalves(graph);
}

function holdsHalves({ values, nodes }: Graph): boolean {
  return (
    values.some(({ type }) => isHalfDType(type.dtype)) ||
    nodes.some((n) => subgraphsOf(n).some(holdsHalves))
  );
}

/**
 * Whether some node makes integers of floats (quantization, places of maxima): of two values that differ by rounding
 * alone one may fall on the other side of a step, which tolerances count for integers of a byte or less only.
 */
export function hasSteps({ nodes, values }: Graph): boolean {
  const kindOf = (v: ValueId): string => dtypes[values[v]!.type.dtype].kind;
  return nodes.some(({ inputs, outputs }) => {
    const makesIntegers = outputs.some((v) => ["int", "uint"].includes(kindOf(v)));
    return makesIntegers && inputs.some((v) => kindOf(v) === "float");
  });
}

/** Operators that order floats: of two that differ by rounding alone either may come first. */
const ranking: ReadonlySet<Node["op"]> = new Set(["topK", "nonMaxSuppression"] as const);

/** Whether rows of the results may stand in another order (or others be among them) by the last bit of a number. */
export function hasRanks({ nodes, values }: Graph): boolean {
  return nodes.some(({ op, inputs }) => {
    return ranking.has(op) && inputs.some((v) => dtypes[values[v]!.type.dtype].kind === "float");
  });
}

/** Of the range of what a node rounds to a byte or less; 0: it does not. */
function stepOf(node: Node, graph: Graph): number {
  const bits = narrowedBits(node, graph);
  return bits === 0 ? 0 : 2 ** -bits;
}

/** Of a scan: one step of the quantisations in its body for each step that it makes. */
function quantisedSquares(node: Node, graph: Graph): number {
  if (node.op !== "scan") return 0;
  const each = subgraphsOf(node).flatMap((body) => body.nodes.map((n) => stepOf(n, body) ** 2));
  return stepsOf(node, graph) * each.reduce((a, b) => a + b, 0);
}

/** Where two tensors differ most, relative to the largest expected value. */
export interface Difference {
  readonly relative: number;
  readonly index: number;
  readonly found: number;
  readonly expected: number;
}

/** What a comparison of two tensors found, and how much it says. */
export interface Comparison {
  readonly worst: Difference;
  readonly elements: number;
  /** Elements that are finite in both: the others can only be alike or not. */
  readonly compared: number;
  /** Elements that are NaN in one of the two at least. */
  readonly nan: number;
  /** Elements that are infinite in one of the two at least, and NaN in none. */
  readonly infinite: number;
  /** The value that all elements of several should have, where it is one. */
  readonly onlyValue?: number;
}

/** The largest difference; infinite where shapes, NaNs or infinities differ. */
export function worstDifference(found: RefTensor, expected: RefTensor): Difference {
  return compareTensors(found, expected).worst;
}

export function compareTensors(found: RefTensor, expected: RefTensor): Comparison {
  const elements = expected.data.length;
  if (found.shape.join() !== expected.shape.join() || found.dtype !== expected.dtype) {
    const worst = { relative: Infinity, index: 0, found: Number.NaN, expected: Number.NaN };
    return { worst, elements, compared: 0, nan: 0, infinite: 0 };
  }
  let scale = 0;
  for (const x of expected.data) {
    const size = Math.abs(Number(x));
    if (Number.isFinite(size)) scale = Math.max(scale, size);
  }
  let worst: Difference = { relative: 0, index: 0, found: 0, expected: 0 };
  const counts = { compared: 0, nan: 0, infinite: 0 };
  let isOne = elements > 1;
  for (let i = 0; i < elements; i++) {
    const a = Number(found.data[i]);
    const b = Number(expected.data[i]);
    counts[finiteness(a, b)]++;
    isOne &&= expected.data[i] === expected.data[0];
    if (Object.is(a, b) || a === b) continue;
    const distance = Math.abs(a - b) / (scale || 1);
    const relative = Number.isNaN(distance) ? Infinity : distance;
    if (relative > worst.relative) worst = { relative, index: i, found: a, expected: b };
  }
  return { worst, elements, ...counts, ...(isOne && { onlyValue: Number(expected.data[0]) }) };
}

function finiteness(a: number, b: number): "compared" | "nan" | "infinite" {
  if (Number.isNaN(a) || Number.isNaN(b)) return "nan";
  return Number.isFinite(a) && Number.isFinite(b) ? "compared" : "infinite";
}
