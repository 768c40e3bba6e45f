/**
 * Side conditions of rules by name: what must be known of the match for the identity to hold. They read
 * facts (types, constants, signs) and attributes, never the form of a term, so that searching only what
 * is new stays exact.
 */

import { sameShape, sameType } from "../graph/tensor-type.ts";
import type { ConvolutionAttrs } from "../semantics/core-ops.ts";
import { dtypes, holdsAll, isFloatDType } from "../semantics/dtype.ts";
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
  /** A broadcast makes just the axes that are reduced: they are 1 or absent in x, the others whole. */
  repeatsReduced: {
    holds: (site, [r, p, x]) => {
      const { axes } = site.attrs<"reduce">(r!);
      const { shape } = site.attrs<"broadcast">(p!);
      const own = site.shape(x!);
      const before = shape.length - own.length;
      return shape.every((d, i) => {
        const at = i < before ? undefined : own[i - before]!;
        if (axes.includes(i)) return at === undefined || isOne(at);
        return at === undefined ? isOne(d) : indexEquals(at, d);
      });
    },
  },
  /** A reduction of numbers: of one element it is that element. */
  isNumeric: {
    holds: (site, [r]) => !["and", "or"].includes(site.attrs<"reduce">(r!).kind),
  },
  /** The concatenation joins the last axis of x. */
  lastAxis: {
    holds: (site, [k, x]) => site.attrs<"concat">(k!).axis === site.shape(x!).length - 1,
  },
  integer: { holds: (site, [x]) => ["int", "uint"].includes(dtypes[site.type(x!).dtype].kind) },
  isExtremum: {
    holds: (site, [r]) => ["max", "min"].includes(site.attrs<"reduce">(r!).kind),
  },
  /** A window of 3 x 3 that moves by one, over data whose height and width are known. */
  threeByThree: {
    holds: (site, [a, x, w]) => {
      const { strides, dilations } = site.attrs<"convolution">(a!);
      const kernel = site.shape(w!).slice(2);
      return (
        kernel.length === 2 &&
        [...strides, ...dilations].every((n) => n === 1) &&
        kernel.every((d) => constantValue(d) === 3) &&
        site
          .shape(x!)
          .slice(2)
          .every((d) => constantValue(d) !== undefined)
      );
    },
  },
  /** No element is minus infinity: what may be subtracted from anything. */
  aboveLowest: {
    holds: (site, [x]) => site.facts(x!).aboveLowest,
    suggest: () => ({ kind: "elements", values: [-3, 0, 0.5, 2] }),
  },
  /** The axis of a concatenation, counted from the end, is 1 in m or absent. */
  oneAlong: {
    holds: (site, [m, a]) => {
      const fromEnd = site.rootType().shape.length - site.attrs<"concat">(a!).axis;
      const own = site.shape(m!);
      return own.length < fromEnd || isOne(own[own.length - fromEnd]!);
    },
  },
  /** The axes of x that are reduced are 1 in m or absent. */
  oneReduced: {
    holds: (site, [m, r, x]) => {
      const [own, rank] = [site.shape(m!), site.shape(x!).length];
      return site.attrs<"reduce">(r!).axes.every((axis) => {
        const at = axis - (rank - own.length);
        return at < 0 || isOne(own[at]!);
      });
    },
  },
  /** Both operands of a product are concatenated along one summed label. */
  joinedAlike: {
    holds: (site, [a, k, l]) => {
      const { lhs, rhs, output } = site.attrs<"contract">(a!);
      const label = lhs[site.attrs<"concat">(k!).axis]!;
      return rhs[site.attrs<"concat">(l!).axis] === label && !output.includes(label);
    },
  },
  sameSeam: {
    holds: (site, [k, l, x, v]) =>
      indexEquals(
        site.shape(x!)[site.attrs<"concat">(k!).axis]!,
        site.shape(v!)[site.attrs<"concat">(l!).axis]!,
      ),
  },
  isExactGelu: { holds: (site, [g]) => site.attrs<"gelu">(g!).approximate === "none" },
  padsNothing: {
    holds: (site, [p]) => {
      const { low, high } = site.attrs<"pad">(p!);
      return [...low, ...high].every((d) => constantValue(d) === 0);
    },
  },
  /** The axes that are not 1 keep their order. */
  movesOnes: {
    holds: (site, [p, x]) => {
      const shape = site.shape(x!);
      const wide = site.attrs<"transpose">(p!).permutation.filter((axis) => !isOne(shape[axis]!));
      return wide.every((axis, i) => i === 0 || wide[i - 1]! < axis);
    },
  },
  /** The cast keeps every number of the operand's type. */
  widens: {
    holds: (site, [q, x]) => holdsAll(site.attrs<"cast">(q!).to, site.type(x!).dtype),
  },
  reducesAxis: {
    holds: (site, [r, a]) => site.attrs<"reduce">(r!).axes.includes(site.attrs<"concat">(a!).axis),
  },
  /** Filters of one window: equal extents behind the channels. */
  sameWindow: {
    holds: (site, [v, w]) => sameShape(site.shape(v!).slice(2), site.shape(w!).slice(2)),
  },
  /** Equal extents but for the channels (axis 1). */
  sameButChannels: {
    holds: (site, [x, y]) => {
      const [a, b] = [site.shape(x!), site.shape(y!)];
      return a.length === b.length && a.every((d, i) => i === 1 || indexEquals(d, b[i]!));
    },
  },
  /** A scalar, of rank 0. */
  single: { holds: (site, [x]) => site.shape(x!).length === 0 },
  /** Known, and no element of the first is above one of the second. */
  ordered: {
    holds: (site, [x, y]) => {
      const [low, high] = [known(site, x!), known(site, y!)];
      return low !== undefined && high !== undefined && Math.max(...low) <= Math.min(...high);
    },
  },
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
