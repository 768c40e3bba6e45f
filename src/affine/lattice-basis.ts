/**
 * A basis of the integer vectors in which a polytope is about as wide in every direction, so that a walk
 * along its coordinates meets few values without points, however thin and slanted the polytope is: the
 * reduction of A. Lenstra, H. Lenstra and L. Lovász (1982), by the length that weighted rows give a
 * vector. Lengths are doubles, which only decide how good the basis is; the vectors are integers.
 */
import type { Row } from "./row.ts";

/** Lengths are measured along the row, in units of 1 / weight. */
export interface WeightedRow {
  /** Coefficients; what stands behind them is not looked at. */
  readonly row: Row;
  readonly weight: number;
}

/** Exchanges before the basis is taken as it is. */
const mostSteps = 4000;
/** How much shorter than the one before a vector must be to change places with it. */
const patience = 0.98;

/** Vectors of `size` integers, short ones first. */
export function reducedBasis(size: number, rows: readonly WeightedRow[]): number[][] {
  const basis = Array.from({ length: size }, (_, i) =>
    Array.from({ length: size }, (_, c) => (c === i ? 1 : 0)),
  );
  const images = basis.map((v) => imageOf(v, rows));
  let k = 1;
  for (let step = 0; k < size && step < mostSteps; step++) {
    let frame = orthogonalFrame(images, k);
    if (shorten(basis, k, frame.parts)) {
      images[k] = imageOf(basis[k]!, rows);
      frame = orthogonalFrame(images, k);
    }
    const { squares, parts } = frame;
    if (squares[k]! >= (patience - parts[k]![k - 1]! ** 2) * squares[k - 1]!) {
      k++;
      continue;
    }
    [basis[k], basis[k - 1]] = [basis[k - 1]!, basis[k]!];
    [images[k], images[k - 1]] = [images[k - 1]!, images[k]!];
    k = Math.max(1, k - 1);
  }
  return basis;
}

/** The vector as its weighted products with the rows: their length is the vector's. */
function imageOf(vector: readonly number[], rows: readonly WeightedRow[]): number[] {
  return rows.map(({ row, weight }) => weight * product(vector, row));
}

interface Frame {
  /** Square lengths of the parts of vectors 0..k at right angles to those before. */
  readonly squares: readonly number[];
  /** Each vector in terms of those before its own. */
  readonly parts: readonly (readonly number[])[];
}

/** Gram-Schmidt on the first k + 1 vectors. */
function orthogonalFrame(images: readonly number[][], k: number): Frame {
  const upright: number[][] = [];
  const squares: number[] = [];
  const parts: number[][] = [];
  for (let i = 0; i <= k; i++) {
    const rest = images[i]!.slice();
    const own = upright.map((u, j) => {
      const part = squares[j]! > 0 ? product(rest, u) / squares[j]! : 0;
      for (let c = 0; c < rest.length; c++) rest[c]! -= part * u[c]!;
      return part;
    });
    parts.push(own);
    upright.push(rest);
    squares.push(product(rest, rest));
  }
  return { squares, parts };
}

/** Over the entries of the first. */
function product(a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

/** Takes whole multiples of the vectors before off vector k; whether there were any. */
function shorten(basis: number[][], k: number, parts: Frame["parts"]): boolean {
  const left = parts[k]!.slice();
  let changed = false;
  for (let j = k - 1; j >= 0; j--) {
    const times = Math.round(left[j]!);
    if (times === 0) continue;
    const next = basis[k]!.map((v, c) => v - times * basis[j]![c]!);
    if (!next.every(Number.isSafeInteger)) continue;
    basis[k] = next;
    for (let i = 0; i < j; i++) left[i]! -= times * parts[j]![i]!;
    changed = true;
  }
  return changed;
}
