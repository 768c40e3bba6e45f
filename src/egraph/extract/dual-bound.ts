/**
 * A lower bound on DAG cost without a linear program. The value V(d) of a class is its cheapest node plus
 * what that node pays its children; V(d) itself is shared out among the classes that may use d and, for
 * a root, the goal. Whatever the shares, they are a solution of the dual of the extraction program, so
 * the goal's part is a bound, and cost + payments - V(d) is the reduced cost of a node: a choice that
 * contains the node costs at least bound + reduced cost. Shares move towards users that pay in the
 * present optimum (exponentiated subgradient). Payments against the order are 0, which keeps it valid with
 * cycles.
 */
import type { ExtractionProblem } from "./problem.ts";

export interface DualBound {
  readonly bound: number;
  readonly reducedCost: Float64Array;
}

/** A class that may pay another: one share of the payee's value. */
interface Payments {
  /** Payee of each payment, and payer; those of one payee are a run. */
  readonly payee: Int32Array;
  readonly payer: Int32Array;
  readonly start: Int32Array;
  /** Payment that each child of each node stands for, or -1 where it goes against the order. */
  readonly ofEdge: Int32Array;
}

/** @param order all classes, each after the children of one of its nodes */
export function boundFromBelow(
  problem: ExtractionProblem,
  order: Int32Array,
  options: { readonly rounds: number; readonly upper: number },
): DualBound {
  return new DualAscent(problem, order).run(options.rounds, options.upper);
}

class DualAscent {
  readonly #problem: ExtractionProblem;
  readonly #order: Int32Array;
  readonly #payments: Payments;
  readonly #share: Float64Array;
  readonly #paid: Float64Array;
  readonly #value: Float64Array;
  readonly #cheapest: Int32Array;
  readonly #isRoot: Uint8Array;

  constructor(problem: ExtractionProblem, order: Int32Array) {
    this.#problem = problem;
    this.#order = order;
    this.#payments = listPayments(problem, order);
    const count = this.#payments.payee.length;
    this.#share = new Float64Array(count);
    this.#paid = new Float64Array(count);
    this.#value = new Float64Array(problem.classCount);
    this.#cheapest = new Int32Array(problem.classCount);
    this.#isRoot = new Uint8Array(problem.classCount);
    for (const root of problem.roots) this.#isRoot[root] = 1;
    for (let i = 0; i < count; i++) {
      const d = this.#payments.payee[i]!;
      const payers = this.#payments.start[d + 1]! - this.#payments.start[d]!;
      this.#share[i] = this.#isRoot[d] ? 0 : 1 / payers;
    }
  }

  run(rounds: number, upper: number): DualBound {
    let bound = this.#evaluate();
    let best = { bound, reducedCost: this.#reducedCosts() };
    let step = 1;
    let stuck = 0;
    for (let round = 0; round < rounds && best.bound < upper; round++) {
      this.#move(step, Math.max(upper - bound, 1e-9));
      bound = this.#evaluate();
      if (bound > best.bound + 1e-12) {
        best = { bound, reducedCost: this.#reducedCosts() };
        stuck = 0;
      } else if (++stuck === 8) {
        step /= 1.5;
        stuck = 0;
      }
    }
    return best;
  }

  /** Values and payments in the order; gives the goal's part. */
  #evaluate(): number {
    const { classStart, childStart, cost } = this.#problem;
    const { ofEdge, start } = this.#payments;
    for (const c of this.#order) {
      let least = Number.POSITIVE_INFINITY;
      for (let n = classStart[c]!; n < classStart[c + 1]!; n++) {
        let sum = cost[n]!;
        for (let k = childStart[n]!; k < childStart[n + 1]!; k++) {
          const payment = ofEdge[k]!;
          if (payment >= 0) sum += this.#paid[payment]!;
        }
        if (sum < least) {
          least = sum;
          this.#cheapest[c] = n;
        }
      }
      this.#value[c] = least;
      for (let i = start[c]!; i < start[c + 1]!; i++) this.#paid[i] = this.#share[i]! * least;
    }
    return this.#problem.roots.reduce((sum, root) => sum + this.#value[root]!, 0);
  }

  #reducedCosts(): Float64Array {
    const { childStart, cost, nodeClass } = this.#problem;
    const { ofEdge } = this.#payments;
    return Float64Array.from(cost, (price, n) => {
      let sum = price;
      for (let k = childStart[n]!; k < childStart[n + 1]!; k++) {
        if (ofEdge[k]! >= 0) sum += this.#paid[ofEdge[k]!]!;
      }
      return sum - this.#value[nodeClass[n]!]!;
    });
  }

  /** Shares grow with what the bound gains by them: the flow of the present optimum times the value. */
  #move(step: number, gap: number): void {
    const gain = this.#gains();
    const square = gain.reduce((sum, g) => sum + g * g, 0);
    if (square === 0) return;
    const { start } = this.#payments;
    const scale = (step * gap) / square;
    for (let d = 0; d < this.#problem.classCount; d++) {
      if (this.#isRoot[d]) continue;
      let sum = 0;
      for (let i = start[d]!; i < start[d + 1]!; i++) {
        const factor = Math.exp(Math.min(8, scale * gain[i]!));
        this.#share[i] = Math.max(this.#share[i]! * factor, 1e-6);
        sum += this.#share[i]!;
      }
      for (let i = start[d]!; i < start[d + 1]!; i++) this.#share[i] = this.#share[i]! / sum;
    }
  }

  #gains(): Float64Array {
    const { children, childStart, classCount, roots } = this.#problem;
    const { ofEdge } = this.#payments;
    const gain = new Float64Array(this.#share.length);
    const flow = new Float64Array(classCount);
    for (const root of roots) flow[root] = 1;
    for (let i = this.#order.length - 1; i >= 0; i--) {
      const c = this.#order[i]!;
      if (flow[c] === 0) continue;
      const node = this.#cheapest[c]!;
      for (let k = childStart[node]!; k < childStart[node + 1]!; k++) {
        const payment = ofEdge[k]!;
        if (payment < 0) continue;
        const d = children[k]!;
        gain[payment] = flow[c]! * this.#value[d]!;
        flow[d] = flow[d]! + flow[c]! * this.#share[payment]!;
      }
    }
    return gain;
  }
}

function listPayments(problem: ExtractionProblem, order: Int32Array): Payments {
  const { children, childStart, classCount, nodeClass, cost } = problem;
  const place = new Int32Array(classCount).fill(-1);
  for (const [i, c] of order.entries()) place[c] = i;
  const payersOf: Map<number, number>[] = Array.from({ length: classCount }, () => new Map());
  for (let n = 0; n < cost.length; n++) {
    for (let k = childStart[n]!; k < childStart[n + 1]!; k++) {
      const [c, d] = [nodeClass[n]!, children[k]!];
      if (place[d]! < place[c]!) payersOf[d]!.set(c, 0);
    }
  }
  const start = new Int32Array(classCount + 1);
  const payee: number[] = [];
  const payer: number[] = [];
  for (const [d, payers] of payersOf.entries()) {
    for (const c of payers.keys()) {
      payers.set(c, payee.length);
      payee.push(d);
      payer.push(c);
    }
    start[d + 1] = payee.length;
  }
  const ofEdge = new Int32Array(children.length).fill(-1);
  for (let n = 0; n < cost.length; n++) {
    for (let k = childStart[n]!; k < childStart[n + 1]!; k++) {
      ofEdge[k] = payersOf[children[k]!]!.get(nodeClass[n]!) ?? -1;
    }
  }
  return { payee: Int32Array.from(payee), payer: Int32Array.from(payer), start, ofEdge };
}
