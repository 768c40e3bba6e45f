/**
 * Candidates of kernels over rows: a row to a few threads, a warp, a block or a cluster, in vectors as wide as its
 * operands allow, along the rows or across them, whichever are neighbours in memory, kept in registers where they
 * hold it. Deterministic; prices and the choice are elsewhere.
 */
import type { Access, Region, Statement } from "../../region/nest.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constantValue } from "../../semantics/index-expr.ts";
import type { BlockLimits } from "../../target/target.ts";
import { type RowsDirective, rowKeepers } from "../directive.ts";
import {
  chunksOf,
  elementLoop,
  isNear,
  movesAlong,
  type RowsForm,
  rowLoop,
  rowsFault,
  rowsForm,
} from "./rows-form.ts";

/** Threads of a row, and of a block that works on several rows. */
const threadCounts = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] as const;
/** From how many on rows may be longer than two vectors of each thread. */
const usualThreads = 8;
/** Lines so short that threads of one each are far from each other in memory. */
const shortLine = 64;
const blockThreads = [128, 256] as const;
const vectorBytes = 16;

/**
 * Vectors of rows beside each other, threads of their blocks, vectors of a thread of which shared memory keeps half at
 * most, and parts of rows that clusters share.
 */
const besideCounts = [2, 4, 8, 16, 32] as const;
const acrossThreads = [128, 256, 512, 1024] as const;
const mostPlaced = 16;
/** Rows for each core from which on those across are dealt out in vectors alone. */
const manyRows = 256;
const partCounts = [1, 2, 4, 8] as const;
/** Threads of a block that has a part of one row. */
const partThreads = [256, 512, 1024] as const;
/** Of rows that are scanned across: rows beside each other, elements of a thread at once, and how many of these are tried. */
const scannedBeside = [4, 8, 16, 32, 64] as const;
const itemCounts = [16, 8, 4, 2, 1] as const;
const itemKinds = 2;
const warpThreads = 32;

export function enumerateRows(
  region: Region,
  limits: BlockLimits,
  hasClusters: boolean,
): readonly RowsDirective[] {
  const form = rowsForm(region);
  if (typeof form === "string" || !isWorth(region, form)) return [];
  const of = { region, form, limits, hasClusters };
  return [...candidatesOf(of)].filter((d) => rowsFault(d, form) === undefined);
}

function candidatesOf(of: Rows): Generator<RowsDirective> {
  if (!isAcross(of.region, of.form)) return alongRows(of);
  return of.form.statements.some((s) => s.work === "scan") ? scannedAcross(of) : acrossRows(of);
}

interface Rows {
  readonly region: Region;
  readonly form: RowsForm;
  readonly limits: BlockLimits;
  readonly hasClusters: boolean;
}

function* alongRows({ region, form, limits, hasClusters }: Rows): Generator<RowsDirective> {
  const statement = region.statements.at(-1)!.name;
  const plain = { kind: "rows", statement, across: false, items: 1, shared: 0 } as const;
  for (const lanes of laneCounts(region, form, elementLoop)) {
    for (const threads of threadCounts) {
      if (threads > usualThreads && (threads * lanes) / 2 >= form.mostElements) continue;
      if (threads < usualThreads && 2 * threads * lanes < form.mostElements) continue;
      if (threads > limits.threadsPerBlock) continue;
      const rowCounts = blockThreads.map((n) => Math.max(1, n / threads));
      for (const rows of new Set(rowCounts)) {
        for (const keep of rowKeepers) yield { ...plain, threads, lanes, rows, parts: 1, keep };
      }
    }
    if (!hasClusters) continue;
    for (const threads of partThreads) {
      for (const parts of partCounts.slice(1)) {
        // Parts are for rows that one block does not keep, or that are too few for the machine.
        if (form.mostElements < 2 * threads * lanes * parts) continue;
        for (const keep of rowKeepers) yield { ...plain, threads, lanes, rows: 1, parts, keep };
      }
    }
  }
}

/** Blocks of lines of neighbouring rows, whose threads share the elements out among them. */
function* acrossRows({ region, form, limits, hasClusters }: Rows): Generator<RowsDirective> {
  const statement = region.statements.at(-1)!.name;
  const plain = { kind: "rows", statement, across: true, items: 1 } as const;
  const [widest, ...narrower] = laneCounts(region, form, rowLoop(form.rows.length - 1));
  // Where there are rows for all cores, those of a vector are a thread's.
  const isMany = rowsOf(form) >= manyRows * limits.cores;
  for (const lanes of [widest!, ...(isMany ? [] : narrower)]) {
    for (const rows of besideCounts) {
      for (const size of acrossThreads) {
        const threads = size / rows;
        if (size > limits.threadsPerBlock || threads / 2 >= form.mostElements) continue;
        for (const parts of hasClusters ? partCounts : [1]) {
          if (parts > 1 && form.mostElements < 2 * threads * parts) continue;
          for (const keep of rowKeepers) {
            const d = { ...plain, threads, lanes, rows, parts, keep, shared: 0 };
            yield d;
            if (keep !== "memory") yield* withShared(d, form);
          }
        }
      }
    }
  }
}

/** None where their number is open. */
function rowsOf({ rows }: RowsForm): number {
  return rows.reduce((n, extent) => n * (constantValue(extent) ?? 0), 1);
}

/**
 * The same with half of each thread's vectors in shared memory: with more there fewer are on the way together (three
 * quarters took as long at best and a fifth longer at worst in 20 cases, H200).
 */
function* withShared(d: RowsDirective, form: RowsForm): Generator<RowsDirective> {
  const chunks = chunksOf(form, d);
  if (chunks > mostPlaced) return;
  const shared = Math.floor(chunks / 2);
  if (shared > 0) yield { ...d, shared };
}

/** A thread has elements behind each other of one row, and its neighbours those of the rows beside it. */
function* scannedAcross({ region, form, limits }: Rows): Generator<RowsDirective> {
  const statement = region.statements.at(-1)!.name;
  const plain = { kind: "rows", statement, lanes: 1, across: true, parts: 1, shared: 0 } as const;
  const length = constantValue(form.length);
  if (length === undefined) {
    // Of an open number of turns it is not proved that warps which meet in them wait for each other.
    for (const rows of scannedBeside) {
      const threads = Math.max(1, warpThreads / rows);
      yield { ...plain, threads, items: 1, rows, keep: "memory" };
    }
    return;
  }
  const itemsOfRow = itemCounts.filter((n) => n < 2 * length).slice(0, itemKinds);
  const beside = constantValue(form.rows.at(-1)!) ?? Infinity;
  for (const rows of scannedBeside.filter((n) => n === scannedBeside[0] || n < 2 * beside)) {
    for (const size of acrossThreads) {
      const threads = size / rows;
      if (size > limits.threadsPerBlock) continue;
      for (const items of itemsOfRow) {
        if (threads > 1 && (threads * items) / 2 >= form.mostElements) continue;
        for (const keep of rowKeepers) yield { ...plain, threads, items, rows, keep };
      }
    }
  }
}

function accessesOf({
  reads,
  finishReads,
  writes,
}: Statement): readonly Pick<Access, "tensor" | "index">[] {
  return [...reads, ...finishReads, ...writes];
}

/** Whether what comes from memory, or goes there, has rows as neighbours and never elements of a row. */
function isAcross({ tensors }: Region, { statements, rows }: RowsForm): boolean {
  const beside = rowLoop(rows.length - 1);
  const moved = statements
    .flatMap((s) => accessesOf(s.statement))
    .filter((a) => tensors.get(a.tensor)!.role !== "local" && movesAlong(a));
  return moved.some((a) => isNear(a, beside)) && !moved.some((a) => isNear(a, elementLoop));
}

/**
 * Loops bound to threads do as well for what reads and writes a row once, unless it is scanned, folded to several
 * values at once, or short. What is scanned along another axis than the nearest is read across.
 */
function isWorth(region: Region, form: RowsForm): boolean {
  const { statements } = region;
  const scans = form.statements.filter((s) => s.work === "scan");
  if (scans.length > 0) {
    const isAlong = scans.every(({ statement }) => statement.writes.every((w) => isNear(w)));
    return isAlong || isAcross(region, form);
  }
  const [first] = form.statements;
  const reduction = first?.statement.reduction;
  const isShort = form.mostElements <= shortLine && first!.statement.reads.some((r) => isNear(r));
  return statements.length > 1 || (reduction?.monoid.components.length ?? 0) > 1 || isShort;
}

/**
 * Vectors of all operands that are neighbours along a loop, of as many as whole vectors make of it; the widest
 * first, as prices may tie.
 */
function laneCounts(
  region: Region,
  { statements, length, rows }: RowsForm,
  loop: string,
): readonly number[] {
  const counts = new Set([1]);
  const extent = loop === elementLoop ? length : rows.at(-1)!;
  const elements = constantValue(extent) ?? 1;
  for (const access of statements.flatMap((s) => accessesOf(s.statement))) {
    const { dtype, role } = region.tensors.get(access.tensor)!;
    if (role === "local" || !movesAlong(access) || !isNear(access, loop)) continue;
    let lanes = (8 * vectorBytes) / dtypes[dtype].bits;
    if (lanes < 1 || lanes > vectorBytes) continue;
    while (elements % lanes !== 0) lanes /= 2;
    counts.add(lanes);
  }
  return [...counts].sort((a, b) => b - a);
}
