/**
 * The time of a product by blocks (schedule/products/product-form.ts), without its launch. A multiprocessor holds as
 * many blocks as its shared memory, registers and threads allow; they share its units, so that all of its blocks
 * take for each step the most of
 *
 *   multiplying     the tile's products at the rate of the instruction, what threads make of operands on their way,
 *                   and a share of what they read meanwhile
 *   near memory     what the threads read of shared memory
 *   far memory      both tiles at the share of the caches that a multiprocessor has
 *
 * and each round of them no less than the latency of a copy, from memory or from the near cache, over the stages
 * that are on the way, and at its ends the latency of the first tiles and the bytes of the results.
 * Blocks that go on from tile to tile have those ends once, and store results beside the next tile's products;
 * where clusters share the last round it takes its part of a tile's time, and an exchange. Constants are set by
 * correlation-suite.ts on an H200, the share of cold operands by model-suite.ts.
 */
import type { Statement } from "../region/nest.ts";
import type { Multiplier, MultiplyDirective } from "../schedule/directive.ts";
import { sumsApart } from "../schedule/products/apart-sums.ts";
import { blockBytes } from "../schedule/products/block-bytes.ts";
import { exchangedBytes, sharedSide, sharedTiles } from "../schedule/products/product-blocks.ts";
import {
  hasPrologue,
  heldRegisters,
  type ProductForm,
  type ProductSide,
  resultParts,
  takesRegisters,
} from "../schedule/products/product-form.ts";
import type { ResultFold } from "../schedule/products/result-folds.ts";
import { streamedPanel } from "../schedule/products/stream-operands.ts";
import type { ScheduledProduct } from "../schedule/scheduled-region.ts";
import { type DType, dtypes, isIntegerDType } from "../semantics/dtype.ts";
import { splitLinear } from "../semantics/index-expr.ts";
import { type ScalarExpr, scalarCost, scalarOperands } from "../semantics/scalar-expr.ts";
import type { BlockLimits, MatrixRates } from "../target/target.ts";
import { longestOf } from "./region-work.ts";
import { residentBlocks } from "./resident-blocks.ts";
import { rateOfRows } from "./short-lines.ts";

/** Part of the instruction's rate that a well filled multiprocessor keeps up: loops, addresses, waits. */
const sustained = { fma: 0.7, mma: 1, wgmma: 0.8 } as const;
/** With so many warps as a share of those that keep units busy, the rate is this power of it (H200). */
const waitingShare = { fma: 1, mma: 0.21, wgmma: 0.12 } as const;
/** Of what shared memory takes, or the products where these take less, what is not beside the other (H200). */
const besideShare = { fma: 0.15, mma: 0.5, wgmma: 0.05 } as const;
/** Warps of a multiprocessor from which on its units have work all the time. */
const busyWarps = 8;
/** Registers of a thread beside its sums. */
const plainRegisters = { fma: 96, mma: 72, wgmma: 40 } as const;
/** Latency of a copy from memory while all multiprocessors copy, over the unloaded one: 1.2 us on an H200. */
const loadedLatency = 2.4;
/** A step of a ring whose tiles come from the near cache: by itself, and more where few are on the way (H200). */
const nearLatency = { fma: [150, 200], mma: [150, 200], wgmma: [80, 280] } as const;
/** What a ring of tensor copies draws from memory, over the share of a multiprocessor: 36 B/ns on an H200. */
const mostDrawn = 1.1;
/**
 * Of what copies take from the near cache, what is not beside the products where it does not hold the rows and columns
 * that tiles at once read: tiles that bring less are faster by so much (square 16384 on an H100).
 */
const crowdedShare = 0.1;
/**
 * Part of the rate of shared memory that tensor copies and matrix units have together, at the clock that long products
 * leave: tiles (256, 96), (256, 64), (128, 96) and (128, 128) of an H100 are at that. Where the near cache holds the
 * operands products are short, and others of their bounds come first.
 */
const filledShare = 0.81;
/** Of operands that fit into the near cache, what is not in it: weights that nothing read since the last run. */
const coldShare = 0.5;
/** A step of a stream by itself: waits, addresses and their remainders by the number of stages (H200). */
const stepNs = { shift: 150, divide: 230 } as const;
/** Part of the rate of memory at which results go there in pairs, half a sector at a time (H200). */
const scatteredShare = 0.3;
/** The same of pairs of f32: four threads fill a sector. */
const rawShare = 0.6;
/** Times that a tensor copy takes of which most lies outside the operand (H200). */
const hangingCopies = 2;
/** And of results that are copied out in whole lines. */
const gatheredShare = 0.8;
/** Instructions of one copy into shared memory, and for each further digit of its place and each of its guards. */
const copyInstructions = { plain: 6, digit: 10, guard: 2 } as const;
/** Of these, what matrix units leave to be waited for. */
const copyShare = { fma: 1, mma: 0.5, wgmma: 0 } as const;
/** Instructions that take an integer of 8 bits or less out of its word, and what its conversion takes beyond one. */
const cuttingOut = 2;
/** From the last product of a tile to the first of the next one, without what the threads do with sums (H200). */
const tileTurn = 400;
/** What an exchange of sums within a cluster takes, and the bytes that a block sends meanwhile (H200). */
const exchanging = { first: 300, bytesPerNs: 60 } as const;
/** Of each step of a lone warpgroup: nobody multiplies while it waits for a stage (H200). */
const loneTurn = 100;
/** Warps of a warpgroup. */
const groupWarps = 4;
/** Rounding in the allocation of registers. */
const registerUnit = 8;

/**
 * @param operandBytes what the product reads, each element once: less than its rows and columns have where windows
 * of a feature map overlap
 */
export function productNanoseconds(
  { form, directive }: ScheduledProduct,
  { statement, operandBytes }: { readonly statement: Statement; readonly operandBytes: number },
  limits: BlockLimits,
): number {
  const { by, warps, stages } = directive;
  const [rows, columns, depth] = directive.tile;
  const { warpThreads, cores } = limits;
  const bytes = dtypes[form.dtype].bits / 8;
  const resident = residentProducts({ form, directive }, limits);
  if (typeof resident === "string") return Infinity;
  // A last group that is not full is worked through like the others.
  const down = directive.group * Math.ceil(form.rows.extent / rows / directive.group);
  const across = Math.ceil(form.columns.extent / columns);
  const sharesRound = directive.blocks > 0 && directive.parts > 1;
  // Tiles that single blocks have, or blocks that have a part of one.
  const parts = sharesRound ? 1 : directive.parts;
  const tiles = down * across * form.batch.extent;
  const blocks = tiles * parts - (sharesRound ? sharedTiles(directive, tiles) : 0);
  const perCore = Math.ceil(blocks / cores);
  const together = Math.min(resident, perCore);
  const rounds = Math.ceil(perCore / together);
  const busy = Math.min(1, (together * directive.teams * warps[0] * warps[1]) / busyWarps);
  const rate = rateOf(by, form.dtype, limits) * sustained[by] * busy ** waitingShare[by];
  const multiply = (2 * rows * columns * depth) / rate;
  // One warpgroup adds while others multiply.
  const alone = Math.max(1, (directive.teams * warps[0]) / groupWarps);
  const apart = sumsApart(form) ? addingNanoseconds(directive, limits) / alone : 0;
  const isLong = operandBytes > limits.nearBytes;
  const read = sharedNanoseconds(directive, bytes, { limits, isLong });
  const address =
    (addressInstructions({ form, directive }, warpThreads) +
      prologueInstructions({ form, directive }, warpThreads)) /
    limits.warpInstructionsPerNsPerCore.value;
  const lines = lineShare({ form, directive });
  const hangs = by === "wgmma" && 2 * form.rows.extent <= rows ? hangingCopies : 1;
  const copied = broughtBytes(directive, form) * lines;
  const active = Math.min(cores, blocks);
  const copy = (hangs * copied * active) / limits.nearBytesPerNs.value;
  const latency = hangs * latencyNanoseconds({ form, directive }, operandBytes, limits);
  const steps = Math.ceil(form.depth.extent / depth) / parts;
  const results = (rounds * together * active * rows * columns) / parts;
  // What the epilogue reads of a result comes beside the products, or is waited for in pairs behind them.
  const reads = (results * form.operandBits) / 8 / limits.memoryBytesPerNs.value;
  const beside = directive.ahead ? reads : 0;
  const drawn = drawnShare(directive, active, { operandBytes, limits });
  const brought = farNanoseconds({ form, directive }, operandBytes, { limits, together });
  const far = drawn * lines * brought + beside;
  const waited = (reads - beside) / rounds / scatteredShare;
  const step = by === "wgmma" ? stepNs[isPowerOfTwo(stages) ? "shift" : "divide"] : 0;
  const finish = (statement.finish ?? []).reduce((sum, e) => sum + scalarCost(e), 1);
  const folding = form.fold ? foldingCost(form.fold.statement) : 0;
  const slots = (together * rows * columns * (finish + folding + 2)) / parts / warpThreads;
  const ends = 2 * limits.memoryLatencyNs.value + slots / limits.warpInstructionsPerNsPerCore.value;
  // Sums that nothing finishes are stored as they are: two of them are a quarter of a sector.
  const isRaw = statement.finish === undefined;
  const each = isRaw ? 4 : dtypes[form.result].bits / 8;
  const left = form.fold ? foldedBytes(form.fold) : statement.writes.length * each;
  const stored = (results * left) / rounds;
  const share = directive.results > 0 ? gatheredShare : isRaw ? rawShare : scatteredShare;
  const stores = stored / (share * limits.memoryBytesPerNs.value);
  // A block that is left by the others has the units to itself: it is their blocks that count, not their rounds.
  const used = multiply + apart + address / busy;
  const groups = together * directive.teams * (warps[0] / groupWarps);
  const turn = by === "wgmma" && groups === 1 ? loneTurn : 0;
  const isCrowded =
    by === "wgmma" && panelBytes({ form, directive }, limits.cores * together) > limits.nearBytes;
  const crowded = isCrowded ? crowdedShare * copy : 0;
  const own = Math.max(used, read) + besideShare[by] * Math.min(used, read) + turn + crowded;
  const work = (perCore / rounds) * Math.max(own, copy);
  const round =
    longestOf(
      steps * Math.max(work, latency, step),
      far / (rounds + (sharesRound ? 1 / directive.parts : 0)),
    ) + waited;
  const exchange = directive.parts > 1 ? exchangeNanoseconds(directive) : 0;
  if (directive.blocks === 0) return rounds * (round + exchange + stores + ends);
  const finished = tileTurn + slots / limits.warpInstructionsPerNsPerCore.value;
  const shared = sharesRound ? (round + stores + finished) / directive.parts + exchange : 0;
  return ends + stores + shared + rounds * perTile({ form, directive, round, stores, finished });
}

/** Bytes that a fold leaves of each result. */
function foldedBytes({ statement, columns }: ResultFold): number {
  const { components } = statement.reduction!.monoid;
  return components.reduce((sum, { dtype }) => sum + dtypes[dtype].bits / 8, 0) / columns;
}

/** Instructions of a fold for each element: what it makes of it, and to combine two. */
function foldingCost({ body, reduction }: Statement): number {
  return [...body, ...reduction!.monoid.combine].reduce((sum, e) => sum + scalarCost(e), 0);
}

/** How much longer memory takes to bring to few multiprocessors what it could give: each draws so much. */
function drawnShare(
  { by, parts }: MultiplyDirective,
  active: number,
  { operandBytes, limits }: { readonly operandBytes: number; readonly limits: BlockLimits },
): number {
  if (by !== "wgmma") return limits.cores / active;
  const isNear = operandBytes <= limits.nearBytes / 2;
  // Clusters are not dealt out evenly, and their blocks wait for each other.
  const each = parts > 1 ? 1 : mostDrawn;
  return isNear ? 1 : Math.max(1, limits.cores / active / each);
}

/** The least time of a step, from when a stage is free to when it is full again. */
function latencyNanoseconds(
  { form, directive: { by, stages } }: ScheduledProduct,
  operandBytes: number,
  limits: BlockLimits,
): number {
  const ahead = hasPrologue(form) ? 1 : stages - 1;
  const far = (loadedLatency * limits.memoryLatencyNs.value) / ahead;
  if (operandBytes > limits.nearBytes / 2) return far;
  const [least, more] = nearLatency[by];
  return coldShare * far + (1 - coldShare) * (least + more / Math.sqrt(ahead));
}

/** Sums of parts of the depth on their way to the blocks of a cluster that finish them. */
function exchangeNanoseconds(directive: MultiplyDirective): number {
  const { first, bytesPerNs } = exchanging;
  return first + exchangedBytes(directive) / bytesPerNs;
}

/**
 * One tile after another: teams that take turns hide what they do with sums behind another's products;
 * copies of gathered results run beside the next tile's products where there is room for all of them.
 */
function perTile(of: {
  readonly form: ProductForm;
  readonly directive: MultiplyDirective;
  readonly round: number;
  readonly stores: number;
  readonly finished: number;
}): number {
  const { form, directive, round, stores, finished } = of;
  const { teams, results } = directive;
  const beside = results > 0 && results >= resultParts(directive, form) ? stores : 0;
  const own = round + finished + stores - beside;
  return Math.max(teams > 1 ? Math.max(round, own / teams) : own, beside);
}

/** Bytes of both tiles that a block brings itself in a step. */
function broughtBytes(directive: MultiplyDirective, form: ProductForm): number {
  const [rows, columns, depth] = directive.tile;
  const [left, right] = [rows * bytesOf(form.rows), columns * bytesOf(form.columns)];
  const [own, shared] = sharedSide(directive, form) === "left" ? [right, left] : [left, right];
  return (own + shared / directive.cluster) * depth;
}

/** Bytes that are read for each element of an operand. */
function bytesOf({ dtype, prologue }: ProductSide): number {
  return (prologue?.bits ?? dtypes[dtype].bits) / 8;
}

/** Instructions of warps for what becomes of operands on their way into shared memory. */
function prologueInstructions({ form, directive }: ScheduledProduct, warpThreads: number): number {
  const [rows, columns, depth] = directive.tile;
  const ofSide = (side: ProductSide, extent: number): number => {
    const { prologue, line, loops } = side;
    if (!prologue) return 0;
    const along = (line.along === "depth" ? form.depth.loops : loops).at(-1)?.name;
    // What is read beside an operand is mostly the same in all lanes of a vector.
    const varies = prologue.reads.map(({ index }) =>
      index.some((e) => along !== undefined && splitLinear(e, along)?.coefficient),
    );
    const beside = (prologue.reads.length - 1) * copyInstructions.plain;
    const made = madeOf(prologue.value, varies);
    return extent * depth * (made.each + (made.once + beside) / line.lanes);
  };
  return (ofSide(form.rows, rows) + ofSide(form.columns, columns)) / warpThreads;
}

/** Instructions for each lane of a vector, and for all lanes together. */
interface Made {
  readonly each: number;
  readonly once: number;
  readonly varies: boolean;
}

/** @param lanes of the arguments, whether they differ from lane to lane */
function madeOf(value: ScalarExpr, lanes: readonly boolean[]): Made {
  if (value.kind === "argument") return { each: 0, once: 0, varies: lanes[value.index]! };
  const operands = scalarOperands(value);
  const parts = operands.map((o) => madeOf(o, lanes));
  const varies = parts.some((p) => p.varies);
  const below = operands.reduce((sum, o) => sum + scalarCost(o), 0);
  const own = scalarCost(value) - below + (isCutOut(value) ? cuttingOut : 0);
  const sum = (of: (p: Made) => number): number => parts.reduce((n, p) => n + of(p), 0);
  return {
    each: sum((p) => p.each) + (varies ? own : 0),
    once: sum((p) => p.once) + (varies ? 0 : own),
    varies,
  };
}

function isCutOut(value: ScalarExpr): boolean {
  if (value.kind !== "cast" || value.operand.kind !== "argument") return false;
  const { dtype } = value.operand;
  return isIntegerDType(dtype) && dtypes[dtype].bits <= 8;
}

/** Instructions of warps with which a step's copies find their places: streams need none. */
function addressInstructions({ form, directive }: ScheduledProduct, warpThreads: number): number {
  const [rows, columns, depth] = directive.tile;
  const share = copyShare[directive.by];
  if (share === 0) return 0;
  const ofSide = ({ line, access }: ProductSide, extent: number): number => {
    const { plain, digit, guard } = copyInstructions;
    const each = plain + digit * line.digits + guard * access.guard.length;
    return (each * extent * depth) / line.lanes;
  };
  return (share * (ofSide(form.rows, rows) + ofSide(form.columns, columns))) / warpThreads;
}

/**
 * How much longer copies take because their rows are shorter than a line: of the depth, or of a panel where a
 * stream's operand has its rows as neighbours.
 */
function lineShare({ form, directive }: ScheduledProduct): number {
  const [rows, columns, depth] = directive.tile;
  const ofSide = (side: ProductSide, extent: number): number => {
    const bytes = bytesOf(side);
    const isTurned = directive.by === "wgmma" && side.line.along === "space";
    const own = bytes * (isTurned ? streamedPanel(extent) : depth);
    return extent / rateOfRows(own);
  };
  return (ofSide(form.rows, rows) + ofSide(form.columns, columns)) / (rows + columns);
}

function isPowerOfTwo(n: number): boolean {
  return (n & (n - 1)) === 0;
}

/** Threads of a block: where warpgroups multiply, one more copies. */
function threadsOf(
  { by, warps, teams }: Pick<MultiplyDirective, "by" | "warps" | "teams">,
  warpThreads: number,
): number {
  return warpThreads * (teams * warps[0] * warps[1] + (by === "wgmma" ? 4 : 0));
}

/**
 * What all rounds bring from memory: the rows and columns of the tiles that run at once, unless both
 * operands stay in the near cache.
 */
function farNanoseconds(
  { form, directive }: ScheduledProduct,
  operandBytes: number,
  { limits, together }: { readonly limits: BlockLimits; readonly together: number },
): number {
  const atOnce = limits.cores * together;
  const [rows, columns] = directive.tile;
  const [left, right] = lineBytesOf(form);
  const once = left * form.rows.extent + right * form.columns.extent;
  const tiles = Math.ceil(form.rows.extent / rows) * Math.ceil(form.columns.extent / columns);
  const rounds = Math.ceil(tiles / atOnce);
  const streamed = Math.max(once, rounds * panelBytes({ form, directive }, atOnce));
  const all = once * form.batch.extent;
  const bytes = operandBytes <= limits.nearBytes / 2 ? all : streamed * form.batch.extent;
  return (bytes * Math.min(1, operandBytes / all)) / limits.memoryBytesPerNs.value;
}

/** Bytes of a row of the left operand and of a column of the right one. */
function lineBytesOf({ depth, rows, columns }: ProductForm): readonly [number, number] {
  return [depth.extent * bytesOf(rows), depth.extent * bytesOf(columns)];
}

/** Bytes of the rows and columns of so many tiles in a row, each once. */
function panelBytes({ form, directive }: ScheduledProduct, atOnce: number): number {
  const [rows, columns] = directive.tile;
  const [left, right] = lineBytesOf(form);
  const tall = Math.ceil(form.rows.extent / rows);
  const wide = Math.ceil(form.columns.extent / columns);
  const group = Math.min(directive.group, tall);
  const high = Math.min(tall, group * Math.max(1, Math.floor(atOnce / (group * wide))));
  const across = Math.min(wide, Math.ceil(atOnce / group));
  return left * rows * high + right * columns * across;
}

/** What threads take to add the sums of a step to theirs: one addition each. */
function addingNanoseconds(
  { tile }: Pick<MultiplyDirective, "tile">,
  { warpThreads, warpInstructionsPerNsPerCore }: BlockLimits,
): number {
  return (tile[0] * tile[1]) / warpThreads / warpInstructionsPerNsPerCore.value;
}

/** Floating-point operations of a multiprocessor a nanosecond. */
function rateOf(by: Multiplier, dtype: DType, limits: BlockLimits): number {
  const { warpThreads, warpInstructionsPerNsPerCore, cores } = limits;
  if (by === "fma") return 2 * warpThreads * warpInstructionsPerNsPerCore.value;
  const rates = by === "mma" ? limits.warpMatrixFlopsPerNs : limits.groupMatrixFlopsPerNs;
  return (rates[dtype as keyof MatrixRates]?.value ?? 0) / cores;
}

/** What a step takes of shared memory: what is read of it, and beside tensor copies what these write. */
function sharedNanoseconds(
  directive: MultiplyDirective,
  bytes: number,
  { limits, isLong }: { readonly limits: BlockLimits; readonly isLong: boolean },
): number {
  const rate = limits.sharedBytesPerNsPerCore.value;
  const read = nearBytes(directive, bytes);
  if (directive.by !== "wgmma" || !isLong) return read / rate;
  const [rows, columns, depth] = directive.tile;
  return (read + (rows + columns) * depth * bytes) / (filledShare * rate);
}

/** Bytes of shared memory that the threads of a block read in a step: each warp its rows and columns. */
function nearBytes({ tile, warps, by }: ScheduledProduct["directive"], bytes: number): number {
  const [rows, columns, depth] = tile;
  const [down, across] = warps;
  // One instruction of 64 rows reads them and all columns.
  if (by === "wgmma") return bytes * depth * (rows + (columns * rows) / 64);
  // Threads of a warp that read the same vector get it at once, but four rows of it take a turn each.
  const turns = by === "fma" ? 2 : 1;
  return turns * bytes * depth * (rows * across + columns * down);
}

/** Blocks that a multiprocessor holds at once, or why it has no code for one. */
export function residentProducts(
  { form, directive }: ScheduledProduct,
  limits: BlockLimits,
): number | string {
  const { by, tile, warps, teams, blocks } = directive;
  if (by !== "fma" && rateOf(by, form.dtype, limits) === 0)
    return `the machine does not multiply ${form.dtype} by ${by}`;
  const threads = threadsOf({ by, warps, teams }, limits.warpThreads);
  const sums = (tile[0] * tile[1]) / (limits.warpThreads * warps[0] * warps[1]);
  const most = Math.min(limits.registersPerThread, limits.registersPerCore / threads);
  const made = hasPrologue(form) ? heldRegisters({ tile, warps }, form) : 0;
  const registers = takesRegisters({ by, tile, warps }, form)
    ? Math.floor(most / registerUnit) * registerUnit
    : Math.ceil((plainRegisters[by] + sums + made) / registerUnit) * registerUnit;
  const sharedBytes = blockBytes(directive, form);
  const resident = residentBlocks({ threads, registers, sharedBytes }, limits);
  return typeof resident === "number" && blocks > limits.cores * resident
    ? `${blocks} blocks that go on from tile to tile, of at most ${limits.cores * resident} at once`
    : resident;
}
