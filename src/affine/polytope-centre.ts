/**
 * The analytic centre of a polytope, in doubles: the point where the product of the distances to all rows
 * is greatest, by Newton's method. How far each row is from it says how wide the polytope is in each
 * direction (Y. Nesterov and A. Nemirovskii, 1994). Nothing exact depends on what comes out: a walk
 * (lattice-walk.ts) that starts from a poor centre is slower, no more.
 */
import type { Row } from "./row.ts";

export interface Centre {
  readonly point: readonly number[];
  /** Distance of each row, above 0, in the row's own units. */
  readonly slacks: readonly number[];
}

const mostRelaxations = 40;
const mostSteps = 30;

/** About the centre of { x : rows >= 0 }; a far box stands in where it has no end. */
export function polytopeCentre(rows: readonly Row[], size: number): Centre {
  const scaled = rows.map(scaledRow);
  const farthest = Math.max(1, ...scaled.map((r) => Math.abs(r.row[size]!)));
  const all = [...scaled, ...farRows(size, 4 * farthest)];
  const point = new Array<number>(size).fill(0);
  // Rows are moved out by `slack` until the point is inside, then back in as far as it goes.
  let slack = Math.max(0, ...all.map(({ row }) => -row[size]!)) + 1;
  const least = 0.25 / Math.max(1, ...scaled.map((r) => r.length));
  for (let round = 0; round < mostRelaxations; round++) {
    centreWithin(all, point, slack);
    const deepest = Math.min(...all.map(({ row }) => valueAt(row, point)));
    if (slack === 0) break;
    const next = deepest > 0 ? 0 : 0.1 * slack - 0.9 * deepest;
    if (next > 0.999 * slack || (next > 0 && next < least)) break;
    slack = next;
  }
  const slacks = scaled.map(({ row, length }) =>
    Math.max(Number.MIN_VALUE / Number.EPSILON, length * (valueAt(row, point) + slack)),
  );
  return { point, slacks };
}

interface ScaledRow {
  readonly row: number[];
  /** What the row was divided by. */
  readonly length: number;
}

function scaledRow(row: Row): ScaledRow {
  const length = Math.sqrt(row.slice(0, -1).reduce((sum, v) => sum + v * v, 0)) || 1;
  return { row: row.map((v) => v / length), length };
}

function farRows(size: number, far: number): ScaledRow[] {
  return Array.from({ length: 2 * size }, (_, i) => {
    const row = new Array<number>(size + 1).fill(0);
    row[i >> 1] = i % 2 === 0 ? 1 : -1;
    row[size] = far;
    return { row, length: 1 };
  });
}

function valueAt(row: readonly number[], point: readonly number[]): number {
  return dot(row, point) + row[point.length]!;
}

/** The row without its constant, along `move`. */
function dot(row: readonly number[], move: readonly number[]): number {
  let sum = 0;
  for (let c = 0; c < move.length; c++) sum += row[c]! * move[c]!;
  return sum;
}

/** Moves the point, which is inside the rows moved out by `slack`, to their centre. */
function centreWithin(rows: readonly ScaledRow[], point: number[], slack: number): void {
  const n = point.length;
  for (let step = 0; step < mostSteps; step++) {
    const gradient = new Array<number>(n).fill(0);
    const curvature = Array.from({ length: n }, () => new Array<number>(n + 1).fill(0));
    for (const { row } of rows) {
      const near = 1 / (valueAt(row, point) + slack);
      for (let i = 0; i < n; i++) {
        gradient[i]! += near * row[i]!;
        for (let j = 0; j < n; j++) curvature[i]![j]! += near * near * row[i]! * row[j]!;
      }
    }
    gradient.forEach((v, i) => {
      curvature[i]![n] = v;
    });
    const move = solveSquare(curvature);
    if (!move) return;
    const taken = Math.min(1, 0.7 * stepInside(rows, move, point, slack));
    for (let c = 0; c < n; c++) point[c]! += taken * move[c]!;
    // The square of Newton's decrement.
    const progress = dot(gradient, move);
    if (!(progress > 0.01)) return;
  }
}

/** How far the point may move before it meets a row. */
function stepInside(
  rows: readonly ScaledRow[],
  move: readonly number[],
  point: readonly number[],
  slack: number,
): number {
  let longest = Infinity;
  for (const { row } of rows) {
    const speed = dot(row, move);
    if (speed < 0) longest = Math.min(longest, (valueAt(row, point) + slack) / -speed);
  }
  return longest;
}

/** Solves [matrix | right side]; undefined where that is too near to having no solution. */
function solveSquare(rows: number[][]): number[] | undefined {
  const n = rows.length;
  for (let c = 0; c < n; c++) {
    let best = c;
    for (let r = c + 1; r < n; r++) {
      if (Math.abs(rows[r]![c]!) > Math.abs(rows[best]![c]!)) best = r;
    }
    [rows[c], rows[best]] = [rows[best]!, rows[c]!];
    const pivot = rows[c]![c]!;
    if (!(Math.abs(pivot) > 0)) return undefined;
    for (let r = c + 1; r < n; r++) {
      const by = rows[r]![c]! / pivot;
      if (by !== 0) for (let k = c; k <= n; k++) rows[r]![k]! -= by * rows[c]![k]!;
    }
  }
  const out = new Array<number>(n).fill(0);
  for (let r = n - 1; r >= 0; r--) {
    let sum = rows[r]![n]!;
    for (let c = r + 1; c < n; c++) sum -= rows[r]![c]! * out[c]!;
    out[r] = sum / rows[r]![r]!;
  }
  return out.every(Number.isFinite) ? out : undefined;
}
