/**
 * Seeded problems of the shapes that networks have: residual chains, U-Nets, dense blocks, random DAGs.
 * A state is a random point of layout, place and tile edge with a random price of its own; a transition
 * costs what the conversion between the two interfaces would: layout change, move between places, tile
 * mismatch, each in proportion to the edge's tensor, and an own random part for every pair.
 */
import { Rng } from "../support/rng.ts";
import { identity } from "./network.ts";
import type { Problem, Transition, Variable } from "./problem.ts";

export const shapes = ["chain", "residual", "unet", "dense", "random"] as const;
export type Shape = (typeof shapes)[number];

export interface GeneratorOptions {
  readonly shape: Shape;
  readonly layers: number;
  readonly states: number;
  readonly seed: number;
  /** Interface classes; absent: every pair of states has a price of its own. */
  readonly classes?: number;
}

/** Pairs of layers that are joined, the earlier first. */
export function edgesOf(shape: Shape, layers: number, rng: Rng): [number, number][] {
  const edges: [number, number][] = [];
  for (let i = 1; i < layers && shape !== "dense"; i++) edges.push([i - 1, i]);
  if (shape === "residual") for (let i = 3; i < layers; i += 3) edges.push([i - 3, i]);
  if (shape === "unet") {
    for (let i = 0; i < Math.floor(layers / 2) - 1; i++) edges.push([i, layers - 1 - i]);
  }
  if (shape === "dense") addDenseBlocks(edges, layers);
  if (shape === "random") addRandomSkips(edges, layers, rng);
  return edges;
}

/** Cliques of six, each joined to the next. */
function addDenseBlocks(edges: [number, number][], layers: number): void {
  for (let start = 0; start < layers; start += 6) {
    const end = Math.min(layers, start + 6);
    for (let i = start; i < end; i++) for (let j = i + 1; j < end; j++) edges.push([i, j]);
    if (end < layers) edges.push([end - 1, end]);
  }
}

/** How far ahead a skip may lead. */
const longestSkip = 40;

/** Half as many further edges as layers, each some way ahead. */
function addRandomSkips(edges: [number, number][], layers: number, rng: Rng): void {
  const seen = new Set(edges.map(([i, j]) => i * layers + j));
  const target = edges.length + Math.floor(layers / 2) - 1;
  while (edges.length < Math.min(target, (layers * (layers - 1)) / 2)) {
    const i = rng.integer(0, layers - 2);
    const j = Math.min(layers - 1, i + rng.integer(2, longestSkip));
    if (seen.has(i * layers + j)) continue;
    seen.add(i * layers + j);
    edges.push([i, j]);
  }
}

/** Layouts, places and tile edges of a state; together its interface. */
const layouts = 4;
const places = 3;

interface Interface {
  readonly layout: number;
  readonly place: number;
  readonly tile: number;
}

/**
 * The same problem with a memory budget: faster states take more, and the capacity is this share of the way
 * from the least to what the fastest states take together.
 */
export function withBudget(problem: Problem, share: number, seed: number): Problem {
  const rng = new Rng(seed);
  let [least, most] = [0, 0];
  const uses = problem.variables.map(({ prices }, variable) => {
    const dearest = Math.max(...prices);
    const amounts = prices.map(
      (p) => 10 + Math.round((100 * (dearest - p)) / dearest) + rng.integer(0, 40),
    );
    least += Math.min(...amounts);
    most += amounts[prices.indexOf(Math.min(...prices))]!;
    return { variable, amounts };
  });
  const capacity = Math.round(least + share * (most - least));
  return { ...problem, budgets: [{ name: "memory", capacity, uses }] };
}

export function generate(options: GeneratorOptions): Problem {
  const { shape, layers, states, seed } = options;
  const rng = new Rng(seed);
  const edges = edgesOf(shape, layers, rng);
  const classes = options.classes ?? states;
  const interfaces = Array.from({ length: layers }, () =>
    Array.from({ length: classes }, () => randomInterface(rng)),
  );
  const classOf = interfaces.map(() =>
    options.classes === undefined ? undefined : randomClasses(states, classes, rng),
  );
  const variables = interfaces.map((_, i): Variable => {
    const base = rng.integer(100, 500);
    const prices = Float64Array.from({ length: states }, () => base + rng.integer(0, base * 2));
    return { name: `layer${i}`, prices };
  });
  const transitions = edges.map(([from, to]): Transition => {
    const prices = conversionPrices(interfaces[from]!, interfaces[to]!, {
      size: rng.integer(5, 60),
      // A price for every pair would make the classes meaningless.
      own: options.classes === undefined ? 8 : 0,
      rng,
    });
    const [fromClass, toClass] = [classOf[from], classOf[to]];
    const ends = { from, to, columns: classes, prices };
    return fromClass && toClass ? { ...ends, fromClass, toClass } : ends;
  });
  const name = `${shape} of ${layers} layers with ${states} states, seed ${seed}`;
  return { name, variables, transitions, budgets: [], offset: 0 };
}

function randomInterface(rng: Rng): Interface {
  return {
    layout: rng.integer(0, layouts - 1),
    place: rng.integer(0, places - 1),
    tile: rng.integer(4, 8),
  };
}

interface ConversionOptions {
  /** Price of rewriting the tensor once. */
  readonly size: number;
  /** Largest random price of a pair. */
  readonly own: number;
  readonly rng: Rng;
}

function conversionPrices(
  from: readonly Interface[],
  to: readonly Interface[],
  { size, own, rng }: ConversionOptions,
): Float64Array {
  const prices = new Float64Array(from.length * to.length);
  let at = 0;
  for (const a of from) {
    for (const b of to) {
      const layout = a.layout === b.layout ? 0 : 2 * size;
      const place = size * Math.abs(a.place - b.place);
      const tile = Math.floor((size * Math.abs(a.tile - b.tile)) / 3);
      prices[at++] = layout + place + tile + (own === 0 ? 0 : rng.integer(0, own));
    }
  }
  return prices;
}

/** Every class is used as long as there are states enough. */
function randomClasses(states: number, classes: number, rng: Rng): Int32Array {
  const out = identity(states).map((s) => s % classes);
  for (let i = states - 1; i > 0; i--) {
    const j = rng.integer(0, i);
    [out[i], out[j]] = [out[j]!, out[i]!];
  }
  return out;
}
