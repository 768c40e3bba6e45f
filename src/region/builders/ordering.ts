/**
 * Nests of topK. The first one alone is a fold of values with their positions. More by selection, a routine over lines
 * of groups (lower/first-places.ts), where a processor runs it and that takes fewer steps than counting; else by
 * counting: the rank of an element is how many others come before it, result p takes
 * the element of rank p. Every rank occurs once, since equal values keep the order of their positions
 * and NaN is the greatest value. A quadratic number of comparisons along the axis, but without
 * control flow: every loop runs in lanes and on threads, and k and the extent may be symbols. Long axes come
 * here in short pieces (graph/transforms/select-top.ts).
 */
import type { NodeOf } from "../../graph/graph.ts";
import { constantValue, type IndexExpr } from "../../semantics/index-expr.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import { argMonoid } from "../../semantics/monoids.ts";
import { apply, argument, cast, indexValue, literal } from "../../semantics/scalar-expr.ts";
import { exceeds, ties } from "../../semantics/total-order.ts";
import { numberAs } from "../statement.ts";
import type { NestContext } from "./context.ts";
import { comparedAs, foldInto, reduceLoops } from "./reduction.ts";
import { groupsOf, selectedPlaces } from "./selection.ts";

/** A topK with what its statements share. */
interface Ordering {
  readonly context: NestContext;
  readonly node: NodeOf<"topK">;
  readonly shape: readonly IndexExpr[];
  /** Type of ranks and positions. */
  readonly indexDType: "i32" | "i64";
}

export function buildTopK(context: NestContext, node: NodeOf<"topK">): void {
  const { shape } = context.type(node.inputs[0]!);
  const { max } = rangeOf(shape[node.attrs.axis]!, context.symbolRanges);
  if (constantValue(node.attrs.k) === 1) {
    buildFirst(context, node, max < 2 ** 31 ? "i32" : "i64");
    return;
  }
  const ordering = { context, node, shape, indexDType: max < 2 ** 31 ? "i32" : "i64" } as const;
  const groups = groupsOf(context, node);
  if (groups) {
    resultStatements(ordering, { tensor: selectedPlaces(context, node, groups), isLast: true });
    return;
  }
  const ranks = rankStatement(ordering);
  const positions = positionStatement(ordering, ranks);
  resultStatements(ordering, { tensor: positions });
}

/** The first in order: one fold of values with their positions, in which NaN is the greatest value. */
function buildFirst(
  context: NestContext,
  node: NodeOf<"topK">,
  indexDType: Ordering["indexDType"],
): void {
  const [x] = node.inputs as [NodeOf<"topK">["inputs"][number]];
  const { dtype, shape } = context.type(x);
  const { axis, largest } = node.attrs;
  const compared = comparedAs(dtype);
  const draft = context.draft(node);
  const { at, into } = reduceLoops(draft, shape, { axes: [axis], keepDims: true });
  const kind = largest ? "max" : "min";
  const monoid = argMonoid({ kind, dtype: compared, indexDType, tie: "first", nan: "greatest" });
  const body = [cast(draft.read(x, at), compared, false), indexValue(at[axis]!, indexDType)];
  const writes = node.outputs.map((v) => ({ tensor: context.name(v), index: into }));
  const finish = [
    cast(argument(0, compared), dtype, false),
    cast(argument(1, indexDType), "i64", false),
  ];
  draft.finishStatement(body, writes, { monoid, finish });
}

/** How many elements of its row come before each element. */
function rankStatement({ context, node, shape, indexDType }: Ordering): string {
  const { axis, largest } = node.attrs;
  const ranks = context.temporary(`${context.name(node.outputs[0]!)}.rank`, indexDType, shape);
  const draft = context.draft(node);
  const at = draft.loops("i", shape);
  const other = draft.loop("j", shape[axis]!, "reduce");
  const own = draft.read(node.inputs[0]!, at);
  const rival = draft.read(node.inputs[0]!, withAt(at, axis, other));
  const [first, second] = largest ? [rival, own] : [own, rival];
  const earlier = apply("less", indexValue(other, indexDType), indexValue(at[axis]!, indexDType));
  const before = apply("or", exceeds(first, second), apply("and", ties(own, rival), earlier));
  const body = cast(before, indexDType, false);
  const fold = foldInto("sum", indexDType, indexDType);
  draft.finishStatement([body], [{ tensor: ranks, index: at }], fold);
  return ranks;
}

/** Which element has each of the first k ranks: the sum over the one that does. */
function positionStatement(ordering: Ordering, ranks: string): string {
  const { context, node, shape, indexDType } = ordering;
  const { axis } = node.attrs;
  const results = context.type(node.outputs[0]!).shape;
  const positions = context.temporary(`${ranks}.at`, indexDType, results);
  const draft = context.draft(node);
  const at = draft.loops("i", results);
  const from = draft.loop("j", shape[axis]!, "reduce");
  const rank = draft.readTensor(ranks, withAt(at, axis, from));
  const found = apply("equal", rank, indexValue(at[axis]!, indexDType));
  const zero = literal(numberAs(indexDType, 0), indexDType);
  const body = apply("select", found, indexValue(from, indexDType), zero);
  const fold = foldInto("sum", indexDType, indexDType);
  draft.finishStatement([body], [{ tensor: positions, index: at }], fold);
  return positions;
}

/** @param positions along the axis of the results, or of these the last */
function resultStatements(
  ordering: Ordering,
  { tensor: positions, isLast = false }: { readonly tensor: string; readonly isLast?: boolean },
): void {
  const { context, node, shape, indexDType } = ordering;
  const { axis } = node.attrs;
  const [values, indices] = node.outputs.map((v) => context.name(v));
  const results = context.type(node.outputs[0]!).shape;
  const indexOf = (at: readonly IndexExpr[]): readonly IndexExpr[] =>
    isLast ? [...at.toSpliced(axis, 1), at[axis]!] : at;
  const gather = context.draft(node);
  const at = gather.loops("i", results);
  const from = gather.provedIndirect(positions, indexOf(at), shape[axis]!);
  const element = gather.read(node.inputs[0]!, withAt(at, axis, from));
  gather.finishStatement([element], [{ tensor: values!, index: at }]);
  const widen = context.draft(node);
  const to = widen.loops("i", results);
  const position = widen.readTensor(positions, indexOf(to));
  const body = indexDType === "i64" ? position : cast(position, "i64", false);
  widen.finishStatement([body], [{ tensor: indices!, index: to }]);
}

function withAt(at: readonly IndexExpr[], axis: number, index: IndexExpr): readonly IndexExpr[] {
  return at.map((i, a) => (a === axis ? index : i));
}
