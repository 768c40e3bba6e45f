/** Where a schedule cuts loops: what a check by samples has to look at from both sides. */
import type { Schedule } from "../directive.ts";

export interface TileFactor {
  readonly statement: string;
  /** A loop of the statement as it was before the schedule. */
  readonly loop: string;
  readonly factor: number;
}

/** Sizes of all tiles in points of the original loops; tiles of tiles are products. */
export function tileFactors(schedule: Schedule): readonly TileFactor[] {
  const origins = new Map<string, { readonly loop: string; readonly step: number }>();
  const found: TileFactor[] = [];
  const cut = (
    statement: string,
    by: { loop: string; factor: number; outer: string; inner: string },
  ) => {
    const origin = origins.get(`${statement}:${by.loop}`) ?? { loop: by.loop, step: 1 };
    const factor = origin.step * by.factor;
    found.push({ statement, loop: origin.loop, factor });
    origins.set(`${statement}:${by.outer}`, { loop: origin.loop, step: factor });
    origins.set(`${statement}:${by.inner}`, origin);
  };
  for (const d of schedule.directives) {
    if (d.kind === "split") cut(d.statement, d);
    if (d.kind !== "tile") continue;
    for (const [i, loop] of d.loops.entries()) {
      const by = { loop, factor: d.factors[i]!, outer: d.outer[i]!, inner: d.inner[i]! };
      cut(d.statement, by);
    }
  }
  return found;
}
