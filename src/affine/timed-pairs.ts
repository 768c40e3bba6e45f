/**
 * A dependence seen through a schedule: systems over [parameters | source | sink | locals] with both
 * time vectors as rows, one system per piece of the dependence and of each schedule map. The common
 * ground of legality (legality.ts), its fast path (distance.ts) and band properties (band.ts).
 */
import type { Dependence } from "./dependence.ts";
import { addFunction, type FunctionRows, readFunctions } from "./function-rows.ts";
import { addPlaced, blankSystem } from "./piece.ts";
import type { Row } from "./row.ts";
import { divisionRows } from "./system.ts";
import type { Division, IntegerMap, IntegerSet, Piece, SetOrMap } from "./types.ts";

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
  const { relation } = dependence;
  const params = joinedParams([relation, source, sink, ...(context ? [context] : [])]);
  const sources = functionsOf(source, dependence.source, params);
  const sinks = source === sink ? sources : functionsOf(sink, dependence.sink, params);
  if (!sources || !sinks) return undefined;
  const pairs = placed(relation, params);
  const contexts = context ? placed(context, params) : [undefined];
  const out: TimedPairs[] = [];
  for (const piece of pairs) {
    for (const first of sources) {
      for (const second of sinks) {
        for (const c of contexts) out.push(join(params, piece, [first, second], c));
      }
    }
  }
  return out;
}

/** The first value's parameters, then those that only later ones have. */
function joinedParams([first, ...others]: readonly SetOrMap[]): readonly string[] {
  let params = first!.params;
  for (const { params: names } of others) {
    const missing = names.filter((p) => !params.includes(p));
    if (missing.length > 0) params = [...params, ...missing];
  }
  return params;
}

/** A part with its own parameters, and their columns among all. */
interface Placed<T> {
  readonly part: T;
  readonly params: readonly string[];
  readonly columns: readonly number[];
}

function placed(value: SetOrMap, params: readonly string[]): Placed<Piece>[] {
  const columns = value.params.map((p) => params.indexOf(p));
  return value.pieces.map((part) => ({ part, params: value.params, columns }));
}

function functionsOf(
  map: IntegerMap,
  statement: string,
  params: readonly string[],
): Placed<FunctionRows>[] | undefined {
  const own = readFunctions(map)?.filter((f) => f.input.name === statement);
  if (!own || own.length === 0) return undefined;
  const columns = map.params.map((p) => params.indexOf(p));
  return own.map(({ rows }) => ({ part: rows, params: map.params, columns }));
}

function join(
  params: readonly string[],
  relation: Placed<Piece>,
  functions: readonly [Placed<FunctionRows>, Placed<FunctionRows>],
  context: Placed<Piece> | undefined,
): TimedPairs {
  const n = params.length;
  const piece = relation.part;
  const sourceDims = piece.input!.dims.length;
  const sinkDims = piece.output.dims.length;
  const fixed = n + sourceDims + sinkDims;
  const [source, sink] = functions;
  const counts = [relation, source, sink, context].map((p) => p?.part.locals.length ?? 0);
  const locals = counts.reduce((a, b) => a + b, 0);
  const system = blankSystem(fixed, locals);
  const base = { fixed, locals };
  const target = withSpan(relation.columns, n, sourceDims + sinkDims);
  addPlaced(system, relation.params, piece, { ...base, target, before: 0 });
  const afterSource = counts[0]! + counts[1]!;
  const sourceTime = addFunction(system, source.part, {
    ...base,
    target: withSpan(source.columns, n, sourceDims),
    before: counts[0]!,
  });
  const sinkTime = addFunction(system, sink.part, {
    ...base,
    target: withSpan(sink.columns, n + sourceDims, sinkDims),
    before: afterSource,
  });
  if (context) {
    const before = afterSource + counts[2]!;
    addPlaced(system, context.params, context.part, { ...base, target: context.columns, before });
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

/** The columns, then `count` in a row from `start`. */
function withSpan(columns: readonly number[], start: number, count: number): number[] {
  const out = columns.slice();
  for (let i = 0; i < count; i++) out.push(start + i);
  return out;
}

function padded(rows: readonly Row[], depth: number, width: number): Row[] {
  const out = [...rows];
  while (out.length < depth) out.push(new Array<number>(width).fill(0));
  return out;
}
