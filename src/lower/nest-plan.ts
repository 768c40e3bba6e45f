/**
 * What the parts of a scheduled statement are for the lowering: outer loops around the tile, the tile
 * that is kept in registers (or in local memory), and the loops of the reduction.
 */
import type { Access, Write } from "../region/nest.ts";
import { type Interleaved, interleavedIn } from "../schedule/blocks/interleaved.ts";
import {
  isSpread,
  type ScheduledLoop,
  type ScheduledStatement,
} from "../schedule/scheduled-region.ts";
import type { Condition } from "../semantics/condition.ts";
import { constantValue } from "../semantics/index-expr.ts";
import type { Monoid } from "../semantics/monoids.ts";
import type { ScalarExpr } from "../semantics/scalar-expr.ts";
import type { LaneLoop } from "./operands.ts";

export interface NestPlan {
  readonly scheduled: ScheduledStatement;
  /** Serial, grid and scan loops outside the first reduce loop, in order. */
  readonly outer: readonly ScheduledLoop[];
  /** Unrolled, vector and local space loops: every point of them is live during the reduction. */
  readonly tile: readonly ScheduledLoop[];
  readonly reduce: readonly ScheduledLoop[];
  readonly spaceLane: LaneLoop | undefined;
  readonly reduceLane: LaneLoop | undefined;
  /** Conditions of the domain: ragged splits and the statement's own guard. */
  readonly domain: readonly Condition[];
  /** Accesses that share vectors with others, where blocks of threads load and store them. */
  readonly interleaved: ReadonlyMap<Access | Write, Interleaved>;
}

export function planNest(
  scheduled: ScheduledStatement,
  domain: readonly Condition[],
  onBlocks: boolean,
): NestPlan {
  const { loops } = scheduled;
  const first = loops.findIndex((l) => l.kind === "reduce");
  const isTile = (l: ScheduledLoop, at: number): boolean =>
    l.kind === "space" &&
    (l.mode === "unroll" || l.mode === "vector" || (first >= 0 && at > first && !isSpread(l)));
  const laneOf = (isReduce: boolean): LaneLoop | undefined => {
    const vector = loops.find((l) => l.mode === "vector" && (l.kind === "reduce") === isReduce);
    return vector && { name: vector.name, lanes: constantValue(vector.extent)! };
  };
  const spaceLane = laneOf(false);
  return {
    scheduled,
    outer: loops.filter((l, at) => l.kind !== "reduce" && !isTile(l, at)),
    tile: loops.filter(isTile),
    reduce: loops.filter((l) => l.kind === "reduce"),
    spaceLane,
    reduceLane: laneOf(true),
    domain,
    interleaved: onBlocks ? interleavedIn(scheduled) : new Map(),
  };
}

/** Tile loops that run as loops over local memory instead of being copied out. */
export function isLocalLoop(loop: ScheduledLoop): boolean {
  return loop.mode === "serial";
}

/**
 * Whether a reduction may skip the points where read `index` has its fill value: the body is then the
 * monoid's identity (0 * w in a sum, the identity itself). Needs w finite, as padding in frameworks does.
 */
export function fillIsIdentity(
  body: ScalarExpr,
  index: number,
  fill: number | bigint,
  monoid: Monoid,
): boolean {
  if (monoid.components.length !== 1) return false;
  if (body.kind === "argument") {
    if (body.index !== index) return false;
    if (monoid.name === "sum") return Number(fill) === 0;
    const identity = monoid.identity[0]!;
    return identity.kind === "literal" && identity.value === fill;
  }
  if (monoid.name !== "sum" || Number(fill) !== 0) return false;
  if (body.kind === "cast") return fillIsIdentity(body.operand, index, fill, monoid);
  return (
    body.kind === "apply" &&
    body.op === "mul" &&
    body.operands.some((o) => fillIsIdentity(o, index, fill, monoid))
  );
}
