/**
 * Visits the points of a system along the coordinates that lattice-plan.ts chooses, or counts them. Where
 * some coordinates only have to exist, the first values that do are enough; long runs of values that
 * have no point are jumped over by asking the solver for the next that has one.
 */
import type { LatticePlan } from "./lattice-plan.ts";
import { findPoint } from "./omega.ts";
import { minimumOfRow } from "./optimum.ts";
import { evaluateRow, floorDiv, type Row, unitRow } from "./row.ts";
import { GiveUp, type Work } from "./work.ts";

/** Values without a point, one after another, before the solver is asked; twice as many if it does not know. */
const fewMisses = 64;
/** Work units of such a question. */
const jumpWork = 5000;

/**
 * Calls `visit` with every point, more than once where the plan is not `distinct`; the array is reused.
 * Each step costs one unit. Gives up as "unbounded" where a coordinate has no end.
 */
export function walkLattice(
  plan: LatticePlan,
  work: Work,
  visit: (values: readonly number[]) => void,
): void {
  const { images, visible } = plan;
  const values = new Array<number>(images.length).fill(0);
  const last = visible - 1;
  new Descent(plan, work).forEachRun((at, low, high) => {
    work.spend(high - low);
    for (let v = low; v <= high; v++) {
      if (last >= 0) at[last] = v + 0;
      for (let d = 0; d < images.length; d++) values[d] = evaluateRow(images[d]!, at) + 0;
      visit(values);
    }
  });
}

/** The number of points of a plan that is `distinct`. */
export function countLattice(plan: LatticePlan, work: Work): bigint {
  let count = 0n;
  new Descent(plan, work).forEachRun((_, low, high) => {
    count += BigInt(high - low + 1);
  });
  return count;
}

/** Takes the values of the visible coordinates up to the last one, and those of that from `low` to `high`. */
type RunVisitor = (at: number[], low: number, high: number) => void;

class Descent {
  readonly #plan: LatticePlan;
  readonly #work: Work;
  readonly #at: number[];

  constructor(plan: LatticePlan, work: Work) {
    this.#plan = plan;
    this.#work = work;
    this.#at = new Array<number>(plan.size).fill(0);
  }

  forEachRun(visit: RunVisitor): void {
    this.#descend(0, visit);
  }

  /** Whether there was a point. */
  #descend(depth: number, visit: RunVisitor): boolean {
    this.#work.spend(1);
    const { size, visible } = this.#plan;
    const at = this.#at;
    if (depth === visible) {
      const found = this.#exists(depth);
      if (found) visit(at, at[depth - 1] ?? 0, at[depth - 1] ?? 0);
      at.fill(0, depth);
      return found;
    }
    const [low, high] = this.#interval(depth);
    if (low === -Infinity || high === Infinity) throw new GiveUp("unbounded");
    if (low > high) return false;
    if (depth === size - 1) {
      visit(at, low, high);
      at[depth] = 0;
      return true;
    }
    let misses = 0;
    let enough = fewMisses;
    let any = false;
    for (let v = low; v <= high; v++) {
      at[depth] = v + 0;
      const found = this.#descend(depth + 1, visit);
      any ||= found;
      misses = found ? 0 : misses + 1;
      if (misses < enough) continue;
      const next = this.#next(depth, v + 1);
      if (next === undefined) enough *= 2;
      else v = next - 1;
      misses = 0;
    }
    at[depth] = 0;
    return any;
  }

  /** Whether the coordinates from `depth` on have values; leaves some in place. */
  #exists(depth: number): boolean {
    if (depth === this.#plan.size) return true;
    const [low, high] = this.#interval(depth);
    if (low === -Infinity || high === Infinity) return this.#isInhabited(depth);
    for (let v = low; v <= high; v++) {
      this.#work.spend(1);
      this.#at[depth] = v + 0;
      if (this.#exists(depth + 1)) return true;
    }
    this.#at[depth] = 0;
    return false;
  }

  #isInhabited(depth: number): boolean {
    const { size, rows } = this.#plan;
    return findPoint(this.#pins(depth), rows, size, this.#work) !== null;
  }

  /** The coordinates before `depth` as they are. */
  #pins(depth: number): number[][] {
    return this.#at.slice(0, depth).map((v, c) => {
      const row = unitRow(this.#plan.size + 1, c);
      row[this.#plan.size] = 0 - v;
      return row;
    });
  }

  /** The least value from `first` on with a point; infinite where there is none; undefined where unknown. */
  #next(depth: number, first: number): number | undefined {
    const { size, rows } = this.#plan;
    const own = unitRow(size + 1, depth);
    const bound = own.with(size, 0 - first);
    const system = {
      fixed: size,
      locals: [],
      equalities: this.#pins(depth),
      inequalities: [...(rows as number[][]), bound],
    };
    let next: number | undefined;
    this.#work.attempt(jumpWork, (work) => {
      const least = minimumOfRow(system, own, work);
      next = least.kind === "value" ? least.value : Infinity;
    });
    return next;
  }

  /** What the rows leave of a coordinate, those before it given. */
  #interval(depth: number): [number, number] {
    let low = -Infinity;
    let high = Infinity;
    for (const row of this.#plan.levels[depth]!) {
      const c = row[depth]!;
      const bound = boundOf(row, depth, this.#at);
      if (c > 0) low = Math.max(low, bound);
      else high = Math.min(high, bound);
    }
    return [low, high];
  }
}

/** What c * coordinate + rest >= 0 says of the coordinate; beyond what can be represented, nothing. */
function boundOf(row: Row, depth: number, at: readonly number[]): number {
  const c = row[depth]!;
  let rest = row[row.length - 1]!;
  let size = Math.abs(rest);
  for (let k = 0; k < depth; k++) {
    const term = row[k]! * at[k]!;
    rest += term;
    size += Math.abs(term);
  }
  if (size <= Number.MAX_SAFE_INTEGER) return c > 0 ? -floorDiv(rest, c) : floorDiv(rest, -c);
  let exact = BigInt(row[row.length - 1]!);
  for (let k = 0; k < depth; k++) exact += BigInt(row[k]!) * BigInt(at[k]!);
  const bound = Number(c > 0 ? -bigFloorDiv(exact, BigInt(c)) : bigFloorDiv(exact, BigInt(-c)));
  if (Math.abs(bound) <= Number.MAX_SAFE_INTEGER) return bound;
  if (bound > 0 === c > 0) throw new GiveUp("overflow");
  return c > 0 ? -Number.MAX_SAFE_INTEGER : Number.MAX_SAFE_INTEGER;
}

function bigFloorDiv(a: bigint, b: bigint): bigint {
  const rest = a % b;
  return (a - (rest < 0n ? rest + b : rest)) / b;
}
