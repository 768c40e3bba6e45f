/**
 * Predicted against measured times, on logarithmic axes with the line where they agree. In: points with the group
 * that they are of. Out: SVG; rank correlation within each group stands in the legend, since order is compared
 * within a workload and never across them.
 */
import { rankCorrelation } from "../support/rank-correlation.ts";
import { drawAxes, placeX, placeY, plotHeight, rangeAround } from "./axes.ts";
import { caption, colours, escapeXml, formatNs, legend, line, page, palette } from "./svg.ts";

export interface TimedPoint {
  readonly name: string;
  readonly group: string;
  readonly predictedNs: number;
  readonly measuredNs: number;
}

export interface GroupFit {
  readonly group: string;
  readonly n: number;
  /** Undefined for groups of fewer than three. */
  readonly rho: number | undefined;
}

const fewestForRank = 3;

export function groupFits(points: readonly TimedPoint[]): readonly GroupFit[] {
  const groups = [...new Set(points.map((p) => p.group))];
  return groups.map((group) => {
    const own = points.filter((p) => p.group === group);
    const rank = (): number =>
      rankCorrelation(
        own.map((p) => p.measuredNs),
        own.map((p) => p.predictedNs),
      );
    return { group, n: own.length, rho: own.length < fewestForRank ? undefined : rank() };
  });
}

/** @param note where the points come from */
export function scatterPicture(
  title: string,
  points: readonly TimedPoint[],
  note: string,
): string | undefined {
  if (points.length === 0) return undefined;
  const all = points.flatMap((p) => [p.predictedNs, p.measuredNs]);
  const range = { ...rangeAround(all, true), log: true, print: formatNs };
  const [x, y] = [
    { ...range, name: "measured" },
    { ...range, name: "predicted" },
  ];
  const fits = groupFits(points);
  const colourOf = (group: string): string =>
    palette[fits.findIndex((f) => f.group === group) % palette.length]!;
  const dots = points.map((p) => {
    const place = `cx="${placeX(x, p.measuredNs).toFixed(1)}" cy="${placeY(y, p.predictedNs).toFixed(1)}"`;
    const hint = `${p.name}: predicted ${formatNs(p.predictedNs)}, measured ${formatNs(p.measuredNs)}`;
    return `<circle ${place} r="3.2" fill="${colourOf(p.group)}" fill-opacity="0.7"><title>${escapeXml(hint)}</title></circle>`;
  });
  const names = fits.map(({ group, n, rho }) => ({
    name: rho === undefined ? `${group} (${n})` : `${group} (${n}, rho ${rho.toFixed(2)})`,
    colour: colourOf(group),
  }));
  const rows = Math.ceil(names.length / 3);
  const lift = 16 * rows;
  return page(title, plotHeight + lift, [
    caption(note),
    `<g transform="translate(0 ${plotHeight})">`,
    ...legend(names, 0),
    "</g>",
    ...drawAxes(x, y),
    line(
      [
        [placeX(x, x.low), placeY(y, y.low)],
        [placeX(x, x.high), placeY(y, y.high)],
      ],
      colours.faint,
    ),
    ...dots,
  ]);
}
