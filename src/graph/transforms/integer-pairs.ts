/**
 * Products of two quantised values that come at run time as products of the stored bytes, for machines whose
 * matrix units multiply bytes of either sign. In: contractions of dequantised operands and MatMulInteger. Zero
 * points (and scales) of an operand are one for all, or one for each of its rows, columns or matrices: anything
 * that is the same along the depth. Out: the sum of products of the bytes in 32 bits, exact, less what the zero
 * points add to it:
 *
 *   sum (x - p) (y - q) = sum x y - q sum x - p sum y + n p q
 *
 * Zero points that are known to be zero leave their terms out.
 */
import { constant, constantValue, type IndexExpr } from "../../semantics/index-expr.ts";
import { numbersOf } from "../../semantics/tensor.ts";
import type { NodeOf, ValueId } from "../graph.ts";
import { isByte, isSingle, leastDepth, type Operands } from "./quantized-operands.ts";
import type { RebuildSite } from "./rebuild.ts";

type Labels = Pick<NodeOf<"contract">["attrs"], "lhs" | "rhs" | "output">;

/** One operand: values of bytes minus zero points. */
interface Side {
  readonly x: ValueId;
  readonly zero: ValueId | undefined;
  /** Extents of the zero points (and scales) beside the axes of x: 1 along those where they are the same. */
  readonly beside: readonly IndexExpr[];
}

type Sides = readonly [Side, Side];

/** The largest product of two bytes. */
const mostProduct = 255 * 255;
const one = constant(1);

/** A contraction of dequantised operands; undefined: not one of bytes with scales that leave the sums. */
export function ofDequantizedPair(
  site: RebuildSite,
  node: NodeOf<"contract">,
  operands: Operands,
): ValueId | undefined {
  const pair = node.inputs.map((id) => operands.dequantized(id));
  if (operands.typeOf(node.outputs[0]!).dtype !== "f32") return undefined;
  const sides = pair.map((d) => d && sideOfDequantized(d, operands));
  const [left, right] = sides;
  if (!left || !right) return undefined;
  const maker = PairMaker.of(site, node.attrs, [left, right], operands);
  if (!maker) return undefined;
  const { b, newValue } = site;
  const [s, t] = pair.map((d, side) =>
    maker.placed(b.cast(newValue(d!.inputs[1]!), "f32"), side as 0 | 1),
  );
  return b.mul(b.cast(maker.sums(), "f32"), b.mul(s!, t!));
}

/** Bytes with one scale and zero point, or one along an axis. */
function sideOfDequantized(
  { inputs: [x, scale, zero], attrs }: NodeOf<"dequantize">,
  operands: Operands,
): Side | undefined {
  const { shape } = operands.typeOf(x!);
  const rest = [scale!, ...(zero === undefined ? [] : [zero])];
  if (attrs.blockSize !== undefined) return undefined;
  if (attrs.axis === undefined) {
    if (!rest.every((id) => isSingle(operands, id))) return undefined;
    return { x: x!, zero, beside: shape.map(() => one) };
  }
  const beside = shape.map((e, axis) => (axis === attrs.axis ? e : one));
  return { x: x!, zero, beside };
}

/**
 * MatMulInteger of two matrices, of batches of equal axes, or of a batch and one matrix; undefined: other axes, or
 * zero points that differ along the depth.
 */
export function ofIntegerPair(
  site: RebuildSite,
  { inputs, attrs }: NodeOf<"matMulInteger">,
  operands: Operands,
): ValueId | undefined {
  const [x, y, ...zeros] = inputs as [ValueId, ValueId, ...ValueId[]];
  const left = sideOfMatrix(x, attrs.aZero ? zeros[0] : undefined, 2, operands);
  const right = sideOfMatrix(y, attrs.bZero ? zeros[attrs.aZero ? 1 : 0] : undefined, 1, operands);
  if (!left || !right) return undefined;
  const [own, other] = [x, y].map((id) => operands.typeOf(id).shape.map((e) => e.key));
  const batch = own!.slice(0, -2);
  const isOne = other!.length === 2;
  if (own!.length < 2 || (!isOne && other!.length !== own!.length)) return undefined;
  if (!isOne && batch.some((e, i) => e !== other![i])) return undefined;
  const labels = batch.map((_, i) => `b${i}`);
  const rhs = [...(isOne ? [] : labels), "k", "j"];
  const made = { lhs: [...labels, "i", "k"], rhs, output: [...labels, "i", "j"] };
  return PairMaker.of(site, made, [left, right], operands)?.sums();
}

/** @param fromEnd the axis, counted from the last, along which a vector of zero points runs */
function sideOfMatrix(
  x: ValueId,
  zero: ValueId | undefined,
  fromEnd: number,
  operands: Operands,
): Side | undefined {
  const { length: rank } = operands.typeOf(x).shape;
  const ones = Array.from({ length: rank }, () => one);
  if (zero === undefined || isSingle(operands, zero)) return { x, zero, beside: ones };
  const { shape } = operands.typeOf(zero);
  const own = shape.length === 1 ? [...shape, ...ones.slice(rank - fromEnd + 1)] : shape;
  if (own.length > rank) return undefined;
  return { x, zero, beside: [...ones.slice(own.length), ...own] };
}

/** Writes the nodes of one product. */
class PairMaker {
  readonly #site: RebuildSite;
  readonly #labels: Labels;
  readonly #sides: Sides;
  readonly #operands: Operands;
  readonly #summed: readonly string[];
  readonly #depth: number;

  private constructor(site: RebuildSite, labels: Labels, sides: Sides, operands: Operands) {
    this.#site = site;
    this.#labels = labels;
    this.#sides = sides;
    this.#operands = operands;
    const { lhs, output } = labels;
    this.#summed = lhs.filter((label) => !output.includes(label));
    const { shape } = operands.typeOf(sides[0].x);
    this.#depth = this.#summed.reduce(
      (n, label) => n * (constantValue(shape[lhs.indexOf(label)]!) ?? Number.NaN),
      1,
    );
  }

  /** Undefined where a matrix unit's sums of the bytes are not the product, or could overflow. */
  static of(
    site: RebuildSite,
    labels: Labels,
    sides: Sides,
    operands: Operands,
  ): PairMaker | undefined {
    const maker = new PairMaker(site, labels, sides, operands);
    return maker.#isWorth() ? maker : undefined;
  }

  #isWorth(): boolean {
    const { rhs, output } = this.#labels;
    const isPlain =
      this.#summed.every((label) => rhs.includes(label)) &&
      rhs.every((label) => output.includes(label) || this.#summed.includes(label));
    const isBytes = this.#sides.every(({ x }) => isByte(this.#operands.typeOf(x).dtype));
    const isOutside = this.#sides.every(({ beside }, side) =>
      beside.every((e, axis) => {
        return constantValue(e) === 1 || output.includes(this.#own(side as 0 | 1)[axis]!);
      }),
    );
    const isExact = this.#depth >= leastDepth && this.#depth * mostProduct < 2 ** 31;
    return (
      this.#operands.dataOf("contract") === "bytes" && isPlain && isBytes && isOutside && isExact
    );
  }

  /** The sums of products in i32, less what zero points add. */
  sums(): ValueId {
    const { b, newValue } = this.#site;
    const values = this.#sides.map(({ x }) => newValue(x));
    const [p, q] = this.#sides.map((s, side) => this.#points(s, side as 0 | 1));
    let found = b.node("contract", values, { ...this.#labels, accumulator: "i32" });
    if (q !== undefined) found = b.sub(found, b.mul(this.#sumsOf(0), q));
    if (p !== undefined) found = b.sub(found, b.mul(this.#sumsOf(1), p));
    return p === undefined || q === undefined
      ? found
      : b.add(found, b.applyNumber("mul", b.mul(p, q), this.#depth));
  }

  /** What stands beside an operand, in the type it has, beside the axes of the result. */
  placed(value: ValueId, side: 0 | 1): ValueId {
    const { b } = this.#site;
    const { beside } = this.#sides[side];
    const kept = this.#kept(side);
    const own = this.#own(side);
    const shape = kept.map((label) => beside[own.indexOf(label)]!);
    return this.#turned(b.reshape(value, shape), side);
  }

  /** Zero points in i32; undefined: they are known to be zero. */
  #points({ zero }: Side, side: 0 | 1): ValueId | undefined {
    if (zero === undefined) return undefined;
    const known = this.#operands.constant(zero);
    if (known && numbersOf(known).every((point) => point === 0)) return undefined;
    const { b, newValue } = this.#site;
    return this.placed(b.cast(newValue(zero), "i32"), side);
  }

  /** Sums of one operand's bytes along the depth. */
  #sumsOf(side: 0 | 1): ValueId {
    const { b, newValue } = this.#site;
    const own = this.#own(side);
    const axes = this.#summed.map((label) => own.indexOf(label)).sort((p, q) => p - q);
    const wide = b.cast(newValue(this.#sides[side].x), "i32");
    return this.#turned(b.reduce("sum", wide, axes, false), side);
  }

  /** A value along the axes of an operand that the result has, in the result's order and beside its other axes. */
  #turned(value: ValueId, side: 0 | 1): ValueId {
    const { b } = this.#site;
    const { output } = this.#labels;
    const kept = this.#kept(side);
    const inOrder = output.filter((label) => kept.includes(label));
    const shape = b.shapeOf(value);
    const turned = b.transpose(
      value,
      inOrder.map((label) => kept.indexOf(label)),
    );
    return b.reshape(
      turned,
      output.map((label) => (kept.includes(label) ? shape[kept.indexOf(label)]! : one)),
    );
  }

  #own(side: 0 | 1): readonly string[] {
    return side === 0 ? this.#labels.lhs : this.#labels.rhs;
  }

  #kept(side: 0 | 1): readonly string[] {
    return this.#own(side).filter((label) => this.#labels.output.includes(label));
  }
}
