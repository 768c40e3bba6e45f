/** What a block can be given of attention: tiles, registers, shared memory. Pure. */

import type { Access } from "../../region/nest.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constantValue, mentionsVariable, sub } from "../../semantics/index-expr.ts";
import { literal, mapScalar, scalarsAtOnce } from "../../semantics/scalar-expr.ts";
import type { AttendDirective } from "../directive.ts";
import { streamedPanel } from "../products/stream-operands.ts";
import { isOfRows } from "./attention-bounds.ts";
import {
  type AttentionForm,
  columnName,
  isMultiple,
  isOpenAttention,
  plainScale,
  rowName,
} from "./attention-form.ts";

/** Elements of a row of shared memory where warps multiply: as wide as the widest swizzle. */
const panelElements = 64;
/** Rows of one instruction of a warp, and columns and depth of its operands in one load. */
const unit = 16;
/** Columns of results of which a thread has two, and what is sent of them and their rows. */
const [pairColumns, warpThreads, vectorBytes] = [8, 32, 16] as const;
/** Blocks of a cluster that every device takes, and parts that meet in memory. */
const [mostParts, mostSplits] = [8, 1024] as const;
/**
 * Results and scores that a thread holds at most, in words; by warps, of a triangle whose last rows are no whole tile,
 * whose bounds an assembler holds beside them, and of so many that are kept from step to step, beside which products
 * have less room for operands; and by warps, with what it loads ahead of its use (ptxas 13.0: up to 192 of them take
 * at most all 255 registers, from 200 on many are spilled).
 */
const [mostWords, mostFullWords, muchKept, mostAhead] = [200, 184, 144, 196] as const;
/** Words of queries, of sixteen rows, that are on the way from shared memory where a thread does not keep them. */
const queriesAhead = 8;
/** Width up to which a thread keeps queries beside operands of its scores. */
const widestKept = 192;

/** Threads' words of a block's warpgroups by how many multiply, with room for what else they hold. */
const groupWords: Readonly<Record<number, number>> = { 1: 200, 2: 208, 3: 128 };
/**
 * Columns of a step whose scores need no registers beside those that are counted, and of how many more an assembler
 * works on one score before the others are done: as ptxas 13.0 spills, of scores that are bounded, masked, and both.
 */
const [orderlyColumns, earlyColumns] = [56, 3] as const;
/** Columns of one instruction of a warpgroup. */
const mostColumns = 256;
/** The same where three groups share a multiprocessor's registers (ptxas 13.0: C7602), and the least head of groups. */
const [mostOfThree, leastHead] = [192, 32] as const;
/** Alignment and counters of a stream. */
const streamBytes = 1280;

/** Why no block can be given such a tile, or undefined. */
export function attendFault(d: AttendDirective, form: AttentionForm): string | undefined {
  const [rows, columns] = d.tile;
  const numbers = [rows, columns, d.warps, d.stages, d.parts, d.splits];
  if (numbers.some((n) => !Number.isSafeInteger(n) || n < 1))
    return "not all are positive integers";
  if (columns % unit !== 0) return `${columns} columns are no multiple of ${unit}`;
  if (d.stages < 2 && !isOneStep(d, form))
    return "one stage: copies would wait for what they overwrite";
  const fault =
    (d.by === "wgmma" ? groupFault(d, form) : warpFault(d, form)) ?? partsFault(d, form);
  if (fault !== undefined) return fault;
  return isTriangular(d, form) && rows % columns !== 0 && form.rows > rows
    ? `rows of a tile are no multiple of ${columns} columns, by which a triangle is cut`
    : undefined;
}

/** Parts of the columns, whichever way blocks that have one meet. */
export function sharesOf({ parts, splits }: AttendDirective): number {
  return parts * splits;
}

/** Why blocks cannot each take a part of the columns. */
function partsFault(d: AttendDirective, form: AttentionForm): string | undefined {
  const { by, tile, parts, splits } = d;
  const shares = sharesOf(d);
  if (shares === 1) return undefined;
  if (isOpenAttention(form)) return "blocks share columns where extents are known";
  if (by !== "mma") return "only warps share columns with other blocks";
  if (parts > mostParts) return `${parts} parts, of at most ${mostParts}`;
  if (parts > 1 && splits > 1) return "parts meet in a cluster or in memory, not in both";
  if (splits > mostSplits) return `${splits} splits, of at most ${mostSplits}`;
  const isWhole = isTriangular(d, form) && form.rows > tile[0];
  if (isWhole || windowSteps(d, form) !== undefined)
    return "tiles of a triangle or a band have columns of their own";
  const steps = stepsOfTile(d, form);
  const isEven = form.reach ? steps >= shares : steps % shares === 0;
  if (!isEven) return `${steps} steps of columns in ${shares} parts`;
  if (parts === 1) return undefined;
  const { width } = form;
  const unit = pairColumns * parts;
  return width % unit === 0 ? undefined : `results of ${width}, no multiple of ${unit} elements`;
}

/** Steps of the columns, where those of all tiles are the same. */
export function stepsOfTile(d: AttendDirective, form: AttentionForm): number {
  return isTriangular(d, form) ? stepsOfOne(d, form) : Math.ceil(form.columns / d.tile[1]);
}

/** Whether no block has more than one step of the columns, so that one stage holds them. */
export function isOneStep(d: AttendDirective, form: AttentionForm): boolean {
  return Math.ceil(form.columns / d.tile[1]) <= sharesOf(d);
}

/** Bytes of shared memory into which the other blocks of a cluster send a block results of its rows. */
export function sentBytes({ tile, parts }: AttendDirective, { width }: AttentionForm): number {
  // A thread has four results of sixteen rows and eight columns, and four values of the rows.
  const vectors = (tile[0] / unit) * (width / pairColumns / parts + 1);
  return (parts - 1) * vectors * warpThreads * vectorBytes;
}

function warpFault(d: AttendDirective, form: AttentionForm): string | undefined {
  const [rows, columns] = d.tile;
  const { depth, width, query, key, value } = form;
  if (rows % (unit * d.warps) !== 0)
    return `${rows} rows for ${d.warps} warps of a multiple of ${unit}`;
  if (d.warps > 32) return `${d.warps} warps`;
  if (depth % unit !== 0 || width % unit !== 0)
    return `heads of ${depth} and ${width} elements are no multiples of ${unit}`;
  const narrow = [query, key, value].find((o) => o.lanes < 2);
  if (narrow) return `${narrow.access.tensor} has no vectors of 4 bytes to copy`;
  for (const o of [key, value]) {
    if (o.along === columnName && columns % o.lanes !== 0) return `${columns} columns in vectors`;
  }
  if (d.gathered) return "threads of warps store results themselves";
  const [words, ahead] = [wordsOfThread(d, form), wordsAhead(d, form)];
  const isRagged = isTriangular(d, form) && !isMultiple(form.rowCount, rows);
  const isFull = isRagged || keptOfThread(d, form) >= muchKept;
  if (words > (isFull ? mostFullWords : mostWords))
    return `a thread would hold ${words} words of results and scores`;
  if (ahead === 0 || words + ahead <= mostAhead) return undefined;
  return `a thread would hold ${words} words of results and scores, and ${ahead} that are loaded ahead`;
}

function groupFault(d: AttendDirective, form: AttentionForm): string | undefined {
  const [rows, columns] = d.tile;
  const { depth, width, query, key, value } = form;
  const most = groupWords[d.warps / 4];
  if (most === undefined || rows !== unit * d.warps)
    return `${rows} rows for ${d.warps} warps: one to three groups of 4 warps have 64 rows each`;
  if (d.warps === 12 && form.reach && isOfRows(form.reach))
    return "three groups have no registers for columns that each row has of its own";
  // Rows that are left out hold their own bounds as well: an assembler spills.
  if (form.reach && isOfRows(form.reach) && !isMultiple(form.rowCount, rows))
    return `${form.rows} rows, each with columns of its own, are no multiple of ${rows}`;
  if (columns > mostColumns || width > mostColumns)
    return `${columns} columns and ${width} elements: an instruction has ${mostColumns}`;
  if (depth % unit !== 0 || width % unit !== 0)
    return `heads of ${depth} and ${width} elements are no multiples of ${unit}`;
  if (Math.min(depth, width) < leastHead)
    return `heads of ${Math.min(depth, width)} elements: an assembler makes their products wait (C7511)`;
  if (d.warps === 12 && width > mostOfThree)
    return `three groups have no registers for an instruction of ${width} columns`;
  const unboxed = [query, key, value].find((o) => !o.box);
  if (unboxed) return `a tensor copy finds no tile of ${unboxed.access.tensor}`;
  const mixed = [key, value].find((o) => !o.box!.isWhole);
  if (mixed && (!isMultiple(form.columnCount, columns) || windowSteps(d, form) !== undefined))
    return `beside the lines of ${mixed.access.tensor} there are others, not zeros`;
  if (d.gathered && !mayGather(d, form)) return "no tensor copy stores its results";
  const [words, begun] = [wordsOfThread(d, form), wordsBegun(d, form)];
  // What two groups have more of is not for values on the way: an assembler spills.
  if (words + begun <= (begun === 0 ? most : Math.min(most, mostWords))) return undefined;
  const beside = begun === 0 ? "" : `, and ${begun} of what scores are made of`;
  return `a thread would hold ${words} words of results and scores${beside}`;
}

/** Problems, each of which has its own keys and values. */
export function problemsOf({ problems }: AttentionForm): number {
  return problems;
}

/** Whether results may leave by tensor copies, from where the queries were: whole tiles, or what hangs over is dropped. */
export function mayGather({ tile }: AttendDirective, form: AttentionForm): boolean {
  const { result, rowCount, depth, width, dtype, finishType } = form;
  const isEven = isMultiple(rowCount, tile[0]);
  return (
    result !== undefined && (result.isWhole || isEven) && depth === width && dtype === finishType
  );
}

/** Registers of results, scores and what is multiplied by values. */
export function wordsOfThread(d: AttendDirective, form: AttentionForm): number {
  const [rows, columns] = d.tile;
  const tall = rows / d.warps / unit;
  return tall * (columns / 2 + columns / 4) + keptOfThread(d, form);
}

/** Of these, what a thread has from step to step: results, and queries. */
function keptOfThread({ by, tile: [rows], warps }: AttendDirective, form: AttentionForm): number {
  const tall = rows / warps / unit;
  const queries = by === "mma" && keepsQueries(form) ? (tall * form.depth) / 4 : 0;
  return (tall * form.width) / 2 + queries;
}

/**
 * Registers of values on the way from sums to scores: of a score each has its own, what else its expression holds
 * at once comes on top for those that an assembler begins early, and again for each value that they wait for.
 */
function wordsBegun(
  { tile: [, columns] }: AttendDirective,
  { score, scoreReads }: AttentionForm,
): number {
  if (plainScale(score) !== undefined) return 0;
  const early = Math.ceil(Math.max(0, columns - orderlyColumns) / earlyColumns);
  const ofSum = mapScalar(score, (e) =>
    e.kind === "argument" && e.index > 0 ? literal(0, e.dtype) : e,
  );
  return early * (scalarsAtOnce(ofSum) - 1) * (1 + scoreReads.length);
}

/**
 * Registers of what warps load ahead of its use: an assembler begins all loads of a step's masks at once, before the
 * products, and, where they come from shared memory in each step, those of the next queries; of a step that has no
 * other before it, of all.
 */
function wordsAhead(d: AttendDirective, form: AttentionForm): number {
  if (form.scoreReads.length === 0) return 0;
  const [rows, columns] = d.tile;
  const tall = rows / d.warps / unit;
  const ofRows = isOneStep(d, form) ? form.depth / 4 : queriesAhead;
  const queries = keepsQueries(form) ? 0 : ofRows * tall;
  const reads = readTypes(form).map(([access, bits]) => {
    const mentions = (name: string): boolean => access.index.some((e) => mentionsVariable(e, name));
    // Halves come in pairs where these are whole, bytes are taken apart; rows that read the same read it once.
    const words = isMultiple(form.columnCount, 2) && bits === 16 ? 1 : 2;
    const ofRow = mentions(columnName!) ? (words * columns) / pairColumns : 1;
    const isOfRows = mentions(rowName!) || !isMultiple(form.rowCount, rows);
    return ofRow * (isOfRows ? 2 * tall : 1);
  });
  return reads.reduce((sum, words) => sum + words, queries);
}

/** Operands of scores and the bits of their elements. */
function readTypes({ score, scoreReads }: AttentionForm): readonly (readonly [Access, number])[] {
  const bits = new Map<number, number>();
  mapScalar(score, (e) => {
    if (e.kind === "argument") bits.set(e.index - 1, dtypes[e.dtype].bits);
    return e;
  });
  return scoreReads.map((access, i) => [access, bits.get(i) ?? 0]);
}

/**
 * Whether a thread keeps what it multiplies by keys, or loads it from shared memory in each step: as wide results and
 * operands of scores leave no room for it.
 */
export function keepsQueries({ depth, width, scoreReads }: AttentionForm): boolean {
  return depth <= 128 && (scoreReads.length === 0 || width <= widestKept);
}

/** Whether steps right of the diagonal are left out: columns that no row of a tile meets. */
export function isTriangular(
  _: AttendDirective,
  { ahead, rowCount, columnCount }: AttentionForm,
): boolean {
  const more = constantValue(sub(columnCount, rowCount));
  return ahead !== undefined && ahead >= 0 && more !== undefined && ahead <= more;
}

/** Steps up to the diagonal's last column, of a tile whose first row is a multiple of the columns of a step. */
export function stepsAhead({ tile: [rows, columns] }: AttendDirective, { ahead }: AttentionForm) {
  return Math.floor((rows + ahead! + columns - 1) / columns);
}

/**
 * Steps of each tile where those before a band are left out as well, the same number for all; undefined: none is.
 * Tiles at the start have some before the first column.
 */
export function windowSteps(d: AttendDirective, form: AttentionForm): number | undefined {
  const { behind, rows } = form;
  if (behind === undefined || !isTriangular(d, form)) return undefined;
  const [tall, columns] = d.tile;
  const tiles = Math.ceil(rows / tall);
  if (tiles === 1) {
    const before = Math.floor(Math.max(0, -behind) / columns);
    return before > 0 ? stepsOfOne(d, form) - before : undefined;
  }
  const steps = stepsAhead(d, form) + Math.ceil(behind / columns);
  const most = (tall / columns) * (tiles - 1) + stepsAhead(d, form);
  return steps < most ? Math.max(1, steps) : undefined;
}

/** Steps of a triangle that is one tile. */
export function stepsOfOne({ tile: [rows, wide] }: AttendDirective, form: AttentionForm): number {
  return Math.min(Math.ceil(form.columns / wide), Math.ceil((rows + form.ahead!) / wide));
}

/** Neighbours, from a first one on, in panels of one width. */
export interface Panels {
  readonly first: number;
  readonly elements: number;
  /** Elements of a row of shared memory: a last one of what warps read may be a part empty. */
  readonly panel: number;
}

/**
 * The panels in which elements of queries and keys lie in shared memory: whole lines of memory, and what is left in
 * panels of the width that divides it.
 */
export function linePanels(
  { by }: Pick<AttendDirective, "by">,
  elements: number,
): readonly Panels[] {
  if (by === "mma") return [{ first: 0, elements, panel: Math.min(panelElements, elements) }];
  const whole = elements - (elements % panelElements);
  const runs = [
    { first: 0, elements: whole },
    { first: whole, elements: elements - whole },
  ].filter((run) => run.elements > 0);
  return runs.map((run) => ({ ...run, panel: streamedPanel(run.elements) }));
}

/** The same of values, of which one instruction takes panels of one width. */
export function valuePanels(d: Pick<AttendDirective, "by">, elements: number): readonly Panels[] {
  if (d.by === "mma") return linePanels(d, elements);
  return [{ first: 0, elements, panel: streamedPanel(elements) }];
}

/** Bytes of shared memory. */
export function attentionBytes(d: AttendDirective, form: AttentionForm): number {
  const { by, tile, stages } = d;
  const [rows, columns] = tile;
  const unit = by === "wgmma" ? 1 : panelElements;
  const padded = (n: number): number => Math.ceil(n / unit) * unit;
  const wide = (extent: number, along: string): number =>
    along === columnName ? extent * padded(columns) : columns * padded(extent);
  const step = wide(form.depth, form.key.along) + wide(form.width, form.value.along);
  const own = by === "wgmma" ? streamBytes : sentBytes(d, form);
  return 2 * (rows * padded(form.depth) + stages * step) + own;
}
