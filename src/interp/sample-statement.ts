/**
 * The oracle of single elements: what a statement writes at one point of its loops, in float64, with
 * the error that rounding may bring a program to (approximate.ts). Only the operands that the point
 * needs are read, so that a check by samples costs what its samples cost. The whole-tensor oracle is
 * statement.ts; a property test holds the two together.
 *
 * A sum of products, where nearly all the time goes, runs on numbers alone. Its error is that of K
 * roundings of partial sums: in any order about the root of the sum of their squares (Higham and Mary,
 * "A new approach to probabilistic rounding error analysis", 2019), times a factor that no run exceeds.
 */
import type { Access, Statement } from "../region/nest.ts";
import { type DType, isFloatDType } from "../semantics/dtype.ts";
import { add, type IndexExpr, mul, positiveMod, variablesOf } from "../semantics/index-expr.ts";
import { type ScalarExpr, scalarOperands } from "../semantics/scalar-expr.ts";
import { castScalar, roundNumber, type ScalarValue } from "../semantics/scalar-meaning.ts";
import { reject } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import {
  type Approximate,
  type ApproximateFunction,
  compileApproximate,
  roundingOf,
  spacingOf,
} from "./approximate.ts";
import type { Environment } from "./compiled-index.ts";
import { compileForm, type LinearForm } from "./linear-form.ts";
import { NumberFrame } from "./number-approximate.ts";
import { integerProductOf, type ProductBody, productOf } from "./product-body.ts";
import { type ReadRow, SampleNumbers } from "./sample-numbers.ts";

/** A tensor whose elements can be asked for one by one. */
export interface SampleSource {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** The exact value at a row-major offset. */
  readonly element: (offset: number) => ScalarValue;
  /** For values that are themselves computed: with their error. */
  readonly approximate?: (offset: number) => Approximate;
  /** The same of a type whose values are numbers, into a slot of a frame. */
  readonly numbers?: (offset: number, frame: NumberFrame, slot: number) => void;
  /** The elements as an array that repeats: element i is `data[(i + phase) % data.length]`. */
  readonly repeats?: { readonly data: Float64Array; readonly phase: number };
}

/** One element that a point writes. */
export interface SampledElement extends Approximate {
  readonly tensor: string;
  readonly offset: number;
}

/** No run has been seen beyond; for up to 16 terms it is the worst case. */
const orderFactor = 4;

interface GuardForm {
  readonly isZero: boolean;
  readonly form: LinearForm;
}

interface Reader {
  readonly offset: LinearForm;
  readonly guard: readonly GuardForm[];
  readonly fill: ScalarValue;
  readonly source: SampleSource;
}

interface FoldLoop {
  readonly slot: number;
  readonly extent: LinearForm;
}

export class StatementSampler {
  readonly #statement: Statement;
  readonly #symbols: ReadonlyMap<string, number>;
  readonly #slots: ReadonlyMap<string, number>;
  readonly #env: Environment;
  readonly #innermost: string | undefined;
  readonly #outer: readonly FoldLoop[];
  readonly #folds: readonly FoldLoop[];
  readonly #outerGuard: readonly GuardForm[];
  readonly #innerGuard: readonly GuardForm[];
  readonly #outerLoads: readonly (() => void)[];
  readonly #innerLoads: readonly (() => void)[];
  readonly #reads: readonly Reader[];
  readonly #finishReads: readonly Reader[];
  readonly #writes: readonly { readonly tensor: string; readonly offset: LinearForm }[];
  readonly #body: readonly ApproximateFunction[];
  readonly #combine: readonly ApproximateFunction[];
  readonly #finish: readonly ApproximateFunction[] | undefined;
  readonly #needsPoint: boolean;
  /** Index variables and symbols by name, where an expression asks for them. */
  readonly #pointNow = new Map<string, number>();
  readonly #product: ProductFold | undefined;
  readonly #numbers: SampleNumbers | undefined;
  /** Where a row of trips is read at once: of each read what it gives in them. */
  readonly #rows: ReadRow[] | undefined;
  readonly #one = new NumberFrame(1);
  /** Room for the terms of one row of the innermost fold. */
  #terms = new Float64Array(0);
  /** Trips of that row, and of one of its reads. */
  readonly #row: Trips = { from: 0, to: 0 };
  readonly #readTrips: Trips = { from: 0, to: 0 };

  /** What is folded for one element, at most: terms of all trips. */
  get terms(): number {
    return this.#folds.reduce(
      (count, { extent }) => count * Math.max(0, extent.value(this.#env)),
      1,
    );
  }

  constructor(
    statement: Statement,
    symbols: ReadonlyMap<string, number>,
    sourceOf: (tensor: string) => SampleSource,
  ) {
    const { loops, indirects, guard, reduction, finish } = statement;
    this.#statement = statement;
    this.#symbols = symbols;
    const names = [...loops.map((l) => l.name), ...indirects.map((v) => v.name)];
    this.#slots = new Map(names.map((name, slot) => [name, slot]));
    this.#env = new Float64Array(names.length);
    const folds = loops.filter((l) => l.kind === "reduce");
    this.#innermost = folds.at(-1)?.name;
    const loop = ({ name, extent }: Statement["loops"][number]): FoldLoop => ({
      slot: this.#slots.get(name)!,
      extent: this.#form(extent),
    });
    this.#outer = loops.filter((l) => l.kind !== "reduce").map(loop);
    this.#folds = folds.map(loop);
    const inner = innerNames(statement);
    const isInner = (...exprs: readonly IndexExpr[]): boolean =>
      [...variablesOf(...exprs)].some((name) => inner.has(name));
    this.#outerGuard = this.#guards(guard.filter((c) => !isInner(c.expr)));
    this.#innerGuard = this.#guards(guard.filter((c) => isInner(c.expr)));
    const reader = (a: Access): Reader => this.#reader(a, sourceOf(a.tensor));
    this.#reads = statement.reads.map(reader);
    this.#finishReads = statement.finishReads.map(reader);
    const load = (v: Statement["indirects"][number]) => this.#loader(v, reader(v.access));
    this.#outerLoads = indirects.filter((v) => !inner.has(v.name)).map(load);
    this.#innerLoads = indirects.filter((v) => inner.has(v.name)).map(load);
    this.#writes = statement.writes.map(({ tensor, index }) => ({
      tensor,
      offset: this.#form(flatten(index, sourceOf(tensor).shape)),
    }));
    this.#body = statement.body.map((e) => compileApproximate(e));
    this.#combine = (reduction?.monoid.combine ?? []).map((e) => compileApproximate(e, true));
    this.#finish = finish?.map((e) => compileApproximate(e));
    this.#needsPoint = [...statement.body, ...(finish ?? [])].some(hasIndexValue);
    this.#product = this.#asProduct();
    const typeOf = (tensor: string): DType => sourceOf(tensor).dtype;
    for (const [name, value] of symbols) this.#pointNow.set(name, value);
    this.#numbers = SampleNumbers.of(statement, typeOf, () => this.#point());
    this.#rows = this.#hasRows() ? this.#reads.map(() => emptyRow) : undefined;
  }

  /** Extents of the loops that are not folded, each for the values of those before it. */
  extent(axis: number, point: readonly number[]): number {
    this.#bind(point);
    return this.#outer[axis]!.extent.value(this.#env);
  }

  get axes(): number {
    return this.#outer.length;
  }

  /** Offsets that the point writes, without computing the values; none outside the domain. */
  offsetsAt(point: readonly number[]): readonly number[] {
    if (!this.#enter(point)) return [];
    return this.#writes.map((w) => w.offset.value(this.#env));
  }

  /** What the point writes; nothing outside the guard. */
  valuesAt(point: readonly number[]): readonly SampledElement[] {
    if (!this.#enter(point)) return [];
    if (this.#numbers) return this.#sampledNumbers(this.#numbers);
    const at = this.#point();
    const values = this.#statement.reduction
      ? this.#fold(at)
      : this.#body.map((e) => e(this.#readAll(this.#reads), at));
    const args = this.#finish && [...values, ...this.#readAll(this.#finishReads)];
    const results = args ? this.#finish!.map((e) => e(args, at)) : values;
    return this.#writes.map(({ tensor, offset }, i) => ({
      tensor,
      offset: offset.value(this.#env),
      ...results[i]!,
    }));
  }

  /**
   * What one of the writes is at a point, a number, into a slot of a frame; false outside the guard.
   * @param which the number of the write
   */
  numberAt(point: readonly number[], which: number, into: NumberFrame, slot: number): boolean {
    if (!this.#numbers) {
      const element = this.valuesAt(point)[which];
      if (element) into.set(slot, Number(element.value), element.error);
      return element !== undefined;
    }
    if (!this.#enter(point)) return false;
    const { values, errors } = this.#compute(this.#numbers);
    into.set(slot, values[which]!, errors[which]!);
    return true;
  }

  #sampledNumbers(numbers: SampleNumbers): readonly SampledElement[] {
    const { values, errors } = this.#compute(numbers);
    return this.#writes.map(({ tensor, offset }, i) => ({
      tensor,
      offset: offset.value(this.#env),
      value: values[i]!,
      error: errors[i]!,
    }));
  }

  #compute(numbers: SampleNumbers): NumberFrame {
    const { reduction } = this.#statement;
    if (this.#product) {
      const { dtype } = reduction!.monoid.components[0]!;
      const { value, error } = this.#foldProducts(this.#product, dtype);
      numbers.results.set(0, Number(value), error);
    } else if (reduction) {
      numbers.start();
      this.#stepNumbers(numbers, 0);
      numbers.endFold();
    } else {
      this.#readNumbers(this.#reads, numbers.reads, 0);
      numbers.evaluate();
    }
    numbers.finish((frame, from) => this.#readNumbers(this.#finishReads, frame, from));
    return numbers.results;
  }

  #stepNumbers(numbers: SampleNumbers, depth: number): void {
    const loop = this.#folds[depth];
    if (!loop) {
      if (!holds(this.#innerGuard, this.#env)) return;
      for (const load of this.#innerLoads) load();
      this.#readNumbers(this.#reads, numbers.reads, 0);
      numbers.step();
      return;
    }
    const extent = loop.extent.value(this.#env);
    if (this.#rows && depth === this.#folds.length - 1) {
      this.#env[loop.slot] = 0;
      this.#foldNumberRow(numbers, this.#rows, extent);
      return;
    }
    for (let i = 0; i < extent; i++) {
      this.#env[loop.slot] = i;
      this.#stepNumbers(numbers, depth + 1);
    }
  }

  /** All trips of the innermost loop, now at 0. */
  #foldNumberRow(numbers: SampleNumbers, rows: ReadRow[], extent: number): void {
    findTrips(this.#innerGuard, this.#env, extent, this.#row);
    const { from, to } = this.#row;
    if (from >= to) return;
    for (let r = 0; r < rows.length; r++) {
      if (rows[r]!.values.length < to) rows[r] = rowOf(2 * to);
      this.#readRow(this.#reads[r]!, rows[r]!, from, to);
    }
    numbers.foldRow(rows, from, to);
  }

  /** What a read gives in each trip of the innermost loop, now at 0. */
  #readRow(reader: Reader, { values, errors }: ReadRow, from: number, to: number): void {
    const { offset, guard, fill, source } = reader;
    findTrips(guard, this.#env, to, this.#readTrips);
    const first = Math.min(Math.max(from, this.#readTrips.from), to);
    const last = Math.max(first, Math.min(to, this.#readTrips.to));
    if (first > from || last < to) {
      values.fill(fill as number, from, to);
      errors.fill(0, from, to);
    }
    const step = offset.step!;
    let at = offset.value(this.#env) + first * step;
    if (source.repeats && !source.approximate) {
      const { data, phase } = source.repeats;
      const period = data.length;
      const by = positiveMod(step, period);
      at = positiveMod(at + phase, period);
      for (let k = first; k < last; k++) {
        values[k] = data[at]!;
        at += by;
        if (at >= period) at -= period;
      }
      errors.fill(0, first, last);
      return;
    }
    for (let k = first; k < last; k++, at += step) {
      this.#readNumber(source, at, this.#one, 0);
      values[k] = this.#one.values[0]!;
      errors[k] = this.#one.errors[0]!;
    }
  }

  /** Whether all trips of the innermost fold read elements at equal distances, and no value hangs on its index. */
  #hasRows(): boolean {
    const { reduction, body } = this.#statement;
    if (!reduction || !this.#numbers || this.#innerLoads.length > 0) return false;
    if (body.some(hasIndexValue) || reduction.monoid.combine.some(hasIndexValue)) return false;
    return this.#folds.length > 0 && areLinear(this.#reads, this.#innerGuard);
  }

  #readNumbers(readers: readonly Reader[], frame: NumberFrame, from: number): void {
    for (let i = 0; i < readers.length; i++) {
      const { guard, offset, fill, source } = readers[i]!;
      if (!holds(guard, this.#env)) {
        frame.set(from + i, fill as number, 0);
        continue;
      }
      this.#readNumber(source, offset.value(this.#env), frame, from + i);
    }
  }

  #readNumber(source: SampleSource, at: number, frame: NumberFrame, slot: number): void {
    if (source.numbers) source.numbers(at, frame, slot);
    else if (source.approximate) {
      const { value, error } = source.approximate(at);
      frame.set(slot, value as number, error);
    } else frame.set(slot, source.element(at) as number, 0);
  }

  #bind(point: readonly number[]): void {
    for (let i = 0; i < point.length; i++) this.#env[this.#outer[i]!.slot] = point[i]!;
  }

  #enter(point: readonly number[]): boolean {
    this.#bind(point);
    if (!holds(this.#outerGuard, this.#env)) return false;
    for (const load of this.#outerLoads) load();
    return true;
  }

  #form(expr: IndexExpr): LinearForm {
    return compileForm(expr, this.#symbols, this.#slots, this.#innermost);
  }

  #guards(conditions: Statement["guard"]): readonly GuardForm[] {
    return conditions.map((c) => ({ isZero: c.kind === "zero", form: this.#form(c.expr) }));
  }

  #reader(access: Access, source: SampleSource): Reader {
    return {
      offset: this.#form(flatten(access.index, source.shape)),
      guard: this.#guards(access.guard),
      fill: castScalar(access.fill, source.dtype, false),
      source,
    };
  }

  #loader(
    { name, extent, wraps, range, access }: Statement["indirects"][number],
    reader: Reader,
  ): () => void {
    const slot = this.#slots.get(name)!;
    const size = this.#form(extent);
    return () => {
      const found = Number(this.#read(reader).value);
      const count = size.value(this.#env);
      const value = wraps && found < 0 ? found + count : found;
      if (value < 0 || value >= count) {
        invariant(range === "checked", () => `${this.#statement.name}: ${name} = ${value}`);
        reject("SEM001", `index ${found} of ${access.tensor} is outside extent ${count}`, {
          at: this.#statement.origin,
        });
      }
      this.#env[slot] = value;
    };
  }

  #read({ offset, guard, fill, source }: Reader): Approximate {
    if (!holds(guard, this.#env)) return { value: fill, error: 0 };
    const at = offset.value(this.#env);
    if (source.approximate) return source.approximate(at);
    return { value: source.element(at), error: 0 };
  }

  #readAll(readers: readonly Reader[]): readonly Approximate[] {
    return readers.map((r) => this.#read(r));
  }

  #point(): ReadonlyMap<string, number> {
    if (!this.#needsPoint) return noPoint;
    for (const [name, slot] of this.#slots) this.#pointNow.set(name, this.#env[slot]!);
    return this.#pointNow;
  }

  #fold(at: ReadonlyMap<string, number>): readonly Approximate[] {
    const { components, identity } = this.#statement.reduction!.monoid;
    if (this.#product) return [this.#foldProducts(this.#product, components[0]!.dtype)];
    let total: readonly Approximate[] = identity.map((e) => compileApproximate(e)([], at));
    const step = (depth: number): void => {
      const loop = this.#folds[depth];
      if (!loop) {
        if (!holds(this.#innerGuard, this.#env)) return;
        for (const load of this.#innerLoads) load();
        const here = this.#point();
        const term = this.#readAll(this.#reads);
        const args = [...total, ...this.#body.map((e) => e(term, here))];
        total = this.#combine.map((e) => e(args, here));
        return;
      }
      const extent = loop.extent.value(this.#env);
      for (let i = 0; i < extent; i++) {
        this.#env[loop.slot] = i;
        step(depth + 1);
      }
    };
    step(0);
    return total.map(({ value, error }, i) => rounded(value, error, components[i]!.dtype));
  }

  /** Partial results in order, and the squares of what the roundings of partial sums may be. */
  #foldProducts({ op, start, isInteger }: ProductFold, dtype: DType): Approximate {
    const state = { total: start, squares: 0 };
    const step = (depth: number): void => {
      const loop = this.#folds[depth]!;
      const extent = loop.extent.value(this.#env);
      if (depth === this.#folds.length - 1) {
        this.#env[loop.slot] = 0;
        this.#foldRow(extent, state);
        return;
      }
      for (let i = 0; i < extent; i++) {
        this.#env[loop.slot] = i;
        step(depth + 1);
      }
    };
    step(0);
    if (op !== "add" || isInteger) return { value: state.total, error: 0 };
    const { relative, least } = spacingOf(dtype);
    const error = orderFactor * relative * Math.sqrt(state.squares) + least;
    return rounded(state.total, error, dtype);
  }

  #foldRow(extent: number, state: { total: number; squares: number }): void {
    const { op, scale, reads, isInteger } = this.#product!;
    const env = this.#env;
    findTrips(this.#innerGuard, env, extent, this.#row);
    const { from, to } = this.#row;
    if (from >= to) return;
    if (this.#terms.length < to) this.#terms = new Float64Array(2 * to);
    const terms = this.#terms;
    terms.fill(scale, from, to);
    for (const r of reads) this.#multiplyRow(this.#reads[r]!, terms, from, to);
    const factors = 1 + reads.length;
    let { total, squares } = state;
    for (let k = from; k < to; k++) {
      const term = terms[k]!;
      if (isInteger) {
        total = (total + term) | 0;
        continue;
      }
      if (op === "add") {
        const size = Math.abs(total) + factors * Math.abs(term);
        squares += size * size;
        total += term;
      } else total = op === "max" ? Math.max(total, term) : Math.min(total, term);
    }
    state.total = total;
    state.squares = squares;
  }

  /** Multiplies each trip's term by what a read gives there. */
  #multiplyRow(reader: Reader, terms: Float64Array, from: number, to: number): void {
    const { offset, guard, fill, source } = reader;
    const { data, phase } = source.repeats!;
    findTrips(guard, this.#env, to, this.#readTrips);
    const first = Math.max(from, this.#readTrips.from);
    const last = Math.min(to, this.#readTrips.to);
    if (first > from || last < to) {
      for (let k = from; k < to; k++) if (k < first || k >= last) terms[k]! *= Number(fill);
    }
    const period = data.length;
    const by = positiveMod(offset.step!, period);
    let at = positiveMod(offset.value(this.#env) + first * offset.step! + phase, period);
    for (let k = first; k < last; k++) {
      terms[k]! *= data[at]!;
      at += by;
      if (at >= period) at -= period;
    }
  }

  /** How a fold is one of products of reads, or of the extremes of a read. */
  #asProduct(): ProductFold | undefined {
    const { reduction, body } = this.#statement;
    if (!reduction || body.length !== 1 || this.#innerLoads.length > 0) return undefined;
    const { combine, components, identity } = reduction.monoid;
    const { dtype } = components[0]!;
    const [merge, start] = [combine[0]!, identity[0]!];
    const integers = integerProductOf(body[0]!, dtype);
    const product = integers ? { scale: 1, reads: integers } : productOf(body[0]!, dtype);
    if (!product || merge.kind !== "apply" || start.kind !== "literal") return undefined;
    const { op } = merge;
    if (op !== "add" && op !== "max" && op !== "min") return undefined;
    if (!merge.operands.every((o) => o.kind === "argument")) return undefined;
    // Products are rounded: their extremes are not exact.
    if (op !== "add" && (product.reads.length !== 1 || product.scale !== 1)) return undefined;
    const isInteger = integers !== undefined;
    if (isInteger && op !== "add") return undefined;
    const used = product.reads.map((r) => this.#reads[r]!);
    const plain = used.every(
      ({ source }) => source.repeats && (isInteger || isFloatDType(source.dtype)),
    );
    if (!plain || !areLinear(used, this.#innerGuard)) return undefined;
    return { ...product, op, start: Number(start.value), isInteger };
  }
}

interface ProductFold extends ProductBody {
  readonly op: "add" | "max" | "min";
  readonly start: number;
  /** Sums wrap as i32 and are exact. */
  readonly isInteger: boolean;
}

function rowOf(trips: number): ReadRow {
  return { values: new Float64Array(trips), errors: new Float64Array(trips) };
}

const emptyRow = rowOf(0);

/** Whether a step of the innermost loop moves all offsets and conditions by constants. */
function areLinear(readers: readonly Reader[], inner: readonly GuardForm[]): boolean {
  const guards = [...readers.flatMap((r) => r.guard), ...inner];
  const forms = [...readers.map((r) => r.offset), ...guards.map((g) => g.form)];
  return forms.every((f) => f.step !== undefined) && !guards.some((g) => g.isZero);
}

const noPoint: ReadonlyMap<string, number> = new Map();

function holds(guard: readonly GuardForm[], env: Environment): boolean {
  for (const { isZero, form } of guard) {
    const found = form.value(env);
    if (isZero ? found !== 0 : found < 0) return false;
  }
  return true;
}

/** Trips of a loop, `to` excluded. */
interface Trips {
  from: number;
  to: number;
}

/** Finds the trips of the innermost loop, now at 0, in which linear conditions hold. */
function findTrips(
  guard: readonly GuardForm[],
  env: Environment,
  extent: number,
  found: Trips,
): void {
  found.from = 0;
  found.to = extent;
  for (const { form } of guard) {
    const start = form.value(env);
    const step = form.step!;
    if (step === 0 && start < 0) found.to = 0;
    else if (step > 0) found.from = Math.max(found.from, Math.ceil(-start / step));
    else if (step < 0) found.to = Math.min(found.to, Math.floor(start / -step) + 1);
  }
}

/** A folded value brought to its component's type, as the oracle does once at the end. */
function rounded(value: ScalarValue, error: number, dtype: DType): Approximate {
  if (typeof value === "bigint") return { value, error };
  return { value: roundNumber(dtype, value), error: error + roundingOf(dtype, value) };
}

/** The row-major offset of an index in a tensor of known extents. */
function flatten(index: readonly IndexExpr[], shape: readonly number[]): IndexExpr {
  let offset: IndexExpr = add(0, 0);
  for (const [axis, e] of index.entries()) offset = add(mul(shape[axis]!, offset), e);
  return offset;
}

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
