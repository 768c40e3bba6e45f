/**
 * What was found of regions while a model is compiled, for one target, its prices and one number of threads.
 * Graphs that compete for being the program differ in few regions, and so do the parts of a model that runs in
 * stages: the others are narrowed, priced and proved once for all of them. Everything here is keyed by what a
 * region computes, whatever its names.
 */
import type { BlockPrice } from "../blocks/priced-schedules.ts";
import type { KnownChain } from "../chains/chain-states.ts";
import type { ChainWorth, KnownCutting } from "../chains/chain-worth.ts";
import { LegalityClasses } from "../legality/legality-class.ts";
import { KnownStates } from "./known-states.ts";
import type { CheapTiles } from "./region-states.ts";

export interface RegionMemory {
  /** States that narrowing left. */
  readonly states: KnownStates;
  /** By how much the code of a tile is dearer than its coarse price (refine-states.ts). */
  readonly tiles: Map<string, number>;
  readonly cheap: CheapTiles;
  /** Of regions by themselves, where layouts are chosen. */
  readonly prices: Map<string, number>;
  /** Of the schedules of a region on blocks, in the order in which they are listed; undefined: it does not apply. */
  readonly blocks: Map<string, readonly (BlockPrice | undefined)[]>;
  /** How chains of regions were cut. */
  readonly chains: Map<string, KnownCutting>;
  /** Of chains and the regions that they are made of, by their classes. */
  readonly chainWorths: Map<string, ChainWorth>;
  /** States of chains, by their classes. */
  readonly chainStates: Map<string, KnownChain>;
  /** Classes whose legality was decided. */
  readonly classes: LegalityClasses;
}

export function emptyMemory(): RegionMemory {
  return {
    states: new KnownStates(),
    tiles: new Map(),
    cheap: new Map(),
    prices: new Map(),
    blocks: new Map(),
    chains: new Map(),
    chainWorths: new Map(),
    chainStates: new Map(),
    classes: new LegalityClasses(),
  };
}
