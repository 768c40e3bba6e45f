/**
 * Side conditions of rules by name: what must be known of the match for the identity to hold. They read
 * facts (types, constants, signs) and attributes, never the form of a term, so that searching only what
 * is new stays exact.
 */

import { sameShape, sameType } from "../graph/tensor-type.ts";
import type { ConvolutionAttrs } from "../semantics/core-ops.ts";
import { dtypes, isFloatDType } from "../semantics/dtype.ts";
import { constantValue, indexEquals } from "../semantics/index-expr.ts";
import { isOne } from "./axes.ts";
import type { Site } from "./site.ts";

/** What a proof must give a variable so that the condition can hold. */
export type Suggestion =
  | { readonly kind: "weight" }
  | { readonly kind: "elements"; readonly values: readonly number[] }
  | { readonly kind: "scalar" };

export interface Condition {
  readonly holds: (site: Site, args: readonly string[]) => boolean;
  /** For the first argument. */
  readonly suggest?: (args: readonly string[]) => Suggestion;
}

const weight = (): Suggestion => ({ kind: "weight" });

/** Elements as numbers, if they are known. */
function known(site: Site, name: string): readonly number[] | undefined {
  const { value } = site.facts(name);
  return value && Array.from(value.data, Number);
}

function everyElement(site: Site, name: string | undefined, test: (x: number) => boolean): boolean {
  const values = known(site, name!);
  return values !== undefined && values.length > 0 && values.every(test);
}

/** Whether a value is the number up to the rounding of its element type. */
export function isNear(value: number, wanted: number): boolean {
  return Math.abs(value - wanted) <= 1e-6 * Math.max(1e-30, Math.abs(wanted));
}

const attribute = (test: (attrs: never) => boolean): Condition => ({
  holds: (site, [name]) => test(site.attrs(name!) as never),
});

export const conditions: Readonly<Record<string, Condition>> = {
  /** Decided by weights alone. */
  constant: { holds: (site, [x]) => site.facts(x!).constant, suggest: weight },
  /** Not decided by weights: what would be folded anyway is left alone. */
  computed: { holds: (site, [x]) => !site.facts(x!).constant },
  /** All elements are the number, exactly. */
  all: {
    holds: (site, [x, n]) => everyElement(site, x, (v) => v === Number(n)),
    suggest: ([, n]) => ({ kind: "elements", values: [Number(n)] }),
  },
  /** All elements are the number up to rounding. */
  near: {
    holds: (site, [x, n]) => everyElement(site, x, (v) => isNear(v, Number(n))),
    suggest: ([, n]) => ({ kind: "elements", values: [Number(n)] }),
  },
  /** All elements are powers of two, so that dividing by them is multiplying. */
  powersOfTwo: {
    holds: (site, [x]) =>
      everyElement(
        site,
        x,
        (v) =>
          Math.abs(v) <= 2 ** 60 &&
          Number.isInteger(Math.log2(Math.abs(v))) &&
          Math.abs(v) >= 2 ** -60,
      ),
    suggest: () => ({ kind: "elements", values: [0.5, 2, 4, -8] }),
  },
  /** Known, and neither zero nor so small or large that the reciprocal is lost. */
  invertible: {
    holds: (site, [x]) =>
      everyElement(site, x, (v) => Math.abs(v) >= 2 ** -60 && Math.abs(v) <= 2 ** 60),
    suggest: () => ({ kind: "elements", values: [0.5, 3, -1.25, 6] }),
  },
  positive: {
    holds: (site, [x]) => everyElement(site, x, (v) => v > 0 && v < Infinity),
    suggest: () => ({ kind: "elements", values: [0.5, 3, 6] }),
  },
  finite: {
    holds: (site, [x]) => site.facts(x!).finite,
    suggest: () => ({ kind: "elements", values: [-1.5, 0, 2] }),
  },
  nonNegative: {
    holds: (site, [x]) => site.facts(x!).nonNegative,
    suggest: () => ({ kind: "elements", values: [0, 0.5, 2] }),
  },
  float: { holds: (site, [x]) => isFloatDType(site.type(x!).dtype) },
  /** A type with negative numbers. */
  signed: {
    holds: (site, [x]) => {
      const { dtype } = site.type(x!);
      return isFloatDType(dtype) || dtypes[dtype].kind === "int";
    },
  },
  /** x has the type of the whole left side. */
  whole: { holds: (site, [x]) => sameType(site.type(x!), site.rootType()) },
  /** Broadcasting y to x leaves the shape of x: rank and extents of y fit into it. */
  covers: {
    holds: (site, [x, y]) => {
      const [outer, inner] = [site.shape(x!), site.shape(y!)];
      const offset = outer.length - inner.length;
      return offset >= 0 && inner.every((d, i) => isOne(d) || indexEquals(d, outer[i + offset]!));
    },
  },
  /** One element, of any rank up to that of the other and of the whole left side. */
  scalar: {
    holds: (site, [x, other]) => {
      const { shape } = site.type(x!);
      const most = Math.min(site.shape(other!).length, site.rootType().shape.length);
      return shape.every(isOne) && shape.length <= most;
    },
    suggest: () => ({ kind: "scalar" }),
  },
  sameShape: { holds: (site, [x, y]) => sameShape(site.shape(x!), site.shape(y!)) },
  sameRank: { holds: (site, [x, y]) => site.shape(x!).length === site.shape(y!).length },
  sameType: { holds: (site, [x, y]) => sameType(site.type(x!), site.type(y!)) },
  sameDType: { holds: (site, [x, y]) => site.type(x!).dtype === site.type(y!).dtype },
  /** x alone has the shape of the whole left side, whatever else is broadcast. */
  spans: { holds: (site, [x]) => sameShape(site.shape(x!), site.rootType().shape) },
  inOrder: {
    holds: (site, [p]) => site.attrs<"transpose">(p!).permutation.every((axis, i) => axis === i),
  },
  unitSteps: { holds: (site, [p]) => site.attrs<"slice">(p!).steps.every((s) => s === 1) },
  fromStart: {
    holds: (site, [p]) => site.attrs<"slice">(p!).starts.every((s) => constantValue(s) === 0),
  },
  /** No padding: every output element sees data alone. */
  unpadded: attribute((a: ConvolutionAttrs) => [...a.padLow, ...a.padHigh].every((p) => p === 0)),
  ungrouped: attribute((a: ConvolutionAttrs) => a.groups === 1),
  reduces: {
    holds: (site, [a, kind]) => site.attrs<"reduce">(a!).kind === kind,
  },
  keepsDims: { holds: (site, [a]) => site.attrs<"reduce">(a!).keepDims },
  dropsDims: { holds: (site, [a]) => !site.attrs<"reduce">(a!).keepDims },
  /** The labels of both operands and of the result are those of products in the result's own type. */
  ownAccumulator: {
    holds: (site, [a, x]) => site.attrs<"contract">(a!).accumulator === site.type(x!).dtype,
  },
  sameAxis: {
    holds: (site, [a, b]) => site.attrs<"concat">(a!).axis === site.attrs<"concat">(b!).axis,
  },
  /** Both operands have the same extent along the axis of a concatenation. */
  sameCut: {
    holds: (site, [a, x, y]) => {
      const { axis } = site.attrs<"concat">(a!);
      return indexEquals(site.shape(x!)[axis]!, site.shape(y!)[axis]!);
    },
  },
  /** A scalar, of rank 0. */
  single: { holds: (site, [x]) => site.shape(x!).length === 0 },
  /** A float that norms compute in itself: narrower ones are widened. */
  wide: { holds: (site, [x]) => ["f32", "f64"].includes(site.type(x!).dtype) },
  /** Known, and all elements are one finite number. */
  uniform: {
    holds: (site, [x]) => {
      const first = known(site, x!)?.[0];
      return everyElement(site, x, (v) => v === first && Number.isFinite(v));
    },
    suggest: () => ({ kind: "elements", values: [0.5] }),
  },
  /** One scale and zero point for the whole tensor. */
  perTensor: {
    holds: (site, [a]) => site.attrs<"dequantize">(a!).axis === undefined,
  },
};
