/**
 * The price of a scheduled region on a machine of blocks of threads, without lowering it. First
 * principles only:
 *
 *   time = launch + waves x max(instructions, requests to the near memories, the latency chain of one
 *          thread), and not below the bytes that memory must give
 *
 * Instructions of folds are counted by what executes them (issue-slots.ts).
 *
 * Requests are counted by warp: 32 neighbours that touch neighbouring elements look up one line, 32 far ones 32.
 * The shared cache hands out sectors of lines and takes sectors that are written in part dearly. How many warps a
 * multiprocessor holds follows from registers and threads (occupancy); the last wave counts as a whole one.
 */
import type { Access } from "../region/nest.ts";
import { type Interleaved, interleavedIn } from "../schedule/blocks/interleaved.ts";
import {
  isBound,
  type ScheduledLoop,
  type ScheduledRegion,
  type ScheduledStatement,
  symbolRanges,
} from "../schedule/scheduled-region.ts";
import { constantValue, splitLinear, substitute, variablesOf } from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import { scalarCost } from "../semantics/scalar-expr.ts";
import type { BlockLimits } from "../target/target.ts";
import { attentionNanoseconds } from "./attention-cost.ts";
import {
  type AnyAccess,
  BlockAccess,
  lineBytes,
  requestsPerNs,
  sectorBytes,
} from "./block-access.ts";
import { blockBound } from "./block-bound.ts";
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
import { productNanoseconds } from "./product-cost.ts";
import { bytesRead, compulsoryBytes, longestOf, type RegionPrice } from "./region-work.ts";
import { rowsNanoseconds } from "./rows-cost.ts";
import { turnNanoseconds } from "./turn-cost.ts";

/** Sectors that it writes in part: 39.6 million took 530 us. */
const partialSectorsPerNs = 0.57;
/**
 * Halves of sectors that it writes, of which another instruction of the thread writes the rest: 16.8 million took
 * an H200 1.12 times as long as a copy of as many bytes (157 us) with the two behind each other, 1.29 times (180 us)
 * with others between them; 27 us of both are what the shared cache takes for the reads.
 */
const halfSectorsPerNs = 0.9;
/** Warp instructions that a multiprocessor issues in the time of one line: 39.6 million took an H200 118 us. */
const issuesPerLine = 1;
/**
 * Lines that its load unit looks up in a nanosecond, where a warp's elements lie in many more than their bytes fill: the
 * same 39.6 million in 118 us. Beside it stand the requests for what is not there: transposes of 537 MB whose threads
 * read a line each took an H200 544 us in bf16 and 280 us in f32, and are priced at 539 and 281.
 */
const linesPerNs = 2.54;
/** How many times as many these are: fewer are vectors in pieces, and their alignment. */
const scatteredFrom = 4;
/** Bytes that a thread loads or stores by one instruction, at most. */
const widestBytes = 16;
/** Registers of a thread beside its results: addresses, loop variables, operands. */
const plainRegisters = 28;
/** Instructions of loop control and addresses per trip. */
const loopOps = 4;
/** Instructions of one condition on an element. */
const testOps = 2;
/** Of one trip: address, load from a near cache, multiply-add; an assembler overlaps about four. */
const tripLatencyNs = 25;
/** Trips that load what an earlier one stored, or may have, wait for it: the assembler overlaps none. */
const orderedTripLatencyNs = 100;
/**
 * The same where the places are loaded: nothing of what one trip updates is near. 2,048 updates behind each other took
 * an H200 430 to 830 us; 512 and 2,048 that only store took 73 and 283 us, each behind the load of its place.
 */
const updateTripLatencyNs = 400;
const placedTripLatencyNs = 140;
/** Of an exchange between the lanes of a warp: two cycles of its unit, and the moves around it. */
const exchangeSlots = 3;
/** Warps of a multiprocessor that keep its units busy. */
const busyWarps = 16;
/** Bytes of a thread's loads that an assembler has on the way together, over several trips of a loop (H200). */
const bytesAhead = 112;
/** Loads among them, at most: registers of narrow elements are as many. */
const loadsAhead = 28;
/** Latency of memory while all multiprocessors load, over the unloaded one: 0.8 us on an H200. */
const loadedLatency = 1.6;
/**
 * Of the near cache, what stays in it from one run to the next: half of it is far from each multiprocessor, and
 * what both halves read is in both.
 */
const nearShare = 0.5;
/** From one block of a multiprocessor to the next, whatever they do (H200). */
const blockNs = 80;
/** Of the time of instructions, what nothing hides: at the begin and the end of each thread. */
const unhiddenShare = 0.05;

export function priceOnBlocks(scheduled: ScheduledRegion, limits: BlockLimits): RegionPrice {
  const ranges = symbolRanges(scheduled.region);
  const guests = new Set(scheduled.fused.map((f) => f.statement));
  const folded = new Set(scheduled.products.map((p) => p.form.fold?.statement.name));
  const { attention, rows, turn } = scheduled;
  let estimateNs = rows ? limits.launchNs.value + rowsNanoseconds(scheduled, rows, limits) : 0;
  if (attention) estimateNs = limits.launchNs.value + attentionNanoseconds(attention, limits);
  if (turn) estimateNs = limits.launchNs.value + turnNanoseconds(scheduled, turn, limits);
  for (const s of rows || attention || turn ? [] : scheduled.statements) {
    const product = scheduled.products.find((p) => p.directive.statement === s.statement.name);
    if (product) {
      const operandBytes = bytesRead(scheduled.region, s.statement, ranges);
      const of = { statement: s.statement, operandBytes };
      estimateNs += limits.launchNs.value + productNanoseconds(product, of, limits);
      continue;
    }
    if (folded.has(s.statement.name)) continue;
    estimateNs += new BlockPrice(scheduled, s, limits, ranges).nanoseconds();
    if (!guests.has(s.statement.name)) estimateNs += limits.launchNs.value;
  }
  const { ns: boundNs, bytes } = blockBound(scheduled.region, limits);
  const isNear = bytes <= limits.nearBytes;
  const rate = isNear ? limits.nearBytesPerNs.value : limits.memoryBytesPerNs.value;
  return { estimateNs: longestOf(estimateNs, limits.launchNs.value + bytes / rate), boundNs };
}

class BlockPrice {
  readonly #s: ScheduledStatement;
  readonly #region: ScheduledRegion;
  readonly #limits: BlockLimits;
  readonly #ranges: IndexRanges;
  readonly #results: number;
  readonly #accesses = new Map<AnyAccess, BlockAccess>();
  readonly #interleaved: ReadonlyMap<AnyAccess, Interleaved>;

  constructor(
    region: ScheduledRegion,
    s: ScheduledStatement,
    limits: BlockLimits,
    ranges: IndexRanges,
  ) {
    this.#s = s;
    this.#region = region;
    this.#limits = limits;
    this.#ranges = ranges;
    this.#results = this.#count((l) => isCopied(l) && l.kind === "space");
    this.#interleaved = interleavedIn(s);
  }

  nanoseconds(): number {
    const { cores, warpThreads, warpInstructionsPerNsPerCore } = this.#limits;
    const blocks = this.#count((l) => l.mode === "blocks");
    const threads = this.#count((l) => l.mode === "threads" || l.mode === "groups");
    const warps = Math.ceil(threads / warpThreads);
    const resident = this.#residentBlocks(threads);
    const perCore = Math.ceil(blocks / cores);
    const waves = Math.ceil(perCore / resident);
    const together = Math.min(resident, perCore) * warps;
    const busy = Math.min(1, together / busyWarps);
    const { slots, scattered, chainNs } = this.#thread();
    const issueNs =
      (perCore * warps * slots) / warpInstructionsPerNsPerCore.value / Math.max(busy, 0.2);
    const scatteredNs = (perCore * warps * scattered) / linesPerNs;
    const nearNs = blocks * this.#nearNanosecondsPerBlock() + scatteredNs;
    const lifeNs = waves * (chainNs + this.#limits.memoryLatencyNs.value);
    const farNs = this.#farNanoseconds(together * warpThreads, resident);
    return longestOf(issueNs, nearNs, lifeNs, perCore * blockNs, farNs) + unhiddenShare * issueNs;
  }

  /**
   * What memory gives while so many threads of a multiprocessor have their loads on the way. Of the blocks
   * that it holds, one is about to end or to begin and loads little. There are only so many requests on the
   * way: warps that ask for half a line get 0.7 of the rate (H200).
   */
  #farNanoseconds(threads: number, blocks: number): number {
    const { cores, memoryLatencyNs, memoryBytesPerNs, nearBytes } = this.#limits;
    const { reads, finishReads } = this.#s.statement;
    const bytes = compulsoryBytes(this.#region.region, this.#ranges);
    if (bytes <= nearShare * nearBytes) return 0;
    const isLoop = this.#s.loops.some((l) => isRunning(l) && l.kind === "reduce");
    const trip = this.#onTheWay(reads, true);
    const ahead = Math.min(bytesAhead, loadsAhead * trip);
    const inside = isLoop && trip > 0 ? Math.max(trip, ahead) : trip;
    const onTheWay = threads * Math.max(inside, this.#onTheWay(finishReads, false));
    const latency = loadedLatency * memoryLatencyNs.value;
    // Nobody waits for what is written.
    const awaited = bytesRead(this.#region.region, this.#s.statement, this.#ranges);
    const arriving = onTheWay === 0 ? 0 : (awaited / cores / onTheWay) * latency;
    const share = Math.min(1, Math.sqrt(this.#widestRequest(reads) / lineBytes));
    const rate = memoryBytesPerNs.value * share;
    return longestOf(arriving, (bytes / rate) * (1 + 1 / (2 * blocks)));
  }

  /**
   * Bytes that a warp asks for at once, at most, where neighbours read neighbouring elements; a whole line where it
   * asks for nothing.
   */
  #widestRequest(reads: readonly Pick<Access, "tensor" | "index">[]): number {
    if (reads.length === 0) return lineBytes;
    const lane = this.#s.loops.find((l) => l.mode === "vector");
    const widths = reads.map((read) => {
      const { variables, bytes } = this.#placed(read);
      const lanes = lane && variables.has(lane.name) ? constantValue(lane.extent)! : 1;
      return lanes * bytes * (this.#interleaved.get(read)?.step ?? 1);
    });
    return this.#limits.warpThreads * Math.max(...widths, 0);
  }

  /** Bytes that a thread loads in one trip. */
  #onTheWay(accesses: readonly Pick<Access, "tensor" | "index">[], inside: boolean): number {
    return accesses.reduce((sum, access) => {
      const { variables, bytes } = this.#placed(access);
      const elements = this.#count(
        (l) => isCopied(l) && variables.has(l.name) && (inside || l.kind === "space"),
      );
      return sum + elements * bytes;
    }, 0);
  }

  /** Blocks that a multiprocessor holds at once. */
  #residentBlocks(threads: number): number {
    const { registersPerCore, threadsPerCore, blocksPerCore, warpThreads } = this.#limits;
    const held = Math.ceil(threads / warpThreads) * warpThreads;
    const components = this.#s.statement.reduction?.monoid.components.length ?? 1;
    const registers = held * (plainRegisters + 2 * this.#results * components);
    const most = Math.min(
      blocksPerCore,
      Math.floor(threadsPerCore / held),
      Math.floor(registersPerCore / registers),
    );
    return Math.max(1, most);
  }

  /** Issue slots of one thread's whole work for its warp, and the time its chain takes alone. */
  #thread(): { readonly slots: number; readonly scattered: number; readonly chainNs: number } {
    const { statement } = this.#s;
    const outer = this.#count((l) => isRunning(l) && l.kind !== "reduce");
    const steps = this.#count((l) => isRunning(l) && l.kind === "reduce");
    const copies = this.#count((l) => isCopied(l) && l.kind === "reduce");
    const work = times(this.#results, this.#point());
    const read = this.#requests(statement.reads, true);
    const finish = (statement.finish ?? []).reduce((sum, e) => sum + scalarCost(e), 0);
    const ends = [statement.finishReads, statement.writes].map((a) => this.#requests(a, false));
    const around = this.#results * finish + ends.reduce((sum, e) => sum + e.issued, loopOps);
    const inLoop = sumOf(times(copies, work), plainIssue(read.issued + loopOps));
    const all = sumOf(times(steps, inLoop), this.#exchanges(), plainIssue(around));
    const inAll = (of: "lines" | "scattered"): number =>
      outer * ends.reduce((sum, e) => sum + e[of], steps * read[of]);
    return {
      slots: Math.max(slotsOf(times(outer, all)), issuesPerLine * inAll("lines")),
      scattered: inAll("scattered"),
      chainNs: outer * steps * this.#tripLatencyNs(),
    };
  }

  /** A trip of a scan may load what one before it has stored, or stores at a place that it loads. */
  #tripLatencyNs(): number {
    const { loops, reads, writes, indirects } = this.#s.statement;
    if (!loops.some((l) => l.kind === "scan")) return tripLatencyNs;
    const written = new Set(writes.map((w) => w.tensor));
    const loads = reads.some((a) => written.has(a.tensor));
    const updates = writes.some((w) => w.combine !== "overwrite");
    const used = variablesOf(...writes.flatMap((w) => w.index));
    const isPlaced = indirects.some((v) => used.has(v.name));
    if (loads || updates) return isPlaced ? updateTripLatencyNs : orderedTripLatencyNs;
    return isPlaced ? placedTripLatencyNs : tripLatencyNs;
  }

  /** Of one point of the statement. */
  #point(): Issue {
    const { body, reduction } = this.#s.statement;
    // Loads of neighbours are vectors, and what they widen is two instructions for a pair.
    if (reduction) return foldIssue(body, reduction.monoid, 2);
    return plainIssue(body.reduce((sum, e) => sum + scalarCost(e), 0));
  }

  /** Combining the accumulators of a thread's lanes, and those of a warp's threads in halves. */
  #exchanges(): Issue {
    const { reduction } = this.#s.statement;
    if (!reduction) return noIssue;
    const { components, combine } = reduction.monoid;
    const once = issueOf(combine, 2);
    const lanes = this.#count((l) => l.kind === "reduce" && l.mode === "vector");
    const shared = this.#s.loops.some((l) => l.kind === "reduce" && l.mode === "threads");
    const told = sumOf(plainIssue(components.length * exchangeSlots), once);
    const halves = shared ? Math.log2(this.#limits.warpThreads) : 0;
    return times(this.#results, sumOf(times(lanes - 1, once), times(halves, told)));
  }

  /**
   * What a warp's accesses of one trip take: instructions, lines that the load unit looks up, and how many of these
   * where they are many more than the bytes would fill.
   */
  #requests(
    accesses: readonly AnyAccess[],
    inside: boolean,
  ): { readonly issued: number; readonly lines: number; readonly scattered: number } {
    let [issued, lines, scattered] = [0, 0, 0];
    const { warpThreads } = this.#limits;
    const thread = this.#s.loops.find((l) => l.mode === "threads");
    const beside = thread ? Math.min(warpThreads, constantValue(thread.extent)!) : warpThreads;
    for (const access of accesses) {
      const placed = this.#placed(access);
      const distinct = this.#count(
        (l) =>
          l.mode === "unroll" && placed.variables.has(l.name) && (inside || l.kind === "space"),
      );
      const { pieces, checks } = this.#pieces(placed, access);
      issued += distinct * pieces * (1 + checks);
      const touched = thread ? placed.lines(thread, warpThreads) : 1;
      const bytes = beside * (this.#neighbourBytes(access) / pieces);
      const filled = (warpThreads / beside) * Math.max(1, bytes / lineBytes);
      lines += distinct * pieces * touched;
      if (touched > scatteredFrom * filled) scattered += distinct * pieces * touched;
    }
    return { issued, lines, scattered };
  }

  /**
   * Loads that a vector falls into, and tests in front of each: as few as its bytes need, where it begins at a
   * multiple of its length and is inside or outside as a whole. Accesses that interleave share theirs.
   */
  #pieces(
    { at, variables }: BlockAccess,
    access: AnyAccess,
  ): { readonly pieces: number; readonly checks: number } {
    const { guard = [] } = access;
    const fewest = Math.ceil(this.#neighbourBytes(access) / widestBytes);
    const step = this.#interleaved.get(access)?.step;
    if (step !== undefined) return { pieces: fewest / step, checks: 0 };
    const lane = this.#s.loops.find((l) => l.mode === "vector");
    const whole = { pieces: fewest, checks: testOps * guard.length };
    if (!lane || !variables.has(lane.name)) return whole;
    const last = splitLinear(at.at(-1)!, lane.name);
    const lanes = constantValue(lane.extent)!;
    if (last?.coefficient !== 1) return { ...whole, pieces: lanes };
    const tests = guard.filter((c) => {
      const used = variablesOf(substitute(c.expr, this.#s.index));
      return used.has(lane.name);
    });
    const steps = [last.rest.constant, ...last.rest.terms.map((t) => t.coefficient)];
    const isWhole = tests.length === 0 && steps.every((c) => c % lanes === 0);
    return isWhole ? whole : { pieces: lanes, checks: testOps * tests.length };
  }

  /** Bytes of a thread's vector, with what lies between its lanes and other accesses take. */
  #neighbourBytes(access: AnyAccess): number {
    const { at, variables, bytes } = this.#placed(access);
    const lane = this.#s.loops.find((l) => l.mode === "vector");
    const lanes = lane && variables.has(lane.name) ? constantValue(lane.extent)! : 1;
    const step = this.#interleaved.get(access)?.step;
    if (step !== undefined) return step * lanes * bytes;
    const isVector = lanes > 1 && splitLinear(at.at(-1)!, lane!.name)?.coefficient === 1;
    return isVector ? lanes * bytes : bytes;
  }

  /**
   * Of the shared cache's time, what a block takes: each element of its part is asked for once, in sectors of as
   * many lines as a warp touches with all that its threads have at once.
   */
  #nearNanosecondsPerBlock(): number {
    const { reads, finishReads, writes } = this.#s.statement;
    const asked = [...reads, ...finishReads].map((a) => this.#nearNanoseconds(a, false));
    return [...asked, ...writes.map((a) => this.#nearNanoseconds(a, true))].reduce(
      (n, t) => n + t,
      0,
    );
  }

  #nearNanoseconds(access: AnyAccess, isWrite: boolean): number {
    const { nearBytesPerNs, cores, warpThreads } = this.#limits;
    const placed = this.#placed(access);
    const { distinct, ...touched } = placed.footprint(warpThreads, isWrite);
    // Others touch the same with the same instruction.
    const step = this.#interleaved.get(access)?.step ?? 1;
    const [sectors, lines] = [touched.sectors / step, touched.lines / step];
    const share = placed.elementsOfBlock() / distinct;
    const moved = (share * sectors * sectorBytes) / nearBytesPerNs.value;
    if (isWrite) {
      const partial = sectors * sectorBytes > distinct * placed.bytes ? share * sectors : 0;
      const isInHalves = this.#neighbourBytes(access) > widestBytes;
      const halves = isInHalves ? (placed.elementsOfBlock() * placed.bytes) / widestBytes : 0;
      const apart = partial / partialSectorsPerNs + halves / halfSectorsPerNs;
      return Math.max(moved, apart / cores);
    }
    return Math.max(moved, (share * lines) / (requestsPerNs * cores));
  }

  #placed(access: AnyAccess): BlockAccess {
    let placed = this.#accesses.get(access);
    if (!placed) {
      placed = new BlockAccess(access, this.#s, this.#region, this.#ranges);
      this.#accesses.set(access, placed);
    }
    return placed;
  }

  #count(test: (l: ScheduledLoop) => boolean): number {
    return this.#s.loops
      .filter(test)
      .reduce((n, l) => n * Math.max(1, rangeOf(l.extent, this.#ranges).max), 1);
  }
}

/** Copied out: every point of it is there at once in a thread. */
function isCopied({ mode }: ScheduledLoop): boolean {
  return mode === "unroll" || mode === "vector";
}

function isRunning({ mode }: ScheduledLoop): boolean {
  return mode === "serial" && !isBound(mode);
}
