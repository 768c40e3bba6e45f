/**
 * Products of dequantised 8-bit floats as products of the stored elements, for machines whose matrix units take
 * such. In: contractions and convolutions of two dequantised operands. Out: sums of products of the elements in
 * f32, and the scales as factors behind them:
 *
 *   sum (x s) (w t)  =  (sum x w) s t
 *
 * A product of two such elements is exact in f32. Scales are one for all, or one for each position along an axis
 * that the results have; scales that change along the depth (blocks) are no factors of a sum, and their products
 * stay as they are. What only moves elements between a dequantisation and the product moves the stored ones.
 * Matrix units read these elements along the depth alone, so data that lie otherwise are turned first, where
 * they meet enough of the other operand; weights are stored as they are wanted. Products of two data in less than
 * f32 stay, since attention is made of them. Factors are rounded elsewhere: the numeric class is `reassociates`.
 */
import type { DType } from "../../semantics/dtype.ts";
import { constant, constantValue, type IndexExpr, mul } from "../../semantics/index-expr.ts";
import { numbersOf } from "../../semantics/tensor.ts";
import type { Graph, NodeOf, ValueId, WeightStore } from "../graph.ts";
import { Operands } from "./quantized-operands.ts";
import { type RebuildSite, type Rebuilt, rebuildGraph } from "./rebuild.ts";

const one = constant(1);

/** Results of each element of data from which on turning them is less than multiplying otherwise. */
const leastMet = 32;

export function byteFloatProducts(graph: Graph, weights: WeightStore): Rebuilt {
  const readers = new Map<Graph, Operands>();
  return rebuildGraph(graph, {
    node: (site) => {
      const { node, old } = site;
      if (node.op !== "contract" && node.op !== "convolution") return undefined;
      const operands = readers.get(old) ?? new Operands(old, weights, { data: "bytes" });
      readers.set(old, operands);
      const [left, right] = node.inputs.map((id) => scaledOf(id, operands));
      if (!left || !right) return undefined;
      const made = node.op === "contract" ? contracted : convolved;
      const value = made(site, node as never, [left, right]);
      return value === undefined ? undefined : [value];
    },
  });
}

/** Stored elements, what moves them, and the scale that they are multiplied by. */
interface Scaled {
  /** Old values. */
  readonly x: ValueId;
  readonly scale: ValueId;
  /** Of the elements that `moved` gives, along which scales lie; undefined: one for all. */
  readonly axis: number | undefined;
  /** Axes of the elements in the order in which the product reads them; undefined: as they are. */
  readonly order: readonly number[] | undefined;
  readonly isWeight: boolean;
  readonly dtype: DType;
  /** The elements in the new graph, before the last transposition. */
  readonly moved: (site: RebuildSite) => ValueId;
}

type Pair = readonly [Scaled, Scaled];

function scaledOf(id: ValueId, operands: Operands): Scaled | undefined {
  const node = operands.producers.get(id);
  switch (node?.op) {
    case "dequantize":
      return dequantized(node, operands);
    case "transpose": {
      const from = scaledOf(node.inputs[0]!, operands);
      const { permutation } = node.attrs;
      if (!from) return undefined;
      const { order } = from;
      return { ...from, order: permutation.map((axis) => order?.[axis] ?? axis) };
    }
    case "reshape": {
      const from = scaledOf(node.inputs[0]!, operands);
      if (from?.axis !== undefined || !from) return undefined;
      const { shape } = operands.typeOf(id);
      const moved = (site: RebuildSite) => site.b.reshape(ordered(site, from), shape);
      return { ...from, order: undefined, moved };
    }
    default:
      return undefined;
  }
}

function dequantized(node: NodeOf<"dequantize">, operands: Operands): Scaled | undefined {
  const [x, scale, zero] = node.inputs as [ValueId, ValueId, ValueId | undefined];
  const { dtype } = operands.typeOf(x);
  if (dtype !== "f8e4m3fn" && dtype !== "f8e5m2") return undefined;
  if (node.attrs.blockSize !== undefined || !isZero(zero, operands)) return undefined;
  return {
    ...{ x, scale, axis: node.attrs.axis, order: undefined, isWeight: operands.isConstant(x) },
    dtype: node.attrs.to,
    moved: ({ newValue }) => newValue(x),
  };
}

/** The elements as the product reads them. */
function ordered(site: RebuildSite, { moved, order }: Scaled): ValueId {
  const value = moved(site);
  return order ? site.b.node("transpose", [value], { permutation: order }) : value;
}

/** The labels of the elements before the last transposition. */
function labelled({ order }: Scaled, labels: readonly string[]): readonly string[] {
  return order ? labels.map((_, axis) => labels[order.indexOf(axis)]!) : labels;
}

function isZero(zero: ValueId | undefined, operands: Operands): boolean {
  if (zero === undefined) return true;
  const known = operands.constant(zero);
  return known !== undefined && numbersOf(known).every((n) => n === 0);
}

function contracted(
  site: RebuildSite,
  node: NodeOf<"contract">,
  [left, right]: Pair,
): ValueId | undefined {
  const { b } = site;
  const { lhs, rhs, output, accumulator } = node.attrs;
  const depth = lhs.filter((label) => rhs.includes(label) && !output.includes(label));
  const own = [...lhs, ...rhs].every((label) => output.includes(label) || depth.includes(label));
  if (depth.length !== 1 || !own || !isTaken(accumulator, [left, right])) return undefined;
  const sides = [
    { scaled: left, labels: labelled(left, lhs), met: others(site, node, 1) },
    { scaled: right, labels: labelled(right, rhs), met: others(site, node, 0) },
  ] as const;
  const isTurned = (side: (typeof sides)[number]): boolean =>
    !side.scaled.isWeight && side.labels.at(-1) !== depth[0];
  if (sides.some((side) => isTurned(side) && side.met < leastMet)) return undefined;
  const factors = sides.map(({ scaled, labels }) =>
    scaled.axis === undefined ? undefined : output.indexOf(labels[scaled.axis]!),
  );
  if (factors.includes(-1)) return undefined;
  const operands = sides.map((side) => {
    const value = side.scaled.moved(site);
    return isTurned(side) ? turned(site, value, side.labels, depth[0]!) : { value, ...side };
  });
  const sums = b.node("contract", [operands[0]!.value, operands[1]!.value], {
    ...{ lhs: operands[0]!.labels, rhs: operands[1]!.labels, output, accumulator: "f32" },
  });
  return scaledResult(site, { sums, rank: output.length, to: accumulator }, [
    [left, factors[0]],
    [right, factors[1]],
  ]);
}

/** How many results an element of the other operand is part of: extents that only this one has. */
function others({ old }: RebuildSite, { inputs, attrs }: NodeOf<"contract">, side: 0 | 1): number {
  const [labels, shared] = side === 0 ? [attrs.lhs, attrs.rhs] : [attrs.rhs, attrs.lhs];
  const { shape } = old.values[inputs[side]!]!.type;
  const extents = shape.filter((_, axis) => !shared.includes(labels[axis]!));
  // A symbol's extent is taken to be large.
  return constantValue(mul(...extents)) ?? Infinity;
}

/** Elements with the depth as their last axis. */
function turned({ b }: RebuildSite, x: ValueId, labels: readonly string[], depth: string) {
  const ordered = [...labels.filter((label) => label !== depth), depth];
  const permutation = ordered.map((label) => labels.indexOf(label));
  return { value: b.node("transpose", [x], { permutation }), labels: ordered };
}

function convolved(
  site: RebuildSite,
  { attrs, inputs, outputs }: NodeOf<"convolution">,
  [data, weights]: Pair,
): ValueId | undefined {
  const { old, b } = site;
  const to = old.values[outputs[0]!]!.type.dtype;
  const channel = weights.order?.[0] ?? 0;
  const isScaled = data.axis === undefined && (weights.axis ?? channel) === channel;
  if (attrs.groups !== 1 || !isScaled || !weights.isWeight || !isTaken(to, [data, weights]))
    return undefined;
  const operands = [ordered(site, data), ordered(site, weights)];
  const sums = b.node("convolution", operands, { ...attrs, accumulator: "f32" });
  const rank = old.values[inputs[0]!]!.type.shape.length;
  return scaledResult(site, { sums, rank, to }, [
    [data, undefined],
    [weights, weights.axis === undefined ? undefined : 1],
  ]);
}

/** Whether results are of a type that sums in f32 are rounded to, and no attention is made of them. */
function isTaken(to: DType, pair: Pair): boolean {
  if (to === "f32") return true;
  return (to === "f16" || to === "bf16") && pair.some((side) => side.isWeight);
}

interface Sums {
  readonly sums: ValueId;
  readonly rank: number;
  readonly to: DType;
}

/** One factor after the other: their product may be too small or large for f32 where the result is not. */
function scaledResult(
  { b, newValue, old }: RebuildSite,
  { sums, rank, to }: Sums,
  factors: readonly (readonly [Scaled, axis: number | undefined])[],
): ValueId {
  const value = factors.reduce((product, [{ scale }, axis]) => {
    const own = b.cast(newValue(scale), "f32");
    const place: readonly IndexExpr[] =
      axis === undefined ? [] : beside(old.values[scale]!.type.shape, rank - axis);
    return b.mul(product, b.reshape(own, place));
  }, sums);
  return b.cast(value, to);
}

/** The shape in which a vector meets the result so many axes from its end. */
function beside([extent]: readonly IndexExpr[], axes: number): readonly IndexExpr[] {
  return [extent!, ...Array.from({ length: axes - 1 }, () => one)];
}
