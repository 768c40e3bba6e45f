/**
 * One model on several machines: what each of its dearest regions is priced at under the schedule that each machine
 * gets, beside the roofline there. In: searches by machine. Out: a group of bars for each region, and one for the
 * whole model.
 */
import {
  colours,
  formatNs,
  inset,
  legend,
  page,
  palette,
  plotWidth,
  rect,
  text,
  width,
} from "./svg.ts";

export interface MachineFigures {
  readonly machine: string;
  readonly regions: readonly {
    readonly name: string;
    readonly estimateNs: number;
    readonly boundNs: number;
  }[];
}

export interface MachineRow {
  readonly name: string;
  /** By machine; undefined where its program has no such region. */
  readonly times: readonly ({ readonly ns: number; readonly boundNs: number } | undefined)[];
}

const mostRegions = 14;
const barHeight = 11;
const [top, gap] = [64, 12] as const;

/** The whole model first, then the regions that take longest on any machine, as a share of its whole. */
export function machineRows(machines: readonly MachineFigures[]): readonly MachineRow[] {
  const totals = machines.map(({ regions }) => ({
    ns: regions.reduce((n, r) => n + r.estimateNs, 0),
    boundNs: regions.reduce((n, r) => n + r.boundNs, 0),
  }));
  const names = [...new Set(machines.flatMap((m) => m.regions.map((r) => r.name)))];
  const rows = names.map((name): MachineRow & { share: number } => {
    const times = machines.map(({ regions }) => {
      const found = regions.find((r) => r.name === name);
      return found && { ns: found.estimateNs, boundNs: found.boundNs };
    });
    const share = Math.max(...times.map((t, i) => (t ? t.ns / (totals[i]!.ns || 1) : 0)));
    return { name, times, share };
  });
  rows.sort((a, b) => b.share - a.share || (a.name < b.name ? -1 : 1));
  const dearest = rows.slice(0, mostRegions).map(({ name, times }) => ({ name, times }));
  return [{ name: "the whole model", times: totals }, ...dearest];
}

/** Undefined with fewer than two machines: there is nothing to compare. */
export function machinesPicture(machines: readonly MachineFigures[]): string | undefined {
  if (machines.length < 2) return undefined;
  const rows = machineRows(machines);
  const rowTall = machines.length * barHeight + gap;
  const all = rows.flatMap((r) => r.times.flatMap((t) => (t ? [t.ns] : [])));
  const most = Math.max(1e-9, ...all);
  const least = Math.min(most, ...all.filter((ns) => ns > 0)) / 2;
  const share = (ns: number): number =>
    ns <= least ? 0 : Math.log(ns / least) / Math.log(most / least);
  const drawn = rows.flatMap(({ name, times }, at) => {
    const y = top + at * rowTall;
    const middle = y + (machines.length * barHeight) / 2 + 4;
    const most = inset.left - 20;
    return [
      text({ x: inset.left - 8, y: middle, anchor: "end", most }, name),
      ...times.flatMap((t, i) => {
        if (!t) return [];
        const place = { x: inset.left, y: y + i * barHeight, h: barHeight - 1 };
        const long = plotWidth() * share(t.ns);
        const mark = inset.left + plotWidth() * share(Math.min(t.ns, t.boundNs));
        return [
          rect({ ...place, w: long }, palette[i % palette.length]!, machines[i]!.machine),
          rect({ ...place, x: mark - 1, w: 2 }, colours.text, `roofline ${formatNs(t.boundNs)}`),
          text(
            { x: width - 8, y: place.y + 9, size: 10, anchor: "end", fill: colours.faint },
            formatNs(t.ns),
          ),
        ];
      }),
    ];
  });
  return page("one model, the schedule of each machine", top + rows.length * rowTall + 16, [
    ...legend(
      [
        ...machines.map((m, i) => ({ name: m.machine, colour: palette[i % palette.length]! })),
        { name: "roofline; times logarithmic", colour: colours.text },
      ],
      36,
    ),
    ...drawn,
  ]);
}
