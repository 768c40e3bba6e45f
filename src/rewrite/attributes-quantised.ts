/**
 * Attributes around quantised values: products of integers with their sums, and the axis of scales
 * behind a transpose. See attributes.ts.
 */
import type { ContractAttrs } from "../semantics/core-ops.ts";
import { dtypes } from "../semantics/dtype.ts";
import { constantValue, toIndex } from "../semantics/index-expr.ts";
import type { AttributeFunction } from "./attributes.ts";
import type { Site } from "./site.ts";

type Row = AttributeFunction;

const contractOf = (site: Site, name: string | undefined): ContractAttrs =>
  site.attrs<"contract">(name!) as ContractAttrs;

const toInteger: Row = () => ({ to: "i32", saturate: true });

/** The cast of an integer result to the type of the left side. */
const toWhole: Row = (site) => ({ to: site.rootType().dtype, saturate: true });

/** The product in 32 bits, where no sum of products of these types leaves them. */
const integerProduct: Row = (site, [a, x, w]) => {
  const attrs = contractOf(site, a);
  const summed = attrs.lhs.flatMap((label, i) =>
    attrs.output.includes(label) ? [] : [constantValue(site.shape(x!)[i]!)],
  );
  if (summed.some((n) => n === undefined)) return undefined;
  if (attrs.rhs.some((label) => !attrs.output.includes(label) && !attrs.lhs.includes(label)))
    return undefined;
  // A difference of two values of a type has one bit more than they.
  const reach = [x, w].map((name) => {
    const { min, max } = dtypes[site.type(name!).dtype];
    return max - min;
  });
  const terms = (summed as number[]).reduce((product, n) => product * n, 1);
  if (terms * reach[0]! * reach[1]! >= 2 ** 31) return undefined;
  return { ...attrs, accumulator: "i32" };
};

/** The sum over the labels of the second operand that the product sums. */
const sumOfRight: Row = (site, [a]) => {
  const { lhs, rhs, output } = contractOf(site, a);
  if (lhs.some((label) => !output.includes(label) && !rhs.includes(label))) return undefined;
  const axes = rhs.flatMap((label, i) => (output.includes(label) ? [] : [i]));
  if (axes.some((i) => !lhs.includes(rhs[i]!))) return undefined;
  return { kind: "sum", axes, keepDims: false };
};

/** What is left of the second operand, where the result has its labels. */
const placeOfRight: Row = (site, [a, w]) => {
  const { rhs, output } = contractOf(site, a);
  const left = rhs.filter((label) => output.includes(label));
  const places = left.map((label) => output.indexOf(label));
  if (places.some((at, i) => i > 0 && at < places[i - 1]!)) return undefined;
  const shape = site.shape(w!);
  return {
    shape: output.map((label) => (rhs.includes(label) ? shape[rhs.indexOf(label)]! : toIndex(1))),
  };
};

/** Scales along an axis, behind a transpose. */
const scalesBehind: Row = (site, [q, p]) => {
  const attrs = site.attrs<"dequantize">(q!);
  if (attrs.axis === undefined || attrs.blockSize !== undefined) return undefined;
  return { ...attrs, axis: site.attrs<"transpose">(p!).permutation.indexOf(attrs.axis) };
};

export const quantisedAttributes: Readonly<Record<string, Row>> = {
  toInteger,
  toWhole,
  integerProduct,
  sumOfRight,
  placeOfRight,
  scalesBehind,
};
