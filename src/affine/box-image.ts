/**
 * How many different values step_1 * i_1 + step_2 * i_2 + … takes for 0 <= i_k < trips_k: the footprint
 * of a tile along one axis, in closed form. Cost models ask this for thousands of tiles, so no set is
 * built; count.ts counts any set and is what the tests compare with.
 *
 * Terms are taken by rising step. So far the values are equal runs at equal distances: a step that is a
 * multiple of the distance and no longer than the row of runs makes the row longer, one beyond the
 * largest value repeats all of it. Anything else interleaves, and is counted by listing while it is
 * small; beyond that `count` is the smaller of two upper bounds.
 */
import { gcd } from "./row.ts";

/** Points that interleaved terms may have to be listed. */
const mostListed = 256;

export class BoxImage {
  readonly #steps: number[] = [];
  readonly #trips: number[] = [];
  /** Terms in use: the lists are kept for the next ones, prices count millions. */
  #terms = 0;
  /** The largest value: that of the last trips, since steps are positive. */
  #largest = 0;

  clear(): void {
    this.#terms = 0;
    this.#largest = 0;
  }

  /** One more term; its sign does not matter for how many values there are. */
  add(step: number, trips: number): void {
    const distance = Math.abs(step);
    if (distance === 0 || trips <= 1) return;
    let at = this.#terms++;
    for (; at > 0 && this.#steps[at - 1]! > distance; at--) {
      this.#steps[at] = this.#steps[at - 1]!;
      this.#trips[at] = this.#trips[at - 1]!;
    }
    this.#steps[at] = distance;
    this.#trips[at] = trips;
    this.#largest += distance * (trips - 1);
  }

  /** Values from the smallest to the largest, those between included; of floor(value / divisor). */
  span(divisor = 1): number {
    return Math.floor(this.#largest / divisor) + 1;
  }

  /** Different values of floor(value / divisor); for a divisor at most so many. */
  count(divisor = 1): number {
    const values = this.#values();
    return divisor === 1 ? values : Math.min(values, this.span(divisor));
  }

  #values(): number {
    const terms = this.#terms;
    if (terms === 0) return 1;
    let distance = this.#steps[0]!;
    let length = this.#trips[0]!;
    let inRun = 1;
    let largest = distance * (length - 1);
    for (let k = 1; k < terms; k++) {
      const step = this.#steps[k]!;
      const trips = this.#trips[k]!;
      const apart = step / distance;
      if (apart <= length && Number.isInteger(apart)) length += apart * (trips - 1);
      else if (step > largest) {
        inRun *= length;
        distance = step;
        length = trips;
      } else return this.#interleaved();
      largest += step * (trips - 1);
    }
    return inRun * length;
  }

  #interleaved(): number {
    const steps = this.#steps.slice(0, this.#terms);
    const trips = this.#trips.slice(0, this.#terms);
    const points = trips.reduce((n, t) => n * t, 1);
    const divisor = steps.reduce(gcd);
    if (points > mostListed) return Math.min(points, Math.floor(this.#largest / divisor) + 1);
    let values = new Set([0]);
    steps.forEach((step, k) => {
      const next = new Set<number>();
      for (const v of values) for (let i = 0; i < trips[k]!; i++) next.add(v + step * i);
      values = next;
    });
    return values.size;
  }
}
