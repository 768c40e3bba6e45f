/**
 * The two operands of a dot product of bytes: four (or two) neighbours along the depth for all lanes, and
 * the packed weights of all lanes, the four of a lane side by side; pairs are widened to 16 bits. In: the statement and where its loops
 * stand, with the loop of the four terms still free. Out: the values, bound in the block.
 */
import type { Expr } from "../program/statement.ts";
import type { Access, Statement } from "../region/nest.ts";
import type { DType } from "../semantics/dtype.ts";
import { type IndexExpr, splitLinear, substitute } from "../semantics/index-expr.ts";
import { simplify } from "../semantics/index-range.ts";
import { invariant } from "../support/invariant.ts";
import { bindLane, type LaneLoop, openGuard, type Site } from "./operands.ts";

/** Terms of the instruction that takes bytes; fewer are of 16 bits. */
const bytesAsTheyAre = 4;

type DotSite = Site & { readonly depth: LaneLoop };

/** Unsigned first, as the instruction has them; the four are spread as they are loaded. */
export function dotOperands(statement: Statement, site: DotSite): readonly [Expr, Expr] {
  const { lane, depth } = site;
  invariant(lane, () => "dot products have lanes of results");
  const ranges = new Map(site.ranges).set(depth.name, { min: 0, max: depth.lanes - 1 });
  const at = { ...site, ranges };
  const typed = statement.reads.map((access) => ({
    access,
    dtype: site.operand(access.tensor).dtype,
  }));
  const data = typed.find((t) => t.dtype === "u8");
  const weights = typed.find((t) => t.dtype === "i8");
  invariant(data && weights, () => `${statement.name} multiplies no u8 by i8`);
  const four = load(data.access, at, { lanes: depth.lanes, dtype: "u8", steps: [0, 1] });
  const count = lane.lanes * depth.lanes;
  const all: Expr = { kind: "splat", dtype: "u8", lanes: count, operand: four };
  const packed = load(weights.access, at, { lanes: count, dtype: "i8", steps: [depth.lanes, 1] });
  if (depth.lanes === bytesAsTheyAre) return [site.block.bind(all), site.block.bind(packed)];
  const widened = (operand: Expr): Expr =>
    site.block.bind({ kind: "cast", dtype: "i16", lanes: count, saturate: false, operand });
  return [widened(all), widened(packed)];
}

interface Wanted {
  readonly lanes: number;
  readonly dtype: DType;
  /** How far a lane of results, and a term, are along the last axis. */
  readonly steps: readonly [lane: number, term: number];
}

function load(access: Access, site: DotSite, { lanes, dtype, steps }: Wanted): Expr {
  const operand = site.operand(access.tensor);
  const logical = access.index.map((e) => simplify(substitute(e, site.bindings), site.ranges));
  const index = operand.position(logical).map((e) => simplify(e, site.ranges));
  const names = [site.lane!.name, site.depth.name];
  const fits = names.every((name, i) => stepsBy(index, name, steps[i]!));
  invariant(fits, () => `${access.tensor} is not laid out for dot products`);
  const first = names.reduce(
    (at: readonly IndexExpr[], name) => bindLane(at, name, 0, site.ranges),
    index,
  );
  const guard = openGuard(access, site);
  const value: Expr = {
    kind: "load",
    dtype,
    lanes,
    buffer: operand.buffer,
    index: first,
    guard,
    fill: access.fill,
  };
  return value;
}

/** Whether an index moves by `step` along the last axis with each step of a loop, and else not. */
function stepsBy(index: readonly IndexExpr[], name: string, step: number): boolean {
  const moves = index.map((e) => splitLinear(e, name)?.coefficient);
  return moves.at(-1) === step && moves.slice(0, -1).every((m) => m === 0);
}
