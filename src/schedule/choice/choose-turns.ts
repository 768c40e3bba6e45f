/**
 * Which folds leave their results in the order in which their lanes run, for a map behind them to turn
 * (region/turned-results.ts): products and convolutions whose results are wanted in an order in which no loop
 * is contiguous both where it reads and where it writes. In: regions in order, prices (injected), how feature
 * maps come to be stored. Out: the regions, some as a fold and its maps. Each way is priced as a part of the
 * model by itself, with its feature maps stored as is cheapest, and the cheapest is taken.
 */
import type { NestProgram, NestTensor, Region, Statement, TensorRole } from "../../region/nest.ts";
import type { ApartPrices, RegionNote } from "../../region/refusals.ts";
import type { LaidOutRegions, LayOut } from "../../region/regions-of.ts";
import {
  liesAlong,
  mayTurn,
  type TurnedFrom,
  turnResults,
  wideAxes,
} from "../../region/turned-results.ts";
import { variablesOf } from "../../semantics/index-expr.ts";
import { laneOrder } from "../states/footprint.ts";
import { nestFigures } from "../states/nest-figures.ts";
import { type PricingOptions, RegionPrices } from "../states/region-prices.ts";
import { picoseconds } from "../states/region-states.ts";

/** For targets whose lanes are those of vectors. */
export function turnsFor(pricing: PricingOptions, layOut: LayOut): LayOut {
  const prices = new RegionPrices(pricing);
  const lanes = pricing.target.vectorBytes / bytesPerElement;
  const priceOf = (regions: readonly Region[], nests: NestProgram): number =>
    layOut(regions, nests).regions.reduce((ns, r) => ns + prices.priceOf(r), 0);
  return (regions, nests) => chooseTurns(regions, nests, { lanes, priceOf });
}

const bytesPerElement = 4;

export interface TurnOptions {
  /** Elements of a vector. */
  readonly lanes: number;
  /** Nanoseconds of regions that follow each other, by their best tiles. */
  readonly priceOf: (regions: readonly Region[], nests: NestProgram) => number;
}

export function chooseTurns(
  regions: readonly Region[],
  nests: NestProgram,
  options: TurnOptions,
): LaidOutRegions {
  const ways = regions.map((region) => cheapestWay(region, nests, options));
  const made = ways.flatMap((way) => way.regions);
  const tensors = new Map<string, NestTensor & { readonly role: TensorRole }>();
  for (const region of made) {
    for (const [name, { role, ...rest }] of region.tensors) {
      if (!nests.tensors.has(name) && role !== "local") tensors.set(name, { ...rest, role });
    }
  }
  return { regions: made, tensors, notes: ways.flatMap(notesOf) };
}

/** Prices that differ by less are as good; then what is folded is written once. */
const pricesTellApart = 0.1;

/** A region as it is, or as a fold and its maps with the prices of both. */
interface Way {
  readonly regions: readonly Region[];
  readonly prices?: ApartPrices;
}

function cheapestWay(region: Region, nests: NestProgram, { lanes, priceOf }: TurnOptions): Way {
  const asItIs = [region];
  const ways = waysToTurn(region, lanes);
  if (ways.length === 0) return { regions: asItIs };
  const fusedNs = priceOf(asItIs, nests);
  let best: Way = { regions: asItIs };
  let bestPs = picoseconds((1 - pricesTellApart) * fusedNs);
  for (const regions of ways) {
    const apartNs = priceOf(regions, nests);
    const ps = picoseconds(apartNs);
    if (ps < bestPs) [best, bestPs] = [{ regions, prices: { fusedNs, apartNs } }, ps];
  }
  return best;
}

/** Maps behind the fold, why they are. */
function notesOf({ regions: [fold, ...maps], prices }: Way): readonly RegionNote[] {
  return maps.map(({ name }) => ({
    region: name,
    brought: "turn",
    kind: "price",
    reason: `${fold!.name} leaves its results in the order of its lanes`,
    prices: prices!,
  }));
}

/** Folds with maps behind them, where lanes find no loop that is contiguous in all results. */
export function waysToTurn(region: Region, lanes: number): readonly (readonly Region[])[] {
  if (!mayTurn(region)) return [];
  const [statement] = region.statements;
  if (hasOneOrder(region, statement!)) return [];
  return lanesOf(region, lanes).flatMap((lane) =>
    origins.flatMap((from) => {
      const way = turnResults(region, lane, from);
      return way ? [way] : [];
    }),
  );
}

const origins: readonly TurnedFrom[] = ["results", "sums"];

/**
 * Whether a loop runs along all results and along what is folded, at whatever steps and however short: such maps
 * are stored in blocks where that is better, which is a question about neighbours too (choose-layouts.ts).
 */
function hasOneOrder({ tensors }: Region, { loops, reads, writes }: Statement): boolean {
  const isAlong = (name: string): boolean =>
    reads.some((access) => {
      const isStored = tensors.get(access.tensor)!.role === "weight";
      const { last, others } = wideAxes(access, tensors);
      return variablesOf(...(last ? [last] : []), ...(isStored ? others : [])).has(name);
    });
  return loops.some(
    ({ name, kind }) =>
      kind === "space" && writes.every((w) => liesAlong(w, name, tensors)) && isAlong(name),
  );
}

/** Loops over results that fill vectors and are contiguous in what is folded, or can be in weights. */
function lanesOf(region: Region, lanes: number): readonly string[] {
  const statement = region.statements[0]!;
  const { loops, accesses } = nestFigures(region, statement);
  return loops.flatMap(({ name, kind, extent }, lane) => {
    if (kind !== "space" || extent < lanes) return [];
    const isNear = statement.reads.some(({ tensor, index }, i) => {
      const isStored = region.tensors.get(tensor)!.role === "weight";
      if (isStored) return variablesOf(...index).has(name);
      const figures = accesses[i]!;
      return !figures.scattered && laneOrder(figures, lane) === "contiguous";
    });
    return isNear ? [name] : [];
  });
}
