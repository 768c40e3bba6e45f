/**
 * Fusion of a consumer into the statement that makes its operand: the consumer's scalar body is
 * applied to each finished element before it is stored. With a reduction it extends `finish` (its
 * other operands become finish reads), without one it extends `body`. The result writes the anchor's
 * tensors and the consumer's; `dropWrites` removes what nobody reads any more.
 *
 * Legal when the consumer reads each element of the anchor's result at its own place: its loops stand
 * one to one on the axes of the tensor, or, where the caller asks for it, are the digits of the place along
 * an axis (the heads that a transformer's projection is split into), so substituting the anchor's write index
 * for them runs every iteration of the consumer exactly once. Order of memory effects is the caller's question
 * (groups.ts).
 */
import {
  constantValue,
  floorDiv,
  type IndexExpr,
  indexEquals,
  mod,
  splitLinear,
  variablesOf,
} from "../semantics/index-expr.ts";
import { argument, bindArguments, type ScalarExpr } from "../semantics/scalar-expr.ts";
import { invariant } from "../support/invariant.ts";
import type { Access, NestProgram, Statement } from "./nest.ts";
import { accessKey, scalarSize, substituteAccess, substituteScalar } from "./statement.ts";

export type Composition =
  | { readonly kind: "composed"; readonly statement: Statement }
  | {
      readonly kind: "refused";
      readonly reason: string;
      /** Position of an item in between that meets what a member makes or reads. */
      readonly between?: number;
    };

/** Operators in a composed body; beyond it the text of shared subexpressions explodes. */
export const largestBody = 256;

export function refused(reason: string): Composition {
  return { kind: "refused", reason };
}

/**
 * The statement that computes the anchor and then the consumer on each element.
 * @param splitsAxes whether several loops of the consumer may stand on one axis, as the digits of its places
 */
export function composeEpilogue(
  program: Pick<NestProgram, "tensors">,
  anchor: Statement,
  consumer: Statement,
  splitsAxes = false,
): Composition {
  const trouble = anchorTrouble(anchor) ?? consumerTrouble(consumer);
  if (trouble) return refused(trouble);
  const made = new Map(anchor.writes.map((w, i) => [w.tensor, i]));
  const places = consumer.reads.filter((r) => made.has(r.tensor));
  const [place] = places;
  if (!place) return refused(`${consumer.name} reads nothing of ${anchor.name}`);
  const seam = { program, anchor, consumer, splitsAxes };
  const bindings = placeBindings(place, seam);
  if (typeof bindings === "string") return refused(bindings);
  for (const other of places) {
    const same = placeBindings(other, seam);
    if (typeof same === "string") return refused(same);
    if (![...bindings].every(([name, e]) => indexEquals(same.get(name)!, e))) {
      return refused(`${consumer.name} reads ${other.tensor} at two places`);
    }
  }
  const statement = compose(program, anchor, consumer, { made, bindings });
  const size = [...statement.body, ...(statement.finish ?? [])].reduce(
    (sum, e) => sum + scalarSize(e),
    0,
  );
  return size > largestBody
    ? refused(`the composed body would have ${size} operators`)
    : { kind: "composed", statement };
}

function anchorTrouble(anchor: Statement): string | undefined {
  if (anchor.loops.some((l) => l.kind === "scan")) return `${anchor.name} scans its own result`;
  if (anchor.writes.some((w) => w.combine !== "overwrite"))
    return `${anchor.name} updates in place`;
  const loaded = new Set(anchor.indirects.map((v) => v.name));
  const scatters = anchor.writes.some((w) =>
    [...variablesOf(...w.index)].some((n) => loaded.has(n)),
  );
  return scatters ? `${anchor.name} scatters` : undefined;
}

function consumerTrouble(consumer: Statement): string | undefined {
  if (consumer.reduction) return `${consumer.name} is a reduction`;
  if (consumer.finish) return `${consumer.name} has a finish of its own`;
  if (consumer.loops.some((l) => l.kind !== "space")) return `${consumer.name} is a scan`;
  if (consumer.indirects.length > 0) return `${consumer.name} reads through indices`;
  if (consumer.guard.length > 0) return `${consumer.name} covers a part of its domain`;
  const updates = consumer.writes.some((w) => w.combine !== "overwrite");
  return updates ? `${consumer.name} updates in place` : undefined;
}

interface Meeting {
  readonly program: Pick<NestProgram, "tensors">;
  readonly anchor: Statement;
  readonly consumer: Statement;
  readonly splitsAxes: boolean;
}

/** The consumer's loops in terms of the anchor's, when it reads `place` at identity; else why not. */
function placeBindings(
  place: Access,
  { program, anchor, consumer, splitsAxes }: Meeting,
): Map<string, IndexExpr> | string {
  if (place.guard.length > 0) return `${consumer.name} reads ${place.tensor} under a guard`;
  const { shape } = program.tensors.get(place.tensor)!;
  const write = anchor.writes.find((w) => w.tensor === place.tensor)!;
  const extents = new Map(consumer.loops.map((l) => [l.name, l.extent]));
  const bindings = new Map<string, IndexExpr>();
  for (const [axis, at] of place.index.entries()) {
    if (constantValue(at) === 0 && constantValue(shape[axis]!) === 1) continue;
    const name = loopOf(at, extents);
    const digits = name === undefined && splitsAxes ? digitsOf(at, extents) : undefined;
    const names = digits?.map((d) => d.loop) ?? (name === undefined ? [] : [name]);
    if (names.length === 0 || names.some((n) => bindings.has(n))) {
      return `${consumer.name} reads ${place.tensor} at another place than it writes`;
    }
    const covered = digits ? digits[0]!.step * digits[0]!.extent : extents.get(name!)!;
    if (!indexEquals(covered, shape[axis]!)) {
      const text = typeof covered === "number" ? covered : covered.key;
      return `${consumer.name} covers ${text} of ${shape[axis]!.key} in ${place.tensor}`;
    }
    if (!digits) bindings.set(name!, write.index[axis]!);
    digits?.forEach(({ loop, step, extent }, i) => {
      const above = floorDiv(write.index[axis]!, step);
      bindings.set(loop, i === 0 ? above : mod(above, extent));
    });
  }
  const free = consumer.loops.find((l) => !bindings.has(l.name));
  return free ? `${consumer.name} repeats ${place.tensor} along ${free.name}` : bindings;
}

/** A loop that counts steps of a place, as many as its extent. */
export interface Digit {
  readonly loop: string;
  readonly step: number;
  readonly extent: number;
}

/** The loops that a place is the row-major number of, the outermost first; undefined where it is none. */
export function digitsOf(
  at: IndexExpr,
  extents: ReadonlyMap<string, IndexExpr>,
): readonly Digit[] | undefined {
  if (at.constant !== 0) return undefined;
  const digits = at.terms.map(({ coefficient, key }): Digit | undefined => {
    const own = extents.get(key);
    const extent = own && constantValue(own);
    return extent === undefined ? undefined : { loop: key, step: coefficient, extent };
  });
  if (digits.includes(undefined)) return undefined;
  const known = (digits as Digit[]).sort((a, b) => b.step - a.step);
  const isPacked = known.every(({ step }, i) => {
    const inner = known[i + 1];
    return step === (inner ? inner.step * inner.extent : 1);
  });
  return isPacked ? known : undefined;
}

/** The loop variable that an index is, if it is one. */
export function loopOf(at: IndexExpr, loops: ReadonlyMap<string, unknown>): string | undefined {
  const [name, ...others] = variablesOf(at);
  if (name === undefined || others.length > 0 || !loops.has(name)) return undefined;
  const split = splitLinear(at, name);
  return split?.coefficient === 1 && constantValue(split.rest) === 0 ? name : undefined;
}

interface Seam {
  /** Number of the anchor's write by tensor. */
  readonly made: ReadonlyMap<string, number>;
  readonly bindings: ReadonlyMap<string, IndexExpr>;
}

function compose(
  { tensors }: Pick<NestProgram, "tensors">,
  anchor: Statement,
  consumer: Statement,
  { made, bindings }: Seam,
): Statement {
  const late = anchor.reduction !== undefined || anchor.finish !== undefined;
  const results = late ? finishOf(anchor) : anchor.body;
  const first = late ? anchor.body.length : 0;
  const reads = new AccessList(late ? anchor.finishReads : anchor.reads);
  const operands = consumer.reads.map((read) => {
    const write = made.get(read.tensor);
    if (write !== undefined) return results[write]!;
    const at = reads.add(substituteAccess(read, bindings));
    return argument(first + at, tensors.get(read.tensor)!.dtype);
  });
  const values = consumer.body.map((e) => bindArguments(substituteScalar(e, bindings), operands));
  const writes = consumer.writes.map((w) => ({
    ...w,
    index: substituteAccess({ ...w, guard: [], fill: 0 }, bindings).index,
  }));
  const both = {
    ...anchor,
    writes: [...anchor.writes, ...writes],
    origin: joinOrigins(anchor, consumer),
  };
  return late
    ? { ...both, finish: [...results, ...values], finishReads: reads.items }
    : { ...both, body: [...results, ...values], reads: reads.items };
}

function joinOrigins(a: Statement, b: Statement): string {
  return a.origin.split(" + ").includes(b.origin) ? a.origin : `${a.origin} + ${b.origin}`;
}

/** The expressions of the writes over the body's values and the finish reads. */
export function finishOf({ finish, body }: Statement): readonly ScalarExpr[] {
  return finish ?? body.map((e, i) => argument(i, e.dtype));
}

/** A list of accesses that takes up equal ones once; those it begins with keep their numbers, equal or not. */
export class AccessList {
  readonly items: Access[] = [];
  readonly #places = new Map<string, number>();

  constructor(accesses: readonly Access[] = []) {
    for (const [i, access] of accesses.entries()) {
      const key = accessKey(access);
      if (!this.#places.has(key)) this.#places.set(key, i);
      this.items.push(access);
    }
  }

  /** The number of the access in the list. */
  add(access: Access): number {
    const key = accessKey(access);
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    this.#places.set(key, this.items.length);
    return this.items.push(access) - 1;
  }
}

/** The statement without the writes of some tensors, and without what only they used. */
export function dropWrites(statement: Statement, tensors: ReadonlySet<string>): Statement {
  const kept = statement.writes.flatMap((w, i) => (tensors.has(w.tensor) ? [] : [i]));
  invariant(kept.length > 0, () => `${statement.name} would write nothing`);
  if (kept.length === statement.writes.length) return statement;
  const writes = kept.map((i) => statement.writes[i]!);
  if (!statement.reduction && !statement.finish) {
    return pruneReads({ ...statement, writes, body: kept.map((i) => statement.body[i]!) });
  }
  const results = finishOf(statement);
  return pruneFinishReads({ ...statement, writes, finish: kept.map((i) => results[i]!) });
}

/** Drops reads that no body uses. */
export function pruneReads(statement: Statement): Statement {
  const { kept, renumber } = usedArguments(statement.body, statement.reads, 0);
  return { ...statement, reads: kept, body: statement.body.map(renumber) };
}

export function pruneFinishReads(statement: Statement): Statement {
  const first = statement.body.length;
  const { kept, renumber } = usedArguments(statement.finish!, statement.finishReads, first);
  return { ...statement, finishReads: kept, finish: statement.finish!.map(renumber) };
}

function usedArguments(exprs: readonly ScalarExpr[], accesses: readonly Access[], first: number) {
  const used = new Set<number>();
  const look = (e: ScalarExpr): void => {
    if (e.kind === "argument") used.add(e.index);
    if (e.kind === "cast") look(e.operand);
    if (e.kind === "apply") e.operands.forEach(look);
  };
  exprs.forEach(look);
  const kept = accesses.filter((_, i) => used.has(first + i));
  let next = first;
  const places = accesses.map((_, i) => (used.has(first + i) ? next++ : -1));
  const renumber = (e: ScalarExpr): ScalarExpr => {
    if (e.kind === "argument") {
      return e.index < first ? e : argument(places[e.index - first]!, e.dtype);
    }
    if (e.kind === "cast") return { ...e, operand: renumber(e.operand) };
    return e.kind === "apply" ? { ...e, operands: e.operands.map(renumber) } : e;
  };
  return { kept, renumber };
}
