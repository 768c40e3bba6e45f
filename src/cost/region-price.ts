/**
 * The price of a scheduled region in nanoseconds (of one core of a CPU), without lowering it, and the
 * time that nothing on the target can stay below. The models are nest-price.ts and, for
 * grids of blocks, block-cost.ts; this reads the figures off a
 * region and its schedule and adds the roofline:
 *
 *   bound = max(operations / peak, bytes of operands and results / nearest bandwidth)
 */
import type { Region } from "../region/nest.ts";
import { dotForm, dotTermsOf } from "../schedule/dot-form.ts";
import {
  loopFigures,
  type NestFigures,
  nestFigures,
  packedAxis,
} from "../schedule/nest-figures.ts";
import type { TilePrice, TilePricer } from "../schedule/region-states.ts";
import { type ScheduledRegion, symbolRanges } from "../schedule/scheduled-region.ts";
import type { Target } from "../target/target.ts";
import { priceOnBlocks } from "./block-cost.ts";
import { type CoreFigures, coreFigures } from "./core-figures.ts";
import { NestPricer } from "./nest-price.ts";
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
  const made = (figures: NestFigures): NestPricer => {
    pricer ??= new NestPricer(figures, target, core);
    return pricer;
  };
  return {
    boundNs,
    tile: (figures, loops, packed): TilePrice => {
      const nest = made(figures);
      const { around, micro } = loops;
      const known = nest.coreTerms([...around, ...micro], packed);
      return {
        floorNs: Math.max(known.core + known.around, boundNs),
        totalNs: (outer) => {
          const traffic = nest.traffic([...outer, ...micro], packed);
          const terms = nest.combine(known.core, nest.aroundNs(outer, packed), traffic);
          return Math.max(terms.total, boundNs);
        },
      };
    },
  };
}

export function regionBoundNs(region: Region, target: Target): number {
  const ranges = symbolRanges(region);
  const terms = dotTermsOf(target);
  let flops = 0;
  for (const s of region.statements) {
    // A lane of a dot product does a multiply-add for each of its terms.
    const isDot = terms !== undefined && dotForm(region, s) !== undefined;
    flops += pointsOf(s, ranges) * (isDot ? 2 / terms : bodyFlops(s));
  }
  const bytes = compulsoryBytes(region, ranges);
  const compute = flops / (target.f32FlopsPerNsPerCore.value * allowance);
  return Math.max(compute, bytes / (target.memory[0]!.bytesPerNsPerCore.value * allowance));
}
