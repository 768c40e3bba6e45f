/**
 * Products of data with weights that are dequantised by a scale for each column: the product is one of the stored
 * integers, as floats that hold them exactly, and the scale is a factor behind the sums:
 *
 *   sum x ((w - z) s)  =  (sum x (w - z)) s
 *
 * Scales for all, or along an axis that the results have, with one zero point; those of blocks of the depth are no
 * factors of a sum. What was rounded to the type of the data before it was multiplied is not rounded any more,
 * factors are elsewhere: the numeric class is `reassociates`.
 */
import { dtypes, isIntegerDType } from "../../semantics/dtype.ts";
import { constant, type IndexExpr } from "../../semantics/index-expr.ts";
import { numbersOf } from "../../semantics/tensor.ts";
import type { Graph, NodeOf, ValueId, WeightStore } from "../graph.ts";
import { Operands } from "./quantized-operands.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

/** Types of data beside which integers of 8 bits less a zero point are exact. */
const dataTypes: ReadonlySet<string> = new Set(["f32", "f16", "bf16"]);

export function lateScales(graph: Graph, weights: WeightStore): Rebuilt {
  const readers = new Map<Graph, Operands>();
  return rebuildGraph(graph, {
    node: (site) => {
      const { node, old } = site;
      if (node.op !== "contract" || !dataTypes.has(node.attrs.accumulator)) return undefined;
      const operands = readers.get(old) ?? new Operands(old, weights, { data: "bytes" });
      readers.set(old, operands);
      const [left, right] = node.inputs.map((id) => scaledOf(operands.dequantized(id), operands));
      // Of two such operands the sums would be those of integers.
      if ((left === undefined) === (right === undefined)) return undefined;
      return scaledProduct(site, node, left ? { ...left, side: 0 } : { ...right!, side: 1 });
    },
  });
}

/** Stored integers of at most 8 bits, and what they are dequantised by. */
interface Scaled {
  readonly node: NodeOf<"dequantize">;
  readonly codes: ValueId;
  readonly scale: ValueId;
  /** Undefined: it is 0. */
  readonly zero: number | undefined;
}

function scaledOf(node: NodeOf<"dequantize"> | undefined, operands: Operands): Scaled | undefined {
  if (!node) return undefined;
  const [codes, scale, point] = node.inputs as [ValueId, ValueId, ValueId | undefined];
  const { dtype } = operands.typeOf(codes);
  const isShort = isIntegerDType(dtype) && dtypes[dtype].bits <= 8;
  if (!isShort || !operands.isConstant(codes) || !dataTypes.has(node.attrs.to)) return undefined;
  if (point === undefined) return { node, codes, scale, zero: undefined };
  const known = operands.constant(point);
  const [zero, ...others] = known ? new Set(numbersOf(known)) : [];
  if (zero === undefined || others.length > 0) return undefined;
  return { node, codes, scale, zero: zero === 0 ? undefined : zero };
}

function scaledProduct(
  { b, newValue, old }: RebuildSite,
  product: NodeOf<"contract">,
  { node, codes, scale, zero, side }: Scaled & { readonly side: 0 | 1 },
): readonly ValueId[] | undefined {
  const { lhs, rhs, output, accumulator } = product.attrs;
  const { axis, to } = node.attrs;
  const { shape } = old.values[scale]!.type;
  const isOne = axis === undefined || shape.length === 0;
  const place = isOne ? -1 : output.indexOf([lhs, rhs][side]![axis]!);
  if (!isOne && place < 0) return undefined;
  const one = b.scalarLike(1, newValue(scale));
  const zeros = zero === undefined ? [] : [b.scalarLike(zero, newValue(codes))];
  const integers = b.node("dequantize", [newValue(codes), one, ...zeros], { to });
  const operands = product.inputs.map((id, i) => (i === side ? integers : newValue(id)));
  const sums = b.node("contract", operands, { ...product.attrs, accumulator: "f32" });
  const behind = output.length - place - 1;
  const beside: readonly IndexExpr[] = isOne
    ? []
    : [shape[0]!, ...Array.from({ length: behind }, () => constant(1))];
  const factor = b.reshape(b.cast(newValue(scale), "f32"), beside);
  return [b.cast(b.mul(sums, factor), accumulator)];
}
