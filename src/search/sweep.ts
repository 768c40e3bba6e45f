/**
 * Dual ascent by sweeps (TRW-S, Kolmogorov 2006; the sequential form of SRMP, 2015): the variables are visited
 * in order, each pulls what its edges to earlier variables can give, adds its minimum to the bound, and
 * pushes its share on to later ones; the next sweep goes back.
 *
 * What is left at a variable is the reduced cost of each state: taking that state costs at least so
 * much more than the bound. A state whose bound passes the best known solution is marked for removal
 * (reduced-cost fixing) on the way, and a solution can be chosen: each variable's best state given those before.
 *
 * A sweep over small tables is mostly walking, so it makes no arrays of its own where it can do without.
 */
import { type DualState, pullToA, pullToB } from "./dual.ts";
import type { Edge } from "./network.ts";

export interface Sweep {
  /** States that cannot be part of a solution cheaper than the limit. To be read only: some are shared. */
  readonly dead: Uint8Array[];
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
  /** For the states of one variable: reduced prices, and prices while a solution is chosen. */
  readonly reduced: Float64Array;
  readonly prices: Float64Array;
}

/** One sweep; states that only solutions at least as expensive as the best known have are marked. */
export function sweepOnce(
  dual: DualState,
  forward: boolean,
  { best, round, floors }: SweepOptions,
): Sweep {
  const count = dual.unary.length;
  const sweep: Sweep = {
    dead: dual.unary.map((prices) => unmarked(prices.length)),
    removed: 0,
    rounded: round ? new Int32Array(count) : undefined,
    floors: floors ? [] : undefined,
    work: 0,
  };
  const limit = best === Infinity ? Infinity : (best - 1) * dual.scale;
  const widest = dual.unary.reduce((most, prices) => Math.max(most, prices.length), 0);
  const [reduced, prices] = [new Float64Array(widest), new Float64Array(widest)];
  const context = { dual, sweep, forward, limit, reduced, prices };
  for (let k = 0; k < count && dual.bound !== Infinity; k++) {
    visit(context, forward ? k : count - 1 - k);
  }
  return sweep;
}

const zeros: Uint8Array[] = [];

/** No marks, shared by all variables of so many states. */
function unmarked(states: number): Uint8Array {
  zeros[states] ??= new Uint8Array(states);
  return zeros[states];
}

function visit(context: SweepContext, i: number): void {
  const { dual, sweep, forward, reduced } = context;
  const { edges, incident } = dual.network;
  const mine = incident[i]!;
  const unary = dual.unary[i]!;
  for (let s = 0; s < unary.length; s++) reduced[s] = unary[s]!;
  let before = 0;
  for (let k = 0; k < mine.length; k++) {
    const e = mine[k]!;
    const edge = edges[e]!;
    const atB = edge.b === i;
    const toA = dual.toA[e]!;
    const toB = dual.toB[e]!;
    if (atB === forward) {
      before++;
      sweep.work += edge.table.length;
      if (atB) pullToB(edge, toA, toB);
      else pullToA(edge, toA, toB);
    }
    addGiven(reduced, unary.length, atB ? edge.classB : edge.classA, atB ? toB : toA);
  }
  if (sweep.rounded !== undefined) sweep.rounded = roundAt(context, i, sweep.rounded);
  if (!settle(context, i)) return;
  const after = mine.length - before;
  if (after > 0) pushOn(context, i, 1 / Math.max(before, after));
}

function addGiven(
  prices: Float64Array,
  count: number,
  classes: Int32Array,
  given: Float64Array,
): void {
  for (let s = 0; s < count; s++) prices[s]! += given[classes[s]!]!;
}

/** Moves the minimum into the bound and marks the states that are now too expensive; false: none is allowed. */
function settle({ dual, sweep, limit, reduced }: SweepContext, i: number): boolean {
  const unary = dual.unary[i]!;
  let least = Infinity;
  for (let s = 0; s < unary.length; s++) if (reduced[s]! < least) least = reduced[s]!;
  if (least === Infinity) {
    dual.bound = Infinity;
    return false;
  }
  const room = limit - dual.bound - least;
  let over = 0;
  for (let s = 0; s < unary.length; s++) {
    unary[s]! -= least;
    reduced[s]! -= least;
    if (reduced[s]! > room) over++;
  }
  dual.bound += least;
  if (sweep.floors !== undefined) {
    sweep.floors[i] = reduced.slice(0, unary.length).map((p) => p + dual.bound);
  }
  if (over > 0) {
    sweep.dead[i] = Uint8Array.from(unary, (_, s) => (reduced[s]! > room ? 1 : 0));
    sweep.removed += over;
  }
  return true;
}

/** Gives every later edge its share of what the variable has. */
function pushOn({ dual, forward, reduced }: SweepContext, i: number, share: number): void {
  const mine = dual.network.incident[i]!;
  const count = dual.unary[i]!.length;
  for (let k = 0; k < mine.length; k++) {
    const e = mine[k]!;
    const edge = dual.network.edges[e]!;
    const atA = edge.a === i;
    if (atA !== forward) continue;
    const classes = atA ? edge.classA : edge.classB;
    const given = atA ? dual.toA[e]! : dual.toB[e]!;
    if (given.length === count) {
      for (let s = 0; s < count; s++) given[classes[s]!]! -= Math.floor(reduced[s]! * share);
    } else pushToClasses(given, classes, { reduced, share });
  }
}

interface Push {
  readonly reduced: Float64Array;
  readonly share: number;
}

function pushToClasses(given: Float64Array, classes: Int32Array, { reduced, share }: Push): void {
  const least = new Float64Array(given.length).fill(Infinity);
  for (let s = 0; s < classes.length; s++) {
    const c = classes[s]!;
    if (reduced[s]! < least[c]!) least[c] = reduced[s]!;
  }
  for (let c = 0; c < given.length; c++) given[c]! -= Math.floor(least[c]! * share);
}

/** The best state given the states chosen before: real prices behind, what edges have given ahead. */
function roundAt(
  { dual, forward, prices }: SweepContext,
  i: number,
  states: Int32Array,
): Int32Array | undefined {
  const unary = dual.unary[i]!;
  for (let s = 0; s < unary.length; s++) prices[s] = unary[s]!;
  const mine = dual.network.incident[i]!;
  for (let k = 0; k < mine.length; k++) {
    const e = mine[k]!;
    const edge = dual.network.edges[e]!;
    const atB = edge.b === i;
    if (atB === forward) addDecided(prices, edge, atB, states[atB ? edge.a : edge.b]!);
    else {
      const classes = atB ? edge.classB : edge.classA;
      addGiven(prices, unary.length, classes, atB ? dual.toB[e]! : dual.toA[e]!);
    }
  }
  let best = 0;
  for (let s = 1; s < unary.length; s++) if (prices[s]! < prices[best]!) best = s;
  if (prices[best] === Infinity) return undefined;
  states[i] = best;
  return states;
}

/** What an edge costs each state of one end, given the other's. */
function addDecided(prices: Float64Array, edge: Edge, atB: boolean, other: number): void {
  const { table, columns, classA, classB } = edge;
  if (atB) {
    const row = classA[other]! * columns;
    for (let s = 0; s < classB.length; s++) prices[s]! += table[row + classB[s]!]!;
    return;
  }
  const column = classB[other]!;
  for (let s = 0; s < classA.length; s++) prices[s]! += table[classA[s]! * columns + column]!;
}
