/**
 * The fast path of emptiness: rows that bound one variable or a sum or difference of two with unit
 * coefficients (boxes, difference constraints, octagons). Decided exactly over the integers by tight
 * closure, cubic in the variables (R. Bagnara, P. Hill, E. Zaffanella, "An improved tight closure
 * algorithm for integer octagonal constraints", 2008). Variable x is two nodes, 2x for +x and 2x + 1
 * for -x; m[i][j] bounds node j - node i from above. Anything else is omega.ts.
 */
import type { Row } from "./row.ts";

/** More variables than this are not tried: the general test eliminates them one by one. */
const mostVariables = 12;
/** Bounds beyond this are not tried, so that no sum of them is rounded. */
const largestBound = 2 ** 48;

/** Whether the rows have an integer solution; undefined when they are no octagon. */
export function isOctagonInhabited(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  columns: number,
): boolean | undefined {
  if (columns > mostVariables) return undefined;
  const size = 2 * columns;
  const m = new Float64Array(size * size).fill(Infinity);
  for (const row of inequalities) if (!addRow(m, row, 1, size)) return undefined;
  for (const row of equalities) {
    if (!addRow(m, row, 1, size) || !addRow(m, row, -1, size)) return undefined;
  }
  return closeTightly(m, size);
}

/** Enters sign * row >= 0; false when it has another form. A row without variables is one of its. */
function addRow(m: Float64Array, row: Row, sign: 1 | -1, size: number): boolean {
  const last = row.length - 1;
  const constant = sign * row[last]!;
  if (Math.abs(constant) > largestBound) return false;
  let first = -1;
  let second = -1;
  for (let c = 0; c < last; c++) {
    const v = row[c]!;
    if (v === 0) continue;
    if ((v !== 1 && v !== -1) || second >= 0) return false;
    // The node of -v*x, which the row bounds from above.
    const node = 2 * c + (sign * v > 0 ? 1 : 0);
    if (first < 0) first = node;
    else second = node;
  }
  if (first < 0) return false;
  // node first + node second <= constant; node j - node i with i the opposite of the other.
  if (second < 0) lower(m, (first ^ 1) * size + first, 2 * constant);
  else {
    lower(m, (second ^ 1) * size + first, constant);
    lower(m, (first ^ 1) * size + second, constant);
  }
  return true;
}

function lower(m: Float64Array, at: number, bound: number): void {
  if (bound < m[at]!) m[at] = bound;
}

/** Shortest paths, unary bounds rounded to even, and whether they contradict. */
function closeTightly(m: Float64Array, size: number): boolean {
  for (let k = 0; k < size; k++) {
    for (let i = 0; i < size; i++) {
      const through = m[i * size + k]!;
      if (through === Infinity) continue;
      for (let j = 0; j < size; j++) {
        const sum = through + m[k * size + j]!;
        if (sum < m[i * size + j]!) m[i * size + j] = sum;
      }
    }
  }
  for (let i = 0; i < size; i++) {
    if (m[i * size + i]! < 0) return false;
    m[i * size + (i ^ 1)] = 2 * Math.floor(m[i * size + (i ^ 1)]! / 2);
  }
  for (let i = 0; i < size; i++) {
    if (m[i * size + (i ^ 1)]! + m[(i ^ 1) * size + i]! < 0) return false;
  }
  return true;
}
