/**
 * Memory dependences of statements: which instance must run before which. A statement is a domain, a
 * map to time vectors (the original order) and access maps to arrays; every pair of accesses to one
 * array of which at least one writes gives a dependence: the pairs of instances that touch the same
 * element, source before sink. All memory dependences are kept, not only the last writes, which is
 * sound and cheap; value-based flow is in flow.ts. Legality on a new schedule is legality.ts.
 */
import { invariant } from "../support/invariant.ts";
import { isEmptyPiece } from "./compare.ts";
import { type KnownFunction, readFunctions } from "./function-rows.ts";
import { compose, intersectDomain, intersectRange, inverse } from "./operations.ts";
import { equalValues, inOrder, neverBefore } from "./order.ts";
import type { IntegerMap, IntegerSet } from "./types.ts";
import { type Answer, answer, type Work } from "./work.ts";

/**
 * "update" is a read-modify-write by a combining operator (`sum`, `max`, …): it reads and writes, and
 * between instances of one statement it gives a "reduction" dependence.
 */
export type AccessKind = "read" | "write" | "update";

export interface Access {
  readonly kind: AccessKind;
  /** From the statement's instances to elements; several images mean "any of these may be touched". */
  readonly map: IntegerMap;
  /**
   * For an update: its order may change (associative and commutative within the numeric class). For the
   * read of a scan's last result: the operator is associative, so that the scan may be split.
   */
  readonly reassociable?: boolean;
}

export interface Statement {
  /** The tuple name of its domain. */
  readonly name: string;
  readonly domain: IntegerSet;
  readonly accesses: readonly Access[];
  /** The original order: { S[…] -> [t0, t1, …] }. Shorter vectors count as padded with zeros. */
  readonly order: IntegerMap;
}

/** "scan" is the flow of a scan's carried value: a result to the same statement's next step. */
export type DependenceKind = "flow" | "anti" | "output" | "reduction" | "scan";

/** Instances of `source` that must precede instances of `sink`. */
export interface Dependence {
  readonly kind: DependenceKind;
  readonly source: string;
  readonly sink: string;
  /** { source[…] -> sink[…] } */
  readonly relation: IntegerMap;
  /** { source[…] -> element[…] }: what both touch (with sinkAccess), for witnesses. */
  readonly sourceAccess?: IntegerMap;
  readonly sinkAccess?: IntegerMap;
  /** A reduction whose order the caller allows to change: legality ignores it. */
  readonly reassociable: boolean;
}

/** All dependences between the statements, in the order of the statements and their accesses. */
export function findDependences(
  statements: readonly Statement[],
  limit?: number,
): Answer<readonly Dependence[]> {
  return answer((work) => findDependencesWithin(statements, work), limit);
}

export function findDependencesWithin(statements: readonly Statement[], work: Work): Dependence[] {
  const placed = statements.map(placeAccesses);
  const out: Dependence[] = [];
  for (const source of placed) {
    for (const sink of placed) out.push(...dependencesBetween(source, sink, work));
  }
  return out;
}

/** A statement with its accesses. */
interface Placed {
  readonly statement: Statement;
  readonly accesses: readonly PlacedAccess[];
}

interface PlacedAccess {
  readonly access: Access;
  readonly arrays: readonly string[];
  /** The single function that the access is, where it is one. */
  readonly known: KnownFunction | undefined;
}

function placeAccesses(statement: Statement): Placed {
  const accesses = statement.accesses.map((access) => {
    const functions = readFunctions(access.map);
    return {
      access,
      arrays: functions
        ? functions.map((f) => f.output)
        : access.map.pieces.map((p) => p.output.name),
      known: functions?.length === 1 ? functions[0] : undefined,
    };
  });
  return { statement, accesses };
}

/** The pairs of instances that touch one element. */
function touchingPairs(
  [source, first]: readonly [Statement, PlacedAccess],
  [sink, second]: readonly [Statement, PlacedAccess],
): IntegerMap {
  const [a, b] = [first.access.map, second.access.map];
  if (!first.known || !second.known) {
    const touchedBy = inverse(intersectDomain(b, sink.domain));
    return compose(intersectDomain(a, source.domain), touchedBy);
  }
  return equalValues(
    { domain: source.domain, params: a.params, known: first.known },
    { domain: sink.domain, params: b.params, known: second.known },
  );
}

function dependencesBetween(source: Placed, sink: Placed, work: Work): Dependence[] {
  const out: Dependence[] = [];
  const [early, late] = [source.statement.order, sink.statement.order];
  if (neverBefore(early, late)) return [];
  for (const first of source.accesses) {
    for (const second of sink.accesses) {
      const kind = kindOf(first.access, second.access, source === sink);
      if (!kind || !first.arrays.some((name) => second.arrays.includes(name))) continue;
      if (first === second && meetsNobody(early, first.access.map)) continue;
      const touching = touchingPairs([source.statement, first], [sink.statement, second]);
      const relation = nonEmpty(inOrder(touching, early, late), work);
      if (relation.pieces.length === 0) continue;
      out.push({
        kind,
        source: source.statement.name,
        sink: sink.statement.name,
        relation,
        sourceAccess: first.access.map,
        sinkAccess: second.access.map,
        reassociable:
          kind === "reduction" &&
          first.access.reassociable === true &&
          second.access.reassociable === true,
      });
    }
  }
  return out;
}

function kindOf(first: Access, second: Access, self: boolean): DependenceKind | undefined {
  if (first.kind === "update" && second.kind === "update" && self) return "reduction";
  if (first.kind === "write" && second.kind === "read" && second.reassociable && self)
    return "scan";
  if (first.kind !== "read" && second.kind !== "write") return "flow";
  if (first.kind !== "read") return "output";
  return second.kind === "read" ? undefined : "anti";
}

/**
 * Whether every instance has one time and an element of its own, since each dimension stands alone on
 * some axis: then an access meets itself in no other instance.
 */
function meetsNobody(order: IntegerMap, access: IntegerMap): boolean {
  const times = readFunctions(order);
  const elements = readFunctions(access);
  if (times?.length !== 1 || elements?.length !== 1) return false;
  const { input, rows } = elements[0]!;
  const start = access.params.length;
  const end = start + input.dims.length;
  const alone = new Set<number>();
  for (const row of rows.outputs) {
    let used = -1;
    for (let c = start; c < row.length - 1; c++) {
      if (row[c] === 0) continue;
      used = used === -1 && c < end ? c : -2;
    }
    if (used >= 0) alone.add(used);
  }
  return alone.size === end - start;
}

function nonEmpty(map: IntegerMap, work: Work): IntegerMap {
  return { ...map, pieces: map.pieces.filter((p) => !isEmptyPiece(map.params, p, work)) };
}

/** A dependence stated directly by its relation, as generators and tests do. */
export function makeDependence(
  relation: IntegerMap,
  detail: { readonly kind?: DependenceKind; readonly reassociable?: boolean } = {},
): Dependence {
  const first = relation.pieces[0];
  invariant(first?.input, () => "a dependence needs a map with at least one piece");
  const uniform = relation.pieces.every(
    (p) => p.input?.name === first.input?.name && p.output.name === first.output.name,
  );
  invariant(uniform, () => "a dependence relates one source to one sink statement");
  return {
    kind: detail.kind ?? "flow",
    source: first.input.name,
    sink: first.output.name,
    relation,
    reassociable: detail.reassociable ?? false,
  };
}

/** The dependences whose instances also satisfy a restriction of the domains. */
export function restrictDependence(dependence: Dependence, domains: IntegerSet): Dependence {
  const relation = intersectRange(intersectDomain(dependence.relation, domains), domains);
  return { ...dependence, relation };
}
