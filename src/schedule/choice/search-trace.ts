/**
 * What a search knew after how much work: each time that its solution or its bound became better. In: snapshots as a
 * solver gives them. Out: few points, the first and the last among them; work is counted, so that the same search
 * gives the same points everywhere.
 */
import type { Snapshot } from "../../search/outcome.ts";

export interface TracePoint {
  readonly work: number;
  /** Null without a solution, and without a bound. */
  readonly objective: number | null;
  readonly bound: number | null;
}

const mostPoints = 96;

export class SearchTrace {
  #points: TracePoint[] = [];

  observe({ work, objective, bound }: Snapshot): void {
    const point = { work, objective: objective ?? null, bound: finite(bound) };
    // Of what happened at one time the last counts.
    if (this.#points.at(-1)?.work === work) this.#points.pop();
    this.#points.push(point);
  }

  points(): readonly TracePoint[] {
    const all = this.#points;
    if (all.length <= mostPoints) return all;
    const step = (all.length - 1) / (mostPoints - 1);
    return Array.from({ length: mostPoints }, (_, i) => all[Math.round(i * step)]!);
  }
}

function finite(x: number): number | null {
  return Number.isFinite(x) ? x : null;
}
