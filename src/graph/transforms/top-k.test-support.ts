/** Graphs of one TopK, for the tests of what it becomes. */
import type { DType } from "../../semantics/dtype.ts";
import { constant } from "../../semantics/index-expr.ts";
import { fromRef, type RefTensor, refTensor, toRef } from "../../semantics/tensor.ts";
import { formatDiagnostic, type Result } from "../../support/diagnostic.ts";
import type { Rng } from "../../support/rng.ts";
import { GraphBuilder } from "../builder.ts";
import type { Graph } from "../graph.ts";
import { tensorType } from "../tensor-type.ts";

export interface Top {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly axis: number;
  readonly k: number;
  readonly largest: boolean;
}

export function graphOf({ dtype, shape, axis, k, largest }: Top): Graph {
  const g = new GraphBuilder("top");
  const x = g.input("x", tensorType(dtype, ...shape));
  return g.finish([...g.nodes("topK", [x], { axis, k: constant(k), largest, sorted: true })]);
}

export function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(result.diagnostics.map(formatDiagnostic).join("\n"));
  return result.value;
}

export const valuesOf = ({ data }: RefTensor): readonly (number | bigint)[] => [
  ...(data as Iterable<number | bigint>),
];

const isFloat = (dtype: DType): boolean => /^(f|bf)/.test(dtype);

/** Few different values, or any; of floats also NaN, infinities, zeros of both signs, numbers below the normal ones. */
export function operand({ dtype, shape }: Top, rng: Rng, distinct: number): RefTensor {
  const special = isFloat(dtype)
    ? [Number.NaN, -Infinity, Infinity, -0, 0, 2 ** -149, -(2 ** -149), 2 ** -133]
    : [];
  const low = dtype.startsWith("u") ? 0 : -(distinct >> 1);
  const values = Array.from({ length: shape.reduce((n, e) => n * e, 1) }, () => {
    const at = rng.integer(0, 8 * Math.max(1, special.length));
    if (at < special.length) return special[at]!;
    const value = low + rng.integer(0, distinct - 1);
    return isFloat(dtype) ? value / 8 : value;
  });
  const given = refTensor(dtype, shape, values);
  return toRef(fromRef(given));
}
