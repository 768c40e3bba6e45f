/**
 * The time of a map that turns what it reads (schedule/turns/turn-form.ts), without its launch: the bytes that memory
 * moves, in requests as long as the runs of a tile, the instructions of all tiles, their requests to shared memory
 * with the banks that these find taken, and the waits of one block after another.
 */
import {
  type ScheduledRegion,
  type ScheduledTurn,
  symbolRanges,
} from "../schedule/scheduled-region.ts";
import { mostTrips, type TurnForm, tileBytes } from "../schedule/turns/turn-form.ts";
import { dtypes } from "../semantics/dtype.ts";
import { constantValue, variablesOf } from "../semantics/index-expr.ts";
import { scalarCost } from "../semantics/scalar-expr.ts";
import type { BlockLimits } from "../target/target.ts";
import { lineBytes, sectorBytes } from "./block-access.ts";
import { compulsoryBytes, longestOf } from "./region-work.ts";
import { residentBlocks } from "./resident-blocks.ts";

/** Registers of a thread beside what it holds. */
const plainRegisters = 32;
/** Instructions of a load or store with its address, and of the tests of a ragged end. */
const [accessSlots, testSlots] = [3, 2] as const;
/** Instructions that take an element out of a word, or put it in, by its bytes. */
const byteSlots = 2;
const halfSlots = 0.5;
/** Latency of memory while all multiprocessors load, over the unloaded one (H200). */
const loadedLatency = 1.6;
/** From one block of a multiprocessor to the next, and from a block's last store to the first load behind it (H200). */
const [blockNs, turnNs] = [80, 600] as const;
/** Warps of a multiprocessor that keep its units busy, and the share of their rate that is kept up. */
const [busyWarps, sustained] = [24, 0.85] as const;
/** Of the time of instructions, what nothing hides: at the begin and the end of each thread. */
const unhiddenShare = 0.05;
const bankBytes = 4;
const bankCount = 32;

export function turnNanoseconds(
  region: ScheduledRegion,
  turn: ScheduledTurn,
  limits: BlockLimits,
): number {
  const { form, directive } = turn;
  const { threads, tile } = directive;
  const { cores, warpThreads, warpInstructionsPerNsPerCore, memoryBytesPerNs } = limits;
  const ranges = symbolRanges(region.region);
  const [across, down] = [form.read, form.written].map((l) => mostTrips(l, ranges));
  const outer = form.others.reduce((n, l) => n * mostTrips(l, ranges), 1);
  const blocks = outer * Math.ceil(across! / tile[0]) * Math.ceil(down! / tile[1]);
  const needs = { threads, registers: registersOf(turn), sharedBytes: tileBytes(directive, form) };
  const resident = residentBlocks(needs, limits);
  if (typeof resident === "string") return Infinity;
  const perCore = Math.ceil(blocks / cores);
  const together = Math.min(resident, perCore);
  const warps = threads / warpThreads;
  const busy = Math.max(0.2, Math.min(1, (together * warps) / busyWarps));
  const issues = warpInstructionsPerNsPerCore.value * sustained * busy;
  const { slots, wavefronts } = workOf(region, turn, limits);
  const issueNs = (perCore * warps * slots) / issues;
  const sharedNs =
    (perCore * warps * wavefronts * bankCount * bankBytes) / limits.sharedBytesPerNsPerCore.value;
  const bytes = compulsoryBytes(region.region, ranges);
  const nearNs = (bytes * torn(region, turn)) / limits.nearBytesPerNs.value;
  const isNear = bytes <= limits.nearBytes;
  const farNs = isNear
    ? 0
    : (bytes / memoryBytesPerNs.value / share(region, turn)) * (1 + 1 / (2 * resident));
  const rounds = Math.ceil(perCore / together);
  const lifeNs = rounds * (loadedLatency * limits.memoryLatencyNs.value + turnNs);
  const longest = longestOf(issueNs, sharedNs, nearNs, farNs, lifeNs, perCore * blockNs);
  return longest + unhiddenShare * issueNs;
}

function registersOf({ form, directive }: ScheduledTurn): number {
  const { tile, threads, lanes } = directive;
  const words = form.turned.reduce((n, t) => n + t.bytes / 4, 0);
  const held = (words * tile[0] * tile[1]) / threads;
  return plainRegisters + Math.ceil(held) + 2 * lanes[1];
}

/** Bytes of one element along the results: what is stored, and read as it is stored. */
function bytesOf(region: ScheduledRegion, tensor: string): number {
  return dtypes[region.region.tensors.get(tensor)!.dtype].bits / 8;
}

/** Lengths of what a tile reads or writes as one run, in bytes. */
function runsOf(region: ScheduledRegion, { form, directive }: ScheduledTurn): readonly number[] {
  const ranges = symbolRanges(region.region);
  const [across, down] = directive.tile;
  const { read, written, turned, statement } = form;
  const [wide, tall] = [
    Math.min(across, mostTrips(read, ranges)),
    Math.min(down, mostTrips(written, ranges)),
  ];
  const stored = statement.writes.map((w) => tall * bytesOf(region, w.tensor));
  return [...turned.map((t) => wide * t.bytes), ...stored];
}

/** Of the rate of memory: warps that ask for less than a line of a run at once get a part (H200). */
function share(region: ScheduledRegion, turn: ScheduledTurn): number {
  const shortest = Math.min(...runsOf(region, turn));
  return Math.min(1, Math.sqrt(shortest / lineBytes));
}

/** Sectors in which runs end are asked for again by the tiles beside them. */
function torn(region: ScheduledRegion, { form, directive }: ScheduledTurn): number {
  const isWhole = [form.read, form.written].every((loop, i) => {
    const extent = constantValue(loop.extent);
    const bytes = i === 0 ? form.turned.map((t) => t.bytes) : storedBytes(region, form);
    return extent !== undefined && bytes.every((n) => (extent * n) % sectorBytes === 0);
  });
  if (isWhole) return 1;
  const shortest = Math.min(...runsOf(region, { form, directive }));
  return 1 + sectorBytes / shortest;
}

function storedBytes(region: ScheduledRegion, { statement }: TurnForm): readonly number[] {
  return statement.writes.map((w) => bytesOf(region, w.tensor));
}

interface TurnWork {
  /** Issue slots of a thread's tile. */
  readonly slots: number;
  /** Turns of shared memory that a warp takes. */
  readonly wavefronts: number;
}

function workOf(region: ScheduledRegion, turn: ScheduledTurn, limits: BlockLimits): TurnWork {
  const { form, directive } = turn;
  const { tile, threads, lanes } = directive;
  const { statement, turned, written } = form;
  const elements = (tile[0] * tile[1]) / threads;
  const [loads, stores] = lanes.map((n) => elements / n) as [number, number];
  const tests = testSlots * (isRagged(turn) ? 1 : 0);
  const point = [...statement.body, ...(statement.finish ?? [])].reduce(
    (n, e) => n + scalarCost(e),
    0,
  );
  const straight = [...statement.reads, ...statement.finishReads].filter(
    (a) => !turned.some((t) => t.access.tensor === a.tensor),
  );
  const ends = [...statement.writes, ...straight].reduce((n, a) => {
    const bytes = bytesOf(region, a.tensor);
    const isAlong = variablesOf(...a.index).has(written.name);
    const packed = isAlong && bytes === 1 ? byteSlots * lanes[1] : 0;
    const pieces = Math.ceil((lanes[1] * bytes) / 16);
    return n + pieces * accessSlots + tests + packed;
  }, 0);
  let slots = stores * ends + elements * point;
  let wavefronts = 0;
  for (const { bytes } of turned) {
    const joined = bytes === 1 ? byteSlots : bytes === 2 ? halfSlots : 0;
    const pieces = Math.ceil((lanes[0] * bytes) / 16);
    slots += loads * (pieces * (accessSlots + 1) + tests) + elements * (1 + joined);
    if (bytes === 1 && lanes[0] > 1) slots += byteSlots * elements;
    wavefronts += loads * Math.ceil((lanes[0] * bytes) / bankBytes);
    wavefronts += elements * banksTaken(turn, bytes, limits.warpThreads);
  }
  return { slots, wavefronts };
}

function isRagged({ form, directive }: ScheduledTurn): boolean {
  return [form.read, form.written].some((loop, i) => {
    const extent = constantValue(loop.extent);
    return extent === undefined || extent % directive.tile[i]! !== 0;
  });
}

/** Turns that shared memory takes for one element of each thread of a warp: the words that one bank has of them. */
function banksTaken(
  { directive }: Pick<ScheduledTurn, "directive">,
  bytes: number,
  warpThreads: number,
): number {
  const { tile, lanes } = directive;
  const perRow = tile[1] / lanes[1];
  const vectors = tile[0] / lanes[0];
  const words = Array.from({ length: bankCount }, () => new Set<number>());
  for (let thread = 0; thread < warpThreads; thread++) {
    const [vector, read] = [thread % perRow, Math.floor(thread / perRow)];
    const rotated = (Math.floor(read / lanes[0]) + vector) % vectors;
    const column = lanes[0] * rotated + (read % lanes[0]);
    const at = bytes * (vector * lanes[1] * tile[0] + column);
    for (let from = at; from < at + bytes; from += bankBytes) {
      const word = Math.floor(from / bankBytes);
      words[word % bankCount]!.add(word);
    }
  }
  return Math.max(...words.map((w) => w.size));
}
