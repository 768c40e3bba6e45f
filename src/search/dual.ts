/**
 * Lower bounds by dual ascent: prices are moved between variables and edges so that every assignment
 * costs the same as before while the sum of the separate minima grows. All amounts are integers, so the bound is
 * exact at every moment. Here is what has been moved where; `sweep.ts` moves it.
 */
import { propagateHard } from "./consistency.ts";
import {
  aliveStates,
  changeEdge,
  type Edge,
  gather,
  type Network,
  restrict,
  sliceClasses,
} from "./network.ts";

/** Prices are multiplied by this while they are shared out, so that little is lost to rounding. */
export function scaleFor(network: Network): number {
  let most = Math.abs(network.constant);
  for (const prices of network.unary) most += finiteMaximum(prices);
  for (const edge of network.edges) most += finiteMaximum(edge.table);
  let scale = 1;
  while (scale < 4096 && most * scale < 2 ** 44) scale *= 2;
  return scale;
}

function finiteMaximum(prices: Float64Array): number {
  let most = 0;
  for (let i = 0; i < prices.length; i++) {
    const size = Math.abs(prices[i]!);
    if (size > most && size !== Infinity) most = size;
  }
  return most;
}

/** What dual ascent needs to go on after states were removed. */
export interface DualState {
  /** With all prices scaled. */
  readonly network: Network;
  readonly scale: number;
  /** Scaled prices less what was moved into the bound. */
  readonly unary: Float64Array[];
  /** Per edge, what it has given to each class of its ends. */
  readonly toA: Float64Array[];
  readonly toB: Float64Array[];
  /** Price of a unit of each budget that is folded into the unary prices, scaled. */
  readonly multipliers: Float64Array;
  /** The bound, scaled. */
  bound: number;
}

export function startDual(network: Network, scale: number): DualState {
  const scaled = scaleNetwork(network, scale);
  const unary = scaled.unary.map((prices) => prices.slice());
  let bound = scaled.constant;
  for (const prices of unary) {
    const least = minimumOf(prices);
    if (least === Infinity) bound = Infinity;
    else for (let s = 0; s < prices.length; s++) prices[s]! -= least;
    bound += least;
  }
  return {
    network: scaled,
    scale,
    unary,
    toA: scaled.edges.map((e) => new Float64Array(e.rows)),
    toB: scaled.edges.map((e) => new Float64Array(e.columns)),
    multipliers: new Float64Array(network.budgets.length),
    bound,
  };
}

function minimumOf(prices: Float64Array): number {
  let least = Infinity;
  for (let i = 0; i < prices.length; i++) if (prices[i]! < least) least = prices[i]!;
  return least;
}

/** All prices times `scale`, the least price of every edge moved to the constant. */
function scaleNetwork(network: Network, scale: number): Network {
  const made = new Map<Float64Array, { readonly table: Float64Array; readonly least: number }>();
  const lower = (table: Float64Array): { readonly table: Float64Array; readonly least: number } => {
    let lowered = made.get(table);
    if (lowered === undefined) {
      const found = minimumOf(table);
      const least = found === Infinity ? 0 : found;
      const scaled = new Float64Array(table.length);
      for (let i = 0; i < table.length; i++) scaled[i] = (table[i]! - least) * scale;
      lowered = { table: scaled, least: least * scale };
      made.set(table, lowered);
    }
    return lowered;
  };
  let constant = network.constant * scale;
  const edges = network.edges.map((edge) => {
    const { table, least } = lower(edge.table);
    constant += least;
    return changeEdge(edge, { table });
  });
  return { ...network, unary: network.unary.map((u) => u.map((p) => p * scale)), edges, constant };
}

/**
 * A dual that begins where another of the same problem, with other prices of single states, had come to. The
 * networks may have lost different states: what an edge gave to a state that was not there is not known.
 */
export function continueDual(network: Network, before: DualState): DualState {
  const dual = startDual(network, before.scale);
  const places = network.origin.map((states, i) => {
    const known = new Map(Array.from(before.network.origin[i]!, (state, at) => [state, at]));
    return Int32Array.from(states, (state) => known.get(state) ?? -1);
  });
  network.edges.forEach((edge, e) => {
    const old = before.network.edges[e]!;
    const given = before.toA[e]!;
    const toA = dual.toA[e]!;
    places[edge.a]!.forEach((at, s) => {
      if (at >= 0) toA[edge.classA[s]!] = given[old.classA[at]!]!;
    });
    // Whatever the one side has been given, what is left for the other makes it a bound.
    pullToB(dual.network.edges[e]!, toA, dual.toB[e]!);
  });
  for (let i = 0; i < dual.unary.length; i++) normalise(dual, i);
  network.budgets.forEach((_, k) => {
    setMultiplier(dual, k, before.multipliers[k]!);
  });
  return dual;
}

/** Moves what every state of a variable costs at least into the bound. */
function normalise(dual: DualState, i: number): void {
  const least = minimumOf(reducedPrices(dual, i));
  const unary = dual.unary[i]!;
  for (let s = 0; s < unary.length; s++) unary[s]! -= least;
  dual.bound += least;
}

/**
 * Prices a unit of a budget: every use costs its amount, the whole capacity is refunded. Solutions that
 * keep the budget get no dearer by that (Lagrange), so the bound stays one.
 */
export function setMultiplier(dual: DualState, k: number, multiplier: number): void {
  const { capacity, variables, amounts } = dual.network.budgets[k]!;
  const before = dual.multipliers[k]!;
  variables.forEach((i, at) => {
    const unary = dual.unary[i]!;
    const uses = amounts[at]!;
    for (let s = 0; s < unary.length; s++) {
      unary[s]! += Math.floor(multiplier * uses[s]!) - Math.floor(before * uses[s]!);
    }
    normalise(dual, i);
  });
  dual.bound -= Math.floor(multiplier * capacity) - Math.floor(before * capacity);
  dual.multipliers[k] = multiplier;
}

/** A copy that may go its own way. */
export function copyDual(dual: DualState): DualState {
  return {
    ...dual,
    unary: dual.unary.map((u) => u.slice()),
    toA: dual.toA.map((m) => m.slice()),
    toB: dual.toB.map((m) => m.slice()),
    multipliers: dual.multipliers.slice(),
  };
}

/**
 * The dual without the marked states, and without those that the hard constraints then forbid. undefined:
 * nothing is left. Shares with the old one what did not change.
 */
export function restrictDual(
  dual: DualState,
  marked: readonly Uint8Array[],
): DualState | undefined {
  const dead = marked.map((marks) => marks.slice());
  if (!propagateHard(dual.network, dead)) return undefined;
  const kept = dead.map((marks) => (marks.includes(1) ? aliveStates(marks) : undefined));
  const slice = (given: Float64Array, classes: Int32Array, states: Int32Array | undefined) =>
    states === undefined ? given : gather(given, sliceClasses(classes, given.length, states).used);
  const { edges } = dual.network;
  return {
    ...dual,
    network: restrict(dual.network, dead),
    unary: dual.unary.map((prices, i) => gather(prices, kept[i])),
    toA: dual.toA.map((given, e) => slice(given, edges[e]!.classA, kept[edges[e]!.a])),
    toB: dual.toB.map((given, e) => slice(given, edges[e]!.classB, kept[edges[e]!.b])),
  };
}

/** The bound in the problem's prices: they are integers, so it is rounded up. */
export function boundOf(dual: DualState): number {
  return Math.ceil(dual.bound / dual.scale);
}

/** toB[c] becomes the least that the edge costs for class c, so that the edge is left with none. */
export function pullToB(edge: Edge, toA: Float64Array, toB: Float64Array): void {
  const { rows, columns, table } = edge;
  toB.fill(Infinity);
  let at = 0;
  for (let r = 0; r < rows; r++) {
    const given = toA[r]!;
    for (let c = 0; c < columns; c++) {
      const price = table[at++]! - given;
      if (price < toB[c]!) toB[c] = price;
    }
  }
}

/** The same for the other end. */
export function pullToA(edge: Edge, toA: Float64Array, toB: Float64Array): void {
  const { rows, columns, table } = edge;
  let at = 0;
  for (let r = 0; r < rows; r++) {
    let least = Infinity;
    for (let c = 0; c < columns; c++) {
      const price = table[at++]! - toB[c]!;
      if (price < least) least = price;
    }
    toA[r] = least;
  }
}

/** Prices of the states with all that the edges have given. */
export function reducedPrices(dual: DualState, i: number): Float64Array {
  const reduced = dual.unary[i]!.slice();
  for (const e of dual.network.incident[i]!) {
    const edge = dual.network.edges[e]!;
    const classes = edge.a === i ? edge.classA : edge.classB;
    const given = edge.a === i ? dual.toA[e]! : dual.toB[e]!;
    for (let s = 0; s < reduced.length; s++) reduced[s]! += given[classes[s]!]!;
  }
  return reduced;
}
