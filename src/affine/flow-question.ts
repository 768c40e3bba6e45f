/**
 * Dataflow between accesses in the terms of polyhedral tools (isl's union_access_info): which source
 * wrote the value that a sink reads. Sources are certain (must) or possible (may); a kill ends a value
 * without giving one. A source is hidden from a sink when a certain source or a kill of the same
 * element runs strictly between them (P. Feautrier, "Dataflow analysis of array and scalar
 * references", 1991, with the may-sources of isl's manual, section "Dependence Analysis"). Instances
 * at equal times are in no order. dependence.ts and flow.ts are about statements of nests.
 */
import { subtractWithin } from "./compare.ts";
import { domainMap, rangeMap, unwrap, wrap } from "./nested.ts";
import {
  alignBoth,
  compose,
  domain,
  emptyMap,
  identityMap,
  intersect,
  inverse,
  pairsOf,
  range,
  union,
} from "./operations.ts";
import { orderedBefore } from "./order.ts";
import type { IntegerMap, IntegerSet } from "./types.ts";
import { type Answer, answer, type Work } from "./work.ts";

/** Accesses are maps from instances to elements. */
export interface FlowQuestion {
  readonly sink: IntegerMap;
  readonly mustSource?: IntegerMap;
  readonly maySource?: IntegerMap;
  readonly kill?: IntegerMap;
  /** { instance -> time vector } for all instances. */
  readonly order: IntegerMap;
}

export interface Flow {
  /** { source -> [sink -> element] }: surely the one that wrote the value. */
  readonly mustDependence: IntegerMap;
  /** All that may have written it, the certain ones included. */
  readonly mayDependence: IntegerMap;
  /** { sink -> element } that surely (that possibly) reads what no source wrote. */
  readonly mustNoSource: IntegerMap;
  readonly mayNoSource: IntegerMap;
}

export function findFlow(question: FlowQuestion, limit?: number): Answer<Flow> {
  return answer((work) => flowWithin(question, work), limit);
}

function flowWithin(question: FlowQuestion, work: Work): Flow {
  const { sink, order } = question;
  const must = question.mustSource ?? emptyMap();
  const may = union(must, question.maySource ?? emptyMap());
  const ends = union(must, question.kill ?? emptyMap());
  const before = orderedBefore(order, order);
  const reaching = (source: IntegerMap): IntegerMap => touchedBefore(source, sink, before);
  const ending = reaching(ends);
  const hidden = compose(before, ending);
  const visible = (source: IntegerMap): IntegerMap =>
    subtractWithin(reaching(source), hidden, work);
  const mayDependence = visible(may);
  const rivals = compose(distinctInstances(domain(order), work), visible(union(may, ends)));
  const reads = wrap(sink);
  const unreached = (source: IntegerMap): IntegerMap =>
    unwrap(subtractWithin(...alignBoth<IntegerSet, IntegerSet>(reads, range(source)), work));
  return {
    mustDependence: subtractWithin(visible(must), rivals, work),
    mayDependence,
    mustNoSource: unreached(reaching(union(may, ends))),
    mayNoSource: unreached(ending),
  };
}

/** { source -> [sink -> element] } for the element that both touch, source first. */
function touchedBefore(source: IntegerMap, sink: IntegerMap, before: IntegerMap): IntegerMap {
  const touching = compose(source, inverse(rangeMap(sink)));
  return intersect(touching, compose(before, inverse(domainMap(sink))));
}

function distinctInstances(instances: IntegerSet, work: Work): IntegerMap {
  return subtractWithin(pairsOf(instances, instances), identityMap(instances), work);
}
