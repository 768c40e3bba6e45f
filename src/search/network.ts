/**
 * The problem as the solvers hold it: typed arrays, forbidden states gone, parallel transitions merged,
 * every edge from the earlier to the later variable. A network is never changed once made (but for the
 * dual messages that its owner keeps beside it): removing states makes a smaller network, in which
 * `origin` says which states are left.
 */
import { type Assignment, classAt, type Problem, type Transition } from "./problem.ts";

export interface Edge {
  /** Always a < b. */
  readonly a: number;
  readonly b: number;
  readonly classA: Int32Array;
  readonly classB: Int32Array;
  readonly rows: number;
  readonly columns: number;
  /** rows × columns. */
  readonly table: Float64Array;
  /** Whether a pair is forbidden. */
  readonly hard: boolean;
}

/** Every edge has its properties in this one order: engines read those of objects of one shape fast. */
export function changeEdge(edge: Edge, changes: Partial<Edge>): Edge {
  const { a, b, classA, classB, rows, columns, table, hard } = { ...edge, ...changes };
  return { a, b, classA, classB, rows, columns, table, hard };
}

export interface NetworkBudget {
  readonly capacity: number;
  readonly variables: Int32Array;
  /** Per entry of `variables`, one amount a state. */
  readonly amounts: readonly Float64Array[];
}

export interface Network {
  readonly unary: readonly Float64Array[];
  readonly edges: readonly Edge[];
  /** Edge numbers at each variable. */
  readonly incident: readonly (readonly number[])[];
  readonly budgets: readonly NetworkBudget[];
  /** State of the problem for each state left of each variable. */
  readonly origin: readonly Int32Array[];
  /** Variable of the problem for each variable left. */
  readonly variables: Int32Array;
  /** States of the problem's variables that are no longer here. */
  readonly settled: Int32Array;
  readonly constant: number;
}

const identities = new Map<number, Int32Array>();

/** 0, 1, … count-1, shared. */
export function identity(count: number): Int32Array {
  let found = identities.get(count);
  if (found === undefined) {
    found = Int32Array.from({ length: count }, (_, i) => i);
    identities.set(count, found);
  }
  return found;
}

export function incidence(variables: number, edges: readonly Edge[]): number[][] {
  const incident: number[][] = Array.from({ length: variables }, () => []);
  edges.forEach((edge, e) => {
    incident[edge.a]!.push(e);
    incident[edge.b]!.push(e);
  });
  return incident;
}

/** The network of a problem with the excluded states removed. */
export function networkOf(problem: Problem): Network {
  const variables = problem.variables.length;
  const full: Network = {
    unary: problem.variables.map((v) => v.prices),
    edges: mergeParallel(problem.transitions.map((t) => withoutUnused(edgeOf(problem, t)))),
    incident: [],
    budgets: problem.budgets.map((b) => ({
      capacity: b.capacity,
      variables: Int32Array.from(b.uses, (u) => u.variable),
      amounts: b.uses.map((u) => u.amounts),
    })),
    origin: problem.variables.map((v) => identity(v.prices.length)),
    variables: identity(variables),
    settled: new Int32Array(variables),
    constant: problem.offset,
  };
  const network = { ...full, incident: incidence(variables, full.edges) };
  const dead = problem.variables.map((v) => {
    const marks = Uint8Array.from(v.prices, (p) => (p === Infinity ? 1 : 0));
    for (const exclusion of v.exclusions ?? []) for (const s of exclusion.states) marks[s] = 1;
    return marks;
  });
  return restrict(network, dead);
}

function edgeOf(problem: Problem, t: Transition): Edge {
  const rows = t.prices.length / t.columns;
  const classFrom = t.fromClass ?? identity(problem.variables[t.from]!.prices.length);
  const classTo = t.toClass ?? identity(problem.variables[t.to]!.prices.length);
  const hard = hasInfinity(t.prices);
  if (t.from < t.to) {
    const [a, b, columns] = [t.from, t.to, t.columns];
    return { a, b, classA: classFrom, classB: classTo, rows, columns, table: t.prices, hard };
  }
  const table = transpose(t.prices, rows, t.columns);
  const [a, b, classA, classB] = [t.to, t.from, classTo, classFrom];
  const columns = rows;
  return { a, b, classA, classB, rows: t.columns, columns, table, hard };
}

/** Without the classes that no state is in. */
function withoutUnused(edge: Edge): Edge {
  const [a, b] = [edge.classA.length, edge.classB.length];
  const all = isOnto(edge.classA, edge.rows) && isOnto(edge.classB, edge.columns);
  return all ? edge : sliceEdge(edge, identity(a), identity(b));
}

function isOnto(classes: Int32Array, count: number): boolean {
  if (classes === identities.get(count)) return true;
  const seen = new Uint8Array(count);
  for (const c of classes) seen[c] = 1;
  return !seen.includes(0);
}

export function hasInfinity(table: Float64Array): boolean {
  for (let i = 0; i < table.length; i++) if (table[i] === Infinity) return true;
  return false;
}

export function transpose(table: Float64Array, rows: number, columns: number): Float64Array {
  const out = new Float64Array(table.length);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) out[c * rows + r] = table[r * columns + c]!;
  }
  return out;
}

function mergeParallel(edges: readonly Edge[]): Edge[] {
  const byEnds = new Map<string, number>();
  const out: Edge[] = [];
  for (const edge of edges) {
    const key = `${edge.a},${edge.b}`;
    const at = byEnds.get(key);
    if (at === undefined) {
      byEnds.set(key, out.length);
      out.push(edge);
    } else out[at] = addEdges(out[at]!, edge);
  }
  return out;
}

/** One class a distinct pair of classes, with the pair of each. */
export function joinClasses(
  first: Int32Array,
  second: Int32Array,
  secondCount: number,
): { readonly classes: Int32Array; readonly parts: readonly (readonly [number, number])[] } {
  const numbers = new Map<number, number>();
  const parts: [number, number][] = [];
  const classes = new Int32Array(first.length);
  for (let s = 0; s < first.length; s++) {
    const key = first[s]! * secondCount + second[s]!;
    let number = numbers.get(key);
    if (number === undefined) {
      number = parts.length;
      numbers.set(key, number);
      parts.push([first[s]!, second[s]!]);
    }
    classes[s] = number;
  }
  return { classes, parts };
}

/** Two edges between the same variables as one. */
export function addEdges(x: Edge, y: Edge): Edge {
  const left = joinClasses(x.classA, y.classA, y.rows);
  const right = joinClasses(x.classB, y.classB, y.columns);
  const [rows, columns] = [left.parts.length, right.parts.length];
  const table = new Float64Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    const [xr, yr] = left.parts[r]!;
    for (let c = 0; c < columns; c++) {
      const [xc, yc] = right.parts[c]!;
      table[r * columns + c] = x.table[xr * x.columns + xc]! + y.table[yr * y.columns + yc]!;
    }
  }
  const hard = x.hard || y.hard;
  return {
    a: x.a,
    b: x.b,
    classA: left.classes,
    classB: right.classes,
    rows,
    columns,
    table,
    hard,
  };
}

/** Numbers of the states that are not marked. */
export function aliveStates(dead: Uint8Array): Int32Array {
  let count = 0;
  for (let s = 0; s < dead.length; s++) if (dead[s] === 0) count++;
  const alive = new Int32Array(count);
  let at = 0;
  for (let s = 0; s < dead.length; s++) if (dead[s] === 0) alive[at++] = s;
  return alive;
}

/** The network without the marked states; classes that lose all their states go too. */
export function restrict(network: Network, dead: readonly Uint8Array[]): Network {
  const kept = dead.map((marks) => (marks.includes(1) ? aliveStates(marks) : undefined));
  return {
    ...network,
    unary: network.unary.map((prices, i) => gather(prices, kept[i])),
    origin: network.origin.map((states, i) => gatherInts(states, kept[i])),
    edges: network.edges.map((edge) => sliceEdge(edge, kept[edge.a], kept[edge.b])),
    budgets: network.budgets.map((b) => ({
      ...b,
      amounts: b.amounts.map((amounts, i) => gather(amounts, kept[b.variables[i]!])),
    })),
  };
}

export function gather(from: Float64Array, states: Int32Array | undefined): Float64Array {
  if (states === undefined) return from;
  const out = new Float64Array(states.length);
  for (let i = 0; i < states.length; i++) out[i] = from[states[i]!]!;
  return out;
}

export function gatherInts(from: Int32Array, states: Int32Array | undefined): Int32Array {
  if (states === undefined) return from;
  const out = new Int32Array(states.length);
  for (let i = 0; i < states.length; i++) out[i] = from[states[i]!]!;
  return out;
}

/** Classes that are still used: renumbered in their old order. */
export interface ClassSlice {
  readonly classes: Int32Array;
  /** Old number of each new class. */
  readonly used: Int32Array;
}

export function sliceClasses(
  classes: Int32Array,
  count: number,
  kept: Int32Array | undefined,
): ClassSlice {
  if (kept === undefined) return { classes, used: identity(count) };
  const renumbered = new Int32Array(count).fill(-1);
  for (let i = 0; i < kept.length; i++) renumbered[classes[kept[i]!]!] = 0;
  let next = 0;
  for (let c = 0; c < count; c++) if (renumbered[c] === 0) renumbered[c] = next++;
  const used = new Int32Array(next);
  for (let c = 0; c < count; c++) if (renumbered[c]! >= 0) used[renumbered[c]!] = c;
  const out = new Int32Array(kept.length);
  for (let i = 0; i < kept.length; i++) out[i] = renumbered[classes[kept[i]!]!]!;
  return { classes: out, used };
}

function sliceEdge(edge: Edge, keptA: Int32Array | undefined, keptB: Int32Array | undefined): Edge {
  if (keptA === undefined && keptB === undefined) return edge;
  const left = sliceClasses(edge.classA, edge.rows, keptA);
  const right = sliceClasses(edge.classB, edge.columns, keptB);
  const [rows, columns] = [left.used.length, right.used.length];
  const slice = changeEdge(edge, { classA: left.classes, classB: right.classes, rows, columns });
  if (rows === edge.rows && columns === edge.columns) return slice;
  const table = new Float64Array(rows * columns);
  let at = 0;
  for (let r = 0; r < rows; r++) {
    const from = left.used[r]! * edge.columns;
    for (let c = 0; c < columns; c++) table[at++] = edge.table[from + right.used[c]!]!;
  }
  return changeEdge(slice, { table, hard: edge.hard && hasInfinity(table) });
}

/** Price of an assignment in the network's own state numbers, budgets apart. */
export function networkPrice(network: Network, states: Int32Array): number {
  let price = network.constant;
  for (let i = 0; i < states.length; i++) price += network.unary[i]![states[i]!]!;
  for (const edge of network.edges) price += edgePrice(edge, states[edge.a]!, states[edge.b]!);
  return price;
}

export function edgePrice(edge: Edge, a: number, b: number): number {
  return edge.table[classAt(edge.classA, a) * edge.columns + edge.classB[b]!]!;
}

/** The states of the problem for states of the network. */
export function toProblemStates(network: Network, states: Int32Array): Assignment {
  const out = network.settled.slice();
  for (let i = 0; i < states.length; i++) {
    out[network.variables[i]!] = network.origin[i]![states[i]!]!;
  }
  return out;
}

export function noMarks(network: Network): Uint8Array[] {
  return network.unary.map((prices) => new Uint8Array(prices.length));
}

/** Variable that has lost all its states, or -1. */
export function emptyVariable(network: Network): number {
  return network.unary.findIndex((prices) => prices.length === 0);
}
