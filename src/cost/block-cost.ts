/**
 * The price of a scheduled region on a machine of blocks of threads, without lowering it. First
 * principles only:
 *
 *   time = launch + waves x max(instructions, requests to the near memories, the latency chain of one
 *          thread), and not below the bytes that memory must give
 *
 * Requests are counted by warp: the load unit of a multiprocessor works on one line a cycle, so 32 neighbours
 * that touch neighbouring elements are one cycle, 32 far ones are 32, while four warps issue. How many warps a multiprocessor holds follows from registers and threads
 * (occupancy); the last wave counts as a whole one.
 */
import type { Access } from "../region/nest.ts";
import {
  isBound,
  type ScheduledLoop,
  type ScheduledRegion,
  type ScheduledStatement,
  symbolRanges,
} from "../schedule/scheduled-region.ts";
import { dtypes } from "../semantics/dtype.ts";
import {
  constantValue,
  evaluate,
  splitLinear,
  substitute,
  variablesOf,
} from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import { scalarCost } from "../semantics/scalar-expr.ts";
import type { BlockLimits } from "../target/target.ts";
import { attentionNanoseconds } from "./attention-cost.ts";
import { blockBound } from "./block-bound.ts";
import { productNanoseconds } from "./product-cost.ts";
import { bytesRead, compulsoryBytes, longestOf, product, type RegionPrice } from "./region-work.ts";
import { rowsNanoseconds } from "./rows-cost.ts";

/** Bytes that the load unit of a multiprocessor looks up and delivers in one cycle. */
const lineBytes = 128;
/** Warp instructions that a multiprocessor issues in the cycle of one line. */
const issuesPerLine = 4;
/** Registers of a thread beside its results: addresses, loop variables, operands. */
const plainRegisters = 28;
/** Instructions of loop control and addresses per trip. */
const loopOps = 4;
/** Instructions of one condition on an element. */
const testOps = 2;
/** Of one trip: address, load from a near cache, multiply-add; an assembler overlaps about four. */
const tripLatencyNs = 25;
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
  const { attention, rows } = scheduled;
  let estimateNs = rows ? limits.launchNs.value + rowsNanoseconds(scheduled, rows, limits) : 0;
  if (attention) estimateNs = limits.launchNs.value + attentionNanoseconds(attention, limits);
  for (const s of rows || attention ? [] : scheduled.statements) {
    const product = scheduled.products.find((p) => p.directive.statement === s.statement.name);
    if (product) {
      const operandBytes = bytesRead(scheduled.region, s.statement, ranges);
      const of = { statement: s.statement, operandBytes };
      estimateNs += limits.launchNs.value + productNanoseconds(product, of, limits);
      continue;
    }
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
    const { slots, chainNs } = this.#thread();
    const issueNs =
      (perCore * warps * slots) / warpInstructionsPerNsPerCore.value / Math.max(busy, 0.2);
    const nearNs = (blocks * this.#bytesPerBlock()) / this.#limits.nearBytesPerNs.value;
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
    const arriving = onTheWay === 0 ? 0 : (bytes / cores / onTheWay) * latency;
    const share = Math.min(1, Math.sqrt(this.#widestRequest(reads) / lineBytes));
    const rate = memoryBytesPerNs.value * share;
    return longestOf(arriving, (bytes / rate) * (1 + 1 / (2 * blocks)));
  }

  /** Bytes that a warp asks for at once, at most, where neighbours read neighbouring elements. */
  #widestRequest(reads: readonly Pick<Access, "tensor" | "index">[]): number {
    const lane = this.#s.loops.find((l) => l.mode === "vector");
    const widths = reads.map(({ tensor, index }) => {
      const used = variablesOf(...index.map((e) => substitute(e, this.#s.index)));
      const lanes = lane && used.has(lane.name) ? constantValue(lane.extent)! : 1;
      return (lanes * dtypes[this.#region.region.tensors.get(tensor)!.dtype].bits) / 8;
    });
    return this.#limits.warpThreads * Math.max(...widths, 0);
  }

  /** Bytes that a thread loads in one trip. */
  #onTheWay(accesses: readonly Pick<Access, "tensor" | "index">[], inside: boolean): number {
    return accesses.reduce((sum, { tensor, index }) => {
      const used = variablesOf(...index.map((e) => substitute(e, this.#s.index)));
      const elements = this.#count(
        (l) => isCopied(l) && used.has(l.name) && (inside || l.kind === "space"),
      );
      return sum + (elements * dtypes[this.#region.region.tensors.get(tensor)!.dtype].bits) / 8;
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
  #thread(): { readonly slots: number; readonly chainNs: number } {
    const { statement } = this.#s;
    const outer = this.#count((l) => isRunning(l) && l.kind !== "reduce");
    const steps = this.#count((l) => isRunning(l) && l.kind === "reduce");
    const copies = this.#count((l) => isCopied(l) && l.kind === "reduce");
    const combine = statement.reduction ? statement.reduction.monoid.combine.length : 0;
    const perPoint = statement.body.reduce((sum, e) => sum + scalarCost(e), 0);
    const work = this.#results * (statement.reduction ? Math.max(perPoint, combine) : perPoint);
    const read = this.#requests(statement.reads, true);
    const finish = (statement.finish ?? []).reduce((sum, e) => sum + scalarCost(e), 0);
    const ends = [statement.finishReads, statement.writes].map((a) => this.#requests(a, false));
    // A vector along the reduction is read at once.
    const reads = copies / this.#count((l) => l.mode === "vector" && l.kind === "reduce");
    const issued =
      outer *
      (steps * (copies * work + reads * read.issued + loopOps) +
        this.#exchanges() +
        this.#results * finish +
        ends.reduce((sum, e) => sum + e.issued, loopOps));
    const lines = outer * ends.reduce((sum, e) => sum + e.lines, steps * reads * read.lines);
    return {
      slots: Math.max(issued, issuesPerLine * lines),
      chainNs: outer * steps * tripLatencyNs,
    };
  }

  /** Slots of combining the accumulators of a warp's threads in halves. */
  #exchanges(): number {
    const { reduction } = this.#s.statement;
    const shared = this.#s.loops.some((l) => l.kind === "reduce" && l.mode === "threads");
    if (!reduction || !shared) return 0;
    const { components, combine } = reduction.monoid;
    const perHalf =
      components.length * exchangeSlots + combine.reduce((n, e) => n + scalarCost(e), 0);
    return Math.log2(this.#limits.warpThreads) * this.#results * perHalf;
  }

  /** What a warp's accesses of one trip take: instructions, and lines that the load unit looks up. */
  #requests(
    accesses: readonly (Pick<Access, "tensor" | "index"> & Partial<Pick<Access, "guard">>)[],
    inside: boolean,
  ): { readonly issued: number; readonly lines: number } {
    let [issued, lines] = [0, 0];
    for (const { tensor, index, guard = [] } of accesses) {
      const at = index.map((e) => substitute(e, this.#s.index));
      const used = variablesOf(...at);
      const distinct = this.#count(
        (l) => l.mode === "unroll" && used.has(l.name) && (inside || l.kind === "space"),
      );
      const { pieces, checks } = this.#pieces(at, guard);
      issued += distinct * pieces * (1 + checks);
      lines += distinct * pieces * this.#lines(at, tensor);
    }
    return { issued, lines };
  }

  /**
   * Loads that a vector falls into, and tests in front of each: one, where it begins at a multiple of its length
   * and is inside or outside as a whole.
   */
  #pieces(
    index: Access["index"],
    guard: Access["guard"],
  ): { readonly pieces: number; readonly checks: number } {
    const lane = this.#s.loops.find((l) => l.mode === "vector");
    if (!lane || !variablesOf(...index).has(lane.name)) return { pieces: 1, checks: 0 };
    const last = splitLinear(index.at(-1)!, lane.name);
    const lanes = constantValue(lane.extent)!;
    if (last?.coefficient !== 1) return { pieces: lanes, checks: 0 };
    const tests = guard.filter((c) => {
      const used = variablesOf(substitute(c.expr, this.#s.index));
      return used.has(lane.name);
    });
    const steps = [last.rest.constant, ...last.rest.terms.map((t) => t.coefficient)];
    const isWhole = tests.length === 0 && steps.every((c) => c % lanes === 0);
    return isWhole ? { pieces: 1, checks: 0 } : { pieces: lanes, checks: testOps * tests.length };
  }

  /** Lines that a warp touches with one access, of one vector a thread. */
  #lines(index: Access["index"], tensor: string): number {
    const thread = this.#s.loops.find((l) => l.mode === "threads");
    if (!thread) return 1;
    const { warpThreads } = this.#limits;
    const threads = Math.min(warpThreads, constantValue(thread.extent)!);
    const bytes = dtypes[this.#region.region.tensors.get(tensor)!.dtype].bits / 8;
    const places = this.#elements(index, tensor, { thread: thread.name, threads });
    const touched = new Set(places.map((e) => Math.floor((e * bytes) / lineBytes)));
    return (warpThreads / threads) * touched.size;
  }

  /** Numbers of the elements that the threads of a warp begin at, all other loops at their first trip. */
  #elements(
    index: Access["index"],
    tensor: string,
    { thread, threads }: { readonly thread: string; readonly threads: number },
  ): readonly number[] {
    const { shape } = this.#region.region.tensors.get(tensor)!;
    const at = new Map([...variablesOf(...index)].map((name) => [name, 0]));
    const steps = index.map((e) => splitLinear(e, thread)?.coefficient);
    const flat = (values: readonly number[]): number =>
      values.reduce(
        (n, v, axis) => n * Math.max(1, rangeOf(shape[axis]!, this.#ranges).max) + v,
        0,
      );
    const isLinear = steps.every((c) => c !== undefined);
    const stride = isLinear ? flat(steps as readonly number[]) : 0;
    return Array.from({ length: threads }, (_, t) =>
      isLinear ? t * stride : flat(index.map((e) => evaluate(e, at.set(thread, t)))),
    );
  }

  /** Bytes that one block asks of the shared cache: each element of its part once. */
  #bytesPerBlock(): number {
    const { statement, index, loops } = this.#s;
    const inside = loops.filter((l) => l.mode !== "blocks");
    let total = 0;
    for (const access of [...statement.reads, ...statement.finishReads, ...statement.writes]) {
      const used = variablesOf(...access.index.map((e) => substitute(e, index)));
      const elements = product(
        inside.filter((l) => used.has(l.name)).map((l) => l.extent),
        this.#ranges,
      );
      total += (elements * dtypes[this.#region.region.tensors.get(access.tensor)!.dtype].bits) / 8;
    }
    return total;
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
