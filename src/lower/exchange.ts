/**
 * What threads of a warp tell each other: every thread's partial result of a reduction becomes that of all, or
 * of all threads before it, exchanged in halves. Cells of registers carry what is sent and what comes.
 */
import { castExpr, issue, loadExpr, storeTo, tileAt } from "../program/expr.ts";
import type { Buffer } from "../program/program.ts";
import type { Expr } from "../program/statement.ts";
import { exchangedAs } from "../schedule/exchanged-types.ts";
import type { DType } from "../semantics/dtype.ts";
import { constant, floorDiv, type IndexExpr, mod } from "../semantics/index-expr.ts";
import type { Monoid } from "../semantics/monoids.ts";
import { reject } from "../support/diagnostic.ts";
import type { Block, Names } from "./block.ts";
import { lowerScalar } from "./operands.ts";

export interface ExchangeContext {
  readonly names: Names;
  /** Register buffers made on the way. */
  readonly buffers: Buffer[];
  readonly block: Block;
  /** The statement, for refusals. */
  readonly at: string;
}

/**
 * The tuple of `threads` threads of a warp (a power of two), in each of them.
 *
 * @param stride from one of them to the next, a power of two
 */
export function exchangeInHalves(
  monoid: Monoid,
  components: readonly Expr[],
  { threads, stride }: { readonly threads: number; readonly stride: number },
  context: ExchangeContext,
): readonly Expr[] {
  const { names, block } = context;
  const scalar = { lane: undefined, block, bindings: new Map(), ranges: new Map() };
  const exchange = exchangeOf(monoid, context);
  let mine = components.map((c) => freeze(c, names, block));
  for (let distance = threads / 2; distance >= 1; distance /= 2) {
    const theirs = exchange(mine, stride * distance);
    const next = monoid.combine.map((e) => lowerScalar(e, [...mine, ...theirs], scalar));
    mine = next.map((v) => freeze(v, names, block));
  }
  return mine;
}

export interface Prefix {
  /** What the threads before have together; the identity where there are none. */
  readonly before: readonly Expr[];
  /** What all have together. */
  readonly total: readonly Expr[];
}

/**
 * What the threads before each of `threads` threads of a warp (a power of two) have together: of two halves that
 * tell each other theirs, the later one has the earlier before it.
 * @param thread number of the thread among them
 * @param reversed threads of higher numbers come before
 */
export function prefixInHalves(
  monoid: Monoid,
  components: readonly Expr[],
  { threads, thread, stride, reversed }: PrefixOrder,
  context: ExchangeContext,
): Prefix {
  const { names, block } = context;
  const scalar = { lane: undefined, block, bindings: new Map(), ranges: new Map() };
  const exchange = exchangeOf(monoid, context);
  const together = (a: readonly Expr[], b: readonly Expr[]): readonly Expr[] =>
    monoid.combine.map((e) => freeze(lowerScalar(e, [...a, ...b], scalar), names, block));
  let total = components.map((c) => freeze(c, names, block)) as readonly Expr[];
  let before = monoid.identity.map((e) => lowerScalar(e, [], scalar)) as readonly Expr[];
  for (let distance = 1; distance < threads; distance *= 2) {
    const theirs = exchange(total, stride * distance);
    const half = mod(floorDiv(thread, distance), 2);
    const isLater = block.bind(isEqual(half, reversed ? 0 : 1));
    const longer = distance === 1 ? theirs : together(before, theirs);
    before = longer.map((v, i) => freeze(selectOf(isLater, v, before[i]!), names, block));
    total = together(total, theirs);
  }
  return { before, total };
}

export interface PrefixOrder {
  readonly threads: number;
  readonly thread: IndexExpr;
  /** From one of them to the next, a power of two. */
  readonly stride: number;
  readonly reversed: boolean;
}

/** Whether an index is a number, as a value. */
function isEqual(index: IndexExpr, number: number): Expr {
  const dtype = "i32";
  const operands: readonly Expr[] = [
    { kind: "index", dtype, lanes: 1, expr: index, laneStep: 0 },
    { kind: "literal", dtype, lanes: 1, value: number },
  ];
  return { kind: "apply", dtype: "bool", lanes: 1, op: "equal", operands };
}

export function selectOf(condition: Expr, yes: Expr, no: Expr): Expr {
  const operands = [condition, yes, no];
  return { kind: "apply", dtype: yes.dtype, lanes: yes.lanes, op: "select", operands };
}

/** Gives the tuple of the thread at a distance for the own one; refuses types that are not exchanged. */
function exchangeOf(
  monoid: Monoid,
  { names, buffers, block, at }: ExchangeContext,
): (mine: readonly Expr[], distance: number) => readonly Expr[] {
  const makeCell = (dtype: DType): string => {
    const name = names.freshBuffer("cell");
    const shape = [constant(1)];
    buffers.push({ name, kind: "scratch", scope: "register", dtype, lanes: 1, shape });
    return name;
  };
  const cells = monoid.components.map(({ dtype }) => {
    const word = exchangedAs(dtype);
    if (!word) {
      reject("SCH031", `threads of a warp exchange no ${dtype}`, {
        at,
        help: "leave the reduce loop in one thread",
      });
    }
    return { word, own: makeCell(word), other: makeCell(word) };
  });
  return (mine, distance) =>
    cells.map(({ word, own, other }, i) => {
      block.push(
        storeTo(own, [0], asType(mine[i]!, word)),
        issue(shuffleName(distance, word), [tileAt(other, [0], [1]), tileAt(own, [0], [1])]),
      );
      const theirs = loadExpr(other, [0], { dtype: word, lanes: 1 });
      return freeze(asType(theirs, mine[i]!.dtype), names, block);
    });
}

/** A value in a type that has it. */
function asType(value: Expr, dtype: DType): Expr {
  return value.dtype === dtype ? value : castExpr(value, dtype, false);
}

/** Names a value here and now: what it is loaded from changes. */
export function freeze(value: Expr, names: Names, block: Block): Expr {
  const name = names.fresh("t");
  block.push({ kind: "let", name, value });
  return { kind: "local", name, dtype: value.dtype, lanes: value.lanes };
}

/** Tuples as one, of which each stands behind the ones before it: neighbours first. */
export function combineInOrder(
  inOrder: Monoid["combine"],
  tuples: readonly (readonly Expr[])[],
  block: Block,
  lanes = 1,
): readonly Expr[] {
  const scalar = laneSite(block, lanes);
  let parts = tuples;
  while (parts.length > 1) {
    parts = Array.from({ length: Math.ceil(parts.length / 2) }, (_, i) => {
      const [left, right] = [parts[2 * i]!, parts[2 * i + 1]];
      if (!right) return left;
      const args = [...left, ...right].map((e) => block.bind(e));
      return inOrder.map((e) => block.bind(lowerScalar(e, args, scalar)));
    });
  }
  return parts[0]!;
}

/** Partial tuples, of so many lanes each, as one, pairwise. */
export function combinePairwise(
  monoid: Monoid,
  partial: readonly (readonly Expr[])[],
  block: Block,
  lanes = 1,
): readonly Expr[] {
  const scalar = laneSite(block, lanes);
  let parts = partial;
  while (parts.length > 1) {
    const half = Math.ceil(parts.length / 2);
    parts = Array.from({ length: half }, (_, i) => {
      const right = parts[i + half];
      if (!right) return parts[i]!;
      const args = [...parts[i]!, ...right].map((e) => block.bind(e));
      return monoid.combine.map((e) => lowerScalar(e, args, scalar));
    });
  }
  return parts[0]!;
}

/** Where a monoid's expressions become values of so many lanes. */
function laneSite(block: Block, lanes: number): Parameters<typeof lowerScalar>[2] {
  const lane = lanes > 1 ? { name: "@lane", lanes } : undefined;
  return { lane, block, bindings: new Map(), ranges: new Map() };
}

/** A tuple for each lane of the components. */
export function lanesOf(components: readonly Expr[], lanes: number): readonly (readonly Expr[])[] {
  if (lanes === 1) return [components];
  return Array.from({ length: lanes }, (_, lane) =>
    components.map((operand): Expr => {
      return { kind: "extract", dtype: operand.dtype, lanes: 1, operand, lane };
    }),
  );
}

function shuffleName(distance: number, dtype: DType): string {
  return `shuffle.xor${distance}.${dtype}`;
}
