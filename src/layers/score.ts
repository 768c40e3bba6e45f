/**
 * Scores of states and penalties between neighbours, as the collapse scheduler that came before computed
 * them: share of the roofline, taste in layouts, and how well the tile fills the fast memory; a layout change,
 * a move between memories and a change of tile cost. Unitless: this is the baseline's model, kept so that its
 * results can be reproduced. It knows nothing of real time.
 */
import { kindOf, type Layer, type TileState } from "./layer.ts";
import { bytesPerElement, type Machine } from "./machine.ts";

export function tileBytes(state: TileState): number {
  return state.tileM * state.tileN * bytesPerElement;
}

export function workingBytes(layer: Layer, state: TileState): number {
  return tileBytes(state) * kindOf(layer).workingTiles;
}

export interface ScoreParts {
  readonly roofline: number;
  readonly affinity: number;
  readonly cache: number;
}

export function scoreParts(layer: Layer, state: TileState, machine: Machine): ScoreParts {
  return {
    roofline: rooflineShare(layer, state, machine),
    affinity: kindOf(layer).affinity[state.layout],
    cache: cacheScore(layer, state, machine),
  };
}

export function scoreOf(layer: Layer, state: TileState, machine: Machine): number {
  const { roofline, affinity, cache } = scoreParts(layer, state, machine);
  return roofline + affinity + cache;
}

/** Reachable share of the peak. */
function rooflineShare(layer: Layer, state: TileState, machine: Machine): number {
  const kind = kindOf(layer);
  const intensity = kind.flops(layer.dims) / kind.traffic(layer.dims, state);
  const { sramBandwidthGbps, dramBandwidthGbps, computeGflops } = machine;
  const bandwidth = state.place === "sram" ? sramBandwidthGbps : dramBandwidthGbps;
  return Math.max(0, Math.min(1, (intensity * bandwidth) / computeGflops));
}

/** Best at three quarters full. */
function cacheScore(layer: Layer, state: TileState, machine: Machine): number {
  if (state.place === "dram") return 0;
  const full = workingBytes(layer, state) / machine.sramBytes;
  if (full > 1) return -0.3;
  return 0.2 * Math.exp(-((full - 0.75) ** 2) / (2 * 0.25 ** 2));
}

export function penaltyBetween(a: TileState, b: TileState): number {
  return layoutPenalty(a, b) + (a.place === b.place ? 0 : 0.8) + tilePenalty(a, b);
}

function layoutPenalty(a: TileState, b: TileState): number {
  if (a.layout === b.layout) return 0;
  return a.layout === "block" || b.layout === "block" ? 0.5 : 1;
}

function tilePenalty(a: TileState, b: TileState): number {
  if (a.tileM === b.tileM && a.tileN === b.tileN) return 0;
  const [x, y] = [a.tileM * a.tileN, b.tileM * b.tileN];
  if (x === y) return 0.3;
  return Math.min(0.6, 0.3 * Math.log2(Math.max(x, y) / Math.min(x, y)));
}
