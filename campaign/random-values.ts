/** Inputs of random graphs, and how their outputs are compared with the oracle's. */
import { dtypes } from "../src/semantics/dtype.ts";
import { evaluate } from "../src/semantics/index-expr.ts";
import { type RefTensor, randomRef } from "../src/semantics/tensor.ts";
import type { Rng } from "../src/support/rng.ts";
import type { RandomGraph } from "./random-graph.ts";

export function drawInputs({ graph, extents }: RandomGraph, rng: Rng): RefTensor[] {
  const symbols = new Map(Object.entries(extents));
  return graph.inputs.map((id) => {
    const { dtype, shape } = graph.values[id]!.type;
    return randomRef(
      dtype,
      shape.map((d) => evaluate(d, symbols)),
      rng,
    );
  });
}

/** Integers must be equal; floats equal within the rounding of the graphs that are drawn. */
export function firstDifference(found: RefTensor, want: RefTensor): string | undefined {
  const type = (t: RefTensor) => `${t.dtype}[${t.shape.join(", ")}]`;
  if (type(found) !== type(want)) return `${type(found)}, the oracle says ${type(want)}`;
  const relative = dtypes[want.dtype].format === undefined ? 0 : floatTolerance;
  for (let i = 0; i < want.data.length; i++) {
    const [a, b] = [found.data[i]!, want.data[i]!];
    if (Object.is(a, b) || a === b) continue;
    const close = Math.abs(Number(a) - Number(b)) <= relative * Math.max(1, Math.abs(Number(b)));
    if (!close) return `element ${i} is ${a}, the oracle says ${b}`;
  }
  return undefined;
}

/** Six ops over sums of at most a few hundred terms below 64, each rounded to float32. */
const floatTolerance = 2 ** -23 * 64;
