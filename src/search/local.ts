/**
 * Local moves on a complete assignment (in a network's state numbers): single variables to their best
 * state until none improves, exact re-solution of a window of variables with the others held, and
 * repair of exceeded budgets by the cheapest exchange of price for amount.
 */
import { eliminate, planElimination } from "./eliminate.ts";
import { Heap } from "./heap.ts";
import { changeEdge, type Edge, incidence, type Network, type NetworkBudget } from "./network.ts";

/** Price of every state of a variable, given its neighbours' states. */
export function conditionalPrices(network: Network, states: Int32Array, i: number): Float64Array {
  const prices = network.unary[i]!.slice();
  for (const e of network.incident[i]!) addConditional(prices, network.edges[e]!, states, i);
  return prices;
}

function addConditional(prices: Float64Array, edge: Edge, states: Int32Array, i: number): void {
  const { table, columns, classA, classB } = edge;
  if (edge.a === i) {
    const column = classB[states[edge.b]!]!;
    for (let s = 0; s < prices.length; s++) prices[s]! += table[classA[s]! * columns + column]!;
    return;
  }
  const row = classA[states[edge.a]!]! * columns;
  for (let s = 0; s < prices.length; s++) prices[s]! += table[row + classB[s]!]!;
}

/** What the budgets hold beside the chosen states; room for exchanges of one variable. */
export class Usage {
  readonly used: Float64Array;
  readonly #network: Network;
  /** Per variable, [budget, its place in it]. */
  readonly #places: (readonly (readonly [number, number])[])[];

  constructor(network: Network, states: Int32Array) {
    this.#network = network;
    this.used = Float64Array.from(network.budgets, (b) => amountOf(b, states));
    const places: [number, number][][] = network.unary.map(() => []);
    network.budgets.forEach((budget, k) => {
      budget.variables.forEach((i, at) => {
        places[i]!.push([k, at]);
      });
    });
    this.#places = places;
  }

  /** Budgets stay kept, or at least no worse where they are exceeded. */
  allows(i: number, from: number, to: number): boolean {
    return this.#places[i]!.every(([k, at]) => {
      const budget = this.#network.budgets[k]!;
      const change = budget.amounts[at]![to]! - budget.amounts[at]![from]!;
      return change <= 0 || this.used[k]! + change <= budget.capacity;
    });
  }

  move(i: number, from: number, to: number): void {
    for (const [k, at] of this.#places[i]!) {
      const amounts = this.#network.budgets[k]!.amounts[at]!;
      this.used[k]! += amounts[to]! - amounts[from]!;
    }
  }

  /** Amount over capacity, all budgets together. */
  get excess(): number {
    let sum = 0;
    this.#network.budgets.forEach((b, k) => {
      sum += Math.max(0, this.used[k]! - b.capacity);
    });
    return sum;
  }

  /** By how much the excess shrinks. */
  relief(i: number, from: number, to: number): number {
    let sum = 0;
    for (const [k, at] of this.#places[i]!) {
      const budget = this.#network.budgets[k]!;
      const over = this.used[k]! - budget.capacity;
      const change = budget.amounts[at]![to]! - budget.amounts[at]![from]!;
      sum += Math.max(0, over) - Math.max(0, over + change);
    }
    return sum;
  }
}

function amountOf(budget: NetworkBudget, states: Int32Array): number {
  let sum = 0;
  budget.variables.forEach((i, at) => {
    sum += budget.amounts[at]![states[i]!]!;
  });
  return sum;
}

/** Moves single variables while that helps (iterated conditional modes, Besag 1986); in place. */
export function descend(network: Network, states: Int32Array): void {
  const usage = network.budgets.length > 0 ? new Usage(network, states) : undefined;
  const queue = Array.from(states, (_, i) => i);
  const queued = new Uint8Array(states.length).fill(1);
  const limit = 50 * states.length;
  for (let at = 0; at < queue.length && at < limit; at++) {
    const i = queue[at]!;
    queued[i] = 0;
    const from = states[i]!;
    const prices = conditionalPrices(network, states, i);
    let best = from;
    for (let s = 0; s < prices.length; s++) {
      if (prices[s]! < prices[best]! && (usage?.allows(i, from, s) ?? true)) best = s;
    }
    if (best === from) continue;
    usage?.move(i, from, best);
    states[i] = best;
    for (const e of network.incident[i]!) {
      const edge = network.edges[e]!;
      const j = edge.a === i ? edge.b : edge.a;
      if (queued[j] === 1) continue;
      queued[j] = 1;
      queue.push(j);
    }
  }
}

interface Exchange {
  readonly variable: number;
  readonly to: number;
  readonly rate: number;
}

/** Exchanges states until the budgets hold, cheapest price for relief first; false: cannot. */
export function repairBudgets(network: Network, states: Int32Array): boolean {
  const usage = new Usage(network, states);
  if (usage.excess <= 0) return true;
  const heap = new Heap<Exchange>();
  const propose = (i: number): void => {
    const found = cheapestRelief(network, states, usage, i);
    if (found !== undefined) heap.push(found.rate, found);
  };
  for (let i = 0; i < states.length; i++) propose(i);
  let patience = 20 * states.length;
  while (usage.excess > 0 && patience-- > 0) {
    const proposed = heap.pop();
    if (proposed === undefined) return false;
    const { variable: i } = proposed;
    // What was cheapest may no longer be: its neighbours or the budgets have changed since.
    const now = cheapestRelief(network, states, usage, i);
    if (now === undefined) continue;
    if (now.rate > Math.min(proposed.rate, heap.least)) {
      heap.push(now.rate, now);
      continue;
    }
    usage.move(i, states[i]!, now.to);
    states[i] = now.to;
    propose(i);
  }
  return usage.excess <= 0;
}

function cheapestRelief(
  network: Network,
  states: Int32Array,
  usage: Usage,
  i: number,
): Exchange | undefined {
  const from = states[i]!;
  const prices = conditionalPrices(network, states, i);
  let best: Exchange | undefined;
  for (let s = 0; s < prices.length; s++) {
    const relief = usage.relief(i, from, s);
    if (relief <= 0 || prices[s] === Infinity) continue;
    const rate = (prices[s]! - prices[from]!) / relief;
    if (best === undefined || rate < best.rate) best = { variable: i, to: s, rate };
  }
  return best;
}

/** The best states of the window's variables with all others held, in place; work done, 0: too wide. */
export function solveWindow(
  network: Network,
  states: Int32Array,
  window: readonly number[],
  limit: number,
): number {
  const numbers = new Map(window.map((i, at) => [i, at]));
  const unary = window.map((i) => network.unary[i]!.slice());
  const edges: Edge[] = [];
  const seen = new Set<number>();
  for (const [at, i] of window.entries()) {
    for (const e of network.incident[i]!) {
      const edge = network.edges[e]!;
      const other = numbers.get(edge.a === i ? edge.b : edge.a);
      if (other === undefined) addConditional(unary[at]!, edge, states, i);
      else if (!seen.has(e)) {
        seen.add(e);
        edges.push(changeEdge(edge, { a: numbers.get(edge.a)!, b: numbers.get(edge.b)! }));
      }
    }
  }
  const origin = window.map((i) => network.origin[i]!);
  const incident = incidence(window.length, edges);
  const part = { ...network, unary, edges, incident, budgets: [], origin, constant: 0 };
  const plan = planElimination(part, limit);
  if (plan === undefined) return 0;
  const best = eliminate(part, plan);
  if (best.states !== undefined) {
    for (const [at, i] of window.entries()) states[i] = best.states[at]!;
  }
  return plan.cost;
}

/** Variables around `start`, nearest first. */
export function neighbourhoodOf(network: Network, start: number, count: number): number[] {
  const found = [start];
  const seen = new Set(found);
  for (let at = 0; at < found.length && found.length < count; at++) {
    for (const e of network.incident[found[at]!]!) {
      const edge = network.edges[e]!;
      const j = edge.a === found[at] ? edge.b : edge.a;
      if (seen.has(j) || found.length >= count) continue;
      seen.add(j);
      found.push(j);
    }
  }
  return found;
}
