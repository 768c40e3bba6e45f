/**
 * Candidates of kernels over rows: a row to a few threads, a warp or a block, in vectors as wide as its
 * operands allow, kept in registers where they hold it. Deterministic; prices and the choice are elsewhere.
 */
import type { Region } from "../../region/nest.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import type { BlockLimits } from "../../target/target.ts";
import { type RowsDirective, rowKeepers } from "../directive.ts";
import { isNear, movesAlong, type RowsForm, rowsFault, rowsForm } from "./rows-form.ts";

/** Threads of a row, and of a block that works on several rows. */
const threadCounts = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] as const;
/** From how many on rows may be longer than two vectors of each thread. */
const usualThreads = 8;
/** Lines so short that threads of one each are far from each other in memory. */
const shortLine = 64;
const blockThreads = [128, 256] as const;
const vectorBytes = 16;

export function enumerateRows(region: Region, limits: BlockLimits): readonly RowsDirective[] {
  const form = rowsForm(region);
  if (typeof form === "string" || !isWorth(region, form)) return [];
  const statement = region.statements.at(-1)!.name;
  const found: RowsDirective[] = [];
  for (const lanes of laneCounts(region, form)) {
    for (const threads of threadCounts) {
      if (threads > usualThreads && (threads * lanes) / 2 >= form.mostElements) continue;
      if (threads < usualThreads && 2 * threads * lanes < form.mostElements) continue;
      if (threads > limits.threadsPerBlock) continue;
      const rowCounts = blockThreads.map((n) => Math.max(1, n / threads));
      for (const rows of new Set(rowCounts)) {
        for (const keep of rowKeepers) {
          found.push({ kind: "rows", statement, threads, lanes, rows, keep });
        }
      }
    }
  }
  return found.filter((d) => rowsFault(d, form) === undefined);
}

/**
 * Loops bound to threads do as well for what reads and writes a row once, unless it is scanned, folded to several
 * values at once, or short. What is scanned along another axis than the nearest has lines enough for threads.
 */
function isWorth({ statements }: Region, form: RowsForm): boolean {
  const scans = form.statements.filter((s) => s.work === "scan");
  if (scans.length > 0) return scans.every(({ statement }) => statement.writes.every(isNear));
  const [first] = form.statements;
  const reduction = first?.statement.reduction;
  const isShort = form.mostElements <= shortLine && first!.statement.reads.some(isNear);
  return statements.length > 1 || (reduction?.monoid.components.length ?? 0) > 1 || isShort;
}

/**
 * Vectors of all operands that have their elements beside each other, of as many as whole vectors make a row; the
 * widest first, as prices may tie.
 */
function laneCounts(region: Region, { statements, length }: RowsForm): readonly number[] {
  const counts = new Set([1]);
  const elements = constantValue(length) ?? 1;
  for (const { statement } of statements) {
    const { reads, finishReads, writes } = statement;
    for (const access of [...reads, ...finishReads, ...writes]) {
      const { dtype, role } = region.tensors.get(access.tensor)!;
      if (role === "local" || !movesAlong(access) || !isNear(access)) continue;
      let lanes = (8 * vectorBytes) / dtypes[dtype].bits;
      if (lanes < 1 || lanes > vectorBytes) continue;
      while (elements % lanes !== 0) lanes /= 2;
      counts.add(lanes);
    }
  }
  return [...counts].sort((a, b) => b - a);
}
