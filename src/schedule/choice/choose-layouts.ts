/**
 * Which regions of a model compute on feature maps that are stored in another form: in blocks of channels
 * (region/channel-blocks.ts), or with the channels last (region/channels-last.ts). In: regions in order, what
 * else meets their tensors, prices (injected). Out: the regions, some over such tensors, with conversions
 * between the two where neighbours disagree. Every region is
 * priced in both forms by its best schedule, every tensor by what its conversion costs, and the cheapest
 * assignment is found by search/: a factor graph with a variable per region.
 */
import {
  blockRegion,
  conversionRegion,
  isFeatureMap,
  planBlocks,
} from "../../region/channel-blocks.ts";
import {
  convolvedMaps,
  planChannelsLast,
  turnChannels,
  turningRegion,
} from "../../region/channels-last.ts";
import type {
  NestProgram,
  NestTensor,
  Region,
  RegionTensor,
  TensorRole,
} from "../../region/nest.ts";
import type { RegionNote } from "../../region/refusals.ts";
import type { LaidOutRegions, LayOut } from "../../region/regions-of.ts";
import { collapse } from "../../search/collapse.ts";
import type { Problem, Transition } from "../../search/problem.ts";
import type { Solver } from "../../search/solvers.ts";
import { invariant } from "../../support/invariant.ts";
import { type PricingOptions, RegionPrices } from "../states/region-prices.ts";
import { picoseconds } from "../states/region-states.ts";
import { type Converted, describeConversion } from "./layout-notes.ts";

/** A way to store feature maps, and what becomes of a region that meets them so. */
export interface MapForm {
  /** How maps lie in it, in words. */
  readonly title: string;
  readonly isMap: (tensor: RegionTensor) => boolean;
  /** The region over the maps that it meets in this form; undefined where there is none. */
  readonly change: (region: Region) => ChangedRegion | undefined;
  /** Into the form (`pack`), or back. */
  readonly convert: (
    tensor: RegionTensor,
    direction: "pack" | "unpack",
    symbols: Region["symbols"],
  ) => Region;
}

export interface ChangedRegion {
  readonly region: Region;
  readonly maps: ReadonlySet<string>;
}

export interface LayoutOptions {
  readonly form: MapForm;
  /** Nanoseconds of a region by its cheapest schedule; no less than the limit where it is dearer than that. */
  readonly priceOf: (region: Region, limitNs?: number) => number;
  readonly solver?: Solver;
}

interface Candidate {
  readonly plain: Region;
  readonly changed: ChangedRegion | undefined;
}

/** A feature map with the regions that write and read it. */
interface SharedMap {
  readonly tensor: RegionTensor;
  readonly writers: number[];
  readonly readers: number[];
}

const mostWork = 2e7;

/** Blocks as long as the target's vectors; a target whose lanes are threads has none. */
export function layoutsFor(pricing: PricingOptions, solver: Solver = collapse): LayOut | undefined {
  const { target } = pricing;
  if (target.blocks) return undefined;
  const prices = new RegionPrices(pricing);
  const priceOf: LayoutOptions["priceOf"] = (...asked) => prices.priceOf(...asked);
  const form = blockedForm(target.vectorBytes / bytesPerElement);
  return (regions, nests) => chooseLayouts(regions, nests, { form, priceOf, solver });
}

/** @param block channels of a block: the lanes of a vector */
export function blockedForm(block: number): MapForm {
  return {
    title: `in blocks of ${block} channels`,
    isMap: (tensor) => isFeatureMap(tensor, block),
    change: (region) => {
      const plan = planBlocks(region, block);
      return plan && { region: blockRegion(region, plan, block), maps: plan.maps };
    },
    convert: (tensor, direction, symbols) => conversionRegion(tensor, block, direction, symbols),
  };
}

/** Channels last, for the maps of convolutions. */
export function channelsLast(
  priceOf: (region: Region) => number,
  solver: Solver = collapse,
): LayOut {
  return (regions, nests) => {
    const maps = convolvedMaps(regions);
    if (maps.size === 0) return { regions, tensors: new Map() };
    const form: MapForm = {
      title: "with its channels last",
      isMap: ({ name }) => maps.has(name),
      change: (region) => {
        const plan = planChannelsLast(region, maps);
        return plan && { region: turnChannels(region, maps), maps: plan.maps };
      },
      convert: (tensor, direction, symbols) =>
        turningRegion(tensor, maps.get(tensor.name)!, direction, symbols),
    };
    return chooseLayouts(regions, nests, { form, priceOf, solver });
  };
}

/** Only maps of this size are blocked. */
const bytesPerElement = 4;

export function chooseLayouts(
  regions: readonly Region[],
  nests: NestProgram,
  options: LayoutOptions,
): LaidOutRegions {
  const { form } = options;
  const maps = sharedMaps(regions, form);
  const meetsOthers = tensorsMetElsewhere(nests);
  const candidates = regions.map((plain): Candidate => ({ plain, changed: form.change(plain) }));
  const assigned = assign(candidates, maps, meetsOthers, nests, options);
  return rebuild(candidates, maps, assigned, { nests, form, meetsOthers });
}

function sharedMaps(
  regions: readonly Region[],
  { isMap }: MapForm,
): ReadonlyMap<string, SharedMap> {
  const maps = new Map<string, SharedMap>();
  for (const [at, region] of regions.entries()) {
    const written = new Set(region.statements.flatMap((s) => s.writes.map((w) => w.tensor)));
    for (const [name, tensor] of region.tensors) {
      if (tensor.role === "local" || !isMap(tensor)) continue;
      const map = maps.get(name) ?? { tensor, writers: [], readers: [] };
      maps.set(name, map);
      (written.has(name) ? map.writers : map.readers).push(at);
    }
  }
  return maps;
}

/** Tensors with another name, or that no region writes or the caller reads. */
function tensorsMetElsewhere(nests: NestProgram): ReadonlySet<string> {
  const found = new Set([...nests.inputs, ...nests.outputs]);
  for (const item of nests.items) {
    if (item.kind === "view") found.add(item.view.tensor).add(item.view.of);
    else if (item.kind === "routine") {
      for (const t of [...item.routine.reads, ...item.routine.writes]) found.add(t);
    }
  }
  return found;
}

/** A map with the times that bringing it into the other form and back takes; 0 where nobody can need that. */
interface Conversion extends SharedMap {
  readonly packs: number;
  readonly unpacks: number;
  /** The caller, or a part of the model that is no region, meets it as it was written. */
  readonly isMetElsewhere: boolean;
}

function conversionsOf(
  maps: ReadonlyMap<string, SharedMap>,
  elsewhere: ReadonlySet<string>,
  priceOf: (tensor: RegionTensor, direction: "pack" | "unpack") => number,
): readonly Conversion[] {
  return [...maps.values()].map((map) => {
    const { tensor, writers, readers } = map;
    const isRead = readers.length > 0;
    const isMetElsewhere = elsewhere.has(tensor.name);
    const isUnpacked = writers.length > 0 && (isRead || isMetElsewhere);
    const packs = isRead ? priceOf(tensor, "pack") : 0;
    const unpacks = isUnpacked ? priceOf(tensor, "unpack") : 0;
    return { ...map, packs, unpacks, isMetElsewhere };
  });
}

/** The plain form of a region is never the answer from so far beyond where it could be on. */
const beyond = 1.001;

/** For each region the most that changing it alone can add to the conversions of its maps. */
function conversionsAround(
  candidates: readonly Candidate[],
  conversions: readonly Conversion[],
): readonly number[] {
  const most = candidates.map(() => 0);
  for (const { tensor, writers, readers, packs, unpacks, isMetElsewhere } of conversions) {
    const dearer = Math.max(packs, unpacks);
    const add = (at: number, ns: number): void => {
      if (candidates[at]!.changed?.maps.has(tensor.name)) most[at] = most[at]! + ns;
    };
    for (const r of readers) add(r, dearer);
    // Those that write one map agree: none of them changes alone.
    const ofWriter = dearer * readers.length + (isMetElsewhere ? unpacks : 0);
    for (const w of writers) add(w, writers.length > 1 ? forbidden : ofWriter);
  }
  return most;
}

/** For each region whether it is changed, and what that was decided by. */
interface Assigned {
  readonly isChanged: readonly boolean[];
  readonly problem: Problem;
  readonly solution: ArrayLike<number>;
}

function assign(
  candidates: readonly Candidate[],
  maps: ReadonlyMap<string, SharedMap>,
  elsewhere: ReadonlySet<string>,
  nests: NestProgram,
  { form, priceOf, solver = collapse }: LayoutOptions,
): Assigned {
  const conversions = conversionsOf(maps, elsewhere, (tensor, direction) =>
    priceOf(form.convert(tensor, direction, nests.symbols)),
  );
  const most = conversionsAround(candidates, conversions);
  const prices = candidates.map(({ plain, changed }, at) => {
    if (!changed) return [0];
    const changedNs = priceOf(changed.region);
    // Where changing it pays whatever the neighbours do, how dear the plain form is does not matter.
    const limitNs = beyond * (changedNs + most[at]!);
    return [Math.min(priceOf(plain, limitNs), limitNs), changedNs];
  });
  const transitions: Transition[] = [];
  for (const { tensor, writers, readers, packs, unpacks, isMetElsewhere } of conversions) {
    const [first, ...others] = writers;
    const blocks = (at: number): readonly boolean[] =>
      prices[at]!.map((_, state) => state === 1 && candidates[at]!.changed!.maps.has(tensor.name));
    const meets = (from: number, to: number, cost: readonly [number, number]): void => {
      transitions.push(
        between({ at: from, blocks: blocks(from) }, { at: to, blocks: blocks(to) }, cost),
      );
    };
    if (first === undefined) {
      for (const r of readers) addWhere(prices[r]!, blocks(r), packs);
      continue;
    }
    if (isMetElsewhere) addWhere(prices[first]!, blocks(first), unpacks);
    for (const w of others) meets(first, w, [forbidden, forbidden]);
    for (const r of readers) meets(first, r, [packs, unpacks]);
  }
  const problem: Problem = {
    name: "layouts",
    variables: candidates.map(({ plain }, at) => ({
      name: plain.name,
      prices: Float64Array.from(prices[at]!, picoseconds),
    })),
    transitions,
    budgets: [],
    offset: 0,
    unit: { name: "ps", perPrice: 1 },
  };
  const { solution } = solver(problem, { work: mostWork, gap: 0 });
  invariant(solution, () => "plain layouts are always possible");
  const isChanged = candidates.map((_, at) => solution[at] === 1);
  return { isChanged, problem, solution };
}

/** Nanoseconds of what may not be. */
const forbidden = Infinity;

function addWhere(prices: number[], states: readonly boolean[], ns: number): void {
  for (const [state, holds] of states.entries()) if (holds) prices[state] = prices[state]! + ns;
}

/** A region, and in which of its states it meets a tensor in blocks. */
interface End {
  readonly at: number;
  readonly blocks: readonly boolean[];
}

/** What it costs that two regions disagree: [plain to blocked, blocked to plain]. */
function between(from: End, to: End, [packs, unpacks]: readonly [number, number]): Transition {
  const cost = from.blocks.flatMap((a) =>
    to.blocks.map((b) => (a === b ? 0 : picoseconds(a ? unpacks : packs))),
  );
  return {
    from: from.at,
    to: to.at,
    columns: to.blocks.length,
    prices: Float64Array.from(cost),
  };
}

interface Rebuilding {
  readonly nests: NestProgram;
  readonly form: MapForm;
  readonly meetsOthers: ReadonlySet<string>;
}

/** The regions in their forms, each conversion before the first region that needs it. */
function rebuild(
  candidates: readonly Candidate[],
  maps: ReadonlyMap<string, SharedMap>,
  assigned: Assigned,
  { nests, form, meetsOthers }: Rebuilding,
): LaidOutRegions {
  const { isChanged } = assigned;
  const made = candidates.map(({ plain, changed }, at) =>
    isChanged[at] ? changed!.region : plain,
  );
  const before = new Map<number, Region[]>();
  const notes: RegionNote[] = [];
  const insert = (at: number, region: Region): void => {
    before.set(at, [...(before.get(at) ?? []), region]);
  };
  const layouts = { form, names: candidates.map((c) => c.plain.name), assigned };
  const noteOf = (conversion: Converted): RegionNote => describeConversion(conversion, layouts);
  for (const map of maps.values()) {
    const { tensor, writers, readers } = map;
    const isMetElsewhere = meetsOthers.has(tensor.name);
    const meets = (at: number): boolean =>
      isChanged[at]! && candidates[at]!.changed!.maps.has(tensor.name);
    const stored = writers.length > 0 && meets(writers[0]!);
    const other = readers.filter((r) => meets(r) !== stored);
    const last = Math.max(-1, ...writers) + 1;
    if (stored && (other.length > 0 || isMetElsewhere)) {
      const region = form.convert(tensor, "unpack", nests.symbols);
      insert(last, region);
      notes.push(noteOf({ region, brought: "unpack", writers, other, isMetElsewhere }));
    } else if (!stored && other.length > 0) {
      const region = form.convert(tensor, "pack", nests.symbols);
      insert(other[0]!, region);
      notes.push(noteOf({ region, brought: "pack", writers, other, isMetElsewhere: false }));
    }
  }
  const regions = [...made, undefined].flatMap((region, at) => [
    ...(before.get(at) ?? []),
    ...(region ? [region] : []),
  ]);
  const tensors = new Map<string, NestTensor & { readonly role: TensorRole }>();
  for (const region of regions) {
    for (const [name, { role, ...rest }] of region.tensors) {
      if (nests.tensors.has(name) || role === "local") continue;
      tensors.set(name, { ...rest, role });
    }
  }
  return { regions, tensors, notes };
}
