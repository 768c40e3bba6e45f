/**
 * How schedules were chosen, as SVG: the funnel from all states to the chosen ones, the superposition of each
 * region collapsing step by step (animated), and what each region is priced at beside its roofline. In: the search
 * report of an artifact. Out: pictures by name; whoever asks writes them. Equal reports, equal bytes.
 */
import {
  bar,
  caption,
  colours,
  escapeXml,
  inset,
  label,
  type Picture,
  page,
  plotWidth,
  rowHeight,
  rowsHeight,
  rowTop,
  value,
} from "./svg.ts";

/** How the schedule of one region was found. */
export interface RegionSearch {
  readonly name: string;
  readonly estimateNs: number;
  readonly boundNs: number;
  readonly generated: number;
  readonly removed: readonly { readonly constraint: string; readonly states: number }[];
  readonly roofline: number;
  readonly symmetry: number;
  readonly occupancy: number;
  readonly code: number;
}

export interface SearchFigures {
  readonly target: string;
  readonly regions: readonly RegionSearch[];
}

const phases = ["roofline", "symmetry", "occupancy", "code"] as const;

export function searchPictures(search: SearchFigures): readonly Picture[] {
  return [
    { name: "funnel", svg: funnel(search) },
    { name: "collapse", svg: collapse(search) },
    { name: "price", svg: prices(search) },
  ];
}

/** States that are left after a step, of one region. */
interface Step {
  readonly name: string;
  readonly left: number;
}

/** From what was named to the one that is chosen. */
function stepsOf(region: RegionSearch, constraints: readonly string[]): readonly Step[] {
  let left = region.generated;
  const steps: Step[] = [{ name: "named", left }];
  for (const name of constraints) {
    left -= region.removed.find((r) => r.constraint === name)?.states ?? 0;
    steps.push({ name, left });
  }
  for (const name of phases) {
    left -= region[name];
    steps.push({ name, left });
  }
  return [...steps, { name: "chosen", left: 1 }];
}

function constraintsOf({ regions }: SearchFigures): readonly string[] {
  return [...new Set(regions.flatMap((r) => r.removed.map((x) => x.constraint)))];
}

/** One bar a step, all regions together, on a logarithmic scale. */
function funnel(search: SearchFigures): string {
  const each = search.regions.map((r) => stepsOf(r, constraintsOf(search)));
  const steps = (each[0] ?? []).map(({ name }, at): Step => {
    return { name, left: each.reduce((n, own) => n + own[at]!.left, 0) };
  });
  const most = Math.max(1, ...steps.map((s) => s.left));
  const rows = steps.flatMap(({ name, left }, at) => {
    const before = steps[Math.max(0, at - 1)]!.left;
    const share = before === left ? "" : ` (-${percent(before - left, before)})`;
    return [
      ...bar(at, [
        { share: logShare(before, most), colour: colours.quiet },
        {
          share: logShare(left, most),
          colour: at < steps.length - 1 ? colours.left : colours.taken,
        },
      ]),
      label(at, name),
      value(at, `${left}${share}`),
    ];
  });
  return page(
    `states of ${search.regions.length} regions, ${search.target}`,
    rowsHeight(steps.length),
    [caption("logarithmic; grey: what the step took"), ...rows],
  );
}

const secondsPerStep = 0.9;
/** Regions of one picture: those that take longest. */
const mostRows = 40;

/** Every region's bar shrinks step by step to its one state, the steps of all together. */
function collapse(search: SearchFigures): string {
  const constraints = constraintsOf(search);
  const shown = slowest(search);
  const all = shown.map((r) => stepsOf(r, constraints));
  const most = Math.max(1, ...all.flatMap((steps) => steps.map((s) => s.left)));
  const names = all[0]?.map((s) => s.name) ?? [];
  const duration = `${(secondsPerStep * (names.length + 2)).toFixed(1)}s`;
  const rows = all.flatMap((steps, at) => {
    const widths = steps.map((s) => (plotWidth() * logShare(s.left, most)).toFixed(1));
    const held = [...widths, widths.at(-1)!, widths.at(-1)!].join(";");
    const [y, height] = [rowTop(at) + 4, rowHeight - 8];
    return [
      label(at, shown[at]!.name),
      `<rect x="${inset.left}" y="${y}" height="${height}" width="${widths.at(-1)}" fill="${colours.left}">`,
      `<animate attributeName="width" values="${held}" dur="${duration}" repeatCount="indefinite"/>`,
      "</rect>",
      value(at, `${steps[0]!.left} to 1`),
    ];
  });
  const captions = names.flatMap((name, at) => {
    const total = names.length + 2;
    const [from, to] = [at / total, at === names.length - 1 ? 1 : (at + 1) / total];
    const times = at === 0 ? ["0", frame(to)] : ["0", frame(from), frame(to)];
    const shows = at === 0 ? ["visible", "hidden"] : ["hidden", "visible", "hidden"];
    const steady = at === names.length - 1 ? "visible" : "hidden";
    const last = to === 1 ? -1 : times.length;
    return [
      `<text x="16" y="44" fill="${colours.taken}" visibility="${steady}">${escapeXml(name)}`,
      `<animate attributeName="visibility" calcMode="discrete" values="${shows.slice(0, last).join(";")}" keyTimes="${times.slice(0, last).join(";")}" dur="${duration}" repeatCount="indefinite"/>`,
      "</text>",
    ];
  });
  return page(`superpositions collapsing, ${search.target}`, rowsHeight(shown.length), [
    ...captions,
    ...rows,
  ]);
}

function frame(share: number): string {
  return share.toFixed(4);
}

/** What each region is priced at, and how much of it no schedule could save. */
function prices(search: SearchFigures): string {
  const shown = slowest(search);
  const most = Math.max(1e-9, ...shown.map((r) => r.estimateNs));
  const total = search.regions.reduce((ns, r) => ns + r.estimateNs, 0);
  const rows = shown.flatMap((r, at) => [
    ...bar(at, [
      { share: r.estimateNs / most, colour: colours.left },
      {
        share: Math.min(1, r.boundNs / r.estimateNs) * (r.estimateNs / most),
        colour: colours.bound,
      },
    ]),
    label(at, r.name),
    value(at, `${(r.estimateNs / 1e6).toFixed(4)} ms`),
  ]);
  const head = `priced: ${(total / 1e6).toFixed(3)} ms of one core, ${search.target}`;
  return page(head, rowsHeight(shown.length), [
    caption("green: roofline, which no schedule passes"),
    ...rows,
  ]);
}

function slowest({ regions }: SearchFigures): readonly RegionSearch[] {
  const order = regions.map((_, i) => i);
  order.sort((a, b) => regions[b]!.estimateNs - regions[a]!.estimateNs || a - b);
  return order.slice(0, mostRows).map((i) => regions[i]!);
}

/** One state is a sliver, none is nothing. */
function logShare(states: number, most: number): number {
  return Math.log2(1 + states) / Math.log2(1 + most);
}

function percent(part: number, of: number): string {
  return `${((100 * part) / of).toFixed(1)} %`;
}
