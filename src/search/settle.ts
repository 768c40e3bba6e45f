/**
 * Takes variables with one state left out of a dual's network: their prices go to the bound and to their
 * neighbours, so that later sweeps no longer visit them.
 */
import type { DualState } from "./dual.ts";
import { changeEdge, type Edge, incidence, type Network, type NetworkBudget } from "./network.ts";

/** The same dual with fewer variables; itself when too few are settled to be worth it. */
export function dropSettled(dual: DualState): DualState {
  const { network } = dual;
  const open = Int32Array.from(network.unary, (prices) => (prices.length > 1 ? 1 : 0));
  let left = 0;
  const numbers = open.map((o) => (o === 1 ? left++ : -1));
  if (left > 0.75 * numbers.length) return dual;
  const folder = new Folder(dual, numbers);
  return folder.fold();
}

class Folder {
  readonly #dual: DualState;
  readonly #numbers: Int32Array;
  /** Variables that stay, by their old numbers. */
  readonly #kept: Int32Array;
  #constant: number;
  #bound: number;
  readonly #prices: Float64Array[];
  readonly #unary: Float64Array[];

  constructor(dual: DualState, numbers: Int32Array) {
    this.#dual = dual;
    this.#numbers = numbers;
    const { network } = dual;
    this.#kept = Int32Array.from(numbers, (_, i) => i).filter((i) => numbers[i]! >= 0);
    this.#constant = network.constant;
    this.#bound = dual.bound;
    this.#prices = Array.from(this.#kept, (i) => network.unary[i]!.slice());
    this.#unary = Array.from(this.#kept, (i) => dual.unary[i]!);
  }

  fold(): DualState {
    const { network, toA, toB } = this.#dual;
    for (let i = 0; i < this.#numbers.length; i++) {
      if (this.#numbers[i]! >= 0) continue;
      this.#constant += network.unary[i]![0]!;
      this.#bound += this.#dual.unary[i]![0]!;
    }
    const stay = network.edges.flatMap((edge, e) => (this.#keep(edge, e) ? [e] : []));
    const edges = stay.map((e) => {
      const edge = network.edges[e]!;
      return changeEdge(edge, { a: this.#numbers[edge.a]!, b: this.#numbers[edge.b]! });
    });
    return {
      ...this.#dual,
      network: this.#smaller(edges),
      unary: this.#unary,
      toA: stay.map((e) => toA[e]!),
      toB: stay.map((e) => toB[e]!),
      bound: this.#bound,
    };
  }

  /** Folds an edge with a settled end away; true when both ends stay. */
  #keep(edge: Edge, e: number): boolean {
    const a = this.#numbers[edge.a]!;
    const b = this.#numbers[edge.b]!;
    if (a >= 0 && b >= 0) return true;
    const { toA, toB } = this.#dual;
    const row = edge.classA[0]!;
    const column = edge.classB[0]!;
    if (a < 0 && b < 0) {
      this.#constant += edge.table[row * edge.columns + column]!;
      this.#bound += edge.table[row * edge.columns + column]!;
    } else if (a < 0) {
      this.#bound += toA[e]![row]!;
      const price = (s: number): number => edge.table[row * edge.columns + edge.classB[s]!]!;
      this.#add(b, price, toA[e]![row]!);
    } else {
      this.#bound += toB[e]![column]!;
      const price = (s: number): number => edge.table[edge.classA[s]! * edge.columns + column]!;
      this.#add(a, price, toB[e]![column]!);
    }
    return false;
  }

  #add(at: number, price: (state: number) => number, given: number): void {
    const prices = this.#prices[at]!;
    const unary = this.#unary[at]!.slice();
    for (let s = 0; s < prices.length; s++) {
      prices[s]! += price(s);
      unary[s]! += price(s) - given;
    }
    this.#unary[at] = unary;
  }

  #smaller(edges: readonly Edge[]): Network {
    const { network } = this.#dual;
    const settled = network.settled.slice();
    for (let i = 0; i < this.#numbers.length; i++) {
      if (this.#numbers[i]! < 0) settled[network.variables[i]!] = network.origin[i]![0]!;
    }
    return {
      unary: this.#prices,
      edges,
      incident: incidence(this.#kept.length, edges),
      budgets: network.budgets.map((b) => this.#budget(b)),
      origin: Array.from(this.#kept, (i) => network.origin[i]!),
      variables: this.#kept.map((i) => network.variables[i]!),
      settled,
      constant: this.#constant,
    };
  }

  #budget(budget: NetworkBudget): NetworkBudget {
    let capacity = budget.capacity;
    const places: number[] = [];
    budget.variables.forEach((i, at) => {
      if (this.#numbers[i]! >= 0) places.push(at);
      else capacity -= budget.amounts[at]![0]!;
    });
    return {
      capacity,
      variables: Int32Array.from(places, (at) => this.#numbers[budget.variables[at]!]!),
      amounts: places.map((at) => budget.amounts[at]!),
    };
  }
}
