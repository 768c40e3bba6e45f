/**
 * States of a region drawn uniformly by a seed from all that the hard constraints allow: for measuring
 * how well prices rank, for calibration, and for tests that every state is legal and means the same.
 */
import type { Region } from "../../region/nest.ts";
import type { Rng } from "../../support/rng.ts";
import type { Target } from "../../target/target.ts";
import type { Schedule } from "../directive.ts";
import type { TileChoice } from "./tile-choice.ts";
import { TileSpace } from "./tile-space.ts";

export interface DrawnState {
  readonly choice: TileChoice;
  readonly schedule: Schedule;
}

export interface DrawOptions {
  readonly count: number;
  readonly rng: Rng;
  readonly parallel: boolean;
  /** Only states that use the lanes, where any do: the others are dominated. */
  readonly inLanes: boolean;
}

/** At most `count` different states; all of them where there are no more, or the loops as they stand. */
export function drawStates(
  region: Region,
  target: Target,
  { count, rng, parallel, inLanes }: DrawOptions,
): readonly DrawnState[] {
  if (!TileSpace.applies(region)) return [];
  const space = new TileSpace(region, target, { parallel });
  const tiles = space.microTiles();
  const wide = tiles.filter((t) => t.lane !== undefined || t.reduceLane !== undefined);
  const micros = inLanes && wide.length > 0 ? wide : tiles;
  const outer = micros.map((m) => space.outerChoices(m));
  const ends: number[] = [];
  let total = 0;
  for (const choices of outer) {
    total += choices.length;
    ends.push(total);
  }
  const numbers = drawNumbers(total, count, rng);
  return numbers.map((n) => {
    const at = ends.findIndex((end) => n < end);
    const start = at === 0 ? 0 : ends[at - 1]!;
    const choice: TileChoice = { ...micros[at]!, ...outer[at]![n - start]! };
    const directives = space.speller.directives(choice);
    return { choice, schedule: { region: region.name, target: target.name, directives } };
  });
}

/** Different numbers below `total`, in the order in which they were drawn. */
function drawNumbers(total: number, count: number, rng: Rng): readonly number[] {
  if (total <= count) return Array.from({ length: total }, (_, i) => i);
  const drawn = new Set<number>();
  while (drawn.size < count) drawn.add(rng.integer(0, total - 1));
  return [...drawn];
}
