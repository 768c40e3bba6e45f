/**
 * The price of a scheduled region on a CPU target in nanoseconds of one core, without lowering it:
 * vector instructions of the register tile, the latency of its accumulators, what sticks out of ragged
 * loops, and bytes that must move. First principles only; nothing here is measured for the region.
 *
 *   time = max(instructions / rate, latency chain, bytes / bandwidth of the level they fit in)
 */
import type { Access } from "../region/nest.ts";
import {
  type ScheduledRegion,
  type ScheduledStatement,
  symbolRanges,
} from "../schedule/scheduled-region.ts";
import {
  constantValue,
  type IndexExpr,
  splitLinear,
  substitute,
  variablesOf,
} from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import { scalarCost } from "../semantics/scalar-expr.ts";
import type { Target } from "../target/target.ts";
import { priceOnBlocks } from "./block-cost.ts";
import { bodyFlops, compulsoryBytes, pointsOf, product, type RegionPrice } from "./region-work.ts";

export function priceRegion(scheduled: ScheduledRegion, target: Target): RegionPrice {
  if (target.blocks) return priceOnBlocks(scheduled, target.blocks);
  const ranges = symbolRanges(scheduled.region);
  let estimateNs = 0;
  let flops = 0;
  for (const statement of scheduled.statements) {
    estimateNs += new StatementPrice(scheduled, statement, target, ranges).nanoseconds();
    flops += pointsOf(statement.statement, ranges) * bodyFlops(statement.statement);
  }
  const bytes = compulsoryBytes(scheduled.region, ranges);
  const memory = bytes / bandwidth(target, bytes);
  const compute = flops / (target.f32FlopsPerNsPerCore.value * 1.15);
  const boundNs = Math.max(compute, bytes / (target.memory[0]!.bytesPerNsPerCore.value * 1.15));
  return { estimateNs: Math.max(estimateNs, memory, boundNs), boundNs };
}

function bandwidth(target: Target, bytes: number): number {
  const fits = target.memory.find((m) => !m.capacityBytes || m.capacityBytes.value >= bytes);
  return fits!.bytesPerNsPerCore.value;
}

/** Instructions to bring one vector into a register, by how its lanes lie in memory. */
const loadOps = { contiguous: 1, uniform: 1, gathered: 2 } as const;
/** Instructions of loop control per trip. */
const loopOps = 3;

class StatementPrice {
  readonly #s: ScheduledStatement;
  readonly #region: ScheduledRegion;
  readonly #target: Target;
  readonly #ranges: IndexRanges;
  readonly #lane: string | undefined;
  readonly #lanes: number;

  constructor(region: ScheduledRegion, s: ScheduledStatement, target: Target, ranges: IndexRanges) {
    this.#region = region;
    this.#s = s;
    this.#target = target;
    this.#ranges = ranges;
    const lane = s.loops.find((l) => l.mode === "vector");
    this.#lane = lane?.name;
    this.#lanes = lane ? constantValue(lane.extent)! : 1;
  }

  nanoseconds(): number {
    const { statement, loops } = this.#s;
    const unrolled = loops.filter((l) => l.mode === "unroll");
    const tile = unrolled.filter((l) => l.kind === "space");
    const points = tile.reduce((n, l) => n * constantValue(l.extent)!, 1);
    const steps = this.#trips("reduce");
    const copies = unrolled
      .filter((l) => l.kind === "reduce")
      .reduce((n, l) => n * constantValue(l.extent)!, 1);
    const perPoint = statement.body.reduce((sum, e) => sum + scalarCost(e), 0);
    const combine = statement.reduction ? statement.reduction.monoid.combine.length : 0;
    const step = copies * (this.#loads(statement.reads) + points * (perPoint + combine)) + loopOps;
    const finish = (statement.finish ?? []).reduce((sum, e) => sum + scalarCost(e), 0);
    const end = this.#loads(statement.finishReads) + points * finish + this.#stores(points);
    const rate = this.#target.vectorOpsPerNsPerCore.value;
    const latency = combine > 0 ? copies * this.#target.multiplyAddLatencyNs.value : 0;
    const stepNs = Math.max(step / rate, latency);
    return this.#trips("space") * this.#raggedFactor() * (steps * stepNs + (end + loopOps) / rate);
  }

  /** Trips of the loops that are neither unrolled nor lanes. */
  #trips(kind: "space" | "reduce"): number {
    const running = this.#s.loops.filter(
      (l) => (l.kind === "reduce") === (kind === "reduce") && isRunning(l.mode),
    );
    return product(
      running.map((l) => l.extent),
      this.#ranges,
    );
  }

  #loads(accesses: readonly Access[]): number {
    let ops = 0;
    for (const access of accesses) {
      const index = access.index.map((e) => substitute(e, this.#s.index));
      const used = variablesOf(...index);
      const tile = this.#s.loops.filter((l) => l.mode === "unroll" && l.kind === "space");
      const distinct = tile
        .filter((l) => used.has(l.name))
        .reduce((n, l) => n * constantValue(l.extent)!, 1);
      const kind = this.#region.layouts.has(access.tensor) ? "contiguous" : this.#lie(index);
      ops += distinct * (kind === "gathered" ? loadOps.gathered * this.#lanes : loadOps[kind]);
    }
    return ops;
  }

  #stores(points: number): number {
    return this.#s.statement.writes.reduce((ops, write) => {
      const kind = this.#lie(write.index.map((e) => substitute(e, this.#s.index)));
      return ops + points * (kind === "contiguous" ? 1 : 2 * this.#lanes);
    }, 0);
  }

  #lie(index: readonly IndexExpr[]): keyof typeof loadOps {
    const lane = this.#lane;
    if (lane === undefined) return "contiguous";
    const steps = index.map((e) => splitLinear(e, lane)?.coefficient);
    if (steps.every((c) => c === 0)) return "uniform";
    const outer = steps.slice(0, -1).every((c) => c === 0);
    return outer && steps.at(-1) === 1 ? "contiguous" : "gathered";
  }

  /**
   * How much longer the domain takes because the lane loop's extent is no multiple of the lanes: the
   * rest runs one lane at a time unless its operands are padded.
   */
  #raggedFactor(): number {
    const lane = this.#s.loops.find((l) => l.mode === "vector");
    const original = this.#s.statement.loops.find((l) => l.name === lane?.origin);
    if (!lane || !original) return 1;
    const extent = Math.max(1, rangeOf(original.extent, this.#ranges).max);
    const width = this.#s.loops
      .filter((l) => l.origin === lane.origin && !isRunning(l.mode))
      .reduce((n, l) => n * constantValue(l.extent)!, 1);
    const rest = extent % this.#lanes;
    const trips = Math.floor(extent / this.#lanes) + (this.#isPadded(original.name) ? 1 : rest);
    const counted = Math.ceil(extent / width) * (width / this.#lanes);
    return rest === 0 ? Math.max(1, extent / this.#lanes / counted) : trips / counted;
  }

  #isPadded(loop: string): boolean {
    return this.#s.statement.reads.every(
      (r) => !variablesOf(...r.index).has(loop) || this.#region.layouts.has(r.tensor),
    );
  }
}

function isRunning(mode: string): boolean {
  return mode === "serial" || mode === "grid";
}
