/** Axes of a plot with ticks and names, and where numbers lie on them. In: ranges. Out: SVG parts and places. */
import { colours, evenTicks, line, logTicks, shortNumber, text, width } from "./svg.ts";

export interface Axis {
  readonly low: number;
  readonly high: number;
  readonly log: boolean;
  readonly name: string;
  readonly print?: (x: number) => string;
}

export const plot = { left: 80, right: 24, top: 96, height: 380 } as const;
export const plotHeight = plot.top + plot.height + 52;

export function placeX(axis: Axis, x: number): number {
  return plot.left + (width - plot.left - plot.right) * shareOf(axis, x);
}

export function placeY(axis: Axis, y: number): number {
  return plot.top + plot.height * (1 - shareOf(axis, y));
}

/** 0 at the low end, 1 at the high one. */
function shareOf({ low, high, log }: Axis, x: number): number {
  if (!(high > low)) return 0.5;
  return log ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low);
}

/** Whole powers of ten around numbers. */
export function decadesAround(numbers: readonly number[]): Pick<Axis, "low" | "high"> {
  const low = 10 ** Math.floor(Math.log10(Math.min(...numbers)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...numbers)));
  return { low, high: high > low ? high : 10 * low };
}

/** A range around numbers, with room at both ends. */
export function rangeAround(numbers: readonly number[], log: boolean): Pick<Axis, "low" | "high"> {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (log) return { low: low / 1.2, high: high * 1.2 };
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  return { low: low - room, high: high + room };
}

export function drawAxes(x: Axis, y: Axis): readonly string[] {
  const bottom = plot.top + plot.height;
  const right = width - plot.right;
  const ticksOf = ({ low, high, log }: Axis): readonly number[] =>
    log ? logTicks(low, high) : evenTicks(low, high);
  const print = (axis: Axis, at: number): string => (axis.print ?? shortNumber)(at);
  const across = ticksOf(x).flatMap((at) => [
    line(
      [
        [placeX(x, at), plot.top],
        [placeX(x, at), bottom],
      ],
      "#eceff2",
    ),
    text(
      { x: placeX(x, at), y: bottom + 16, size: 11, anchor: "middle", fill: colours.faint },
      print(x, at),
    ),
  ]);
  const up = ticksOf(y).flatMap((at) => [
    line(
      [
        [plot.left, placeY(y, at)],
        [right, placeY(y, at)],
      ],
      "#eceff2",
    ),
    text(
      { x: plot.left - 6, y: placeY(y, at) + 4, size: 11, anchor: "end", fill: colours.faint },
      print(y, at),
    ),
  ]);
  return [
    ...across,
    ...up,
    line(
      [
        [plot.left, plot.top],
        [plot.left, bottom],
        [right, bottom],
      ],
      colours.faint,
    ),
    text({ x: (plot.left + right) / 2, y: bottom + 38, anchor: "middle" }, x.name),
    text({ x: 16, y: plot.top - 10 }, y.name),
  ];
}
