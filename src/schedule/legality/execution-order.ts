/**
 * The order in which a scheduled region really runs, which is what legality and the schedule tree
 * speak about. It differs from the list of loops in two ways. A statement with a reduction runs its
 * outer loops, then the reduction, then inside it the tile: space loops that are unrolled, in lanes or
 * below the first reduce loop, all of whose points are live at once. And a fused statement stands
 * before or after the rest of its host at a depth, by the order of the region.
 *
 * Every executed loop is given as an integer expression of the statement's original variables
 * (loop = outer * factor + inner, so outer = floor(loop / factor) and inner the remainder).
 */
import * as affine from "../../affine/index.ts";
import { variablesOf } from "../../semantics/index-expr.ts";
import { reject } from "../../support/diagnostic.ts";
import { invariant } from "../../support/invariant.ts";
import type { Schedule } from "../directive.ts";
import {
  type FusedStatement,
  findScheduled,
  isSpread,
  type ScheduledLoop,
  type ScheduledRegion,
  type ScheduledStatement,
} from "../scheduled-region.ts";

export interface ExecutedStatement {
  readonly scheduled: ScheduledStatement;
  /** The statement whose kernel it runs in, and the place of that kernel among the region's. */
  readonly root: string;
  readonly kernel: number;
  readonly outer: readonly ScheduledLoop[];
  readonly reduce: readonly ScheduledLoop[];
  /** All points at once; the vector loop last. */
  readonly tile: readonly ScheduledLoop[];
  /** `positions[d]`: its place among what runs side by side inside d outer loops. */
  readonly positions: readonly number[];
  /** Loop value in terms of the original loop variables. */
  readonly values: ReadonlyMap<string, affine.Affine>;
}

/**
 * When each statement runs, in the order of the region. Rejects (SCH010) fusion at a place that has
 * no loop of its own in the lowered nest, and (SCH036) extents that depend on loops further inside.
 */
export function executionOrder(region: ScheduledRegion): readonly ExecutedStatement[] {
  const parts = new Map(region.statements.map((s) => [s.statement.name, partLoops(s)]));
  for (const fused of region.fused) checkFusedLoops(region, fused, parts);
  const places = placeStatements(region, parts);
  return region.statements.map((scheduled) => {
    const { name } = scheduled.statement;
    const place = places.get(name);
    if (!place) {
      return reject("SCH010", `${name} is fused where its host does not run`, {
        at: `fuse ${name} in region ${region.region.name}`,
        help: "fuse into a statement that runs by itself, no less deep than the host is fused",
      });
    }
    let values: ReadonlyMap<string, affine.Affine> | undefined;
    const executed: ExecutedStatement = {
      scheduled,
      ...place,
      ...parts.get(name)!,
      // Made when asked for: most regions are judged by the class they are in.
      get values() {
        values ??= loopValues(scheduled, region.schedule);
        return values;
      },
    };
    checkExtents(region, executed);
    return executed;
  });
}

/** The loops in the order in which they run. */
export function executedLoops(s: ExecutedStatement): readonly ScheduledLoop[] {
  return [...s.outer, ...s.reduce, ...s.tile];
}

type Parts = Pick<ExecutedStatement, "outer" | "reduce" | "tile">;

function partLoops({ loops }: ScheduledStatement): Parts {
  const first = loops.findIndex((l) => l.kind === "reduce");
  const isTile = (l: ScheduledLoop, at: number): boolean =>
    l.kind === "space" &&
    (l.mode === "unroll" || l.mode === "vector" || (first >= 0 && at > first && !isSpread(l)));
  const tile = loops.filter(isTile);
  return {
    outer: loops.filter((l, at) => l.kind !== "reduce" && !isTile(l, at)),
    reduce: loops.filter((l) => l.kind === "reduce"),
    tile: [...tile.filter((l) => l.mode !== "vector"), ...tile.filter((l) => l.mode === "vector")],
  };
}

/** The shared loops must be outer loops of both, in their order. */
function checkFusedLoops(
  region: ScheduledRegion,
  { statement, into, depth }: FusedStatement,
  parts: ReadonlyMap<string, Parts>,
): void {
  for (const name of [statement, into]) {
    const { loops } = findScheduled(region, name);
    const { outer } = parts.get(name)!;
    const inner = loops.slice(0, depth).find((l, at) => outer[at] !== l);
    if (inner) {
      reject("SCH010", `loop ${inner.name} of ${name} is inside a reduction or a register tile`, {
        at: `fuse ${statement} into ${into}`,
        help: "fuse at a serial or grid loop outside the reduction, the unrolled and the vector loops",
      });
    }
  }
}

type Placement = Pick<ExecutedStatement, "root" | "kernel" | "positions">;

function placeStatements(
  region: ScheduledRegion,
  parts: ReadonlyMap<string, Parts>,
): ReadonlyMap<string, Placement> {
  const order = region.region.statements.map((s) => s.name);
  const guests = new Set(region.fused.map((f) => f.statement));
  const places = new Map<string, Placement>();
  /** What runs one after another inside `depth` loops of `host`, the host's own rest among it. */
  const sideBySide = (host: string, depth: number): readonly string[] => {
    const here = region.fused.filter((f) => f.into === host && f.depth === depth);
    const isBefore = (f: FusedStatement): boolean =>
      order.indexOf(f.statement) < order.indexOf(host);
    const spread = (list: readonly FusedStatement[]): readonly string[] =>
      list.flatMap((f) => sideBySide(f.statement, depth));
    return [...spread(here.filter(isBefore)), host, ...spread(here.filter((f) => !isBefore(f)))];
  };
  const roots = order.filter((name) => !guests.has(name));
  roots.forEach((root, kernel) => {
    const follow = (name: string, start: readonly number[]): void => {
      const positions = [...start];
      for (let depth = start.length; depth <= parts.get(name)!.outer.length; depth++) {
        const list = sideBySide(name, depth);
        list.forEach((other, at) => {
          if (other !== name) follow(other, [...positions, at]);
        });
        positions.push(list.indexOf(name));
      }
      places.set(name, { root, kernel, positions });
    };
    sideBySide(root, 0).forEach((name, at) => {
      follow(name, [at]);
    });
  });
  return places;
}

/** Replays the splits: each loop that stands at the end, over the original variables. */
function loopValues(
  { statement, loops }: ScheduledStatement,
  schedule: Schedule,
): ReadonlyMap<string, affine.Affine> {
  const values = new Map(statement.loops.map((l) => [l.name, affine.affine(l.name)]));
  const split = (loop: string, factor: number, names: readonly [string, string]): void => {
    const value = values.get(loop);
    invariant(value, () => `no loop ${loop} of ${statement.name} to split`);
    values.delete(loop);
    values.set(names[0], affine.floorDivide(value, factor));
    values.set(names[1], affine.remainder(value, factor));
  };
  for (const d of schedule.directives) {
    if ((d.kind === "split" || d.kind === "jam") && d.statement === statement.name) {
      split(d.loop, d.factor, [d.outer, d.inner]);
    } else if (d.kind === "tile" && d.statement === statement.name) {
      d.loops.forEach((loop, i) => {
        split(loop, d.factors[i]!, [d.outer[i]!, d.inner[i]!]);
      });
    }
  }
  const missing = loops.find((l) => !values.has(l.name));
  invariant(!missing, () => `loop ${missing?.name} of ${statement.name} comes from no directive`);
  return values;
}

/** An extent may mention symbols and loops outside it. */
function checkExtents(region: ScheduledRegion, s: ExecutedStatement): void {
  const known = new Set(region.region.symbols.map((symbol) => symbol.name));
  const isSplit = (name: string): boolean => (s.scheduled.index.get(name)?.key ?? name) !== name;
  for (const loop of executedLoops(s)) {
    const used = [...variablesOf(loop.extent)];
    const open = used.find((name) => !known.has(name) || isSplit(name));
    if (open !== undefined) {
      const name = s.scheduled.statement.name;
      reject("SCH036", `the extent ${loop.extent.key} of ${name}:${loop.name} needs ${open}`, {
        at: `${name} in region ${region.region.name}`,
        help: `keep the loop ${open} whole and outside ${loop.name}`,
      });
    }
    known.add(loop.name);
  }
}
