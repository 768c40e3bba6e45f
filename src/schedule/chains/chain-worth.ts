/** What was found of chains and of the regions in them, whatever their names: for choices, and for reports. */
import type { ApartPrices, Trouble } from "../../region/refusals.ts";

/** A chain beside its regions by themselves, by the code that both become. */
export interface ChainWorth extends ApartPrices {
  /** `illegal`: its best state is cheaper, and not proved. */
  readonly verdict: "worth" | "dearer" | "illegal";
}

/** Why a member of a chain runs by itself: of the chains with it that might have been, the best. */
export interface LoneMember extends Trouble {
  readonly member: number;
  /** Numbers of the members that it would run with, its own among them; none where no chain is. */
  readonly among: readonly number[];
  readonly prices?: ApartPrices;
}

/** How a chain was cut; members are numbers in it. */
export interface KnownCutting {
  /** Those that run together. */
  readonly parts: readonly (readonly number[])[];
  readonly lone: readonly LoneMember[];
}

type Why = Pick<LoneMember, "kind" | "reason" | "prices">;

export const noChain: Why = { kind: "illegal", reason: "no chain with it fits" };

export function refusedByCode({ verdict, fusedNs, apartNs }: ChainWorth): Why {
  if (fusedNs === Infinity) return { kind: "illegal", reason: "has no code" };
  const prices = { fusedNs, apartNs };
  return verdict === "illegal"
    ? { kind: "illegal", reason: "is not proved", prices }
    : { kind: "price", reason: "is dearer", prices };
}

/** @param prices of the whole chain, cut so that the member is not alone, and as it was cut */
export function notInCutting(prices: ApartPrices): Why {
  const { fusedNs, apartNs } = prices;
  const reason = fusedNs < apartNs ? "leaves more in memory" : "makes the whole chain dearer";
  return { kind: "price", reason, prices };
}
