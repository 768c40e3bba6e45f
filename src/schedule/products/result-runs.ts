/**
 * Results that an epilogue writes in runs: the columns of a product are split into heads that stand apart in memory
 * (placed-results.ts). Places over a column c are then floorDiv(c, width) and mod(c, width); a tile has whole runs,
 * or stays within one.
 */
import type { Write } from "../../region/nest.ts";
import {
  add,
  constantValue,
  floorDiv,
  fromTerms,
  type IndexExpr,
  type IndexTerm,
  mod,
  mul,
  splitLinear,
  substitute,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf, simplify } from "../../semantics/index-range.ts";
import type { MultiplyDirective } from "../directive.ts";
import type { ProductForm, ProductPart } from "./product-form.ts";
import { type TileFault, unfit } from "./tile-fault.ts";

/** The run of a product's results, absent where all columns are neighbours; or why tiles cannot store them. */
export function runOf(
  writes: readonly Write[],
  { loops, extent }: ProductPart,
): Pick<ProductForm, "run"> | string {
  const divided = new Set(writes.flatMap(({ index }) => index.flatMap(dividedIn)));
  if (divided.size === 0) return {};
  const [column, ...others] = loops;
  const isOfColumn =
    column && others.length === 0 && divided.size === 1 && divided.has(column.name);
  const widths = isOfColumn ? writes.map(({ index }) => widthOf(index, column.name)) : [];
  const [run] = widths;
  const isEven = run !== undefined && extent % run === 0 && widths.every((n) => n === run);
  return isEven ? { run } : "its results are taken apart along other loops than its columns";
}

/** Variables that stand in a division or a remainder. */
function dividedIn(e: IndexExpr): readonly string[] {
  return [...variablesOf(e)].filter((name) => splitLinear(e, name) === undefined);
}

/** How far a column's number goes on along the last axis alone. */
function widthOf(index: readonly IndexExpr[], column: string): number | undefined {
  const [near, ...before] = index.toReversed();
  const atom = near!.terms.length === 1 ? near!.terms[0]!.atoms[0] : undefined;
  const width = atom?.kind === "mod" ? constantValue(atom.denominator) : undefined;
  if (width === undefined) return undefined;
  const place = add(mul(width, variable("head")), variable(column));
  const ranges = new Map([[column, { min: 0, max: width - 1 }]]);
  const inRun = (e: IndexExpr): IndexExpr =>
    simplify(substitute(e, new Map([[column, place]])), ranges);
  const isApart = before.every((e) => !variablesOf(inRun(e)).has(column));
  return isApart && inRun(near!).key === column ? width : undefined;
}

/** Why a tile does not keep runs of results whole, or stay within one; undefined where it does. */
export function runFault(
  [, columns]: MultiplyDirective["tile"],
  { run, columns: { extent } }: Pick<ProductForm, "run" | "columns">,
): TileFault | undefined {
  if (run === undefined) return undefined;
  if (extent % columns !== 0) {
    const why = `${columns} columns stick out of heads`;
    return unfit(why, `choose columns that divide ${extent}`);
  }
  return columns % run === 0 || run % columns === 0
    ? undefined
    : unfit(
        `${columns} columns are no whole heads of ${run}, nor within one`,
        `choose a multiple of ${run} columns, or a number that divides it`,
      );
}

/**
 * The place of a result with the divisions of its column spelled by the digits of tile and thread: where some
 * terms are multiples of a number that divides the divisor, and the others stay below that number.
 */
export function placeInRun(e: IndexExpr, ranges: IndexRanges): IndexExpr {
  const known = simplify(e, ranges);
  const parts = known.terms.map((term) => {
    const [atom, ...others] = term.atoms;
    const divisor = atom && "denominator" in atom ? constantValue(atom.denominator) : undefined;
    if (divisor === undefined || others.length > 0) return fromTerms(0, [term]);
    const { kind, numerator } = atom as Extract<typeof atom, { kind: "floorDiv" | "mod" }>;
    return mul(term.coefficient, dividedByDigits({ kind, numerator, divisor }, ranges));
  });
  return add(known.constant, ...parts);
}

interface Division {
  readonly kind: "floorDiv" | "mod";
  readonly numerator: IndexExpr;
  readonly divisor: number;
}

function dividedByDigits({ kind, numerator, divisor }: Division, ranges: IndexRanges): IndexExpr {
  const { constant, terms } = numerator;
  const units = new Set(terms.map((t) => Math.abs(t.coefficient)));
  for (const unit of [...units].sort((a, b) => b - a)) {
    if (unit < 2 || divisor % unit !== 0) continue;
    const [multiples, others] = [true, false].map((isMultiple) =>
      terms.filter((t) => (t.coefficient % unit === 0) === isMultiple),
    ) as [IndexTerm[], IndexTerm[]];
    const steps = Math.floor(constant / unit);
    const rest = fromTerms(constant - unit * steps, others);
    const { min, max } = rangeOf(rest, ranges);
    if (min < 0 || max >= unit) continue;
    const scaled = multiples.map((t) => ({ ...t, coefficient: t.coefficient / unit }));
    const high = fromTerms(steps, scaled);
    if (kind === "floorDiv") return simplify(floorDiv(high, divisor / unit), ranges);
    return add(mul(unit, simplify(mod(high, divisor / unit), ranges)), rest);
  }
  return kind === "mod" ? mod(numerator, divisor) : floorDiv(numerator, divisor);
}
