/**
 * Small questions and rewritings that everything about statements shares: ranges of the loops, keys of
 * accesses, substitution of loop variables, removal of guards that always hold.
 */
import { type Condition, printCondition } from "../semantics/condition.ts";
import { type DType, isBigDType } from "../semantics/dtype.ts";
import {
  type IndexExpr,
  type IndexLike,
  splitLinear,
  sub,
  substitute,
  variable,
} from "../semantics/index-expr.ts";
import { type IndexRange, loopRange, rangeOf, simplify } from "../semantics/index-range.ts";
import { literal, mapScalar, type ScalarExpr, scalarOperands } from "../semantics/scalar-expr.ts";
import type { Access, Indirect, Loop, LoopKind, NestProgram, Statement } from "./nest.ts";

export type Bindings = ReadonlyMap<string, IndexLike>;
export type Symbols = NestProgram["symbols"];

/** Ranges of the symbols alone. */
export function symbolRanges(symbols: Symbols): Map<string, IndexRange> {
  return new Map(symbols.map((s) => [s.name, s.range]));
}

/** Ranges of everything an index expression of the statement may mention. */
export function statementRanges(
  statement: Pick<Statement, "loops" | "indirects">,
  symbols: Symbols,
): Map<string, IndexRange> {
  const ranges = symbolRanges(symbols);
  for (const loop of statement.loops) ranges.set(loop.name, loopRange(loop.extent, ranges));
  for (const { name, extent } of statement.indirects) ranges.set(name, loopRange(extent, ranges));
  return ranges;
}

export function loopsOfKind(statement: Statement, kind: LoopKind): readonly Loop[] {
  return statement.loops.filter((loop) => loop.kind === kind);
}

/** Equal keys mean that two accesses give the same value in every iteration. */
export function accessKey(access: Access): string {
  const at = access.index.map((e) => e.key).join(", ");
  const guard = access.guard.map(printCondition).join(" && ");
  return `${access.tensor}[${at}] ${guard}${guard === "" ? "" : ` else ${access.fill}`}`;
}

/**
 * Guards that neither the ranges nor the loops prove, each once. A condition that is linear in a loop
 * variable is least at one end of the loop, so it holds everywhere if it holds there.
 */
export function pruneConditions(
  conditions: readonly Condition[],
  ranges: ReadonlyMap<string, IndexRange>,
  loops: readonly Pick<Loop, "name" | "extent">[] = [],
): readonly Condition[] {
  const kept = new Map<string, Condition>();
  for (const { kind, expr } of conditions) {
    const simpler = { kind, expr: simplify(expr, ranges) };
    const { min, max } = rangeOf(simpler.expr, ranges);
    const holds =
      kind === "zero"
        ? min === 0 && max === 0
        : min >= 0 || rangeOf(leastOver(simpler.expr, loops), ranges).min >= 0;
    if (!holds) kept.set(printCondition(simpler), simpler);
  }
  return [...kept.values()];
}

/** The least value over the loops that stand linearly in an expression, innermost first. */
function leastOver(expr: IndexExpr, loops: readonly Pick<Loop, "name" | "extent">[]): IndexExpr {
  return [...loops].reverse().reduce((least, { name, extent }) => {
    const split = splitLinear(least, name);
    if (!split || split.coefficient === 0) return least;
    return substitute(least, new Map([[name, split.coefficient > 0 ? 0 : sub(extent, 1)]]));
  }, expr);
}

export function substituteConditions(
  conditions: readonly Condition[],
  bindings: Bindings,
): readonly Condition[] {
  return conditions.map(({ kind, expr }) => ({ kind, expr: substitute(expr, bindings) }));
}

export function substituteAccess(access: Access, bindings: Bindings): Access {
  return {
    ...access,
    index: access.index.map((e) => substitute(e, bindings)),
    guard: substituteConditions(access.guard, bindings),
  };
}

/** Replaces loop variables inside index values. */
export function substituteScalar(expr: ScalarExpr, bindings: Bindings): ScalarExpr {
  return mapScalar(expr, (leaf) =>
    leaf.kind === "index" ? { ...leaf, expr: substitute(leaf.expr, bindings) } : leaf,
  );
}

export function substituteIndirect(indirect: Indirect, bindings: Bindings): Indirect {
  return {
    ...indirect,
    access: substituteAccess(indirect.access, bindings),
    extent: substitute(indirect.extent, bindings),
  };
}

/** The statement with every loop and indirect variable renamed. */
export function renameVariables(statement: Statement, rename: (name: string) => string): Statement {
  const own = [...statement.loops, ...statement.indirects].map((v) => v.name);
  const bindings = new Map<string, IndexExpr>(own.map((n) => [n, variable(rename(n))]));
  return {
    ...substituteVariables(statement, bindings),
    loops: statement.loops.map((loop) => ({
      ...loop,
      name: rename(loop.name),
      extent: substitute(loop.extent, bindings),
    })),
    indirects: statement.indirects.map((v) => ({
      ...substituteIndirect(v, bindings),
      name: rename(v.name),
    })),
  };
}

/** Replaces variables in guards, accesses, bodies and writes; loops stay as they are. */
export function substituteVariables(statement: Statement, bindings: Bindings): Statement {
  const { finish, finishReads } = statement;
  return {
    ...statement,
    guard: substituteConditions(statement.guard, bindings),
    indirects: statement.indirects.map((v) => substituteIndirect(v, bindings)),
    reads: statement.reads.map((a) => substituteAccess(a, bindings)),
    body: statement.body.map((e) => substituteScalar(e, bindings)),
    ...(finish ? { finish: finish.map((e) => substituteScalar(e, bindings)) } : {}),
    ...(finishReads ? { finishReads: finishReads.map((a) => substituteAccess(a, bindings)) } : {}),
    writes: statement.writes.map((w) => ({
      ...w,
      index: w.index.map((e) => substitute(e, bindings)),
    })),
  };
}

/** The value `x` as a scalar of `dtype`: 64-bit integers are BigInts. */
export function numberAs(dtype: DType, x: number): number | bigint {
  return isBigDType(dtype) ? BigInt(x) : x;
}

export function literalOf(dtype: DType, x: number | bigint): ScalarExpr {
  const big = isBigDType(dtype);
  return literal(big ? BigInt(x) : Number(x), dtype);
}

/** Number of nodes of an expression written out as a tree. */
export function scalarSize(expr: ScalarExpr): number {
  return scalarOperands(expr).reduce((sum, e) => sum + scalarSize(e), 1);
}
