/**
 * A time that no tile can stay below, from products of extents alone: what its arithmetic, its sums one
 * after another and one load of every operand a step take. In: figures of a statement, the loops of its
 * tile and its reduction. Out: nanoseconds that nest-price.ts's exact figure never falls below, at a
 * fraction of its cost, so that most tiles need not be priced to be passed over.
 */
import type { LoopFigures, NestFigures } from "../schedule/nest-figures.ts";
import type { CoreFigures } from "./core-figures.ts";

/** The exact price is summed in another order: the last bits of both may differ. */
const roundings = 1 - 1e-9;

/** What a statement's points take, whatever the tile. */
export interface PointWork {
  /** Arithmetic of one vector of points, in each step of a reduction; of dot products apart. */
  readonly arithmetic: number;
  readonly dotArithmetic: number;
  /** Arithmetic and stores once per vector of results. */
  readonly finish: number;
  readonly writes: number;
  readonly reads: number;
  /** Iterations of all space loops. */
  readonly points: number;
}

export function pointWork(
  figures: NestFigures,
  { callFactor }: CoreFigures,
  isFused: boolean,
): PointWork {
  const { combine, reduces, isProduct, loops, accesses } = figures;
  const body = figures.body + figures.bodyCalls * (callFactor - 1);
  const product = body - 1 + (isFused ? 1 : 2);
  const folded = isProduct ? product : body + combine;
  const count = (use: string): number => accesses.filter((a) => a.use === use).length;
  return {
    arithmetic: reduces ? folded : body,
    dotArithmetic: isProduct ? 1 : folded,
    finish: figures.finish + figures.finishCalls * (callFactor - 1),
    writes: count("write"),
    reads: count("read"),
    points: loops.reduce((n, l) => (l.kind === "reduce" ? n : n * l.extent), 1),
  };
}

export function leastTileNs(
  figures: NestFigures,
  work: PointWork,
  { micro, core: c }: { readonly micro: readonly LoopFigures[]; readonly core: CoreFigures },
): number {
  let lanes = 1;
  let copies = 1;
  let trips = 1;
  let width = 1;
  let isInLanes = false;
  for (const l of micro) {
    const isReduce = figures.loops[l.origin]!.kind === "reduce";
    if (isReduce) {
      if (l.mode === "vector") isInLanes = true;
      else if (l.mode === "unroll") copies *= l.trips;
      else trips *= l.trips;
    } else {
      width *= l.trips;
      if (l.mode === "vector") lanes *= l.trips;
    }
  }
  // Ragged ends have more tiles, of fewer points.
  const tiles = work.points / width;
  const vectors = work.points / lanes;
  const each = isInLanes && lanes > 1 ? work.dotArithmetic : work.arithmetic;
  const ends = Math.max(
    (vectors * work.finish) / c.arithmeticPerNs,
    (vectors * work.writes) / c.storesPerNs,
    (vectors * (work.finish + work.writes)) / c.issuePerNs,
  );
  const steps = trips * tiles;
  const arithmetic = trips * copies * vectors * each;
  const loads = steps * work.reads;
  const inside = Math.max(
    arithmetic / c.arithmeticPerNs,
    loads / c.loadsPerNs,
    (arithmetic + loads) / c.issuePerNs,
  );
  if (!figures.reduces) return roundings * Math.max(ends, inside);
  const chained = figures.combine > 0 ? steps * copies * c.latencyNs : 0;
  return roundings * (Math.max(inside, chained) + ends + tiles * c.latencyNs);
}
