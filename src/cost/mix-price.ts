/**
 * The price of code that is there: what a region's kernels execute (program-work.ts) and what they move
 * (traffic.ts), as nanoseconds of one core. This is the fine model: it sees edges, ragged ends, shared
 * loads and spills as lower/ makes them, and costs a lowering; nest-price.ts is the coarse one that
 * needs none.
 *
 *   a run of code     max(issue, arithmetic, loads, stores, chain x its exposed share)
 *   a level           (bytes + scattered x penalty) / rate
 *   together          max(core, slowest level) + overlapLoss x min of the two + stalls
 */
import type { Kernel } from "../program/program.ts";
import { placedFigures } from "../schedule/chains/chain-space.ts";
import {
  type ScheduledRegion,
  type ScheduledStatement,
  symbolRanges,
} from "../schedule/scheduled-region.ts";
import {
  loopFigures,
  nestFigures,
  packedAccess,
  packedAxis,
} from "../schedule/states/nest-figures.ts";
import type { Target } from "../target/target.ts";
import { type CoreFigures, together, trafficNs, vectorRegisterCount } from "./core-figures.ts";
import { chainNs } from "./nest-price.ts";
import { type CodeRun, kernelWork } from "./program-work.ts";
import { type LevelTraffic, Traffic } from "./traffic.ts";

/** All that prices a region's code on any machine of its target. */
export interface CodeWork {
  readonly runs: readonly CodeRun[];
  /** By statement, by level of memory. */
  readonly traffic: readonly (readonly LevelTraffic[])[];
  /** Vectors on the stack and operands loaded again, as the emitter counted them; absent: nothing was emitted. */
  readonly counted?: { readonly spills: number; readonly reloads: number };
}

export interface CodePrice {
  readonly core: number;
  /** By level. */
  readonly traffic: readonly number[];
  readonly total: number;
}

export function codeWork(
  scheduled: ScheduledRegion,
  kernels: readonly Kernel[],
  target: Target,
): CodeWork {
  const { region } = scheduled;
  const symbols = new Map([...symbolRanges(region)].map(([name, r]) => [name, r.max]));
  const options = {
    registers: vectorRegisterCount(target),
    lanes: target.vectorBytes / 4,
    loadsFirst: target.compiledByEngine === true,
  };
  const packed = [...scheduled.layouts].flatMap(([tensor, layout]) => {
    const axis = packedAxis(tensor, layout);
    return axis ? [axis] : [];
  });
  return {
    runs: kernels.flatMap((k) => kernelWork(k, symbols, options)),
    traffic: scheduled.statements.map((s) => {
      const figures = nestFigures(region, s.statement);
      const accesses = figures.accesses.map((a) => {
        const by = packed.find((p) => p.tensor === a.tensor);
        return by ? packedAccess(a, by) : a;
      });
      const extents = figures.loops.map((l) => l.extent);
      const loops = loopFigures(figures, s);
      const tile = placedAround(scheduled, s);
      if (!tile) return new Traffic(accesses, extents, target).of(loops);
      const placed = placedFigures({ ...figures, accesses }, loops, tile);
      // Loops around a piece count behind the statement's own.
      return new Traffic(placed.accesses, [...extents, ...extents], target).of(placed.loops);
    }),
  };
}

/** Tensors that a statement meets in memory of the thread's own, and the loops outside. */
function placedAround(
  { placed, fused }: ScheduledRegion,
  { statement }: ScheduledStatement,
): { readonly depth: number; readonly placed: ReadonlySet<string> } | undefined {
  const own = placed.filter((p) => p.scope !== "memory");
  const inside = fused.filter((f) => f.statement === statement.name || f.into === statement.name);
  if (own.length === 0 || inside.length === 0) return undefined;
  const depth = Math.max(...inside.map((f) => f.depth));
  return { depth, placed: new Set(own.map((p) => p.tensor)) };
}

export function priceCode(work: CodeWork, c: CoreFigures): CodePrice {
  let core = 0;
  for (const run of work.runs) core += priceRun(run, c).total;
  const traffic = trafficNs(sumOf(work.traffic), c);
  return { core, traffic: traffic.levels, total: together(core, traffic, c) };
}

/** Traffic of all statements, by level. */
function sumOf(statements: CodeWork["traffic"]): readonly LevelTraffic[] {
  const depth = Math.max(0, ...statements.map((levels) => levels.length));
  return Array.from({ length: depth }, (_, level) => {
    let [bytes, scattered, written, jumps] = [0, 0, 0, 0];
    for (const levels of statements) {
      const found = levels[level];
      if (!found) continue;
      bytes += found.bytes;
      scattered += found.scattered;
      written += found.written;
      jumps += found.jumps;
    }
    return { bytes, scattered, written, jumps };
  });
}

/** Trips up to which branch prediction knows where a loop ends. */
const foreseenTrips = 32;

/** Nanoseconds of one execution of a run of code by what limits it, and of all executions. */
export interface RunPrice {
  readonly issue: number;
  readonly arithmetic: number;
  readonly loads: number;
  readonly stores: number;
  readonly chain: number;
  /** Issue slots of one execution. */
  readonly instructions: number;
  readonly total: number;
}

export function priceRun({ mix, executions, chains, entries }: CodeRun, c: CoreFigures): RunPrice {
  const series = mix.series * c.callFactor;
  const instructions =
    mix.loads +
    mix.stores +
    mix.arithmetic +
    series +
    mix.splats * c.splatInstructions +
    mix.laneMoves * c.gatherInstructions +
    mix.tests * c.guardInstructions +
    mix.spills * c.spillInstructions +
    mix.control * c.loopInstructions;
  const issue = instructions / c.issuePerNs;
  const arithmetic = (mix.arithmetic + series) / c.arithmeticPerNs;
  const loads = (mix.loads + mix.spills) / c.loadsPerNs;
  const stores = (mix.stores + mix.spills) / c.storesPerNs;
  // A chain that is short beside what a core looks ahead runs beside the chains after it.
  const length = instructions * Math.max(1, executions / Math.max(1, chains));
  const chain = chainNs(mix, c) * Math.min(1, length / c.windowInstructions);
  const each = Math.max(issue, arithmetic, loads, stores, chain);
  const unforeseen = entries > 0 ? Math.min(1, executions / entries / foreseenTrips) : 0;
  const total = executions * each + entries * c.loopEndNs * unforeseen;
  return { issue, arithmetic, loads, stores, chain, instructions, total };
}
