/**
 * Products of two quantised values that come at run time as products of the stored bytes, for machines whose
 * matrix units multiply bytes of either sign. In: contractions of dequantised operands and MatMulInteger, each
 * operand with one zero point. Out: the sum of products of the bytes in 32 bits, exact, less what the zero points
 * add to it:
 *
 *   sum (x - p) (y - q) = sum x y - q sum x - p sum y + n p q
 *
 * Zero points that are known to be zero leave their terms out.
 */
import { constantValue } from "../../semantics/index-expr.ts";
import type { NodeOf, ValueId } from "../graph.ts";
import {
  type Bytes,
  isByte,
  isSingle,
  isWhole,
  knownZero,
  leastDepth,
  type Operands,
} from "./quantized-operands.ts";
import type { RebuildSite } from "./rebuild.ts";

type Labels = Pick<NodeOf<"contract">["attrs"], "lhs" | "rhs" | "output">;
type Sides = readonly [Bytes, Bytes];

/** The largest product of two bytes. */
const mostProduct = 255 * 255;

/** A contraction of dequantised operands; undefined: not one of bytes with a single scale each. */
export function ofDequantizedPair(
  site: RebuildSite,
  node: NodeOf<"contract">,
  operands: Operands,
): ValueId | undefined {
  const [left, right] = node.inputs.map((id) => operands.dequantized(id));
  if (!left || !right || operands.typeOf(node.outputs[0]!).dtype !== "f32") return undefined;
  if (!isWhole(left, operands) || !isWhole(right, operands)) return undefined;
  const [sides, scales] = [left, right].reduce<[Bytes[], ValueId[]]>(
    ([bytes, all], { inputs: [x, scale, zero] }) => [
      [...bytes, { x: x!, zero }],
      [...all, scale!],
    ],
    [[], []],
  );
  const sums = pairSums(site, node.attrs, [sides[0]!, sides[1]!], operands);
  if (sums === undefined) return undefined;
  const { b, newValue } = site;
  const [s, t] = scales.map((scale) => b.cast(b.reshape(newValue(scale), []), "f32"));
  return b.mul(b.cast(sums, "f32"), b.mul(s!, t!));
}

/** MatMulInteger of two matrices, or of batches of equal axes; undefined: zero points differ by row or column. */
export function ofIntegerPair(
  site: RebuildSite,
  { inputs, attrs }: NodeOf<"matMulInteger">,
  operands: Operands,
): ValueId | undefined {
  const [x, y, ...zeros] = inputs as [ValueId, ValueId, ...ValueId[]];
  const sides: Sides = [
    { x, zero: attrs.aZero ? zeros[0] : undefined },
    { x: y, zero: attrs.bZero ? zeros[attrs.aZero ? 1 : 0] : undefined },
  ];
  const [own, other] = sides.map((s) => operands.typeOf(s.x).shape.map((e) => e.key));
  const rank = own!.length;
  const batch = own!.slice(0, -2);
  if (rank < 2 || other!.length !== rank || batch.some((e, i) => e !== other![i])) return undefined;
  const labels = batch.map((_, i) => `b${i}`);
  return pairSums(
    site,
    { lhs: [...labels, "i", "k"], rhs: [...labels, "k", "j"], output: [...labels, "i", "j"] },
    sides,
    operands,
  );
}

function pairSums(
  { b, newValue }: RebuildSite,
  labels: Labels,
  sides: Sides,
  operands: Operands,
): ValueId | undefined {
  const { lhs, rhs, output } = labels;
  const summed = lhs.filter((label) => !output.includes(label));
  const isPlain =
    summed.every((label) => rhs.includes(label)) &&
    rhs.every((label) => output.includes(label) || summed.includes(label));
  const isBytes = sides.every(
    ({ x, zero }) => isByte(operands.typeOf(x).dtype) && isSingle(operands, zero),
  );
  const depths = summed.map((l) =>
    constantValue(operands.typeOf(sides[0].x).shape[lhs.indexOf(l)]!),
  );
  const depth = depths.reduce<number>((n, e) => n * (e ?? Number.NaN), 1);
  if (operands.data !== "bytes" || !isPlain || !isBytes) return undefined;
  if (!(depth >= leastDepth && depth * mostProduct < 2 ** 31)) return undefined;
  const values = sides.map(({ x }) => newValue(x));
  const points = sides.map(({ zero }) =>
    zero === undefined || knownZero(operands, zero) === 0
      ? undefined
      : b.cast(b.reshape(newValue(zero), []), "i32"),
  );
  /** Sums of one operand's bytes, beside the axes of the result. */
  const sumsOf = (side: 0 | 1): ValueId => {
    const own = side === 0 ? lhs : rhs;
    const axes = summed.map((label) => own.indexOf(label)).sort((p, q) => p - q);
    const kept = own.filter((label) => output.includes(label));
    const sums = b.reduce("sum", b.cast(values[side]!, "i32"), axes, false);
    const inOrder = output.filter((label) => kept.includes(label));
    const turned = b.transpose(
      sums,
      inOrder.map((label) => kept.indexOf(label)),
    );
    const shape = b.shapeOf(values[side]!);
    return b.reshape(
      turned,
      output.map((label) => (kept.includes(label) ? shape[own.indexOf(label)]! : 1)),
    );
  };
  const [p, q] = points;
  let found = b.node("contract", values, { ...labels, accumulator: "i32" });
  if (q !== undefined) found = b.sub(found, b.mul(sumsOf(0), q));
  if (p !== undefined) found = b.sub(found, b.mul(sumsOf(1), p));
  return p === undefined || q === undefined
    ? found
    : b.add(found, b.applyNumber("mul", b.mul(p, q), depth));
}
