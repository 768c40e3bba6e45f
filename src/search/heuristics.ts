/**
 * Two plain baselines: beam search along the order of the variables, and simulated annealing over single
 * exchanges. Both give solutions; neither knows how good they are.
 */
import { Rng } from "../support/rng.ts";
import { makeConsistent } from "./consistency.ts";
import { conditionalPrices, descend, repairBudgets, Usage } from "./local.ts";
import { edgePrice, type Network, networkOf, networkPrice, toProblemStates } from "./network.ts";
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import type { Problem } from "./problem.ts";

const beamWidth = 64;

export function beam(problem: Problem, options: SolveOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const network = makeConsistent(networkOf(problem));
  if (network === undefined) return hopeless("beam", recorder);
  let beams: { price: number; states: number[] }[] = [{ price: network.constant, states: [] }];
  for (let i = 0; i < network.unary.length && !recorder.stops(); i++) {
    const grown = beams.flatMap((b) => extend(network, b, i));
    recorder.nodes += grown.length;
    recorder.work += grown.length * (1 + network.incident[i]!.length);
    grown.sort((x, y) => x.price - y.price);
    beams = grown.slice(0, beamWidth).map(({ price, from, state }) => {
      return { price, states: [...from, state] };
    });
  }
  for (const { states } of beams) {
    if (states.length === network.unary.length)
      offerKept(network, Int32Array.from(states), recorder);
  }
  const reason = `the ${beamWidth} cheapest partial choices were kept`;
  return recorder.finish("beam", reason);
}

function extend(
  network: Network,
  { price, states }: { readonly price: number; readonly states: readonly number[] },
  i: number,
): { price: number; from: readonly number[]; state: number }[] {
  return Array.from(network.unary[i]!, (own, state) => {
    let total = price + own;
    for (const e of network.incident[i]!) {
      const edge = network.edges[e]!;
      if (edge.b === i) total += edgePrice(edge, states[edge.a]!, state);
    }
    return { price: total, from: states, state };
  }).filter((grown) => grown.price < Infinity);
}

function hopeless(solver: string, recorder: Recorder): Outcome {
  recorder.raise(Infinity);
  return recorder.finish(solver, "the hard constraints leave a variable without a state");
}

/** Offers states after making them keep the budgets. */
function offerKept(network: Network, states: Int32Array, recorder: Recorder): void {
  if (network.budgets.length > 0 && !repairBudgets(network, states)) return;
  descend(network, states);
  recorder.offer(toProblemStates(network, states));
}

/** Exchanges tried for each state of the problem. */
const exchangesPerState = 200;

export function anneal(problem: Problem, options: SolveOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const network = makeConsistent(networkOf(problem));
  if (network === undefined) return hopeless("anneal", recorder);
  const rng = new Rng(options.seed ?? 0);
  const states = Int32Array.from(network.unary, (prices) => rng.integer(0, prices.length - 1));
  descend(network, states);
  if (network.budgets.length > 0) repairBudgets(network, states);
  new Annealing(network, states, rng).run(recorder);
  return recorder.finish("anneal", recorder.stops() ? recorder.closing() : "cooled down");
}

class Annealing {
  readonly #network: Network;
  readonly #states: Int32Array;
  readonly #rng: Rng;
  readonly #usage: Usage;

  constructor(network: Network, states: Int32Array, rng: Rng) {
    this.#network = network;
    this.#states = states;
    this.#rng = rng;
    this.#usage = new Usage(network, states);
  }

  run(recorder: Recorder): void {
    const network = this.#network;
    const total = network.unary.reduce((sum, prices) => sum + prices.length, 0);
    const exchanges = total * exchangesPerState;
    const hot = this.#spread();
    let price = networkPrice(network, this.#states);
    let best = Infinity;
    for (let k = 0; k < exchanges; k++) {
      const temperature = hot * 0.001 ** (k / exchanges);
      price += this.#exchange(temperature);
      recorder.work++;
      if (Number.isNaN(price)) price = networkPrice(network, this.#states);
      if (price < best && this.#usage.excess === 0) {
        best = price;
        recorder.offer(toProblemStates(network, this.#states));
      }
      if (k % 4096 === 0 && recorder.stops()) return;
    }
    offerKept(network, this.#states.slice(), recorder);
  }

  /** Mean difference between a variable's dearest and cheapest state. */
  #spread(): number {
    let sum = 0;
    for (const prices of this.#network.unary) sum += Math.max(...prices) - Math.min(...prices);
    return 1 + sum / this.#network.unary.length;
  }

  /** Tries one state; the change of price when it is taken, else 0. NaN: out of a forbidden pair. */
  #exchange(temperature: number): number {
    const i = this.#rng.integer(0, this.#states.length - 1);
    const to = this.#rng.integer(0, this.#network.unary[i]!.length - 1);
    const from = this.#states[i]!;
    if (to === from || !this.#usage.allows(i, from, to)) return 0;
    const prices = conditionalPrices(this.#network, this.#states, i);
    const change = prices[to]! - prices[from]!;
    if (change > 0 && this.#rng.uniform() >= Math.exp(-change / temperature)) return 0;
    if (prices[to] === Infinity) return 0;
    this.#usage.move(i, from, to);
    this.#states[i] = to;
    return prices[from] === Infinity ? Number.NaN : change;
  }
}
