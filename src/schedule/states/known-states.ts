/**
 * States of regions that were narrowed before under other names: the layers of a model repeat. In: what
 * region-states.ts takes. Out: what it gives, in the names of the region at hand.
 */
import type { Region } from "../../region/nest.ts";
import { type RegionClass, regionClass } from "../../region/region-hash.ts";
import type { Target } from "../../target/target.ts";
import {
  type NarrowingOptions,
  picoseconds,
  type RegionState,
  type RegionStates,
  regionStates,
} from "./region-states.ts";
import type { TileChoice } from "./tile-choice.ts";
import { TileSpace } from "./tile-space.ts";

interface Known {
  readonly tensors: RegionClass["tensors"];
  readonly states: RegionStates;
}

/** For one target. */
export class KnownStates {
  readonly #known = new Map<string, Known>();

  statesOf(
    region: Region,
    target: Target,
    options: Omit<NarrowingOptions, "pricer"> & {
      readonly pricer: () => NarrowingOptions["pricer"];
    },
  ): RegionStates {
    const { key, tensors } = regionClass(region);
    const question = `${options.threads} ${picoseconds(options.refundNs)} ${key}`;
    const known = this.#known.get(question);
    if (known) return renamed(known, tensors, region, target);
    const states = regionStates(region, target, { ...options, pricer: options.pricer() });
    this.#known.set(question, { tensors, states });
    return states;
  }
}

function renamed(
  known: Known,
  tensors: RegionClass["tensors"],
  region: Region,
  target: Target,
): RegionStates {
  const { figures, speller } = new TileSpace(region, target, { parallel: false });
  const own = new Map(known.tensors.map((name, i) => [name, tensors[i]!]));
  const states = known.states.states.map((state): RegionState => {
    const packed = state.choice!.packed.map((p) => ({ ...p, tensor: own.get(p.tensor)! }));
    const choice: TileChoice = { ...state.choice!, packed };
    const { parallel } = choice;
    return {
      ...state,
      choice,
      shares: parallel === undefined ? "" : figures.loops[parallel]!.name,
      schedule: () => ({
        region: region.name,
        target: target.name,
        directives: speller.directives(choice),
      }),
    };
  });
  return { ...known.states, figures, states };
}
