/**
 * The shape of a reference: attributes with their sizes evaluated and reference tensors in, reference
 * tensors out. References are the oracle: obvious loops in float64 (BigInt for i64 and u64) whose
 * results are rounded once to the grid of the result's dtype, so that sums carry no rounding inside.
 * Typing is checked before (graph/), so a wrong shape is a bug; what only the data can tell (an index
 * out of range) is rejected with SEM001 and comes out of `runReference` as a failed Result.
 */
import type { Result } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { ConcreteAttrs } from "../concrete-attrs.ts";
import type { CoreOpKind } from "../core-ops.ts";
import { type DType, dtypes } from "../dtype.ts";
import { roundArrayToFloat } from "../float-codec.ts";
import { wrapInteger } from "../integer.ts";
import { elementCount, type Shape } from "../shape.ts";
import { makeRefData, type RefData, type RefTensor } from "../tensor.ts";

/** What control flow needs from whoever interprets graphs. */
export interface ReferenceContext<Subgraph> {
  runSubgraph(body: Subgraph, inputs: readonly RefTensor[]): Result<readonly RefTensor[]>;
  /** Types of the body's outputs for these inputs, asked for when a loop runs no iteration. */
  subgraphOutputTypes(
    body: Subgraph,
    inputs: readonly RefTensor[],
  ): readonly { readonly dtype: DType; readonly shape: Shape }[];
}

export type Reference<K extends CoreOpKind> = <Subgraph>(
  attrs: ConcreteAttrs<K, Subgraph>,
  inputs: readonly RefTensor[],
  context: ReferenceContext<Subgraph>,
) => readonly RefTensor[];

/** Rounds float64 results in place to the dtype's grid and wraps them into a tensor. */
export function finish(dtype: DType, shape: Shape, values: Float64Array): RefTensor {
  invariant(
    values.length === elementCount(shape),
    () => `${values.length} values for ${dtype}[${shape}]`,
  );
  const { kind } = dtypes[dtype];
  if (kind === "float" || kind === "exponent") roundArrayToFloat(dtype, values);
  else if (kind === "bool") for (let i = 0; i < values.length; i++) values[i] = values[i] ? 1 : 0;
  else for (let i = 0; i < values.length; i++) values[i] = wrapInteger(dtype, values[i]!);
  return { dtype, shape, data: values };
}

/** The elements at `offsets` as a new tensor; negative offsets take `fill`'s only element. */
export function takeOffsets(
  source: RefTensor,
  shape: Shape,
  offsets: Int32Array,
  fill?: RefTensor,
): RefTensor {
  const data = makeRefData(source.dtype, offsets.length);
  const from = source.data;
  const filler = fill?.data[0];
  if (data instanceof Float64Array && from instanceof Float64Array) {
    const fillValue = Number(filler ?? 0);
    for (let i = 0; i < offsets.length; i++) {
      const at = offsets[i]!;
      data[i] = at < 0 ? fillValue : from[at]!;
    }
  } else {
    for (let i = 0; i < offsets.length; i++) {
      const at = offsets[i]!;
      data[i] = at < 0 ? BigInt(filler ?? 0) : (from[at] as bigint);
    }
  }
  return { dtype: source.dtype, shape, data };
}

/** Copies `count` elements between arrays of the same dtype. */
export function copyRange(
  from: RefData,
  start: number,
  count: number,
  to: RefData,
  at: number,
): void {
  if (from instanceof Float64Array && to instanceof Float64Array) {
    to.set(from.subarray(start, start + count), at);
  } else {
    (to as BigInt64Array).set((from as BigInt64Array).subarray(start, start + count), at);
  }
}
