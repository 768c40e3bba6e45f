/**
 * Which regions of a model run as chains (region/chains.ts): of every longest chain the cheapest way to
 * cut it into parts that run together and regions that stay by themselves. Parts are compared by quick
 * estimates; what wins must then be cheaper than its regions by the code that both become. In: regions
 * in order, prices (injected). Out: the regions, some of several statements.
 */
import { ChainFinder, type ChainRegion } from "../../region/chains.ts";
import { coalesceRegion } from "../../region/coalesce.ts";
import type { NestProgram, Region } from "../../region/nest.ts";
import type { RegionNote } from "../../region/refusals.ts";
import { regionClass } from "../../region/region-hash.ts";
import type { LayOut } from "../../region/regions-of.ts";
import { dtypes } from "../../semantics/dtype.ts";
import type { IndexExpr } from "../../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { invariant } from "../../support/invariant.ts";
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
import {
  type ChainWorth,
  type KnownCutting,
  type LoneMember,
  noChain,
  notInCutting,
  refusedByCode,
} from "./chain-worth.ts";

export interface ChainOptions extends ChainPricing, Pick<PricingOptions, "priceOf"> {
  /** Whether the program of a region is proved valid: what is not keeps its regions apart. */
  readonly isProved: (scheduled: ScheduledRegion) => boolean;
}

/** Undefined for a target whose blocks share memory: its kernels have other chains. */
export function chainsFor(options: ChainOptions): LayOut | undefined {
  if (options.target.blocks) return undefined;
  return (regions, nests) => ({
    ...new ChainChooser(regions, nests, options).chosen(),
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

/** A part that its code is not worth. */
interface RefusedPart extends Pick<Part, "members"> {
  readonly worth: ChainWorth;
}

/** By the members. */
type RefusedParts = ReadonlyMap<string, RefusedPart>;

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

  chosen(): { readonly regions: readonly Region[]; readonly notes: readonly RegionNote[] } {
    const at = new Map<number, ChainRegion>();
    const gone = new Set<number>();
    const notes: RegionNote[] = [];
    for (const members of this.#finder.longest()) {
      const { parts, lone } = this.#worthyParts(members);
      for (const { chain, members: own } of parts) {
        at.set(own.at(-1)!, chain);
        for (const m of own) gone.add(m);
      }
      notes.push(...lone.map((found) => this.#noteOf(found, members)));
    }
    const regions = this.#regions.flatMap((region, i) => {
      const chain = at.get(i);
      if (chain) return [chain];
      return gone.has(i) ? [] : [region];
    });
    return { regions, notes };
  }

  #noteOf(
    { member, among, kind, reason, prices }: LoneMember,
    members: readonly number[],
  ): RegionNote {
    const name = (i: number): string => this.#regions[members[i]!]!.name;
    const others = among.filter((i) => i !== member).map(name);
    const said = others.length === 0 ? reason : `one loop with ${others.join(", ")} ${reason}`;
    return { region: name(member), kind, reason: said, ...(prices && { prices }) };
  }

  /** The parts of the cheapest cutting that run together; of equal chains they are the same. */
  #worthyParts(
    members: readonly number[],
  ): Pick<KnownCutting, "lone"> & { readonly parts: readonly ChainPart[] } {
    const whole = this.#finder.join(members);
    const apart = members.map((m) => m - members[0]!).join();
    const key = whole && `${apart} ${regionClass(whole).key}`;
    const known = key === undefined ? undefined : this.#options.memory.chains.get(key);
    const again = known?.parts.map((own) => this.#partOf(own.map((i) => members[i]!)));
    if (known && again?.every((p) => p !== undefined)) return { parts: again, lone: known.lone };
    const { parts, refused } = this.#searchParts(members);
    const lone = this.#loneMembers(members, parts, refused);
    if (key !== undefined) {
      const numbers = parts.map((p) => p.members.map((m) => members.indexOf(m)));
      this.#options.memory.chains.set(key, { parts: numbers, lone });
    }
    return { parts, lone };
  }

  /**
   * Members that no part has, each with the chain that came nearest: one that was dearer by its code, else the one
   * in the cheapest cutting that does not leave it alone.
   */
  #loneMembers(
    members: readonly number[],
    parts: readonly ChainPart[],
    refused: RefusedParts,
  ): readonly LoneMember[] {
    const taken = new Set(parts.flatMap((p) => p.members));
    const chosen = this.#cheapest(members, refused);
    const numbers = (own: readonly number[]): readonly number[] =>
      own.map((m) => members.indexOf(m));
    return members.flatMap((m, member): readonly LoneMember[] => {
      if (taken.has(m)) return [];
      const known = [...refused.values()].filter((p) => p.members.includes(m));
      if (known.length > 0) {
        const over = ({ worth }: RefusedPart): number => worth.fusedNs - worth.apartNs;
        const { members: own, worth } = known.reduce((a, b) => (over(b) < over(a) ? b : a));
        return [{ member, among: numbers(own), ...refusedByCode(worth) }];
      }
      const others = this.#cut(members, new Set([...refused.keys(), String(m)]), 1);
      const part = others?.parts.find((p) => p.members.includes(m));
      if (!others || !part) return [{ member, among: [], ...noChain }];
      const prices = { fusedNs: others.ns, apartNs: chosen.ns };
      return [{ member, among: numbers(part.members), ...notInCutting(prices) }];
    });
  }

  #partOf(members: readonly number[]): ChainPart | undefined {
    const chain = this.#finder.join(members);
    return chain && { members, chain };
  }

  /** Cuttings of a chain until all parts that run together are worth it by their code. */
  #searchParts(members: readonly number[]): {
    readonly parts: readonly ChainPart[];
    readonly refused: RefusedParts;
  } {
    const refused = new Map<string, RefusedPart>();
    for (;;) {
      const parts = this.#cheapest(members, refused).parts.filter(isChainPart);
      let areWorth = true;
      for (const p of parts) {
        const worth = this.#worthOf(p.chain, p.members);
        if (worth.verdict === "worth") continue;
        refused.set(p.members.join(), { members: p.members, worth });
        areWorth = false;
      }
      if (areWorth) return { parts, refused };
    }
  }

  /** The cheapest cutting, or one about as cheap that leaves less in memory. */
  #cheapest(members: readonly number[], refused: RefusedParts): Cutting {
    const cheapest = this.#cut(members, refused, 1);
    const least = this.#cut(members, refused, sparing);
    invariant(cheapest && least, () => "regions may always run by themselves");
    const isAsGood = least.ns <= (1 + pricesTellApart) * cheapest.ns;
    return isAsGood ? least : cheapest;
  }

  /**
   * The best cutting by dynamic programming over where parts begin; undefined where too much is refused.
   * @param weight of what parts leave
   */
  #cut(
    members: readonly number[],
    refused: Pick<ReadonlySet<string>, "has">,
    weight: number,
  ): Cutting | undefined {
    const costOf = (p: Part): number => p.ns + weight * p.leftNs;
    const best: ({ readonly cost: number; readonly parts: readonly Part[] } | undefined)[] = [
      { cost: 0, parts: [] },
    ];
    for (let end = 1; end <= members.length; end++) {
      let found: (typeof best)[number];
      for (let start = end - 1; start >= 0; start--) {
        const own = members.slice(start, end);
        const before = best[start];
        const part = !before || refused.has(own.join()) ? undefined : this.#part(own);
        if (!before || !part) continue;
        const cost = before.cost + costOf(part);
        if (!found || cost < found.cost) found = { cost, parts: [...before.parts, part] };
      }
      best.push(found);
    }
    const parts = best.at(-1)?.parts;
    return parts && { parts, ns: parts.reduce((sum, p) => sum + p.ns + p.leftNs, 0) };
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
  #worthOf(chain: ChainRegion, members: readonly number[]): ChainWorth {
    const { memory } = this.#options;
    const parts = members.map((m) => regionClass(this.#regions[m]!).key);
    const key = [regionClass(chain).key, ...parts].join("\n");
    const known = memory.chainWorths.get(key);
    if (known) return known;
    const states = chainStates(chain, this.#options);
    const apartNs = members.reduce(
      (ns, m) => ns + this.#codePrice(this.#regions[m]!) + this.#leftNs([m]),
      0,
    );
    const [best] = states?.states ?? [];
    const fusedNs = best ? best.priceNs + this.#leftNs(members) : Infinity;
    const isCheaper = best !== undefined && fusedNs < apartNs;
    // A proof takes longer than the price.
    const isLegal = isCheaper && this.#isLegal(chain, best);
    const verdict = isLegal ? "worth" : isCheaper ? "illegal" : "dearer";
    memory.chainWorths.set(key, { verdict, fusedNs, apartNs });
    return { verdict, fusedNs, apartNs };
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
