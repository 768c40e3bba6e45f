/**
 * The arithmetic of a statement at one point where all its values are numbers: body, fold and finish as
 * functions over frames (number-approximate.ts). Where to read and which trips there are is
 * sample-statement.ts.
 */
import type { Statement } from "../region/nest.ts";
import { type DType, isBigDType, isFloatDType } from "../semantics/dtype.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";
import { distanceOfNumbers, spacingOf } from "./approximate.ts";
import {
  compileNumbers,
  NumberFrame,
  type NumberFunction,
  type PointNow,
  rounderTo,
  roundingTo,
} from "./number-approximate.ts";

/** What a read gives in the trips of one row of a fold, by trip. */
export interface ReadRow {
  readonly values: Float64Array;
  readonly errors: Float64Array;
}

export class SampleNumbers {
  /** What the statement reads at a point, and what its finish does. */
  readonly reads: NumberFrame;
  readonly #ends: NumberFrame;
  /** What the point writes. */
  readonly results: NumberFrame;
  readonly #body: readonly NumberFunction[];
  readonly #finish: readonly NumberFunction[] | undefined;
  readonly #fold: Fold | undefined;

  constructor(statement: Statement, functions: Functions) {
    const { body, finish, fold } = functions;
    this.#body = body;
    this.#finish = finish;
    this.#fold = fold;
    this.reads = new NumberFrame(statement.reads.length);
    this.#ends = new NumberFrame(body.length + statement.finishReads.length);
    this.results = new NumberFrame(Math.max(body.length, finish?.length ?? 0));
  }

  /**
   * Undefined where a value is a BigInt that does not hang on indices alone.
   * @param point where the statement is evaluated
   */
  static of(
    statement: Statement,
    typeOf: (tensor: string) => DType,
    point: PointNow,
  ): SampleNumbers | undefined {
    const accesses = [...statement.reads, ...statement.finishReads, ...statement.writes];
    if (accesses.some((a) => isBigDType(typeOf(a.tensor)))) return undefined;
    const body = compileAll(statement.body, false, point);
    const finish = statement.finish && compileAll(statement.finish, false, point);
    const isFolded = statement.reduction !== undefined;
    const fold = isFolded ? foldOf(statement) : undefined;
    if (!body || (statement.finish && !finish) || (isFolded && !fold)) return undefined;
    return new SampleNumbers(statement, { body, finish, fold });
  }

  start(): void {
    const { sums, start } = this.#fold!;
    for (let i = 0; i < start.length; i++) sums.set(i, start[i]![0], start[i]![1]);
  }

  /** One trip of the fold, on what was read. */
  step(): void {
    const { reads } = this;
    const { sums, next, combine } = this.#fold!;
    const count = combine.length;
    for (let i = 0; i < count; i++) sums.set(count + i, this.#body[i]!(reads), reads.error);
    for (let i = 0; i < count; i++) next.set(i, combine[i]!(sums), sums.error);
    for (let i = 0; i < count; i++) sums.set(i, next.values[i]!, next.errors[i]!);
  }

  /** Trips `from` to `to`, excluded, in order. */
  foldRow(rows: readonly ReadRow[], from: number, to: number): void {
    const { adds } = this.#fold!;
    if (adds?.product)
      this.#addProducts(
        adds,
        adds.product.map((r) => rows[r]!),
        from,
        to,
      );
    else {
      const { reads } = this;
      for (let k = from; k < to; k++) {
        for (let r = 0; r < rows.length; r++) {
          reads.set(r, rows[r]!.values[k]!, rows[r]!.errors[k]!);
        }
        this.step();
      }
    }
  }

  /** The same as `step` of each trip, where the fold is a sum of f32 products: the bulk of all trips. */
  #addProducts(
    { relative, least }: Adds,
    [left, right]: readonly ReadRow[],
    from: number,
    to: number,
  ): void {
    const { sums } = this.#fold!;
    let total = sums.values[0]!;
    let error = sums.errors[0]!;
    for (let k = from; k < to; k++) {
      const a = left!.values[k]!;
      const b = right!.values[k]!;
      const errorA = left!.errors[k]!;
      const errorB = right!.errors[k]!;
      const term = Math.fround(a * b);
      let own = roundingBy(Math.abs(term), relativeSingle, leastSingle);
      if (errorA !== 0 && errorB !== 0) own += errorA * errorB;
      let moved = 0;
      if (errorA !== 0) {
        moved = spreadOf(Math.fround((a - errorA) * b), Math.fround((a + errorA) * b), term);
      }
      if (errorB !== 0) {
        moved += spreadOf(Math.fround(a * (b - errorB)), Math.fround(a * (b + errorB)), term);
      }
      own += moved;
      const sum = total + term;
      moved = 0;
      if (error !== 0) moved = spreadOf(total - error + term, total + error + term, sum);
      if (own !== 0) moved += spreadOf(total + (term - own), total + (term + own), sum);
      error = roundingBy(Math.abs(total) + Math.abs(term), relative, least) + moved;
      total = sum;
    }
    sums.set(0, total, error);
  }

  /** The folded values, brought to the types of their components. */
  endFold(): void {
    const { sums, ends } = this.#fold!;
    for (let i = 0; i < ends.length; i++) {
      const { round, rounding } = ends[i]!;
      const value = sums.values[i]!;
      this.results.set(i, round(value), sums.errors[i]! + rounding(value));
    }
  }

  /** The values of a point that folds nothing, from what was read. */
  evaluate(): void {
    const { reads, results } = this;
    const body = this.#body;
    for (let i = 0; i < body.length; i++) results.set(i, body[i]!(reads), reads.error);
  }

  /** @param read puts what the finish reads into a frame, from a slot on */
  finish(read: (frame: NumberFrame, from: number) => void): void {
    const finish = this.#finish;
    if (!finish) return;
    const { results } = this;
    const ends = this.#ends;
    const count = this.#body.length;
    for (let i = 0; i < count; i++) ends.set(i, results.values[i]!, results.errors[i]!);
    read(ends, count);
    for (let i = 0; i < finish.length; i++) results.set(i, finish[i]!(ends), ends.error);
  }
}

interface Functions {
  readonly body: readonly NumberFunction[];
  readonly finish: readonly NumberFunction[] | undefined;
  readonly fold: Fold | undefined;
}

/** A fold that adds one component's terms. */
interface Adds {
  /** Spacing of the component's type (approximate.ts). */
  readonly relative: number;
  readonly least: number;
  /** The reads whose f32 product a term is. */
  readonly product: readonly [number, number] | undefined;
}

interface Fold {
  readonly adds: Adds | undefined;
  readonly combine: readonly NumberFunction[];
  /** Values and errors before the first trip. */
  readonly start: readonly (readonly [number, number])[];
  readonly ends: readonly {
    readonly round: (x: number) => number;
    readonly rounding: (x: number) => number;
  }[];
  /** Totals and behind them the terms of a trip; the totals after it. */
  readonly sums: NumberFrame;
  readonly next: NumberFrame;
}

function foldOf(statement: Statement): Fold | undefined {
  const { reduction } = statement;
  const { components, combine: merges, identity } = reduction!.monoid;
  const combine = compileAll(merges, true);
  const start = compileAll(identity, false);
  if (!combine || !start || components.some((c) => isBigDType(c.dtype))) return undefined;
  const none = new NumberFrame(0);
  return {
    adds: addsOf(statement),
    combine,
    start: start.map((compute) => [compute(none), none.error] as const),
    ends: components.map(({ dtype }) => ({ round: rounderTo(dtype), rounding: roundingTo(dtype) })),
    sums: new NumberFrame(2 * combine.length),
    next: new NumberFrame(combine.length),
  };
}

/** How a fold adds the terms of one component of floats; undefined where it does something else. */
function addsOf({ reduction, body }: Statement): Adds | undefined {
  const { components, combine } = reduction!.monoid;
  const [merge] = combine;
  const { dtype } = components[0]!;
  if (combine.length !== 1 || body.length !== 1 || !isFloatDType(dtype)) return undefined;
  if (merge!.kind !== "apply" || merge!.op !== "add" || merge!.dtype !== dtype) return undefined;
  const inOrder = merge!.operands.every((o, i) => o.kind === "argument" && o.index === i);
  return inOrder ? { ...spacingOf(dtype), product: singleProduct(body[0]!) } : undefined;
}

function singleProduct(body: ScalarExpr): readonly [number, number] | undefined {
  if (body.kind !== "apply" || body.op !== "mul" || body.dtype !== "f32") return undefined;
  const [a, b] = body.operands;
  return a!.kind === "argument" && b!.kind === "argument" ? [a!.index, b!.index] : undefined;
}

const { relative: relativeSingle, least: leastSingle } = spacingOf("f32");

function roundingBy(size: number, relative: number, least: number): number {
  return Number.isFinite(size) ? size * relative + least : 0;
}

/** How far a value moves between the ends of an operand's interval. */
function spreadOf(low: number, high: number, value: number): number {
  return Math.max(distanceOfNumbers(low, value), distanceOfNumbers(high, value));
}

function compileAll(
  exprs: Statement["body"],
  fold: boolean,
  point?: PointNow,
): readonly NumberFunction[] | undefined {
  const found = exprs.map((e) => compileNumbers(e, fold, point));
  const known = found.filter((f) => f !== undefined);
  return known.length === found.length ? known : undefined;
}
