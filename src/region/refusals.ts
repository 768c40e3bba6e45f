/** What was not computed together, and why: said by whoever decided it, for reports. */

/**
 * `output`: the caller reads it; `reduction`: a fold or a product is on the other side; `readers`: they disagree;
 * `illegal`: it cannot be one statement; `rule`: it can, and is taken to be a loss; `price`: it was priced dearer;
 * `layout`: neighbours store a tensor in different forms, which was priced as a whole.
 */
export type ApartKind =
  | "input"
  | "output"
  | "reduction"
  | "readers"
  | "illegal"
  | "rule"
  | "price"
  | "layout";

export interface Trouble {
  readonly kind: ApartKind;
  readonly reason: string;
}

export function isTrouble(found: object): found is Trouble {
  return "kind" in found && "reason" in found;
}

/** A statement that was not put into a group: behind what the group makes, or computed where the group reads it. */
export interface Refusal extends Trouble {
  readonly as: "epilogue" | "producer";
  /** The consumer, or the group of the producer by its name. */
  readonly statement: string;
  /** The group by its name; absent: into none. */
  readonly into?: string;
}

/** Nanoseconds as they were compared. */
export interface ApartPrices {
  readonly fusedNs: number;
  readonly apartNs: number;
}

/** Why a region of its own is what it is, where prices decided that behind the groups. */
export interface RegionNote extends Trouble {
  readonly region: string;
  /** What a region is that a decision brought in. */
  readonly brought?: "pack" | "unpack" | "turn";
  readonly prices?: ApartPrices;
}

/** All that was refused or decided on the way from nests to regions. */
export interface Fusion {
  readonly refusals: readonly Refusal[];
  readonly notes: readonly RegionNote[];
}
