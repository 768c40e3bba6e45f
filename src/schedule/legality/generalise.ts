/**
 * A scheduled region with its sizes and, where they do not matter, its tile factors taken out: what is
 * legal of the result is legal of every region that becomes the same (legality-class.ts).
 *
 * - An extent that symbols alone decide becomes a symbol of its own, which may be any number from 1 on
 *   (any at all, where it may be 0), and so does a constant of that size in an index.
 * - A loop that is split is a number written with digits: i = 4 * i0 + i1 says that i0 and i1 determine
 *   i and that i grows with them in the order of a dictionary. Nothing else of it counts when i stands
 *   alone wherever it indexes a tensor. Then the digits become loops and axes in its place and the
 *   factor is gone. A loop that stands elsewhere (i + 1, a guard), or on an axis that others index with
 *   other digits, stays whole and keeps its factors.
 * - Guards of reads are left out: without them there are more dependences, never fewer.
 */
import type { Access, Loop, Region, Statement, Write } from "../../region/nest.ts";
import {
  add,
  collectVariables,
  type IndexExpr,
  mul,
  variable,
  variablesOf,
} from "../../semantics/index-expr.ts";
import { type IndexRange, type IndexRanges, rangeOf } from "../../semantics/index-range.ts";
import { invariant } from "../../support/invariant.ts";
import type { Directive } from "../directive.ts";
import type { ScheduledRegion, ScheduledStatement } from "../scheduled-region.ts";

type Split = Extract<Directive, { kind: "split" }>;

/** What splits made of one loop of a statement. */
interface SplitLoop {
  /** Most significant first. */
  readonly digits: string[];
  readonly splits: Split[];
  /** Equal for loops with the same factors at the same digits. */
  shape: string;
  whole: boolean;
}

/** By statement, then by loop; only loops that are split. */
type SplitLoops = ReadonlyMap<string, ReadonlyMap<string, SplitLoop>>;

/** The same question for all sizes. Its schedule holds only the splits of loops that stay whole. */
export function generalise(
  scheduled: ScheduledRegion,
  dependent: ReadonlySet<string>,
): ScheduledRegion {
  const { region } = scheduled;
  const split = replaySplits(scheduled);
  if (split.size > 0) keepWhole(region, dependent, split);
  const sizes = new Sizes(region);
  const statements = scheduled.statements.map((s) =>
    generalStatement(s, { dependent, split, sizes }),
  );
  const tensors = new Map(region.tensors);
  for (const s of statements) {
    for (const { tensor, index } of dependentAccesses(s, dependent)) {
      tensors.set(tensor, { ...region.tensors.get(tensor)!, shape: index.map(() => sizes.any()) });
    }
  }
  const kept = [...split.values()].flatMap((loops) => [...loops.values()].filter((l) => l.whole));
  return {
    ...scheduled,
    region: { ...region, statements, tensors, symbols: [...region.symbols, ...sizes.symbols] },
    schedule: { ...scheduled.schedule, directives: kept.flatMap((l) => l.splits) },
    statements: scheduled.statements.map((s, i) => ({ ...s, statement: statements[i]! })),
  };
}

/** Everything that a statement touches of the tensors that somebody writes. */
export function dependentAccesses(
  { reads, finishReads, indirects, writes }: Statement,
  dependent: ReadonlySet<string>,
): readonly (Access | Write)[] {
  const all = [...reads, ...finishReads, ...indirects.map((v) => v.access), ...writes];
  return all.filter((a) => dependent.has(a.tensor));
}

function replaySplits({ schedule }: ScheduledRegion): SplitLoops {
  const found = new Map<string, Map<string, SplitLoop>>();
  const roots = new Map<string, string>();
  for (const d of schedule.directives) {
    for (const split of splitsOf(d)) {
      const { statement, loop, factor, outer, inner } = split;
      const loops = found.get(statement) ?? new Map<string, SplitLoop>();
      found.set(statement, loops);
      const root = roots.get(`${statement}:${loop}`) ?? loop;
      const made = loops.get(root) ?? { digits: [root], splits: [], shape: "", whole: false };
      loops.set(root, made);
      const at = made.digits.indexOf(loop);
      invariant(at >= 0, () => `no loop ${loop} of ${statement} to split`);
      made.digits.splice(at, 1, outer, inner);
      made.splits.push(split);
      made.shape += ` ${at}/${factor}`;
      for (const name of [outer, inner]) roots.set(`${statement}:${name}`, root);
    }
  }
  return found;
}

function splitsOf(d: Directive): readonly Split[] {
  if (d.kind === "split") return [d];
  if (d.kind === "jam") return [{ ...d, kind: "split" }];
  if (d.kind !== "tile") return [];
  const { statement, loops, factors, outer, inner } = d;
  return loops.map((loop, i) => ({
    kind: "split",
    statement,
    loop,
    factor: factors[i]!,
    outer: outer[i]!,
    inner: inner[i]!,
  }));
}

/** Marks the loops whose digits cannot stand in their place. */
function keepWhole(region: Region, dependent: ReadonlySet<string>, split: SplitLoops): void {
  /** The loops that stand alone on each axis of each tensor; undefined for anything else. */
  const axes = new Map<string, (SplitLoop | undefined)[]>();
  for (const statement of region.statements) {
    const loops = split.get(statement.name);
    const mentioned = new Set<string>();
    for (const { expr } of statement.guard) collectVariables(expr, mentioned);
    for (const { extent } of statement.loops) collectVariables(extent, mentioned);
    for (const { tensor, index } of dependentAccesses(statement, dependent)) {
      index.forEach((expr, axis) => {
        const alone = loops && aloneIn(expr, loops);
        if (!alone) collectVariables(expr, mentioned);
        const name = `${tensor} ${axis}`;
        axes.set(name, [...(axes.get(name) ?? []), alone]);
      });
    }
    for (const name of mentioned) {
      const loop = loops?.get(name);
      if (loop) loop.whole = true;
    }
  }
  const shapeOf = (loop: SplitLoop | undefined): string =>
    loop?.whole === false ? loop.shape : "";
  for (let changed = true; changed; ) {
    changed = false;
    for (const users of axes.values()) {
      if (new Set(users.map(shapeOf)).size <= 1) continue;
      for (const loop of users) if (loop) loop.whole = true;
      changed = true;
    }
  }
}

function aloneIn(expr: IndexExpr, loops: ReadonlyMap<string, SplitLoop>): SplitLoop | undefined {
  const loop = loops.get(expr.key);
  return loop && expr.terms[0]?.atoms[0]?.kind === "variable" ? loop : undefined;
}

interface Generality {
  readonly dependent: ReadonlySet<string>;
  readonly split: SplitLoops;
  readonly sizes: Sizes;
}

function generalStatement(
  { statement, loops: scheduled }: ScheduledStatement,
  { dependent, split, sizes }: Generality,
): Statement {
  const own = split.get(statement.name);
  const digitsOf = (name: string): readonly string[] => {
    const loop = own?.get(name);
    return loop && !loop.whole ? loop.digits : [name];
  };
  const loops = statement.loops.flatMap((loop): readonly Loop[] => {
    const digits = digitsOf(loop.name);
    if (digits.length === 1) return [{ ...loop, extent: sizes.of(loop.extent) }];
    return digits.map((name) => {
      const { extent } = scheduled.find((l) => l.name === name)!;
      return { name, kind: loop.kind, extent: sizes.of(extent) };
    });
  });
  const digitAxes = (index: readonly IndexExpr[]): readonly IndexExpr[] =>
    index.flatMap((e) => {
      const alone = own && aloneIn(e, own);
      return alone && !alone.whole ? alone.digits.map((d) => variable(d)) : [sizes.inIndex(e)];
    });
  const access = (a: Access): Access =>
    dependent.has(a.tensor) ? { ...a, index: digitAxes(a.index), guard: [] } : a;
  return {
    ...statement,
    loops,
    reads: statement.reads.map(access),
    finishReads: statement.finishReads.map(access),
    indirects: statement.indirects.map((v) => ({ ...v, access: access(v.access) })),
    writes: statement.writes.map((w) => ({ ...w, index: digitAxes(w.index) })),
  };
}

/**
 * Symbols for numbers that may be any, or any from 1 on. Where statements meet, equal extents are the
 * same number, and so is an offset or a stride as large as one of them: what is joined behind or around
 * it.
 */
class Sizes {
  readonly #ranges: IndexRanges;
  readonly #shares: boolean;
  readonly #byExtent = new Map<string, IndexExpr>();
  readonly symbols: { readonly name: string; readonly range: IndexRange }[] = [];

  constructor({ symbols, statements }: Region) {
    this.#ranges = new Map(symbols.map((s) => [s.name, s.range]));
    this.#shares = statements.length > 1;
  }

  /** An extent that loops change stays as it is. */
  of(extent: IndexExpr): IndexExpr {
    if (!this.#isSize(extent)) return extent;
    const known = this.#byExtent.get(extent.key);
    if (this.#shares && known) return known;
    const { min } = rangeOf(extent, this.#ranges);
    const size = this.any(min >= 1 ? 1 : -Infinity);
    this.#byExtent.set(extent.key, size);
    return size;
  }

  /** An index with sizes for its constants. */
  inIndex(index: IndexExpr): IndexExpr {
    const sizeOf = (n: number): IndexExpr | undefined =>
      n < 2 ? undefined : this.#byExtent.get(String(n));
    const plain = sizeOf(index.constant) === undefined;
    if (plain && index.terms.every((t) => sizeOf(t.coefficient) === undefined)) return index;
    const terms = index.terms.map((t): IndexExpr => {
      const alone = { constant: 0, terms: [{ ...t, coefficient: 1 }], key: t.key };
      return mul(sizeOf(t.coefficient) ?? t.coefficient, alone);
    });
    return add(...terms, sizeOf(index.constant) ?? index.constant);
  }

  any(min = -Infinity): IndexExpr {
    const name = `size'${this.symbols.length}`;
    this.symbols.push({ name, range: { min, max: Infinity } });
    return variable(name);
  }

  #isSize(extent: IndexExpr): boolean {
    if (extent.terms.length === 0) return true;
    for (const name of variablesOf(extent)) if (!this.#ranges.has(name)) return false;
    return true;
  }
}
