/**
 * Indices as sums of digits: a variable of constant extent is the digits of a number in mixed radix, cut where
 * quotients and remainders of it ask for that. In: expressions over such variables. Out: the same as multiples of
 * digits, each of which takes all its values whatever the others are, and quotients of such sums; undefined where an
 * expression is no such sum.
 */
import { constantValue, type IndexAtom, type IndexExpr } from "../../semantics/index-expr.ts";

/** A variable by the number of its values. */
export interface Counted {
  readonly extent: number;
}

/** Undefined: a variable whose values are not known. */
export type Variables = ReadonlyMap<string, Counted | undefined>;

/** floor((v mod end) / step) for a variable v, with end > step. */
interface Slice {
  readonly of: Counted;
  readonly step: number;
  readonly end: number;
}

export interface Digit {
  readonly count: number;
}

export interface DigitSum {
  readonly constant: number;
  readonly parts: readonly { readonly digit: Digit; readonly factor: number }[];
  readonly quotients: readonly Quotient<DigitSum>[];
}

/** A multiple of floor(sum / by). */
interface Quotient<Sum> {
  readonly sum: Sum;
  readonly by: number;
  readonly factor: number;
}

interface SliceSum {
  readonly constant: number;
  readonly parts: readonly { readonly slice: Slice; readonly factor: number }[];
  readonly quotients: readonly Quotient<SliceSum>[];
}

export function digitsOf({ parts, quotients }: DigitSum): readonly Digit[] {
  return [...parts.map((p) => p.digit), ...quotients.flatMap((q) => digitsOf(q.sum))];
}

export function sumAt(
  { constant, parts, quotients }: DigitSum,
  values: ReadonlyMap<Digit, number>,
): number {
  let sum = constant;
  for (const { digit, factor } of parts) sum += factor * values.get(digit)!;
  for (const q of quotients) sum += q.factor * Math.floor(sumAt(q.sum, values) / q.by);
  return sum;
}

function slicesIn({ parts, quotients }: SliceSum): readonly Slice[] {
  return [...parts.map((p) => p.slice), ...quotients.flatMap((q) => slicesIn(q.sum))];
}

export interface DigitSums {
  readonly sums: readonly DigitSum[];
  /** At least 0 where the digits are of values that the variables have: the last digit may count further. */
  readonly within: readonly DigitSum[];
}

export function digitSums(
  exprs: readonly IndexExpr[],
  variables: Variables,
): DigitSums | undefined {
  const sums = exprs.map((e) => slicesOf(e, variables));
  if (sums.includes(undefined)) return undefined;
  const all = sums as readonly SliceSum[];
  const slices = all.flatMap(slicesIn);
  const digits = new Map<Counted, readonly Cut[]>();
  const within: DigitSum[] = [];
  for (const { of } of slices) {
    if (digits.has(of)) continue;
    const cuts = cutsOf(
      of,
      slices.filter((s) => s.of === of),
    );
    if (!cuts) return undefined;
    digits.set(of, cuts);
    const { step, digit } = cuts.at(-1)!;
    if (step * digit.count === of.extent) continue;
    const parts = cuts.map((c) => ({ digit: c.digit, factor: -c.step }));
    within.push({ constant: of.extent - 1, parts, quotients: [] });
  }
  const sumOf = ({ constant, parts, quotients }: SliceSum): DigitSum => ({
    constant,
    quotients: quotients.map((q) => ({ ...q, sum: sumOf(q.sum) })),
    parts: parts.flatMap(({ slice: { of, step, end }, factor }) => {
      const own = digits.get(of)!.filter((c) => c.step >= step && c.step < end);
      return own.map(({ digit, step: s }) => ({ digit, factor: factor * (s / step) }));
    }),
  });
  return { sums: all.map(sumOf), within };
}

interface Cut {
  readonly step: number;
  readonly digit: Digit;
}

/** Digits from the least on; undefined where one does not count whole turns of the ones below. */
function cutsOf({ extent }: Counted, slices: readonly Slice[]): readonly Cut[] | undefined {
  const ends = slices.flatMap(({ step, end }) => [step, end]).filter((n) => n < extent);
  const steps = [...new Set([1, ...ends])].sort((a, b) => a - b);
  const cuts: Cut[] = [];
  for (const [i, step] of steps.entries()) {
    const next = steps[i + 1];
    const count = next === undefined ? Math.ceil(extent / step) : next / step;
    if (!Number.isInteger(count)) return undefined;
    cuts.push({ step, digit: { count } });
  }
  return cuts;
}

function slicesOf({ constant, terms }: IndexExpr, variables: Variables): SliceSum | undefined {
  const parts: SliceSum["parts"][number][] = [];
  const quotients: Quotient<SliceSum>[] = [];
  for (const { coefficient, atoms } of terms) {
    const [only, ...others] = atoms;
    if (others.length > 0 || !only) return undefined;
    const slice = sliceOf(only, variables);
    if (slice) {
      if (slice.step < slice.of.extent) parts.push({ slice, factor: coefficient });
      continue;
    }
    if (only.kind !== "floorDiv") return undefined;
    const by = constantValue(only.denominator);
    const sum = slicesOf(only.numerator, variables);
    if (by === undefined || by < 1 || !sum) return undefined;
    quotients.push({ sum, by, factor: coefficient });
  }
  return { constant, parts, quotients };
}

function sliceOf(atom: IndexAtom, variables: Variables): Slice | undefined {
  if (atom.kind === "variable") {
    const of = variables.get(atom.name);
    return of && { of, step: 1, end: Number.POSITIVE_INFINITY };
  }
  if (atom.kind !== "floorDiv" && atom.kind !== "mod") return undefined;
  const by = constantValue(atom.denominator);
  const inner = soleAtomOf(atom.numerator);
  const slice = inner && by !== undefined && by > 0 ? sliceOf(inner, variables) : undefined;
  if (!slice || by === undefined) return undefined;
  const { step, end } = slice;
  const next = step * by;
  const isWhole = end === Number.POSITIVE_INFINITY || end % next === 0;
  if (!isWhole) return undefined;
  if (atom.kind === "mod") return { ...slice, end: next };
  return next < end ? { ...slice, step: next } : undefined;
}

function soleAtomOf({ constant, terms }: IndexExpr): IndexAtom | undefined {
  const [only, ...others] = terms;
  const isSole = constant === 0 && others.length === 0 && only?.coefficient === 1;
  return isSole && only.atoms.length === 1 ? only.atoms[0] : undefined;
}
