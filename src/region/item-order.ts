/**
 * Whether items of a program may run later than they stand: a group runs where its last member stands,
 * so its other members are moved behind everything in between. affine/ finds the dependences between
 * a member and an item that it would be moved behind; one is enough to refuse, none in between is
 * needed to prove it. Elements count, not tensors: parts of a concat do not disturb each other, and where
 * the ranges of their indices say so, affine/ is not asked.
 *
 * Routines and reads under another name (views) touch a tensor at places that are not known here.
 */
import * as affine from "../affine/index.ts";
import type { IndexExpr } from "../semantics/index-expr.ts";
import { type IndexRange, rangeOf } from "../semantics/index-range.ts";
import { invariant } from "../support/invariant.ts";
import { bridgeRegion } from "./affine-bridge.ts";
import type { NestProgram, Statement } from "./nest.ts";
import { statementRanges } from "./statement.ts";
import { countUpTo, tensorsRead, type Uses } from "./uses.ts";

/** An item that has to run after a member and before the end of its group. */
export interface Overtaken {
  readonly item: number;
  readonly tensor: string;
  readonly what: "reads" | "writes";
}

interface Span {
  readonly member: number;
  readonly end: number;
  readonly writers: ReadonlySet<number>;
}

export class ItemOrder {
  readonly #program: NestProgram;
  readonly #uses: Uses;
  /** Whether two items depend on each other through a tensor; items are immutable. */
  readonly #known = new Map<string, boolean>();

  constructor(program: NestProgram, uses: Uses) {
    this.#program = program;
    this.#uses = uses;
  }

  /**
   * The first item between a member and `end` that depends on the member. `writers` store their results
   * at the end; what is recomputed there (`readers`) stores nothing, but reads its operands late.
   */
  overtaken(
    writers: ReadonlySet<number>,
    readers: readonly number[],
    end: number,
  ): Overtaken | undefined {
    const { readers: readBy, writers: writtenBy } = this.#uses;
    for (const member of writers) {
      const span = { member, end, writers };
      for (const { tensor } of this.#statementAt(member).writes) {
        const found = this.#between(readBy, tensor, span);
        if (found !== undefined) return { item: found, tensor, what: "reads" };
        const again = this.#between(writtenBy, tensor, span);
        if (again !== undefined) return { item: again, tensor, what: "writes" };
      }
    }
    for (const member of new Set([...writers, ...readers])) {
      const span = { member, end, writers };
      for (const tensor of tensorsRead(this.#statementAt(member))) {
        const found = this.#between(writtenBy, tensor, span);
        if (found !== undefined) return { item: found, tensor, what: "writes" };
      }
    }
    return undefined;
  }

  /** The first user of a tensor that the member would be moved behind and depends on. */
  #between(users: Uses["readers"], tensor: string, span: Span): number | undefined {
    const { member, end, writers } = span;
    const root = this.#uses.roots.get(tensor) ?? tensor;
    const all = users.get(root) ?? [];
    for (let i = countUpTo(all, member); i < all.length && all[i]! < end; i++) {
      const at = all[i]!;
      if (!writers.has(at) && this.#depend(member, at, root)) return at;
    }
    return undefined;
  }

  #statementAt(at: number): Statement {
    const item = this.#program.items[at];
    invariant(item?.kind === "statement", () => `item ${at} is no statement`);
    return item.statement;
  }

  #depend(first: number, second: number, tensor: string): boolean {
    const key = `${first} ${second} ${tensor}`;
    const known = this.#known.get(key) ?? this.#mayDepend(first, second, tensor);
    this.#known.set(key, known);
    return known;
  }

  #mayDepend(first: number, second: number, tensor: string): boolean {
    const [source, sink] = [this.#program.items[first], this.#program.items[second]];
    if (source?.kind !== "statement" || sink?.kind !== "statement") return true;
    if (this.#uses.aliased.has(tensor)) return true;
    const { symbols, tensors } = this.#program;
    const statements = [source.statement, sink.statement] as const;
    if (areApart(statements, tensor, symbols)) return false;
    const only = new Set([tensor]);
    const { affine: bridged, context } = bridgeRegion({ statements, symbols, tensors }, only);
    const found = affine.findDependences(bridged);
    if (found.kind === "unknown") return true;
    const [from, to] = statements.map((s) => s.name);
    return found.value.some(
      (d) =>
        d.source === from &&
        d.sink === to &&
        affine.isEmpty(affine.intersectParams(d.relation, context)) !== "yes",
    );
  }
}

interface Touch {
  readonly writes: boolean;
  /** Of each axis the least and the greatest index. */
  readonly ranges: readonly IndexRange[];
}

/** Whether the ranges of their indices alone show that two statements touch no element of which one writes it. */
function areApart(
  [first, second]: readonly [Statement, Statement],
  tensor: string,
  symbols: NestProgram["symbols"],
): boolean {
  const theirs = touchesOf(second, tensor, symbols);
  return touchesOf(first, tensor, symbols).every((a) =>
    theirs.every((b) => {
      if (!a.writes && !b.writes) return true;
      return a.ranges.some(({ min, max }, axis) => {
        const other = b.ranges[axis]!;
        return max < other.min || other.max < min;
      });
    }),
  );
}

function touchesOf(
  statement: Statement,
  tensor: string,
  symbols: NestProgram["symbols"],
): readonly Touch[] {
  const { reads, finishReads, indirects, writes } = statement;
  const known = statementRanges(statement, symbols);
  const touch = (index: readonly IndexExpr[], isWrite: boolean): Touch => ({
    writes: isWrite,
    ranges: index.map((e) => rangeOf(e, known)),
  });
  const read = [...reads, ...finishReads, ...indirects.map((v) => v.access)];
  return [
    ...read.flatMap((a) => (a.tensor === tensor ? [touch(a.index, false)] : [])),
    ...writes.flatMap((w) => (w.tensor === tensor ? [touch(w.index, true)] : [])),
  ];
}
