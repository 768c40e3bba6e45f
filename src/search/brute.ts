/** Every assignment in turn, cut off only where a partial price already has no way back. For small problems. */
import { makeConsistent } from "./consistency.ts";
import { edgePrice, type Network, networkOf, toProblemStates } from "./network.ts";
import { type Outcome, Recorder, type SolveOptions } from "./outcome.ts";
import type { Problem } from "./problem.ts";

export function brute(problem: Problem, options: SolveOptions = {}): Outcome {
  const recorder = new Recorder(problem, options);
  const network = makeConsistent(networkOf(problem));
  if (network === undefined) {
    recorder.raise(Infinity);
    return recorder.finish("brute", "the hard constraints leave a variable without a state");
  }
  const complete = enumerate(network, recorder);
  if (complete) recorder.raise(Infinity);
  return recorder.finish("brute", complete ? "every assignment was tried" : recorder.closing());
}

function enumerate(network: Network, recorder: Recorder): boolean {
  const count = network.unary.length;
  const states = new Int32Array(count).fill(-1);
  const price = new Float64Array(count + 1);
  price[0] = network.constant;
  const rest = cheapestRest(network);
  let at = 0;
  while (at >= 0) {
    if (at === count) {
      recorder.offer(toProblemStates(network, states));
      at--;
      continue;
    }
    states[at]!++;
    if (states[at] === network.unary[at]!.length) {
      states[at] = -1;
      at--;
      continue;
    }
    recorder.nodes++;
    recorder.work++;
    if (recorder.nodes % 1024 === 0 && recorder.stops()) return false;
    price[at + 1] = price[at]! + addedPrice(network, states, at);
    if (price[at + 1]! + rest[at + 1]! < recorder.objective) at++;
  }
  return true;
}

/** Least that the variables from here on add: prices may be negative. */
function cheapestRest(network: Network): Float64Array {
  const rest = new Float64Array(network.unary.length + 1);
  for (let i = network.unary.length - 1; i >= 0; i--) {
    rest[i] = rest[i + 1]! + Math.min(...network.unary[i]!);
    for (const e of network.incident[i]!) {
      const edge = network.edges[e]!;
      if (edge.b === i) rest[i]! += edge.table.reduce((a, b) => Math.min(a, b), Infinity);
    }
  }
  return rest;
}

function addedPrice(network: Network, states: Int32Array, at: number): number {
  let price = network.unary[at]![states[at]!]!;
  for (const e of network.incident[at]!) {
    const edge = network.edges[e]!;
    if (edge.b === at) price += edgePrice(edge, states[edge.a]!, states[at]!);
  }
  return price;
}
