/**
 * Blocks that go on from tile to tile, `for t < ceil((N - c) / P)` in a grid of P blocks c, seen as N blocks
 * of one tile each: tile = P * t + c counts every tile once. Meant for questions in which no two accesses
 * are ordered, where it is of no matter who does what after what. Warpgroups that take turns, each with
 * the tiles whose t leaves its number as the remainder, are one: each tile has one of them.
 */
import type { Condition } from "../../semantics/condition.ts";
import {
  ceilDiv,
  constant,
  constantValue,
  evaluate,
  floorDiv,
  type IndexExpr,
  mod,
  mul,
  sub,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import type { GridAxis, Role } from "../program.ts";
import type { Statement } from "../statement.ts";
import {
  exprIndices,
  ownIndices,
  substituteStatements,
  visitExprs,
  visitStatements,
} from "../walk.ts";

type Loop = Extract<Statement, { kind: "for" }>;

/** A role over tiles: the grid's axes, and the body of one tile; `isOneCopy`: copies took turns. */
export interface TileRole {
  readonly axes: readonly GridAxis[];
  readonly body: readonly Statement[];
  readonly isOneCopy: boolean;
}

/** The role's body, of nothing but such a loop, for each tile; undefined where it is anything else. */
export function overTiles(
  axes: readonly GridAxis[],
  body: readonly Statement[],
  role: Pick<Role, "copies" | "copyVariable">,
): TileRole | undefined {
  const [loop] = body;
  if (body.length !== 1 || loop?.kind !== "for" || loop.mode.kind !== "serial") return undefined;
  const inTurns = copyInTurns(loop, role);
  const inside = inTurns ?? loop.body;
  const used = variablesIn(inside);
  if (inTurns && used.has(role.copyVariable!)) return undefined;
  for (const [i, axis] of axes.entries()) {
    const tiles = used.has(axis.name) ? tilesOf(loop.extent, axis) : undefined;
    if (tiles === undefined) continue;
    const name = `${axis.name}.tile`;
    return {
      axes: axes.with(i, { name, extent: constant(tiles) }),
      body: ofTile(inside, loop.variable, axis, name),
      isOneCopy: inTurns !== undefined,
    };
  }
  return undefined;
}

/** The body by its tile, where it can be without trips and blocks: as P * t + c, else as quotient and remainder. */
function ofTile(
  body: readonly Statement[],
  trip: string,
  axis: GridAxis,
  name: string,
): readonly Statement[] {
  const blocks = constantValue(axis.extent)!;
  const block = sub(variable(name), mul(blocks, variable(trip)));
  const whole = substituteStatements(body, new Map([[axis.name, block]]));
  if (!variablesIn(whole).has(trip)) return whole;
  const [turn, rest] = [floorDiv(variable(name), blocks), mod(variable(name), blocks)];
  return substituteStatements(
    body,
    new Map([
      [trip, turn],
      [axis.name, rest],
    ]),
  );
}

/** The number of tiles, where the extent is how many of them each of the axis' blocks has. */
function tilesOf(extent: IndexExpr, { name, extent: blocks }: GridAxis): number | undefined {
  const [trips, count] = [constantValue(extent), constantValue(blocks)];
  if (count === undefined) return undefined;
  if (trips !== undefined) return trips * count;
  const used = variablesOf(extent);
  if (used.size !== 1 || !used.has(name)) return undefined;
  let tiles = 0;
  for (let c = 0; c < count; c++) tiles += evaluate(extent, new Map([[name, c]]));
  return ceilDiv(sub(tiles, variable(name)), count).key === extent.key ? tiles : undefined;
}

/** What the copy does whose turn it is, where in every trip it is one of them. */
function copyInTurns(
  { variable: trip, body }: Loop,
  { copies, copyVariable }: Pick<Role, "copies" | "copyVariable">,
): readonly Statement[] | undefined {
  const [branch] = body;
  if (body.length !== 1 || branch?.kind !== "if" || branch.else.length > 0) return undefined;
  const [condition] = branch.conditions;
  if (copyVariable === undefined || branch.conditions.length !== 1) return undefined;
  return isTurn(condition!, mod(variable(trip), copies), variable(copyVariable))
    ? branch.then
    : undefined;
}

function isTurn({ kind, expr }: Condition, turn: IndexExpr, copy: IndexExpr): boolean {
  return kind === "zero" && [sub(turn, copy), sub(copy, turn)].some((e) => e.key === expr.key);
}

function variablesIn(body: readonly Statement[]): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (e: IndexExpr): void => {
    for (const name of variablesOf(e)) names.add(name);
  };
  visitStatements(body, (s) => {
    ownIndices(s).forEach(visit);
  });
  visitExprs(body, (e) => {
    exprIndices(e).forEach(visit);
  });
  return names;
}
