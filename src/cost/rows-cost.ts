/**
 * The time of a region as one kernel over rows (schedule/rows/rows-form.ts), without its launch. A multiprocessor
 * holds as many blocks as their threads and registers allow; the time is about the most of
 *
 *   instructions    of all elements, of a warp's threads at once
 *   far memory      each operand and result once
 *   near memory     what is read again where rows are not kept
 *   lives           rounds of resident blocks, each from its loads over its folds to its stores
 */
import type { Region } from "../region/nest.ts";
import type { RowsDirective } from "../schedule/directive.ts";
import {
  chunksOf,
  combinedInWarp,
  dealingOf,
  elementLanes,
  inOrderOf,
  movesAlong,
  type RowStatement,
  type RowsForm,
  rowLanes,
  sharedReads,
  stagingRegisters,
  turnsOf,
  vectorLanes,
} from "../schedule/rows/rows-form.ts";
import {
  type ScheduledRegion,
  type ScheduledRows,
  symbolRanges,
} from "../schedule/scheduled-region.ts";
import { dtypes } from "../semantics/dtype.ts";
import { constantValue } from "../semantics/index-expr.ts";
import type { IndexRanges } from "../semantics/index-range.ts";
import type { Monoid } from "../semantics/monoids.ts";
import type { BlockLimits } from "../target/target.ts";
import { lineBytes, requestsPerNs, sectorBytes } from "./block-access.ts";
import {
  foldIssue,
  type Issue,
  issueOf,
  noIssue,
  plainIssue,
  slotsOf,
  sumOf,
  times,
} from "./issue-slots.ts";
import { compulsoryBytes, longestOf, product } from "./region-work.ts";
import { residentBlocks } from "./resident-blocks.ts";

const warpThreads = 32;
/**
 * Vectors of so many rows of narrow elements, so many of them a thread: each lane is widened to a register, of so many
 * vectors at once (ptxas 13.0, softmax of bf16: 168 registers where 64 keep operands, 125 where 32 do).
 */
const [wideLanes, manyChunks, widenedAhead] = [8, 8, 8] as const;
/** Where registers are few, what is brought forward is spilled before it is given up: a block has room for so many. */
const widenedAtMost = 11;
/** Of what is computed again across rows, the assembler keeps what is as dear as this (ptxas 13.0: exp, no difference). */
const dearSlots = 8;
/** Bytes of an access to shared memory. */
const sharedAccessBytes = 16;
/** Registers of a thread beside what it keeps: addresses, values a row, operands on the way. */
const plainRegisters = 32;
/**
 * Of the lanes of a vector, times that registers are worked on across rows; along them lanes are folded one after the
 * other (ptxas 13.0: norms of 16 to 40 registers of operands take 48 to 74, a softmax of 32 takes 56 and 79).
 */
const workedAcross = 3;
/** Instructions of a load or store and its address. */
const accessSlots = 3;
/** Of an exchange between the lanes of a warp, and until its result is there. */
const [exchangeSlots, exchangeNs] = [3, 18] as const;
/** Of a meeting of the warps of a block, with what they leave in shared memory (H200). */
const meetingNs = 60;
/** From a sum of a block to those of all blocks of its cluster: the exchange, and that they are not equally far. */
const sentNs = 500;
/** Latency of memory while all multiprocessors load, over the unloaded one (H200). */
const loadedLatency = 1.6;
/** From one block of a multiprocessor to the next, whatever they do (H200). */
const blockNs = 80;
/** Registers that loads on the way fill, and instructions that they are brought forward over (ptxas 13.0). */
const [loadedAhead, hidingLatency] = [28, 200] as const;
/** What a multiprocessor draws from memory at most, over its share (H200, product-cost.ts). */
const mostDrawn = 1.1;
/** What else is in the cache, over rows that are worked on. */
const sharedByOthers = 1.5;
/** From the last store of a block to the first load of the next in its place (H200). */
const turnNs = 600;
/** Until the blocks of a cluster have places at the same time, for each beside the first (H200). */
const placeNs = 400;
/** What beginning and ending blocks add to the time of the bytes (H200). */
const ends = 1.03;
/**
 * Of the rate of memory, where rows are read a line at a time in turns with many others: pages of memory are opened
 * more often (sums of 8 threads a row in bf16, 0.907 of the copy rate on an H100, memory-suite.mjs --only "up to each").
 */
const lostToTurns = 0.08;
/** The rate of halves of lines that are asked for across rows, over that of lines (H200). */
const halfLines = 0.95;
/** Warps of a multiprocessor that keep its units busy, and the share of their rate that rows keep up. */
const busyWarps = 24;
/** Lanes of a thread that stand for warps, at most (H200). */
const mostIndependent = 4;
const sustained = 0.85;

export function rowsNanoseconds(
  { region }: ScheduledRegion,
  { form, directive }: ScheduledRows,
  limits: BlockLimits,
): number {
  const { threads, rows, keep, across, parts } = directive;
  const { warpInstructionsPerNsPerCore } = limits;
  // Clusters find their place among neighbours: what is left over of these stands idle.
  const cores = limits.cores - (limits.cores % parts);
  const ranges = symbolRanges(region);
  const work = workOf({ form, directive }, tensorsOf(region));
  const held = threads * rows;
  const resident = residentBy(work, held, limits);
  if (typeof resident === "string") return Infinity;
  const besides = rows * rowLanes(directive);
  const blocks = Math.ceil(product(form.rows, ranges) / besides) * parts;
  const perCore = Math.ceil(blocks / cores);
  const together = Math.min(resident, perCore);
  const rounds = Math.ceil(perCore / together);
  const warps = held / warpThreads;
  // Rows beside each other are worked on independently of each other.
  const independent = Math.min(mostIndependent, rowLanes(directive));
  const busy = Math.max(0.2, Math.min(1, (together * warps * independent) / busyWarps));
  const issuesPerNs = warpInstructionsPerNsPerCore.value * sustained * busy;
  const blockIssueNs = (warps * work.slots) / issuesPerNs;
  const blockSharedNs = work.sharedMoved / limits.sharedBytesPerNsPerCore.value;
  const bytes = compulsoryBytes(region, ranges);
  const isNear = bytes <= limits.nearBytes;
  const again = keep === "memory" ? work.passes : 1;
  // Rows that are read again are still near where the cache holds those of all blocks that run.
  const read = compulsoryBytes(withoutWrites(region), ranges);
  const open = (bytes / blocks) * Math.min(blocks, together * cores);
  const fetched = bytes + (open * sharedByOthers <= limits.nearBytes ? 0 : (again - 1) * read);
  const { request, sectors, requests, turn } = touchedBy({ form, directive }, work, ranges);
  const nearNs = Math.max(
    (sectors * (bytes + (again - 1) * read)) / limits.nearBytesPerNs.value,
    requests / (requestsPerNs * Math.min(cores, blocks)),
  );
  // Warps that ask for less than a line at once get a part of the rate: 0.7 for half a line (H200). Across rows they
  // ask for many pieces at once, of which two sectors are nearly as good as a line.
  const whole = across && work.scans === 0 ? 2 * sectorBytes : lineBytes;
  const ofLine = whole < lineBytes && request < lineBytes ? halfLines : 1;
  const share = ofLine * Math.min(1, Math.sqrt(request / whole));
  const atOnce = keep === "memory" || across ? turn : Infinity;
  const sequential = 1 - lostToTurns * Math.min(1, lineBytes / atOnce);
  const drawn = Math.min(1, (mostDrawn * blocks) / cores);
  const farNs = isNear
    ? 0
    : ((sectors * fetched) / limits.memoryBytesPerNs.value / (share * sequential * drawn)) * ends;
  const latency = loadedLatency * limits.memoryLatencyNs.value;
  // The vectors of a thread are scanned one after another.
  const exchanges =
    work.folds * exchangeOf(directive) +
    work.scans * chunksOf(form, directive) * prefixOf(directive);
  const begins = turnNs + placeNs * (parts - 1);
  const waits = Math.max(1, work.waits) * latency + exchanges + begins;
  // A block of many elements waits for what it brings, as for its turn to issue; what is scanned comes a turn at a
  // time. Across rows nobody waits until what it leaves is in memory. Of several small blocks one is always bringing.
  const ownNs =
    (sectors * (across ? read : bytes) * cores) /
    (blocks * limits.memoryBytesPerNs.value * mostDrawn);
  const isWhole = (across || parts > 1 || together === 1) && work.scans === 0;
  const lifeNs = isWhole
    ? turnsNs([Math.max(blockIssueNs, blockSharedNs), ownNs], waits, together)
    : waits + queuedNs(blockIssueNs, waits, together);
  const coreNs = perCore * Math.max(blockIssueNs, blockSharedNs);
  return longestOf(coreNs, nearNs, farNs, rounds * lifeNs, perCore * blockNs);
}

interface Touched {
  /** Bytes beside each other that a warp asks for at once, and that a block does in a turn of its threads. */
  readonly request: number;
  readonly turn: number;
  /** Bytes that are brought for one that is asked for. */
  readonly sectors: number;
  /** Lines of all warps, where neighbours of a thread's vector are far from each other; otherwise they are few. */
  readonly requests: number;
}

/** What the threads of blocks touch of operands and results. */
function touchedBy(
  { form, directive }: Pick<ScheduledRows, "form" | "directive">,
  { widestBytes, accesses }: RowsWork,
  ranges: IndexRanges,
): Touched {
  const { threads, rows, lanes, across } = directive;
  if (!across) {
    const request = warpThreads * lanes * widestBytes;
    return { request, turn: threads * lanes * widestBytes, sectors: 1, requests: 0 };
  }
  const beside = product(form.rows.slice(-1), ranges);
  const besides = Math.min(rows * lanes, beside);
  const neighbours = Math.min(warpThreads * lanes, besides);
  const elements = product(form.rows, ranges) * form.mostElements;
  return {
    request: neighbours * widestBytes,
    turn: besides * widestBytes,
    // Rows of which others are in the same sector: each block has the whole of it.
    sectors: besides < beside ? Math.max(1, sectorBytes / (besides * widestBytes)) : 1,
    requests: (accesses * elements) / neighbours,
  };
}

/** From what the threads of a row have to what is before each of them, for one vector of a thread. */
function prefixOf(directive: RowsDirective): number {
  const { inWarp, warps } = dealingOf(directive);
  return Math.log2(inWarp) * exchangeNs + (warps > 1 ? meetingNs : 0);
}

/** From what the threads of a row have folded to what all of them know, for one fold. */
function exchangeOf(directive: RowsDirective): number {
  const { threads, across, parts } = directive;
  const shared = combinedInWarp(directive);
  // Across rows a few threads combine what the others leave, and leave it for all.
  const meetings = threads === shared && parts === 1 ? 0 : across ? 2 : 1;
  return Math.log2(shared) * exchangeNs + meetings * meetingNs + (parts > 1 ? sentNs : 0);
}

/**
 * What the instructions of a block take among `count` blocks that each issue for `issueNs` and otherwise wait for
 * `waits`: those that wait leave the units to the others, so that a block meets (count - 1) r / (r + waits) of them
 * (mean value analysis of a closed network with one queue, by Schweitzer's approximation; Lazowska et al. 1984,
 * "Quantitative System Performance", chapter 6).
 */
function queuedNs(issueNs: number, waits: number, count: number): number {
  const spare = count * issueNs - waits;
  return (spare + Math.sqrt(spare ** 2 + 4 * issueNs * waits)) / 2;
}

/**
 * Life of a block among `count` that each use some stations, one at a time, for such times, and otherwise wait for
 * `waits` (exact mean value analysis; Lazowska et al. 1984, chapter 6).
 */
function turnsNs(uses: readonly number[], waits: number, count: number): number {
  let met = uses.map(() => 0);
  let lifeNs = 0;
  for (let n = 1; n <= count; n++) {
    const spent = uses.map((ns, i) => ns * (1 + met[i]!));
    lifeNs = spent.reduce((sum, ns) => sum + ns, waits);
    met = spent.map((ns) => (n * ns) / lifeNs);
  }
  return lifeNs;
}

/** Blocks that a multiprocessor holds at once, or why it has no code for one. */
export function residentRows(
  { region }: ScheduledRegion,
  { form, directive }: ScheduledRows,
  limits: BlockLimits,
): number | string {
  const work = workOf({ form, directive }, tensorsOf(region));
  return residentBy(work, directive.threads * directive.rows, limits);
}

function residentBy(
  { registers, mostRegisters, sharedBytes }: RowsWork,
  threads: number,
  limits: BlockLimits,
): number | string {
  // A thread alone has all that there are.
  const most = Math.max(registers, Math.min(mostRegisters, limits.registersPerThread));
  const one = residentBlocks({ threads, registers: most, sharedBytes }, limits);
  return typeof one === "string"
    ? one
    : residentBlocks({ threads, registers, sharedBytes }, limits);
}

function tensorsOf({ tensors }: Region): RowTensors {
  return {
    bitsOf: (tensor) => dtypes[tensors.get(tensor)!.dtype].bits,
    isLocal: (tensor) => tensors.get(tensor)!.role === "local",
  };
}

interface RowsWork {
  /** Issue slots of one thread's work, which is its warp's. */
  readonly slots: number;
  /** Registers of what a thread keeps and works on. */
  readonly registers: number;
  /** With fewer, what the assembler brings forward is spilled. */
  readonly mostRegisters: number;
  /** Shared memory of a block, and what its threads write there and read of their elements. */
  readonly sharedBytes: number;
  readonly sharedMoved: number;
  readonly folds: number;
  readonly scans: number;
  /** Times that operands are read, and that a thread waits for what it reads. */
  readonly passes: number;
  readonly waits: number;
  /** Of an element, of the operands and results. */
  readonly widestBytes: number;
  /** Operands and results, each time that a statement has one. */
  readonly accesses: number;
}

interface RowTensors {
  readonly bitsOf: (tensor: string) => number;
  /** Whether nobody outside the region reads it. */
  readonly isLocal: (tensor: string) => boolean;
}

function workOf(
  { form, directive }: Pick<ScheduledRows, "form" | "directive">,
  { bitsOf, isLocal }: RowTensors,
): RowsWork {
  const { items, keep } = directive;
  const lanes = vectorLanes(directive);
  // Elements of a row that are far from each other are loaded and stored one by one.
  const perAccess = accessSlots * items;
  const chunks = chunksOf(form, directive);
  const folds = form.statements.filter((s) => s.work === "fold");
  const scans = form.statements.filter((s) => s.work === "scan");
  const turns = turnsOf(form, keep, (tensor) => !isLocal(tensor));
  const loaded = keep === "memory" ? [] : sharedReads(form, turns).map((a) => a.tensor);
  const issueOfRow = (s: RowStatement): Issue => {
    const { reads, finishReads, writes } = s.statement;
    const accesses = [...reads, ...finishReads, ...writes].filter(movesAlong);
    const moved = accesses.filter((a) => !form.made.has(a.tensor) && !loaded.includes(a.tensor));
    const perElement = elementIssue(s, elementLanes(directive), inOrderOf(s, form, directive));
    if (s.work === "once") return perElement;
    const accessed = plainIssue(moved.length * perAccess);
    return times(chunks, sumOf(times(lanes, perElement), accessed));
  };
  const again = keep === "registers" ? [] : recomputed(form);
  // A map whose elements nobody keeps runs where they are read.
  const runs = ({ statement, work }: RowStatement): boolean =>
    keep === "registers" || work !== "map" || !statement.writes.every((w) => isLocal(w.tensor));
  const issued = [...form.statements.filter(runs), ...again].reduce(
    (sum, s) => sumOf(sum, issueOfRow(s)),
    plainIssue(loaded.length * chunks * perAccess),
  );
  const passing = form.statements.filter((s) => s.work !== "once" && runs(s));
  const shared = inShared(directive, { loaded, passes: passing.length, bitsOf });
  const exchanges = [...folds, ...scans].reduce(
    (sum, statement) => sumOf(sum, exchangeIssue(statement, { form, directive })),
    noIssue,
  );
  // A register holds neighbours of a vector and nothing else: of single narrow elements one each.
  const heldBits = (tensor: string): number => Math.max(bitsOf(tensor), 32 / lanes);
  const bits = mostBits(form, {
    ...{ keepsMade: (s: RowStatement) => isKeptMade(s, directive), loaded, turns },
    bitsOf: heldBits,
  });
  const wordsOf = ({ statement }: RowStatement): number =>
    [...statement.reads, ...statement.finishReads].reduce((sum, { tensor }) => {
      return sum + (isLocal(tensor) ? 0 : Math.ceil((lanes * bitsOf(tensor)) / 32));
    }, 0);
  const together = passing.map((s) =>
    s.work === "scan" ? 1 : tripsAhead(form, wordsOf(s), slotsOf(issueOfRow(s)) / chunks),
  );
  const onTheWay = passing.map((s, i) => Math.min(chunks, together[i]!) * wordsOf(s));
  const held =
    keep === "memory"
      ? Math.max(0, ...onTheWay)
      : ((chunks - directive.shared) * lanes * bits) / 32;
  const isWide =
    directive.across && lanes >= wideLanes && keep !== "memory" && chunks >= manyChunks;
  const [ahead, atMost] = isWide ? [widenedAhead * lanes, widenedAtMost * lanes] : [0, 0];
  const kept = held + Math.max((directive.across ? workedAcross : 1) * lanes, shared.staged);
  const registers = Math.max(
    plainRegisters + Math.max(kept, held + ahead),
    scanRegisters(form, directive),
  );
  const turnsOfRow = together.reduce((sum, n) => sum + Math.ceil(chunks / n), 0);
  const outside = form.statements.flatMap(({ statement: { reads, writes } }) =>
    [...reads, ...writes].filter((a) => movesAlong(a) && !isLocal(a.tensor)),
  );
  const widestBytes = Math.max(1, ...outside.map((a) => bitsOf(a.tensor) / 8));
  return {
    slots: slotsOf(sumOf(issued, exchanges)) + shared.accesses,
    registers,
    mostRegisters: Math.max(registers, plainRegisters + held + atMost),
    sharedBytes: shared.bytes + exchangeBytes({ form, directive }),
    sharedMoved: shared.moved,
    folds: folds.length,
    scans: scans.length,
    passes: passing.length,
    waits: keep === "memory" ? turnsOfRow : 1,
    widestBytes,
    accesses: outside.length,
  };
}

interface Shared {
  /** Of a block, held and moved. */
  readonly bytes: number;
  readonly moved: number;
  /** Of a thread: instructions that write and read it, and registers that are on the way there. */
  readonly accesses: number;
  readonly staged: number;
}

/** Operands that shared memory keeps: written once, and read in each pass. */
function inShared(
  directive: RowsDirective,
  of: Pick<RowTensors, "bitsOf"> & { readonly loaded: readonly string[]; readonly passes: number },
): Shared {
  const { threads, rows, shared } = directive;
  if (shared === 0) return { bytes: 0, moved: 0, accesses: 0, staged: 0 };
  const vectors = of.loaded.map((t) => (vectorLanes(directive) * of.bitsOf(t)) / 8);
  const ofThread = shared * vectors.reduce((sum, bytes) => sum + bytes, 0);
  const bytes = threads * rows * ofThread;
  const times = 1 + of.passes;
  return {
    bytes,
    moved: bytes * times,
    accesses: times * Math.max(shared * vectors.length, ofThread / sharedAccessBytes),
    staged: Math.min(stagingRegisters, ofThread / 4),
  };
}

/** What warps and blocks leave each other, for each fold its own: across rows that is much. */
function exchangeBytes({ form, directive }: Pick<ScheduledRows, "form" | "directive">): number {
  const { threads, rows, across, parts } = directive;
  const count = across ? rows * rowLanes(directive) : 1;
  const warps = threads / combinedInWarp(directive);
  const words = form.statements.flatMap((s) =>
    (s.work === "fold" ? s.statement.reduction!.monoid.components : []).map(({ dtype }) =>
      Math.ceil(dtypes[dtype].bits / 32),
    ),
  );
  const places = warps === 1 && parts === 1 ? 0 : (warps + parts) * Math.max(4, count);
  return 4 * places * words.reduce((sum, n) => sum + n, 0);
}

/** What the threads of a row tell each other for a fold, or for all vectors that are scanned. */
function exchangeIssue(
  { statement, work }: RowStatement,
  { form, directive }: Pick<ScheduledRows, "form" | "directive">,
): Issue {
  const { components, combine } = statement.reduction!.monoid;
  const { threads, across } = directive;
  const once = issueOf(combine, 2);
  const told = sumOf(plainIssue(components.length * exchangeSlots), once);
  if (work === "fold") {
    const shared = combinedInWarp(directive);
    const ownLanes = inOrderOf({ statement }, form, directive) ? 0 : elementLanes(directive);
    // Across rows a thread has its own in its lanes; of what warps leave few threads combine four rows each.
    const inThread = across ? Math.max(0, ownLanes - 1) : ownLanes;
    const ofWarps = Math.max(1, threads / shared);
    const ofHalves = times(rowLanes(directive) * Math.log2(shared), told);
    return sumOf(times(inThread + ofWarps, once), ofHalves);
  }
  const { inWarp, warps } = dealingOf(directive);
  // Which threads are before is a choice in each half, and of each warp.
  const chosen = { issued: 2, logic: 2 };
  const read = plainIssue(across ? 1 : 0);
  const ofWarps = warps > 1 ? times(warps, sumOf(times(2, once), chosen, read)) : noIssue;
  const ofHalves = times(Math.log2(inWarp), sumOf(told, once, chosen));
  const ofLanes = times(elementLanes(directive) + 3, once);
  return times(chunksOf(form, directive), sumOf(ofLanes, ofHalves, ofWarps));
}

/**
 * Trips of a loop over a row whose loads are on the way together, of such words and so many instructions each: trips
 * of a line of unknown length have guards, and wait for each other.
 */
function tripsAhead({ length }: RowsForm, words: number, slots: number): number {
  if (constantValue(length) === undefined) return 1;
  return Math.max(1, Math.floor(Math.min(loadedAhead / Math.max(1, words), hidingLatency / slots)));
}

function withoutWrites(region: Region): Region {
  const statements = region.statements.map((s) => ({ ...s, writes: [] }));
  return { ...region, statements };
}

/** Maps whose elements later statements compute again, once for each that reads them. */
function recomputed(form: RowsForm): readonly RowStatement[] {
  return form.statements.flatMap(({ statement }) =>
    form.statements.filter(
      (s) =>
        s.work === "map" &&
        s.statement.writes.some((w) => statement.reads.some((r) => r.tensor === w.tensor)),
    ),
  );
}

/** Whether elements that a statement makes are in registers until the last statement that reads them. */
function isKeptMade(s: RowStatement, { across, lanes, keep }: RowsDirective): boolean {
  if (s.work !== "map" && s.work !== "scan") return false;
  if (keep !== "operands") return keep === "registers";
  return across && slotsOf(issueOf(s.statement.body, lanes)) >= dearSlots;
}

interface Held extends Pick<RowTensors, "bitsOf"> {
  readonly keepsMade: (statement: RowStatement) => boolean;
  /** Operands that are read more than once. */
  readonly loaded: readonly string[];
  /** Of each statement, whose turns compute its elements (`turnsOf`). */
  readonly turns: readonly (readonly number[])[];
}

/** Bits of an element that a thread keeps at once, at most: registers of what is read for the last time are free. */
function mostBits(form: RowsForm, { keepsMade, loaded, bitsOf, turns }: Held): number {
  const readers = (tensor: string): readonly number[] =>
    form.statements.flatMap(({ statement }, at) =>
      statement.reads.some((r) => r.tensor === tensor) ? turns[at]! : [],
    );
  const spans = loaded.map((t) => {
    return { from: -1, to: Math.max(...readers(t)), bits: bitsOf(t) };
  });
  for (const [at, made] of form.statements.entries()) {
    if (!keepsMade(made)) continue;
    for (const { tensor } of made.statement.writes) {
      const last = readers(tensor).at(-1);
      if (last !== undefined) spans.push({ from: at, to: last, bits: bitsOf(tensor) });
    }
  }
  const kept = form.statements.map((_, at) =>
    spans.reduce((sum, { from, to, bits }) => sum + (from < at && at < to ? bits : 0), 0),
  );
  const turning = form.statements.map((_, at) => {
    const bitsWhere = (test: (s: (typeof spans)[number]) => boolean): number =>
      spans.filter(test).reduce((n, s) => n + s.bits, 0);
    return Math.max(
      bitsWhere((s) => s.to === at),
      bitsWhere((s) => s.from === at),
    );
  });
  return Math.max(0, ...kept.map((bits, at) => bits + turning[at]!));
}

/** Registers of a thread that scans, beside its elements and what warps leave each other (ptxas 13.0). */
const scanPlain = 24;
/** Trips of a loop that the assembler copies out whole and runs into each other. */
const trippedWhole = 2;

/**
 * Registers of a thread of several warps that scan a row: where they meet, each thread has what every warp has, its own
 * vector, and the vectors of other turns that are copied out. Beyond what the threads of a block may have they would be
 * spilled: of 1,024 threads that is 64 each, half of them what 32 warps of f32 have.
 */
function scanRegisters(form: RowsForm, directive: RowsDirective): number {
  const { keep } = directive;
  const lanes = elementLanes(directive);
  const { warps } = dealingOf(directive);
  const components = form.statements.flatMap(({ work, statement }) =>
    work === "scan" ? statement.reduction!.monoid.components : [],
  );
  if (components.length === 0 || warps === 1) return 0;
  const words = Math.max(...components.map(({ dtype }) => Math.ceil(dtypes[dtype].bits / 32)));
  const chunks = chunksOf(form, directive);
  const isCopied = chunks > 1 && (keep !== "memory" || chunks <= trippedWhole);
  const ofTurn = warps + lanes;
  // The assembler runs turns that are copied out into each other: of the next one what warps have, and vectors.
  const others = isCopied ? chunks * lanes + ofTurn + lanes : 0;
  return scanPlain + words * (ofTurn + others);
}

/** Of the places of two neighbours the later one is a sum under the predicate, in place of a sum and a selection. */
const ofNeighbours: Issue = { issued: -0.5, logic: -0.5 };

function elementIssue(
  { statement }: RowStatement,
  lanes: number,
  inOrder: Monoid["inOrder"],
): Issue {
  const { body, finish = [], reduction } = statement;
  if (!reduction) return issueOf([...body, ...finish], lanes);
  const { name, combine } = reduction.monoid;
  const step = foldIssue(body, { name, combine: inOrder ?? combine }, lanes);
  return inOrder && lanes > 1 ? sumOf(step, ofNeighbours) : step;
}
