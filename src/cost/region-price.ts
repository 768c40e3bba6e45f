/**
 * The price of a scheduled region in nanoseconds (of one core of a CPU), without lowering it, and the
 * time that nothing on the target can stay below. The models are nest-price.ts and, for
 * grids of blocks, block-cost.ts; this reads the figures off a
 * region and its schedule and adds the roofline:
 *
 *   bound = max(operations / peak, bytes of operands and results / nearest bandwidth)
 */
import type { Region } from "../region/nest.ts";
import { type ScheduledRegion, symbolRanges } from "../schedule/scheduled-region.ts";
import { dotTermsFor } from "../schedule/states/dot-form.ts";
import {
  type LoopFigures,
  loopFigures,
  type NestFigures,
  nestFigures,
  type PackedAxis,
  packedAxis,
} from "../schedule/states/nest-figures.ts";
import type { TileLoops, TilePrice, TilePricer } from "../schedule/states/region-states.ts";
import type { Target } from "../target/target.ts";
import { blockBound } from "./block-bound.ts";
import { priceOnBlocks } from "./block-cost.ts";
import { type CoreFigures, coreFigures } from "./core-figures.ts";
import { type CoreTerms, NestPricer } from "./nest-price.ts";
import { bodyFlops, compulsoryBytes, pointsOf, type RegionPrice } from "./region-work.ts";

/** Peaks are themselves measured, and boost clocks move. */
const allowance = 1.15;

export function priceRegion(
  scheduled: ScheduledRegion,
  target: Target,
  core: CoreFigures = coreFigures(target),
): RegionPrice {
  if (target.blocks) return priceOnBlocks(scheduled, target.blocks);
  const { region } = scheduled;
  const packed = [...scheduled.layouts].flatMap(([tensor, layout]) => {
    const axis = packedAxis(tensor, layout);
    return axis ? [axis] : [];
  });
  let estimateNs = 0;
  for (const s of scheduled.statements) {
    const figures = nestFigures(region, s.statement);
    const loops = loopFigures(figures, s);
    estimateNs += new NestPricer(figures, target, core).price(loops, packed).total;
  }
  const boundNs = regionBoundNs(region, target);
  return { estimateNs: Math.max(estimateNs, boundNs), boundNs };
}

/** Prices of one region's states, never below its bound. */
export function tilePricer(region: Region, target: Target, core: CoreFigures): TilePricer {
  const boundNs = regionBoundNs(region, target);
  let pricer: NestPricer | undefined;
  const pricerOf = (figures: NestFigures): NestPricer => {
    pricer ??= new NestPricer(figures, target, core);
    return pricer;
  };
  return {
    boundNs,
    leastNs: (figures, loops, packed, limitNs) =>
      Math.max(pricerOf(figures).leastNs(loops, packed, limitNs), boundNs),
    tile: (figures, loops, packed): TilePrice =>
      new PricedLoops(pricerOf(figures), loops, { packed, boundNs }),
    leastScalarNs: (figures) => pricerOf(figures).leastScalarNs(),
  };
}

/** A tile whose exact price is found where it is asked for. */
class PricedLoops implements TilePrice {
  readonly #nest: NestPricer;
  readonly #loops: TileLoops;
  readonly #packed: readonly PackedAxis[];
  readonly #boundNs: number;
  #terms: CoreTerms | undefined;

  constructor(
    nest: NestPricer,
    loops: TileLoops,
    { packed, boundNs }: { readonly packed: readonly PackedAxis[]; readonly boundNs: number },
  ) {
    this.#nest = nest;
    this.#loops = loops;
    this.#packed = packed;
    this.#boundNs = boundNs;
  }

  floorNs(limitNs: number): number {
    const { around, micro } = this.#loops;
    const terms = this.#terms ?? this.#nest.coreTerms([...around, ...micro], this.#packed, limitNs);
    const floorNs = Math.max(terms.core + terms.around, this.#boundNs);
    if (floorNs <= limitNs) this.#terms = terms;
    return floorNs;
  }

  nearNs(outer: readonly LoopFigures[]): number {
    return Math.max(this.#core() + this.#nest.aroundNs(outer, this.#packed), this.#boundNs);
  }

  totalNs(outer: readonly LoopFigures[]): number {
    const { micro } = this.#loops;
    const traffic = this.#nest.traffic([...outer, ...micro], this.#packed);
    const outside = this.#nest.aroundNs(outer, this.#packed);
    return Math.max(this.#nest.combine(this.#core(), outside, traffic).total, this.#boundNs);
  }

  #core(): number {
    const { around, micro } = this.#loops;
    this.#terms ??= this.#nest.coreTerms([...around, ...micro], this.#packed);
    return this.#terms.core;
  }
}

/** A time that no schedule of the region beats: of one core, and of the whole device where grids are of blocks. */
export function regionBoundNs(region: Region, target: Target): number {
  if (target.blocks) return blockBound(region, target.blocks).ns;
  const ranges = symbolRanges(region);
  let flops = 0;
  for (const s of region.statements) {
    // A lane of a dot product does a multiply-add for each of its terms.
    const terms = dotTermsFor(target, region, s);
    flops += pointsOf(s, ranges) * (terms === undefined ? bodyFlops(s) : 2 / terms);
  }
  const bytes = compulsoryBytes(region, ranges);
  const compute = flops / (target.f32FlopsPerNsPerCore.value * allowance);
  return Math.max(compute, bytes / (target.memory[0]!.bytesPerNsPerCore.value * allowance));
}
