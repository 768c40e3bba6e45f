/**
 * Maps that turn what they read: neighbours in memory of an operand lie along another loop than neighbours of the
 * results (a transpose, and what is computed with it). Such a map can be one kernel whose blocks bring tiles of the
 * operand into shared memory along its own neighbours and read them there along those of the results. In: a region.
 * Out: its statement, the two loops and what is turned, or why it has no such form.
 */
import type { Access, Loop, NestTensor, Region, Statement, Write } from "../../region/nest.ts";
import { accessKey } from "../../region/statement.ts";
import { dtypes } from "../../semantics/dtype.ts";
import { constantValue, splitLinear, variablesOf } from "../../semantics/index-expr.ts";
import type { IndexRanges } from "../../semantics/index-range.ts";
import { rangeOf } from "../../semantics/index-range.ts";
import type { TurnDirective } from "../directive.ts";
import { symbolRanges } from "../scheduled-region.ts";

export interface TurnForm {
  readonly statement: Statement;
  /** Along which neighbours of what is turned lie, and those of the results. */
  readonly read: Loop;
  readonly written: Loop;
  /** All other loops, in their order. */
  readonly others: readonly Loop[];
  /** What comes through shared memory, each access once, and the bytes of an element of each. */
  readonly turned: readonly { readonly access: Access; readonly bytes: number }[];
}

/** The form is asked for by candidates, prices and lowering of one region. */
const known = new WeakMap<Region, TurnForm | string>();

export function turnForm(region: Region): TurnForm | string {
  const made = known.get(region) ?? makeForm(region);
  known.set(region, made);
  return made;
}

function makeForm(region: Region): TurnForm | string {
  const [statement, ...more] = region.statements;
  if (!statement || more.length > 0) return "it is not one statement";
  const why = mapFault(statement, region.tensors);
  if (why !== undefined) return why;
  const { name, loops, writes } = statement;
  const ranges = symbolRanges(region);
  const written = longest(
    loops.filter((l) => writes.every((w) => isNear(w, l.name))),
    ranges,
  );
  if (!written) return `what ${name} writes has no loop along which its elements are neighbours`;
  const turns = (access: Access, loop: string): boolean =>
    loop !== written.name && isNear(access, loop) && variablesOf(...access.index).has(written.name);
  const reads = [
    ...new Map([...statement.reads, ...statement.finishReads].map((a) => [accessKey(a), a])),
  ].map(([, access]) => access);
  const read = longest(
    loops.filter((l) => reads.some((a) => turns(a, l.name))),
    ranges,
  );
  if (!read) return `neighbours of what ${name} reads are neighbours of its results, or none`;
  const turned = reads
    .filter((a) => turns(a, read.name))
    .map((access) => ({
      access,
      bytes: dtypes[region.tensors.get(access.tensor)!.dtype].bits / 8,
    }));
  const others = loops.filter((l) => l !== read && l !== written);
  return { statement, read, written, others, turned };
}

/** Why a statement is no map whose every point is by itself. */
function mapFault(s: Statement, tensors: ReadonlyMap<string, NestTensor>): string | undefined {
  const { name, loops, guard, indirects, reads, finishReads, writes } = s;
  if (s.reduction || loops.some((l) => l.kind !== "space")) return `${name} folds or scans`;
  if (guard.length > 0 || indirects.length > 0) return `${name} covers a part, or reads indices`;
  if (writes.some((w) => w.combine !== "overwrite")) return `${name} updates in place`;
  const names = new Set(loops.map((l) => l.name));
  if (loops.some((l) => [...variablesOf(l.extent)].some((n) => names.has(n))))
    return `loops of ${name} are as long as others say`;
  const own = new Set(writes.map((w) => w.tensor));
  const all = [...reads, ...finishReads];
  if (all.some((a) => own.has(a.tensor))) return `${name} reads what it writes`;
  const isPacked = ({ tensor }: Pick<Access, "tensor">): boolean =>
    dtypes[tensors.get(tensor)!.dtype].bits < 8;
  return [...all, ...writes].some(isPacked) ? `${name} has elements below a byte` : undefined;
}

/** Whether neighbours along a loop are neighbours in memory. */
function isNear({ index }: Pick<Access | Write, "index">, loop: string): boolean {
  const steps = index.map((e) => splitLinear(e, loop)?.coefficient);
  return steps.at(-1) === 1 && steps.slice(0, -1).every((c) => c === 0);
}

function longest(loops: readonly Loop[], ranges: IndexRanges): Loop | undefined {
  return [...loops].sort((a, b) => mostTrips(b, ranges) - mostTrips(a, ranges))[0];
}

export function mostTrips({ extent }: Loop, ranges: IndexRanges): number {
  return Math.max(1, rangeOf(extent, ranges).max);
}

/** Threads of a warp, and of a block at most. */
const [warpThreads, mostThreads] = [32, 1024] as const;
const mostLanes = 16;
/** Bytes of shared memory that a block has without asking for more. */
const mostShared = 48 * 1024;
/** Elements of a tile that a thread has on the way at once. */
export const mostHeld = 128;

/** Bytes of a block's tiles in shared memory. */
export function tileBytes({ tile: [read, written] }: TurnDirective, { turned }: TurnForm): number {
  return turned.reduce((sum, t) => sum + t.bytes, 0) * read * written;
}

function isPower(n: number): boolean {
  return Number.isSafeInteger(n) && n >= 1 && 2 ** Math.floor(Math.log2(n)) === n;
}

/** Why no block turns such tiles, or undefined. */
export function turnFault(d: TurnDirective, form: TurnForm): string | undefined {
  const { tile, threads, lanes } = d;
  if (![...tile, ...lanes, threads].every(isPower))
    return "extents of tiles, threads and lanes are powers of two";
  if (threads < warpThreads || threads > mostThreads)
    return `${threads} threads are not 1 to ${mostThreads / warpThreads} whole warps`;
  for (const [i, loop] of [form.read, form.written].entries()) {
    const count = lanes[i]!;
    const extent = constantValue(loop.extent);
    if (count > mostLanes) return `vectors have at most ${mostLanes} lanes`;
    if (count > tile[i]!)
      return `a tile of ${tile[i]} elements along ${loop.name} has no ${count} lanes`;
    if (count > 1 && (extent === undefined || extent % count !== 0))
      return `${loop.extent.key} elements along ${loop.name} are not whole vectors of ${count}`;
    if ((tile[0] * tile[1]) % (threads * count) !== 0)
      return `${threads} threads do not share a tile out in vectors of ${count}`;
  }
  const bytes = tileBytes(d, form);
  if (bytes > mostShared) return `tiles of ${bytes} bytes are more than ${mostShared}`;
  const held = (form.turned.length * tile[0] * tile[1]) / threads;
  return held > mostHeld
    ? `a thread would hold ${held} elements, more than ${mostHeld}`
    : undefined;
}
