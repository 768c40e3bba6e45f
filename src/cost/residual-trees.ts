/**
 * What the analytical model cannot say, learned: boosted regression trees on the logarithm of measured
 * over priced time of a region's code, from figures that have no unit (code-features.ts). A sample is timed as a
 * whole; what it is off by is shared among its regions by their parts of the price. In: samples. Out:
 * trees as data, and their sum for a row. Deterministic.
 */
import type { CostSample } from "./calibrated.ts";
import { codeFeatures, type FeatureRow } from "./code-features.ts";
import type { CoreFigures } from "./core-figures.ts";
import type { CodeWork } from "./mix-price.ts";

/** A leaf is a number: what it adds to the logarithm. */
export type Tree =
  | number
  | {
      readonly feature: number;
      readonly at: number;
      readonly below: Tree;
      readonly above: Tree;
    };

export interface ResidualModel {
  readonly trees: readonly Tree[];
  /** Spread of the logarithm that is left, for intervals. */
  readonly sigma: number;
}

export interface GrowthOptions {
  readonly rounds: number;
  readonly depth: number;
  readonly shrinkage: number;
  /** Samples that a leaf stands on at least, and those that pull it to zero. */
  readonly leastLeaf: number;
  readonly prior: number;
}

/** For the hundred or two samples that calibration takes. */
export const fewSamples: GrowthOptions = {
  rounds: 80,
  depth: 3,
  shrinkage: 0.12,
  leastLeaf: 8,
  prior: 6,
};

/** Places where a figure may be cut. */
const cuts = 24;
/** A residual model moves a price by this factor at most. */
const mostLog = Math.log(3);
/** Regions below this part of a sample's price teach nothing. */
const leastShare = 0.02;

/** One region of one sample. */
interface Row {
  readonly sample: number;
  readonly bins: Uint8Array;
  readonly ns: number;
  readonly row: readonly number[];
  log: number;
  share: number;
}

/** A sample whose regions are described already. */
export interface DescribedSample {
  readonly workload: string;
  readonly ns: number;
  readonly regions: readonly FeatureRow[];
}

export function fitResidual(
  samples: readonly CostSample[],
  core: CoreFigures,
  options: GrowthOptions = fewSamples,
): ResidualModel {
  const known = new Map<CodeWork, FeatureRow>();
  const featuresOf = (work: CodeWork): FeatureRow => {
    const found = known.get(work) ?? codeFeatures(work, core);
    known.set(work, found);
    return found;
  };
  const described = samples.map((s) => ({ ...s, regions: s.regions.map(featuresOf) }));
  return growTrees(described, options);
}

export function growTrees(
  samples: readonly DescribedSample[],
  options: GrowthOptions,
): ResidualModel {
  const plain = samples.flatMap((s, sample) =>
    s.regions.map((region) => ({ sample, ...region, log: 0, share: 0 })),
  );
  const places = findCuts(plain);
  const rows: Row[] = plain.map((r) => ({ ...r, bins: binsOf(r.row, places) }));
  const weights = sampleWeights(samples);
  const trees: Tree[] = [];
  let left = residuals(samples, rows);
  for (let round = 0; round < options.rounds; round++) {
    const members = rows.filter((r) => r.share > leastShare);
    const training = members.map(({ bins, sample, share }) => ({
      bins,
      left: left[sample]!,
      weight: weights[sample]! * share,
    }));
    const tree = grow(training, options.depth, { ...options, places });
    trees.push(tree);
    for (const r of rows) r.log += leafOf(tree, r.row);
    left = residuals(samples, rows);
  }
  const sigma = Math.sqrt(left.reduce((n, x) => n + x * x, 0) / Math.max(1, left.length));
  return { trees, sigma };
}

/** Logarithms of measured over predicted, each workload around its own mean; sets the rows' shares. */
function residuals(samples: readonly DescribedSample[], rows: readonly Row[]): readonly number[] {
  const totals = new Float64Array(samples.length);
  for (const r of rows) totals[r.sample]! += r.ns * Math.exp(r.log);
  for (const r of rows) r.share = (r.ns * Math.exp(r.log)) / totals[r.sample]!;
  const left = samples.map((s, i) => Math.log(s.ns / totals[i]!));
  const sums = new Map<string, { sum: number; n: number }>();
  for (const [i, { workload }] of samples.entries()) {
    const { sum, n } = sums.get(workload) ?? { sum: 0, n: 0 };
    sums.set(workload, { sum: sum + left[i]!, n: n + 1 });
  }
  return left.map((x, i) => {
    const { sum, n } = sums.get(samples[i]!.workload)!;
    return x - sum / n;
  });
}

/** Makes the workloads' spreads count alike: order within each is what is asked for. */
function sampleWeights(samples: readonly DescribedSample[]): readonly number[] {
  const logs = new Map<string, number[]>();
  for (const { workload, ns } of samples) {
    const list = logs.get(workload) ?? [];
    logs.set(workload, list);
    list.push(Math.log(ns));
  }
  const spread = new Map<string, number>();
  for (const [workload, list] of logs) {
    const mean = list.reduce((n, x) => n + x, 0) / list.length;
    const variance = list.reduce((n, x) => n + (x - mean) ** 2, 0) / list.length;
    spread.set(workload, variance + 0.01);
  }
  const weights = samples.map(({ workload }) => 1 / spread.get(workload)!);
  const mean = weights.reduce((n, w) => n + w, 0) / Math.max(1, weights.length);
  return weights.map((w) => w / mean);
}

/** What the trees add to the logarithm of a region's price. */
export function residualOf({ trees }: ResidualModel, row: readonly number[]): number {
  const sum = trees.reduce<number>((n, t) => n + leafOf(t, row), 0);
  return Math.max(-mostLog, Math.min(mostLog, sum));
}

function leafOf(tree: Tree, row: readonly number[]): number {
  if (typeof tree === "number") return tree;
  return leafOf(row[tree.feature]! < tree.at ? tree.below : tree.above, row);
}

/** A row with its figures as numbers of bins. */
interface TrainingRow {
  readonly bins: Uint8Array;
  readonly left: number;
  readonly weight: number;
}

/** Places to cut, ascending, by figure: between what differs, as many rows in each part. */
function findCuts(rows: readonly FeatureRow[]): readonly (readonly number[])[] {
  const width = rows[0]?.row.length ?? 0;
  return Array.from({ length: width }, (_, feature) => {
    const values = rows.map((r) => r.row[feature]!).sort((a, b) => a - b);
    const found: number[] = [];
    for (let cut = 1; cut < cuts; cut++) {
      const n = Math.floor((cut * values.length) / cuts);
      const next = values.findIndex((v, i) => i >= n && v > values[n - 1]!);
      if (n === 0 || next < 0) continue;
      const at = Number(((values[next - 1]! + values[next]!) / 2).toPrecision(5));
      if (at > (found.at(-1) ?? -Infinity)) found.push(at);
    }
    return found;
  });
}

function binsOf(row: readonly number[], places: readonly (readonly number[])[]): Uint8Array {
  return Uint8Array.from(row, (x, feature) => places[feature]!.filter((at) => at <= x).length);
}

interface Growing extends GrowthOptions {
  readonly places: readonly (readonly number[])[];
}

function grow(members: readonly TrainingRow[], deep: number, options: Growing): Tree {
  let total = 0;
  let weight = 0;
  for (const m of members) {
    total += m.weight * m.left;
    weight += m.weight;
  }
  const leaf = Number(((options.shrinkage * total) / (weight + options.prior)).toPrecision(4));
  if (deep === 0 || members.length < 2 * options.leastLeaf) return leaf;
  const split = bestSplit(members, options);
  if (!split) return leaf;
  const { feature, bin } = split;
  const part = (isBelow: boolean): Tree => {
    const inside = members.filter((m) => m.bins[feature]! <= bin === isBelow);
    return grow(inside, deep - 1, options);
  };
  return { feature, at: options.places[feature]![bin]!, below: part(true), above: part(false) };
}

interface Split {
  readonly feature: number;
  /** The last bin below. */
  readonly bin: number;
  readonly gain: number;
}

function bestSplit(
  members: readonly TrainingRow[],
  { prior, leastLeaf, places }: Growing,
): Split | undefined {
  const score = (sum: number, weight: number): number => sum ** 2 / (weight + prior);
  let best: Split | undefined;
  for (let feature = 0; feature < places.length; feature++) {
    const sums = new Float64Array(cuts);
    const weights = new Float64Array(cuts);
    const counts = new Uint32Array(cuts);
    let [total, all] = [0, 0];
    for (const { bins, left, weight } of members) {
      const bin = bins[feature]!;
      sums[bin]! += weight * left;
      weights[bin]! += weight;
      counts[bin]!++;
      total += weight * left;
      all += weight;
    }
    let [sum, weight, count] = [0, 0, 0];
    for (let bin = 0; bin < places[feature]!.length; bin++) {
      sum += sums[bin]!;
      weight += weights[bin]!;
      count += counts[bin]!;
      if (count < leastLeaf || members.length - count < leastLeaf) continue;
      const gain = score(sum, weight) + score(total - sum, all - weight) - score(total, all);
      if (gain > (best?.gain ?? 1e-6)) best = { feature, bin, gain };
    }
  }
  return best;
}
