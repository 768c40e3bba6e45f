/**
 * Long sums are added up in parts: after some tens of terms the partial sum joins the whole one. Rounding of
 * n terms added one after another grows with n; in parts of about the root of n it grows with that root
 * (Higham, "Accuracy and Stability of Numerical Algorithms", 4.2). In: a statement with its loops. Out: the same
 * with a reduce loop split where a part ends, and the number of reduce loops outside a part.
 *
 * Sums of products are left alone: their tiles fill the registers with results.
 */
import type { Statement } from "../region/nest.ts";
import { splitStatement } from "../schedule/apply.ts";
import {
  isSpread,
  type ScheduledLoop,
  type ScheduledRegion,
  type ScheduledStatement,
  symbolRanges,
} from "../schedule/scheduled-region.ts";
import { dtypes } from "../semantics/dtype.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";

/** From how many terms on a sum has parts, and how many a part has. */
const terms = { long: 128, leastPart: 32, mostPart: 256 } as const;
/** Results of a tile: each has two sums, which registers have to hold. */
const mostResults = 16;

export interface SumInParts {
  readonly scheduled: ScheduledStatement;
  /** Reduce loops outside a part; 0: the sum has no parts. */
  readonly outside: number;
}

export function sumInParts(region: ScheduledRegion, scheduled: ScheduledStatement): SumInParts {
  const whole = { scheduled, outside: 0 };
  const { statement, loops } = scheduled;
  if (!isSum(statement) || loops.some((l) => l.mode === "groups" || l.mode === "threads"))
    return whole;
  const ranges = symbolRanges(region.region);
  const reduce = loops.filter((l) => l.kind === "reduce");
  const first = loops.indexOf(reduce[0]!);
  const results = loops.filter((l, at) => isResult(l, at > first));
  const areMany =
    countOf(results, ranges) > mostResults || results.some((l) => l.mode === "serial");
  const count = countOf(
    reduce.filter((l) => l.mode !== "vector"),
    ranges,
  );
  if (areMany || !(count >= terms.long && Number.isFinite(count))) return whole;
  let inside = 1;
  for (const [at, loop] of [...reduce.entries()].reverse()) {
    if (loop.mode === "vector") continue;
    const extent = rangeOf(loop.extent, ranges).max;
    const factor = Math.floor(partOf(count) / inside);
    if (factor < 2) return { scheduled, outside: at + 1 };
    if (loop.mode === "serial" && extent >= 2 * factor) {
      return { scheduled: splitAt(region, scheduled, loop, factor), outside: at + 1 };
    }
    inside *= extent;
  }
  return whole;
}

/** A sum of floats whose order is free, of anything but products of two operands. */
function isSum({ reduction, body, reads }: Statement): boolean {
  if (!reduction || reduction.numericClass === "exact") return false;
  const { name, components } = reduction.monoid;
  if (name !== "sum" || components.length !== 1) return false;
  if (dtypes[components[0]!.dtype].kind !== "float") return false;
  const [term] = body;
  if (term!.kind !== "apply" || term!.op !== "mul") return true;
  // A square is written as a product.
  const [a, b] = term!.operands.map((o) => spelled(o, reads));
  return a === b;
}

/** A term as text, with what it reads instead of the numbers of its arguments. */
function spelled(term: ScalarExpr, reads: Statement["reads"]): string {
  return JSON.stringify(term, (_, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    return isArgument(value) ? accessKey(reads[value.index]!) : value;
  });
}

function isArgument(value: unknown): value is Extract<ScalarExpr, { readonly kind: "argument" }> {
  return (
    typeof value === "object" && value !== null && "kind" in value && value.kind === "argument"
  );
}

function accessKey({ tensor, index }: Statement["reads"][number]): string {
  return `${tensor}[${index.map((e) => e.key).join(", ")}]`;
}

/** A loop over results that are live together during the sum. */
function isResult(loop: ScheduledLoop, insideSum: boolean): boolean {
  if (loop.kind !== "space" || loop.mode === "vector") return false;
  return loop.mode === "unroll" || (insideSum && !isSpread(loop));
}

function countOf(loops: readonly ScheduledLoop[], ranges: IndexRanges): number {
  return loops.reduce((count, l) => count * rangeOf(l.extent, ranges).max, 1);
}

/** A power of two near the root. */
function partOf(count: number): number {
  const root = 2 ** Math.round(Math.log2(count) / 2);
  return Math.min(terms.mostPart, Math.max(terms.leastPart, root));
}

function splitAt(
  region: ScheduledRegion,
  scheduled: ScheduledStatement,
  { name }: ScheduledLoop,
  factor: number,
): ScheduledStatement {
  const taken = new Set([...scheduled.index.keys(), ...scheduled.loops.map((l) => l.name)]);
  let outer = `${name}_s`;
  while (taken.has(outer)) outer += "s";
  return splitStatement(region, scheduled, {
    kind: "split",
    statement: scheduled.statement.name,
    loop: name,
    factor,
    outer,
    inner: `${outer}i`,
  });
}
