/**
 * In which coordinates to visit the points of a system whose columns may be tied to each other and far
 * apart: x = 999983a + 1000003b has few points in a wide interval. Equalities are used up, so that what is
 * left are free integers of which all columns are affine functions; free integers that no dimension depends
 * on are removed where that is exact; a reduced basis (lattice-basis.ts) makes the polytope that is left
 * about as wide in every direction, and projections bound one coordinate after the other (lattice-walk.ts).
 *
 * Rows of the projections that grow too large or too many are left out: bounds are then wider than need be,
 * and every row of the system itself is still looked at.
 */

import { reducedBasis } from "./lattice-basis.ts";
import {
  type ExactLattice,
  type ExactRow,
  exactRows,
  solvedExactly,
  tightened,
} from "./lattice-exact.ts";
import { countBounds, type Substitution, shadow, splitBounds, withoutEqualities } from "./omega.ts";
import { polytopeCentre } from "./polytope-centre.ts";
import { combine, dotProduct, gcd, type Row, substitute, tightInequality, unitRow } from "./row.ts";
import { divisionRows, type System } from "./system.ts";
import { tighten } from "./tighten.ts";
import { answer, GiveUp, type Work } from "./work.ts";

/** Rows at least 0 over free integers, and the dimensions as rows over them. */
interface Lattice {
  readonly size: number;
  readonly rows: readonly Row[];
  readonly images: readonly Row[];
}

/** What a walk goes through. */
export interface LatticePlan extends Lattice {
  /** levels[d]: rows over coordinates 0..d alone that bound coordinate d. */
  readonly levels: readonly (readonly Row[])[];
  /** The point is a function of so many coordinates, the first ones; the others only have to exist. */
  readonly visible: number;
  /** Whether the visible coordinates are a function of the point. */
  readonly distinct: boolean;
}

/**
 * All coordinates are visible, in the basis that suits the polytope best; with `once`, only as many as
 * keep points apart. Undefined where there is plainly no point.
 */
export function planWalk(system: System, once: boolean, work: Work): LatticePlan | undefined {
  const start = freeLattice(system, work);
  let lattice = start && withoutHidden(start, work);
  if (!lattice) return undefined;
  // Around a centre that is no longer far away, distances are known better.
  for (let round = 0; round < mostRounds && lattice.size > 0; round++) {
    lattice = inBasis(lattice, once, work);
  }
  const levels = boundingLevels(lattice.rows, lattice.size, work);
  if (!levels) return undefined;
  const rank = rankOf(lattice.images);
  const isHidden = (c: number): boolean => lattice.images.every((r) => r[c] === 0);
  const hides = Array.from({ length: lattice.size - rank }, (_, i) => rank + i).every(isHidden);
  const visible = once && hides ? rank : lattice.size;
  return { ...lattice, levels, visible, distinct: visible === rank };
}

const mostRounds = 2;

/** The dimensions of the system over free integers. */
function freeLattice(system: System, work: Work): Lattice | undefined {
  const columns = system.fixed + system.locals.length;
  const images = Array.from({ length: system.fixed }, (_, c) => unitRow(columns + 1, c));
  const rows = system.inequalities.concat(divisionRows(system));
  const { equalities } = system;
  let lattice: Lattice | undefined;
  const found = work.attempt(Infinity, (own) => {
    lattice = freed(equalities, { size: columns, rows, images }, own);
  });
  if (found === "done") return lattice;
  const exact = { rows: exactRows(rows), images: exactRows(images) };
  const solved = solvedExactly(exactRows(equalities), exact);
  return solved && turnedExactly(solved, work);
}

/** The lattice in a reduced basis, where its numbers are small again. */
function turnedExactly({ rows, images }: ExactLattice, work: Work): Lattice {
  const tight = rows.map(tightened);
  const rough = (all: readonly ExactRow[]): number[][] => all.map((r) => r.map(Number));
  const size = (rows[0] ?? images[0] ?? [0n]).length - 1;
  const { basis, origin } = basisOf({ size, rows: rough(tight), images: [] }, false, work);
  const vectors = [...basis.map((v) => [...v, 0]), [...origin, 1]].map((v) => v.map(BigInt));
  const turn = (row: ExactRow): number[] =>
    vectors.map((v) => {
      const value = Number(v.reduce((sum, b, c) => sum + b * row[c]!, 0n));
      if (!Number.isSafeInteger(value)) throw new GiveUp("overflow");
      return value;
    });
  return { size, rows: tight.map(turn), images: images.map(turn) };
}

/** The lattice where the equalities hold as well; undefined where they cannot. */
function freed(
  equalities: readonly Row[],
  { size, rows, images }: Lattice,
  work: Work,
): Lattice | undefined {
  const trail: Substitution[] = [];
  const left = withoutEqualities(equalities, rows, trail, work);
  if (!left) return undefined;
  const follow = (image: Row): Row =>
    trail.reduce((row, { column, value }) => substitute(row, column, value, "value"), image);
  const followed = images.map(follow);
  const used = Array.from({ length: size }, (_, c) => c).filter(
    (c) => left.some((r) => r[c] !== 0) || followed.some((r) => r[c] !== 0),
  );
  const cut = (row: Row): number[] => [...used.map((c) => row[c]!), row[size]!];
  return { size: used.length, rows: left.map(cut), images: followed.map(cut) };
}

/** Removes free integers that no dimension depends on, in some basis, as long as that is exact. */
function withoutHidden(start: Lattice, work: Work): Lattice | undefined {
  let lattice = start;
  while (rankOf(lattice.images) < lattice.size) {
    const turned = turnedOver(lattice, work);
    const column = turned ? removable(turned) : -1;
    if (!turned || column < 0) return lattice;
    const split = splitBounds(turned.rows as number[][], column);
    const left = tighten(shadow(split, column, "real", work));
    const next = left && freed(left.equalities, { ...turned, rows: left.inequalities }, work);
    if (!next) return undefined;
    lattice = next;
  }
  return lattice;
}

/** With coordinates that no dimension depends on; undefined where numbers grow too large. */
function turnedOver(lattice: Lattice, work: Work): Lattice | undefined {
  let turned: Lattice | undefined;
  work.attempt(Infinity, (own) => {
    turned = inBasis(lattice, true, own);
  });
  return turned;
}

/** A coordinate that no dimension uses and whose removal is exact and adds few rows; -1: none. */
function removable({ size, rows, images }: Lattice): number {
  for (let c = size - 1; c >= 0; c--) {
    if (images.some((r) => r[c] !== 0)) continue;
    const { lower, upper, exact } = countBounds(rows, c);
    if (exact && lower * upper <= lower + upper + 8) return c;
  }
  return -1;
}

/** Longer than anything else: vectors along which an image changes come last. */
const imageWeight = 2 ** 30;

/** The same over coordinates in a reduced basis around the centre, the direction of fewest values first. */
function inBasis(lattice: Lattice, hiddenLast: boolean, work: Work): Lattice {
  const { size, rows, images } = lattice;
  const { basis, origin } = basisOf(lattice, hiddenLast, work);
  const turn = (row: Row): number[] => [
    ...basis.map((v) => dotProduct([...v, 0], row) + 0),
    dotProduct([...origin, 1], row) + 0,
  ];
  return { size, rows: rows.map(turn), images: images.map(turn) };
}

interface Basis {
  readonly basis: readonly (readonly number[])[];
  readonly origin: readonly number[];
}

function basisOf({ size, rows, images }: Lattice, hiddenLast: boolean, work: Work): Basis {
  work.spend(10 * size * (1 + rows.length));
  const { point, slacks } = polytopeCentre(rows, size);
  const lengths = rows.map((row, i) => ({ row, weight: 1 / slacks[i]! }));
  const greatest = Math.max(...lengths.map((l) => l.weight), 1);
  const changes = images.map((row) => ({ row, weight: imageWeight * greatest }));
  const basis = reducedBasis(size, hiddenLast ? [...changes, ...lengths] : lengths).reverse();
  return { basis, origin: point.map(Math.round) };
}

/** How many of the rows are independent, constants aside. */
function rankOf(rows: readonly Row[]): number {
  const left = rows.map((r) => r.slice(0, -1).map(BigInt));
  let rank = 0;
  for (let c = 0; c < (left[0]?.length ?? 0); c++) {
    const at = left.findIndex((r, i) => i >= rank && r[c] !== 0n);
    if (at < 0) continue;
    [left[rank], left[at]] = [left[at]!, left[rank]!];
    const pivot = left[rank]!;
    for (let i = rank + 1; i < left.length; i++) {
      const [a, b] = [pivot[c]!, left[i]![c]!];
      if (b !== 0n) left[i] = left[i]!.map((v, k) => a * v - b * pivot[k]!);
    }
    rank++;
  }
  return rank;
}

/** A row of a projection and the rows that it was made of. */
interface Derived {
  readonly row: Row;
  readonly from: ReadonlySet<number>;
}

/** More rows than this are too many, apart from those of the system itself. */
const mostRows = 60;

/** undefined where a row can never hold. */
function boundingLevels(rows: readonly Row[], size: number, work: Work): Row[][] | undefined {
  let current: readonly Derived[] = rows.map((row, i) => ({ row, from: new Set([i]) }));
  const levels: Row[][] = [];
  for (let column = size - 1; column >= 0; column--) {
    const tight = strongest(current);
    if (!tight) return undefined;
    levels[column] = tight.flatMap(({ row }) => (row[column] === 0 ? [] : [row]));
    current = projected(tight, column, size - column, work);
  }
  return strongest(current) ? levels : undefined;
}

/** Of parallel rows the strongest; undefined where one never holds. */
function strongest(rows: readonly Derived[]): readonly Derived[] | undefined {
  const kept = new Map<string, Derived>();
  for (const { row, from } of rows) {
    const tight = tightInequality(row);
    if (tight === null) return undefined;
    if (tight === undefined) continue;
    const key = tight.slice(0, -1).join();
    const known = kept.get(key);
    if (!known || tight.at(-1)! < known.row.at(-1)!) kept.set(key, { row: tight, from });
  }
  return [...kept.values()];
}

/**
 * The rows without the column. What is made of more than `removed` + 1 rows follows from others
 * (D. Kohler, 1967).
 */
function projected(
  rows: readonly Derived[],
  column: number,
  removed: number,
  work: Work,
): readonly Derived[] {
  const rest = rows.filter(({ row }) => row[column] === 0);
  const lower = rows.filter(({ row }) => row[column]! > 0);
  const upper = rows.filter(({ row }) => row[column]! < 0);
  const made: Derived[] = [];
  for (const low of lower) {
    for (const high of upper) {
      work.spend(1);
      const from = new Set([...low.from, ...high.from]);
      if (from.size > removed + 1) continue;
      const row = pairWithout(low.row, high.row, column);
      if (row) made.push({ row, from });
    }
  }
  const room = Math.max(0, mostRows - rest.length);
  return [...rest, ...made.sort((a, b) => a.from.size - b.from.size).slice(0, room)];
}

/** undefined where numbers grow too large. */
function pairWithout(low: Row, high: Row, column: number): Row | undefined {
  const [a, b] = [low[column]!, -high[column]!];
  const g = gcd(a, b);
  const row = answer(() => combine(b / g, low, a / g, high, "inequality"));
  return row.kind === "known" ? row.value : undefined;
}
