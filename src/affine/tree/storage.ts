/**
 * Storage that is used again: elements that share a cell. A change of storage gives every access
 * another array and index; it is right when no value is overwritten while it is needed. A value is
 * needed from the instance w that writes it to the last instance r that reads it (the value flow, with
 * what comes in and what is kept as instances before and behind everything), and an instance x that
 * writes another element to the same cell must be done before w or start after r. The instance r itself
 * may be x: it reads before it writes. The clashing triples are an integer set; a point in it is the
 * witness. Folding, in-place writes, multiple buffers and planned memory are all this one question.
 */
import { invariant } from "../../support/invariant.ts";
import {
  atMost,
  below,
  type Constraint,
  equals,
  makeMap,
  makeRelation,
  makeSet,
} from "../build.ts";
import { isEmptyPiece, pairOf } from "../compare.ts";
import { type Affine, add, affine, evaluateAffine } from "../expression.ts";
import { findValueFlowWithin } from "../flow.ts";
import {
  accessMap,
  domainOf,
  isRange,
  type NestAccess,
  type NestStatement,
  toStatement,
} from "../nest.ts";
import {
  applyMap,
  compose,
  domain,
  emptyMap,
  emptySet,
  intersect,
  intersectDomain,
  intersectParams,
  intersectRange,
  range,
  renameTuple,
  union,
} from "../operations.ts";
import { samplePiece } from "../piece.ts";
import type { IntegerMap, IntegerSet, PointPair } from "../types.ts";
import { answer, type UnknownReason, type Work } from "../work.ts";
import { timePaths } from "./flatten.ts";
import { firstName, mayFollow, onSide, secondName, type Timed } from "./may-follow.ts";
import type { Nest, Plan } from "./nest-program.ts";

/** An instance, or what was there before (`before`) or is read behind everything (`behind`). */
export interface StoragePlace {
  readonly statement: string;
  readonly values: readonly number[];
}

/** A value that would be lost. */
export interface StorageClash {
  readonly array: string;
  readonly element: readonly number[];
  readonly cell: { readonly array: string; readonly index: readonly number[] };
  readonly writer: StoragePlace;
  readonly reader: StoragePlace;
  /** Absent when writer and reader do not look into the same cell. */
  readonly overwriter?: StoragePlace;
  readonly params: Readonly<Record<string, number>>;
}

export type StorageAnswer =
  | { readonly kind: "legal" }
  | { readonly kind: "clash"; readonly clash: StorageClash }
  | { readonly kind: "unknown"; readonly reason: UnknownReason };

/** Where an access goes when storage has changed. */
export type Relocation = (statement: NestStatement, access: NestAccess) => NestAccess;

const storageWork = 4_000_000;

/** Whether the plan computes the same with its accesses relocated. */
export function checkStorage(
  plan: Plan,
  relocate: Relocation,
  limit: number = storageWork,
): StorageAnswer {
  const question = new StorageQuestion(plan, relocate);
  const found = answer((work) => question.findClash(work), limit);
  if (found.kind === "unknown") return found;
  return found.value ? { kind: "clash", clash: found.value } : { kind: "legal" };
}

/** An access of a flow: the statement, and both places. */
interface End extends Timed {
  readonly old: NestAccess;
  readonly moved: NestAccess;
}

interface User extends Timed {
  readonly moves: readonly { readonly old: NestAccess; readonly moved: NestAccess }[];
}

class StorageQuestion {
  readonly #nest: Nest;
  readonly #users: readonly User[];

  constructor({ nest, tree }: Plan, relocate: Relocation) {
    this.#nest = nest;
    const paths = timePaths(tree, nest.statements);
    const inside = nest.statements.map((statement) => ({
      statement,
      phase: 0,
      parts: paths.get(statement.name)!,
      moves: statement.accesses.map((old) => ({ old, moved: relocate(statement, old) })),
    }));
    const shared = sharedArrays(inside);
    const outside = [...shared].flatMap((array) => outsideUsers(nest, array, relocate));
    this.#users = [...inside, ...outside].map((u) => {
      const moves = u.moves.filter((m) => shared.has(m.old.array));
      return { ...u, moves };
    });
  }

  findClash(work: Work): StorageClash | undefined {
    for (const flow of this.#flows(work)) {
      const clash = this.#clashOf(flow, work);
      if (clash) return clash;
    }
    return undefined;
  }

  /** The values that travel through the arrays in question, in the order of the tree. */
  #flows(work: Work): readonly Flow[] {
    const users = this.#users.filter((u) => u.moves.length > 0);
    const statements = users.map((u) => {
      const from = { tuple: u.statement.name, dims: u.statement.dims };
      const values = [affine(u.phase), ...u.parts.map((p) => p.value)];
      const accesses = u.moves.map((m) => m.old);
      return toStatement({ ...u.statement, accesses }, makeMap({ from, to: { values } }));
    });
    const endOf = (name: string, map: IntegerMap | undefined): End => {
      const at = users.findIndex((u) => u.statement.name === name);
      const access = statements[at]!.accesses.findIndex((a) => a.map === map);
      return { ...users[at]!, ...users[at]!.moves[access]! };
    };
    const { context } = this.#nest;
    return findValueFlowWithin(statements, work).map((flow) => ({
      pairs: context ? intersectParams(flow.relation, context) : flow.relation,
      w: endOf(flow.source, flow.sourceAccess),
      r: endOf(flow.sink, flow.sinkAccess),
    }));
  }

  #clashOf(flow: Flow, work: Work): StorageClash | undefined {
    const lost = this.#mismatch(flow, work);
    if (lost) return lost;
    for (const x of this.#users) {
      for (const { old, moved } of x.moves) {
        if (old.kind === "read" || moved.array !== flow.w.moved.array) continue;
        const clash = overwritten(flow, { ...x, old, moved }, work);
        if (clash) return clash;
      }
    }
    return undefined;
  }

  /** Writer and reader of a value that look into different copies. */
  #mismatch({ pairs, w, r }: Flow, work: Work): StorageClash | undefined {
    // Where no axis is added, an element has its cell whoever looks for it.
    const added = w.moved.index.length - w.old.index.length;
    const apart = differing(
      cellIndex(w, firstName).slice(0, added),
      cellIndex(r, secondName).slice(0, added),
    );
    for (const where of apart) {
      const from = { tuple: w.statement.name, dims: w.statement.dims.map(firstName) };
      const to = { tuple: r.statement.name, dims: r.statement.dims.map(secondName) };
      const found = samplePairOf(intersect(pairs, makeRelation({ from, to, where })), work);
      if (found) return clashAt({ w, r }, found);
    }
    return undefined;
  }
}

interface Flow {
  readonly pairs: IntegerMap;
  readonly w: End;
  readonly r: End;
}

/** Some x that writes another element to the cell of w's value after w and before r. */
function overwritten({ pairs, w, r }: Flow, x: End, work: Work): StorageClash | undefined {
  const same = sameCell(w, x);
  const cases = w.old.array === x.old.array ? otherElements(w, x) : [[]];
  const reflexive = w.statement !== x.statement || w.old !== x.old;
  let after = emptyMap();
  for (const other of cases) {
    const where = [...same, ...other];
    after = union(after, mayFollow(w, x, { reflexive, where }));
  }
  after = inhabited(intersectRange(after, domainOf(x.statement)), work);
  if (after.pieces.length === 0) return undefined;
  const before = mayFollow(x, r, { reflexive: x.statement !== r.statement });
  const found = samplePairOf(intersect(pairs, compose(after, before)), work);
  if (!found) return undefined;
  const instance = (s: NestStatement, values: readonly number[]): IntegerSet =>
    makeSet({ tuple: s.name, dims: s.dims, where: s.dims.map((d, i) => equals(d, values[i]!)) });
  const between = intersect(
    range(intersectDomain(after, instance(w.statement, found.from.values))),
    domain(intersectRange(before, instance(r.statement, found.to.values))),
  );
  const point = between.pieces
    .map((p) => samplePiece(between.params, p, work))
    .find((values) => values !== null);
  invariant(point, () => "a clash without an instance between");
  const overwriter = { statement: x.statement.name, values: point.slice(between.params.length) };
  return { ...clashAt({ w, r }, found), overwriter };
}

function inhabited(map: IntegerMap, work: Work): IntegerMap {
  return { ...map, pieces: map.pieces.filter((p) => !isEmptyPiece(map.params, p, work)) };
}

function samplePairOf(map: IntegerMap, work: Work): PointPair | undefined {
  for (const piece of map.pieces) {
    const values = samplePiece(map.params, piece, work);
    if (values) return pairOf(map.params, piece, values);
  }
  return undefined;
}

function clashAt({ w, r }: Omit<Flow, "pairs">, { from, to, params }: PointPair): StorageClash {
  const numbers = {
    ...params,
    ...Object.fromEntries(w.statement.dims.map((d, i) => [d, from.values[i]!])),
  };
  const at = (index: NestAccess["index"]): readonly number[] =>
    index.map((e) => evaluateAffine(isRange(e) ? e.low : e, numbers));
  return {
    array: w.old.array,
    element: at(w.old.index),
    cell: { array: w.moved.array, index: at(w.moved.index) },
    writer: { statement: w.statement.name, values: from.values },
    reader: { statement: r.statement.name, values: to.values },
    params,
  };
}

type Side = (dimension: string) => string;
/** First and last place on an axis; the same one where an access goes to one. */
interface SidedAxis {
  readonly first: Affine;
  readonly last: Affine;
}
type SidedIndex = readonly SidedAxis[];

/** Index expressions on one side. */
function sided({ statement }: End, { index }: NestAccess, side: Side): SidedIndex {
  return index.map((e) => {
    if (isRange(e)) {
      const [first, end] = [e.low, e.end].map((b) => onSide(statement, affine(b), side));
      return { first: first!, last: add(end!, -1) };
    }
    const place = onSide(statement, e, side);
    return { first: place, last: place };
  });
}

function cellIndex(end: End, side: Side): SidedIndex {
  return sided(end, end.moved, side);
}

/**
 * How two accesses to one cell of one array mean different elements: only on axes that storage changed,
 * since the others are part of the cell.
 */
function otherElements(w: End, x: End): readonly (readonly Constraint[])[] {
  if (w.moved.index.length !== w.old.index.length) return [];
  const changed = (_: unknown, axis: number): boolean => w.moved.index[axis] !== w.old.index[axis];
  const [a, b] = [sided(w, w.old, firstName), sided(x, x.old, secondName)];
  return differing(a.filter(changed), b.filter(changed));
}

function sameCell(w: End, x: End): Constraint[] {
  const [a, b] = [cellIndex(w, firstName), cellIndex(x, secondName)];
  return a.flatMap((e, axis) => {
    const f = b[axis]!;
    if (isOne(e) && isOne(f)) return [equals(e.first, f.first)];
    return [atMost(e.first, f.last), atMost(f.first, e.last)];
  });
}

function isOne({ first, last }: SidedAxis): boolean {
  return first === last;
}

/** The ways in which two indices differ: some place of the one from some place of the other. */
function differing(a: SidedIndex, b: SidedIndex): readonly (readonly Constraint[])[] {
  return a.flatMap((e, axis) => {
    const f = b[axis]!;
    return [[below(e.first, f.last)], [below(f.first, e.last)]];
  });
}

/** Arrays whose cells some relocated access uses. */
function sharedArrays(users: readonly User[]): ReadonlySet<string> {
  const all = users.flatMap((u) => u.moves);
  const targets = new Set(all.filter((m) => m.moved !== m.old).map((m) => m.moved.array));
  return new Set(all.filter((m) => targets.has(m.moved.array)).map((m) => m.old.array));
}

/** What stands in an array before the nest, and what is read of it afterwards, element by element. */
function outsideUsers(nest: Nest, array: string, relocate: Relocation): readonly User[] {
  const touching = nest.statements.flatMap((s) =>
    s.accesses.filter((a) => a.array === array).map((a) => applyMap(accessMap(s, a), domainOf(s))),
  );
  const elements = touching.reduce(union, emptySet());
  // Where no statement runs, nothing is touched.
  const [piece] = elements.pieces;
  if (!piece) return [];
  const dims = piece.output.dims.map((_, axis) => `e${axis}`);
  const userOf = (phase: -1 | 1): User => {
    const name = `${phase < 0 ? "before" : "behind"}.${array}`;
    const kind = phase < 0 ? ("write" as const) : ("read" as const);
    const old: NestAccess = { kind, array, index: dims.map((d) => affine(d)) };
    const bare = { name, dims, domain: [], within: renameTuple(elements, name), accesses: [old] };
    return { statement: bare, phase, parts: [], moves: [{ old, moved: relocate(bare, old) }] };
  };
  return [
    ...(nest.given.has(array) ? [userOf(-1)] : []),
    ...(nest.kept.has(array) ? [userOf(1)] : []),
  ];
}
