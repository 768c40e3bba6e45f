/**
 * The human side of a refusal: the array element that two clashing instances share, and the text of
 * a witness.
 */

import type { Dependence } from "./dependence.ts";
import type { Witness } from "./legality.ts";
import { alignBoth, intersect, range } from "./operations.ts";
import { samplePiece, toPiece } from "./piece.ts";
import { unitRow } from "./row.ts";
import { type IntegerMap, type IntegerSet, type Piece, rowWidth } from "./types.ts";
import type { Work } from "./work.ts";

/** An element that both instances of a dependence access, if it knows its accesses. */
export function touchedElement(
  dependence: Dependence,
  params: Readonly<Record<string, number>>,
  instances: readonly [readonly number[], readonly number[]],
  work: Work,
): Witness["element"] {
  if (!dependence.sourceAccess || !dependence.sinkAccess) return undefined;
  const [first, second] = alignBoth(dependence.sourceAccess, dependence.sinkAccess);
  const touched = intersect(
    imageOf(first, dependence.source, params, instances[0]),
    imageOf(second, dependence.sink, params, instances[1]),
  );
  for (const piece of touched.pieces) {
    const point = samplePiece(touched.params, piece, work);
    if (point) return { array: piece.output.name, values: point.slice(touched.params.length) };
  }
  return undefined;
}

/** The elements one instance accesses at given parameter values. */
function imageOf(
  access: IntegerMap,
  statement: string,
  params: Readonly<Record<string, number>>,
  instance: readonly number[],
): IntegerSet {
  const pieces: Piece[] = [];
  const values = [...access.params.map((p) => params[p] ?? 0), ...instance];
  for (const p of access.pieces) {
    if (p.input?.name !== statement || p.input.dims.length !== instance.length) continue;
    const pins = values.map((v, i) => {
      const row = unitRow(rowWidth(access.params, p), i);
      row[row.length - 1] = v === 0 ? 0 : -v;
      return row;
    });
    const pinned = toPiece(p, {
      fixed: rowWidth(access.params, p) - 1 - p.locals.length,
      locals: p.locals.slice(),
      equalities: [...(p.equalities as number[][]), ...pins],
      inequalities: p.inequalities as number[][],
    });
    if (pinned) pieces.push(pinned);
  }
  return range({ kind: "map", params: access.params, pieces });
}

const causes: Record<Witness["violation"], string> = {
  reversed: "the sink would run before the source",
  simultaneous: "both would run at the same time",
  parallel: "a parallel dimension separates them",
  vector: "a vector dimension separates them",
};

/** One line: the two instances, the element, the dependence and how the schedule breaks it. */
export function formatWitness(witness: Witness): string {
  const { dependence, element } = witness;
  const on = element ? ` on ${element.array}[${element.values.join(", ")}]` : "";
  const params = Object.entries(witness.params).map(([k, v]) => `${k} = ${v}`);
  const given = params.length > 0 ? ` with ${params.join(", ")}` : "";
  const at = (i: Witness["source"], time: readonly number[]): string =>
    `${i.statement}[${i.values.join(", ")}] at time (${time.join(", ")})`;
  const pair = `${at(witness.source, witness.sourceTime)} must precede ${at(witness.sink, witness.sinkTime)}`;
  const where =
    witness.violation === "simultaneous" ? "" : ` (time dimension ${witness.dimension})`;
  return `${dependence.kind} dependence${on}: ${pair}${given}; ${causes[witness.violation]}${where}`;
}
