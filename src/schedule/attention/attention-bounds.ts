/**
 * Which columns the mask of attention leaves to a row, where comparisons say it: up to `row + n`, from
 * `row - n` on, or as far as data says of each problem (`column < length`, `column <= row + past`) or of each
 * row (where the sequence of a token begins and ends). In: a score as the form has it. Out: the score without those comparisons, and what
 * they say; whole steps of columns that no row meets need then not be computed.
 */
import type { Access } from "../../region/nest.ts";
import { isFloatDType } from "../../semantics/dtype.ts";
import {
  add,
  constant,
  constantValue,
  type IndexExpr,
  negate,
  splitLinear,
  sub,
  variablesOf,
} from "../../semantics/index-expr.ts";
import {
  apply,
  literal,
  mapScalar,
  type ScalarExpr,
  scalarOperands,
} from "../../semantics/scalar-expr.ts";

/** A column that data says: `value + constant`, and the number of the row where it moves with the row. */
export interface Bound {
  readonly moves: boolean;
  readonly constant: number;
  /** An integer over the reads of its reach, the same for all columns; absent: 0. */
  readonly value?: ScalarExpr;
  /** Whether the value is one for each row. */
  readonly ofRow: boolean;
}

/** A row meets the columns from the last of `starts` up to the first of `ends`; of these at least one is data. */
export interface Reach {
  readonly ends: readonly Bound[];
  readonly starts: readonly Bound[];
  readonly reads: readonly Access[];
}

/** A score without comparisons that are said apart. */
export interface BoundedScore {
  readonly score: ScalarExpr;
  readonly reads: readonly Access[];
  /** Columns up to `row + ahead` are met; undefined: all. */
  readonly ahead?: number;
  /** Columns from `row - behind` on are met, where there is an end ahead as well; undefined: all. */
  readonly behind?: number;
  readonly reach?: Reach;
}

/** Names of the loops over rows and columns. */
interface LoopNames {
  readonly row: string;
  readonly column: string;
}

/** Columns and rows, constants among them, whose sums are far from the ends of 32 bits. */
export const mostPlaces = 2 ** 28;

/** Argument 0 of the score is the sum of products, then come its reads. */
export function boundedScore(
  score: ScalarExpr,
  reads: readonly Access[],
  names: LoopNames,
): BoundedScore {
  const whole = { score, reads };
  if (score.kind !== "apply" || score.op !== "select") return whole;
  const [condition, kept, other] = score.operands as [ScalarExpr, ScalarExpr, ScalarExpr];
  if (other.kind !== "literal" || other.value !== -Infinity) return whole;
  const reader = new BoundReader(reads, names);
  const tests = conjuncts(condition).map((test) => ({ test, found: reader.read(test) }));
  const found = tests.flatMap((t) => (t.found ? [t.found] : []));
  const boundsOf = (side: Found["side"]) =>
    found.flatMap((f) => (f.side === side ? [f.bound] : []));
  const [ends, starts] = [boundsOf("end"), boundsOf("start")];
  if (found.some(({ bound }) => bound.value)) {
    const rest = tests.flatMap((t) => (t.found ? [] : [t.test]));
    const [first, ...others] = rest;
    const left = first && others.reduce((a, b) => apply("and", a, b), first);
    return withReach(left ? apply("select", left, kept, other) : kept, reads, { ends, starts });
  }
  const areStatic = found.length === tests.length && found.every(({ bound }) => bound.moves);
  // Rows that meet nothing are what a band without an end ahead would have.
  if (!areStatic || ends.length === 0) return whole;
  const ahead = Math.min(...ends.map((b) => b.constant));
  const behind = Math.min(...starts.map((b) => -b.constant));
  return { score: kept, reads, ahead, ...(starts.length > 0 && { behind }) };
}

/** Reads apart: those of the score and those of the bounds. */
function withReach(
  score: ScalarExpr,
  reads: readonly Access[],
  { ends, starts }: Omit<Reach, "reads">,
): BoundedScore {
  const own = numbered([score], 1);
  const values = [...ends, ...starts].flatMap((b) => b.value ?? []);
  const ofBounds = numbered(values, 0);
  const renamed = (bounds: readonly Bound[]): readonly Bound[] =>
    bounds.map((b) => (b.value ? { ...b, value: ofBounds.rename(b.value) } : b));
  return {
    score: own.rename(score),
    reads: own.used.map((i) => reads[i - 1]!),
    reach: {
      ends: renamed(ends),
      starts: renamed(starts),
      reads: ofBounds.used.map((i) => reads[i - 1]!),
    },
  };
}

/** The arguments above 0 in use, which get numbers from `first` on. */
function numbered(values: readonly ScalarExpr[], first: number) {
  const used = [...new Set(values.flatMap(argumentsOf))].filter((i) => i > 0).sort((a, b) => a - b);
  const rename = (e: ScalarExpr): ScalarExpr =>
    mapScalar(e, (leaf) =>
      leaf.kind === "argument" && leaf.index > 0
        ? { ...leaf, index: first + used.indexOf(leaf.index) }
        : leaf,
    );
  return { used, rename };
}

/** Numbers of the reads of an expression, some of them several times. */
export function argumentsOf(e: ScalarExpr): readonly number[] {
  return e.kind === "argument" ? [e.index] : scalarOperands(e).flatMap(argumentsOf);
}

function conjuncts(e: ScalarExpr): readonly ScalarExpr[] {
  return e.kind === "apply" && e.op === "and" ? e.operands.flatMap(conjuncts) : [e];
}

interface Found {
  readonly side: "end" | "start";
  readonly bound: Bound;
}

/** An integer as an index expression, and values that are data, added and taken off. */
interface Sum {
  readonly index: IndexExpr;
  readonly plus: readonly ScalarExpr[];
  readonly minus: readonly ScalarExpr[];
}

class BoundReader {
  readonly #reads: readonly Access[];
  readonly #names: LoopNames;

  constructor(reads: readonly Access[], names: LoopNames) {
    this.#reads = reads;
    this.#names = names;
  }

  /** What a comparison says of the columns, if that is all it says. */
  read(test: ScalarExpr): Found | undefined {
    if (test.kind !== "apply" || (test.op !== "lessEqual" && test.op !== "less")) return undefined;
    const [a, b] = test.operands.map((o) => this.#sumOf(o));
    if (!a || !b) return undefined;
    // Not negative just where the comparison holds.
    const slack = difference(b, test.op === "less" ? { ...a, index: add(a.index, 1) } : a);
    const linear = splitLinear(slack.index, this.#names.column);
    if (linear?.coefficient === -1) return this.#bound("end", { ...slack, index: linear.rest });
    if (linear?.coefficient !== 1) return undefined;
    const { plus: minus, minus: plus } = slack;
    return this.#bound("start", { index: negate(linear.rest), plus, minus });
  }

  #bound(side: Found["side"], { index, plus, minus }: Sum): Found | undefined {
    const linear = splitLinear(index, this.#names.row);
    const fixed = linear && constantValue(linear.rest);
    if (fixed === undefined || Math.abs(fixed) > mostPlaces) return undefined;
    if (linear!.coefficient !== 0 && linear!.coefficient !== 1) return undefined;
    const [first, ...others] = plus;
    const zero = minus[0] && literal(minus[0].dtype === "i64" ? 0n : 0, minus[0].dtype);
    const start = first ?? zero;
    const sum = start && others.reduce((x, y) => apply("add", x, y), start);
    const value = sum && minus.reduce((x, y) => apply("sub", x, y), sum);
    const ofRow = value !== undefined && !this.#isData(value);
    const moves = linear!.coefficient === 1;
    return { side, bound: { moves, constant: fixed, ...(value && { value }), ofRow } };
  }

  #sumOf(e: ScalarExpr): Sum | undefined {
    if (isFloatDType(e.dtype) || e.dtype === "bool") return undefined;
    if (this.#isData(e) && argumentsOf(e).length > 0) return dataSum(e);
    switch (e.kind) {
      case "index":
        return { index: e.expr, plus: [], minus: [] };
      case "literal":
        return { index: constant(Number(e.value)), plus: [], minus: [] };
      case "argument":
        return this.#isData(e, "row") ? dataSum(e) : undefined;
      case "cast": {
        const inner = this.#sumOf(e.operand);
        if (inner && inner.plus.length + inner.minus.length === 0) return inner;
        return this.#isData(e, "row") ? dataSum(e) : undefined;
      }
      case "apply": {
        if (e.op !== "add" && e.op !== "sub")
          return this.#isData(e, "row") ? dataSum(e) : undefined;
        const [a, b] = e.operands.map((o) => this.#sumOf(o));
        if (!a || !b) return undefined;
        return difference(a, e.op === "sub" ? b : negated(b));
      }
    }
  }

  /** Whether a value is the same for all columns, and for all rows if it is data of a problem, not of a row. */
  #isData(e: ScalarExpr, of: "problem" | "row" = "problem"): boolean {
    const { row, column } = this.#names;
    const isFree = (index: readonly IndexExpr[]): boolean => {
      const used = variablesOf(...index);
      return (of === "row" || !used.has(row)) && !used.has(column);
    };
    if (e.kind === "index") return isFree([e.expr]);
    if (e.kind !== "argument") return scalarOperands(e).every((o) => this.#isData(o, of));
    const read = e.index > 0 ? this.#reads[e.index - 1] : undefined;
    return read !== undefined && read.guard.length === 0 && isFree(read.index);
  }
}

/** A value that is data, where it is an integer with a sign. */
function dataSum(e: ScalarExpr): Sum | undefined {
  const isSigned = e.dtype === "i64" || e.dtype === "i32";
  return isSigned ? { index: constant(0), plus: [e], minus: [] } : undefined;
}

function negated({ index, plus, minus }: Sum): Sum {
  return { index: negate(index), plus: minus, minus: plus };
}

function difference(a: Sum, b: Sum): Sum {
  return {
    index: sub(a.index, b.index),
    plus: [...a.plus, ...b.minus],
    minus: [...a.minus, ...b.plus],
  };
}

/** Whether the end of a tile's columns moves with its rows. */
export function movesAhead({ ends }: Reach): boolean {
  return ends.some((b) => b.moves);
}

/** Whether rows of one tile may end or begin anywhere. */
export function isOfRows({ ends, starts }: Reach): boolean {
  return [...ends, ...starts].some((b) => b.ofRow);
}
