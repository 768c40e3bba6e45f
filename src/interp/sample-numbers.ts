/**
 * The arithmetic of a statement at one point where all its values are numbers: body, fold and finish as
 * functions over frames (number-approximate.ts). Where to read and which trips there are is
 * sample-statement.ts.
 */
import type { Statement } from "../region/nest.ts";
import { type DType, isBigDType } from "../semantics/dtype.ts";
import {
  compileNumbers,
  NumberFrame,
  type NumberFunction,
  rounderTo,
  roundingTo,
} from "./number-approximate.ts";

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

  /** Undefined where a value is a BigInt or an index. */
  static of(statement: Statement, typeOf: (tensor: string) => DType): SampleNumbers | undefined {
    const accesses = [...statement.reads, ...statement.finishReads, ...statement.writes];
    if (accesses.some((a) => isBigDType(typeOf(a.tensor)))) return undefined;
    const body = compileAll(statement.body, false);
    const finish = statement.finish && compileAll(statement.finish, false);
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

interface Fold {
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

function foldOf({ reduction }: Statement): Fold | undefined {
  const { components, combine: merges, identity } = reduction!.monoid;
  const combine = compileAll(merges, true);
  const start = compileAll(identity, false);
  if (!combine || !start || components.some((c) => isBigDType(c.dtype))) return undefined;
  const none = new NumberFrame(0);
  return {
    combine,
    start: start.map((compute) => [compute(none), none.error] as const),
    ends: components.map(({ dtype }) => ({ round: rounderTo(dtype), rounding: roundingTo(dtype) })),
    sums: new NumberFrame(2 * combine.length),
    next: new NumberFrame(combine.length),
  };
}

function compileAll(
  exprs: Statement["body"],
  fold: boolean,
): readonly NumberFunction[] | undefined {
  const found = exprs.map((e) => compileNumbers(e, fold));
  const known = found.filter((f) => f !== undefined);
  return known.length === found.length ? known : undefined;
}
