/**
 * The time of attention as one kernel (schedule/attention/attention-form.ts), without its launch. A multiprocessor
 * holds as many blocks as shared memory, registers and threads allow; a round of them takes for each step
 * the most of
 *
 *   multiplying     both products at the rate of the instruction, and the softmax of the scores between them
 *   near memory     keys and values as often as warps read them
 *   far memory      keys and values at the share of the caches that a multiprocessor has, of panels shorter
 *                   than a line at a part of it
 *   latency         of a copy, over the steps that are on the way
 *
 * and at its ends the latency of the first tiles and the bytes of the results.
 */
import { type AttentionForm, linearScore } from "../schedule/attention/attention-form.ts";
import {
  attentionBytes,
  isTriangular,
  linePanels,
  type Panels,
  problemsOf,
  sharesOf,
  valuePanels,
  windowSteps,
  wordsOfThread,
} from "../schedule/attention/attention-limits.ts";
import type { ScheduledAttention } from "../schedule/scheduled-region.ts";
import { scalarCost } from "../semantics/scalar-expr.ts";
import type { BlockLimits } from "../target/target.ts";
import { residentBlocks } from "./resident-blocks.ts";
import { rateOfRows } from "./short-lines.ts";

/** Part of the instruction's rate that a well filled multiprocessor keeps up. */
const sustained = 0.75;
/** Warps of a multiprocessor from which on its units have work all the time. */
const busyWarps = 6;
/** Registers of a thread beside results, scores and what is multiplied. */
const plainRegisters = 48;
/** Instructions for a score: largest, multiply-add, power (a quarter of the rate), sum, half a rounding. */
const softmaxSlots = 8;
/** For a row in a step, beside one for each of its results: they are scaled, as H200 shows by steps of all widths. */
const rowSlots = 20;
/** Of a score that is no multiple of its sum: loads and their addresses beside its operators. */
const biasSlots = 3;
/** Instructions of one copy into shared memory. */
const copySlots = 6;
/** Latency of a copy while all multiprocessors copy, over the unloaded one. */
const loadedLatency = 2.4;
/** Part of the multiprocessors that clusters of more than two find side by side (H200: 31 of four, of 33). */
const sideBySide = 0.95;
const bytesOfElement = 2;
/** What an exchange of results within a cluster takes, its start and its end together (H200). */
const exchangeNs = 1500;
const registerUnit = 8;
/** Warps beside those that multiply, where groups of them do. */
const producerWarps = 4;
/** Parts whose loads a thread of the second kernel has on the way together (lower/attention/dealt.ts). */
const partsTogether = 8;
/**
 * A step of warpgroups (H200, within a tenth over heads of 64 to 256 and tiles of 64 to 192 columns): waits and
 * hand-overs, both products at the rate of the instruction over this part of it, and the softmax of one of
 * the groups, since the others' is hidden behind products.
 */
const [groupStepNs, groupSustained] = [400, 1.19] as const;
const groupRows = 64;
/** Part of the rate of memory at which results go there in pairs, half a sector at a time. */
const scatteredShare = 0.38;
/** And of results that are copied out in whole lines. */
const gatheredShare = 0.8;

export function attentionNanoseconds(attention: ScheduledAttention, limits: BlockLimits): number {
  const { by } = attention.directive;
  return by === "wgmma" ? byGroups(attention, limits) : byWarps(attention, limits);
}

/** One block a multiprocessor: registers go round to its groups. */
function byGroups({ form, directive }: ScheduledAttention, limits: BlockLimits): number {
  const [rows, columns] = directive.tile;
  const { depth, width } = form;
  if (typeof residentAttention({ form, directive }, limits) === "string") return Infinity;
  const blocks = problemsOf(form) * Math.ceil(form.rows / rows);
  const rate = (limits.groupMatrixFlopsPerNs[form.dtype]?.value ?? 0) / limits.cores;
  const multiply = (2 * rows * columns * (depth + width)) / (rate * groupSustained);
  const slots = groupRows * columns * scoreSlots(form);
  const softmax = slots / limits.warpThreads / limits.warpInstructionsPerNsPerCore.value;
  const active = Math.min(limits.cores, blocks);
  const moved =
    movedOfLine(linePanels(directive, depth)) + movedOfLine(valuePanels(directive, width));
  const far = (columns * moved * active) / limits.nearBytesPerNs.value;
  const latency = (loadedLatency * limits.memoryLatencyNs.value) / Math.max(2, directive.stages);
  const step = Math.max(groupStepNs + multiply + softmax, far, latency);
  const results = bytesOfElement * active * rows * width;
  const share = directive.gathered ? gatheredShare : scatteredShare;
  const ends = 2 * limits.memoryLatencyNs.value + results / (share * limits.memoryBytesPerNs.value);
  const rounds = blocks / limits.cores;
  // Blocks of a triangle are unlike: no round of them ends together.
  const whole = isTriangular(directive, form) ? Math.max(1, rounds + 0.5) : Math.ceil(rounds);
  return whole * (stepsOf({ form, directive }) * step + ends);
}

/** Bytes of a line, or as many as take as long where they are brought in shorter rows. */
function movedOfLine(panels: readonly Panels[]): number {
  return panels.reduce((bytes, { elements, panel }) => {
    return bytes + (bytesOfElement * elements) / rateOfRows(bytesOfElement * panel);
  }, 0);
}

/** Steps of a block on the average. */
function stepsOf({ form, directive }: ScheduledAttention): number {
  const [rows, columns] = directive.tile;
  const all = Math.ceil(form.columns / columns);
  if (!isTriangular(directive, form)) return all;
  const window = windowSteps(directive, form);
  if (window !== undefined) return window;
  const tiles = Math.ceil(form.rows / rows);
  return Math.min(all, Math.ceil((rows * (tiles + 1)) / 2 + form.ahead!) / columns);
}

function byWarps({ form, directive }: ScheduledAttention, limits: BlockLimits): number {
  const [rows, columns] = directive.tile;
  const { warps, stages, parts, splits } = directive;
  const { depth, width } = form;
  const shares = sharesOf(directive);
  const resident = residentAttention({ form, directive }, limits);
  if (typeof resident === "string") return Infinity;
  const tiles = Math.ceil(form.rows / rows);
  const blocks = problemsOf(form) * tiles * shares;
  const perCore = Math.ceil(blocks / limits.cores);
  const together = Math.min(resident, perCore);
  const steps = Math.ceil(stepsOf({ form, directive }) / shares);
  const busy = Math.min(1, (together * warps) / busyWarps);
  const rate = (limits.warpMatrixFlopsPerNs[form.dtype]?.value ?? 0) / limits.cores;
  const multiply = (2 * rows * columns * (depth + width)) / (rate * sustained * busy);
  const issues = limits.warpInstructionsPerNsPerCore.value * busy;
  const copies = (columns * (depth + width)) / Math.min(form.key.lanes, form.value.lanes);
  const scaled = rows * (width + rowSlots);
  const slots = rows * columns * scoreSlots(form) + scaled + copies * copySlots;
  const softmax = slots / limits.warpThreads / issues;
  const moved = bytesOfElement * columns * (depth + width);
  const near = (warps * moved) / limits.sharedBytesPerNsPerCore.value;
  const active = Math.min(limits.cores, blocks);
  const far = (moved * active) / limits.nearBytesPerNs.value;
  const latency = (loadedLatency * limits.memoryLatencyNs.value) / Math.max(1, stages - 1);
  const step = Math.max(together * Math.max(multiply + softmax, near, far), latency);
  const stored = (together * active * rows * width * bytesOfElement) / parts;
  const results = stored / limits.nearBytesPerNs.value + (parts > 1 ? exchangeNs : 0);
  const ends = 3 * limits.memoryLatencyNs.value + results;
  // What does not find its place with the others comes behind them.
  const late = parts > 1 ? Math.ceil(blocks / blocksAtOnce(resident, parts, limits)) : 1;
  const merged = splits > 1 ? mergedNanoseconds({ form, directive }, limits) : 0;
  return Math.max(late, perCore / together) * (steps * step + ends) + merged;
}

/** What a second kernel takes, with its launch, that reads what blocks left in memory: the near cache has it. */
function mergedNanoseconds({ form, directive }: ScheduledAttention, limits: BlockLimits): number {
  const { launchNs, memoryLatencyNs, nearBytesPerNs } = limits;
  const bytes = 4 * problemsOf(form) * form.rows * form.width * directive.splits;
  // Written and read; largest scores first, then sums and values, some parts at a time.
  const trips = Math.ceil(directive.splits / partsTogether);
  const chain = (1 + 2 * trips) * memoryLatencyNs.value;
  return launchNs.value + chain + (2 * bytes) / nearBytesPerNs.value;
}

/** Blocks of clusters that run at once. */
function blocksAtOnce(resident: number, parts: number, { cores }: BlockLimits): number {
  const share = parts > 2 ? sideBySide : 1;
  return parts * Math.max(1, Math.floor((share * cores * resident) / parts));
}

function scoreSlots({ score, scoreReads }: AttentionForm): number {
  const linear = linearScore(score);
  if (linear && !linear.bias) return softmaxSlots;
  return softmaxSlots + scalarCost(score) + biasSlots * scoreReads.length;
}

/** Blocks that a multiprocessor holds at once, or why it has no code for one. */
export function residentAttention(
  { form, directive }: ScheduledAttention,
  limits: BlockLimits,
): number | string {
  const { by, warps } = directive;
  const rates = by === "mma" ? limits.warpMatrixFlopsPerNs : limits.groupMatrixFlopsPerNs;
  if (!rates[form.dtype]) return `the machine does not multiply ${form.dtype} by ${by}`;
  const words = plainRegisters + wordsOfThread(directive, form);
  // Warpgroups share all registers of a multiprocessor (attention-limits.ts).
  const registers = by === "wgmma" ? 0 : Math.ceil(words / registerUnit) * registerUnit;
  const threads = limits.warpThreads * (warps + (by === "wgmma" ? producerWarps : 0));
  return residentBlocks(
    { threads, registers, sharedBytes: attentionBytes(directive, form) },
    limits,
  );
}
