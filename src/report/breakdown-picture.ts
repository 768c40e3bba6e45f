/**
 * What the price of each region is made of: the time that each part of the core takes by itself, and the memory that
 * it does not hide. In: parts by region, in nanoseconds. Out: a bar for each of the dearest regions.
 */
import { formatNs, label, legend, page, palette, rowsHeight, stackedBar, value } from "./svg.ts";

export interface RegionParts {
  readonly name: string;
  /** Nanoseconds by cause; together the price. */
  readonly parts: Readonly<Record<string, number>>;
}

const mostRows = 40;

export function breakdownPicture(target: string, regions: readonly RegionParts[]): string {
  const named = [...new Set(regions.flatMap((r) => Object.keys(r.parts)))];
  const total = (r: RegionParts): number => named.reduce((n, name) => n + (r.parts[name] ?? 0), 0);
  const shown = regions
    .map((region, at) => ({ region, at, ns: total(region) }))
    .sort((a, b) => b.ns - a.ns || a.at - b.at)
    .slice(0, mostRows);
  const most = Math.max(1e-9, ...shown.map((s) => s.ns));
  // A cause that no region has is not explained either.
  const causes = named.filter((name) => shown.some((s) => (s.region.parts[name] ?? 0) > 0));
  const colourOf = (name: string): string => palette[causes.indexOf(name) % palette.length]!;
  const rows = shown.flatMap(({ region, ns }, at) => [
    ...stackedBar(
      at,
      causes.map((name) => {
        const part = region.parts[name] ?? 0;
        return { share: part / most, colour: colourOf(name), hint: `${name}: ${formatNs(part)}` };
      }),
    ),
    label(at, region.name),
    value(at, formatNs(ns)),
  ]);
  const head = `what prices are made of, ${target}`;
  return page(head, rowsHeight(shown.length), [
    ...legend(causes.map((name) => ({ name, colour: colourOf(name) }))),
    ...rows,
  ]);
}
