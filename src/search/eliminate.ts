/**
 * Exact solution by eliminating variables one at a time: the price of a variable's best state, as a
 * table over its neighbours, replaces it (bucket elimination, Dechter 1999; equal to dynamic programming on the
 * junction tree of the order). Chains and trees cost one table each; anything of low width is exact.
 * Tables range over interface classes, not states. The order is greedy by cost, and the cost is known
 * before a table is made.
 */
import { identity, joinClasses, type Network } from "./network.ts";

export interface EliminationPlan {
  readonly order: Int32Array;
  /** Table entries that it will touch, with what the loops around them take, counted in entries too. */
  readonly cost: number;
}

/** A greedy order; undefined when it would touch more than `limit` entries. */
export function planElimination(network: Network, limit: number): EliminationPlan | undefined {
  const planner = new Planner(network);
  const order = new Int32Array(network.unary.length);
  let cost = 0;
  for (let at = 0; at < order.length; at++) {
    const x = planner.cheapest();
    cost += planner.costs[x]!;
    if (cost > limit) return undefined;
    order[at] = x;
    planner.eliminate(x);
  }
  return { order, cost };
}

/**
 * However few states there are, a joint assignment of the neighbours takes as long as so many entries, and one
 * of all but the last neighbour as many more: twenty neighbours of two states each take far longer than
 * three of a hundred with as many entries.
 */
const rowEntries = 8;
const outerEntries = 128;

class Planner {
  readonly costs: Float64Array;
  /** Per variable: neighbour → own classes that the neighbour's tables tell apart. */
  readonly #near: Map<number, number>[];
  readonly #sizes: number[];
  readonly #gone: Uint8Array;
  /** Variables with at most one neighbour: never worse to take first. */
  readonly #leaves: number[] = [];

  constructor(network: Network) {
    this.#sizes = network.unary.map((prices) => prices.length);
    this.#near = this.#sizes.map(() => new Map());
    for (const { a, b, rows, columns } of network.edges) {
      this.#near[a]!.set(b, rows);
      this.#near[b]!.set(a, columns);
    }
    this.#gone = new Uint8Array(this.#sizes.length);
    this.costs = Float64Array.from(this.#sizes, (_, x) => this.#costOf(x));
    for (let x = this.#sizes.length - 1; x >= 0; x--) {
      if (this.#near[x]!.size <= 1) this.#leaves.push(x);
    }
  }

  #costOf(x: number): number {
    let own = 1;
    let table = 1;
    let widest = 1;
    for (const [u, classes] of this.#near[x]!) {
      const others = this.#near[u]!.get(x)!;
      own *= classes;
      table *= others;
      if (others > widest) widest = others;
    }
    const width = Math.min(own, this.#sizes[x]!);
    return table * Math.max(rowEntries, width) + (table / widest) * outerEntries;
  }

  cheapest(): number {
    for (let x = this.#leaves.pop(); x !== undefined; x = this.#leaves.pop()) {
      if (this.#gone[x] === 0) return x;
    }
    let best = -1;
    for (let x = 0; x < this.costs.length; x++) {
      if (this.#gone[x] === 0 && (best < 0 || this.costs[x]! < this.costs[best]!)) best = x;
    }
    return best;
  }

  eliminate(x: number): void {
    this.#gone[x] = 1;
    const around = [...this.#near[x]!.keys()];
    const seen = around.map((u) => this.#near[u]!.get(x)!);
    around.forEach((u, i) => {
      const near = this.#near[u]!;
      near.delete(x);
      for (const v of around) {
        if (v === u) continue;
        near.set(v, Math.min(this.#sizes[u]!, seen[i]! * (near.get(v) ?? 1)));
      }
      if (near.size <= 1) this.#leaves.push(u);
    });
    for (const u of around) this.costs[u] = this.#costOf(u);
  }
}

/** A table over classes of some variables; the last one runs fastest. */
interface Factor {
  readonly variables: readonly number[];
  readonly classes: readonly Int32Array[];
  readonly counts: readonly number[];
  readonly table: Float64Array;
}

export interface Elimination {
  readonly price: number;
  /** Absent when the price is Infinity. */
  readonly states: Int32Array | undefined;
}

/** The optimum of the network (budgets apart) in the order of the plan. */
export function eliminate(network: Network, plan: EliminationPlan): Elimination {
  const factorsAt: Factor[][] = network.unary.map(() => []);
  for (const edge of network.edges) {
    const factor: Factor = {
      variables: [edge.a, edge.b],
      classes: [edge.classA, edge.classB],
      counts: [edge.rows, edge.columns],
      table: edge.table,
    };
    factorsAt[edge.a]!.push(factor);
    factorsAt[edge.b]!.push(factor);
  }
  let price = network.constant;
  const used: Factor[][] = [];
  for (const x of plan.order) {
    const factors = factorsAt[x]!;
    used.push(factors);
    const message = eliminateOne(x, network.unary[x]!, factors);
    for (const u of message.variables) {
      factorsAt[u] = factorsAt[u]!.filter((f) => !factors.includes(f));
    }
    if (message.variables.length === 0) price += message.table[0]!;
    for (const u of message.variables) factorsAt[u]!.push(message);
  }
  if (price === Infinity) return { price, states: undefined };
  return { price, states: decode(network, plan.order, used) };
}

/** Best states in the reverse order, each given those decided before it. */
function decode(
  network: Network,
  order: Int32Array,
  used: readonly (readonly Factor[])[],
): Int32Array {
  const states = new Int32Array(order.length);
  for (let at = order.length - 1; at >= 0; at--) {
    const x = order[at]!;
    const prices = network.unary[x]!.slice();
    for (const factor of used[at]!) addFactor(prices, x, factor, states);
    let best = 0;
    for (let s = 1; s < prices.length; s++) if (prices[s]! < prices[best]!) best = s;
    states[x] = best;
  }
  return states;
}

function addFactor(prices: Float64Array, x: number, factor: Factor, states: Int32Array): void {
  let base = 0;
  let stride = 1;
  let own = 0;
  let ownClasses = factor.classes[0]!;
  for (let i = factor.variables.length - 1; i >= 0; i--) {
    const u = factor.variables[i]!;
    if (u === x) {
      own = stride;
      ownClasses = factor.classes[i]!;
    } else base += factor.classes[i]![states[u]!]! * stride;
    stride *= factor.counts[i]!;
  }
  for (let s = 0; s < prices.length; s++) prices[s]! += factor.table[base + ownClasses[s]! * own]!;
}

/** The classes of one variable that several factors tell apart, and each factor's class of them. */
interface Joint {
  readonly classes: Int32Array;
  readonly count: number;
  /** Per factor, its class for each joint class. */
  readonly of: Map<Factor, Int32Array>;
}

function jointClasses(u: number, factors: readonly Factor[]): Joint {
  const mine = factors.filter((f) => f.variables.includes(u));
  const at = (f: Factor): number => f.variables.indexOf(u);
  const first = mine[0]!;
  let classes = first.classes[at(first)]!;
  let count = first.counts[at(first)]!;
  const of = new Map([[first, identity(count)]]);
  for (const factor of mine.slice(1)) {
    const other = factor.classes[at(factor)]!;
    if (other === classes) {
      of.set(factor, identity(count));
      continue;
    }
    const joined = joinClasses(classes, other, factor.counts[at(factor)]!);
    for (const [f, map] of of)
      of.set(
        f,
        Int32Array.from(joined.parts, ([c]) => map[c]!),
      );
    of.set(
      factor,
      Int32Array.from(joined.parts, ([, c]) => c),
    );
    classes = joined.classes;
    count = joined.parts.length;
  }
  return { classes, count, of };
}

/** A factor laid out anew: joint classes of its neighbours (as they are looped over), then those of x. */
interface Laid {
  readonly neighbours: readonly number[];
  readonly counts: readonly number[];
  readonly table: Float64Array;
}

function eliminateOne(x: number, prices: Float64Array, all: readonly Factor[]): Factor {
  const unary = prices.slice();
  for (const { variables, classes, table } of all) {
    if (variables.length > 1) continue;
    for (let s = 0; s < unary.length; s++) unary[s]! += table[classes[0]![s]!]!;
  }
  const factors = all.filter((f) => f.variables.length > 1);
  const around = [...new Set(factors.flatMap((f) => f.variables))].filter((u) => u !== x);
  if (around.length === 0) return { variables: [], classes: [], counts: [], table: least(unary) };
  const joints = new Map(around.map((u) => [u, jointClasses(u, factors)]));
  // The loop over the last one is the cheapest.
  const countOf = (u: number): number => joints.get(u)!.count;
  around.sort((a, b) => countOf(a) - countOf(b) || a - b);
  const own = jointClasses(x, factors);
  const ownPrices = new Float64Array(own.count).fill(Infinity);
  for (let s = 0; s < unary.length; s++) {
    const c = own.classes[s]!;
    if (unary[s]! < ownPrices[c]!) ownPrices[c] = unary[s]!;
  }
  const laid = factors.map((f) => layOut(f, x, { around, joints, own }));
  const counts = around.map(countOf);
  const table = minimise(around, counts, ownPrices, laid);
  return { variables: around, classes: around.map((u) => joints.get(u)!.classes), counts, table };
}

function least(prices: Float64Array): Float64Array {
  let best = Infinity;
  for (let s = 0; s < prices.length; s++) if (prices[s]! < best) best = prices[s]!;
  return Float64Array.of(best);
}

interface Laying {
  readonly around: readonly number[];
  readonly joints: Map<number, Joint>;
  readonly own: Joint;
}

function layOut(factor: Factor, x: number, { around, joints, own }: Laying): Laid {
  const strides = new Array<number>(factor.variables.length);
  let stride = 1;
  for (let i = strides.length - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= factor.counts[i]!;
  }
  const positions = factor.variables.flatMap((u, i) => (u === x ? [] : [i]));
  const placeOf = (i: number): number => around.indexOf(factor.variables[i]!);
  positions.sort((i, j) => placeOf(i) - placeOf(j));
  const neighbours = positions.map((i) => factor.variables[i]!);
  const counts = neighbours.map((u) => joints.get(u)!.count);
  // Offsets of each joint assignment of the neighbours, built one neighbour at a time.
  let offsets: Int32Array = new Int32Array(1);
  positions.forEach((i) => {
    const map = joints.get(factor.variables[i]!)!.of.get(factor)!;
    const next = new Int32Array(offsets.length * map.length);
    for (let o = 0; o < offsets.length; o++) {
      for (let c = 0; c < map.length; c++) {
        next[o * map.length + c] = offsets[o]! + map[c]! * strides[i]!;
      }
    }
    offsets = next;
  });
  const ownMap = own.of.get(factor)!;
  const ownStride = strides[factor.variables.indexOf(x)]!;
  const table = new Float64Array(offsets.length * own.count);
  for (let o = 0; o < offsets.length; o++) {
    for (let c = 0; c < own.count; c++) {
      table[o * own.count + c] = factor.table[offsets[o]! + ownMap[c]! * ownStride]!;
    }
  }
  return { neighbours, counts, table };
}

/** min over x's classes of the sum, for every joint assignment of the neighbours. */
function minimise(
  around: readonly number[],
  counts: readonly number[],
  own: Float64Array,
  laid: readonly Laid[],
): Float64Array {
  const levels = around.map((_, level) => new Level(level, around, laid));
  const lastCount = counts.at(-1)!;
  const outer = counts.slice(0, -1);
  const last = levels.pop()!;
  const outerSize = outer.reduce((a, b) => a * b, 1);
  const out = new Float64Array(outerSize * lastCount);
  const digits = new Int32Array(outer.length);
  // What a level adds to x's prices stays while only digits of later levels move.
  const sums = [own, ...outer.map(() => new Float64Array(own.length))];
  const scratch = new Float64Array(own.length);
  let moved = 0;
  for (let o = 0; o < outerSize; o++) {
    for (let d = moved; d < outer.length; d++) levels[d]!.add(sums[d]!, sums[d + 1]!, digits);
    last.leastOf(sums[outer.length]!, scratch, {
      digits,
      out,
      at: o * lastCount,
      count: lastCount,
    });
    let d = outer.length - 1;
    for (; d >= 0 && ++digits[d]! === outer[d]; d--) digits[d] = 0;
    moved = Math.max(d, 0);
  }
  return out;
}

interface Rows {
  readonly digits: Int32Array;
  readonly out: Float64Array;
  readonly at: number;
  readonly count: number;
}

/** A neighbour, with the factors of which it is the last in order: they are added once all their digits are known. */
class Level {
  readonly #tables: Float64Array[] = [];
  /** Per factor, the levels that it knows and how far a step of each leads in its table. */
  readonly #levels: Int32Array[] = [];
  readonly #strides: Int32Array[] = [];
  readonly #offsets: Int32Array;
  readonly #level: number;

  constructor(level: number, around: readonly number[], laid: readonly Laid[]) {
    this.#level = level;
    for (const { neighbours, counts, table } of laid) {
      if (neighbours.at(-1) !== around[level]) continue;
      const strides = new Int32Array(neighbours.length);
      const size = neighbours.length > 0 ? counts.reduce((a, b) => a * b, 1) : 1;
      let stride = table.length / size;
      for (let i = strides.length - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= counts[i]!;
      }
      this.#tables.push(table);
      this.#levels.push(Int32Array.from(neighbours, (u) => around.indexOf(u)));
      this.#strides.push(strides);
    }
    this.#offsets = new Int32Array(this.#tables.length);
  }

  /** Where the digits of the levels up to this one, or before it, lead in a factor's table. */
  #offset(factor: number, digits: Int32Array, upTo: number): number {
    const levels = this.#levels[factor]!;
    const strides = this.#strides[factor]!;
    let offset = 0;
    for (let k = 0; k < levels.length && levels[k]! < upTo; k++) {
      offset += digits[levels[k]!]! * strides[k]!;
    }
    return offset;
  }

  /** to = from + this level's factors. */
  add(from: Float64Array, to: Float64Array, digits: Int32Array): void {
    const width = from.length;
    for (let x = 0; x < width; x++) to[x] = from[x]!;
    for (let f = 0; f < this.#tables.length; f++) {
      const table = this.#tables[f]!;
      const at = this.#offset(f, digits, this.#level + 1);
      for (let x = 0; x < width; x++) to[x]! += table[at + x]!;
    }
  }

  /** The least over x for each digit of this, the last level. */
  leastOf(row: Float64Array, sum: Float64Array, { digits, out, at, count }: Rows): void {
    const width = row.length;
    const tables = this.#tables;
    for (let f = 0; f < tables.length; f++) this.#offsets[f] = this.#offset(f, digits, this.#level);
    const first = tables[0]!;
    let from = this.#offsets[0]!;
    for (let c = 0; c < count; c++, from += width) {
      let best = Infinity;
      if (tables.length === 1) {
        for (let x = 0; x < width; x++) {
          const price = row[x]! + first[from + x]!;
          if (price < best) best = price;
        }
      } else {
        for (let x = 0; x < width; x++) sum[x] = row[x]! + first[from + x]!;
        for (let f = 1; f < tables.length; f++) {
          const table = tables[f]!;
          const start = this.#offsets[f]! + c * width;
          for (let x = 0; x < width; x++) sum[x]! += table[start + x]!;
        }
        for (let x = 0; x < width; x++) if (sum[x]! < best) best = sum[x]!;
      }
      out[at + c] = best;
    }
  }
}
