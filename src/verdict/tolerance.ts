/**
 * How far two orders of evaluation of one graph may lie apart through rounding alone. A sum of K terms
 * in any order is off by about sqrt(K) roundings of its size (Higham, Accuracy and Stability of
 * Numerical Algorithms, 2.6), and errors add along a path. The unit is the rounding of f32, in which
 * programs accumulate, or of the output's own type where that is coarser.
 */
import { flopsOf, rangesOf } from "../graph/counts.ts";
import type { Graph } from "../graph/graph.ts";
import { elementsOf } from "../graph/tensor-type.ts";
import { dtypes } from "../semantics/dtype.ts";
import { rangeOf } from "../semantics/index-range.ts";
import type { RefTensor } from "../semantics/tensor.ts";

/** Roundings of a step that sums nothing: the arithmetic and the approximation of a function. */
const roundingsOfOneStep = 2;

/** Tolerance of each output, relative to its largest value; 0 for types that are not floats. */
export function tolerancesOf(graph: Graph): readonly number[] {
  const ranges = rangesOf(graph);
  const roundings = new Map<number, number>();
  for (const node of graph.nodes) {
    const elements = node.outputs.reduce(
      (n, v) => n + rangeOf(elementsOf(graph.values[v]!.type), ranges).max,
      0,
    );
    const terms = rangeOf(flopsOf(node, graph), ranges).max / Math.max(1, elements) / 2;
    const own = Math.max(roundingsOfOneStep, Math.sqrt(terms));
    const before = Math.max(0, ...node.inputs.map((v) => roundings.get(v) ?? 0));
    for (const output of node.outputs) roundings.set(output, before + own);
  }
  return graph.outputs.map((v) => {
    const { kind, format } = dtypes[graph.values[v]!.type.dtype];
    if (kind !== "float" || !format) return 0;
    return 2 ** -Math.min(23, format.mantissaBits) * (roundings.get(v) ?? 0);
  });
}

/** Where two tensors differ most, relative to the largest expected value. */
export interface Difference {
  readonly relative: number;
  readonly index: number;
  readonly found: number;
  readonly expected: number;
}

/** The largest difference; infinite where shapes, NaNs or infinities differ. */
export function worstDifference(found: RefTensor, expected: RefTensor): Difference {
  if (found.shape.join() !== expected.shape.join() || found.dtype !== expected.dtype) {
    return { relative: Infinity, index: 0, found: Number.NaN, expected: Number.NaN };
  }
  let scale = 0;
  for (const x of expected.data) {
    const size = Math.abs(Number(x));
    if (Number.isFinite(size)) scale = Math.max(scale, size);
  }
  let worst: Difference = { relative: 0, index: 0, found: 0, expected: 0 };
  for (let i = 0; i < expected.data.length; i++) {
    const a = Number(found.data[i]);
    const b = Number(expected.data[i]);
    if (Object.is(a, b) || a === b) continue;
    const distance = Math.abs(a - b) / (scale || 1);
    const relative = Number.isNaN(distance) ? Infinity : distance;
    if (relative > worst.relative) worst = { relative, index: i, found: a, expected: b };
  }
  return worst;
}
