/**
 * Products and attention that run as loops over threads because of open extents: what would be tiles for matrix units
 * if the extents were known. In: chosen regions, prices (injected). Out: a warning that names the nodes, with how much
 * longer they take at the upper ends of the extents (SCH047).
 */
import { coalesceRegion, mapIndices } from "../../region/coalesce.ts";
import type { Region } from "../../region/nest.ts";
import { constant, substitute } from "../../semantics/index-expr.ts";
import { type Diagnostic, diagnostic } from "../../support/diagnostic.ts";
import type { Target } from "../../target/target.ts";
import { applySchedule } from "../apply.ts";
import { decideSchedule } from "../legality/legality.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import { enumerateProducts } from "./product-candidates.ts";
import { productForm } from "./product-form.ts";

interface Prices {
  readonly target: Target;
  /** Nanoseconds of a schedule; infinite where it does not fit. */
  readonly priceOf: (scheduled: ScheduledRegion) => number;
}

/** How many times as long as tiles loops take from which on they are told. */
const worthTelling = 1.5;
/** Regions that are named. */
const mostNamed = 8;

interface OpenLoops {
  readonly region: Region;
  readonly ns: number;
  readonly tilesNs: number;
}

export function warnOfOpenLoops(
  scheduled: readonly ScheduledRegion[],
  prices: Prices,
): readonly Diagnostic[] {
  const { target } = prices;
  if (!target.blocks) return [];
  const found = scheduled.flatMap((s) => openLoops(s, prices) ?? []);
  if (found.length === 0) return [];
  const worst = found.toSorted((a, b) => b.ns - b.tilesNs - (a.ns - a.tilesNs));
  const sum = (of: (l: OpenLoops) => number): number => found.reduce((n, l) => n + of(l), 0);
  const us = (ns: number): string => `${(ns / 1000).toFixed(1)} us`;
  const [ns, tilesNs] = [sum((l) => l.ns), sum((l) => l.tilesNs)];
  const notes = worst.slice(0, mostNamed).map(({ region, ...l }) => {
    const origins = [...new Set(region.statements.map((s) => s.origin))].join(", ");
    return `${region.name} (${origins}): ${us(l.ns)} as loops, ${us(l.tilesNs)} as tiles`;
  });
  const others = found.length - notes.length;
  const message =
    `${found.length} products run as loops over threads because extents inside of their rows or columns are open: ` +
    `${us(ns)} in place of ${us(tilesNs)}, ${(ns / tilesNs).toFixed(1)} times as long at the largest sizes`;
  return [
    diagnostic("SCH047", message, {
      severity: "warning",
      notes: [...notes, ...(others > 0 ? [`and ${others} more`] : [])],
      help: "give these extents values with --shape, and make an artifact for each; `load` without sizes makes a program for each size that comes",
    }),
  ];
}

/** A region of loops that would be a product's tiles, were its extents what they are at most. */
function openLoops(scheduled: ScheduledRegion, { target, priceOf }: Prices): OpenLoops | undefined {
  const { region, products, attention, rows } = scheduled;
  const [statement, ...others] = region.statements;
  if (products.length > 0 || attention || rows || others.length > 0) return undefined;
  if (!statement?.reduction || region.symbols.length === 0) return undefined;
  if (typeof productForm(region, statement) !== "string") return undefined;
  const known = atMost(region);
  if (!known) return undefined;
  const schedules = enumerateProducts(known, target).map((d) => ({
    ...{ region: known.name, target: target.name, directives: [d] },
  }));
  const tiles = schedules.flatMap((schedule) => {
    const applied = applySchedule(known, schedule);
    return applied.ok ? [{ tiled: applied.value, ns: priceOf(applied.value) }] : [];
  });
  const legal = tiles.sort((a, b) => a.ns - b.ns).find(({ tiled }) => decideSchedule(tiled).ok);
  const [ns, tilesNs] = [priceOf(scheduled), legal?.ns ?? Infinity];
  return ns > worthTelling * tilesNs ? { region, ns, tilesNs } : undefined;
}

/** The region at the upper ends of its symbols; undefined where one has none. */
function atMost(region: Region): Region | undefined {
  if (region.symbols.some((s) => !Number.isSafeInteger(s.range.max))) return undefined;
  const ends = new Map(region.symbols.map((s) => [s.name, constant(s.range.max)]));
  const tensors = [...region.tensors].map(([name, tensor]) => {
    const shape = tensor.shape.map((e) => substitute(e, ends));
    return [name, { ...tensor, shape }] as const;
  });
  const statements = region.statements.map((s) => ({
    ...mapIndices(s, (e) => substitute(e, ends)),
    loops: s.loops.map((l) => ({ ...l, extent: substitute(l.extent, ends) })),
  }));
  const closed = { ...region, symbols: [], tensors: new Map(tensors), statements };
  return coalesceRegion(closed).region;
}
