/**
 * Maps that write parts of one tensor (a concat) as one statement: each point writes an element of every part, and
 * what several of them read is read once. That is how a rotary embedding is one kernel: of a pair, both results are
 * made of the same two elements and angles. In: regions in order, prices (injected). Out: the regions, some joined,
 * where one kernel costs less than the kernels apart. The maps run over the same loops; one of them may have a short
 * loop more, which is copied out.
 */
import * as affine from "../../affine/index.ts";
import { bridgeRegion } from "../../region/affine-bridge.ts";
import { AccessList, largestBody } from "../../region/compose-epilogue.ts";
import { type AnalysedProgram, analyseProgram } from "../../region/form-region.ts";
import type { Indirect, Loop, Region, Statement } from "../../region/nest.ts";
import type { LayOut } from "../../region/regions-of.ts";
import {
  accessKey,
  renameVariables,
  scalarSize,
  substituteVariables,
} from "../../region/statement.ts";
import { updatesInPlace } from "../../region/uses.ts";
import { constant, constantValue, variablesOf } from "../../semantics/index-expr.ts";
import { argument, bindArguments } from "../../semantics/scalar-expr.ts";

/** Trips of a loop that only one of two maps has, at most: each is a write of its own. */
const mostCopies = 8;

/** @param priceOf nanoseconds of a region by its cheapest schedule */
export function joinParts(priceOf: (region: Region) => number): LayOut {
  return (regions, nests) => {
    const analysed = analyseProgram(nests);
    const gone = new Set<number>();
    const joinedAt = new Map<number, Region>();
    for (const [tensor, parts] of partsOf(regions, analysed)) {
      // A tensor in a layout of its own is made by one region, and is none of the program's.
      const writers = analysed.uses.writers.get(tensor)?.length ?? 0;
      for (let left = parts; left.length > 1; ) {
        const { members, joined, rest } = joinFirst(left, regions, { analysed, priceOf });
        left = rest.filter((at) => !gone.has(at));
        if (members.length < 2 || members.some((at) => gone.has(at))) continue;
        // With open extents it is only shown of all parts together that they are all there is.
        if (isOpen(joined) && members.length < writers) continue;
        for (const at of members) gone.add(at);
        joinedAt.set(members.at(-1)!, joined);
      }
    }
    const laidOut = regions.flatMap((region, at) => {
      return joinedAt.get(at) ?? (gone.has(at) ? [] : region);
    });
    return { regions: laidOut, tensors: new Map() };
  };
}

/** Regions that write one tensor each a part, by number and in order. */
function partsOf(
  regions: readonly Region[],
  { uses }: AnalysedProgram,
): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const [at, { statements }] of regions.entries()) {
    const [statement] = statements;
    // A conversion between layouts is a region of its own, and nothing of the program.
    if (!statement || statements.length > 1 || !uses.statementAt.has(statement.name)) continue;
    if (!isMap(statement) || !isPlaced(statement, regions[at]!)) continue;
    for (const tensor of new Set(statement.writes.map((w) => w.tensor))) {
      const known = found.get(tensor);
      if (known) known.push(at);
      else found.set(tensor, [at]);
    }
  }
  return found;
}

function isMap(statement: Statement): boolean {
  const { reduction, finish, finishReads, guard, loops } = statement;
  const plain = !reduction && !finish && finishReads.length === 0 && guard.length === 0;
  const names = new Set(loops.map((l) => l.name));
  const isBox = loops.every(
    (l) => l.kind === "space" && ![...variablesOf(l.extent)].some((name) => names.has(name)),
  );
  return plain && isBox && !updatesInPlace(statement);
}

function isOpen({ statements: [statement] }: Region): boolean {
  return statement!.loops.some((l) => constantValue(l.extent) === undefined);
}

/**
 * Whether parts are apart whatever open extents are: loops of such extents go over whole axes, and no part begins
 * where an open extent says.
 */
function isPlaced({ loops, writes }: Statement, { tensors }: Region): boolean {
  const open = loops.filter((l) => constantValue(l.extent) === undefined);
  const fixed = new Set(loops.filter((l) => !open.includes(l)).map((l) => l.name));
  return writes.every(({ tensor, index }) =>
    index.every((e, axis) => {
      if ([...variablesOf(e)].every((name) => fixed.has(name))) return true;
      const whole = tensors.get(tensor)!.shape[axis]!.key;
      return open.some((l) => l.name === e.key && l.extent.key === whole);
    }),
  );
}

interface Joining {
  readonly analysed: AnalysedProgram;
  readonly priceOf: (region: Region) => number;
}

/** The first part with all that join it, and those that do not. */
function joinFirst(
  parts: readonly number[],
  regions: readonly Region[],
  { analysed, priceOf }: Joining,
): {
  readonly members: readonly number[];
  readonly joined: Region;
  readonly rest: readonly number[];
} {
  const [first, ...others] = parts;
  let [members, joined] = [[first!], regions[first!]!];
  const rest: number[] = [];
  for (const at of others) {
    const next = regions[at]!;
    const both = joinedRegion(joined, next);
    const all = [...members, at];
    const isCheaper = (): boolean => priceOf(both!) < priceOf(joined) + priceOf(next);
    if (!both || isOvertaken(all, regions, analysed) || !isCheaper()) rest.push(at);
    else [members, joined] = [all, both];
  }
  return { members, joined, rest };
}

/** Whether something between the members would come too early, or they too late. */
function isOvertaken(
  members: readonly number[],
  regions: readonly Region[],
  { uses, order }: AnalysedProgram,
): boolean {
  const items = members.map((at) => uses.statementAt.get(regions[at]!.statements[0]!.name)!);
  return order.overtaken(new Set(items), [], Math.max(...items)) !== undefined;
}

/** Whether either touches what the other writes: a copy, say, and what is written over it. */
function dependOnEachOther(first: Region, last: Region): boolean {
  const statements = [first.statements[0]!, last.statements[0]!];
  const tensors = new Map([...first.tensors, ...last.tensors]);
  const bridged = bridgeRegion({ statements, symbols: last.symbols, tensors });
  const found = affine.findDependences(bridged.affine);
  if (found.kind === "unknown") return true;
  return found.value.some(
    (d) =>
      d.source !== d.sink &&
      affine.isEmpty(affine.intersectParams(d.relation, bridged.context)) !== "yes",
  );
}

function joinedRegion(first: Region, last: Region): Region | undefined {
  if (dependOnEachOther(first, last)) return undefined;
  const statement = joinedMaps(first.statements[0]!, last.statements[0]!, (tensor) => {
    return (last.tensors.get(tensor) ?? first.tensors.get(tensor))!.dtype;
  });
  if (!statement) return undefined;
  const { inlined, anchor, epilogue } = first.group;
  const members = [...inlined, anchor, ...epilogue, ...last.group.inlined];
  return {
    ...last,
    group: { ...last.group, inlined: [...new Set(members)] },
    statements: [statement],
    tensors: new Map([...first.tensors, ...last.tensors]),
  };
}

/**
 * Both maps at each point of the loops of the first, or undefined: where their loops differ, or the body would be too
 * large. Whether they may run so is the caller's question.
 */
export function joinedMaps(
  first: Statement,
  last: Statement,
  dtypeOf: (tensor: string) => Parameters<typeof argument>[1],
): Statement | undefined {
  const copies = aligned(first, last);
  if (!copies) return undefined;
  const [host, ...guests] = copies;
  const indirects: Indirect[] = [...host!.indirects];
  const reads = new AccessList(host!.reads);
  const body = [...host!.body];
  const writes = [...host!.writes];
  for (const given of guests) {
    const guest = sharingIndices(given, indirects, host!.loops);
    const operands = guest.reads.map((a) => argument(reads.add(a), dtypeOf(a.tensor)));
    body.push(...guest.body.map((e) => bindArguments(e, operands)));
    writes.push(...guest.writes);
  }
  if (body.reduce((size, e) => size + scalarSize(e), 0) > largestBody) return undefined;
  const { name, origin } = last;
  const origins = [...new Set([...first.origin.split(" + "), ...origin.split(" + ")])].join(" + ");
  return { ...host!, name, origin: origins, indirects, reads: reads.items, body, writes };
}

/** Both statements over the loops of the one that has fewer, as often as the other has trips more. */
function aligned(first: Statement, last: Statement): readonly Statement[] | undefined {
  if (first.loops.length > last.loops.length) return overLoopsOf(last, first);
  return overLoopsOf(first, last);
}

function overLoopsOf(host: Statement, guest: Statement): readonly Statement[] | undefined {
  const more = guest.loops.length - host.loops.length;
  if (more > 1) return undefined;
  for (const extra of more === 0 ? [undefined] : guest.loops) {
    const loops = guest.loops.filter((l) => l !== extra);
    if (!loops.every((l, i) => l.extent.key === host.loops[i]!.extent.key)) continue;
    const trips = extra ? constantValue(extra.extent) : 1;
    if (trips === undefined || trips > mostCopies) continue;
    return [host, ...copiesOf(guest, { loops, extra, trips, names: host.loops })];
  }
  return undefined;
}

function copiesOf(
  guest: Statement,
  {
    loops,
    extra,
    trips,
    names,
  }: {
    readonly loops: readonly Loop[];
    readonly extra: Loop | undefined;
    readonly trips: number;
    readonly names: readonly Loop[];
  },
): readonly Statement[] {
  const own = new Map(loops.map((l, i) => [l.name, names[i]!.name]));
  // Names of indices are found anew (sharingIndices); until then they are no loop's.
  const renamed = renameVariables(guest, (name) => own.get(name) ?? `part.${name}`);
  if (!extra) return [renamed];
  const at = `part.${extra.name}`;
  return Array.from({ length: trips }, (_, trip) => ({
    ...substituteVariables(renamed, new Map([[at, constant(trip)]])),
    loops: renamed.loops.filter((l) => l.name !== at),
  }));
}

/** The statement with its indices under the names of equal ones in the list; others join it. */
function sharingIndices(
  statement: Statement,
  indirects: Indirect[],
  loops: readonly Loop[],
): Statement {
  let made = statement;
  for (let i = 0; i < statement.indirects.length; i++) {
    const own = made.indirects[i]!;
    const same = indirects.find((v) => indexKey(v) === indexKey(own));
    const taken = new Set([...loops, ...indirects].map((v) => v.name));
    let n = 0;
    while (taken.has(`v${n}`)) n++;
    const name = same?.name ?? `v${n}`;
    made = renameVariables(made, (old) => (old === own.name ? name : old));
    if (!same) indirects.push(made.indirects[i]!);
  }
  return made;
}

function indexKey({ access, extent, wraps, range }: Indirect): string {
  return `${accessKey(access)} < ${extent.key} ${wraps} ${range}`;
}
