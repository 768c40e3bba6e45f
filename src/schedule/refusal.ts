/**
 * Why a schedule is refused, in words: SCH016 with the two iterations, the element they share and the
 * smallest change that is evident; SCH017 where affine/ could not decide. Always throws to the
 * nearest `attempt` (legality.ts).
 */
import type { Witness } from "../affine/index.ts";
import { reject } from "../support/diagnostic.ts";
import { isBound, isSpread, type ScheduledLoop, type ScheduledRegion } from "./scheduled-region.ts";

/** The loop at each time dimension, where it is one. */
export type LoopsOfTime = readonly (ScheduledLoop | undefined)[];

export interface Refusal {
  readonly witness: Witness;
  readonly loops: ReadonlyMap<string, LoopsOfTime>;
  /** The directive at fault when it is a placement. */
  readonly place?: string | undefined;
}

export function refuseUnproved(region: ScheduledRegion, what: string, reason: string): never {
  return reject("SCH017", `could not prove ${what}: ${reason}`, {
    at: `schedule of region ${region.region.name}`,
    help: "remove directives until the rest is proved; the region without directives always is",
  });
}

export function refuseWitness(region: ScheduledRegion, refusal: Refusal): never {
  const { witness, loops, place } = refusal;
  const loop = loops.get(witness.sink.statement)?.[witness.dimension];
  const [first, second] = [witness.source, witness.sink].map((i) => instance(region, i));
  const params = Object.entries(witness.params).map(([name, value]) => `${name} = ${value}`);
  const given = params.length > 0 ? ` (with ${params.join(", ")})` : "";
  const element = witness.element
    ? `${witness.element.array}[${witness.element.values.join(", ")}]`
    : "one element";
  return reject(
    "SCH016",
    `${first} must run before ${second}${given}: ${reasons[witness.dependence.kind]} ${element}; ${breakage(witness, loop, place)}`,
    {
      at: place ?? `schedule of region ${region.region.name}`,
      help: smallestChange(region, refusal, loop),
    },
  );
}

const reasons = {
  flow: "it writes what the second reads,",
  anti: "it reads what the second overwrites,",
  output: "both write",
  reduction: "both add to",
  scan: "it makes what the second carries on,",
} as const;

function instance(region: ScheduledRegion, { statement, values }: Witness["source"]): string {
  const { loops } = region.region.statements.find((s) => s.name === statement)!;
  return `${statement}[${loops.map((l, i) => `${l.name} = ${values[i]}`).join(", ")}]`;
}

function breakage(
  witness: Witness,
  loop: ScheduledLoop | undefined,
  place: string | undefined,
): string {
  if (place !== undefined) return "the tile does not live from one to the other";
  if (loop && isSpread(loop)) return `the iterations of ${loop.name} run on threads, in any order`;
  if (witness.violation === "reversed") return "the schedule runs the second first";
  if (witness.violation === "simultaneous") return "the schedule runs both at the same time";
  return `the iterations of ${loop?.name} are live at once`;
}

function smallestChange(
  region: ScheduledRegion,
  { witness, place }: Refusal,
  loop: ScheduledLoop | undefined,
): string {
  const { statement } = witness.sink;
  if (place !== undefined) return "place it further outside";
  if (loop && isBound(loop.mode)) return `remove bind ${statement}:${loop.name} to ${loop.mode}`;
  if (loop && isSpread(loop)) return `remove parallelize ${statement}:${loop.name}`;
  if (loop && loop.mode === "vector") return `remove vectorize ${statement}:${loop.name}`;
  if (loop && loop.mode === "unroll") return `remove unroll ${statement}:${loop.name}`;
  if (statement !== witness.source.statement) {
    const fused = region.fused.find(
      (f) => f.statement === statement || f.statement === witness.source.statement,
    );
    return fused
      ? `fuse ${fused.statement} into ${fused.into} further outside, or not at all`
      : "keep the statements in their order";
  }
  const { loops } = region.region.statements.find((s) => s.name === statement)!;
  const carrier = loops.find((_, i) => witness.source.values[i] !== witness.sink.values[i]);
  const inner = loop && loop.origin !== carrier?.name ? loop.name : "the others";
  return `keep loop ${carrier?.name} outside ${inner}`;
}
