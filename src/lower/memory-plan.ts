/**
 * Places every buffer of scope memory: weights one after another, inputs and outputs in the caller's
 * arena, states in theirs, and scratch by lifetime with reuse. Sizes are capacities: extents at the
 * parameters' upper ends, so one plan serves every shape in range. Lifetimes only propose who may share
 * bytes: check-reuse.ts has affine/ decide whether every value is kept.
 */
import type { Buffer, Program } from "../program/program.ts";
import { dtypes } from "../semantics/dtype.ts";
import { constant } from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import { type Diagnostic, diagnostic, fail, ok, type Result } from "../support/diagnostic.ts";
import { invariant } from "../support/invariant.ts";
import type { Target } from "../target/target.ts";
import { findLostValue } from "./check-reuse.ts";
import { packIntervals } from "./pack-intervals.ts";
import { kernelUses, taskUses } from "./task-uses.ts";

export interface MemoryPlan {
  readonly program: Program;
  /** Bytes of each arena. */
  readonly arenas: Readonly<Record<"weights" | "scratch" | "state" | "caller", number>>;
  /** Largest sum of scratch bytes alive at one time. */
  readonly scratchLowerBound: number;
}

/** Scratch buffer -> a scratch operand whose storage it takes over where that one dies. */
export type InPlaceChoices = ReadonlyMap<string, readonly string[]>;

export function planMemory(
  program: Program,
  inPlace: InPlaceChoices,
  target: Target,
): Result<MemoryPlan> {
  const ranges: IndexRanges = new Map(
    program.parameters.map((p) => [p.name, { min: p.min, max: p.max }]),
  );
  const unbounded = program.buffers.filter((b) => !Number.isFinite(capacityBytes(b, ranges)));
  if (unbounded.length > 0) return fail(...unbounded.map(noBound));
  const owners = program.buffers.filter((b) => b.viewOf === undefined);
  const align = (n: number): number => Math.ceil(n / target.alignmentBytes) * target.alignmentBytes;
  const arenas = { weights: 0, scratch: 0, state: 0, caller: 0 };
  const placed = new Map<string, Buffer>();
  const put = (b: Buffer, arena: keyof typeof arenas, byteOffset: number): void => {
    placed.set(b.name, { ...b, placement: { arena, byteOffset: constant(byteOffset) } });
  };
  for (const b of owners) {
    if (b.kind === "scratch") continue;
    const arena = b.kind === "weight" ? "weights" : b.kind === "state" ? "state" : "caller";
    put(b, arena, arenas[arena]);
    arenas[arena] += align(capacityBytes(b, ranges));
  }
  const scratch = owners.filter((b) => b.kind === "scratch");
  const merged = mergeInPlace(scratch, program, inPlace);
  const intervals = merged.groups.map((g) => ({
    size: Math.max(...g.members.map((b) => capacityBytes(b, ranges))),
    first: g.first,
    last: g.last,
  }));
  const packing = packIntervals(intervals, target.alignmentBytes);
  const places = merged.groups.map(({ members }, i) => {
    const from = packing.offsets[i]!;
    return { tenants: members, from, to: from + intervals[i]!.size };
  });
  const lost = findLostValue(program, places);
  invariant(!lost, () => `${lost?.later} would lie over ${lost?.earlier}, which is still needed`);
  merged.groups.forEach((g, i) => {
    const [owner, ...over] = g.members;
    put(owner!, "scratch", packing.offsets[i]!);
    // What takes over an operand's storage is a view of it, so that the validator sees one buffer.
    for (const b of over) placed.set(b.name, { ...b, viewOf: owner!.name });
  });
  arenas.scratch = packing.peak;
  const total = arenas.weights + arenas.scratch + arenas.state + arenas.caller;
  if (total > target.maxMemoryBytes) return fail(tooLarge(total, target));
  const owner = (b: Buffer): Buffer => {
    const target = b.viewOf === undefined ? undefined : placed.get(b.viewOf)?.viewOf;
    return target === undefined ? b : { ...b, viewOf: target };
  };
  const buffers = program.buffers.map((b) => placed.get(b.name) ?? owner(b));
  return ok({ program: { ...program, buffers }, arenas, scratchLowerBound: packing.lowerBound });
}

/** Bytes at the largest extents. */
export function capacityBytes(buffer: Buffer, ranges: IndexRanges): number {
  const extents = buffer.capacity ?? buffer.shape;
  const elements = extents.reduce((n, e) => n * Math.max(0, rangeOf(e, ranges).max), 1);
  return Math.ceil((elements * buffer.lanes * dtypes[buffer.dtype].bits) / 8);
}

interface Lifetime {
  first: number;
  last: number;
}

interface StorageGroup extends Lifetime {
  readonly members: Buffer[];
}

/** First and last task that touches each buffer's storage; tasks inside a loop count as the loop. */
function lifetimes(program: Program): Map<string, Lifetime> {
  const views = new Map(program.buffers.map((b) => [b.name, b.viewOf]));
  const owner = (name: string): string => views.get(name) ?? name;
  const kernels = kernelUses(program.kernels);
  const found = new Map<string, Lifetime>();
  program.tasks.forEach((task, time) => {
    const { reads, writes } = taskUses(task, kernels);
    for (const name of [...reads, ...writes]) {
      const seen = found.get(owner(name));
      if (seen) seen.last = time;
      else found.set(owner(name), { first: time, last: time });
    }
  });
  return found;
}

function mergeInPlace(
  scratch: readonly Buffer[],
  program: Program,
  inPlace: InPlaceChoices,
): { readonly groups: readonly StorageGroup[] } {
  const alive = lifetimes(program);
  // Inside a loop or branch other launches may read the operand after the one that takes it over.
  const isLaunch = (time: number): boolean => program.tasks[time]!.kind === "launch";
  const group = new Map<string, StorageGroup>();
  const ordered = [...scratch].sort(
    (a, b) => (alive.get(a.name)?.first ?? 0) - (alive.get(b.name)?.first ?? 0),
  );
  const groups: StorageGroup[] = [];
  for (const buffer of ordered) {
    const life = alive.get(buffer.name);
    if (!life) continue;
    const over = inPlace.get(buffer.name)?.map((name) => group.get(name));
    const taken = over?.find(
      (g) => g !== undefined && g.last === life.first && isLaunch(life.first),
    );
    const mine = taken ?? { members: [], first: life.first, last: life.last };
    if (!taken) groups.push(mine);
    mine.members.push(buffer);
    mine.last = Math.max(mine.last, life.last);
    group.set(buffer.name, mine);
  }
  return { groups };
}

function noBound(buffer: Buffer): Diagnostic {
  const extents = buffer.shape.map((e) => e.key).join(", ");
  return diagnostic("MEM001", `buffer ${buffer.name} [${extents}] has no largest size`, {
    help: "bound every symbol of its shape: --shape NAME=LOW..HIGH",
  });
}

function tooLarge(total: number, target: Target): Diagnostic {
  const mebibytes = (n: number): string => `${Math.ceil(n / 2 ** 20)} MiB`;
  return diagnostic(
    "MEM002",
    `the program needs ${mebibytes(total)}, target ${target.name} has ${mebibytes(target.maxMemoryBytes)}`,
    { help: "choose smaller upper bounds for the symbols with --shape, or another target" },
  );
}
