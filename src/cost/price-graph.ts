/**
 * Prices of graphs that are not compiled: the regions that the default grouping makes of them, each by
 * its cheapest tile on one core (region-price.ts), and a guide for single ops. The order of the loops
 * outside the tile is left to the search that schedules the graphs that are kept: it is most of the work
 * and moves both sides of a comparison alike. Regions that compute the same under other names are one,
 * and are priced when somebody asks: two graphs differ in the regions that they do not share. Feature maps
 * are stored as each region likes best, and conversions between neighbours are left to the search: most
 * neighbours like the same. Regions are taken as legal: legality is proved when a graph is compiled. For
 * rewrite/, which may not know of regions.
 */
import { definitionGraph } from "../graph/builder.ts";
import type { Graph, OpAttrs, OpKind, TensorType } from "../graph/graph.ts";
import { infoOf, isComposite } from "../graph/op-table.ts";
import { semanticHash } from "../graph/semantic-hash.ts";
import { bytesOf, elementsOf } from "../graph/tensor-type.ts";
import { buildNests } from "../region/builders/build-nests.ts";
import { blockRegion, planBlocks } from "../region/channel-blocks.ts";
import { coalesceRegion } from "../region/coalesce.ts";
import { analyseProgram, formRegion } from "../region/form-region.ts";
import { defaultGroupOptions, planGroups } from "../region/groups.ts";
import type { Region } from "../region/nest.ts";
import { regionHash } from "../region/region-hash.ts";
import { applySchedule } from "../schedule/apply.ts";
import { enumerateBlockSchedules } from "../schedule/blocks/block-candidates.ts";
import type { Schedule } from "../schedule/directive.ts";
import { nestOptions } from "../schedule/prepare-graph.ts";
import { type CheapTiles, tileEstimateNs } from "../schedule/states/region-states.ts";
import { TileSpace } from "../schedule/states/tile-space.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { type IndexRanges, rangeOf } from "../semantics/index-range.ts";
import { scalarOps } from "../semantics/scalar-expr.ts";
import { ok, type Result } from "../support/diagnostic.ts";
import type { Target } from "../target/target.ts";
import { type CoreFigures, coreFigures } from "./core-figures.ts";
import { priceRegion, tilePricer } from "./region-price.ts";

export interface PricedOp {
  readonly op: OpKind;
  readonly attrs: unknown;
  readonly inputs: readonly TensorType[];
  readonly output: TensorType;
}

export class GraphPricer {
  readonly #target: Target;
  readonly #core: CoreFigures;
  readonly #guide: GuideRates;
  readonly #graphs = new Map<string, Result<readonly string[]>>();
  readonly #regions = new Map<string, Region>();
  readonly #prices = new Map<string, number>();
  readonly #cheap: CheapTiles = new Map();

  constructor(target: Target, core: CoreFigures = coreFigures(target)) {
    this.#target = target;
    this.#core = core;
    this.#guide = guideRates(target);
  }

  /** The regions of a graph of core ops, by what they compute: one that comes twice is named twice. */
  regions(graph: Graph): Result<readonly string[]> {
    const key = semanticHash(graph);
    const known = this.#graphs.get(key);
    if (known) return known;
    const found = this.#regionsOf(graph);
    this.#graphs.set(key, found);
    return found;
  }

  #regionsOf(graph: Graph): Result<readonly string[]> {
    const nests = buildNests(graph, nestOptions(this.#target));
    if (!nests.ok) return nests;
    const analysed = analyseProgram(nests.value);
    const { groups } = planGroups(analysed, defaultGroupOptions);
    const keys = groups.map((group) => {
      const region = formRegion(analysed, group);
      const ranges = region.symbols.map(({ range }) => `${range.min}..${range.max}`);
      const key = [regionHash(region), ...ranges].join(" ");
      if (!this.#regions.has(key)) this.#regions.set(key, region);
      return key;
    });
    return ok(keys);
  }

  /** Nanoseconds of one core for a region that `regions` named, priced when it is first asked for. */
  region(key: string): number {
    const known = this.#prices.get(key);
    if (known !== undefined) return known;
    const best = this.#cheapestForm(this.#regions.get(key)!);
    this.#prices.set(key, best);
    return best;
  }

  /** Over feature maps as they are or in blocks of channels, where a CPU's neighbours store them so too. */
  #cheapestForm(region: Region): number {
    const block = this.#target.vectorBytes / bytesPerElement;
    const plan = this.#target.blocks ? undefined : planBlocks(region, block);
    const blockedNs = plan
      ? this.#cheapest(coalesceRegion(blockRegion(region, plan, block)).region)
      : Infinity;
    return this.#cheapest(coalesceRegion(region).region, blockedNs);
  }

  /** About the cheapest legal state of the region by itself, on one core, or the limit that all are above. */
  #cheapest(region: Region, limitNs = Infinity): number {
    const target = this.#target;
    if (target.blocks) {
      return Math.min(
        limitNs,
        ...enumerateBlockSchedules(region, target).map((s) => this.#priced(region, s)),
      );
    }
    if (!TileSpace.applies(region)) {
      const plain = { region: region.name, target: target.name, directives: [] };
      return Math.min(limitNs, this.#priced(region, plain));
    }
    const pricer = tilePricer(region, target, this.#core);
    return tileEstimateNs(region, target, { pricer, limitNs, cheap: this.#cheap });
  }

  #priced(region: Region, schedule: Schedule): number {
    const applied = applySchedule(region, schedule);
    return applied.ok ? priceRegion(applied.value, this.#target, this.#core).estimateNs : Infinity;
  }

  /**
   * A guide: nanoseconds of one op as if its neighbours were computed with it where that is usual.
   * Elementwise operators cost their arithmetic, contractions their products, movement its bytes.
   */
  op(call: PricedOp, ranges: IndexRanges): number {
    return this.#opNs(call, ranges);
  }

  #opNs({ op, attrs, inputs, output }: PricedOp, ranges: IndexRanges): number {
    const upper = (d: IndexExpr): number => Math.max(1, rangeOf(d, ranges).max);
    const { flopsPerNs, bytesPerNs, vectorOpsPerNs, regionNs, partNs } = this.#guide;
    if (isComposite(op))
      return composedShare * this.#composite({ op, attrs, inputs, output }, ranges);
    const info = infoOf<OpKind>(op);
    const call = { inputs, outputs: [output], attrs: attrs as OpAttrs[OpKind], ranges };
    const traits =
      typeof info.traits === "function"
        ? info.traits(attrs as OpAttrs[OpKind], inputs)
        : info.traits;
    if (op === "reshape") return nodeNs;
    if (traits.elementwise) {
      const work = upper(elementsOf(output)) * scalarOps[traits.elementwise].cost;
      return nodeNs + work / vectorOpsPerNs / lanes;
    }
    const flops = info.flops ? upper(info.flops(call)) : 0;
    const moved = info.bytesRead ? upper(info.bytesRead(call)) : bytes(inputs, upper);
    const traffic = (moved + upper(bytesOf(output))) / bytesPerNs;
    const startNs = op === "slice" ? partNs : regionNs;
    return startNs + Math.max(flops / flopsPerNs, traffic);
  }

  #composite({ op, attrs, inputs }: PricedOp, ranges: IndexRanges): number {
    const definition = definitionGraph(op as never, inputs, attrs as never, { ranges, at: op });
    return definition.nodes.reduce((sum, node) => {
      const type = (id: number) => definition.values[id]!.type;
      const operands = node.inputs.map(type);
      const [first] = node.outputs.map(type);
      return sum + this.#opNs({ ...node, inputs: operands, output: first! }, ranges);
    }, 0);
  }
}

/** A recognised composite is worth a little: it says more, and costs what its definition does. */
const composedShare = 0.98;
/** Only maps of this size are blocked. */
const bytesPerElement = 4;
/** What a node costs beside its work, and on a CPU a region. */
const nodeNs = 5;
const regionOnCoreNs = 200;

/** What the guide reckons with: of one core, or of a device that runs one region after another whole. */
interface GuideRates {
  readonly flopsPerNs: number;
  readonly bytesPerNs: number;
  readonly vectorOpsPerNs: number;
  readonly regionNs: number;
  /** A part of a result, read by others: launches that a device saves outweigh what reads it once more. */
  readonly partNs: number;
}

function guideRates({ blocks, ...target }: Target): GuideRates {
  const cores = blocks?.cores ?? 1;
  return {
    flopsPerNs: cores * target.f32FlopsPerNsPerCore.value,
    bytesPerNs: blocks?.memoryBytesPerNs.value ?? target.memory[0]!.bytesPerNsPerCore.value,
    vectorOpsPerNs: cores * target.vectorOpsPerNsPerCore.value,
    regionNs: blocks ? blocks.launchNs.value + blocks.memoryLatencyNs.value : regionOnCoreNs,
    partNs: blocks ? nodeNs : regionOnCoreNs,
  };
}

/** Elements of a vector instruction, where the operators' costs count one element. */
const lanes = 4;

function bytes(types: readonly TensorType[], upper: (d: IndexExpr) => number): number {
  return types.reduce((sum, t) => sum + upper(bytesOf(t)), 0);
}
