/**
 * Lists the points of a set without parameters, in lexicographic order a tuple, within a budget of
 * points. First by a plain scan: each dimension runs between bounds from a Fourier-Motzkin projection, the
 * last check is exact. Sets whose points lie far apart in their box are walked in coordinates of their own
 * (lattice-plan.ts). For tests, witnesses and exact counts; decisions never enumerate.
 */

import { planWalk } from "./lattice-plan.ts";
import { walkLattice } from "./lattice-walk.ts";
import { findPoint, shadow, splitBounds } from "./omega.ts";
import { allInequalities, toSystem } from "./piece.ts";
import { PointTable } from "./point-table.ts";
import { evaluateRow, floorDiv, negateRow, type Row } from "./row.ts";
import { divisionRows, type System } from "./system.ts";
import { tighten } from "./tighten.ts";
import type { Division, IntegerSet, Piece } from "./types.ts";
import { type Answer, answer, GiveUp, type Work } from "./work.ts";

export interface TuplePoint {
  readonly tuple: string;
  readonly values: readonly number[];
}

/** All points, each once; "unknown" beyond `most` points or when a dimension is unbounded. */
export function enumeratePoints(set: IntegerSet, most = 1_000_000): Answer<TuplePoint[]> {
  return answer(
    (work) => {
      if (set.params.length > 0) throw new GiveUp("parametric");
      const out: TuplePoint[] = [];
      visitSet(set, work, (tuple, values) => {
        out.push({ tuple, values: [...values] });
        if (out.length > most) throw new GiveUp("budget");
      });
      return out.sort(comparePoints);
    },
    50 * most + 100_000,
  );
}

/** Calls `visit` with every point of a set without parameters, once; the array is reused. */
export function visitSet(
  { pieces }: IntegerSet,
  work: Work,
  visit: (tuple: string, values: readonly number[]) => void,
): void {
  const tables = new Map<string, PointTable>();
  for (const piece of pieces) {
    const { name, dims } = piece.output;
    const key = `${name}/${dims.length}`;
    const table = tables.get(key) ?? new PointTable(dims.length);
    tables.set(key, table);
    visitPoints(piece, work, (values) => {
      if (table.add(values)) visit(name, values);
    });
  }
}

function comparePoints(a: TuplePoint, b: TuplePoint): number {
  if (a.tuple !== b.tuple) return a.tuple < b.tuple ? -1 : 1;
  const i = a.values.findIndex((v, k) => v !== b.values[k]);
  return i < 0 ? a.values.length - b.values.length : a.values[i]! - b.values[i]!;
}

/** Work units of the first, plain scan, which lists small sets fastest. */
const scanWork = 20_000;
/** Work units of the walks, which are told apart by trying them: one meets a point often, one looks for each. */
const walkWork = [300_000, 4_000_000];

/** Calls `visit` with every point of a piece, at least once; the array is reused. */
function visitPoints(piece: Piece, work: Work, visit: (values: readonly number[]) => void): void {
  const system = toSystem([], piece);
  const scanned = work.attempt(scanWork, (own) => scanPoints(system, own, visit));
  if (scanned === "done") return;
  if (scanned === "unbounded") {
    const rows = allInequalities([], piece);
    const columns = system.fixed + system.locals.length;
    if (findPoint(piece.equalities, rows, columns, work)) throw new GiveUp("unbounded");
    return;
  }
  for (const limit of walkWork) {
    for (const once of [false, true]) {
      const walked = work.attempt(limit, (own) => {
        const plan = planWalk(system, once, own);
        if (plan) walkLattice(plan, own, visit);
      });
      if (walked === "done") return;
    }
  }
  scanPoints(system, work, visit);
}

/** Each step costs one unit. */
function scanPoints(system: System, work: Work, visit: (values: readonly number[]) => void): void {
  const rows = [...system.inequalities, ...divisionRows(system)];
  const exactRows = [...rows, ...system.equalities, ...system.equalities.map(negateRow)];
  const levels = projections(exactRows, system.fixed, work);
  if (!levels) return;
  const values = new Array<number>(system.fixed).fill(0);
  const inside = system.locals.includes(null)
    ? membership(system.equalities, rows, system.fixed, work)
    : definedMembership(system);
  const descend = (depth: number): void => {
    work.spend(1);
    if (depth === system.fixed) {
      if (inside(values)) visit(values);
      return;
    }
    const [low, high] = interval(levels[depth]!, depth, values);
    for (let v = low; v <= high; v++) {
      values[depth] = v === 0 ? 0 : v;
      descend(depth + 1);
    }
    values[depth] = 0;
  };
  descend(0);
}

/** levels[d]: rows over dimensions 0..d only, implied by `rows`; undefined when plainly empty. */
function projections(rows: readonly number[][], fixed: number, work: Work): Row[][] | undefined {
  const width = rows[0]?.length ?? fixed + 1;
  let current = rows.map((r) => r.slice());
  const levels: Row[][] = [];
  for (let column = width - 2; column >= 0; column--) {
    const tight = tighten(current);
    if (!tight) return undefined;
    current = [...tight.inequalities, ...tight.equalities, ...tight.equalities.map(negateRow)];
    if (column < fixed) levels[column] = current;
    current = shadow(splitBounds(current, column), column, "real", work);
  }
  return tighten(current) ? levels : undefined;
}

function interval(rows: readonly Row[], depth: number, values: number[]): [number, number] {
  let low = -Infinity;
  let high = Infinity;
  values[depth] = 0;
  for (const row of rows) {
    const c = row[depth]!;
    if (c === 0) continue;
    // What stands behind is 0, in the row or in the values.
    const rest = evaluateRow(row, values);
    if (c > 0) low = Math.max(low, -floorDiv(rest, c));
    else high = Math.min(high, floorDiv(rest, -c));
  }
  if (low === -Infinity || high === Infinity) throw new GiveUp("unbounded");
  return [low, high];
}

/** Whether fixed values satisfy all rows, where every local is a division of columns before it: fixed values give all others. */
function definedMembership(system: System): (values: readonly number[]) => boolean {
  const { fixed, equalities, inequalities } = system;
  const divisions = system.locals as readonly Division[];
  const all = new Array<number>(fixed + divisions.length);
  return (values) => {
    for (let c = 0; c < fixed; c++) all[c] = values[c]!;
    for (let k = 0; k < divisions.length; k++) all[fixed + k] = 0;
    for (let k = 0; k < divisions.length; k++) {
      const { numerator, divisor } = divisions[k]!;
      all[fixed + k] = floorDiv(evaluateRow(numerator, all), divisor);
    }
    for (const r of inequalities) if (evaluateRow(r, all) < 0) return false;
    for (const r of equalities) if (evaluateRow(r, all) !== 0) return false;
    return true;
  };
}

/** Whether fixed values satisfy all rows for some values of the locals. */
function membership(
  equalities: readonly Row[],
  inequalities: readonly Row[],
  fixed: number,
  work: Work,
): (values: readonly number[]) => boolean {
  const width = [...equalities, ...inequalities][0]?.length ?? fixed + 1;
  return (values) => {
    const pins = values.map((v, i) => {
      const row = new Array<number>(width).fill(0);
      row[i] = 1;
      row[width - 1] = v === 0 ? 0 : -v;
      return row;
    });
    return findPoint([...equalities, ...pins], inequalities, width - 1, work) !== null;
  };
}
