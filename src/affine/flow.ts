/**
 * Value-based flow: of all writes before a read of an element only the last one delivers its value
 * (P. Feautrier, "Dataflow analysis of array and scalar references", 1991). Computed by subtraction:
 * a memory flow pair (w, r) is dropped when some w' that surely writes the same element comes after w
 * and before r. Accesses with several images may or may not write, so they never hide another write.
 */
import { subtractWithin } from "./compare.ts";
import { type Dependence, findDependencesWithin, type Statement } from "./dependence.ts";
import { readFunction } from "./function-rows.ts";
import { compose, emptyMap, union } from "./operations.ts";
import type { IntegerMap } from "./types.ts";
import { type Answer, answer, type Work } from "./work.ts";

/** The flow (and reduction) dependences restricted to the pairs that carry a value. */
export function findValueFlow(
  statements: readonly Statement[],
  limit?: number,
): Answer<readonly Dependence[]> {
  return answer((work) => findValueFlowWithin(statements, work), limit);
}

export function findValueFlowWithin(statements: readonly Statement[], work: Work): Dependence[] {
  const all = findDependencesWithin(statements, work);
  const flows = all.filter((d) => d.kind !== "anti" && d.kind !== "output");
  return flows
    .map((flow) => ({ ...flow, relation: withoutHidden(flow, all, work) }))
    .filter((flow) => flow.relation.pieces.length > 0);
}

function withoutHidden(flow: Dependence, all: readonly Dependence[], work: Work): IntegerMap {
  const exactEnd = isSingleValued(flow.sourceAccess) || isSingleValued(flow.sinkAccess);
  if (!exactEnd) return flow.relation;
  let hidden = emptyMap(flow.relation.params);
  for (const first of all) {
    if (first.source !== flow.source || first.sourceAccess !== flow.sourceAccess) continue;
    if (!isSingleValued(first.sinkAccess)) continue;
    // A second step that is not anti starts at an access that writes: the one that hides.
    for (const second of all) {
      if (second.kind === "anti") continue;
      const follows = second.sourceAccess === first.sinkAccess && second.source === first.sink;
      const ends = second.sinkAccess === flow.sinkAccess && second.sink === flow.sink;
      if (follows && ends) hidden = union(hidden, compose(first.relation, second.relation));
    }
  }
  return subtractWithin(flow.relation, hidden, work);
}

/** Whether every instance surely touches exactly the one element the map gives. */
function isSingleValued(access: IntegerMap | undefined): boolean {
  if (access?.pieces.length !== 1) return false;
  const rows = readFunction(access.params, access.pieces[0]!);
  return rows?.equalities.length === 0 && rows.inequalities.length === 0;
}
