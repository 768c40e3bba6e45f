/**
 * The two operands of a dot product: four bytes (or two numbers of 16 bits) that are neighbours along the depth for
 * all lanes, and the packed weights of all lanes, the four of a lane side by side; pairs of these are widened. In: the statement and where its loops
 * stand, with the loop of the four terms still free. Out: the values, bound in the block.
 */
import type { Expr } from "../program/statement.ts";
import type { Access, Statement } from "../region/nest.ts";
import { type IndexExpr, splitLinear, substitute, variablesOf } from "../semantics/index-expr.ts";
import { simplify } from "../semantics/index-range.ts";
import { invariant } from "../support/invariant.ts";
import { bindLane, type LaneLoop, openGuard, type Site } from "./operands.ts";

/** Terms of the instruction that takes bytes; fewer are of 16 bits. */
const bytesAsTheyAre = 4;

type DotSite = Site & { readonly depth: LaneLoop };

/** Data first, as the instruction has them; the four are spread as they are loaded. */
export function dotOperands(statement: Statement, site: DotSite): readonly [Expr, Expr] {
  const { lane, depth } = site;
  invariant(lane, () => "dot products have lanes of results");
  const ranges = new Map(site.ranges).set(depth.name, { min: 0, max: depth.lanes - 1 });
  const at = { ...site, ranges };
  // Lanes of results are lanes of the weights, and share the data.
  const weights = statement.reads.find(({ index }) =>
    variablesOf(...index.map((e) => substitute(e, site.bindings))).has(lane.name),
  );
  const data = statement.reads.find((access) => access !== weights);
  invariant(data && weights, () => `${statement.name} multiplies no weights of its lanes`);
  const few = load(data, at, { lanes: depth.lanes, steps: [0, 1] });
  const count = lane.lanes * depth.lanes;
  const all: Expr = { kind: "splat", dtype: few.dtype, lanes: count, operand: few };
  const packed = load(weights, at, { lanes: count, steps: [depth.lanes, 1] });
  const areBytes = depth.lanes === bytesAsTheyAre;
  const [left, right] = areBytes ? [all, packed] : [widened(all), widened(packed)];
  return [site.block.bind(left), site.block.bind(right)];
}

function widened(operand: Expr): Expr {
  if (operand.dtype === "i16" || operand.dtype === "bf16") return operand;
  return { kind: "cast", dtype: "i16", lanes: operand.lanes, saturate: false, operand };
}

interface Wanted {
  readonly lanes: number;
  /** How far a lane of results, and a term, are along the last axis. */
  readonly steps: readonly [lane: number, term: number];
}

function load(access: Access, site: DotSite, { lanes, steps }: Wanted): Expr {
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
    dtype: operand.dtype,
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
