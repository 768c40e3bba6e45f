/**
 * topK of a long axis by its groups. Elements of the first k stand in the k groups whose own first elements
 * come first: before the first element of any other group stand k others, and so before all of that group. So
 * the first of each group is found (a fold, n steps), the k first of those say which groups count, and of the
 * k groups' elements, in the order of the axis, the k first are the result. With groups of about the root of
 * n / k both of the shorter ones have the root of n k elements; they are cut again while they are long. What
 * is left is counted (region/builders/ordering.ts): about n + 2 n k steps a line instead of n n. Where threads share
 * folds a few are found one after another (step-select.ts), more by digits (radix-select.ts). Equal
 * values keep their order throughout, as the groups of the result are put in order of the axis. A k of more
 * than a sixteenth of the axis stays as it is, as do extents that are not known.
 */
import type { CoreOpAttrs } from "../../semantics/core-ops.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import { constant, constantValue } from "../../semantics/index-expr.ts";
import { identityElement } from "../../semantics/monoids.ts";
import { fromRef, refTensor } from "../../semantics/tensor.ts";
import type { GraphBuilder } from "../builder.ts";
import type { Graph, ValueId } from "../graph.ts";
import { firstPlaces, hasOrderKeys, type OrderKeys, orderKeys, rowsAt } from "./radix-select.ts";
import { type Rebuilt, rebuildGraph } from "./rebuild.ts";
import { greatestCodes, mostSteps, placeOfCode, stepCodes } from "./step-select.ts";

/** Elements of an axis, and of them for each of the k, from which on it is cut in groups. */
const leastExtent = 1024;
const leastShare = 16;
/** Elements of a line from which on it is selected by digits. */
const leastDigits = 128;
/** How far a size that divides the axis may be from the best one. */
const mostOff = 1.5;

type TopK = CoreOpAttrs["topK"];

export interface SelectOptions {
  /** Lines that would be counted are selected by digits (radix-select.ts), where they are long enough. */
  readonly byDigits?: boolean;
}

export function selectTop(graph: Graph, { byDigits = false }: SelectOptions = {}): Rebuilt {
  return rebuildGraph(graph, {
    node: ({ b, node, inputs }) => {
      if (node.op !== "topK") return undefined;
      const selection = new Selection(b, byDigits);
      return selection.rest(inputs[0]!, node.attrs);
    },
  });
}

class Selection {
  readonly #b: GraphBuilder;
  readonly #byDigits: boolean;

  constructor(b: GraphBuilder, byDigits: boolean) {
    this.#b = b;
    this.#byDigits = byDigits;
  }

  /** Values and positions; undefined where the axis is short, or not known. */
  rest(x: ValueId, attrs: TopK): readonly [ValueId, ValueId] | undefined {
    const b = this.#b;
    const shape = b.shapeOf(x);
    const [extent, count] = [constantValue(shape[attrs.axis]!), constantValue(attrs.k)];
    if (extent === undefined || count === undefined || count < 2) return undefined;
    const isCut = extent >= leastExtent && extent >= leastShare * count;
    const last = shape.length - 1;
    if (!this.#byDigits || !hasOrderKeys(b.dtypeOf(x)) || extent < leastDigits) {
      return isCut ? this.#byGroups(x, attrs) : undefined;
    }
    if (attrs.axis === last) return this.#alongLast(x, attrs, isCut);
    if (isCut) return this.#byGroups(x, attrs);
    const swap = shape.map((_, i) => (i === last ? attrs.axis : i === attrs.axis ? last : i));
    const found = this.#alongLast(b.transpose(x, swap), { ...attrs, axis: last }, false);
    return found.map((v) => b.transpose(v, swap)) as unknown as readonly [ValueId, ValueId];
  }

  #first(x: ValueId, attrs: TopK): readonly [ValueId, ValueId] {
    return (
      this.rest(x, attrs) ??
      (this.#b.nodes("topK", [x], attrs) as readonly ValueId[] as readonly [ValueId, ValueId])
    );
  }

  #alongLast(x: ValueId, attrs: TopK, isCut: boolean): readonly [ValueId, ValueId] {
    const isFew = constantValue(attrs.k)! <= mostSteps;
    if (isFew) return isCut ? this.#byGroupsInSteps(x, attrs) : this.#inSteps(x, attrs);
    return isCut ? this.#byGroupsOfKeys(x, attrs) : this.#byKeys(x, attrs);
  }

  /** Along the last axis: one after another. */
  #inSteps(x: ValueId, attrs: TopK): readonly [ValueId, ValueId] {
    const b = this.#b;
    const { axis, k, largest } = attrs;
    const extent = constantValue(b.shapeOf(x)[axis]!)!;
    const codes = stepCodes(b, orderKeys(b, x, largest), this.#places(x, axis), extent - 1);
    return this.#found(x, greatestCodes(b, codes, constantValue(k)!), attrs);
  }

  /** The groups whose firsts are among the first k, one after another, then their elements by their places. */
  #byGroupsInSteps(x: ValueId, attrs: TopK): readonly [ValueId, ValueId] {
    const b = this.#b;
    const { axis, k, largest } = attrs;
    const count = constantValue(k)!;
    const { apart, groups, size } = this.#cut(x, attrs);
    const leaders = this.#leaders(apart, largest);
    const first = stepCodes(b, leaders, this.#places(leaders.value, axis), groups - 1);
    const chosen = placeOfCode(b, greatestCodes(b, first, count), groups - 1);
    const candidates = rowsAt(b, apart, b.cast(chosen, "i32"));
    const begins = b.applyNumber("mul", b.reshape(chosen, [...b.shapeOf(chosen), 1]), size);
    const places = b.add(begins, b.cast(this.#places(candidates, axis + 1), "i64"));
    const last = groups * size - 1;
    const codes = stepCodes(b, orderKeys(b, candidates, largest), places, last);
    const lines = b.shapeOf(x).slice(0, axis);
    const line = b.reshape(codes, [...lines, constant(count * size)]);
    return this.#found(x, greatestCodes(b, line, count), attrs, last);
  }

  /** Values and places of the numbers that were found. */
  #found(
    x: ValueId,
    codes: ValueId,
    { axis }: TopK,
    last = constantValue(this.#b.shapeOf(x)[axis]!)! - 1,
  ): readonly [ValueId, ValueId] {
    const b = this.#b;
    const places = placeOfCode(b, codes, last);
    return [b.node("gatherElements", [x, places], { axis }), places];
  }

  /** Places along one axis, beside the others. */
  #places(x: ValueId, axis: number): ValueId {
    const shape = this.#b.shapeOf(x).map((e, i) => (i === axis ? e : constant(1)));
    return this.#b.node("iota", [], { shape, axis, dtype: "i32" });
  }

  /** The last axis in groups, the last of which is filled up. */
  #cut(x: ValueId, attrs: TopK) {
    const b = this.#b;
    const { axis, k } = attrs;
    const [extent, count] = [constantValue(b.shapeOf(x)[axis]!)!, constantValue(k)!];
    const size = groupSize(extent, count);
    const groups = Math.ceil(extent / size);
    const whole = groups * size === extent ? x : padded(b, x, attrs, groups * size - extent);
    const lines = b.shapeOf(x).slice(0, axis);
    return { apart: b.reshape(whole, [...lines, constant(groups), constant(size)]), groups, size };
  }

  /** Along the last axis: the first k by their keys, then those in order. */
  #byKeys(x: ValueId, attrs: TopK): readonly [ValueId, ValueId] {
    const b = this.#b;
    const { axis, k, largest } = attrs;
    const places = firstPlaces(b, orderKeys(b, x, largest), constantValue(k)!);
    const found = b.node("gatherElements", [x, places], { axis });
    const [values, at] = b.nodes("topK", [found], attrs);
    return [values!, b.cast(b.node("gatherElements", [places, at!], { axis }), "i64")];
  }

  /** Along the last axis: groups by their greatest keys, and of the k first of those the elements. */
  #byGroupsOfKeys(x: ValueId, attrs: TopK): readonly [ValueId, ValueId] {
    const b = this.#b;
    const { axis, k, largest } = attrs;
    const lines = b.shapeOf(x).slice(0, axis);
    const count = constantValue(k)!;
    const { apart, size } = this.#cut(x, attrs);
    const chosen = this.#firstPlaces(this.#leaders(apart, largest), count);
    const candidates = b.reshape(rowsAt(b, apart, chosen), [...lines, constant(count * size)]);
    const [values, at] = this.#first(candidates, attrs);
    const group = b.node("gatherElements", [chosen, b.applyNumber("div", at, size)], { axis });
    const inGroup = b.applyNumber("mod", at, size);
    const places = b.add(b.applyNumber("mul", b.cast(group, "i64"), size), inGroup);
    return [values, places];
  }

  /** The greatest key of each group. The least float of some is NaN where one is, which comes last here: of those keys are folded. */
  #leaders(apart: ValueId, largest: boolean): OrderKeys {
    const b = this.#b;
    const last = b.rankOf(apart) - 1;
    const isSame = largest || !isFloatDType(b.dtypeOf(apart));
    if (isSame) {
      const first = b.reduce(largest ? "max" : "min", apart, [last], false);
      return orderKeys(b, first, largest);
    }
    const keys = orderKeys(b, apart, largest);
    return { ...keys, value: b.reduce("max", keys.value, [last], false) };
  }

  /** Of keys, by their groups where they are many. */
  #firstPlaces(keys: OrderKeys, count: number): ValueId {
    const b = this.#b;
    const shape = b.shapeOf(keys.value);
    const axis = shape.length - 1;
    const extent = constantValue(shape[axis]!)!;
    if (extent < leastDigits) return this.#countedPlaces(keys, count);
    if (extent < leastExtent || extent < leastShare * count) return firstPlaces(b, keys, count);
    const size = groupSize(extent, count);
    const groups = Math.ceil(extent / size);
    const lines = shape.slice(0, axis);
    const attrs = { axis, k: constant(count), largest: true, sorted: true };
    const more = groups * size - extent;
    const whole = more === 0 ? keys.value : padded(b, keys.value, attrs, more);
    const apart = b.reshape(whole, [...lines, constant(groups), constant(size)]);
    const leaders = { ...keys, value: b.reduce("max", apart, [axis + 1], false) };
    const chosen = this.#firstPlaces(leaders, count);
    const candidates = b.reshape(rowsAt(b, apart, chosen), [...lines, constant(count * size)]);
    const at = this.#firstPlaces({ ...keys, value: candidates }, count);
    const group = b.node("gatherElements", [chosen, b.applyNumber("div", at, size)], { axis });
    return b.add(b.applyNumber("mul", group, size), b.applyNumber("mod", at, size));
  }

  /** As firstPlaces, by ranks. */
  #countedPlaces({ value }: OrderKeys, count: number): ValueId {
    const b = this.#b;
    const attrs = { axis: b.rankOf(value) - 1, k: constant(count), sorted: true };
    const [, at] = b.nodes("topK", [value], { ...attrs, largest: true });
    return b.node("topK", [b.cast(at!, "i32")], { ...attrs, largest: false });
  }

  #byGroups(x: ValueId, attrs: TopK): readonly [ValueId, ValueId] {
    const b = this.#b;
    const { axis, k } = attrs;
    const shape = b.shapeOf(x);
    const [extent, count] = [constantValue(shape[axis]!)!, constantValue(k)!];
    const size = groupSize(extent, count);
    const groups = Math.ceil(extent / size);
    const whole = groups * size === extent ? x : padded(b, x, attrs, groups * size - extent);
    const withAxis = (...extents: readonly number[]) =>
      shape.flatMap((e, i) => (i === axis ? extents.map((n) => constant(n)) : [e]));
    const apart = b.reshape(whole, withAxis(groups, size));
    const [leaders] = b.nodes("topK", [apart], { ...attrs, axis: axis + 1, k: constant(1) });
    const ofLeaders = { ...attrs, sorted: true };
    const [, chosen] = this.#first(b.reshape(leaders!, withAxis(groups)), ofLeaders);
    const inOrder = { axis, k, largest: false, sorted: true };
    const [ordered] = this.#first(chosen, inOrder);
    const begins = b.applyNumber("mul", b.reshape(ordered, withAxis(count, 1)), size);
    const lone = withAxis(1, size).map((e, i) => (i === axis + 1 ? e : constant(1)));
    const within = b.node("iota", [], { shape: lone, axis: axis + 1, dtype: "i64" });
    const places = b.reshape(b.add(begins, within), withAxis(count * size));
    const candidates = b.node("gatherElements", [whole, places], { axis });
    const [values, at] = this.#first(candidates, attrs);
    return [values, b.node("gatherElements", [places, at], { axis })];
  }
}

/** About the root of n / k elements; of such sizes one that divides the axis, where there is one. */
function groupSize(extent: number, count: number): number {
  const wanted = Math.sqrt(extent / count);
  const near = Array.from({ length: Math.ceil(2 * wanted) }, (_, i) => i + 2).filter(
    (n) => extent % n === 0 && n <= wanted * mostOff && n >= wanted / mostOff,
  );
  const off = (n: number): number => Math.abs(Math.log(n / wanted));
  return near.sort((a, c) => off(a) - off(c))[0] ?? Math.max(2, Math.round(wanted));
}

/** The axis with elements behind it that come last of all, and behind their equals. */
function padded(b: GraphBuilder, x: ValueId, { axis, largest }: TopK, more: number): ValueId {
  const dtype = b.dtypeOf(x);
  const last = lastOf(dtype, largest);
  const fill = b.constant(
    fromRef(refTensor(dtype, [], typeof last === "bigint" ? [last] : [last])),
  );
  const none = b.shapeOf(x).map(() => constant(0));
  const high = none.map((e, i) => (i === axis ? constant(more) : e));
  return b.node("pad", [x, fill], { low: none, high, mode: "constant" });
}

/** NaN is the greatest value of its type. */
function lastOf(dtype: DType, largest: boolean): number | bigint {
  if (largest) return identityElement("max", dtype);
  const { format } = dtypes[dtype];
  return format && format.nan !== "none" ? Number.NaN : identityElement("min", dtype);
}
