/**
 * TopK by selection: keys of all elements, line by line and in rows of groups, then the places of the first of each
 * line by the routine of lower/first-places.ts. Where 32 bits have an order of the elements keys are integers in
 * it, the first the greatest; of other types they are the elements themselves.
 */
import type { NodeOf } from "../../graph/graph.ts";
import { type DType, dtypes, isFloatDType } from "../../semantics/dtype.ts";
import { add, ceilDiv, constant, max, mul, sub } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { identityElement } from "../../semantics/monoids.ts";
import { apply, cast, literal, type ScalarExpr } from "../../semantics/scalar-expr.ts";
import type { NestContext } from "./context.ts";

type TopK = NodeOf<"topK">;

/** About what the ways to select take, in instructions. */
const costs = {
  /** Of each vector of elements: its keys, and the firsts of groups. */
  vector: 12,
  /** Of each result: for each vector of the firsts of groups, for each row, and besides. */
  ...{ leaders: 5, row: 10, result: 150 },
  /** Counting, for each vector of pairs of elements, and of pairs of a result and an element. */
  ...{ pair: 6, found: 4 },
};
/** The firsts of a line's groups stay in the nearest cache. */
const mostGroups = 4096;

export interface Groups {
  readonly count: number;
  readonly lanes: number;
}

/**
 * Into how many groups a line is cut, an odd number of vectors: rows a power of two apart would meet in one set of the
 * nearest cache. Undefined: counting takes less.
 */
export function groupsOf(context: NestContext, node: TopK): Groups | undefined {
  const { dtype, shape } = context.type(node.inputs[0]!);
  const extent = rangeOf(shape[node.attrs.axis]!, context.symbolRanges).max;
  const count = Math.min(extent, rangeOf(node.attrs.k, context.symbolRanges).max);
  const { selectionLanes } = context;
  if (!selectionLanes || extent < 2 || extent >= 2 ** 31) return undefined;
  const width = keyOf(dtype) ? selectionLanes : 1;
  const vectors = Math.ceil(extent / width);
  const counted = vectors * (extent * costs.pair + count * costs.found);
  let best: { readonly groups: number; readonly cost: number } | undefined;
  for (let wide = 1; wide * width <= mostGroups; wide += 2) {
    const groups = wide * width;
    const rows = Math.ceil(extent / groups);
    const perResult = costs.result + wide * costs.leaders + rows * costs.row;
    const cost = rows * wide * costs.vector + count * perResult;
    if (!best || cost < best.cost) best = { groups, cost };
  }
  return best && best.cost < counted ? { count: best.groups, lanes: width } : undefined;
}

/** The places of the first k in order, [lines.., k] with the axis last. */
export function selectedPlaces(
  context: NestContext,
  node: TopK,
  { count: groups, lanes }: Groups,
): string {
  const { axis, k, largest } = node.attrs;
  const { dtype, shape } = context.type(node.inputs[0]!);
  const name = context.name(node.outputs[0]!);
  const others = shape.filter((_, a) => a !== axis);
  const rows = max(ceilDiv(shape[axis]!, groups), 1);
  const key = keyOf(dtype);
  const held = key ? "i32" : dtype;
  const keys = context.temporary(`${name}.key`, held, [...others, rows, constant(groups)]);
  const draft = context.draft(node);
  const at = draft.loops("i", others);
  const [row, group] = [draft.loop("r", rows), draft.loop("g", groups)];
  const place = add(mul(row, groups), group);
  const from = at.toSpliced(axis, 0, place);
  const inside = { kind: "nonNegative" as const, expr: sub(sub(shape[axis]!, 1), place) };
  const element = draft.read(node.inputs[0]!, from, [inside], lastOf(dtype, largest));
  const body = key ? key(element, largest) : element;
  draft.finishStatement([body], [{ tensor: keys, index: [...at, row, group] }]);
  const all = mul(...others);
  const places = context.temporary(`${name}.place`, "i32", [all, k]);
  const taken = context.reshaped(keys, [all, rows, constant(groups)]);
  context.selection(node, taken, places, { largest: key !== undefined || largest, lanes });
  return context.reshaped(places, [...others, k]);
}

type Key = (element: ScalarExpr, largest: boolean) => ScalarExpr;

/** Elements as i32 in their order, the first the greatest; undefined: not in 32 bits. */
function keyOf(dtype: DType): Key | undefined {
  const { bits, kind } = dtypes[dtype];
  // -1 - key: the greatest becomes the least, and what ties still ties.
  const ordered = (key: ScalarExpr, largest: boolean): ScalarExpr =>
    largest ? key : apply("bitNot", key);
  if (isFloatDType(dtype)) {
    if (kind !== "float" || bits > 32) return undefined;
    return (x, largest) => ordered(apply("orderKey", cast(x, "f32", false)), largest);
  }
  if ((kind !== "int" && kind !== "uint") || bits > 32) return undefined;
  if (kind === "int" || bits < 32) return (x, largest) => ordered(cast(x, "i32", false), largest);
  const sign = literal(-(2 ** 31), "i32");
  return (x, largest) => ordered(apply("bitXor", cast(x, "i32", false), sign), largest);
}

/** What comes behind all others, or ties with them: NaN is the greatest value of its type. */
export function lastOf(dtype: DType, largest: boolean): number | bigint {
  if (largest) return identityElement("max", dtype);
  const { format } = dtypes[dtype];
  return format && format.nan !== "none" ? Number.NaN : identityElement("min", dtype);
}
