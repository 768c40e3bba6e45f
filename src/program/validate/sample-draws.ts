/** Values of variables at the points where facts are tried before they are proved. */
import { Rng } from "../../support/rng.ts";

/** Points that are tried; those that refuted something join them. */
export const sampleCount = 14;

/** Draws of samples, by sample and number of the name: every scope of every program asks for the same. */
const draws: Draw[][] = [];

interface Draw {
  /** An end of the range (0, 2: the lower, 1, 3: the upper), or how far beyond the lower one (4: near, 5: far). */
  readonly way: number;
  /** In [0, 1). */
  readonly share: number;
}

function drawOf(sample: number, name: number): Draw {
  const drawn = draws[sample] ?? [];
  draws[sample] = drawn;
  const known = drawn[name];
  if (known) return known;
  const spread = new Rng(1000 * name + sample);
  const way = sample < 2 ? sample : spread.integer(0, 5);
  const draw = { way, share: spread.uniform() };
  drawn[name] = draw;
  return draw;
}

/** The ends of the range often, something between else; deterministic and different for each name. */
export function chosenValue(sample: number, name: number, min: number, max: number): number {
  const { way, share } = drawOf(sample, name);
  if (way === 0 || way === 2) return min;
  if (way === 1 || way === 3) return Number.isSafeInteger(max) ? max : min + 999;
  const most = Math.min(max, min + (way === 4 ? 30 : 4095));
  return min + Math.floor(share * (most - min + 1));
}
