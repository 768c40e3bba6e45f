/**
 * How a search closed its gap: the best solution and the best bound against the work done, in table entries
 * touched, which are the same on every machine. In: points in order. Out: two stairs that meet, or do not.
 */
import { decadesAround, drawAxes, placeX, placeY, plotHeight, rangeAround } from "./axes.ts";
import { caption, colours, legend, line, page } from "./svg.ts";

/** What was known after so much work; without a solution the objective is null, without a bound the bound is. */
export interface TracePoint {
  readonly work: number;
  readonly objective: number | null;
  readonly bound: number | null;
}

export interface GapFigures {
  readonly name: string;
  readonly unit: string;
  readonly points: readonly TracePoint[];
}

/** Undefined where there is nothing to draw: a search without a solution, or without a bound. */
export function gapPicture({ name, unit, points }: GapFigures): string | undefined {
  const known = points.flatMap((p) => [p.objective, p.bound].filter((v) => v !== null));
  const last = points.at(-1);
  if (!last || last.objective === null || last.bound === null) return undefined;
  const works = points.map((p) => Math.max(1, p.work));
  const x = { ...decadesAround(works), log: true, name: "work: table entries touched" };
  const y = { ...rangeAround(known, false), log: false, name: unit };
  const stairs = (of: "objective" | "bound"): readonly (readonly [number, number])[] => {
    const found: (readonly [number, number])[] = [];
    for (const [i, p] of points.entries()) {
      const v = p[of];
      if (v === null) continue;
      const at = placeX(x, works[i]!);
      const before = found.at(-1);
      if (before) found.push([at, before[1]]);
      found.push([at, placeY(y, v)]);
    }
    return [...found, [placeX(x, x.high), found.at(-1)![1]]];
  };
  const gap = (last.objective - last.bound) / Math.max(1e-12, Math.abs(last.objective));
  const proof = gap <= 0 ? "proven the best" : `gap ${(100 * gap).toPrecision(2)} %`;
  const at = new Set(works).size === 1 ? ", found and bounded in one step" : "";
  return page(`solution and bound over work: ${name}`, plotHeight, [
    caption(`${proof} after ${last.work} entries${at}`),
    ...legend(
      [
        { name: "best solution", colour: colours.taken },
        { name: "no solution is cheaper", colour: colours.left },
      ],
      52,
    ),
    ...drawAxes(x, y),
    line(stairs("objective"), colours.taken, 7),
    line(stairs("bound"), colours.left, 2),
  ]);
}
