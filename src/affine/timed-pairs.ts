/**
 * A dependence seen through a schedule: systems over [parameters | source | sink | locals] with both
 * time vectors as rows, one system per piece of the dependence and of each schedule map. The common
 * ground of legality (legality.ts), its fast path (distance.ts) and band properties (band.ts).
 */
import type { Dependence } from "./dependence.ts";
import { addFunction, type FunctionRows, readFunction } from "./function-rows.ts";
import { alignParams } from "./operations.ts";
import { addPlaced, blankSystem } from "./piece.ts";
import type { Row } from "./row.ts";
import { divisionRows } from "./system.ts";
import type { Division, IntegerMap, IntegerSet, Piece } from "./types.ts";

export interface TimedPairs {
  readonly params: readonly string[];
  readonly sourceDims: number;
  readonly sinkDims: number;
  /** All columns without the constant. */
  readonly columns: number;
  /** Columns before the locals. */
  readonly fixed: number;
  readonly locals: readonly (Division | null)[];
  readonly equalities: readonly Row[];
  /** The pairs' constraints, those of the schedules' domains, and the bounds of divisions. */
  readonly inequalities: readonly Row[];
  /** Length of the time vectors; the shorter one is padded with zero rows. */
  readonly depth: number;
  readonly sourceTime: readonly Row[];
  readonly sinkTime: readonly Row[];
}

/** undefined when a statement has no schedule or one that is not a function (function-rows.ts). */
export function timedPairs(
  times: ReadonlyMap<string, IntegerMap>,
  dependence: Dependence,
  context: IntegerSet | undefined,
): TimedPairs[] | undefined {
  const source = times.get(dependence.source);
  const sink = times.get(dependence.sink);
  if (!source || !sink) return undefined;
  const aligned = alignAll(dependence.relation, source, sink, context);
  const sources = functionsOf(aligned.source, dependence.source);
  const sinks = functionsOf(aligned.sink, dependence.sink);
  if (!sources || !sinks) return undefined;
  const contexts = aligned.context?.pieces ?? [undefined];
  const out: TimedPairs[] = [];
  for (const piece of aligned.relation.pieces) {
    for (const first of sources) {
      for (const second of sinks) {
        for (const c of contexts) out.push(join(aligned.params, piece, [first, second], c));
      }
    }
  }
  return out;
}

interface Aligned {
  readonly params: readonly string[];
  readonly relation: IntegerMap;
  readonly source: IntegerMap;
  readonly sink: IntegerMap;
  readonly context: IntegerSet | undefined;
}

function alignAll(
  relation: IntegerMap,
  source: IntegerMap,
  sink: IntegerMap,
  context: IntegerSet | undefined,
): Aligned {
  const params = [
    ...new Set([...relation.params, ...source.params, ...sink.params, ...(context?.params ?? [])]),
  ];
  return {
    params,
    relation: alignParams(relation, params),
    source: alignParams(source, params),
    sink: alignParams(sink, params),
    context: context && alignParams(context, params),
  };
}

function functionsOf(map: IntegerMap, statement: string): FunctionRows[] | undefined {
  const out: FunctionRows[] = [];
  for (const piece of map.pieces) {
    if (piece.input?.name !== statement) continue;
    const rows = readFunction(map.params, piece);
    if (!rows) return undefined;
    out.push(rows);
  }
  return out.length > 0 ? out : undefined;
}

function join(
  params: readonly string[],
  piece: Piece,
  functions: readonly [FunctionRows, FunctionRows],
  context: Piece | undefined,
): TimedPairs {
  const n = params.length;
  const sourceDims = piece.input!.dims.length;
  const sinkDims = piece.output.dims.length;
  const fixed = n + sourceDims + sinkDims;
  const [source, sink] = functions;
  const counts = [piece, source, sink, context].map((p) => p?.locals.length ?? 0);
  const locals = counts.reduce((a, b) => a + b, 0);
  const system = blankSystem(fixed, locals);
  const span = (start: number, count: number): number[] =>
    Array.from({ length: count }, (_, i) => start + i);
  const base = { fixed, locals };
  addPlaced(system, params, piece, { ...base, target: span(0, fixed), before: 0 });
  const toSource = [...span(0, n), ...span(n, sourceDims)];
  const toSink = [...span(0, n), ...span(n + sourceDims, sinkDims)];
  const afterSource = counts[0]! + counts[1]!;
  const sourceTime = addFunction(system, source, {
    ...base,
    target: toSource,
    before: counts[0]!,
  });
  const sinkTime = addFunction(system, sink, { ...base, target: toSink, before: afterSource });
  if (context) {
    const before = afterSource + counts[2]!;
    addPlaced(system, params, context, { ...base, target: span(0, n), before });
  }
  const depth = Math.max(sourceTime.length, sinkTime.length);
  const width = fixed + locals + 1;
  return {
    params,
    sourceDims,
    sinkDims,
    columns: width - 1,
    fixed,
    locals: system.locals,
    equalities: system.equalities,
    inequalities: [...system.inequalities, ...divisionRows(system)],
    depth,
    sourceTime: padded(sourceTime, depth, width),
    sinkTime: padded(sinkTime, depth, width),
  };
}

function padded(rows: readonly Row[], depth: number, width: number): Row[] {
  const out = [...rows];
  while (out.length < depth) out.push(new Array<number>(width).fill(0));
  return out;
}
