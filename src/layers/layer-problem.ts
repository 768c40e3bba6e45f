/**
 * Layers on a virtual machine as a search problem: every tile, layout and place is a state, what the machine
 * cannot hold is excluded by a named constraint, scores become prices (their negative, in billionths) and
 * penalties between neighbours transitions.
 */
import type { Exclusion, Problem, Transition, Variable } from "../search/problem.ts";
import { kindOf, type Layer, layouts, places, type TileState } from "./layer.ts";
import { bytesPerElement, type Machine, transitionWeight } from "./machine.ts";
import { penaltyBetween, scoreOf, tileBytes, workingBytes } from "./score.ts";

export type Tile = readonly [m: number, n: number];

export const defaultTiles: readonly Tile[] = [
  [8, 8],
  [16, 16],
  [32, 32],
  [64, 64],
  [128, 128],
  [32, 64],
  [64, 32],
  [32, 128],
  [128, 32],
  [64, 128],
  [128, 64],
];

export interface LayerProblem {
  readonly name: string;
  readonly machine: Machine;
  readonly layers: readonly Layer[];
  /** Pairs of layers, producer first; a chain when the file names none. */
  readonly edges: readonly (readonly [from: number, to: number])[];
  readonly tiles: readonly Tile[];
}

/** Scores are kept to nine decimals. */
export const pricesPerScore = 1e9;

export function statesOf(tiles: readonly Tile[]): TileState[] {
  return tiles.flatMap(([tileM, tileN]) =>
    layouts.flatMap((layout) => places.map((place) => ({ tileM, tileN, layout, place }))),
  );
}

export function nameOfState({ tileM, tileN, layout, place }: TileState): string {
  return `${tileM}x${tileN} ${layout} ${place}`;
}

type Rule = (layer: Layer, state: TileState, machine: Machine) => boolean;

/** What a machine cannot do, by name; each rule says whether a state breaks it. */
const rules: readonly (readonly [name: string, broken: Rule])[] = [
  ["tile fits SRAM", (_, s, m) => s.place === "sram" && tileBytes(s) > m.sramBytes],
  [
    "working set fits SRAM",
    (layer, s, m) => s.place === "sram" && workingBytes(layer, s) > m.sramBytes,
  ],
  ["rows are aligned", (_, s, m) => (s.tileN * bytesPerElement) % m.alignmentBytes !== 0],
];

export function problemOfLayers(given: LayerProblem): Problem {
  const states = statesOf(given.tiles);
  const names = states.map(nameOfState);
  const weight = transitionWeight(given.machine);
  const prices = Float64Array.from({ length: states.length ** 2 }, (_, at) => {
    const [a, b] = [states[Math.floor(at / states.length)]!, states[at % states.length]!];
    return Math.round(weight * penaltyBetween(a, b) * pricesPerScore);
  });
  return {
    name: given.name,
    variables: given.layers.map((layer) => variableOf(layer, { states, names }, given.machine)),
    transitions: given.edges.map(([from, to]): Transition => {
      return { from, to, columns: states.length, prices };
    }),
    budgets: [],
    offset: 0,
    unit: { name: "score", perPrice: 1 / pricesPerScore, scores: true },
    classic: {
      penaltyPrice: weight * pricesPerScore,
      temperaturePrice: pricesPerScore,
      weights: given.layers.map((layer) => kindOf(layer).flops(layer.dims)),
    },
  };
}

interface Space {
  readonly states: readonly TileState[];
  readonly names: readonly string[];
}

function variableOf(layer: Layer, { states, names }: Space, machine: Machine): Variable {
  const exclusions: Exclusion[] = rules.flatMap(([constraint, broken]) => {
    const hit = states.flatMap((s, i) => (broken(layer, s, machine) ? [i] : []));
    return hit.length > 0 ? [{ constraint, states: hit }] : [];
  });
  const prices = Float64Array.from(states, (s) =>
    Math.round(-scoreOf(layer, s, machine) * pricesPerScore),
  );
  return { name: layer.name, states: names, prices, exclusions };
}
