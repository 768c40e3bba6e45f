/**
 * From the rows of a polyhedral cone { y : equalities = 0, inequalities >= 0 } to its generators: lines
 * and rays whose combinations (rays with coefficients at least 0) are all of it, by the double
 * description method (T. Motzkin et al., 1953; N. Chernikova, 1965): rows are added one after the other,
 * and a row that cuts the cone makes a new ray of each two adjacent rays on its two sides. The same
 * method on generators gives rows back, since the rows valid on a cone are a cone themselves.
 * hull.ts builds hulls with it. All vectors are integer and without common factors.
 */
import { combine, dotProduct, gcd, negateRow, type Row, unitRow } from "./row.ts";
import type { Work } from "./work.ts";

export interface Generators {
  readonly lines: readonly Row[];
  readonly rays: readonly Row[];
}

/** A ray and the rows so far on which it is zero, as bits. */
interface Ray {
  readonly vector: Row;
  readonly zeroOn: bigint;
}

interface Cone {
  lines: Row[];
  rays: Ray[];
}

export function generatorsOf(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  width: number,
  work: Work,
): Generators {
  const cone: Cone = {
    lines: Array.from({ length: width }, (_, c) => unitRow(width, c)),
    rays: [],
  };
  const rows = [...equalities, ...inequalities];
  rows.forEach((row, index) => {
    work.spend(width * (1 + cone.lines.length + cone.rays.length));
    const bit = 1n << BigInt(index);
    const keepsPositive = index >= equalities.length;
    if (!cutLines(cone, row, bit, keepsPositive)) cutRays(cone, row, { bit, keepsPositive, work });
  });
  return { lines: cone.lines, rays: cone.rays.map((r) => r.vector) };
}

/**
 * Where a line leaves the row's hyperplane, everything else is moved along it into the hyperplane, and
 * of the line its positive half remains (nothing, for an equality). False when no line does.
 */
function cutLines(cone: Cone, row: Row, bit: bigint, keepsPositive: boolean): boolean {
  const at = cone.lines.findIndex((line) => dotProduct(row, line) !== 0);
  if (at < 0) return false;
  const line = cone.lines[at]!;
  const positive = dotProduct(row, line) > 0 ? line : negateRow(line);
  const slope = dotProduct(row, positive);
  const moved = (v: Row): Row => reduced(combine(slope, v, -dotProduct(row, v), positive, "value"));
  cone.lines = cone.lines.filter((_, i) => i !== at).map(moved);
  cone.rays = cone.rays.map((r) => ({ vector: moved(r.vector), zeroOn: r.zeroOn | bit }));
  if (keepsPositive) cone.rays.push({ vector: positive, zeroOn: bit - 1n });
  return true;
}

interface Cut {
  readonly bit: bigint;
  readonly keepsPositive: boolean;
  readonly work: Work;
}

function cutRays(cone: Cone, row: Row, { bit, keepsPositive, work }: Cut): void {
  const sides = cone.rays.map((ray) => ({ ray, value: dotProduct(row, ray.vector) }));
  const above = sides.filter((s) => s.value > 0);
  const below = sides.filter((s) => s.value < 0);
  const kept: Ray[] = [];
  for (const { ray, value } of sides) {
    if (value === 0) kept.push({ vector: ray.vector, zeroOn: ray.zeroOn | bit });
    else if (value > 0 && keepsPositive) kept.push(ray);
  }
  work.spend(above.length * below.length * (1 + cone.rays.length));
  for (const p of above) {
    for (const n of below) {
      const common = p.ray.zeroOn & n.ray.zeroOn;
      const adjacent = cone.rays.every(
        (r) => r === p.ray || r === n.ray || (common & ~r.zeroOn) !== 0n,
      );
      if (!adjacent) continue;
      const vector = combine(-n.value, p.ray.vector, p.value, n.ray.vector, "value");
      kept.push({ vector: reduced(vector), zeroOn: common | bit });
    }
  }
  cone.rays = kept;
}

function reduced(vector: Row): Row {
  let g = 0;
  for (const v of vector) g = gcd(g, v);
  return g > 1 ? vector.map((v) => v / g + 0) : vector;
}
