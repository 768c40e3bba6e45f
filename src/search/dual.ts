/**
 * Lower bounds by dual ascent: prices are moved between variables and edges so that every assignment
 * costs the same as before while the sum of the separate minima grows (TRW-S, Kolmogorov 2006; the
 * sequential form of SRMP, 2015). A sweep visits the variables in order: each pulls what its edges
 * to earlier variables can give, adds its minimum to the bound, and pushes its share on to later ones; the
 * next sweep goes back. All amounts are integers, so the bound is exact at every moment.
 *
 * What is left at a variable is the reduced cost of each state: taking that state costs at least so
 * much more than the bound. A state whose bound passes the best known solution is marked for removal
 * (reduced-cost fixing) on the way.
 */
import { propagateHard } from "./consistency.ts";
import {
  aliveStates,
  type Edge,
  gather,
  type Network,
  noMarks,
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
    return { ...edge, table };
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
 * The dual without the marked states, and without those that the hard constraints then forbid (marks are
 * added to `dead`). undefined: nothing is left. Shares with the old one what did not change.
 */
export function restrictDual(dual: DualState, dead: readonly Uint8Array[]): DualState | undefined {
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

export interface Sweep {
  /** States that cannot be part of a solution cheaper than the limit. */
  readonly dead: readonly Uint8Array[];
  removed: number;
  /** A state for each variable, chosen on the way given those before it; undefined at a dead end. */
  rounded: Int32Array | undefined;
  /** When asked for: per variable and state, no solution with that state costs less (scaled). */
  readonly floors: Float64Array[] | undefined;
  work: number;
}

export interface SweepOptions {
  /** Price of the best known solution; Infinity: none. */
  readonly best: number;
  /** Whether to choose a solution on the way. */
  readonly round: boolean;
  readonly floors?: boolean;
}

interface SweepContext {
  readonly dual: DualState;
  readonly sweep: Sweep;
  readonly forward: boolean;
  /** A reduced cost above this removes a state. */
  readonly limit: number;
}

/** One sweep; states that only solutions at least as expensive as the best known have are marked. */
export function sweepOnce(
  dual: DualState,
  forward: boolean,
  { best, round, floors }: SweepOptions,
): Sweep {
  const count = dual.unary.length;
  const sweep: Sweep = {
    dead: noMarks(dual.network),
    removed: 0,
    rounded: round ? new Int32Array(count) : undefined,
    floors: floors ? [] : undefined,
    work: 0,
  };
  const limit = best === Infinity ? Infinity : (best - 1) * dual.scale;
  const context = { dual, sweep, forward, limit };
  for (let k = 0; k < count && dual.bound !== Infinity; k++) {
    visit(context, forward ? k : count - 1 - k);
  }
  return sweep;
}

function visit(context: SweepContext, i: number): void {
  const { dual, sweep, forward } = context;
  const { edges, incident } = dual.network;
  const mine = incident[i]!;
  let before = 0;
  for (const e of mine) {
    const edge = edges[e]!;
    const earlier = (edge.b === i) === forward;
    if (!earlier) continue;
    before++;
    if (edge.b === i) pullToB(edge, dual.toA[e]!, dual.toB[e]!);
    else pullToA(edge, dual.toA[e]!, dual.toB[e]!);
    sweep.work += edge.table.length;
  }
  const reduced = reducedPrices(dual, i);
  if (sweep.rounded !== undefined) sweep.rounded = roundAt(context, i, sweep.rounded);
  if (!settle(context, i, reduced)) return;
  const after = mine.length - before;
  if (after > 0) pushOn(context, i, { reduced, share: 1 / Math.max(before, after) });
}

/** toB[c] becomes the least that the edge costs for class c, so that the edge is left with none. */
function pullToB(edge: Edge, toA: Float64Array, toB: Float64Array): void {
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

function pullToA(edge: Edge, toA: Float64Array, toB: Float64Array): void {
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

/** Moves the minimum into the bound and marks the states that are now too expensive; false: none is allowed. */
function settle({ dual, sweep, limit }: SweepContext, i: number, reduced: Float64Array): boolean {
  let least = Infinity;
  for (let s = 0; s < reduced.length; s++) if (reduced[s]! < least) least = reduced[s]!;
  if (least === Infinity) {
    dual.bound = Infinity;
    return false;
  }
  const unary = dual.unary[i]!;
  for (let s = 0; s < reduced.length; s++) {
    unary[s]! -= least;
    reduced[s]! -= least;
  }
  dual.bound += least;
  if (sweep.floors !== undefined) sweep.floors[i] = reduced.map((p) => p + dual.bound);
  const room = limit - dual.bound;
  const dead = sweep.dead[i]!;
  for (let s = 0; s < reduced.length; s++) {
    if (reduced[s]! > room) {
      dead[s] = 1;
      sweep.removed++;
    }
  }
  return true;
}

interface Push {
  readonly reduced: Float64Array;
  readonly share: number;
}

/** Gives every later edge its share of what the variable has. */
function pushOn({ dual, forward }: SweepContext, i: number, { reduced, share }: Push): void {
  for (const e of dual.network.incident[i]!) {
    const edge = dual.network.edges[e]!;
    const later = (edge.a === i) === forward;
    if (!later) continue;
    const classes = edge.a === i ? edge.classA : edge.classB;
    const given = edge.a === i ? dual.toA[e]! : dual.toB[e]!;
    if (given.length === reduced.length) {
      for (let s = 0; s < reduced.length; s++) {
        given[classes[s]!]! -= Math.floor(reduced[s]! * share);
      }
      continue;
    }
    const least = new Float64Array(given.length).fill(Infinity);
    for (let s = 0; s < reduced.length; s++) {
      const c = classes[s]!;
      if (reduced[s]! < least[c]!) least[c] = reduced[s]!;
    }
    for (let c = 0; c < given.length; c++) given[c]! -= Math.floor(least[c]! * share);
  }
}

/** The best state given the states chosen before: real prices behind, what edges have given ahead. */
function roundAt(
  { dual, forward }: SweepContext,
  i: number,
  states: Int32Array,
): Int32Array | undefined {
  const prices = dual.unary[i]!.slice();
  for (const e of dual.network.incident[i]!) {
    const edge = dual.network.edges[e]!;
    const atA = edge.a === i;
    const classes = atA ? edge.classA : edge.classB;
    if ((edge.b === i) === forward) addDecided(prices, edge, atA, states);
    else {
      const given = atA ? dual.toA[e]! : dual.toB[e]!;
      for (let s = 0; s < prices.length; s++) prices[s]! += given[classes[s]!]!;
    }
  }
  let best = 0;
  for (let s = 1; s < prices.length; s++) if (prices[s]! < prices[best]!) best = s;
  if (prices[best] === Infinity) return undefined;
  states[i] = best;
  return states;
}

function addDecided(prices: Float64Array, edge: Edge, atA: boolean, states: Int32Array): void {
  const { table, columns } = edge;
  if (atA) {
    const column = edge.classB[states[edge.b]!]!;
    for (let s = 0; s < prices.length; s++) {
      prices[s]! += table[edge.classA[s]! * columns + column]!;
    }
    return;
  }
  const row = edge.classA[states[edge.a]!]! * columns;
  for (let s = 0; s < prices.length; s++) prices[s]! += table[row + edge.classB[s]!]!;
}
