/**
 * Which regions of a model run as chains (region/chains.ts): of every longest chain the cheapest way to
 * cut it into parts that run together and regions that stay by themselves. Parts are compared by quick
 * estimates; what wins must then be cheaper than its regions by the code that both become. In: regions
 * in order, prices (injected). Out: the regions, some of several statements.
 */
import { ChainFinder, type ChainRegion } from "../../region/chains.ts";
import { coalesceRegion } from "../../region/coalesce.ts";
import type { NestProgram, Region } from "../../region/nest.ts";
import { regionClass } from "../../region/region-hash.ts";
import type { LayOut } from "../../region/regions-of.ts";
import { dtypes } from "../../semantics/dtype.ts";
import type { IndexExpr } from "../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { applySchedule } from "../apply.ts";
import { refundNs } from "../choice/model-problem.ts";
import { decideSchedule } from "../legality/legality.ts";
import { type ScheduledRegion, symbolRanges } from "../scheduled-region.ts";
import { nestFigures } from "../states/nest-figures.ts";
import { type PricingOptions, RegionPrices } from "../states/region-prices.ts";
import type { RegionState } from "../states/region-states.ts";
import { TileSpace } from "../states/tile-space.ts";
import {
  bestState,
  type ChainPricing,
  chainStates,
  cheapestCut,
  displacedNs,
} from "./chain-states.ts";

export interface ChainOptions extends ChainPricing, Pick<PricingOptions, "priceOf"> {
  /** Whether the program of a region is proved valid: what is not keeps its regions apart. */
  readonly isProved: (scheduled: ScheduledRegion) => boolean;
}

/** Undefined for a target whose blocks share memory: its kernels have other chains. */
export function chainsFor(options: ChainOptions): LayOut | undefined {
  if (options.target.blocks) return undefined;
  return (regions, nests) => ({
    regions: new ChainChooser(regions, nests, options).regions(),
    tensors: new Map(),
  });
}

/** Cuttings whose prices differ by less are as good; then the one that leaves less in memory is taken. */
const pricesTellApart = 0.1;
/** By how much dearer what is left in memory is made to find that one. */
const sparing = 16;

interface Part {
  readonly members: readonly number[];
  readonly chain?: ChainRegion;
  readonly ns: number;
  /** What it leaves in memory, or holds in the thread's own, costs that much beside. */
  readonly leftNs: number;
}

interface Cutting {
  readonly parts: readonly Part[];
  /** With all that the parts leave. */
  readonly ns: number;
}

type ChainPart = Pick<Part, "members"> & { readonly chain: ChainRegion };

function isChainPart(part: Part): part is Part & ChainPart {
  return part.chain !== undefined;
}

class ChainChooser {
  readonly #regions: readonly Region[];
  readonly #finder: ChainFinder;
  readonly #options: ChainOptions;
  readonly #prices: RegionPrices;
  /** Parts that were priced, by their members. */
  readonly #parts = new Map<string, Part | undefined>();

  constructor(regions: readonly Region[], nests: NestProgram, options: ChainOptions) {
    this.#regions = regions;
    this.#finder = new ChainFinder(regions, nests);
    this.#options = options;
    this.#prices = new RegionPrices(options);
  }

  regions(): readonly Region[] {
    const at = new Map<number, ChainRegion>();
    const gone = new Set<number>();
    for (const members of this.#finder.longest()) {
      for (const { chain, members: own } of this.#worthyParts(members)) {
        at.set(own.at(-1)!, chain);
        for (const m of own) gone.add(m);
      }
    }
    return this.#regions.flatMap((region, i) => {
      const chain = at.get(i);
      if (chain) return [chain];
      return gone.has(i) ? [] : [region];
    });
  }

  /** The parts of the cheapest cutting that run together; of equal chains they are the same. */
  #worthyParts(members: readonly number[]): readonly ChainPart[] {
    const whole = this.#finder.join(members);
    const apart = members.map((m) => m - members[0]!).join();
    const key = whole && `${apart} ${regionClass(whole).key}`;
    const known = key === undefined ? undefined : this.#options.memory.chains.get(key);
    const again = known?.map((own) => this.#partOf(own.map((i) => members[i]!)));
    if (again?.every((p) => p !== undefined)) return again;
    const found = this.#searchParts(members);
    if (key !== undefined) {
      const numbers = found.map((p) => p.members.map((m) => members.indexOf(m)));
      this.#options.memory.chains.set(key, numbers);
    }
    return found;
  }

  #partOf(members: readonly number[]): ChainPart | undefined {
    const chain = this.#finder.join(members);
    return chain && { members, chain };
  }

  /** Cuttings of a chain until all parts that run together are worth it by their code. */
  #searchParts(members: readonly number[]): readonly ChainPart[] {
    const refused = new Set<string>();
    for (;;) {
      const chains = this.#cheapestParts(members, refused).filter(isChainPart);
      const unworthy = chains.filter((p) => !this.#isWorth(p.chain, p.members));
      if (unworthy.length === 0) return chains;
      for (const p of unworthy) refused.add(p.members.join());
    }
  }

  /** The cheapest cutting, or one about as cheap that leaves less in memory. */
  #cheapestParts(members: readonly number[], refused: ReadonlySet<string>): readonly Part[] {
    const cheapest = this.#cut(members, refused, 1);
    const least = this.#cut(members, refused, sparing);
    const isAsGood = least.ns <= (1 + pricesTellApart) * cheapest.ns;
    return (isAsGood ? least : cheapest).parts;
  }

  /** The best cutting by dynamic programming over where parts begin; `weight` is that of what they leave. */
  #cut(members: readonly number[], refused: ReadonlySet<string>, weight: number): Cutting {
    const costOf = (p: Part): number => p.ns + weight * p.leftNs;
    const best: { readonly cost: number; readonly parts: readonly Part[] }[] = [
      { cost: 0, parts: [] },
    ];
    for (let end = 1; end <= members.length; end++) {
      let found: (typeof best)[number] | undefined;
      for (let start = end - 1; start >= 0; start--) {
        const own = members.slice(start, end);
        const part = refused.has(own.join()) ? undefined : this.#part(own);
        if (!part) continue;
        const cost = best[start]!.cost + costOf(part);
        if (!found || cost < found.cost) found = { cost, parts: [...best[start]!.parts, part] };
      }
      best.push(found!);
    }
    const { parts } = best.at(-1)!;
    return { parts, ns: parts.reduce((sum, p) => sum + p.ns + p.leftNs, 0) };
  }

  #part(members: readonly number[]): Part | undefined {
    const key = members.join();
    if (!this.#parts.has(key)) this.#parts.set(key, this.#pricePart(members));
    return this.#parts.get(key);
  }

  #pricePart(members: readonly number[]): Part | undefined {
    const barrier = this.#options.target.barrierNs.value;
    const leftNs = this.#leftNs(members);
    if (members.length === 1) {
      const ns = this.#prices.priceOf(this.#regions[members[0]!]!) + barrier;
      return { members, ns, leftNs };
    }
    const chain = this.#finder.join(members);
    const cut = chain && cheapestCut(chain, this.#options);
    if (!cut) return undefined;
    return { members, chain: chain!, ns: cut.ns + barrier, leftNs: leftNs + cut.heldNs };
  }

  /** What the results that a part leaves in memory cost beside its own time. */
  #leftNs(members: readonly number[]): number {
    const inside = new Set(members);
    let ns = 0;
    for (const m of members) {
      const region = this.#regions[m]!;
      const ranges = symbolRanges(region);
      const written = new Set(region.statements.flatMap((s) => s.writes.map((w) => w.tensor)));
      for (const name of written) {
        if (this.#finder.livesIn(name, inside)) continue;
        const { dtype, shape } = region.tensors.get(name)!;
        const bytes = (product(shape, ranges) * dtypes[dtype].bits) / 8;
        ns += displacedNs(bytes, this.#options.target);
      }
    }
    return ns;
  }

  /** Whether the chain's best state is cheaper than the best of its regions, by their code. */
  #isWorth(chain: ChainRegion, members: readonly number[]): boolean {
    const { memory } = this.#options;
    const parts = members.map((m) => regionClass(this.#regions[m]!).key);
    const key = ["chain", regionClass(chain).key, ...parts].join("\n");
    const known = memory.prices.get(key);
    if (known !== undefined) return known === 1;
    const states = chainStates(chain, this.#options);
    const apart = members.reduce(
      (ns, m) => ns + this.#codePrice(this.#regions[m]!) + this.#leftNs([m]),
      0,
    );
    // A proof takes longer than the price.
    const isWorth =
      states !== undefined &&
      states.states[0]!.priceNs + this.#leftNs(members) < apart &&
      this.#isLegal(chain, states.states[0]!);
    memory.prices.set(key, isWorth ? 1 : 0);
    return isWorth;
  }

  #isLegal(chain: ChainRegion, state: RegionState): boolean {
    const applied = applySchedule(chain, state.schedule());
    if (!applied.ok) return false;
    const { memory, isProved } = this.#options;
    return decideSchedule(applied.value, memory.classes).ok && isProved(applied.value);
  }

  /** A region by itself, on its threads, with the barrier behind it. */
  #codePrice(source: Region): number {
    const { target, threads } = this.#options;
    const { region } = coalesceRegion(source);
    if (!TileSpace.applies(region)) return this.#prices.priceOf(source);
    const rootOf = (tensor: string): string => tensor;
    const refund = refundNs(nestFigures(region, region.statements[0]!), {
      target,
      threads,
      rootOf,
    });
    const best = bestState(region, { threads, refundNs: refund }, this.#options);
    return best.priceNs + target.barrierNs.value;
  }
}

/** Elements at the symbols' upper ends. */
function product(shape: readonly IndexExpr[], ranges: IndexRanges): number {
  return shape.reduce((n, e) => n * Math.max(0, rangeOf(e, ranges).max), 1);
}
