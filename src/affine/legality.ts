/**
 * Legality of a schedule, decided on the transformed schedule: every dependence pair (s, t) needs
 * time(s) lexicographically before time(t), and at a dimension marked parallel or vector both times
 * must be equal for all pairs that are not ordered by a dimension before it. For each dependence and
 * dimension in turn the violating pairs are an integer set; the first that has a point is the witness
 * (E. g. Feautrier, "Some efficient solutions to the affine scheduling problem", 1992). Decided by
 * algebra alone: nothing is enumerated. Uniform cases take the fast path of distance.ts.
 */

import { makeMap } from "./build.ts";
import { named } from "./compare.ts";
import type { Dependence } from "./dependence.ts";
import { isProvedApart, isProvedLegal } from "./distance.ts";
import { findPoint } from "./omega.ts";
import { combine, evaluateRow, negateRow, type Row } from "./row.ts";
import { type TimedPairs, timedPairs } from "./timed-pairs.ts";
import type { IntegerMap, IntegerSet } from "./types.ts";
import { touchedElement } from "./witness.ts";
import { answer, defaultWork, type UnknownReason, type Work } from "./work.ts";

export type MarkKind = "parallel" | "vector";

/** A time dimension whose iterations run in no particular order (parallel) or at once (vector). */
export interface TimeMark {
  readonly dimension: number;
  readonly kind: MarkKind;
  /** The statements in the marked loop; absent means all. */
  readonly statements?: readonly string[];
}

/** When every instance runs: one map { S[…] -> [t0, t1, …] } a statement, and the marks. */
export interface TimeSchedule {
  readonly times: ReadonlyMap<string, IntegerMap>;
  readonly marks?: readonly TimeMark[];
}

export type ViolationKind = "reversed" | "simultaneous" | MarkKind;

/** Two instances that clash. */
export interface Witness {
  readonly dependence: Dependence;
  /** How: the sink runs first, both run at the same time, or a marked dimension separates them. */
  readonly violation: ViolationKind;
  /** The time dimension where it shows; the number of dimensions when simultaneous. */
  readonly dimension: number;
  readonly params: Readonly<Record<string, number>>;
  readonly source: { readonly statement: string; readonly values: readonly number[] };
  readonly sink: { readonly statement: string; readonly values: readonly number[] };
  readonly sourceTime: readonly number[];
  readonly sinkTime: readonly number[];
  /** The array element both touch, where the dependence knows its accesses. */
  readonly element?: { readonly array: string; readonly values: readonly number[] };
}

export type Legality =
  | { readonly kind: "legal" }
  | { readonly kind: "illegal"; readonly witness: Witness }
  | {
      readonly kind: "unknown";
      readonly dependence: Dependence;
      readonly reason: UnknownReason | "schedule is not a function";
    };

export interface LegalityOptions {
  /** Constraints on parameters (see makeContext). */
  readonly context?: IntegerSet;
  /** Work units for each dependence. */
  readonly limit?: number;
}

/** Whether `schedule` keeps all `dependences`; the first violated one is the witness. */
export function isLegal(
  schedule: TimeSchedule,
  dependences: readonly Dependence[],
  options: LegalityOptions = {},
): Legality {
  let open: Legality | undefined;
  for (const dependence of dependences) {
    if (dependence.reassociable) continue;
    const one = checkDependence(schedule, dependence, options);
    if (one.kind === "illegal") return one;
    if (one.kind === "unknown") open ??= one;
  }
  return open ?? { kind: "legal" };
}

/** `isLegal` for one dependence, reassociable or not. */
export function checkDependence(
  schedule: TimeSchedule,
  dependence: Dependence,
  options: LegalityOptions = {},
): Legality {
  const pairs = timedPairs(schedule.times, dependence, options.context);
  if (!pairs) return { kind: "unknown", dependence, reason: "schedule is not a function" };
  const found = answer((work) => {
    for (const p of pairs) {
      const marked = marksOf(schedule, dependence, p.depth);
      if (isProvedLegal(p, marked)) continue;
      const violation = findViolation(p, marked, work);
      if (violation) return describe(dependence, p, violation, work);
    }
    return null;
  }, options.limit ?? defaultWork);
  if (found.kind === "unknown") return { kind: "unknown", dependence, reason: found.reason };
  return found.value ? { kind: "illegal", witness: found.value } : { kind: "legal" };
}

/**
 * For updates whose order is free: no pair may be separated by a dimension whose iterations run at once
 * on threads (parallel). Lanes (vector) may separate them: each has an accumulator of its own.
 */
export function checkApart(
  schedule: TimeSchedule,
  dependence: Dependence,
  options: LegalityOptions = {},
): Legality {
  // Without such a mark nothing separates them.
  if (!schedule.marks?.some((m) => m.kind === "parallel")) return { kind: "legal" };
  const pairs = timedPairs(schedule.times, dependence, options.context);
  if (!pairs) return { kind: "unknown", dependence, reason: "schedule is not a function" };
  const found = answer((work) => {
    for (const p of pairs) {
      const marked = marksOf(schedule, dependence, p.depth);
      if (isProvedApart(p, marked)) continue;
      const violation = findSeparated(p, marked, work);
      if (violation) return describe(dependence, p, violation, work);
    }
    return null;
  }, options.limit ?? defaultWork);
  if (found.kind === "unknown") return { kind: "unknown", dependence, reason: found.reason };
  return found.value ? { kind: "illegal", witness: found.value } : { kind: "legal" };
}

/** Two instances that a dependence relates; undefined where none is found. */
export function pairOf(dependence: Dependence, options: LegalityOptions = {}): Witness | undefined {
  const [piece] = dependence.relation.pieces;
  if (!piece) return undefined;
  const atOnce = (tuple: string, dims: readonly string[]): readonly [string, IntegerMap] => [
    tuple,
    makeMap({ from: { tuple, dims }, to: { values: [0] } }),
  ];
  const times = new Map([
    atOnce(dependence.source, piece.input!.dims),
    atOnce(dependence.sink, piece.output.dims),
  ]);
  const one = checkDependence({ times }, dependence, options);
  return one.kind === "illegal" ? one.witness : undefined;
}

function findSeparated(
  pairs: TimedPairs,
  marks: readonly (MarkKind | undefined)[],
  work: Work,
): Violation | undefined {
  const equalities: Row[] = [...pairs.equalities];
  for (let k = 0; k <= marks.lastIndexOf("parallel"); k++) {
    const step = combine(1, pairs.sinkTime[k]!, -1, pairs.sourceTime[k]!, "value");
    for (const side of marks[k] === "parallel" ? [step, negateRow(step)] : []) {
      const rows = [...pairs.inequalities, shifted(side, -1)];
      const apart = findPoint(equalities, rows, pairs.columns, work);
      if (apart) return { kind: "parallel", dimension: k, point: apart };
    }
    equalities.push(step);
  }
  return undefined;
}

/** The mark of each time dimension that holds source and sink alike. */
export function marksOf(
  schedule: TimeSchedule,
  dependence: Dependence,
  depth: number,
): (MarkKind | undefined)[] {
  const marks = new Array<MarkKind | undefined>(depth).fill(undefined);
  for (const mark of schedule.marks ?? []) {
    const { statements: held } = mark;
    const both = !held || (held.includes(dependence.source) && held.includes(dependence.sink));
    if (both && mark.dimension < depth) marks[mark.dimension] = mark.kind;
  }
  return marks;
}

interface Violation {
  readonly kind: ViolationKind;
  readonly dimension: number;
  /** Values of all columns of the pairs. */
  readonly point: readonly number[];
}

function findViolation(
  pairs: TimedPairs,
  marks: readonly (MarkKind | undefined)[],
  work: Work,
): Violation | undefined {
  const { columns } = pairs;
  const equalities: Row[] = [...pairs.equalities];
  const probe = (extra: Row): number[] | null =>
    findPoint(equalities, [...pairs.inequalities, extra], columns, work);
  for (let k = 0; k < pairs.depth; k++) {
    const step = combine(1, pairs.sinkTime[k]!, -1, pairs.sourceTime[k]!, "value");
    const early = probe(shifted(negateRow(step), -1));
    if (early) return { kind: "reversed", dimension: k, point: early };
    const kind = marks[k];
    const apart = kind && probe(shifted(step, -1));
    if (kind && apart) return { kind, dimension: k, point: apart };
    equalities.push(step);
    const tied = findPoint(equalities, pairs.inequalities, columns, work);
    if (!tied) return undefined;
    if (k === pairs.depth - 1) return { kind: "simultaneous", dimension: k + 1, point: tied };
  }
  const any = findPoint(equalities, pairs.inequalities, columns, work);
  return any ? { kind: "simultaneous", dimension: 0, point: any } : undefined;
}

function shifted(row: Row, by: number): number[] {
  const out = row.slice();
  out[out.length - 1]! += by;
  return out;
}

function describe(
  dependence: Dependence,
  pairs: TimedPairs,
  violation: Violation,
  work: Work,
): Witness {
  const { point } = violation;
  const n = pairs.params.length;
  const source = point.slice(n, n + pairs.sourceDims);
  const sink = point.slice(n + pairs.sourceDims, n + pairs.sourceDims + pairs.sinkDims);
  const params = named(pairs.params, point);
  const element = touchedElement(dependence, params, [source, sink], work);
  return {
    dependence,
    violation: violation.kind,
    dimension: violation.dimension,
    params,
    source: { statement: dependence.source, values: source },
    sink: { statement: dependence.sink, values: sink },
    sourceTime: pairs.sourceTime.map((r) => evaluateRow(r, point)),
    sinkTime: pairs.sinkTime.map((r) => evaluateRow(r, point)),
    ...(element && { element }),
  };
}
