/**
 * Interpreter of one statement over cells: reference tensors that know which elements have been
 * written. Folds run in float64 and are rounded once to their component's type, like the references;
 * every other scalar is rounded to its own type. Reading an element that nobody wrote, leaving a
 * tensor's bounds, or writing an element twice is a bug of whoever made the statement and throws.
 */
import type { Access, Indirect, Statement, Write } from "../region/nest.ts";
import type { Condition } from "../semantics/condition.ts";
import { type DType, isBigDType, isFloatDType } from "../semantics/dtype.ts";
import { evaluate, type IndexExpr, variablesOf } from "../semantics/index-expr.ts";
import { apply, argument, cast, literal, type ScalarExpr } from "../semantics/scalar-expr.ts";
import { compileScalar, roundNumber, type ScalarValue } from "../semantics/scalar-meaning.ts";
import type { RefData } from "../semantics/tensor.ts";
import { reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";

/** A tensor with poison: `written[i]` is 0 until element i has been written. */
export interface Cell {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: RefData;
  readonly written: Uint8Array;
}

/** Looks up a tensor by name. */
export type Cells = (tensor: string) => Cell;

type Point = Map<string, number>;

/** Runs a statement for every point of its domain; `symbols` binds its parameters. */
export function runStatement(
  statement: Statement,
  cells: Cells,
  symbols: ReadonlyMap<string, number>,
): void {
  const run = new StatementRun(statement, cells);
  run.runLoops(0, new Map(symbols));
}

/** A statement with its parts sorted into those of the write and those of one fold step. */
class StatementRun {
  readonly #statement: Statement;
  readonly #cells: Cells;
  readonly #outer: Statement["loops"];
  readonly #inner: Statement["loops"];
  readonly #outerIndirects: readonly Indirect[];
  readonly #innerIndirects: readonly Indirect[];
  readonly #outerGuard: readonly Condition[];
  readonly #innerGuard: readonly Condition[];
  readonly #body: readonly ReturnType<typeof compileScalar>[];
  readonly #combine: readonly ReturnType<typeof compileScalar>[];
  readonly #finish: readonly ReturnType<typeof compileScalar>[] | undefined;
  /** Writes that may meet an element again: those of a scatter. */
  readonly #updates: ReadonlySet<Write>;

  constructor(statement: Statement, cells: Cells) {
    this.#statement = statement;
    this.#cells = cells;
    this.#outer = statement.loops.filter((l) => l.kind !== "reduce");
    this.#inner = statement.loops.filter((l) => l.kind === "reduce");
    const folded = new Set(this.#inner.map((l) => l.name));
    const mentions = (exprs: readonly IndexExpr[]) =>
      [...variablesOf(...exprs)].some((name) => folded.has(name));
    for (const { name, access } of statement.indirects) {
      if (mentions([...access.index, ...access.guard.map((c) => c.expr)])) folded.add(name);
    }
    this.#outerIndirects = statement.indirects.filter((v) => !folded.has(v.name));
    this.#innerIndirects = statement.indirects.filter((v) => folded.has(v.name));
    this.#outerGuard = statement.guard.filter((c) => !mentions([c.expr]));
    this.#innerGuard = statement.guard.filter((c) => mentions([c.expr]));
    this.#body = statement.body.map(compileScalar);
    this.#combine = (statement.reduction?.monoid.combine ?? []).map((e) => compileScalar(widen(e)));
    this.#finish = statement.finish?.map(compileScalar);
    const loaded = new Set(statement.indirects.map((v) => v.name));
    this.#updates = new Set(
      statement.writes.filter(
        ({ combine, index }) =>
          combine !== "overwrite" || [...variablesOf(...index)].some((name) => loaded.has(name)),
      ),
    );
    invariant(this.#inner.length === 0 || statement.reduction, () => `${statement.name}: no fold`);
  }

  runLoops(depth: number, point: Point): void {
    const loop = this.#outer[depth];
    if (!loop) {
      this.#runPoint(point);
      return;
    }
    const extent = evaluate(loop.extent, point);
    for (let i = 0; i < extent; i++) {
      point.set(loop.name, i);
      this.runLoops(depth + 1, point);
    }
    point.delete(loop.name);
  }

  #runPoint(point: Point): void {
    const { writes, finishReads, reduction } = this.#statement;
    if (!holds(this.#outerGuard, point)) return;
    this.#loadIndirects(this.#outerIndirects, point);
    const values = reduction ? this.#fold(point) : this.#evaluateBody(point);
    const results = this.#finish
      ? this.#apply(this.#finish, [...values, ...this.#read(finishReads, point)], point)
      : values;
    for (const [i, write] of writes.entries()) {
      this.#write(write, results[i]!, point);
    }
  }

  #fold(point: Point): readonly ScalarValue[] {
    const { identity, components } = this.#statement.reduction!.monoid;
    let total: readonly ScalarValue[] = identity.map((e) => compileScalar(e)([], point));
    const step = (depth: number): void => {
      const loop = this.#inner[depth];
      if (!loop) {
        if (!holds(this.#innerGuard, point)) return;
        this.#loadIndirects(this.#innerIndirects, point);
        total = this.#apply(this.#combine, [...total, ...this.#evaluateBody(point)], point);
        return;
      }
      const extent = evaluate(loop.extent, point);
      for (let i = 0; i < extent; i++) {
        point.set(loop.name, i);
        step(depth + 1);
      }
    };
    step(0);
    return total.map((value, i) => {
      const { dtype } = components[i]!;
      return typeof value === "bigint" ? value : roundNumber(dtype, value);
    });
  }

  #evaluateBody(point: Point): readonly ScalarValue[] {
    return this.#apply(this.#body, this.#read(this.#statement.reads, point), point);
  }

  #apply(
    exprs: readonly ReturnType<typeof compileScalar>[],
    args: readonly ScalarValue[],
    point: Point,
  ): readonly ScalarValue[] {
    return exprs.map((e) => e(args, point));
  }

  #read(accesses: readonly Access[], point: Point): readonly ScalarValue[] {
    return accesses.map((access) => this.#readOne(access, point));
  }

  #readOne(access: Access, point: Point): ScalarValue {
    const cell = this.#cells(access.tensor);
    if (!holds(access.guard, point)) {
      return isBigDType(cell.dtype) ? BigInt(access.fill) : Number(access.fill);
    }
    const at = this.#offset(cell, access.index, point);
    invariant(cell.written[at], () => this.#trouble(`reads unwritten ${cell.name}`, point));
    return cell.data[at]!;
  }

  #loadIndirects(indirects: readonly Indirect[], point: Point): void {
    for (const { name, access, extent, wraps, range } of indirects) {
      const size = evaluate(extent, point);
      const loaded = Number(this.#readOne(access, point));
      const value = wraps && loaded < 0 ? loaded + size : loaded;
      if (value < 0 || value >= size) {
        invariant(range === "checked", () => this.#trouble(`${name} = ${value}`, point));
        reject("SEM001", `index ${loaded} of ${access.tensor} is outside extent ${size}`, {
          at: this.#statement.origin,
        });
      }
      point.set(name, value);
    }
  }

  #write(write: Write, value: ScalarValue, point: Point): void {
    const cell = this.#cells(write.tensor);
    const at = this.#offset(cell, write.index, point);
    if (!this.#updates.has(write)) {
      invariant(!cell.written[at], () => this.#trouble(`writes ${cell.name} twice`, point));
    }
    cell.data[at] = write.combine === "overwrite" ? value : combine(cell, at, write.combine, value);
    cell.written[at] = 1;
  }

  #offset(cell: Cell, index: readonly IndexExpr[], point: Point): number {
    let offset = 0;
    for (const [axis, expr] of index.entries()) {
      const at = evaluate(expr, point);
      invariant(at >= 0 && at < cell.shape[axis]!, () =>
        this.#trouble(`${cell.name} axis ${axis} at ${at} of ${cell.shape[axis]}`, point),
      );
      offset = offset * cell.shape[axis]! + at;
    }
    return offset;
  }

  #trouble(what: string, point: Point): string {
    const at = [...point].map(([name, value]) => `${name} = ${value}`).join(", ");
    return `${this.#statement.name} (${this.#statement.origin}): ${what} at ${at}`;
  }
}

function combine(cell: Cell, at: number, op: "add" | "mul" | "max" | "min", value: ScalarValue) {
  invariant(cell.written[at], () => `${cell.name}: combines with an unwritten element`);
  const expr = apply(op, argument(0, cell.dtype), argument(1, cell.dtype));
  return compileScalar(expr)([cell.data[at]!, value], new Map());
}

function holds(conditions: readonly Condition[], point: Point): boolean {
  return conditions.every(({ kind, expr }) => {
    const value = evaluate(expr, point);
    return kind === "zero" ? value === 0 : value >= 0;
  });
}

/** The same expression with every float computed in f64. */
function widen(expr: ScalarExpr): ScalarExpr {
  const dtype = isFloatDType(expr.dtype) ? "f64" : expr.dtype;
  switch (expr.kind) {
    case "literal":
      return literal(expr.value, dtype);
    case "argument":
      return argument(expr.index, dtype);
    case "index":
      return { ...expr, dtype };
    case "cast":
      return cast(widen(expr.operand), dtype, expr.saturate);
    case "apply":
      return apply(expr.op, ...expr.operands.map(widen));
  }
}
