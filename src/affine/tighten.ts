/**
 * Inequalities in their strongest form over the integers: constants rounded, of parallel rows only the
 * strongest, opposite pairs recognised as contradictions or equalities. Rows are shared with the input
 * where they stay as they are and never changed in place.
 */
import { type Row, tightInequality } from "./row.ts";

export interface Tightened {
  readonly inequalities: number[][];
  readonly equalities: number[][];
}

/** More rows than this are found by their hash in a table instead of one after another. */
const fewRows = 24;

/** null when a row or a pair of rows can never hold. */
export function tighten(rows: readonly Row[]): Tightened | null {
  const kept: number[][] = [];
  const hashes: number[] = [];
  const pairs: number[] = [];
  const table = rows.length > fewRows ? new Map<number, number[]>() : undefined;
  for (const row of rows) {
    const tight = tightInequality(row);
    if (tight === null) return null;
    if (tight === undefined) continue;
    const hash = coefficientHash(tight);
    const at = table
      ? placeByTable(kept, table, hash, tight)
      : placeByScan(kept, hashes, hash, tight);
    if (at >= 0) pairs.push(at, kept.length - 1);
  }
  return settlePairs(kept, pairs);
}

/**
 * Adds the row, or strengthens a parallel one with it. Returns the place of the opposite row when
 * the row was added and has one, else -1.
 */
function placeByScan(kept: number[][], hashes: number[], hash: number, row: number[]): number {
  let opposite = -1;
  for (let k = 0; k < kept.length; k++) {
    if (hashes[k] !== hash) continue;
    const relation = compareCoefficients(kept[k]!, row);
    if (relation === 1) {
      strengthen(kept, k, row);
      return -1;
    }
    if (relation === -1) opposite = k;
  }
  kept.push(row);
  hashes.push(hash);
  return opposite;
}

function placeByTable(
  kept: number[][],
  table: Map<number, number[]>,
  hash: number,
  row: number[],
): number {
  let bucket = table.get(hash);
  if (!bucket) {
    bucket = [];
    table.set(hash, bucket);
  }
  let opposite = -1;
  for (const k of bucket) {
    const relation = compareCoefficients(kept[k]!, row);
    if (relation === 1) {
      strengthen(kept, k, row);
      return -1;
    }
    if (relation === -1) opposite = k;
  }
  bucket.push(kept.length);
  kept.push(row);
  return opposite;
}

function strengthen(kept: number[][], at: number, row: number[]): void {
  const last = row.length - 1;
  if (row[last]! < kept[at]![last]!) kept[at] = row;
}

/** Takes opposite rows that leave one value out of the inequalities; null when they leave none. */
function settlePairs(kept: number[][], pairs: readonly number[]): Tightened | null {
  const equalities: number[][] = [];
  if (pairs.length === 0) return { inequalities: kept, equalities };
  let pinned: Set<number> | undefined;
  for (let i = 0; i < pairs.length; i += 2) {
    const row = kept[pairs[i]!]!;
    const last = row.length - 1;
    const slack = row[last]! + kept[pairs[i + 1]!]![last]!;
    if (slack < 0) return null;
    if (slack > 0) continue;
    equalities.push(row);
    pinned ??= new Set();
    pinned.add(pairs[i]!).add(pairs[i + 1]!);
  }
  if (!pinned) return { inequalities: kept, equalities };
  const gone = pinned;
  return { inequalities: kept.filter((_, i) => !gone.has(i)), equalities };
}

/** The same for opposite rows. */
function coefficientHash(row: Row): number {
  let h = 0;
  for (let i = 0; i < row.length - 1; i++) {
    const c = row[i]!;
    if (c !== 0) h = (h + Math.imul(c, 2654435761 + 40503 * i)) | 0;
  }
  return h < 0 ? -h : h;
}

/** 1: equal coefficients; -1: opposite; 0: neither. */
function compareCoefficients(a: Row, b: Row): number {
  let first = 0;
  while (first < a.length - 1 && a[first] === 0 && b[first] === 0) first++;
  const sign = a[first] === b[first] ? 1 : -1;
  for (let i = first; i < a.length - 1; i++) if (a[i] !== sign * b[i]!) return 0;
  return sign;
}
