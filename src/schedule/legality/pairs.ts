/**
 * Iterations that show why a schedule is refused where its form decides before any order is looked at:
 * two that need each other and that threads or places of tensors would part, in words. All are found by
 * affine/; undefined where it finds none, and the refusal is then one of what is not proved.
 */
import * as affine from "../../affine/index.ts";
import { type BridgedRegion, bridgeRegion } from "../../region/affine-bridge.ts";
import { instanceText, orderOf } from "../refusal.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";

interface Known extends Pick<BridgedRegion, "context"> {
  readonly dependences: readonly affine.Dependence[];
}

/** Nothing where an access was widened: its pairs need not exist. */
function dependencesOf({ region }: ScheduledRegion): Known | undefined {
  const { affine: statements, context, approximated } = bridgeRegion(region);
  const found = affine.findDependences(statements);
  if (approximated.length > 0 || found.kind === "unknown") return undefined;
  return { dependences: found.value, context };
}

/** `threads` says which thread runs an iteration of a statement: two on different ones. */
export function separatedPair(
  region: ScheduledRegion,
  threads: ReadonlyMap<string, affine.AffineLike>,
): string | undefined {
  const known = dependencesOf(region);
  const times = new Map(
    region.region.statements.flatMap(({ name, loops }) => {
      const value = threads.get(name);
      if (value === undefined) return [];
      const from = { tuple: name, dims: loops.map((l) => l.name) };
      return [[name, affine.makeMap({ from, to: { values: [value] } })] as const];
    }),
  );
  const schedule = { times, marks: [{ dimension: 0, kind: "parallel" as const }] };
  for (const d of known?.dependences ?? []) {
    if (!times.has(d.source) || !times.has(d.sink)) continue;
    const one = affine.checkApart(schedule, d, { context: known!.context });
    if (one.kind === "illegal") return orderOf(region, one.witness);
  }
  return undefined;
}

/** Two iterations that share an element of the tensor, one of them of the statement. */
export function pairThrough(
  region: ScheduledRegion,
  tensor: string,
  statement: string,
): string | undefined {
  const known = dependencesOf(region);
  for (const d of known?.dependences ?? []) {
    if (touchedArray(d) !== tensor || (d.source !== statement && d.sink !== statement)) continue;
    const pair = affine.pairOf(d, { context: known!.context });
    if (pair) return orderOf(region, pair);
  }
  return undefined;
}

export function touchedArray(d: affine.Dependence): string | undefined {
  return d.sourceAccess?.pieces[0]?.output.name;
}

/** An iteration that touches an element of a tensor which is there before the region or behind it. */
export function outsideUse(region: ScheduledRegion, tensor: string): string | undefined {
  const { affine: statements, context, approximated } = bridgeRegion(region.region);
  if (approximated.length > 0) return undefined;
  for (const { domain, accesses } of statements) {
    for (const { kind, map } of accesses) {
      if (map.pieces[0]?.output.name !== tensor) continue;
      const pair = anyPair(affine.intersectDomain(map, domain), context);
      if (!pair) continue;
      const [who, element] = [instanceText(region, pair.source), pair.sink.values.join(", ")];
      return kind === "read"
        ? `${who} reads ${tensor}[${element}], which is there before the region`
        : `${who} makes ${tensor}[${element}], which is read behind the region`;
    }
  }
  return undefined;
}

/** An instance that `places` takes to a point outside `run`, in words. */
export function instanceOutside(
  region: ScheduledRegion,
  places: affine.IntegerMap,
  run: affine.IntegerSet,
): string | undefined {
  const missing = affine.subtract(affine.range(places), run);
  if (missing.kind === "unknown") return undefined;
  const { context } = bridgeRegion(region.region);
  const pair = anyPair(affine.intersectRange(places, missing.value), context);
  return pair && `${instanceText(region, pair.source)} at (${pair.sink.values.join(", ")})`;
}

function anyPair(map: affine.IntegerMap, context: affine.IntegerSet): affine.Witness | undefined {
  const pieces = map.pieces.map((p) => ({ ...map, pieces: [p] }));
  for (const one of pieces) {
    const pair = affine.pairOf(affine.makeDependence(one), { context });
    if (pair) return pair;
  }
  return undefined;
}
