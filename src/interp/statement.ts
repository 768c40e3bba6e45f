/**
 * Interpreter of one statement over cells: reference tensors that know which elements have been
 * written. Folds run in float64 and are rounded once to their component's type, like the references;
 * every other scalar is rounded to its own type. Reading an element that nobody wrote, leaving a
 * tensor's bounds, or writing an element twice is a bug of whoever made the statement and throws.
 */
import type { Access, Indirect, Loop, Statement, Write } from "../region/nest.ts";
import { type DType, isBigDType, isFloatDType } from "../semantics/dtype.ts";
import { type IndexExpr, variablesOf } from "../semantics/index-expr.ts";
import {
  apply,
  argument,
  cast,
  literal,
  type ScalarExpr,
  scalarOperands,
} from "../semantics/scalar-expr.ts";
import { compileScalar, roundNumber, type ScalarValue } from "../semantics/scalar-meaning.ts";
import type { RefData } from "../semantics/tensor.ts";
import { reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import {
  type CompiledIndex,
  compileConditions,
  compileIndex,
  type Environment,
  type Slots,
} from "./compiled-index.ts";

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

/** Runs a statement for every point of its domain; `symbols` binds its parameters. */
export function runStatement(
  statement: Statement,
  cells: Cells,
  symbols: ReadonlyMap<string, number>,
): void {
  new StatementRun(statement, cells, symbols).runLoops(0);
}

type Reader = () => ScalarValue;

interface CompiledLoop {
  readonly slot: number;
  readonly extent: CompiledIndex;
}

/** A statement with its parts sorted into those of the write and those of one fold step. */
class StatementRun {
  readonly #statement: Statement;
  readonly #cells: Cells;
  readonly #slots: Map<string, number>;
  readonly #env: Environment;
  readonly #outer: readonly CompiledLoop[];
  readonly #inner: readonly CompiledLoop[];
  readonly #loadOuter: readonly (() => void)[];
  readonly #loadInner: readonly (() => void)[];
  readonly #outerGuard: (env: Environment) => boolean;
  readonly #innerGuard: (env: Environment) => boolean;
  readonly #reads: readonly Reader[];
  readonly #finishReads: readonly Reader[];
  readonly #writes: readonly ((value: ScalarValue) => void)[];
  readonly #body: Evaluator;
  readonly #combine: Evaluator;
  readonly #identity: readonly ScalarValue[];
  readonly #finish: Evaluator | undefined;

  constructor(statement: Statement, cells: Cells, symbols: ReadonlyMap<string, number>) {
    const { loops, indirects, guard, reduction } = statement;
    this.#statement = statement;
    this.#cells = cells;
    const names = [...symbols.keys(), ...loops.map((l) => l.name), ...indirects.map((v) => v.name)];
    this.#slots = new Map(names.map((name, slot) => [name, slot]));
    this.#env = new Float64Array(names.length);
    for (const [name, value] of symbols) this.#env[this.#slots.get(name)!] = value;
    const folds = reduction ? loops.filter((l) => l.kind === "reduce") : [];
    invariant(
      reduction || loops.every((l) => l.kind !== "reduce"),
      () => `${statement.name}: no fold`,
    );
    const inner = innerNames(statement);
    const isInner = (...exprs: readonly IndexExpr[]) =>
      [...variablesOf(...exprs)].some((name) => inner.has(name));
    this.#outer = loops.filter((l) => l.kind !== "reduce").map((l) => this.#compileLoop(l));
    this.#inner = folds.map((l) => this.#compileLoop(l));
    const load = (v: Indirect) => this.#compileIndirect(v);
    this.#loadOuter = indirects.filter((v) => !inner.has(v.name)).map(load);
    this.#loadInner = indirects.filter((v) => inner.has(v.name)).map(load);
    const slots: Slots = this.#slots;
    this.#outerGuard = compileConditions(
      guard.filter((c) => !isInner(c.expr)),
      slots,
    );
    this.#innerGuard = compileConditions(
      guard.filter((c) => isInner(c.expr)),
      slots,
    );
    this.#reads = statement.reads.map((a) => this.#compileRead(a));
    this.#finishReads = statement.finishReads.map((a) => this.#compileRead(a));
    this.#writes = statement.writes.map((w) => this.#compileWrite(w));
    this.#body = this.#evaluator(statement.body);
    this.#combine = this.#evaluator((reduction?.monoid.combine ?? []).map(widen));
    this.#identity = this.#evaluator(reduction?.monoid.identity ?? [])([]);
    this.#finish = statement.finish && this.#evaluator(statement.finish);
  }

  runLoops(depth: number): void {
    const loop = this.#outer[depth];
    if (!loop) {
      this.#runPoint();
      return;
    }
    const extent = loop.extent(this.#env);
    for (let i = 0; i < extent; i++) {
      this.#env[loop.slot] = i;
      this.runLoops(depth + 1);
    }
  }

  #runPoint(): void {
    if (!this.#outerGuard(this.#env)) return;
    for (const load of this.#loadOuter) load();
    const values = this.#statement.reduction ? this.#fold() : this.#body(readAll(this.#reads));
    const results = this.#finish
      ? this.#finish([...values, ...readAll(this.#finishReads)])
      : values;
    for (const [i, write] of this.#writes.entries()) write(results[i]!);
  }

  #fold(): readonly ScalarValue[] {
    let total = this.#identity;
    const step = (depth: number): void => {
      const loop = this.#inner[depth];
      if (!loop) {
        if (!this.#innerGuard(this.#env)) return;
        for (const load of this.#loadInner) load();
        total = this.#combine([...total, ...this.#body(readAll(this.#reads))]);
        return;
      }
      const extent = loop.extent(this.#env);
      for (let i = 0; i < extent; i++) {
        this.#env[loop.slot] = i;
        step(depth + 1);
      }
    };
    step(0);
    const { components } = this.#statement.reduction!.monoid;
    return total.map((value, i) =>
      typeof value === "bigint" ? value : roundNumber(components[i]!.dtype, value),
    );
  }

  #compileLoop({ name, extent }: Loop): CompiledLoop {
    return { slot: this.#slots.get(name)!, extent: compileIndex(extent, this.#slots) };
  }

  #compileRead(access: Access): Reader {
    const cell = this.#cells(access.tensor);
    const holds = compileConditions(access.guard, this.#slots);
    const offset = this.#compileOffset(cell, access.index);
    const fill = isBigDType(cell.dtype) ? BigInt(access.fill) : Number(access.fill);
    return () => {
      if (!holds(this.#env)) return fill;
      const at = offset();
      if (!cell.written[at]) invariant(false, () => this.#trouble(`reads unwritten ${cell.name}`));
      return cell.data[at]!;
    };
  }

  #compileIndirect({ name, access, extent, wraps, range }: Indirect): () => void {
    const slot = this.#slots.get(name)!;
    const read = this.#compileRead(access);
    const sizeOf = compileIndex(extent, this.#slots);
    return () => {
      const size = sizeOf(this.#env);
      const loaded = Number(read());
      const value = wraps && loaded < 0 ? loaded + size : loaded;
      if (value < 0 || value >= size) {
        invariant(range === "checked", () => this.#trouble(`${name} = ${value}`));
        reject("SEM001", `index ${loaded} of ${access.tensor} is outside extent ${size}`, {
          at: this.#statement.origin,
        });
      }
      this.#env[slot] = value;
    };
  }

  #compileWrite({ tensor, index, combine }: Write): (value: ScalarValue) => void {
    const cell = this.#cells(tensor);
    const offset = this.#compileOffset(cell, index);
    const loaded = new Set(this.#statement.indirects.map((v) => v.name));
    // The writes of a scatter may meet an element again.
    const updates =
      combine !== "overwrite" || [...variablesOf(...index)].some((n) => loaded.has(n));
    const merge = combine === "overwrite" ? undefined : combiner(cell.dtype, combine);
    return (value) => {
      const at = offset();
      if (cell.written[at] !== (merge ? 1 : 0) && !(updates && !merge)) {
        const what = merge ? "combines with an unwritten element of" : "writes twice to";
        invariant(false, () => this.#trouble(`${what} ${cell.name}`));
      }
      cell.data[at] = merge ? merge(cell.data[at]!, value) : value;
      cell.written[at] = 1;
    };
  }

  #compileOffset(cell: Cell, index: readonly IndexExpr[]): () => number {
    const axes = index.map((e) => compileIndex(e, this.#slots));
    const env = this.#env;
    return () => {
      let offset = 0;
      for (let axis = 0; axis < axes.length; axis++) {
        const at = axes[axis]!(env);
        const extent = cell.shape[axis]!;
        if (at < 0 || at >= extent) {
          invariant(false, () => this.#trouble(`${cell.name} axis ${axis} at ${at} of ${extent}`));
        }
        offset = offset * extent + at;
      }
      return offset;
    };
  }

  /** Expressions as one function of their arguments; index values see the current point. */
  #evaluator(exprs: readonly ScalarExpr[]): Evaluator {
    const compiled = exprs.map(compileScalar);
    const needsPoint = exprs.some(hasIndexValue);
    return (args) => {
      const point = needsPoint ? this.#point() : noPoint;
      return compiled.map((e) => e(args, point));
    };
  }

  #point(): Map<string, number> {
    return new Map([...this.#slots].map(([name, slot]) => [name, this.#env[slot]!]));
  }

  #trouble(what: string): string {
    const at = [...this.#point()].map(([name, value]) => `${name} = ${value}`).join(", ");
    return `${this.#statement.name} (${this.#statement.origin}): ${what} at ${at}`;
  }
}

type Evaluator = (args: readonly ScalarValue[]) => readonly ScalarValue[];

const noPoint: ReadonlyMap<string, number> = new Map();

function readAll(readers: readonly Reader[]): readonly ScalarValue[] {
  return readers.map((read) => read());
}

/** Names that change within a fold: its loops, and indices loaded at a place that depends on them. */
function innerNames({ loops, indirects }: Statement): ReadonlySet<string> {
  const inner = new Set(loops.filter((l) => l.kind === "reduce").map((l) => l.name));
  for (const { name, access } of indirects) {
    const used = variablesOf(...access.index, ...access.guard.map((c) => c.expr));
    if ([...used].some((n) => inner.has(n))) inner.add(name);
  }
  return inner;
}

function hasIndexValue(expr: ScalarExpr): boolean {
  return expr.kind === "index" || scalarOperands(expr).some(hasIndexValue);
}

function combiner(
  dtype: DType,
  op: "add" | "mul" | "max" | "min",
): (old: ScalarValue, value: ScalarValue) => ScalarValue {
  const meaning = compileScalar(apply(op, argument(0, dtype), argument(1, dtype)));
  return (old, value) => meaning([old, value], noPoint);
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
