/**
 * The oracle of a region's outputs, element by element: which elements a check by samples compares, and
 * what they must be, from the region's own inputs. Elements that a scan takes from its own earlier steps
 * are the candidate's, so that errors do not add up over the steps; a scatter is followed backwards, all
 * updates that meet a sampled element in order.
 */
import { type Approximate, compileApproximate } from "../interp/approximate.ts";
import { NumberFrame } from "../interp/number-approximate.ts";
import {
  countPoints,
  forEachPoint,
  pointsAt,
  samplePoints,
  type TileFactor,
  writesAgain,
} from "../interp/sample-points.ts";
import { type SampleSource, StatementSampler } from "../interp/sample-statement.ts";
import type { Region, Statement } from "../region/nest.ts";
import { isBigDType } from "../semantics/dtype.ts";
import { constantValue, evaluate } from "../semantics/index-expr.ts";
import { apply, argument } from "../semantics/scalar-expr.ts";
import { elementCount } from "../semantics/shape.ts";
import type { RefData } from "../semantics/tensor.ts";
import { reject } from "../support/diagnostic.ts";
import { unreachable } from "../support/invariant.ts";
import type { Rng } from "../support/rng.ts";
import { ComputedElements } from "./computed-elements.ts";

/** An element with what it must be, within its error. */
export interface ExpectedElement extends Approximate {
  readonly tensor: string;
  readonly offset: number;
}

/** Elements that are to be read from the candidate. */
export interface SamplePlan {
  /** Offsets by output tensor, ascending. */
  readonly offsets: ReadonlyMap<string, Uint32Array>;
  /** Outputs that are needed whole: a scan reads its own earlier steps. */
  readonly whole: ReadonlySet<string>;
  /** Outputs all of whose elements the region writes. */
  readonly covered: ReadonlySet<string>;
}

export interface OracleOptions {
  readonly region: Region;
  readonly symbols: ReadonlyMap<string, number>;
  /** Elements of what the region reads, and of what it updates in place. */
  readonly given: (tensor: string) => { readonly data: RefData; readonly phase: number };
  readonly tiles: readonly TileFactor[];
  readonly rng: Rng;
  /** What statements read is off by so much of itself. */
  readonly operandError?: number;
}

/** Updates of a scatter that are followed at most. */
const mostUpdates = 2 ** 21;
/** Terms that are folded for the samples of a statement, at most: seconds. */
const mostTerms = 2 ** 30;
/** Elements of a scatter's output that are compared. */
const scatterSamples = 256;

type Found = (tensor: string) => (offset: number) => Approximate["value"];

/** A statement that writes a tensor, as its write `which`, and the point of an offset. */
interface Maker {
  readonly statement: Statement;
  readonly which: number;
  readonly pointOf: (offset: number) => readonly number[] | undefined;
}

interface Sampled {
  readonly statement: Statement;
  readonly sampler: StatementSampler;
  readonly points: readonly (readonly number[])[];
}

export class RegionOracle {
  readonly #options: OracleOptions;
  readonly #sampled: Sampled[] = [];
  readonly #scattered = new Map<string, ReadonlySet<number>>();
  /** Of types whose values are numbers, and of the others. */
  readonly #computed = new Map<string, ComputedElements>();
  readonly #computedBig = new Map<string, Map<number, Approximate>>();
  readonly #makers = new Map<string, readonly Maker[]>();
  /** One element on its way from a frame to an object. */
  readonly #one = new NumberFrame(1);
  readonly #samplers = new Map<Statement, StatementSampler>();
  #found: Found = (tensor) => unreachable(tensor as never, "an element before the run");
  readonly plan: SamplePlan;

  /** Rejects (VER004) a region whose elements cannot be computed one by one. */
  constructor(options: OracleOptions) {
    this.#options = options;
    const { region, tiles, rng } = options;
    const offsets = new Map<string, Set<number>>();
    const whole = new Set<string>();
    for (const statement of region.statements) {
      if (statement.writes.every((w) => this.#isLocal(w.tensor))) continue;
      const sampler = this.#samplerOf(statement);
      if (writesAgain(statement)) {
        this.#planScatter(statement, sampler, offsets);
        continue;
      }
      const points = samplePoints(statement, sampler, tiles, rng);
      this.#checkWork(statement, sampler.terms * points.length);
      this.#sampled.push({ statement, sampler, points });
      for (const point of points) {
        for (const [i, offset] of sampler.offsetsAt(point).entries()) {
          const { tensor } = statement.writes[i]!;
          if (!this.#isLocal(tensor)) setOf(offsets, tensor).add(offset);
        }
      }
      for (const tensor of ownReads(statement)) whole.add(tensor);
    }
    const ascending = (s: ReadonlySet<number>) => Uint32Array.from([...s].sort((a, b) => a - b));
    this.plan = {
      offsets: new Map([...offsets].map(([tensor, s]) => [tensor, ascending(s)])),
      whole,
      covered: new Set(region.statements.flatMap((s) => this.#coveredBy(s))),
    };
  }

  #checkWork({ name }: Statement, terms: number): void {
    if (terms <= mostTerms) return;
    reject("VER004", `${name} folds more than ${mostTerms} terms for the elements that are drawn`, {
      at: `region ${this.#options.region.name}`,
      help: "fold less in one operator, or take the region as it is: others are checked all the same",
    });
  }

  /** What the sampled elements must be, given the elements that the candidate computed. */
  expected(found: Found): readonly ExpectedElement[] {
    this.#found = found;
    const elements: ExpectedElement[] = [];
    for (const { sampler, points } of this.#sampled) {
      for (const point of points) {
        for (const e of sampler.valuesAt(point)) {
          if (!this.#isLocal(e.tensor) && !this.#scattered.has(e.tensor)) elements.push(e);
        }
      }
    }
    for (const [tensor, wanted] of this.#scattered) {
      for (const [offset, value] of this.#followScatters(tensor, wanted)) {
        elements.push({ tensor, offset, ...value });
      }
    }
    return elements;
  }

  /** What one element of an output must be, given what the region reads. */
  elementAt(tensor: string, offset: number): Approximate {
    return this.#computedAt(tensor, offset);
  }

  shapeOf(tensor: string): readonly number[] {
    const { region, symbols } = this.#options;
    return region.tensors.get(tensor)!.shape.map((e) => evaluate(e, symbols));
  }

  #isLocal(tensor: string): boolean {
    return this.#options.region.tensors.get(tensor)!.role === "local";
  }

  #samplerOf(statement: Statement): StatementSampler {
    const made = this.#samplers.get(statement) ?? this.#makeSampler(statement);
    this.#samplers.set(statement, made);
    return made;
  }

  #makeSampler(statement: Statement): StatementSampler {
    const { region, symbols } = this.#options;
    return new StatementSampler(statement, symbols, (tensor): SampleSource => {
      const { dtype } = region.tensors.get(tensor)!;
      const base = { dtype, shape: this.shapeOf(tensor) };
      if (ownReads(statement).includes(tensor)) {
        return { ...base, element: (at) => this.#found(tensor)(at) };
      }
      if (statement.writes.some((w) => w.tensor === tensor)) {
        return { ...base, element: () => unreachable(tensor as never, "a write that is read") };
      }
      const made = region.statements.some((s) => s.writes.some((w) => w.tensor === tensor));
      const isOperand = statement.reads.some((r) => r.tensor === tensor);
      if (!made)
        return { ...base, ...(isOperand ? this.#operand(tensor) : this.#givenSource(tensor)) };
      const approximate = (at: number): Approximate => this.#computedAt(tensor, at);
      const computed = { ...base, approximate, element: (at: number) => approximate(at).value };
      return isBigDType(dtype) ? computed : { ...computed, numbers: this.#numbersOf(tensor) };
    });
  }

  #givenSource(tensor: string): Pick<SampleSource, "element" | "repeats"> {
    const { data, phase } = this.#options.given(tensor);
    const element = (at: number): Approximate["value"] => data[(at + phase) % data.length]!;
    return data instanceof Float64Array ? { element, repeats: { data, phase } } : { element };
  }

  /** What is given, as a schedule reads it that rounds operands. */
  #operand(tensor: string): Pick<SampleSource, "element" | "approximate" | "repeats"> {
    const { operandError = 0 } = this.#options;
    const given = this.#givenSource(tensor);
    if (operandError === 0) return given;
    const { element } = given;
    const approximate = (at: number): Approximate => {
      const value = element(at);
      return { value, error: operandError * Math.abs(Number(value)) };
    };
    return { element, approximate };
  }

  /** Outputs that a statement writes whole: as many points as elements, each written once. */
  #coveredBy(statement: Statement): readonly string[] {
    const { symbols } = this.#options;
    const { guard, loops, writes } = statement;
    const outer = loops.filter((l) => l.kind !== "reduce");
    const names = new Set(loops.map((l) => l.name));
    const boxed = outer.every((l) => l.extent.terms.every((t) => !names.has(t.key)));
    if (guard.length > 0 || writesAgain(statement) || !boxed) return [];
    if (!outer.every((l) => evaluable(l.extent, symbols))) return [];
    const points = outer.reduce((n, l) => n * evaluate(l.extent, symbols), 1);
    return writes
      .map((w) => w.tensor)
      .filter((t) => !this.#isLocal(t) && elementCount(this.shapeOf(t)) === points);
  }

  /** A value that the region itself computes, from the statement that writes it. */
  #computedAt(tensor: string, offset: number): Approximate {
    if (isBigDType(this.#options.region.tensors.get(tensor)!.dtype)) {
      return this.#computedBigAt(tensor, offset);
    }
    this.#numbersOf(tensor)(offset, this.#one, 0);
    return { value: this.#one.values[0]!, error: this.#one.errors[0]! };
  }

  #computedBigAt(tensor: string, offset: number): Approximate {
    const known = this.#computedBig.get(tensor)?.get(offset);
    if (known) return known;
    const value = this.#compute(tensor, offset);
    const values = this.#computedBig.get(tensor) ?? new Map<number, Approximate>();
    this.#computedBig.set(tensor, values.set(offset, value));
    return value;
  }

  /** The same of a type whose values are numbers, into a slot of a frame. */
  #numbersOf(tensor: string): NonNullable<SampleSource["numbers"]> {
    const known = this.#computed.get(tensor) ?? new ComputedElements();
    this.#computed.set(tensor, known);
    const makers = this.#makersOf(tensor);
    return (offset, frame, slot) => {
      if (known.read(offset, frame, slot)) return;
      for (const { statement, which, pointOf } of makers) {
        const point = pointOf(offset);
        if (!point || !this.#samplerOf(statement).numberAt(point, which, frame, slot)) continue;
        known.write(offset, frame, slot);
        return;
      }
      this.#notByItself(tensor, offset);
    };
  }

  #compute(tensor: string, offset: number): Approximate {
    for (const { statement, which, pointOf } of this.#makersOf(tensor)) {
      const point = pointOf(offset);
      const found = point && this.#samplerOf(statement).valuesAt(point)[which];
      if (found) return { value: found.value, error: found.error };
    }
    return this.#notByItself(tensor, offset);
  }

  #makersOf(tensor: string): readonly Maker[] {
    const known = this.#makers.get(tensor) ?? this.#findMakers(tensor);
    this.#makers.set(tensor, known);
    return known;
  }

  #findMakers(tensor: string): readonly Maker[] {
    const shape = this.shapeOf(tensor);
    return this.#options.region.statements.flatMap((statement) => {
      if (writesAgain(statement)) return [];
      const which = statement.writes.findIndex((w) => w.tensor === tensor);
      return which < 0
        ? []
        : [{ statement, which, pointOf: pointWriting(statement, which, shape) }];
    });
  }

  #notByItself(tensor: string, offset: number): never {
    return reject("VER004", `element ${offset} of ${tensor} cannot be computed by itself`, {
      at: `region ${this.#options.region.name}`,
      help: "verify the whole model instead: wavetile verify",
    });
  }

  #planScatter(
    statement: Statement,
    sampler: StatementSampler,
    offsets: Map<string, Set<number>>,
  ): void {
    const { rng, region } = this.#options;
    const updates = countPoints(sampler, mostUpdates);
    if (updates === undefined) {
      reject("VER004", `${statement.name} has more than ${mostUpdates} updates to follow`, {
        at: `region ${region.name}`,
        help: "verify the whole model instead: wavetile verify",
      });
    }
    for (const { tensor } of statement.writes) {
      const wanted = setOf(offsets, tensor);
      const count = elementCount(this.shapeOf(tensor));
      for (let i = 0; i < scatterSamples && count > 0; i++) wanted.add(rng.integer(0, count - 1));
      this.#scattered.set(tensor, wanted);
    }
    if (updates === 0) return;
    const drawn = Array.from({ length: scatterSamples }, () => rng.integer(0, updates - 1));
    for (const point of pointsAt(sampler, drawn)) {
      for (const [w, offset] of sampler.offsetsAt(point).entries()) {
        setOf(offsets, statement.writes[w]!.tensor).add(offset);
      }
    }
  }

  /** The wanted elements of a tensor after all its statements, in order. */
  #followScatters(tensor: string, wanted: ReadonlySet<number>): ReadonlyMap<number, Approximate> {
    const { region } = this.#options;
    const values = new Map<number, Approximate>();
    const makers = region.statements.filter((s) => s.writes.some((w) => w.tensor === tensor));
    const isMade = makers.some((s) => !writesAgain(s));
    for (const offset of wanted) {
      const before = isMade ? this.#compute(tensor, offset) : undefined;
      values.set(offset, before ?? { value: this.#givenSource(tensor).element(offset), error: 0 });
    }
    for (const statement of makers.filter(writesAgain)) {
      const sampler = this.#samplerOf(statement);
      forEachPoint(sampler, (point) => {
        this.#applyUpdate(statement, sampler, point, { tensor, values });
      });
    }
    return values;
  }

  #applyUpdate(
    statement: Statement,
    sampler: StatementSampler,
    point: readonly number[],
    { tensor, values }: { readonly tensor: string; readonly values: Map<number, Approximate> },
  ): void {
    const hits = sampler.offsetsAt(point).some((offset) => values.has(offset));
    if (!hits) return;
    const { dtype } = this.#options.region.tensors.get(tensor)!;
    for (const [w, { offset, value, error }] of sampler.valuesAt(point).entries()) {
      const write = statement.writes[w]!;
      const before = values.get(offset);
      if (write.tensor !== tensor || !before) continue;
      if (write.combine === "overwrite") {
        values.set(offset, { value, error });
        continue;
      }
      const merge = apply(write.combine, argument(0, dtype), argument(1, dtype));
      values.set(offset, compileApproximate(merge)([before, { value, error }], new Map()));
    }
  }
}

/** Tensors that a statement reads and writes: what a scan carries. */
function ownReads({ reads, finishReads, writes }: Statement): readonly string[] {
  const read = new Set([...reads, ...finishReads].map((a) => a.tensor));
  return writes.map((w) => w.tensor).filter((t) => read.has(t));
}

function evaluable(e: Parameters<typeof evaluate>[0], symbols: ReadonlyMap<string, number>) {
  return e.terms.every((t) => t.atoms.every((a) => a.kind === "variable" && symbols.has(a.name)));
}

/** The point whose write is at an offset, where each axis is a loop or a constant; the array is used again. */
function pointWriting(
  { loops, writes }: Statement,
  which: number,
  shape: readonly number[],
): Maker["pointOf"] {
  const axisOf = new Map<string, number>();
  const { index } = writes[which]!;
  const fixed = index.map((e) => constantValue(e));
  for (const [axis, e] of index.entries()) if (fixed[axis] === undefined) axisOf.set(e.key, axis);
  const axes = loops.filter((l) => l.kind !== "reduce").map((l) => axisOf.get(l.name));
  const known = axes.filter((axis) => axis !== undefined);
  if (known.length < axes.length || axisOf.size !== axes.length) return () => undefined;
  const at = shape.map(() => 0);
  const point = known.map(() => 0);
  return (offset) => {
    let rest = offset;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      at[axis] = rest % shape[axis]!;
      rest = Math.floor(rest / shape[axis]!);
      if (fixed[axis] !== undefined && fixed[axis] !== at[axis]) return undefined;
    }
    for (let i = 0; i < known.length; i++) point[i] = at[known[i]!]!;
    return point;
  };
}

function setOf(sets: Map<string, Set<number>>, key: string): Set<number> {
  const made = sets.get(key) ?? new Set<number>();
  sets.set(key, made);
  return made;
}
