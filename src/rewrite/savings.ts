/**
 * What a graph costs and saves by the injected pricer. Two graphs that are alike in most of their regions
 * differ in price by the others alone, so that only those are ever priced. Prices are compared as integer
 * picoseconds.
 */
import type { Graph, Model } from "../graph/graph.ts";
import { isComposite } from "../graph/op-table.ts";
import { eliminateCommonSubexpressions } from "../graph/transforms/clean.ts";
import { expandComposites } from "../graph/transforms/expand-composites.ts";
import type { IndexRanges } from "../semantics/index-range.ts";
import { ok, type Result } from "../support/diagnostic.ts";
import { deriveConstants } from "./derive-constants.ts";
import type { OpCost } from "./rewrite-part.ts";

export interface Pricer {
  /** Whether composites are operators to it; by default they are what they stand for. */
  readonly hasComposites?: boolean;
  /** A guide for one op. */
  op(call: OpCost, ranges: IndexRanges): number;
  /** Names of what a graph, whose constants are weights, computes together. */
  regions(graph: Graph): Result<readonly string[]>;
  /** Nanoseconds of a region that was named. */
  region(name: string): number;
}

/** How often a graph has each region. */
export type RegionCounts = ReadonlyMap<string, number>;

export function countRegions(model: Model, pricer: Pricer): Result<RegionCounts> {
  const taken = pricer.hasComposites ? model : expand(model);
  const named = pricer.regions(deriveConstants(taken).graph);
  if (!named.ok) return named;
  const counts = new Map<string, number>();
  for (const name of named.value) counts.set(name, (counts.get(name) ?? 0) + 1);
  return ok(counts);
}

export function totalNs(counts: RegionCounts, pricer: Pricer): number {
  return [...counts].reduce((sum, [name, count]) => sum + count * pricer.region(name), 0);
}

/** What `after` costs less than `before`; below zero where it costs more. */
export function savedNs(before: RegionCounts, after: RegionCounts, pricer: Pricer): number {
  let saved = 0;
  for (const [name, count] of before) {
    const fewer = count - (after.get(name) ?? 0);
    if (fewer !== 0) saved += fewer * pricer.region(name);
  }
  for (const [name, count] of after) if (!before.has(name)) saved -= count * pricer.region(name);
  return saved;
}

export function picoseconds(ns: number): number {
  return Math.round(ns * 1000);
}

/** Composites by their definitions, equal nodes once. */
export function expand(model: Model): Model {
  const { graph, weights } = model;
  if (!graph.nodes.some((node) => isComposite(node.op))) return model;
  const expanded = expandComposites(graph);
  const merged = eliminateCommonSubexpressions(expanded.graph);
  const read = (key: string) =>
    merged.constants.get(key) ?? expanded.constants.get(key) ?? weights.read(key);
  return { graph: merged.graph, weights: { read } };
}
