/**
 * Attributes of contractions for right sides: labels permuted with their operand's axes, factors of
 * one operand as factors of the other, biases. See attributes.ts.
 */
import type { ContractAttrs } from "../semantics/core-ops.ts";
import { type IndexExpr, toIndex } from "../semantics/index-expr.ts";
import type { AttributeFunction } from "./attributes.ts";
import { isOne, onlyAxis } from "./axes.ts";
import type { Site } from "./site.ts";

type Row = AttributeFunction;

const attrsOf = (site: Site, name: string | undefined): ContractAttrs =>
  site.attrs<"contract">(name!) as ContractAttrs;

/** Labels of an operand that is transposed, on the operand itself. */
function labelsBefore(side: "lhs" | "rhs"): Row {
  return (site, [a, p]) => {
    const attrs = attrsOf(site, a);
    const { permutation } = site.attrs<"transpose">(p!);
    const labels = permutation.map((_, axis) => attrs[side][permutation.indexOf(axis)]!);
    return { ...attrs, [side]: labels };
  };
}

/** Labels of a result that is transposed. */
const outputLabels: Row = (site, [a, p]) => {
  const attrs = attrsOf(site, a);
  return { ...attrs, output: site.attrs<"transpose">(p!).permutation.map((i) => attrs.output[i]!) };
};

/** A factor that lies along one axis of an operand, along the axis of that label of the other. */
function scaleAcross(from: "lhs" | "rhs" | "output", to: "lhs" | "rhs"): Row {
  return (site, [a, s]) => {
    const attrs = attrsOf(site, a);
    const labels = attrs[from];
    const target = attrs[to];
    const shape = site.shape(s!);
    if (shape.length > labels.length) return undefined;
    const axis = onlyAxis(shape, labels.length);
    if (axis === undefined) return { shape: target.map(() => toIndex(1)) };
    if (axis < 0) return undefined;
    const at = target.indexOf(labels[axis]!);
    if (at < 0) return undefined;
    const extent = shape[axis - (labels.length - shape.length)]!;
    return { shape: target.map((_, i) => (i === at ? extent : toIndex(1))) };
  };
}

interface Bias {
  /** Label that is summed. */
  readonly summed: string;
  /** Labels of the weights that are left, in their order. */
  readonly left: readonly string[];
}

/** A constant addend along the one summed axis, or a scalar: what it adds to the result. */
function biasOf(attrs: ContractAttrs, shape: readonly IndexExpr[]): Bias | undefined {
  const all = new Set([...attrs.lhs, ...attrs.rhs]);
  const summed = [...all].filter((label) => !attrs.output.includes(label));
  if (summed.length !== 1 || shape.length > attrs.lhs.length) return undefined;
  const [label] = summed as [string];
  if (!attrs.lhs.includes(label) || !attrs.rhs.includes(label)) return undefined;
  const axis = onlyAxis(shape, attrs.lhs.length);
  // A scalar would have to be repeated along the axis.
  if (axis === undefined || axis < 0 || attrs.lhs[axis] !== label) return undefined;
  return { summed: label, left: attrs.rhs.filter((l) => l !== label) };
}

const biasLabels: Row = (site, [a, c]) => {
  const attrs = attrsOf(site, a);
  const bias = biasOf(attrs, site.shape(c!));
  if (!bias) return undefined;
  return { lhs: [bias.summed], rhs: attrs.rhs, output: bias.left, accumulator: attrs.accumulator };
};

const flat: Row = (site, [c]) => {
  const wide = onlyAxis(site.shape(c!), site.shape(c!).length);
  return wide === undefined || wide < 0 ? undefined : { shape: [site.shape(c!)[wide]!] };
};

/** The bias in the order of the result's labels, to be broadcast. */
const biasPlace: Row = (site, [a, c, w]) => {
  const attrs = attrsOf(site, a);
  const bias = biasOf(attrs, site.shape(c!));
  if (!bias) return undefined;
  const places = bias.left.map((label) => attrs.output.indexOf(label));
  if (places.some((at, i) => at < 0 || (i > 0 && at < places[i - 1]!))) return undefined;
  const extents = attrs.rhs.flatMap((label, i) =>
    label === bias.summed ? [] : [site.shape(w!)[i]!],
  );
  return {
    shape: attrs.output.map((_, i) => {
      const at = places.indexOf(i);
      return at < 0 ? toIndex(1) : extents[at]!;
    }),
  };
};

/**
 * (x y) z = x (y z), or back: labels of the inner and the outer product. Only labels of products of
 * matrices with whatever is shared as a batch; each summed label must be in just the two it joins.
 */
interface Chain {
  readonly x: readonly string[];
  readonly y: readonly string[];
  readonly z: readonly string[];
  readonly output: readonly string[];
}

/** Labels of three operands of `(x y) z`, where the outer product sees `x y` on its left. */
function leftChain(outer: ContractAttrs, inner: ContractAttrs): Chain | undefined {
  if (outer.accumulator !== inner.accumulator) return undefined;
  const names = new Map(inner.output.map((label, i) => [label, `o ${outer.lhs[i]!}`]));
  const name = (label: string): string => names.get(label) ?? `i ${label}`;
  const z = outer.rhs.map((label) => `o ${label}`);
  const output = outer.output.map((label) => `o ${label}`);
  return { x: inner.lhs.map(name), y: inner.rhs.map(name), z, output };
}

function rightChain(outer: ContractAttrs, inner: ContractAttrs): Chain | undefined {
  if (outer.accumulator !== inner.accumulator) return undefined;
  const names = new Map(inner.output.map((label, i) => [label, `o ${outer.rhs[i]!}`]));
  const name = (label: string): string => names.get(label) ?? `i ${label}`;
  const x = outer.lhs.map((label) => `o ${label}`);
  const output = outer.output.map((label) => `o ${label}`);
  return { x, y: inner.lhs.map(name), z: inner.rhs.map(name), output };
}

/** Labels that the product of two operands must keep: those that the third or the result has. */
function kept(
  pair: readonly (readonly string[])[],
  others: readonly (readonly string[])[],
): readonly string[] {
  const wanted = new Set(others.flat());
  return [...new Set(pair.flat())].filter((label) => wanted.has(label));
}

function innerRight(site: Site, a: string, b: string): object | undefined {
  const chain = leftChain(attrsOf(site, a), attrsOf(site, b));
  if (!chain) return undefined;
  const { x, y, z, output } = chain;
  return productOf(y, z, kept([y, z], [x, output]), attrsOf(site, a));
}

function outerRight(site: Site, a: string, b: string): object | undefined {
  const chain = leftChain(attrsOf(site, a), attrsOf(site, b));
  if (!chain) return undefined;
  const { x, y, z, output } = chain;
  return productOf(x, kept([y, z], [x, output]), output, attrsOf(site, a));
}

function innerLeft(site: Site, a: string, b: string): object | undefined {
  const chain = rightChain(attrsOf(site, a), attrsOf(site, b));
  if (!chain) return undefined;
  const { x, y, z, output } = chain;
  return productOf(x, y, kept([x, y], [z, output]), attrsOf(site, a));
}

function outerLeft(site: Site, a: string, b: string): object | undefined {
  const chain = rightChain(attrsOf(site, a), attrsOf(site, b));
  if (!chain) return undefined;
  const { x, y, z, output } = chain;
  return productOf(kept([x, y], [z, output]), z, output, attrsOf(site, a));
}

/** A product whose summed labels are in both operands: nothing is summed in one of them alone. */
function productOf(
  lhs: readonly string[],
  rhs: readonly string[],
  output: readonly string[],
  { accumulator }: ContractAttrs,
): object | undefined {
  const dropped = [...new Set([...lhs, ...rhs])].filter((label) => !output.includes(label));
  if (!dropped.every((label) => lhs.includes(label) && rhs.includes(label))) return undefined;
  return { lhs, rhs, output, accumulator };
}

/** The axis of the second operands that a concatenation of products joins. */
const joinedRight: Row = (site, [a, k]) => {
  const { lhs, rhs, output } = attrsOf(site, a);
  const label = output[site.attrs<"concat">(k!).axis]!;
  const axis = rhs.indexOf(label);
  return axis < 0 || lhs.includes(label) ? undefined : { axis };
};

/** A product with ones as the sum over the labels that both operands share and the result lacks. */
const sumOverLabels: Row = (site, [a]) => {
  const { lhs, rhs, output } = attrsOf(site, a);
  const left = lhs.filter((label) => output.includes(label));
  const isSum = rhs.every((label) => lhs.includes(label) && !output.includes(label));
  if (!isSum || left.join() !== output.join()) return undefined;
  const axes = lhs.flatMap((label, i) => (output.includes(label) ? [] : [i]));
  return { kind: "sum", axes, keepDims: false };
};

/** Factors of rows of the first operand, one for all that is summed, where the result has them. */
const rowsOfProduct: Row = (site, [a, m]) => {
  const { lhs, output } = attrsOf(site, a);
  const shape = site.shape(m!);
  if (shape.length !== lhs.length) return undefined;
  const wide = lhs.filter((_, i) => !isOne(shape[i]!));
  const places = wide.map((label) => output.indexOf(label));
  if (places.some((at, i) => at < 0 || (i > 0 && at < places[i - 1]!))) return undefined;
  return {
    shape: output.map((label) => (wide.includes(label) ? shape[lhs.indexOf(label)]! : toIndex(1))),
  };
};

export const contractionAttributes: Readonly<Record<string, Row>> = {
  lhsBefore: labelsBefore("lhs"),
  rhsBefore: labelsBefore("rhs"),
  outputLabels,
  lhsToRhs: scaleAcross("lhs", "rhs"),
  rhsToLhs: scaleAcross("rhs", "lhs"),
  outputToRhs: scaleAcross("output", "rhs"),
  outputToLhs: scaleAcross("output", "lhs"),
  joinedRight,
  sumOverLabels,
  rowsOfProduct,
  biasLabels,
  biasPlace,
  flat,
  innerRight: (site, [a, b]) => innerRight(site, a!, b!),
  outerRight: (site, [a, b]) => outerRight(site, a!, b!),
  innerLeft: (site, [a, b]) => innerLeft(site, a!, b!),
  outerLeft: (site, [a, b]) => outerLeft(site, a!, b!),
};
