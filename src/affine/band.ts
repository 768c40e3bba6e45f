/**
 * What schedulers ask about dependences: distance and direction vectors in the original dimensions,
 * and for a band of time dimensions whether it is permutable (every dependence not carried outside
 * has steps >= 0 in all of its dimensions, so that it may be tiled rectangularly) and which of its
 * dimensions are coincident (all steps 0, so that they may run in parallel).
 */
import type { Dependence } from "./dependence.ts";
import { isProvedCoincident, isProvedForward } from "./distance.ts";
import type { LegalityOptions, TimeSchedule } from "./legality.ts";
import { findPoint } from "./omega.ts";
import { minimumOfRow, negated } from "./optimum.ts";
import { toSystem } from "./piece.ts";
import { combine, negateRow, type Row } from "./row.ts";
import { type TimedPairs, timedPairs } from "./timed-pairs.ts";
import { type Answer, answer, decide, type Truth, type Work } from "./work.ts";

/** The sink's minus the source's value of one dimension: the range over all pairs. */
export interface Distance {
  /** -Infinity when unbounded below. */
  readonly least: number;
  /** Infinity when unbounded above. */
  readonly greatest: number;
}

/** `<` positive, `=` zero, `>` negative distance, in the tradition of dependence analysis. */
export type Direction = "<" | "=" | ">" | "<=" | ">=" | "*";

/**
 * Distances per dimension of a dependence between tuples of equal length (dimension by dimension,
 * up to the shorter length otherwise), over all parameter values; null when it has no pairs.
 */
export function distanceVector(
  dependence: Dependence,
  limit?: number,
): Answer<readonly Distance[] | null> {
  return answer((work) => distancesOf(dependence, work), limit);
}

function distancesOf(dependence: Dependence, work: Work): Distance[] | null {
  const { params, pieces } = dependence.relation;
  let out: Distance[] | null = null;
  for (const piece of pieces) {
    const system = toSystem(params, piece);
    const inputs = piece.input!.dims.length;
    const depth = Math.min(inputs, piece.output.dims.length);
    const one: Distance[] = [];
    for (let i = 0; i < depth; i++) {
      const row = new Array<number>(system.fixed + system.locals.length + 1).fill(0);
      row[params.length + i] = -1;
      row[params.length + inputs + i] = 1;
      const least = minimumOfRow(system, row, work);
      if (least.kind === "empty") break;
      const greatest = negated(minimumOfRow(system, negateRow(row), work));
      one.push({
        least: least.kind === "value" ? least.value : -Infinity,
        greatest: greatest.kind === "value" ? greatest.value : Infinity,
      });
    }
    if (one.length < depth) continue;
    out = out ? out.map((d, i) => join(d, one[i]!)) : one;
  }
  return out;
}

function join(a: Distance, b: Distance): Distance {
  return { least: Math.min(a.least, b.least), greatest: Math.max(a.greatest, b.greatest) };
}

export function directionOf({ least, greatest }: Distance): Direction {
  if (least > 0) return "<";
  if (greatest < 0) return ">";
  if (least === 0) return greatest === 0 ? "=" : "<=";
  return greatest === 0 ? ">=" : "*";
}

/** Time dimensions first … first + count - 1. */
export interface BandRange {
  readonly first: number;
  readonly count: number;
}

export interface BandProperties {
  readonly permutable: Truth;
  /** One entry a dimension of the band. */
  readonly coincident: readonly Truth[];
}

/** The properties of a band under a schedule; reassociable dependences do not count. */
export function bandProperties(
  schedule: TimeSchedule,
  dependences: readonly Dependence[],
  band: BandRange,
  options: LegalityOptions = {},
): BandProperties {
  const counted = dependences.filter((d) => !d.reassociable);
  const pairs = counted.map((d) => timedPairs(schedule.times, d, options.context));
  const all = pairs.every((p) => p !== undefined) ? pairs.flat() : undefined;
  const every = (holds: (p: TimedPairs, work: Work) => boolean): Truth =>
    all ? decide((work) => all.every((p) => holds(p, work)), options.limit) : "unknown";
  const positions = Array.from({ length: band.count }, (_, i) => band.first + i);
  return {
    permutable: every((p, work) => positions.every((k) => isForward(p, band.first, k, work))),
    coincident: positions.map((k) => every((p, work) => isCoincident(p, band.first, k, work))),
  };
}

/** Whether all pairs tied before the band have a step of at least 0 at dimension k. */
function isForward(pairs: TimedPairs, first: number, k: number, work: Work): boolean {
  if (isProvedForward(pairs, first, k)) return true;
  const step = stepRow(pairs, k);
  return !hasTied(pairs, first, [below(negateRow(step))], work);
}

function isCoincident(pairs: TimedPairs, first: number, k: number, work: Work): boolean {
  if (isProvedCoincident(pairs, first, k)) return true;
  const step = stepRow(pairs, k);
  return (
    !hasTied(pairs, first, [below(negateRow(step))], work) &&
    !hasTied(pairs, first, [below(step)], work)
  );
}

function stepRow(pairs: TimedPairs, k: number): number[] {
  const width = pairs.columns + 1;
  const sink = pairs.sinkTime[k] ?? new Array<number>(width).fill(0);
  const source = pairs.sourceTime[k] ?? new Array<number>(width).fill(0);
  return combine(1, sink, -1, source, "value");
}

/** row >= 0 made strict: row - 1 >= 0. */
function below(row: Row): number[] {
  const out = row.slice();
  out[out.length - 1]! -= 1;
  return out;
}

function hasTied(pairs: TimedPairs, first: number, extra: readonly Row[], work: Work): boolean {
  const tied = Array.from({ length: Math.min(first, pairs.depth) }, (_, k) => stepRow(pairs, k));
  const equalities = [...pairs.equalities, ...tied];
  return findPoint(equalities, [...pairs.inequalities, ...extra], pairs.columns, work) !== null;
}
