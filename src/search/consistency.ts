/**
 * Node and arc consistency of the hard constraints: a state is removed when a budget cannot hold it
 * with the least that the others take, or when some neighbour has no state left that goes with it
 * (AC-3, Mackworth 1977, on bit rows of interface classes).
 */
import { aliveStates, type Edge, type Network, noMarks, restrict } from "./network.ts";

/** The consistent network; undefined when a variable loses every state. */
export function makeConsistent(network: Network): Network | undefined {
  const dead = noMarks(network);
  if (!propagateHard(network, dead, true)) return undefined;
  return dead.some((marks) => marks.includes(1)) ? restrict(network, dead) : network;
}

/**
 * Marks all that the marks so far make impossible; false when a variable has no state left. Unless `fresh`
 * the network was consistent before the marks, and only what they touch is looked at.
 */
export function propagateHard(
  network: Network,
  dead: readonly Uint8Array[],
  fresh = false,
): boolean {
  if (dead.some((marks) => !marks.includes(0))) return false;
  for (;;) {
    if (!removeUnsupported(network, dead, fresh)) return false;
    let removed = 0;
    for (const budget of network.budgets) {
      const found = removeOverBudget(budget, dead);
      if (found < 0) return false;
      removed += found;
    }
    if (removed === 0) return true;
  }
}

/** Marks the states that no longer fit a budget; -1 when the least of all is too much. */
function removeOverBudget(budget: Network["budgets"][number], dead: readonly Uint8Array[]): number {
  const leasts = budget.amounts.map((amounts, i) => {
    const marks = dead[budget.variables[i]!]!;
    let least = Infinity;
    for (let s = 0; s < amounts.length; s++) {
      if (marks[s] === 0 && amounts[s]! < least) least = amounts[s]!;
    }
    return least;
  });
  const room = budget.capacity - leasts.reduce((a, b) => a + b, 0);
  if (!(room >= 0)) return -1;
  let removed = 0;
  budget.amounts.forEach((amounts, i) => {
    const marks = dead[budget.variables[i]!]!;
    for (let s = 0; s < amounts.length; s++) {
      if (marks[s] !== 0 || amounts[s]! - leasts[i]! <= room) continue;
      marks[s] = 1;
      removed++;
    }
  });
  return removed;
}

interface Side {
  /** Bit row of the other side's classes that go with each class of this side. */
  readonly rows: Int32Array;
  readonly words: number;
}

interface Sides {
  readonly a: Side;
  readonly b: Side;
}

const known = new WeakMap<Edge, Sides>();

/** The allowed classes of the other end as bits, both ways; edges do not change, so made once. */
function bitRows(edge: Edge): Sides {
  let sides = known.get(edge);
  if (sides === undefined) {
    sides = makeBitRows(edge);
    known.set(edge, sides);
  }
  return sides;
}

function makeBitRows(edge: Edge): Sides {
  const words = (count: number): number => (count + 31) >> 5;
  const a = { words: words(edge.columns), rows: new Int32Array(edge.rows * words(edge.columns)) };
  const b = { words: words(edge.rows), rows: new Int32Array(edge.columns * words(edge.rows)) };
  for (let r = 0; r < edge.rows; r++) {
    for (let c = 0; c < edge.columns; c++) {
      if (edge.table[r * edge.columns + c] === Infinity) continue;
      a.rows[r * a.words + (c >> 5)]! |= 1 << (c & 31);
      b.rows[c * b.words + (r >> 5)]! |= 1 << (r & 31);
    }
  }
  return { a, b };
}

/** Marks states without support; false when a variable has none left. */
function removeUnsupported(network: Network, dead: readonly Uint8Array[], fresh: boolean): boolean {
  const touched = dead.map((marks) => fresh || marks.includes(1));
  const queue = network.edges.flatMap((edge, e) => {
    if (!edge.hard) return [];
    if (touched[edge.a] && touched[edge.b]) return [2 * e, 2 * e + 1];
    return touched[edge.b] ? [2 * e] : touched[edge.a] ? [2 * e + 1] : [];
  });
  const queued = new Set(queue);
  for (let at = 0; at < queue.length; at++) {
    const task = queue[at]!;
    queued.delete(task);
    const edge = network.edges[task >> 1]!;
    const sides = bitRows(edge);
    const here = (task & 1) === 0 ? edge.a : edge.b;
    const found =
      (task & 1) === 0
        ? revise(sides.a, [edge.classA, dead[edge.a]!], [edge.classB, dead[edge.b]!])
        : revise(sides.b, [edge.classB, dead[edge.b]!], [edge.classA, dead[edge.a]!]);
    if (found === 0) continue;
    if (!dead[here]!.includes(0)) return false;
    for (const e of network.incident[here]!) {
      const other = 2 * e + (network.edges[e]!.a === here ? 1 : 0);
      if (!network.edges[e]!.hard || queued.has(other)) continue;
      queued.add(other);
      queue.push(other);
    }
  }
  return true;
}

type End = readonly [classes: Int32Array, dead: Uint8Array];

function revise(side: Side, [classes, dead]: End, [otherClasses, otherDead]: End): number {
  const present = new Int32Array(side.words);
  for (const s of aliveStates(otherDead)) {
    const c = otherClasses[s]!;
    present[c >> 5]! |= 1 << (c & 31);
  }
  const count = side.rows.length / Math.max(1, side.words);
  const supported = new Uint8Array(count);
  for (let c = 0; c < count; c++) {
    for (let w = 0; w < side.words && supported[c] === 0; w++) {
      if ((side.rows[c * side.words + w]! & present[w]!) !== 0) supported[c] = 1;
    }
  }
  let removed = 0;
  for (let s = 0; s < dead.length; s++) {
    if (dead[s] !== 0 || supported[classes[s]!] === 1) continue;
    dead[s] = 1;
    removed++;
  }
  return removed;
}
