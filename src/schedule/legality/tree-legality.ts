/**
 * Whether a schedule that was applied to the region's tree is legal: the verdict of affine/tree/ in the
 * words of refusals, and where tensors lie: a placed tile must be written and read in one iteration of
 * the loops outside it, a staged operand must be finished before its kernel.
 */
import * as affine from "../../affine/index.ts";
import { reject } from "../../support/diagnostic.ts";
import type { Directive } from "../directive.ts";
import { printDirective } from "../directive-text.ts";
import { givenText, instanceText, orderOf, refusePair, refuseUnproved } from "../refusal.ts";
import type { ScheduledRegion } from "../scheduled-region.ts";
import type { TreeSchedule } from "../tree/tree-schedule.ts";
import { outsideUse, pairThrough, touchedArray } from "./pairs.ts";

type Illegal = Exclude<TreeSchedule["verdict"], { readonly kind: "legal" }>;

/** The region when its tree is legal; rejects with SCH016 or SCH017. */
export function checkTreeSchedule(
  scheduled: ScheduledRegion,
  { verdict, approximated }: TreeSchedule,
): ScheduledRegion {
  if (verdict.kind !== "legal") return refuse(scheduled, verdict, approximated);
  for (const d of scheduled.schedule.directives) {
    if (d.kind === "place") checkPlaced(scheduled, d, verdict.plan);
    if (d.kind === "stage") checkStaged(scheduled, d, verdict.plan);
  }
  return scheduled;
}

function refuse(
  scheduled: ScheduledRegion,
  verdict: Illegal,
  approximated: readonly string[],
): never {
  const d = scheduled.schedule.directives[verdict.at];
  const at = d ? printDirective(d) : `schedule of region ${scheduled.region.name}`;
  switch (verdict.kind) {
    case "unknown":
      return refuseUnproved(scheduled, `the order behind ${at}`, verdict.reason);
    case "illegal":
      if (approximated.length > 0) {
        const reason = `not affine: ${approximated.join(", ")}`;
        return refuseUnproved(scheduled, `the order behind ${at}`, reason);
      }
      return reject(
        "SCH016",
        `${orderOf(scheduled, verdict.witness)}; ${breakage(verdict.witness)}`,
        { at },
      );
    case "malformed": {
      const { witness } = verdict;
      const { message, help } = verdict.diagnostics[0]!;
      const pair = witness && approximated.length === 0 ? orderOf(scheduled, witness) : undefined;
      return refusePair(scheduled, pair, { at, fault: message, help: help ?? "leave it out" });
    }
    case "clash":
      if (approximated.length > 0) {
        return refuseUnproved(scheduled, at, `not affine: ${approximated.join(", ")}`);
      }
      return reject("SCH016", clashText(scheduled, verdict.clash), { at });
  }
}

function breakage({ violation, sourceTime, sinkTime }: affine.Witness): string {
  const times = `(${sourceTime.join(", ")}) and (${sinkTime.join(", ")})`;
  switch (violation) {
    case "reversed":
      return `the schedule runs the second first, at times ${times}`;
    case "simultaneous":
      return `the schedule runs both at the time (${sourceTime.join(", ")})`;
    case "vector":
      return `the schedule runs both at once, in lanes, at times ${times}`;
    case "parallel":
      return `nothing orders them at times ${times}`;
  }
}

function clashText(scheduled: ScheduledRegion, clash: affine.StorageClash): string {
  const { array, element, cell, writer, reader, overwriter, params } = clash;
  const spell = (p: affine.StoragePlace): string => {
    if (p.statement.startsWith("before.")) return "what was there before";
    if (p.statement.startsWith("behind.")) return "who reads it afterwards";
    return instanceText(scheduled, p);
  };
  const value = `${array}[${element.join(", ")}]${givenText(params)}`;
  const travel = `${spell(writer)} makes it and ${spell(reader)} needs it`;
  const place = `${cell.array}[${cell.index.join(", ")}]`;
  if (overwriter?.statement.startsWith("before.")) {
    return `the value of ${value} cannot lie in ${place}, where another one is from the start: ${travel}`;
  }
  return overwriter
    ? `the value of ${value} is overwritten in ${place} by ${spell(overwriter)} too early: ${travel}`
    : `the value of ${value} is looked for in another place than ${place}: ${travel}`;
}

type Placing = Extract<Directive, { readonly kind: "place" | "stage" }>;

/** Loops of the owner down to the place: the tile lives for one iteration of them. */
function checkPlaced(scheduled: ScheduledRegion, d: Placing, { nest, tree }: affine.Plan): void {
  if (d.scope === "memory") return;
  const at = printDirective(d);
  if (nest.given.has(d.tensor) || nest.kept.has(d.tensor)) {
    refusePair(scheduled, outsideUse(scheduled, d.tensor), {
      fault: `${d.tensor} is used outside the region`,
      at,
      help: "place only tensors that live and die in the region",
    });
  }
  const { times, paths } = affine.flattenTree(tree, nest.statements);
  const owner = paths.get(d.statement) ?? [];
  const depth = depthOf(d, owner);
  const stranger = nest.statements.find(
    (s) =>
      s.accesses.some((a) => a.array === d.tensor) &&
      paths.get(s.name)![depth - 1]?.node !== owner[depth - 1]!.node,
  );
  if (stranger) {
    refusePair(scheduled, pairThrough(scheduled, d.tensor, stranger.name), {
      fault: `${stranger.name} uses ${d.tensor} outside the loops that hold its tile`,
      at,
      help: `fuse ${stranger.name} as deep as the place, or place ${d.tensor} further outside`,
    });
  }
  const marks = owner
    .slice(0, depth)
    .map((_, dimension) => ({ dimension, kind: "parallel" as const }));
  const found = affine.nestDependences(nest);
  if (found.kind === "unknown") refuseUnproved(scheduled, at, found.reason);
  for (const dependence of found.value) {
    if (dependence.kind !== "flow") continue;
    if (touchedArray(dependence) !== d.tensor) continue;
    const options = nest.context ? { context: nest.context } : {};
    const one = affine.checkApart({ times, marks }, dependence, options);
    if (one.kind === "unknown") refuseUnproved(scheduled, at, one.reason);
    if (one.kind === "illegal") {
      const order = orderOf(scheduled, one.witness);
      reject("SCH016", `${order}; the tile does not live from one to the other`, { at });
    }
  }
}

/** The place of the loop named in the directive among a statement's time dimensions, and one more. */
function depthOf(d: Placing, parts: readonly affine.TimePart[]): number {
  const depth = parts.findIndex((p) => p.loop === d.at) + 1;
  if (depth > 0) return depth;
  const loops = parts.flatMap((p) => p.loop ?? []).join(" ");
  return reject("SCH002", `statement ${d.statement} has no loop ${d.at} in the end`, {
    at: printDirective(d),
    help: `its loops are ${loops}`,
  });
}

/**
 * The copy is made before the rest of an iteration of the loops outside it, or, where several are in
 * flight, before the innermost of them starts: what is read must be written in an earlier one.
 */
function checkStaged(
  scheduled: ScheduledRegion,
  d: Extract<Placing, { readonly kind: "stage" }>,
  { nest, tree }: affine.Plan,
): void {
  const at = printDirective(d);
  const paths = affine.timePaths(tree, nest.statements);
  const depth = depthOf(d, paths.get(d.statement) ?? []);
  const times = affine.timesOf(paths, nest.statements, d.depth > 1 ? depth - 1 : depth);
  const found = affine.nestDependences(nest);
  if (found.kind === "unknown") refuseUnproved(scheduled, at, found.reason);
  for (const dependence of found.value) {
    if (dependence.sink !== d.statement || touchedArray(dependence) !== d.tensor) continue;
    if (dependence.kind !== "flow" && dependence.kind !== "scan") continue;
    const options = nest.context ? { context: nest.context } : {};
    const one = affine.checkDependence({ times }, dependence, options);
    if (one.kind === "unknown") refuseUnproved(scheduled, at, one.reason);
    if (one.kind === "illegal") {
      const order = orderOf(scheduled, one.witness);
      reject("SCH016", `${order}; the copy is made before either`, { at });
    }
  }
}
