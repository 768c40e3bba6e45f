/**
 * Why a schedule is refused, in words: SCH016 with the two iterations and the element they share (cure.ts
 * adds the smallest change that helps); SCH017 where affine/ could not decide. Every other code is one of
 * form: a directive that has no place or no meaning, whatever depends on what. Always throws to the
 * nearest `attempt` (legality.ts).
 */
import type { Witness } from "../affine/index.ts";
import { reject } from "../support/diagnostic.ts";
import { isSpread, type ScheduledLoop, type ScheduledRegion } from "./scheduled-region.ts";

/** The loop at each time dimension, where it is one. */
export type LoopsOfTime = readonly (ScheduledLoop | undefined)[];

export interface Refusal {
  readonly witness: Witness;
  readonly loops: ReadonlyMap<string, LoopsOfTime>;
  /** The directive at fault when it is about where a tensor lies, and what it breaks. */
  readonly place?: Placing | undefined;
}

export interface Placing {
  readonly at: string;
  readonly fault: string;
}

/** What the form of a schedule decides, with the pair that shows it; without one nothing is proved. */
export function refusePair(
  region: ScheduledRegion,
  pair: string | undefined,
  { at, fault, help }: Placing & { readonly help: string },
): never {
  if (pair === undefined) return refuseUnproved(region, `the order behind ${at}`, fault);
  return reject("SCH016", `${pair}; ${fault}`, { at, help });
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
  return reject("SCH016", `${orderOf(region, witness)}; ${breakage(witness, loop, place)}`, {
    at: place?.at ?? `schedule of region ${region.region.name}`,
  });
}

/** Which instance must run before which, and because of which element. */
export function orderOf(region: ScheduledRegion, witness: Witness): string {
  const [first, second] = [witness.source, witness.sink].map((i) => instanceText(region, i));
  const element = witness.element
    ? `${witness.element.array}[${witness.element.values.join(", ")}]`
    : "one element";
  const reason = reasons[witness.dependence.kind];
  return `${first} must run before ${second}${givenText(witness.params)}: ${reason} ${element}`;
}

export function givenText(params: Readonly<Record<string, number>>): string {
  const given = Object.entries(params).map(([name, value]) => `${name} = ${value}`);
  return given.length > 0 ? ` (with ${given.join(", ")})` : "";
}

const reasons = {
  flow: "it writes what the second reads,",
  anti: "it reads what the second overwrites,",
  output: "both write",
  reduction: "both add to",
  scan: "it makes what the second carries on,",
} as const;

/** Values by the names of their loops where the region has the statement: not of one that a directive made. */
export function instanceText(
  region: ScheduledRegion,
  { statement, values }: Witness["source"],
): string {
  const loops = region.region.statements.find((s) => s.name === statement)?.loops;
  const spelled = values.map((v, i) => (loops ? `${loops[i]!.name} = ${v}` : String(v)));
  return `${statement}[${spelled.join(", ")}]`;
}

function breakage(
  witness: Witness,
  loop: ScheduledLoop | undefined,
  place: Placing | undefined,
): string {
  if (place !== undefined) return place.fault;
  if (loop && isSpread(loop)) return `the iterations of ${loop.name} run on threads, in any order`;
  if (witness.violation === "reversed") return "the schedule runs the second first";
  if (witness.violation === "simultaneous") return "the schedule runs both at the same time";
  return `the iterations of ${loop?.name} are live at once`;
}
