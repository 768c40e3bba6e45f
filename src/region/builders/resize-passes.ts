/**
 * Resize by a filter along several axes as passes along one each: a result of a pass is the sum of a few taps of
 * what the pass before gave. Taps along the last axis lie where a table says, element by element; along another
 * they are rows, which are summed in lanes. The order of the passes is the one that takes least.
 */
import type { NodeOf } from "../../graph/graph.ts";
import { constant, type IndexExpr } from "../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { apply, argument, cast, type ScalarExpr } from "../../semantics/scalar-expr.ts";
import { literalOf } from "../statement.ts";
import type { NestContext, StatementDraft } from "./context.ts";
import { accumulatorOf, foldInto } from "./reduction.ts";

/** One axis: extents, and the scale that the coordinate transform uses. */
export interface Axis {
  readonly axis: number;
  readonly from: IndexExpr;
  readonly to: IndexExpr;
  readonly scale: number | undefined;
  readonly start: number;
  readonly end: number;
}

/** Names of the tables of one axis, each [result extent, taps] (`outside`: [result extent]). */
export interface Tables {
  readonly axis: Axis;
  readonly taps: number;
  readonly position: string;
  readonly weight: string | undefined;
  readonly outside: string | undefined;
}

/** Taps that are written out; more are a loop. */
const mostWritten = 8;
/** What an element costs whose taps are looked up one by one, next to one in lanes. */
const costOfLookUp = 8;

type Resize = NodeOf<"resize">;

export function buildPasses(context: NestContext, node: Resize, tables: readonly Tables[]): void {
  const [x, output] = [node.inputs[0]!, node.outputs[0]!];
  const { dtype, shape } = context.type(output);
  const order = cheapestOrder(context.type(x).shape, tables, context.symbolRanges);
  let from = context.name(x);
  let extents = context.type(x).shape;
  for (const [i, table] of order.entries()) {
    const { axis, to } = table.axis;
    const isLast = i === order.length - 1;
    extents = isLast ? shape : extents.with(axis, to);
    const base = `${context.name(output)}.along${axis}`;
    const into = isLast
      ? context.name(output)
      : context.temporary(base, accumulatorOf(dtype), extents);
    const outside = isLast ? tables : [];
    buildPass(context, node, { table, from, into, outside });
    from = into;
  }
}

interface Pass {
  readonly table: Tables;
  readonly from: string;
  readonly into: string;
  /** Axes along which a result may be outside of the operand. */
  readonly outside: readonly Tables[];
}

function buildPass(context: NestContext, node: Resize, { table, from, into, outside }: Pass): void {
  const { dtype, shape } = context.tensor(into);
  const accumulator = accumulatorOf(dtype);
  const draft = context.draft(node);
  const at = draft.loops("i", shape);
  const isWritten = table.taps <= mostWritten;
  const taps = isWritten
    ? Array.from({ length: table.taps }, (_, tap) => constant(tap))
    : [draft.loop("t", table.taps, "reduce")];
  const terms = taps.map((tap) => termOf(draft, { table, from, at, tap, accumulator }));
  const sum = terms.reduce((a, b) => apply("add", a, b));
  const write = { tensor: into, index: at };
  const beyond = outside.flatMap((t) =>
    t.outside === undefined ? [] : [{ name: t.outside, index: [at[t.axis.axis]!] }],
  );
  const inside = (value: ScalarExpr): ScalarExpr => cast(value, dtype, false);
  const chosen = (value: ScalarExpr, isBeyond: readonly ScalarExpr[]): ScalarExpr =>
    isBeyond.length === 0
      ? inside(value)
      : apply(
          "select",
          isBeyond.reduce((a, b) => apply("or", a, b)),
          literalOf(dtype, node.attrs.extrapolation),
          inside(value),
        );
  if (isWritten) {
    const read = beyond.map(({ name, index }) => draft.readTensor(name, index));
    draft.finishStatement([chosen(sum, read)], [write]);
    return;
  }
  const read = beyond.map(({ name, index }) => 1 + draft.finishRead(name, index));
  const finish = [
    chosen(
      argument(0, accumulator),
      read.map((i) => argument(i, "bool")),
    ),
  ];
  draft.finishStatement([sum], [write], { ...foldInto("sum", accumulator, dtype), finish });
}

interface Tap {
  readonly table: Tables;
  readonly from: string;
  readonly at: readonly IndexExpr[];
  readonly tap: IndexExpr;
  readonly accumulator: ReturnType<typeof accumulatorOf>;
}

function termOf(draft: StatementDraft, { table, from, at, tap, accumulator }: Tap): ScalarExpr {
  const { axis, from: extent } = table.axis;
  const where = [at[axis]!, tap];
  const position = draft.provedIndirect(table.position, where, extent);
  const element = draft.readTensor(from, at.with(axis, position));
  const weight = draft.readTensor(table.weight!, where);
  return apply("mul", cast(element, accumulator, false), cast(weight, accumulator, false));
}

/** Of all orders, the one whose passes make the fewest elements, those along the last axis counted as they cost. */
function cheapestOrder(
  shape: readonly IndexExpr[],
  tables: readonly Tables[],
  ranges: IndexRanges,
): readonly Tables[] {
  const extents = shape.map((e) => rangeOf(e, ranges).max);
  const costOf = (order: readonly Tables[]): number => {
    const now = [...extents];
    return order.reduce((sum, { axis: { axis, to } }) => {
      now[axis] = rangeOf(to, ranges).max;
      const each = axis === now.length - 1 ? costOfLookUp : 1;
      return sum + each * now.reduce((n, e) => n * e, 1);
    }, 0);
  };
  return permutations(tables).reduce((a, b) => (costOf(b) < costOf(a) ? b : a));
}

function permutations<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length <= 1) return [items];
  return items.flatMap((x, i) => permutations(items.toSpliced(i, 1)).map((rest) => [x, ...rest]));
}
